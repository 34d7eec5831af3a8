"""A residual network with batch normalisation reads handwritten digits: `python resnet.py [--steps N] [--device NAME]`."""

import argparse
import random

from example_data import load_digits

import mortice as torch
import mortice.nn as nn
import mortice.optim as optim
from mortice.utils.data import DataLoader, TensorDataset


def conv3x3(in_planes, planes, stride=1):
    return nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = conv3x3(in_planes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or in_planes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, width=16, blocks=(2, 2, 2), classes=10):
        super().__init__()
        self.stem = nn.Sequential(conv3x3(1, width), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        planes, layers = width, []
        for i, count in enumerate(blocks):
            layers.append(self.make_layer(planes, width * 2**i, count, stride=1 if i == 0 else 2))
            planes = width * 2**i
        self.layers = nn.ModuleList(layers)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(planes, classes)

        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def make_layer(self, in_planes, planes, count, stride):
        blocks = [BasicBlock(in_planes, planes, stride)]
        blocks += [BasicBlock(planes, planes) for _ in range(1, count)]
        return nn.Sequential(*blocks)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def build(width=16, blocks=(2, 2, 2)):
    return ResNet(width, blocks)


def train(model, steps, batch_size=64, lr=0.05):
    device = next(model.parameters()).device
    images, labels = load_digits()
    dataset = TensorDataset(torch.from_numpy(images[:1500]), torch.from_numpy(labels[:1500]))
    order = random.Random(0).sample(range(len(dataset)), len(dataset))
    loader = DataLoader(dataset, batch_size=batch_size, sampler=order, drop_last=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)

    model.train()
    losses = []
    while len(losses) < steps:
        for images, labels in loader:
            loss = criterion(model(images.to(device)), labels.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    return losses


@torch.no_grad()
def accuracy(model):
    """Return the share of the held-out digits that the model reads right, with the running statistics."""
    device = next(model.parameters()).device
    images, labels = (torch.from_numpy(part[1500:]).to(device) for part in load_digits())
    model.eval()
    _, predicted = torch.max(model(images), 1)
    return (predicted == labels).sum().item() / labels.size(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = build().to(options.device)
    print(f"{sum(p.numel() for p in model.parameters() if p.requires_grad):,} weights")
    losses = train(model, options.steps)
    for step in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {step:4d}  loss {losses[step]:.4f}")
    print(f"held-out accuracy {accuracy(model):.1%}")


if __name__ == "__main__":
    main()
