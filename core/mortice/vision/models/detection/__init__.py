"""Models that find objects: boxes, with masks or keypoints. See `generalized_rcnn.Detector` for what they take and give."""

from mortice.vision.models.detection.faster_rcnn import (
    FasterRCNN,
    fasterrcnn_mobilenet_v3_large_320_fpn,
    fasterrcnn_mobilenet_v3_large_fpn,
    fasterrcnn_resnet50_fpn,
    fasterrcnn_resnet50_fpn_v2,
)
from mortice.vision.models.detection.fcos import FCOS, fcos_resnet50_fpn
from mortice.vision.models.detection.keypoint_rcnn import KeypointRCNN, keypointrcnn_resnet50_fpn
from mortice.vision.models.detection.mask_rcnn import MaskRCNN, maskrcnn_resnet50_fpn, maskrcnn_resnet50_fpn_v2
from mortice.vision.models.detection.retinanet import RetinaNet, retinanet_resnet50_fpn, retinanet_resnet50_fpn_v2
from mortice.vision.models.detection.ssd import ssd300_vgg16
from mortice.vision.models.detection.ssdlite import ssdlite320_mobilenet_v3_large
from mortice.vision.models.registry import weights_named


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)
