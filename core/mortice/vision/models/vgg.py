"""VGG: K. Simonyan and A. Zisserman, "Very deep convolutional networks for large-scale image recognition" (2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.registry import register

__all__ = ["VGG", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"]


class VGG(nn.Module):
    """Three linear layers over `features`."""

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(p=dropout),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )  # fmt: skip
        if init_weights:
            initial.draw(self, conv=initial.he_fan_out, linear=initial.small_normal)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.classifier(mt.flatten(self.avgpool(self.features(x)), 1))


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """Make the convolutions of 3 by 3: a number gives the channels of one, "M" halves the picture."""
    layers: list[nn.Module] = []
    channels = 3
    for step in cfg:
        if isinstance(step, str):
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, step, kernel_size=3, padding=1))
        layers += [nn.BatchNorm2d(step)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        channels = step
    return nn.Sequential(*layers)


def _make(*repeats: int, batch_norm: bool, **kwargs: Any) -> VGG:
    """Make the network with that many convolutions before each halving."""
    steps: list[int | str] = []
    for channels, n in zip((64, 128, 256, 512, 512), repeats):
        steps += [*[channels] * n, "M"]
    return VGG(make_layers(steps, batch_norm), **kwargs)


_A, _B, _D, _E = (1, 1, 2, 2, 2), (2, 2, 2, 2, 2), (2, 2, 3, 3, 3), (2, 2, 4, 4, 4)
_make.__name__ = "VGG"
vgg11 = register("vgg11", _make, *_A, batch_norm=False, about="VGG-11")
vgg13 = register("vgg13", _make, *_B, batch_norm=False, about="VGG-13")
vgg16 = register("vgg16", _make, *_D, batch_norm=False, about="VGG-16")
vgg19 = register("vgg19", _make, *_E, batch_norm=False, about="VGG-19")
vgg11_bn = register("vgg11_bn", _make, *_A, batch_norm=True, about="VGG-11 with batch normalisation")
vgg13_bn = register("vgg13_bn", _make, *_B, batch_norm=True, about="VGG-13 with batch normalisation")
vgg16_bn = register("vgg16_bn", _make, *_D, batch_norm=True, about="VGG-16 with batch normalisation")
vgg19_bn = register("vgg19_bn", _make, *_E, batch_norm=True, about="VGG-19 with batch normalisation")
