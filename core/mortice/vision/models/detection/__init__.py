"""Models that find objects: boxes, with masks or keypoints. See `generalized_rcnn.Detector` for what they take and give."""

from mortice.vision.models.detection.faster_rcnn import *
from mortice.vision.models.detection.fcos import *
from mortice.vision.models.detection.keypoint_rcnn import *
from mortice.vision.models.detection.mask_rcnn import *
from mortice.vision.models.detection.retinanet import *
from mortice.vision.models.detection.ssd import *
from mortice.vision.models.detection.ssdlite import *
from mortice.vision.models.registry import weights_named as weights_named


def __getattr__(name: str) -> object:
    return weights_named(__name__, name)
