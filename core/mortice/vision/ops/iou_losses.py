"""Losses of boxes beside those they should be, pair by pair: 1 less an overlap that does not vanish where they part."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.vision.ops.boxes import _wide

__all__ = ["complete_box_iou_loss", "distance_box_iou_loss", "generalized_box_iou_loss"]


def _measures(boxes1: Any, boxes2: Any) -> tuple[Any, Any, Any, Any]:
    """Return the areas of the intersection and of the union, and the sides of the box around each pair."""
    low, high = mortice.max(boxes1[..., :2], boxes2[..., :2]), mortice.min(boxes1[..., 2:], boxes2[..., 2:])
    both = (high - low).clamp(min=0).prod(-1)
    areas = [(b[..., 2:] - b[..., :2]).prod(-1) for b in (boxes1, boxes2)]
    hull = mortice.max(boxes1[..., 2:], boxes2[..., 2:]) - mortice.min(boxes1[..., :2], boxes2[..., :2])
    return both, areas[0] + areas[1] - both, hull[..., 0], hull[..., 1]


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction == "mean":
        return loss.mean() if loss.numel() else 0.0 * loss.sum()
    if reduction not in ("none", "sum"):
        raise ValueError(
            f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none', 'mean', 'sum'"
        )
    return loss.sum() if reduction == "sum" else loss


def generalized_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """Return 1 less the generalized intersection over union of each pair (..., 4)."""
    both, either, w, h = _measures(_wide(boxes1), _wide(boxes2))
    area = w * h
    return _reduced(1 - both / (either + eps) + (area - either) / (area + eps), reduction)


def _distance(boxes1: Any, boxes2: Any, eps: float) -> tuple[Any, Any]:
    both, either, w, h = _measures(boxes1, boxes2)
    overlap = both / (either + eps)
    apart = (boxes1[..., :2] + boxes1[..., 2:] - boxes2[..., :2] - boxes2[..., 2:]) / 2
    return 1 - overlap + apart.square().sum(-1) / (w**2 + h**2 + eps), overlap


def distance_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """Return 1 less intersection over union, and the distance of the centres by that of the hull's corners."""
    return _reduced(_distance(_wide(boxes1), _wide(boxes2), eps)[0], reduction)


def complete_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """Return `distance_box_iou_loss`, and a measure of how the proportions of each pair differ."""
    boxes1, boxes2 = _wide(boxes1), _wide(boxes2)
    loss, overlap = _distance(boxes1, boxes2, eps)
    slant1, slant2 = (mortice.atan((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])) for b in (boxes1, boxes2))
    unlike = 4 / math.pi**2 * (slant2 - slant1) ** 2
    with mortice.no_grad():
        weight = unlike / (1 - overlap + unlike + eps)
    return _reduced(loss + weight * unlike, reduction)
