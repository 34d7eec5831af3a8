"""LeNet-5 reads handwritten digits: `python lenet.py [--steps N] [--device NAME]`."""

import argparse
import random

from example_data import load_digits

import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
import mortice.optim as optim
from mortice.utils.data import DataLoader, Dataset


class Digits(Dataset):
    """The digits at twice their size; in training each is moved by up to one pixel, as chance decides."""

    def __init__(self, train=True, seed=0):
        images, labels = load_digits()
        part = slice(None, 1500) if train else slice(1500, None)
        images = torch.from_numpy(images[part])
        self.images = F.interpolate(images, scale_factor=2, mode="bilinear", align_corners=False)
        self.labels = torch.from_numpy(labels[part])
        self.random = random.Random(seed) if train else None

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.random:
            shifts = self.random.randint(-1, 1), self.random.randint(-1, 1)
            image = torch.roll(image, shifts, dims=(1, 2))
        return image, int(self.labels[index])


class LeNet(nn.Module):
    def __init__(self, channels=6):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(channels, 16, kernel_size=5)
        self.fc1 = nn.Linear(16 * 2 * 2, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, self.num_flat_features(x))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.log_softmax(self.fc3(x), dim=1)

    def num_flat_features(self, x):
        size = x.size()[1:]
        count = 1
        for s in size:
            count *= s
        return count


def build(channels=6):
    return LeNet(channels)


def train(model, steps, batch_size=32, lr=5e-3):
    device = next(model.parameters()).device
    dataset = Digits()
    order = random.Random(1).sample(range(len(dataset)), len(dataset))
    loader = DataLoader(dataset, batch_size=batch_size, sampler=order)
    optimizer = optim.Adam(model.parameters(), lr=lr)

    model.train()
    losses = []
    while len(losses) < steps:
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            output = model(data)
            loss = F.nll_loss(output, target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    return losses


def test(model):
    """Return the mean loss and the accuracy over the held-out digits."""
    device = next(model.parameters()).device
    loader = DataLoader(Digits(train=False), batch_size=100)
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            prediction = output.max(1, keepdim=True)[1]
            correct += prediction.eq(target.view_as(prediction)).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = build().to(options.device)
    losses = train(model, options.steps)
    for step in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {step:4d}  loss {losses[step]:.4f}")
    loss, accuracy = test(model)
    print(f"held-out loss {loss:.4f}, accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
