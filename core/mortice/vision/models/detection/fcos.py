"""FCOS: Z. Tian et al., "FCOS: fully convolutional one-stage object detection" (2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mortice
from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models import initial
from mortice.vision.models.detection import _utils as det_utils
from mortice.vision.models.detection.anchor_utils import AnchorGenerator
from mortice.vision.models.detection.backbone_utils import detector, frozen, resnet50_pyramid
from mortice.vision.models.detection.faster_rcnn import MEAN, STD, channels_of, check_kind
from mortice.vision.models.detection.one_stage import OneStage, prior
from mortice.vision.models.detection.transform import GeneralizedRCNNTransform
from mortice.vision.ops import generalized_box_iou_loss, sigmoid_focal_loss
from mortice.vision.ops.feature_pyramid_network import LastLevelP6P7

__all__ = ["FCOS", "fcos_resnet50_fpn"]


def _steps(channels: int, count: int, norm_layer: Callable[..., nn.Module] | None) -> nn.Sequential:
    steps: list[nn.Module] = []
    for _ in range(count):
        norm = nn.Conv2d(channels, channels, kernel_size=3, padding=1), _norm(norm_layer, channels)
        steps += [*norm, nn.ReLU()]
    return nn.Sequential(*steps)


def _norm(norm_layer: Callable[..., nn.Module] | None, channels: int) -> nn.Module:
    return nn.GroupNorm(32, channels) if norm_layer is None else norm_layer(channels)


class FCOSClassificationHead(nn.Module):
    """Logits of classes, of each anchor."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int = 4, prior_probability: float = 0.01,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes, self.num_anchors = num_classes, num_anchors
        self.conv = _steps(in_channels, num_convs, norm_layer)
        initial.draw(self.conv, conv=initial.small_normal)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, kernel_size=3, padding=1)
        prior(self.cls_logits, prior_probability)

    def forward(self, x: list[Any]) -> Any:
        """Return the logits (N, anchors, classes) of all maps."""
        found = [det_utils.by_anchor(self.cls_logits(self.conv(maps)), self.num_classes) for maps in x]
        return mortice.cat(found, dim=1)


class FCOSRegressionHead(nn.Module):
    """How far the edges of a box are from each anchor, and the logits of how near its centre that is."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_convs: int = 4, norm_layer: Callable[..., nn.Module] | None = None
    ) -> None:
        super().__init__()
        self.conv = _steps(in_channels, num_convs, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=3, padding=1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, kernel_size=3, padding=1)
        for layers in (self.bbox_reg, self.bbox_ctrness, self.conv):
            initial.draw(layers, conv=initial.small_normal)

    def forward(self, x: list[Any]) -> tuple[Any, Any]:
        """Return both, (N, anchors, 4) and (N, anchors, 1), of all maps."""
        maps = [self.conv(features) for features in x]
        edges = [det_utils.by_anchor(F.relu(self.bbox_reg(t)), 4) for t in maps]
        nearness = [det_utils.by_anchor(self.bbox_ctrness(t), 1) for t in maps]
        return mortice.cat(edges, dim=1), mortice.cat(nearness, dim=1)


class FCOSHead(nn.Module):
    """Both heads."""

    def __init__(self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int = 4) -> None:
        super().__init__()
        self.box_coder = det_utils.BoxLinearCoder(normalize_by_size=True)
        self.classification_head = FCOSClassificationHead(in_channels, num_anchors, num_classes, num_convs)
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, num_convs)

    def compute_loss(
        self, targets: Any, head_outputs: dict[str, Any], anchors: list[Any], matched_idxs: list[Any]
    ) -> dict[str, Any]:
        """Return the losses by name, of the anchors that have a box and, of classes, of all."""
        logits, codes = head_outputs["cls_logits"], head_outputs["bbox_regression"]
        labels, true = [], []
        for target, matches in zip(targets, matched_idxs):
            at, some = matches.clamp(min=0), len(target["labels"])
            labels.append((target["labels"][at] if some else at).masked_fill(matches < 0, -1))
            true.append(target["boxes"][at] if some else target["boxes"].new_zeros((len(at), 4)))
        classes, boxes, centres = mortice.stack(labels), mortice.stack(true), mortice.stack(anchors)
        there = classes >= 0
        count = max(1, int(there.sum().item()))
        wanted = mortice.zeros_like(logits)
        wanted[there, classes[there]] = 1.0
        found = self.box_coder.decode(codes[there], centres[there])
        edges = self.box_coder.encode(centres[there], boxes[there])
        sides = edges[:, 0::2], edges[:, 1::2]
        near, far = ([pair.amin(-1) for pair in sides], [pair.amax(-1) for pair in sides])
        nearness = ((near[0] / far[0]) * (near[1] / far[1])).sqrt()
        centred = head_outputs["bbox_ctrness"].squeeze(dim=2)[there]
        return {
            "classification": sigmoid_focal_loss(logits, wanted, reduction="sum") / count,
            "bbox_regression": generalized_box_iou_loss(found, boxes[there], reduction="sum") / count,
            "bbox_ctrness": F.binary_cross_entropy_with_logits(centred, nearness, reduction="sum") / count,
        }

    def forward(self, x: list[Any]) -> dict[str, Any]:
        """Return what both say."""
        logits, (codes, nearness) = self.classification_head(x), self.regression_head(x)
        return {"cls_logits": logits, "bbox_regression": codes, "bbox_ctrness": nearness}


class FCOS(OneStage):
    """A detector of one stage, in which each pixel of a map says how far it is to the edges of a box.

    Args:
        backbone: a network with `out_channels` that gives one map, or several by name.
        num_classes: the number of classes, background among them.
        anchor_generator: anchors as large as the pixels of their maps are wide, one a pixel.
        center_sampling_radius: how many pixels from the centre of a box a pixel is of its class.
        score_thresh, nms_thresh: how probable a class must be, and how much boxes may overlap better ones of it.
        topk_candidates, detections_per_img: how many boxes of each map are taken, and how many are left at most.
    """

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int,
        min_size: Any = 800,
        max_size: int = 1333,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        anchor_generator: AnchorGenerator | None = None,
        head: nn.Module | None = None,
        center_sampling_radius: float = 1.5,
        score_thresh: float = 0.2,
        nms_thresh: float = 0.6,
        detections_per_img: int = 100,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        channels = channels_of(backbone)
        self.backbone = backbone
        check_kind("anchor_generator", anchor_generator, AnchorGenerator)
        if anchor_generator is None:
            anchor_generator = AnchorGenerator(((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5)
        self.anchor_generator = anchor_generator
        each = anchor_generator.num_anchors_per_location()[0]
        if each != 1:
            raise ValueError(f"anchor_generator.num_anchors_per_location()[0] should be 1 instead of {each}")
        self.head = FCOSHead(channels, each, num_classes) if head is None else head
        self.box_coder = det_utils.BoxLinearCoder(normalize_by_size=True)
        mean, std = MEAN if image_mean is None else image_mean, STD if image_std is None else image_std
        self.transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        self.center_sampling_radius = center_sampling_radius
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def _losses(self, targets: Any, outputs: Any, anchors: list[Any], pixels: list[int]) -> dict[str, Any]:
        return self.compute_loss(targets, outputs, anchors, pixels)

    def compute_loss(
        self, targets: Any, head_outputs: dict[str, Any], anchors: list[Any], num_anchors_per_level: list[int]
    ) -> dict[str, Any]:
        """Return the losses by name."""
        matches = []
        for boxes, target in zip(anchors, targets):
            true = target["boxes"]
            if not true.numel():
                matches.append(mortice.full((len(boxes),), -1, dtype=mortice.int64, device=boxes.device))
                continue
            points, sizes = (boxes[:, None, :2] + boxes[:, None, 2:]) / 2, boxes[:, 2] - boxes[:, 0]
            apart = (points - (true[:, :2] + true[:, 2:]) / 2).abs().amax(2)
            edges = mortice.cat((points - true[:, :2], true[:, 2:] - points), dim=2)
            # An anchor is of a box whose centre is near, which it lies in, and whose size suits the map.
            fits = (apart < self.center_sampling_radius * sizes[:, None]) & (edges.amin(2) > 0)
            low, high = sizes * 4, sizes * 8
            low[: num_anchors_per_level[0]] = 0
            high[-num_anchors_per_level[-1] :] = float("inf")
            reach = edges.amax(2)
            fits = fits & (reach > low[:, None]) & (reach < high[:, None])
            # Of several it takes the smallest.
            areas = (true[:, 2] - true[:, 0]) * (true[:, 3] - true[:, 1])
            best, at = (fits.to(mortice.float32) * (1e8 - areas)).max(dim=1)
            matches.append(at.masked_fill(best < 1e-5, -1))
        return self.head.compute_loss(targets, head_outputs, anchors, matches)

    def postprocess_detections(self, head_outputs: dict[str, list[Any]], anchors: Any, image_shapes: Any) -> list[Any]:
        """Return what is found in each image, of outputs by maps."""
        levels = list(zip(head_outputs["cls_logits"], head_outputs["bbox_ctrness"]))
        return [
            self._best_of_levels(
                [(logits[i].sigmoid() * nearness[i].sigmoid()).sqrt() for logits, nearness in levels],
                [codes[i] for codes in head_outputs["bbox_regression"]], anchors[i], size, self.box_coder.decode,
            )
            for i, size in enumerate(image_shapes)
        ]  # fmt: skip


def _make(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> FCOS:
    extra = LastLevelP6P7(256, 256)
    backbone = resnet50_pyramid(given, count, frozen(trained), returned_layers=[2, 3, 4], extra_blocks=extra)
    return FCOS(backbone, num_classes, **kwargs)


fcos_resnet50_fpn = detector("fcos_resnet50_fpn", FCOS, _make, about="FCOS over a pyramid of resnet50")
