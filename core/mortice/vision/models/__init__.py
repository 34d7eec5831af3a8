"""Models of images under torchvision's names, with its state_dict keys; LeNet besides."""

import sys

from mortice.vision.models import detection, segmentation, video
from mortice.vision.models.alexnet import AlexNet, alexnet
from mortice.vision.models.convnext import ConvNeXt, convnext_base, convnext_large, convnext_small, convnext_tiny
from mortice.vision.models.densenet import DenseNet, densenet121, densenet161, densenet169, densenet201
from mortice.vision.models.efficientnet import (
    EfficientNet,
    efficientnet_b0,
    efficientnet_b1,
    efficientnet_b2,
    efficientnet_b3,
    efficientnet_b4,
    efficientnet_b5,
    efficientnet_b6,
    efficientnet_b7,
    efficientnet_v2_l,
    efficientnet_v2_m,
    efficientnet_v2_s,
)
from mortice.vision.models.googlenet import GoogLeNet, GoogLeNetOutputs, googlenet
from mortice.vision.models.inception import Inception3, InceptionOutputs, inception_v3
from mortice.vision.models.lenet import LeNet, lenet
from mortice.vision.models.maxvit import MaxVit, maxvit_t
from mortice.vision.models.mnasnet import MNASNet, mnasnet0_5, mnasnet0_75, mnasnet1_0, mnasnet1_3
from mortice.vision.models.mobilenetv2 import MobileNetV2, mobilenet_v2
from mortice.vision.models.mobilenetv3 import MobileNetV3, mobilenet_v3_large, mobilenet_v3_small
from mortice.vision.models.registry import get_model, get_model_builder, list_models, weights_named
from mortice.vision.models.regnet import (
    RegNet,
    regnet_x_1_6gf,
    regnet_x_3_2gf,
    regnet_x_8gf,
    regnet_x_16gf,
    regnet_x_32gf,
    regnet_x_400mf,
    regnet_x_800mf,
    regnet_y_1_6gf,
    regnet_y_3_2gf,
    regnet_y_8gf,
    regnet_y_16gf,
    regnet_y_32gf,
    regnet_y_128gf,
    regnet_y_400mf,
    regnet_y_800mf,
)
from mortice.vision.models.resnet import (
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    resnext101_32x8d,
    resnext101_64x4d,
    wide_resnet50_2,
    wide_resnet101_2,
)
from mortice.vision.models.shufflenetv2 import (
    ShuffleNetV2,
    shufflenet_v2_x0_5,
    shufflenet_v2_x1_0,
    shufflenet_v2_x1_5,
    shufflenet_v2_x2_0,
)
from mortice.vision.models.squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1
from mortice.vision.models.swin_transformer import (
    SwinTransformer,
    swin_b,
    swin_s,
    swin_t,
    swin_v2_b,
    swin_v2_s,
    swin_v2_t,
)
from mortice.vision.models.vgg import VGG, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn
from mortice.vision.models.vision_transformer import VisionTransformer, vit_b_16, vit_b_32, vit_h_14, vit_l_16, vit_l_32


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)


def __dir__() -> list[str]:
    from mortice.vision.models.weights import PUBLISHED, enumeration

    mine = [m for m in list_models(sys.modules[__name__]) if m in PUBLISHED]
    return sorted({*globals(), "get_model_weights", "get_weight", *(enumeration(m).__name__ for m in mine)})
