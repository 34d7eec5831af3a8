"""SqueezeNet: F. Iandola et al., "AlexNet-level accuracy with 50x fewer parameters" (2016), and its release 1.1."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.registry import register

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

# of each version: channels and kernel of the first convolution, then "M" for a pooling or the squeezed channels of
# a fire module, which expands them to eight times as many
_VERSIONS: dict[str, tuple[Any, ...]] = {
    "1_0": (96, 7, "M", 16, 16, 32, "M", 32, 48, 48, 64, "M", 64),
    "1_1": (64, 3, "M", 16, 16, "M", 32, 32, "M", 48, 48, 64, 64),
}


class Fire(nn.Module):
    """Squeeze the channels, then expand them by single pixels and by 3 by 3, side by side."""

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        """Return both kinds of maps, one after the other."""
        x = self.squeeze_activation(self.squeeze(x))
        small, large = self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))
        return mt.cat([small, large], 1)


class SqueezeNet(nn.Module):
    """Fire modules, and a convolution in place of linear layers."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in _VERSIONS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        channels, kernel, *steps = _VERSIONS[version]
        layers: list[nn.Module] = [nn.Conv2d(3, channels, kernel, stride=2), nn.ReLU(inplace=True)]
        for step in steps:
            if step == "M":
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
            else:
                layers.append(Fire(channels, step, 4 * step, 4 * step))
                channels = 8 * step
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        initial.draw(self, conv=lambda w: (initial.small_normal if w is last.weight else nn.init.kaiming_uniform_)(w))

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return mt.flatten(self.classifier(self.features(x)), 1)


squeezenet1_0 = register("squeezenet1_0", SqueezeNet, "1_0", about="SqueezeNet 1.0")
squeezenet1_1 = register("squeezenet1_1", SqueezeNet, "1_1", about="SqueezeNet 1.1")
