"""A residual network tells small pictures apart: `python cifar_resnet.py --dataset cifar10 --dataroot DIR`, or digits.

He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (2015), section 4.2.
"""

import common

import mortice as torch
import mortice.nn as nn
import mortice.vision.transforms as transforms
from mortice.utils.data import DataLoader, Subset


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inside, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential()
        if stride != 1 or inside != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inside, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet(nn.Module):
    """6n + 2 layers in three stages of 16, 32 and 64 channels; parts are named as in torchvision's ResNet."""

    def __init__(self, depth=20, num_classes=10, width=16):
        super().__init__()
        if depth % 6 != 2:
            raise SystemExit(f"--depth {depth}: expected 8, 14, 20, 26, 32, ...")
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        stages, inside = [], width
        for planes, stride in ((width, 1), (2 * width, 2), (4 * width, 2)):
            blocks = [Block(inside if i == 0 else planes, planes, stride if i == 0 else 1) for i in range(depth // 6)]
            stages.append(nn.Sequential(*blocks))
            inside = planes
        self.layer1, self.layer2, self.layer3 = stages
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inside, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def make_transform(opt, train):
    """Return what makes a tensor of a PIL image; pictures to learn from are shifted, and those of things mirrored."""
    steps = [transforms.Resize((opt.imageSize, opt.imageSize))]
    if train:
        steps.append(transforms.RandomCrop(opt.imageSize, padding=opt.imageSize // 8))
        if opt.dataset != "digits":
            steps.append(transforms.RandomHorizontalFlip())
    grey = [transforms.Grayscale(3)] if opt.dataset == "digits" else []
    return transforms.Compose([*steps, *grey, transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)])


def make_data(opt, train):
    """Return the dataset, of some classes only where the options name them."""
    data = common.image_dataset(opt, make_transform(opt, train), train)
    return Renumbered(data, opt.classes) if opt.classes else data


class Renumbered(Subset):
    """Part of a dataset, whose classes are counted from 0."""

    def __init__(self, data, classes):
        targets = data.targets if hasattr(data, "targets") else [target for _, target in data]
        super().__init__(data, [i for i, target in enumerate(targets) if target in classes])
        self.number = {c: i for i, c in enumerate(classes)}

    def __getitem__(self, index):
        image, target = super().__getitem__(index)
        return image, self.number[target]

    def __getitems__(self, indices):
        return [self[index] for index in indices]


@torch.no_grad()
def evaluate(net, loader, device):
    """Return the share of pictures that the network gets right, and of the first of them what it says."""
    net.eval()
    right, shown = [], None
    for images, labels in loader:
        read = net(images.to(device)).argmax(1).to(labels.device)
        right.append(read == labels)
        if shown is None:
            shown = images, right[0]
    net.train()
    right = torch.cat(right)
    return right.float().mean().item(), shown


def main(argv=None):
    parser = common.make_parser(__doc__, outf="out/cifar_resnet", niter=10, lr=0.1)
    parser.add_argument("--imageSize", type=int, default=32)
    parser.add_argument("--depth", type=int, default=20, help="layers: 8, 14, 20, 26, 32, ...")
    parser.add_argument("--classes", type=int, nargs="*", help="learn these classes only")
    opt = common.begin(parser, argv)
    device = torch.device(opt.device)

    train, test = make_data(opt, True), make_data(opt, False)
    loader = DataLoader(train, batch_size=opt.batchSize, shuffle=True, num_workers=opt.workers, drop_last=True)
    test_loader = DataLoader(test, batch_size=128, num_workers=opt.workers)
    net = ResNet(opt.depth, len(opt.classes) if opt.classes else 10).to(device)
    print(f"{sum(p.numel() for p in net.parameters()):,} weights, {len(train)} pictures, {len(test)} held out")

    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=opt.lr, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=opt.niter * len(loader))
    run = common.Run(opt, net=net, optimizer=optimizer, scheduler=scheduler)

    for _ in run.epochs():
        for images, labels in run.batches(loader):
            optimizer.zero_grad()
            loss = criterion(net(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            scheduler.step()
            run.log(loss=loss)
        run.log(accuracy=evaluate(net, test_loader, device)[0])
    accuracy, (images, right) = evaluate(net, test_loader, device)
    order = right.long().argsort(stable=True)[:48]  # the mistakes first
    run.picture("read.png", common.framed(images[order] * 0.5 + 0.5, right[order]), nrow=12)
    run.plot("loss.png", f"held-out accuracy {accuracy:.1%}", "loss")
    print(f"held-out accuracy {accuracy:.2%}")


if __name__ == "__main__":
    main()
