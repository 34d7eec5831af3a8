"""AlexNet in its one-tower form: A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014)."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models.registry import register

__all__ = ["AlexNet", "alexnet"]

# channels in and out, kernel, stride, padding, whether a pooling follows
_LAYERS = ((3, 64, 11, 4, 2, True), (64, 192, 5, 1, 2, True), (192, 384, 3, 1, 1, False), (384, 256, 3, 1, 1, False),
           (256, 256, 3, 1, 1, True))  # fmt: skip


class AlexNet(nn.Module):
    """Five convolutions and three linear layers."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for *convolution, pooled in _LAYERS:
            layers += [nn.Conv2d(*convolution), nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(kernel_size=3, stride=2)] if pooled else []
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(p=dropout), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.classifier(mt.flatten(self.avgpool(self.features(x)), 1))


alexnet = register("alexnet", AlexNet, about="AlexNet")
