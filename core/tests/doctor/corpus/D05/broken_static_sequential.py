# static
from torch import nn


def block(channels_in, channels_out, stride):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, stride, 1),  # <- D05
        nn.BatchNorm2d(channels_out),
        nn.ReLU(inplace=True),
    )


model = nn.Sequential(block(3, 32, 1), block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
