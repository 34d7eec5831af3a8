"""Models that give each pixel a class: `{"out": logits}` of the picture's size."""

from mortice.vision.models.registry import weights_named as weights_named
from mortice.vision.models.segmentation.deeplabv3 import *
from mortice.vision.models.segmentation.fcn import *
from mortice.vision.models.segmentation.lraspp import *


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)
