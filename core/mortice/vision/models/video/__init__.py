"""Models that give films (N, channels, frames, height, width) a class."""

from mortice.vision.models.registry import weights_named
from mortice.vision.models.video.resnet import VideoResNet, mc3_18, r2plus1d_18, r3d_18
from mortice.vision.models.video.s3d import S3D, s3d


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)
