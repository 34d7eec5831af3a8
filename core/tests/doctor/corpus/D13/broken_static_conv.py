# static
from torch import nn

features = nn.Sequential(
    nn.Conv2d(3, 32, 3, bias=False),
    nn.BatchNorm2d(32),  # <- D13
    nn.Conv2d(32, 64, 3),
    nn.ReLU(),
)
