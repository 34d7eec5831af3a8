"""RetinaNet: T.-Y. Lin et al., "Focal loss for dense object detection" (2017)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mortice
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.detection import _utils as det_utils
from mortice.vision.models.detection.anchor_utils import AnchorGenerator
from mortice.vision.models.detection.backbone_utils import detector, frozen, resnet50_pyramid
from mortice.vision.models.detection.faster_rcnn import MEAN, STD, channels_of, check_kind
from mortice.vision.models.detection.one_stage import OneStage, prior
from mortice.vision.models.detection.transform import GeneralizedRCNNTransform
from mortice.vision.ops import Conv2dNormActivation, sigmoid_focal_loss
from mortice.vision.ops.feature_pyramid_network import LastLevelP6P7

__all__ = ["RetinaNet", "retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2"]


def _default_anchorgen() -> AnchorGenerator:
    sizes = tuple((x, int(x * 2 ** (1.0 / 3)), int(x * 2 ** (2.0 / 3))) for x in (32, 64, 128, 256, 512))
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))


class _Head(nn.Module):
    """Four convolutions before what is predicted."""

    _version = 2

    def __init__(self, in_channels: int, norm_layer: Callable[..., nn.Module] | None) -> None:
        super().__init__()
        steps = [Conv2dNormActivation(in_channels, in_channels, norm_layer=norm_layer) for _ in range(4)]
        self.conv = nn.Sequential(*steps)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version", None) in (None, 1):
            det_utils.renamed(state_dict, prefix, {f"conv.{2 * i}": f"conv.{i}.0" for i in range(4)})
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class RetinaNetClassificationHead(_Head):
    """Logits of classes, of each anchor."""

    BETWEEN_THRESHOLDS = det_utils.Matcher.BETWEEN_THRESHOLDS

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, prior_probability: float = 0.01,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, norm_layer)
        initial.draw(self.conv, conv=initial.small_normal)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, kernel_size=3, padding=1)
        prior(self.cls_logits, prior_probability)
        self.num_classes, self.num_anchors = num_classes, num_anchors

    def compute_loss(self, targets: Any, head_outputs: dict[str, Any], matched_idxs: list[Any]) -> Any:
        """Return the focal loss of the anchors that count."""
        losses = []
        for target, logits, matches in zip(targets, head_outputs["cls_logits"], matched_idxs):
            at = mortice.where(matches >= 0)[0]
            wanted = mortice.zeros_like(logits)
            wanted[at, target["labels"][matches[at]]] = 1.0
            counts = matches != self.BETWEEN_THRESHOLDS
            losses.append(sigmoid_focal_loss(logits[counts], wanted[counts], reduction="sum") / max(1, len(at)))
        return sum(losses[1:], losses[0]) / len(targets)

    def forward(self, x: list[Any]) -> Any:
        """Return the logits (N, anchors, classes) of all maps."""
        found = [det_utils.by_anchor(self.cls_logits(self.conv(maps)), self.num_classes) for maps in x]
        return mortice.cat(found, dim=1)


class RetinaNetRegressionHead(_Head):
    """Codes of a box, of each anchor."""

    def __init__(
        self, in_channels: int, num_anchors: int, norm_layer: Callable[..., nn.Module] | None = None
    ) -> None:
        super().__init__(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=3, padding=1)
        initial.draw(self.bbox_reg, conv=initial.small_normal)
        initial.draw(self.conv, conv=initial.small_normal)
        self.box_coder = det_utils.BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self._loss_type = "l1"

    def compute_loss(
        self, targets: Any, head_outputs: dict[str, Any], anchors: list[Any], matched_idxs: list[Any]
    ) -> Any:
        """Return the loss of the boxes of the anchors that fit one."""
        losses = []
        for target, codes, boxes, matches in zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs):
            at = mortice.where(matches >= 0)[0]
            true = target["boxes"][matches[at]]
            loss = det_utils._box_loss(self._loss_type, self.box_coder, boxes[at], true, codes[at])
            losses.append(loss / max(1, len(at)))
        return sum(losses[1:], losses[0]) / max(1, len(targets))

    def forward(self, x: list[Any]) -> Any:
        """Return the codes (N, anchors, 4) of all maps."""
        return mortice.cat([det_utils.by_anchor(self.bbox_reg(self.conv(maps)), 4) for maps in x], dim=1)


class RetinaNetHead(nn.Module):
    """Both heads."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, norm_layer: Callable[..., nn.Module] | None = None
    ) -> None:
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer=norm_layer
        )
        self.regression_head = RetinaNetRegressionHead(in_channels, num_anchors, norm_layer=norm_layer)

    def compute_loss(self, targets: Any, head_outputs: Any, anchors: list[Any], matched_idxs: list[Any]) -> Any:
        """Return the losses by name."""
        return {
            "classification": self.classification_head.compute_loss(targets, head_outputs, matched_idxs),
            "bbox_regression": self.regression_head.compute_loss(targets, head_outputs, anchors, matched_idxs),
        }

    def forward(self, x: list[Any]) -> dict[str, Any]:
        """Return what both say."""
        return {"cls_logits": self.classification_head(x), "bbox_regression": self.regression_head(x)}


class RetinaNet(OneStage):
    """A detector of one stage, which the focal loss lets learn from all anchors.

    Args:
        backbone: a network with `out_channels` that gives one map, or several by name.
        num_classes: the number of classes, background among them.
        fg_iou_thresh, bg_iou_thresh: from which overlap with a true box on an anchor is of its class, and below which it
            is background.
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
        proposal_matcher: Any = None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        channels = channels_of(backbone)
        self.backbone = backbone
        check_kind("anchor_generator", anchor_generator, AnchorGenerator)
        self.anchor_generator = _default_anchorgen() if anchor_generator is None else anchor_generator
        if head is None:
            head = RetinaNetHead(channels, self.anchor_generator.num_anchors_per_location()[0], num_classes)
        self.head = head
        if proposal_matcher is None:
            proposal_matcher = det_utils.Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True)
        self.proposal_matcher = proposal_matcher
        self.box_coder = det_utils.BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        mean, std = MEAN if image_mean is None else image_mean, STD if image_std is None else image_std
        self.transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def compute_loss(self, targets: Any, head_outputs: dict[str, Any], anchors: list[Any]) -> dict[str, Any]:
        """Return the losses by name."""
        return self.head.compute_loss(targets, head_outputs, anchors, self._matches(targets, anchors))

    def postprocess_detections(self, head_outputs: dict[str, list[Any]], anchors: Any, image_shapes: Any) -> list[Any]:
        """Return what is found in each image, of outputs by maps."""
        return [
            self._best_of_levels(
                [logits[i].sigmoid() for logits in head_outputs["cls_logits"]],
                [codes[i] for codes in head_outputs["bbox_regression"]], anchors[i], size, self.box_coder.decode_single,
            )
            for i, size in enumerate(image_shapes)
        ]  # fmt: skip


_later = {"returned_layers": [2, 3, 4]}  # the first maps have too many anchors


def _make(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> RetinaNet:
    extra = LastLevelP6P7(256, 256)
    return RetinaNet(
        resnet50_pyramid(given, count, frozen(trained), extra_blocks=extra, **_later), num_classes, **kwargs
    )


def _make_v2(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> RetinaNet:
    backbone, anchors = resnet50_pyramid(given, count, extra_blocks=LastLevelP6P7(2048, 256), **_later), _default_anchorgen()
    head = RetinaNetHead(
        backbone.out_channels, anchors.num_anchors_per_location()[0], num_classes, norm_layer=partial(nn.GroupNorm, 32)
    )
    head.regression_head._loss_type = "giou"
    return RetinaNet(backbone, num_classes, anchor_generator=anchors, head=head, **kwargs)


retinanet_resnet50_fpn = detector(
    "retinanet_resnet50_fpn", RetinaNet, _make, about="RetinaNet over a pyramid of resnet50"
)
retinanet_resnet50_fpn_v2 = detector(
    "retinanet_resnet50_fpn_v2", RetinaNet, _make_v2, about="the second RetinaNet over a pyramid of resnet50",
    weights_backbone=None,
)  # fmt: skip
