"""How turned boxes are cut to the canvas: side by side, by moving their edges without turning them, as torchvision does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice


def clamped_turned(corners: Any, canvas_size: Sequence[int], clamping_mode: str) -> Any:
    """Cut boxes (N, 8), given by corners, to the canvas: "hard" gives smaller ones than "soft"."""
    boxes = before = corners.unflatten(-1, (4, 2))
    height, width = canvas_size
    for _ in range(4):  # each side of the canvas is the left one once
        first = _leftmost(boxes)
        boxes, before = _rolled(boxes, first), _rolled(before, first)
        boxes = _cut_left(boxes, before, height, width, clamping_mode == "hard")
        boxes, before = (_rolled(b, first) for b in (boxes, before))
        boxes, before = (mortice.stack([b[..., 1], width - b[..., 0]], -1) for b in (boxes, before))
        height, width = width, height
    return boxes.flatten(-2)


def _leftmost(boxes: Any) -> Any:
    """Return which corner is the leftmost, the upper one of two."""
    x, y = boxes[..., 0], boxes[..., 1]
    return (y / y.abs().amax(1, keepdim=True) + x / x.abs().amax(1, keepdim=True) * 100).argmin(1)


def _rolled(boxes: Any, first: Any) -> Any:
    places = (first.unsqueeze(1) + mortice.arange(4, device=boxes.device)) % 4
    return boxes.gather(1, places.unsqueeze(-1).expand(-1, 4, 2))


def _lines(boxes: Any) -> tuple[Any, Any]:
    """Return the slopes and intercepts of the edges, each from its corner to the next."""
    steps = boxes.roll(-1, 1) - boxes
    slope = steps[..., 1] / steps[..., 0]
    return slope, boxes[..., 1] - slope * boxes[..., 0]


def _cut_left(boxes: Any, before: Any, height: int, width: int, hard: bool) -> Any:
    """Cut off what is left of the canvas, of boxes whose first corner is the leftmost."""
    slope, level = _lines(boxes)
    level = _moved_edges(slope, level, _lines(before)[1], height, width, hard)
    # Each corner is where its edge meets the one before.
    x = -(level - level.roll(1, 1)) / (slope - slope.roll(1, 1))
    met = mortice.stack([x, slope * x + level], -1)

    x, y = boxes.unbind(-1)
    level_edge = y[:, 0].isclose(y[:, 1]) | y[:, 2].isclose(y[:, 3])
    gone = (x <= 0).all(1) | y[:, 0].isclose(y[:, 3]) | y[:, 1].isclose(y[:, 2])
    gone = gone | (level_edge & x[:, 0].isclose(x[:, 1]))
    straight = boxes.clone()
    straight[:, 0, 0].clamp_(min=0)
    straight[:, 3, 0].clamp_(min=0)
    cases = (
        ((x[:, 0] < 0) & ~met.isnan().flatten(1).any(1), met),
        (level_edge, straight),
        (gone, mortice.zeros_like(boxes)),
    )
    for holds, case in cases:
        boxes = mortice.where(holds.reshape(-1, 1, 1), case, boxes)
    return boxes


def _moved_edges(slope: Any, level: Any, before: Any, height: int, width: int, hard: bool) -> Any:
    """Return intercepts of the edges for which the box is within the canvas at the left."""
    a1, a2, a3, a4 = slope.unbind(1)
    b1, b2, b3, b4 = level.unbind(1)
    m1, m2, m3, m4 = before.unbind(1)
    b1, b4 = b2.clamp(b1, b3).clamp(0, height), b3.clamp(b2, b4).clamp(0, height)
    if hard:
        # The first corner lies on the left side of the canvas, and the other edges follow it.
        b1 = b4 = (b1 + b4) / 2
        b2 = _stacked(b1 * a2 / a1, b3 * a2 / a3, (a1 - a2) * width + b1, (a3 - a2) * width + b3).amax(1).clamp(max=b2)
        ends = height * (1 - a3 / a4) + b4 * a3 / a4, height * (1 - a3 / a2) + b2 * a3 / a2
        b3 = _stacked(*ends, (a2 - a3) * width + b2, (a4 - a3) * width + b4).amin(1).clamp(min=b3)
        b1 = b4 = b1.clamp(m1, m3)
        b1 = b4.clamp(m2, m4)
    return _stacked(b1.clamp(m1, m3) if not hard else b1, b2.clamp(m2, m4), b3.clamp(m1, m3), b4.clamp(m2, m4))


def _stacked(*columns: Any) -> Any:
    return mortice.stack(columns, 1)
