"""The reference of sampling at the points of a grid: one point at a time."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np


def grid_sample(x: Any, grid: Any, *, mode: str, padding: str, align_corners: bool) -> Any:
    """Read x (N, C, *sizes) between its elements at grid (N, *out, axes), whose points name the last axis first."""
    sizes = x.shape[2:]
    out = np.zeros((x.shape[0], *grid.shape[1:-1], x.shape[1]), x.dtype)
    for at in np.ndindex(*grid.shape[:-1]):
        point = [
            (p + 1) / 2 * (size - 1) if align_corners else ((p + 1) * size - 1) / 2
            for p, size in zip(grid[at][::-1], sizes)
        ]
        for taps in itertools.product(*[_taps(p, size, mode, padding, align_corners) for p, size in zip(point, sizes)]):
            places = [place for place, _ in taps]
            if all(0 <= place < size for place, size in zip(places, sizes)):
                out[at] += math.prod(weight for _, weight in taps) * x[(at[0], slice(None), *places)]
    return np.moveaxis(out, -1, 1)


def _taps(p: float, size: int, mode: str, padding: str, align_corners: bool) -> list[tuple[int, float]]:
    """Return (place, weight) of each element that a point reads along an axis."""
    if mode != "cubic":
        p = _inside(p, size, padding, align_corners)
    if mode == "nearest":
        return [(round(p), 1.0)]
    low = math.floor(p)
    if mode == "linear":
        return [(low, 1 - (p - low)), (low + 1, p - low)]
    return [
        (int(_inside(place, size, padding, align_corners)), _cubic(abs(p - place))) for place in range(low - 1, low + 3)
    ]


def _cubic(d: float, a: float = -0.75) -> float:
    """Keys' cubic convolution at a distance."""
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _inside(p: float, size: int, padding: str, align_corners: bool) -> float:
    """Return where a place comes to lie; with zeros it stays outside."""
    if padding == "zeros":
        return p
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        if low == high:
            return 0.0
        while not low <= p <= high:
            p = 2 * low - p if p < low else 2 * high - p
    return min(max(p, 0), size - 1)
