"""LeNet-5, of Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, "Gradient-based learning applied to document recognition" (1998)."""

from __future__ import annotations

from typing import Any

from mortice import nn
from mortice.vision.models.registry import register

__all__ = ["LeNet", "lenet"]


class LeNet(nn.Module):
    """LeNet-5 as it is taught now: plain average pooling, every map of C3 sees every map of S2, logits as output.

    It takes images of 32 by 32; the 28 by 28 of MNIST are padded to that, as in the paper.
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 1) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, 6, 5), nn.Tanh(), nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, num_classes)
        )

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        if tuple(x.shape[-2:]) == (28, 28):
            x = nn.functional.pad(x, (2, 2, 2, 2))
        return self.classifier(self.features(x).flatten(1))


lenet = register("lenet", LeNet, about="LeNet-5 for grey images of 32 by 32 or 28 by 28")
