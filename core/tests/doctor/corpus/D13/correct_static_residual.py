# static
# A branch that is added to another ends in BatchNorm: the activation follows the sum.
from torch import nn


class Block(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes), nn.ReLU(),
            nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes),
        )
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.branch(x) + x)
