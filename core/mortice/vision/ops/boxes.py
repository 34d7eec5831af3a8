"""Boxes given by corners (x1, y1, x2, y2), by corner and size, or by centre and size: areas, overlaps and suppression."""

from __future__ import annotations

import math
from typing import Any

import mortice

__all__ = [
    "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou", "distance_box_iou",
    "generalized_box_iou", "masks_to_boxes", "nms", "remove_small_boxes",
]  # fmt: skip

_FORMATS, _TURNED = ("xyxy", "xywh", "cxcywh"), ("xywhr", "cxcywhr", "xyxyxyxy")


def _wide(t: Any) -> Any:
    """Return a tensor in a dtype whose products of sides do not overflow."""
    if t.dtype.is_floating_point:
        return t if t.dtype in (mortice.float32, mortice.float64) else t.float()
    return t if t.dtype in (mortice.int32, mortice.int64) else t.int()


def _check_format(name: str, *formats: str) -> None:
    for fmt in formats:
        if fmt not in _FORMATS:
            raise ValueError(f"{name}: expected a format of {', '.join(_FORMATS)}; got {fmt!r}.")


# ---- forms ----


def box_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Any:
    """Convert boxes between the formats "xyxy", "xywh" and "cxcywh", or between "xywhr", "cxcywhr" and "xyxyxyxy"."""
    turned = [fmt in _TURNED for fmt in (in_fmt, out_fmt)]
    if not all(turned):
        _check_format("box_convert", *[fmt for fmt, is_turned in zip((in_fmt, out_fmt), turned) if not is_turned])
    if in_fmt == out_fmt:
        return boxes.clone()
    if any(turned):
        if not all(turned):
            raise NotImplementedError(f"box_convert: expected formats of the same kind; got {in_fmt!r} and {out_fmt!r}.")
        return _turned_convert(boxes, in_fmt, out_fmt)
    if in_fmt != "xyxy":
        x, y, w, h = boxes.unbind(-1)
        if in_fmt == "cxcywh":
            x, y = x - 0.5 * w, y - 0.5 * h
        boxes = mortice.stack((x, y, x + w, y + h), dim=-1)
    if out_fmt == "xyxy":
        return boxes
    x1, y1, x2, y2 = boxes.unbind(-1)
    first = (x1, y1) if out_fmt == "xywh" else ((x1 + x2) / 2, (y1 + y2) / 2)
    return mortice.stack((*first, x2 - x1, y2 - y1), dim=-1)


def _turned_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Any:
    """Convert boxes that are turned, by degrees against the clock, by way of corner and size; whole numbers stay such."""

    def kept(*columns: Any) -> Any:
        made = mortice.stack(columns, dim=-1)
        return made if boxes.is_floating_point() else made.round().to(boxes.dtype)

    if in_fmt == "xyxyxyxy":
        x, y, x2, y2, x3, y3 = boxes.unbind(-1)[:6]
        degrees = mortice.atan2(y - y2, x2 - x) * 180 / math.pi
        boxes = kept(x, y, ((x2 - x) ** 2 + (y - y2) ** 2).sqrt(), ((x3 - x2) ** 2 + (y3 - y2) ** 2).sqrt(), degrees)
    x, y, w, h, degrees = boxes.unbind(-1)
    cos, sin = (f(degrees * math.pi / 180.0) for f in (mortice.cos, mortice.sin))
    if in_fmt == "cxcywhr":
        boxes = kept(x - w / 2 * cos - h / 2 * sin, y - h / 2 * cos + w / 2 * sin, w, h, degrees)
        x, y = boxes.unbind(-1)[:2]
    if out_fmt == "xywhr":
        return boxes
    if out_fmt == "cxcywhr":
        return kept(x + w / 2 * cos + h / 2 * sin, y - w / 2 * sin + h / 2 * cos, w, h, degrees)
    x2, y2 = x + w * cos, y - w * sin
    return kept(x, y, x2, y2, x2 + h * sin, y2 + h * cos, x + h * sin, y + h * cos)


def clip_boxes_to_image(boxes: Any, size: tuple[int, int]) -> Any:
    """Move the corners of boxes that lie outside an image of (height, width) to its edge."""
    height, width = size
    x, y = boxes[..., 0::2].clamp(min=0, max=width), boxes[..., 1::2].clamp(min=0, max=height)
    return mortice.stack((x, y), dim=boxes.dim()).reshape(boxes.shape)


def remove_small_boxes(boxes: Any, min_size: float) -> Any:
    """Return the positions of the boxes whose sides both reach min_size."""
    sides = boxes[..., 2:] - boxes[..., :2]
    return mortice.where((sides >= min_size).all(-1))[0]


def masks_to_boxes(masks: Any) -> Any:
    """Return the corners of what each mask (N, H, W) covers; an empty one gives zeros."""
    if not masks.numel():
        return mortice.zeros((0, 4), device=masks.device)
    ends = []
    for dim in (1, 2):  # over the rows the columns remain, which are x
        there = masks.bool().any(dim=dim).to(mortice.uint8)
        ends.append((there.argmax(dim=1), there.shape[1] - 1 - there.flip(1).argmax(dim=1)))
    (x1, x2), (y1, y2) = ends
    boxes = mortice.stack((x1, y1, x2, y2), dim=1).float()
    return boxes.masked_fill(~masks.bool().flatten(1).any(1, keepdim=True), 0.0)


# ---- areas and overlaps ----


def box_area(boxes: Any, fmt: str = "xyxy") -> Any:
    """Return the area of each box."""
    _check_format("box_area", fmt)
    boxes = _wide(boxes)
    if fmt == "xyxy":
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return boxes[..., 2] * boxes[..., 3]


def _overlap(boxes1: Any, boxes2: Any) -> tuple[Any, Any]:
    """Return the areas of the intersection and of the union of each pair."""
    sides = []
    for axis in (0, 1):  # by columns, since loops over a last dim of two cost more than what they compute
        low = mortice.max(boxes1[..., axis, None], boxes2[..., None, :, axis])
        high = mortice.min(boxes1[..., axis + 2, None], boxes2[..., None, :, axis + 2])
        sides.append(_wide(high - low).clamp(min=0))
    both = sides[0] * sides[1]
    return both, box_area(boxes1)[..., None] + box_area(boxes2)[..., None, :] - both


def _hull(boxes1: Any, boxes2: Any) -> tuple[Any, Any]:
    """Return the sides of the smallest box around each pair."""
    low = mortice.min(boxes1[..., None, :2], boxes2[..., None, :, :2])
    high = mortice.max(boxes1[..., None, 2:], boxes2[..., None, :, 2:])
    w, h = _wide(high - low).clamp(min=0).unbind(-1)
    return w, h


def box_iou(boxes1: Any, boxes2: Any, fmt: str = "xyxy") -> Any:
    """Return intersection over union of each of N boxes with each of M: (N, M)."""
    _check_format("box_iou", fmt)
    if fmt != "xyxy":
        boxes1, boxes2 = box_convert(boxes1, fmt, "xyxy"), box_convert(boxes2, fmt, "xyxy")
    both, either = _overlap(boxes1, boxes2)
    return both / either


def generalized_box_iou(boxes1: Any, boxes2: Any) -> Any:
    """Return intersection over union, less the share of the box around each pair that neither covers."""
    both, either = _overlap(boxes1, boxes2)
    w, h = _hull(boxes1, boxes2)
    area = w * h
    return both / either - (area - either) / area


def distance_box_iou(boxes1: Any, boxes2: Any, eps: float = 1e-7) -> Any:
    """Return intersection over union, less the squared distance of the centres by that of the hull's corners."""
    boxes1, boxes2 = _wide(boxes1), _wide(boxes2)
    w, h = _hull(boxes1, boxes2)
    centres = [(b[..., :2] + b[..., 2:]) / 2 for b in (boxes1, boxes2)]
    apart = (_wide(centres[0][..., None, :] - centres[1][..., None, :, :]) ** 2).sum(-1)
    return box_iou(boxes1, boxes2) - apart / (w**2 + h**2 + eps)


def complete_box_iou(boxes1: Any, boxes2: Any, eps: float = 1e-7) -> Any:
    """Return `distance_box_iou`, less a measure of how the proportions of each pair differ."""
    boxes1, boxes2 = _wide(boxes1), _wide(boxes2)
    slant1, slant2 = (mortice.atan((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])) for b in (boxes1, boxes2))
    unlike = 4 / math.pi**2 * (slant1[..., None] - slant2[..., None, :]) ** 2
    with mortice.no_grad():
        weight = unlike / (1 - box_iou(boxes1, boxes2) + unlike + eps)
    return distance_box_iou(boxes1, boxes2, eps) - weight * unlike


# ---- suppression ----


@mortice.no_grad()
def nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the positions of the boxes, best score first, that overlap no better one by more than a threshold."""
    if boxes.dim() != 2 or boxes.shape[1] != 4:
        raise RuntimeError(f"nms: boxes should be a 2d tensor of 4 columns; got {list(boxes.shape)}.")
    if scores.dim() != 1 or scores.shape[0] != boxes.shape[0]:
        raise RuntimeError(
            f"nms: scores should be a 1d tensor with one score a box ({boxes.shape[0]}); got {list(scores.shape)}."
        )
    order = scores.argsort(descending=True, stable=True)
    left, kept = _wide(boxes)[order], []  # the overlaps too are compared in a wide dtype
    while order.shape[0]:
        # A block of the best at a time, not one box, so that the work is in few operations.
        first = left[:_BLOCK]
        over = _beyond(first, first, iou_threshold).triu(1)
        stays = mortice.ones(len(first), dtype=mortice.bool, device=boxes.device)
        while True:  # a box falls to a better one that stays; each round settles those that hang on settled ones
            again = ~(over & stays[:, None]).any(0)
            if mortice.equal(again, stays):
                break
            stays = again
        kept.append(order[:_BLOCK][stays])
        order, left = order[_BLOCK:], left[_BLOCK:]
        free = ~_beyond(first[stays], left, iou_threshold).any(0)
        order, left = order[free], left[free]
    return mortice.cat(kept) if kept else order


_BLOCK = 128


def _beyond(boxes1: Any, boxes2: Any, iou_threshold: float) -> Any:
    both, either = _overlap(boxes1, boxes2)
    return both / either > iou_threshold


@mortice.no_grad()
def batched_nms(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """Suppress as `nms` does, among the boxes of each class alone."""
    if not boxes.numel():
        return mortice.empty((0,), dtype=mortice.int64, device=boxes.device)
    if boxes.numel() <= 4000:
        # Far enough apart, boxes of two classes never overlap.
        return nms(boxes + idxs.to(boxes.dtype)[:, None] * (boxes.max() + 1), scores, iou_threshold)
    keep = mortice.zeros_like(scores, dtype=mortice.bool)
    for kind in mortice.unique(idxs):
        there = mortice.where(idxs == kind)[0]
        keep[there[nms(boxes[there], scores[there], iou_threshold)]] = True
    found = mortice.where(keep)[0]
    return found[scores[found].argsort(descending=True, stable=True)]
