"""The first stage: boxes in which there seems to be something."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models import initial
from mortice.vision.models.detection import _utils as det_utils
from mortice.vision.models.detection.anchor_utils import AnchorGenerator
from mortice.vision.models.detection.image_list import ImageList
from mortice.vision.ops import Conv2dNormActivation
from mortice.vision.ops import boxes as box_ops

__all__ = ["AnchorGenerator", "RPNHead", "RegionProposalNetwork"]


class RPNHead(nn.Module):
    """Convolutions, and one for whether something is there and one for where: of each anchor of each map."""

    _version = 2

    def __init__(self, in_channels: int, num_anchors: int, conv_depth: int = 1) -> None:
        super().__init__()
        steps = [Conv2dNormActivation(in_channels, in_channels, norm_layer=None) for _ in range(conv_depth)]
        self.conv = nn.Sequential(*steps)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, kernel_size=1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=1)
        initial.draw(self, conv=initial.small_normal)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version", None) in (None, 1):
            det_utils.renamed(state_dict, prefix, {"conv": "conv.0.0"})
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def forward(self, x: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return logits and codes of boxes, as maps."""
        maps = [self.conv(features) for features in x]
        return [self.cls_logits(t) for t in maps], [self.bbox_pred(t) for t in maps]


def concat_box_prediction_layers(box_cls: list[Any], box_regression: list[Any]) -> tuple[Any, Any]:
    """Return the predictions of all maps in the order of their anchors: (all, classes) and (all, 4)."""
    columns = [4 * logits.shape[1] // codes.shape[1] for logits, codes in zip(box_cls, box_regression)]
    logits = mortice.cat([det_utils.by_anchor(x, n) for x, n in zip(box_cls, columns)], dim=1)
    codes = mortice.cat([det_utils.by_anchor(x, 4) for x in box_regression], dim=1)
    return logits.flatten(0, -2), codes.reshape(-1, 4)


class RegionProposalNetwork(nn.Module):
    """Proposes boxes from anchors.

    Args:
        fg_iou_thresh, bg_iou_thresh: from which overlap with a true box on an anchor should say that something is there,
            and below which that nothing is.
        batch_size_per_image, positive_fraction: how many anchors count in a loss, and how many of them are of the first
            kind at most.
        pre_nms_top_n, post_nms_top_n: how many boxes of each map are taken, and how many are left of all of them: by
            "training" and "testing".
        nms_thresh: how much boxes may overlap better ones.
        score_thresh: how probable it must be that something is there.
    """

    def __init__(
        self,
        anchor_generator: AnchorGenerator,
        head: nn.Module,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        pre_nms_top_n: dict[str, int],
        post_nms_top_n: dict[str, int],
        nms_thresh: float,
        score_thresh: float = 0.0,
    ) -> None:
        super().__init__()
        self.anchor_generator, self.head = anchor_generator, head
        self.box_coder = det_utils.BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = det_utils.Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True)
        self.fg_bg_sampler = det_utils.BalancedPositiveNegativeSampler(batch_size_per_image, positive_fraction)
        self._pre_nms_top_n, self._post_nms_top_n = pre_nms_top_n, post_nms_top_n
        self.nms_thresh, self.score_thresh, self.min_size = nms_thresh, score_thresh, 1e-3

    def pre_nms_top_n(self) -> int:
        """Return how many boxes of each map are taken."""
        return self._pre_nms_top_n["training" if self.training else "testing"]

    def post_nms_top_n(self) -> int:
        """Return how many boxes are left."""
        return self._post_nms_top_n["training" if self.training else "testing"]

    def assign_targets_to_anchors(self, anchors: list[Any], targets: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return for each image labels of its anchors, 1, 0 or -1 for neither, and the true box that each fits best."""
        labels, boxes = [], []
        for anchors_in_image, target in zip(anchors, targets):
            true = target["boxes"]
            if true.numel():
                matches = self.proposal_matcher(self.box_similarity(true, anchors_in_image))
                boxes.append(true[matches.clamp(min=0)])
                between = matches == self.proposal_matcher.BETWEEN_THRESHOLDS
                labels.append((matches >= 0).float().masked_fill(between, -1.0))
            else:
                boxes.append(mortice.zeros_like(anchors_in_image, dtype=mortice.float32))
                labels.append(mortice.zeros(len(anchors_in_image), device=anchors_in_image.device))
        return labels, boxes

    def _get_top_n_idx(self, objectness: Any, num_anchors_per_level: list[int]) -> Any:
        found, start = [], 0
        for level in objectness.split(num_anchors_per_level, 1):
            found.append(level.topk(det_utils._topk_min(level, self.pre_nms_top_n(), 1), dim=1).indices + start)
            start += level.shape[1]
        return mortice.cat(found, dim=1)

    def filter_proposals(
        self, proposals: Any, objectness: Any, image_shapes: Any, num_anchors_per_level: list[int]
    ) -> tuple[list[Any], list[Any]]:
        """Return for each image the boxes that are left, with their scores; none of them has a gradient."""
        n = len(proposals)
        objectness = objectness.detach().reshape(n, -1)
        levels = mortice.repeat_interleave(
            mortice.arange(len(num_anchors_per_level)), mortice.tensor(num_anchors_per_level)
        ).to(objectness.device)
        best = self._get_top_n_idx(objectness, num_anchors_per_level)
        found: tuple[list[Any], list[Any]] = ([], [])
        for boxes, logits, at, size in zip(proposals, objectness, best, image_shapes):
            boxes = box_ops.clip_boxes_to_image(boxes[at], size)
            scores, level = logits[at].sigmoid(), levels[at]
            keep = box_ops.remove_small_boxes(boxes, self.min_size)
            keep = keep[scores[keep] >= self.score_thresh]
            boxes, scores, level = boxes[keep], scores[keep], level[keep]
            keep = box_ops.batched_nms(boxes, scores, level, self.nms_thresh)[: self.post_nms_top_n()]
            found[0].append(boxes[keep])
            found[1].append(scores[keep])
        return found

    def compute_loss(
        self, objectness: Any, pred_bbox_deltas: Any, labels: list[Any], regression_targets: Any
    ) -> tuple[Any, Any]:
        """Return the losses of whether something is there, and of where."""
        positive, negative = (mortice.where(mortice.cat(drawn))[0] for drawn in self.fg_bg_sampler(labels))
        drawn = mortice.cat((positive, negative))
        codes = mortice.cat(list(regression_targets))[positive]
        box_loss = F.smooth_l1_loss(pred_bbox_deltas[positive], codes, beta=1 / 9, reduction="sum") / drawn.numel()
        logits = objectness.flatten()[drawn]
        return F.binary_cross_entropy_with_logits(logits, mortice.cat(labels)[drawn]), box_loss

    def forward(self, images: ImageList, features: dict[str, Any], targets: Any = None) -> tuple[list[Any], Any]:
        """Return the boxes that are proposed for each image, and in training the losses by name."""
        maps = list(features.values())
        logits, deltas = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        per_level = [level[0].numel() for level in logits]
        objectness, deltas = concat_box_prediction_layers(logits, deltas)
        proposals = self.box_coder.decode(deltas.detach(), anchors).view(len(anchors), -1, 4)
        boxes, _ = self.filter_proposals(proposals, objectness, images.image_sizes, per_level)
        if not self.training:
            return boxes, {}
        if targets is None:
            raise ValueError("targets should not be None")
        labels, true = self.assign_targets_to_anchors(anchors, targets)
        losses = self.compute_loss(objectness, deltas, labels, self.box_coder.encode(true, anchors))
        return boxes, {"loss_objectness": losses[0], "loss_rpn_box_reg": losses[1]}
