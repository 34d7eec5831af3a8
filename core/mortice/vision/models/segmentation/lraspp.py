"""LR-ASPP, of A. Howard et al., "Searching for MobileNetV3" (2019)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mortice import nn
from mortice.vision.models.segmentation._utils import backbone, conv_norm, resized, segmentation

__all__ = ["LRASPP", "lraspp_mobilenet_v3_large"]


class LRASPPHead(nn.Module):
    """The last maps, scaled by what the whole picture holds, and earlier ones beside them."""

    def __init__(self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int) -> None:
        super().__init__()
        self.cbr = nn.Sequential(*conv_norm(high_channels, inter_channels, inplace=True))
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(high_channels, inter_channels, 1, bias=False), nn.Sigmoid()
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: dict[str, Any]) -> Any:
        """Return logits of the size of the earlier maps."""
        low, high = input["low"], input["high"]
        x = resized(self.cbr(high) * self.scale(high), low.shape[-2:])
        return self.low_classifier(low) + self.high_classifier(x)


class LRASPP(nn.Module):
    """A backbone, whose result is {"low": maps, "high": maps}, and a light head."""

    def __init__(
        self, backbone: nn.Module, low_channels: int, high_channels: int, num_classes: int, inter_channels: int = 128
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Any) -> dict[str, Any]:
        """Return the logits of a batch of images by "out"."""
        return OrderedDict(out=resized(self.classifier(self.backbone(input)), input.shape[-2:]))


def _lraspp(over: str, num_classes: int, aux: bool, **kwargs: Any) -> LRASPP:
    if aux:
        raise NotImplementedError("This model does not use auxiliary loss")
    base, high, low = backbone(over, "high", "low", **kwargs)
    return LRASPP(base, low, high, num_classes)


lraspp_mobilenet_v3_large = segmentation(
    "lraspp_mobilenet_v3_large", LRASPP, "mobilenet_v3_large", _lraspp, about="LR-ASPP"
)
