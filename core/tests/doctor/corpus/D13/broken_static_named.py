# static
from collections import OrderedDict

from mortice import nn

model = nn.Sequential(OrderedDict([
    ("fc1", nn.Linear(20, 64, bias=False)),
    ("bn1", nn.BatchNorm1d(64)),  # <- D13
    ("fc2", nn.Linear(64, 10)),
]))
