"""The MobileNets of the second and third version at their older address."""

from mortice.vision.models.mobilenetv2 import MobileNetV2, mobilenet_v2
from mortice.vision.models.mobilenetv3 import MobileNetV3, mobilenet_v3_large, mobilenet_v3_small

__all__ = ["MobileNetV2", "MobileNetV3", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small"]
