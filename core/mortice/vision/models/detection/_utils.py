"""What the detectors share: samples of boxes, boxes as shifts of others, and which of them belong together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models.weights import overwrite_eps as overwrite_eps
from mortice.vision.ops import (
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
)


class BalancedPositiveNegativeSampler:
    """Draws places with positive labels, up to a share of how many are wanted an image, and fills up with zeros.

    Negative labels are never drawn.
    """

    def __init__(self, batch_size_per_image: int, positive_fraction: float) -> None:
        self.batch_size_per_image, self.positive_fraction = batch_size_per_image, positive_fraction

    def __call__(self, matched_idxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return for each image where positive labels were drawn, and where zeros were: tensors of 0 and 1."""
        masks: tuple[list[Any], list[Any]] = ([], [])
        for labels in matched_idxs:
            positive, negative = mortice.where(labels >= 1)[0], mortice.where(labels == 0)[0]
            few = min(len(positive), int(self.batch_size_per_image * self.positive_fraction))
            for found, places, count in zip(masks, (positive, negative), (few, self.batch_size_per_image - few)):
                drawn = places[mortice.randperm(len(places), device=places.device)[:count]]
                mask = mortice.zeros_like(labels, dtype=mortice.uint8)
                mask[drawn] = 1
                found.append(mask)
        return masks


def encode_boxes(reference_boxes: Any, proposals: Any, weights: Any) -> Any:
    """Return how proposals must be moved and scaled to become the reference boxes: (N, 4), each number weighted."""
    shifts, growths = [], []
    for axis in (0, 1):
        size, wanted = (b[:, axis + 2] - b[:, axis] for b in (proposals, reference_boxes))
        centre, aim = proposals[:, axis] + 0.5 * size, reference_boxes[:, axis] + 0.5 * wanted
        shifts.append(weights[axis] * (aim - centre) / size)
        growths.append(weights[axis + 2] * mortice.log(wanted / size))
    return mortice.stack((*shifts, *growths), dim=1)


class BoxCoder:
    """Boxes as shifts by parts of the size of others, and logarithms of their growth.

    Args:
        weights: what the four numbers are multiplied by.
        bbox_xform_clip: the largest logarithm that is decoded.
    """

    def __init__(
        self, weights: tuple[float, float, float, float], bbox_xform_clip: float = math.log(1000.0 / 16)
    ) -> None:
        self.weights, self.bbox_xform_clip = weights, bbox_xform_clip

    def encode(self, reference_boxes: Sequence[Any], proposals: Sequence[Any]) -> Any:
        """Encode the boxes of several images; the results are apart as they are."""
        codes = self.encode_single(mortice.cat(list(reference_boxes)), mortice.cat(list(proposals)))
        return codes.split([len(boxes) for boxes in reference_boxes])

    def encode_single(self, reference_boxes: Any, proposals: Any) -> Any:
        """Encode boxes as shifts of proposals, pair by pair."""
        weights = mortice.as_tensor(self.weights, dtype=reference_boxes.dtype, device=reference_boxes.device)
        return encode_boxes(reference_boxes, proposals, weights)

    def decode(self, rel_codes: Any, boxes: Sequence[Any]) -> Any:
        """Decode what belongs to the boxes of several images: (boxes, codes a box, 4)."""
        if not isinstance(boxes, (list, tuple)):
            raise AssertionError("This function expects boxes of type list or tuple.")
        if not isinstance(rel_codes, mortice.Tensor):
            raise AssertionError("This function expects rel_codes of type mortice.Tensor.")
        joined = mortice.cat(list(boxes))
        if len(joined):
            rel_codes = rel_codes.reshape(len(joined), -1)
        return self.decode_single(rel_codes, joined).reshape(len(joined), rel_codes.shape[1] // 4, 4)

    def decode_single(self, rel_codes: Any, boxes: Any) -> Any:
        """Decode (N, 4 * codes a box) as shifts of N boxes."""
        boxes = boxes.to(rel_codes.dtype)
        low, high = [], []
        for axis in (0, 1):
            size = boxes[:, axis + 2, None] - boxes[:, axis, None]
            shift = rel_codes[:, axis::4] / self.weights[axis]
            growth = (rel_codes[:, axis + 2 :: 4] / self.weights[axis + 2]).clamp(max=self.bbox_xform_clip)
            centre = shift * size + (boxes[:, axis, None] + 0.5 * size)
            half = 0.5 * (growth.exp() * size)
            low.append(centre - half)
            high.append(centre + half)
        return mortice.stack((*low, *high), dim=2).flatten(1)


class BoxLinearCoder:
    """Boxes as how far their four edges are from the centres of others, in parts of their sizes unless told otherwise."""

    def __init__(self, normalize_by_size: bool = True) -> None:
        self.normalize_by_size = normalize_by_size

    def _centres_and_sizes(self, boxes: Any) -> tuple[Any, Any]:
        sizes = boxes[..., 2:] - boxes[..., :2]
        return 0.5 * (boxes[..., :2] + boxes[..., 2:]), mortice.cat((sizes, sizes), dim=-1)

    def encode(self, reference_boxes: Any, proposals: Any) -> Any:
        """Return how far the edges of proposals are from the centres of reference boxes."""
        centres, sizes = self._centres_and_sizes(reference_boxes)
        codes = mortice.cat((centres - proposals[..., :2], proposals[..., 2:] - centres), dim=-1)
        return codes / sizes if self.normalize_by_size else codes

    def decode(self, rel_codes: Any, boxes: Any) -> Any:
        """Return the boxes whose edges are so far from the centres of boxes."""
        centres, sizes = self._centres_and_sizes(boxes.to(rel_codes.dtype))
        if self.normalize_by_size:
            rel_codes = rel_codes * sizes
        return mortice.cat((centres - rel_codes[..., :2], centres + rel_codes[..., 2:]), dim=-1)


class Matcher:
    """Gives each prediction the true box that it fits best: its place, -1 if it fits badly, -2 if neither well nor badly.

    Args:
        high_threshold, low_threshold: from where on it fits well, and below which it fits badly.
        allow_low_quality_matches: whether each true box also takes the predictions that fit it best, however badly.
    """

    BELOW_LOW_THRESHOLD = -1
    BETWEEN_THRESHOLDS = -2

    def __init__(self, high_threshold: float, low_threshold: float, allow_low_quality_matches: bool = False) -> None:
        if not low_threshold <= high_threshold:
            raise AssertionError("low_threshold should be <= high_threshold")
        self.high_threshold, self.low_threshold = high_threshold, low_threshold
        self.allow_low_quality_matches = allow_low_quality_matches

    def __call__(self, match_quality_matrix: Any) -> Any:
        """Return a place for each column of a matrix of true boxes by predictions."""
        if not match_quality_matrix.numel():
            kind = "proposal" if len(match_quality_matrix) else "ground-truth"
            raise ValueError(f"No {kind} boxes available for one of the images during training")
        best, places = match_quality_matrix.max(dim=0)
        matches = places.masked_fill(best < self.low_threshold, self.BELOW_LOW_THRESHOLD)
        between = (best >= self.low_threshold) & (best < self.high_threshold)
        matches = matches.masked_fill(between, self.BETWEEN_THRESHOLDS)
        if self.allow_low_quality_matches:
            self.set_low_quality_matches_(matches, places, match_quality_matrix)
        return matches

    def set_low_quality_matches_(self, matches: Any, all_matches: Any, match_quality_matrix: Any) -> None:
        """Write the best place over that of each prediction that fits some true box best, ties among them."""
        best = match_quality_matrix.amax(dim=1, keepdim=True)
        taken = (match_quality_matrix == best).any(0)
        matches.copy_(mortice.where(taken, all_matches, matches))


class SSDMatcher(Matcher):
    """A `Matcher` of one threshold, in which each true box takes the prediction that fits it best."""

    def __init__(self, threshold: float) -> None:
        super().__init__(threshold, threshold, allow_low_quality_matches=False)

    def __call__(self, match_quality_matrix: Any) -> Any:
        """Return a place for each column of a matrix of true boxes by predictions."""
        matches = super().__call__(match_quality_matrix)
        best = match_quality_matrix.max(dim=1).indices
        matches[best] = mortice.arange(len(best), dtype=mortice.int64, device=best.device)
        return matches


def retrieve_out_channels(model: nn.Module, size: tuple[int, int]) -> list[int]:
    """Return the channels of the maps that a model gives for images of (width, height)."""
    training = model.training
    model.eval()
    with mortice.no_grad():
        found = model(mortice.zeros(1, 3, size[1], size[0], device=next(model.parameters()).device))
    model.train(training)
    return [x.shape[1] for x in ([found] if isinstance(found, mortice.Tensor) else found.values())]


def _topk_min(input: Any, orig_kval: int, axis: int) -> int:
    return min(orig_kval, input.shape[axis])


def _box_loss(
    type: str, box_coder: BoxCoder, anchors: Any, matched_boxes: Any, regression: Any,
    cnf: dict[str, float] | None = None,
) -> Any:  # fmt: skip
    """Return the summed loss of boxes as they are encoded, or for "giou" and its kind of what they decode to."""
    overlaps = {"giou": generalized_box_iou_loss, "diou": distance_box_iou_loss, "ciou": complete_box_iou_loss}
    if type in overlaps:
        boxes = box_coder.decode_single(regression, anchors)
        return overlaps[type](boxes, matched_boxes, reduction="sum", eps=(cnf or {}).get("eps", 1e-7))
    if type not in ("l1", "smooth_l1"):
        raise AssertionError(f"Unsupported loss: {type}")
    codes = box_coder.encode_single(matched_boxes, anchors)
    if type == "l1":
        return F.l1_loss(regression, codes, reduction="sum")
    return F.smooth_l1_loss(regression, codes, reduction="sum", beta=(cnf or {}).get("beta", 1.0))


def by_anchor(x: Any, columns: int) -> Any:
    """Turn maps (N, anchors * columns, H, W) into rows in the order of anchors: (N, H * W * anchors, columns)."""
    n, _, height, width = x.shape
    return x.reshape(n, -1, columns, height, width).permute(0, 3, 4, 1, 2).reshape(n, -1, columns)


def renamed(state_dict: Any, prefix: str, names: dict[str, str]) -> None:
    """Give weights and biases of earlier releases the names that they have now."""
    for old, new in names.items():
        for kind in ("weight", "bias"):
            if f"{prefix}{old}.{kind}" in state_dict:
                state_dict[f"{prefix}{new}.{kind}"] = state_dict.pop(f"{prefix}{old}.{kind}")
