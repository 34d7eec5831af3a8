"""Fully convolutional networks: J. Long, E. Shelhamer and T. Darrell, "Fully convolutional networks for semantic segmentation" (2014)."""

from __future__ import annotations

from typing import Any

from mortice import nn
from mortice.vision.models.segmentation._utils import _SimpleSegmentationModel, backbone, conv_norm, segmentation

__all__ = ["FCN", "fcn_resnet101", "fcn_resnet50"]


class FCN(_SimpleSegmentationModel):
    """A backbone and a convolutional head on its last maps, with an auxiliary head on earlier ones."""


class FCNHead(nn.Sequential):
    """A convolution of 3 by 3 and one that gives the classes."""

    def __init__(self, in_channels: int, channels: int) -> None:
        narrow = in_channels // 4
        super().__init__(*conv_norm(in_channels, narrow, 3), nn.Dropout(0.1), nn.Conv2d(narrow, channels, 1))


def _fcn(over: str, num_classes: int, aux: bool, **kwargs: Any) -> FCN:
    base, late, early = backbone(over, "out", "aux" if aux else None, **kwargs)
    return FCN(base, FCNHead(late, num_classes), FCNHead(early, num_classes) if aux else None)


fcn_resnet50 = segmentation("fcn_resnet50", FCN, "resnet50", _fcn, about="FCN")
fcn_resnet101 = segmentation("fcn_resnet101", FCN, "resnet101", _fcn, about="FCN")
