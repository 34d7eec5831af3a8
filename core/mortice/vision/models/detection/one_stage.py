"""What the detectors of one stage share: each anchor says at once what is there and where."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.vision.models.detection import _utils as det_utils
from mortice.vision.models.detection.generalized_rcnn import Detector
from mortice.vision.ops import boxes as box_ops


class OneStage(Detector):
    """Maps, what `head` says of each of their anchors, and the best of that; or its losses."""

    def forward(self, images: Any, targets: Any = None) -> Any:
        """Return losses by name in training, and otherwise what is found in each image."""
        images, targets, sizes, features = self.prepared(images, targets)
        maps = list(features.values())
        outputs = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        pixels = [x.shape[-2] * x.shape[-1] for x in maps]
        if self.training:
            return self.eager_outputs(self._losses(targets, outputs, anchors, pixels), [])
        found = self._detections(outputs, anchors, images.image_sizes, pixels)
        return self.eager_outputs({}, self.transform.postprocess(found, images.image_sizes, sizes))

    def _losses(self, targets: Any, outputs: Any, anchors: list[Any], pixels: list[int]) -> dict[str, Any]:
        return self.compute_loss(targets, outputs, anchors)

    def _detections(self, outputs: Any, anchors: list[Any], sizes: Any, pixels: list[int]) -> list[Any]:
        each = outputs["cls_logits"].shape[1] // sum(pixels)
        levels = [n * each for n in pixels]
        split = {name: list(x.split(levels, dim=1)) for name, x in outputs.items()}
        return self.postprocess_detections(split, [list(a.split(levels)) for a in anchors], sizes)

    def _matches(self, targets: Any, anchors: list[Any]) -> list[Any]:
        """Return for each image which true box each anchor fits: -1 for none, -2 for what does not count."""
        return [
            self.proposal_matcher(box_ops.box_iou(target["boxes"], boxes)) if target["boxes"].numel()
            else mortice.full((len(boxes),), -1, dtype=mortice.int64, device=boxes.device)
            for target, boxes in zip(targets, anchors)
        ]  # fmt: skip

    def _kept(self, boxes: Sequence[Any], scores: Sequence[Any], labels: Sequence[Any]) -> dict[str, Any]:
        """Return the best of the boxes of an image, given in several parts."""
        joined = [mortice.cat(list(parts)) for parts in (boxes, scores, labels)]
        keep = box_ops.batched_nms(*joined, self.nms_thresh)[: self.detections_per_img]
        return {name: values[keep] for name, values in zip(("boxes", "scores", "labels"), joined)}

    def _best_of_levels(
        self, scores: Sequence[Any], codes: Sequence[Any], anchors: Sequence[Any], size: Any, decode: Callable[..., Any]
    ) -> dict[str, Any]:
        """Return the best of an image, of (anchors, classes) and (anchors, 4) a map."""
        found: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        for of_level, shifts, boxes in zip(scores, codes, anchors):
            classes, flat = of_level.shape[-1], of_level.flatten()
            at = mortice.where(flat > self.score_thresh)[0]
            best, order = flat[at].topk(det_utils._topk_min(at, self.topk_candidates, 0))
            at = at[order]
            anchor = at // classes
            boxes = box_ops.clip_boxes_to_image(decode(shifts[anchor], boxes[anchor]), size)
            for kept, values in zip(found, (boxes, best, at % classes)):
                kept.append(values)
        return self._kept(*found)


def prior(layer: nn.Conv2d, probability: float) -> None:
    """Let the logits of a convolution begin near what is probable of anchors, of which most have nothing."""
    nn.init.normal_(layer.weight, std=0.01)
    nn.init.constant_(layer.bias, -math.log((1 - probability) / probability))
