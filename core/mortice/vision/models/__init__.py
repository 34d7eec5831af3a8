"""Models of images under torchvision's names, with its state_dict keys; LeNet besides."""

import sys

from mortice.vision.models.alexnet import *
from mortice.vision.models.convnext import *
from mortice.vision.models.densenet import *
from mortice.vision.models.efficientnet import *
from mortice.vision.models.googlenet import *
from mortice.vision.models.inception import *
from mortice.vision.models.lenet import *
from mortice.vision.models.maxvit import *
from mortice.vision.models.mnasnet import *
from mortice.vision.models.mobilenetv2 import *
from mortice.vision.models.mobilenetv3 import *
from mortice.vision.models.registry import *
from mortice.vision.models.registry import weights_named
from mortice.vision.models.regnet import *
from mortice.vision.models.resnet import *
from mortice.vision.models.shufflenetv2 import *
from mortice.vision.models.squeezenet import *
from mortice.vision.models.swin_transformer import *
from mortice.vision.models.vgg import *
from mortice.vision.models.vision_transformer import *

from . import detection, segmentation, video


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)


def __dir__() -> list[str]:
    from mortice.vision.models.weights import PUBLISHED, enumeration

    mine = [m for m in list_models(sys.modules[__name__]) if m in PUBLISHED]
    return sorted({*globals(), "get_model_weights", "get_weight", *(enumeration(m).__name__ for m in mine)})
