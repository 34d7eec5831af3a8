"""Boxes, regions and the blocks that models share, under the names of torchvision.ops.

All are made of public operations, so every backend has them. Overlaps of rotated boxes are not here.
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
from mortice.vision.ops.deform_conv import DeformConv2d, deform_conv2d
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
from mortice.vision.ops.ps_roi_align import PSRoIAlign, ps_roi_align
from mortice.vision.ops.ps_roi_pool import PSRoIPool, ps_roi_pool
from mortice.vision.ops.roi_align import RoIAlign, roi_align
from mortice.vision.ops.roi_pool import RoIPool, roi_pool
from mortice.vision.ops.stochastic_depth import StochasticDepth, stochastic_depth

__all__ = [
    "Conv2dNormActivation", "Conv3dNormActivation", "DeformConv2d", "DropBlock2d", "DropBlock3d",
    "FeaturePyramidNetwork", "FrozenBatchNorm2d", "MLP", "MultiScaleRoIAlign", "PSRoIAlign", "PSRoIPool", "Permute",
    "RoIAlign", "RoIPool", "SqueezeExcitation", "StochasticDepth", "batched_nms", "box_area", "box_convert", "box_iou",
    "clip_boxes_to_image", "complete_box_iou", "complete_box_iou_loss", "deform_conv2d", "distance_box_iou",
    "distance_box_iou_loss", "drop_block2d", "drop_block3d", "generalized_box_iou", "generalized_box_iou_loss",
    "masks_to_boxes", "nms", "ps_roi_align", "ps_roi_pool", "remove_small_boxes", "roi_align", "roi_pool",
    "sigmoid_focal_loss", "stochastic_depth",
]  # fmt: skip
