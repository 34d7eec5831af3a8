"""Models that give films (N, channels, frames, height, width) a class."""

from mortice.vision.models.registry import weights_named as weights_named
from mortice.vision.models.video.resnet import *
from mortice.vision.models.video.s3d import *


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)
