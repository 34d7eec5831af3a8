"""A trained network learns new classes from few pictures in folders: `python finetune.py --net checkpoint.pt`.

The folders are dataroot/train/CLASS/*.png and dataroot/val/CLASS/*.png. Without them the digits from 5 to 9 are written
as image files, for a network that has learnt 0 to 4:

    python cifar_resnet.py --classes 0 1 2 3 4 --depth 8 --imageSize 16 --outf out/first_digits
    python finetune.py --net out/first_digits/checkpoint.pt --depth 8 --imageSize 16
"""

import os

import common
from cifar_resnet import ResNet, evaluate

import mortice as torch
import mortice.nn as nn
import mortice.vision.transforms as transforms
from mortice.utils.data import DataLoader
from mortice.vision import datasets, models


def write_digits(folder, shots, classes=range(5, 10)):
    """Write digits as image files: for each class `shots` to learn from, and those that are held out."""
    for part, data in (("train", common.Digits(True)), ("val", common.Digits(False))):
        for c in classes:
            os.makedirs(os.path.join(folder, part, str(c)), exist_ok=True)
            chosen = [image for image, target in zip(data.images, data.targets) if target == c]
            for i, image in enumerate(chosen[:shots] if part == "train" else chosen):
                image.save(os.path.join(folder, part, str(c), f"{i:03d}.png"))


def load_body(net, path):
    """Load a state dict, or the `net` of a checkpoint, but for the head, which knows other classes."""
    state = torch.load(path, map_location="cpu")
    state = state.get("net", state)
    body = {name: value for name, value in state.items() if not name.startswith("fc.")}
    missing, unexpected = net.load_state_dict(body, strict=False)
    if unexpected or any(not name.startswith("fc.") for name in missing):
        raise SystemExit(f"{path} is of another network: missing {missing}, unexpected {unexpected}")
    print(f"{len(body)} tensors from {path}; new: {', '.join(missing)}")


def freeze(net, names):
    """Let the weights of some parts stay as they are: no gradients are computed for them."""
    for name in names:
        net.get_submodule(name).requires_grad_(False)


def train_mode(net, frozen):
    """Put a network in training mode but for the frozen parts, whose BatchNorm would else follow the new pictures."""
    net.train()
    for name in frozen:
        net.get_submodule(name).eval()


def main(argv=None):
    parser = common.make_parser(__doc__, outf="out/finetune", dataset="folder", niter=20, lr=0.02, batchSize=16)
    parser.add_argument("--imageSize", type=int, default=32)
    parser.add_argument("--arch", default="cifar", help="cifar, or a ResNet of mortice.vision.models such as resnet18")
    parser.add_argument("--depth", type=int, default=20, help="of cifar")
    parser.add_argument("--net", default="", help="state dict or checkpoint to begin with; without: from scratch")
    parser.add_argument("--freeze", nargs="*", default=["conv1", "bn1", "layer1", "layer2"], help="parts that stay")
    parser.add_argument("--shots", type=int, default=4, help="digits of a class, where there are no folders")
    opt = common.begin(parser, argv)
    device = torch.device(opt.device)

    if not opt.dataroot:
        opt.dataroot = os.path.join(opt.outf, f"digits_{opt.shots}")
        write_digits(opt.dataroot, opt.shots)
    size, normalize = opt.imageSize, transforms.Normalize((0.5,) * 3, (0.5,) * 3)
    turned = [transforms.RandomAffine(10, translate=(0.08, 0.08), scale=(0.9, 1.1)), transforms.ColorJitter(0.2, 0.2)]
    loaders = []
    for part, change in (("train", turned), ("val", [])):
        steps = [transforms.Resize((size, size)), *change, transforms.ToTensor(), normalize]
        data = datasets.ImageFolder(os.path.join(opt.dataroot, part), transforms.Compose(steps))
        # Shuffled to be drawn: files are sorted by class.
        loader = DataLoader(data, batch_size=opt.batchSize if change else 128, shuffle=True, num_workers=opt.workers)
        loaders.append(loader)
    loader, val_loader = loaders
    classes = loader.dataset.classes

    net = ResNet(opt.depth) if opt.arch == "cifar" else models.get_model(opt.arch)
    net.fc = nn.Linear(net.fc.in_features, len(classes))  # a head for the new classes
    frozen = opt.freeze if opt.net else []  # without weights to keep everything learns
    if opt.net:
        load_body(net, opt.net)
        freeze(net, frozen)
    net.to(device)
    learning = [p for p in net.parameters() if p.requires_grad]
    print(f"{sum(p.numel() for p in learning):,} of {sum(p.numel() for p in net.parameters()):,} weights learn")
    print(f"{len(loader.dataset)} pictures of {', '.join(classes)}; {len(val_loader.dataset)} held out")

    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(learning, lr=opt.lr, momentum=0.9, weight_decay=1e-3)
    run = common.Run(opt, net=net, optimizer=optimizer)
    for _ in run.epochs():
        train_mode(net, frozen)
        for images, labels in run.batches(loader):
            optimizer.zero_grad()
            loss = criterion(net(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            run.log(loss=loss)
    accuracy, (images, right) = evaluate(net, val_loader, device)
    run.picture("read.png", common.framed(images[:48] * 0.5 + 0.5, right[:48]), nrow=12)
    run.plot("loss.png", f"held-out accuracy {accuracy:.1%}", "loss")
    print(f"held-out accuracy {accuracy:.2%}")


if __name__ == "__main__":
    main()
