"""Searching, sorting and picking elements."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice import where
from mortice.errors import ShapeError
from mortice.shape import check_dim

__all__ = [
    "argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "where",
]  # fmt: skip


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return where the largest element is."""
    return mt.argmax(x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return where the smallest element is."""
    return mt.argmin(x, axis, keepdims)


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """Return the positions of what is not zero, as one array of indices for each axis."""
    if not x.shape:
        raise ShapeError("nonzero: expected at least one dimension; got a 0-d array. Use reshape(x, (1,)).")
    return tuple(mt.nonzero(x, as_tuple=True))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Find where x2 goes in sorted x1, before (left) or after (right) equal elements."""
    return mt.searchsorted(x1, x2, side=side, sorter=None if sorter is None else sorter.to(mt.int64))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort along an axis, always stably."""
    return mt.sort(x, axis, descending).values


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the order that sorts along an axis, always stably."""
    return mt.argsort(x, axis, descending)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Pick positions along an axis, which may be left out of 1-D arrays; negative ones count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: expected an axis for what is not 1-D; got shape {tuple(x.shape)}.")
        axis = 0
    indices = indices.to(mt.int64) if indices.dtype.kind in "iu" else indices
    return x[(*(slice(None),) * check_dim("take", axis, x.ndim), indices)]


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Read, for each index, the element at that place along an axis; the other axes broadcast."""
    return mt.take_along_dim(x, indices.to(mt.int64), axis)
