"""Models that give each pixel a class: `{"out": logits}` of the picture's size."""

from mortice.vision.models.registry import weights_named
from mortice.vision.models.segmentation.deeplabv3 import (
    DeepLabV3,
    deeplabv3_mobilenet_v3_large,
    deeplabv3_resnet50,
    deeplabv3_resnet101,
)
from mortice.vision.models.segmentation.fcn import FCN, fcn_resnet50, fcn_resnet101
from mortice.vision.models.segmentation.lraspp import LRASPP, lraspp_mobilenet_v3_large


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)
