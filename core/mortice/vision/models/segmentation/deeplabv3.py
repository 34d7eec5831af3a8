"""DeepLabV3: L.-C. Chen et al., "Rethinking atrous convolution for semantic image segmentation" (2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models.segmentation._utils import (
    _SimpleSegmentationModel,
    backbone,
    conv_norm,
    resized,
    segmentation,
)
from mortice.vision.models.segmentation.fcn import FCNHead

__all__ = ["DeepLabV3", "deeplabv3_mobilenet_v3_large", "deeplabv3_resnet101", "deeplabv3_resnet50"]


class DeepLabV3(_SimpleSegmentationModel):
    """A backbone and dilated convolutions on its last maps, with an auxiliary head on earlier ones."""


class ASPPConv(nn.Sequential):
    """A dilated convolution."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(*conv_norm(in_channels, out_channels, 3, dilation))


class ASPPPooling(nn.Sequential):
    """What the whole picture holds, at each pixel."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *conv_norm(in_channels, out_channels))

    def forward(self, x: Any) -> Any:
        """Return maps of the same size."""
        return resized(super().forward(x), x.shape[-2:])


class ASPP(nn.Module):
    """Convolutions of several dilations side by side."""

    def __init__(self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Sequential(*conv_norm(in_channels, out_channels))])
        self.convs.extend(ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates)
        self.convs.append(ASPPPooling(in_channels, out_channels))
        self.project = nn.Sequential(*conv_norm(len(self.convs) * out_channels, out_channels), nn.Dropout(0.5))

    def forward(self, x: Any) -> Any:
        """Return maps of the same size."""
        return self.project(mt.cat([conv(x) for conv in self.convs], dim=1))


class DeepLabHead(nn.Sequential):
    """Dilated convolutions, one of 3 by 3 and one that gives the classes."""

    def __init__(self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)) -> None:
        super().__init__(ASPP(in_channels, atrous_rates), *conv_norm(256, 256, 3), nn.Conv2d(256, num_classes, 1))


def _deeplab(over: str, num_classes: int, aux: bool, **kwargs: Any) -> DeepLabV3:
    base, late, early = backbone(over, "out", "aux" if aux else None, **kwargs)
    return DeepLabV3(base, DeepLabHead(late, num_classes), FCNHead(early, num_classes) if aux else None)


deeplabv3_resnet50 = segmentation("deeplabv3_resnet50", DeepLabV3, "resnet50", _deeplab, about="DeepLabV3")
deeplabv3_resnet101 = segmentation("deeplabv3_resnet101", DeepLabV3, "resnet101", _deeplab, about="DeepLabV3")
deeplabv3_mobilenet_v3_large = segmentation(
    "deeplabv3_mobilenet_v3_large", DeepLabV3, "mobilenet_v3_large", _deeplab, about="DeepLabV3"
)
