"""A siamese network learns from triplets which digits are alike: `python siamese.py [--steps N] [--device NAME]`."""

import argparse
import random

from example_data import load_digits

import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
import mortice.optim as optim
from mortice.utils.data import DataLoader, Dataset


class Triplets(Dataset):
    """An image, another one of its class, and one of another class."""

    def __init__(self, images, labels, seed=0):
        self.images, self.labels = torch.from_numpy(images), labels.tolist()
        self.of_class = [[i for i, label in enumerate(self.labels) if label == c] for c in range(10)]
        self.random = random.Random(seed)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        label = self.labels[index]
        other = self.random.choice([c for c in range(10) if c != label])
        positive, negative = self.random.choice(self.of_class[label]), self.random.choice(self.of_class[other])
        return self.images[index], self.images[positive], self.images[negative]


class SiameseNetwork(nn.Module):
    def __init__(self, channels=16, embedding=16):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, channels, kernel_size=3),
            nn.PReLU(),
            nn.BatchNorm2d(channels),
            nn.AvgPool2d(2, stride=2),
            nn.Conv2d(channels, channels * 2, kernel_size=3, padding=1),
            nn.PReLU(channels * 2),
            nn.AvgPool2d(2),
        )
        self.fc = nn.Sequential(nn.Linear(channels * 2 * 2 * 2, 64), nn.Tanh(), nn.Linear(64, embedding))

    def forward_once(self, x):
        output = self.cnn(x)
        output = output.view(output.size()[0], -1)
        return F.normalize(self.fc(output), p=2, dim=1)

    def forward(self, anchor, positive, negative):
        return self.forward_once(anchor), self.forward_once(positive), self.forward_once(negative)


def build(channels=16, embedding=16):
    return SiameseNetwork(channels, embedding)


def train(model, steps, batch_size=32, lr=5e-4):
    device = next(model.parameters()).device
    images, labels = load_digits()
    loader = DataLoader(Triplets(images[:1500], labels[:1500]), batch_size=batch_size, drop_last=True)
    criterion = nn.TripletMarginLoss(margin=0.5, p=2)
    optimizer = optim.RMSprop(model.parameters(), lr=lr, alpha=0.9, eps=1e-3)

    model.train()
    losses = []
    while len(losses) < steps:
        for triplet in loader:
            anchor, positive, negative = (part.to(device) for part in triplet)
            optimizer.zero_grad()
            loss = criterion(*model(anchor, positive, negative))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    return losses


@torch.no_grad()
def accuracy(model):
    """Return how often the nearest of the learnt digits has the class of a held-out one."""
    device = next(model.parameters()).device
    images, labels = (torch.from_numpy(part).to(device) for part in load_digits())
    model.eval()
    embedded = model.forward_once(images)
    nearest = torch.cdist(embedded[1500:], embedded[:1500]).argmin(dim=1)
    return (labels[nearest] == labels[1500:]).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = build().to(options.device)
    print(f"nearest neighbour before: {accuracy(model):.1%}")
    losses = train(model, options.steps)
    for step in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {step:4d}  loss {losses[step]:.4f}")
    print(f"nearest neighbour after: {accuracy(model):.1%}")


if __name__ == "__main__":
    main()
