"""A multilayer perceptron reads handwritten digits: `python mlp.py [--steps N] [--device NAME]`."""

import argparse
import random

from example_data import load_digits

import mortice as torch
import mortice.nn as nn
import mortice.optim as optim
from mortice.utils.data import DataLoader, Sampler, TensorDataset


class MLP(nn.Module):
    def __init__(self, hidden=128, classes=10):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, classes),
        )

    def forward(self, x):
        return self.layers(x)


class SeededSampler(Sampler):
    """Visit every example once an epoch, in an order that a seed decides."""

    def __init__(self, source, seed=0):
        self.source = source
        self.random = random.Random(seed)

    def __iter__(self):
        order = list(range(len(self.source)))
        self.random.shuffle(order)
        return iter(order)

    def __len__(self):
        return len(self.source)


def build(hidden=128):
    return MLP(hidden)


def train(model, steps, batch_size=64, lr=0.1):
    device = next(model.parameters()).device
    images, labels = load_digits()
    dataset = TensorDataset(torch.from_numpy(images[:1500]), torch.from_numpy(labels[:1500]))
    loader = DataLoader(dataset, batch_size=batch_size, sampler=SeededSampler(dataset), drop_last=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.9)

    model.train()
    losses = []
    while len(losses) < steps:
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    return losses


@torch.no_grad()
def accuracy(model):
    """Return the share of the held-out digits that the model reads right."""
    device = next(model.parameters()).device
    images, labels = (torch.from_numpy(part[1500:]).to(device) for part in load_digits())
    model.eval()
    return (model(images).argmax(dim=1) == labels).float().mean().item()


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
    print(f"held-out accuracy {accuracy(model):.1%}")


if __name__ == "__main__":
    main()
