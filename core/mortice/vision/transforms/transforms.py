"""The transforms by the longer name of torchvision's module, `transforms.transforms`."""

from mortice.vision.transforms import *  # noqa: F403
