"""Boxes, regions and the blocks that models share, under the names of torchvision.ops.

All are made of public operations, so every backend has them. What torchvision compiles for itself beyond `nms` and
`roi_align` (rotated boxes, deformable convolutions, position-sensitive and max pooling of regions) is not here.
"""

from mortice.vision.ops.boxes import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
    masks_to_boxes,
    nms,
    remove_small_boxes,
)
from mortice.vision.ops.drop_block import DropBlock2d, DropBlock3d, drop_block2d, drop_block3d
from mortice.vision.ops.feature_pyramid_network import FeaturePyramidNetwork
from mortice.vision.ops.focal_loss import sigmoid_focal_loss
from mortice.vision.ops.iou_losses import complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss
from mortice.vision.ops.misc import (
    MLP,
    Conv2dNormActivation,
    Conv3dNormActivation,
    FrozenBatchNorm2d,
    Permute,
    SqueezeExcitation,
)
from mortice.vision.ops.poolers import MultiScaleRoIAlign
from mortice.vision.ops.roi_align import RoIAlign, roi_align
from mortice.vision.ops.stochastic_depth import StochasticDepth, stochastic_depth

__all__ = [
    "Conv2dNormActivation", "Conv3dNormActivation", "DropBlock2d", "DropBlock3d", "FeaturePyramidNetwork",
    "FrozenBatchNorm2d", "MLP", "MultiScaleRoIAlign", "Permute", "RoIAlign", "SqueezeExcitation", "StochasticDepth",
    "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou",
    "complete_box_iou_loss", "distance_box_iou", "distance_box_iou_loss", "drop_block2d", "drop_block3d",
    "generalized_box_iou", "generalized_box_iou_loss", "masks_to_boxes", "nms", "remove_small_boxes", "roi_align",
    "sigmoid_focal_loss", "stochastic_depth",
]  # fmt: skip
