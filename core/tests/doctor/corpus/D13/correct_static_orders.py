# static
# Before the activation, after it, at the input, and between the halves of a separable convolution.
from torch import nn

before = nn.Sequential(nn.Conv2d(3, 32, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3))
after = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.BatchNorm2d(32), nn.Conv2d(32, 64, 3))
at_input = nn.Sequential(nn.BatchNorm1d(20), nn.Linear(20, 10))
separable = nn.Sequential(
    nn.Conv2d(32, 32, 3, groups=32, bias=False), nn.BatchNorm2d(32), nn.Conv2d(32, 64, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()
)
