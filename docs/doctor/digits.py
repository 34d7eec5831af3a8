"""Learns handwritten digits, with two mistakes that the doctor is to find."""

import csv
import gzip
from pathlib import Path

import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).parents[2] / "examples" / "data" / "digits" / "digits.csv.gz"


def load():
    with gzip.open(DATA, "rt", newline="") as file:
        rows = [[int(v) for v in row] for row in csv.reader(file) if row and row[0].isdigit()]
    table = torch.tensor(rows)
    return table[:, :64].float(), table[:, 64]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(64, 128)
        self.hidden1 = nn.Linear(128, 64)
        self.hidden2 = nn.Linear(64, 64)
        self.classify = nn.Linear(64, 10)
        nn.init.normal_(self.features.weight)

    def forward(self, pixels):
        x = torch.tanh(self.features(pixels))
        x = torch.relu(self.hidden1(x))
        x = torch.relu(self.hidden2(x))
        return torch.softmax(self.classify(x), dim=1)


def train(epochs=12):
    images, labels = load()
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    net = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for pixels, digits in loader:
            optimizer.zero_grad()
            loss = criterion(net(pixels), digits)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    train()
