# static
# The activation comes first: the bias moves what ReLU cuts off, and BatchNorm cannot undo that.
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.bn1 = nn.BatchNorm2d(32)
        self.norm = nn.LayerNorm(32)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.bn1(self.conv1(x).relu())
        return self.fc(self.norm(x.mean((2, 3))))


tail = nn.Sequential(nn.Linear(10, 10), nn.LayerNorm(10), nn.ReLU(), nn.Linear(10, 10))
