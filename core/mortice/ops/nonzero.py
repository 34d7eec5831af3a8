"""Where a tensor is not zero, as positions."""

from __future__ import annotations

import operator
from typing import Any

from mortice import call as _call
from mortice.dtype import int64
from mortice.levels import lane_by_lane
from mortice.ops.index_advanced import along_dims, flat_nonzero
from mortice.ops.joining import cat
from mortice.ops.movement import reshape
from mortice.shape import Size
from mortice.tensor import make

__all__ = ["argwhere", "nonzero", "nonzero_static"]


def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the positions of nonzero elements: one a row, or one tensor per dim with `as_tuple`."""
    shape = tuple(input.shape)
    if as_tuple and out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True, which gives one tensor per dim")
    if as_tuple and not shape:
        return nonzero(reshape(input, 1), as_tuple=True)
    if as_tuple:
        return tuple(along_dims(flat_nonzero(input.detach()), shape))
    flat = flat_nonzero(input if input._device.level is None else input.detach())
    made = _rows(flat, shape) if shape else flat.new_empty((flat.shape[0], 0))
    return _call.give("nonzero", out, made)


def _rows(flat: Any, shape: tuple[int, ...]) -> Any:
    """Return, for flat positions in a shape, the index along each dim as a row."""
    k, rest, columns = flat._device.backend, flat._buffer, []
    for n in reversed(shape[1:]):
        row = k.floor_divide(rest, n) if n else rest
        columns.append(k.subtract(rest, k.multiply(row, n)))  # faster than a remainder
        rest = row
    # Each dim's positions lie together, as in PyTorch.
    data = k.permute_dims(k.stack([rest, *reversed(columns)], 0), (1, 0))
    return make(data, flat._device, int64, Size((flat.shape[0], len(shape))))


def argwhere(input: Any) -> Any:
    """Return the positions of nonzero elements, one a row."""
    return nonzero(input)


@lane_by_lane
def nonzero_static(input: Any, *, size: int, fill_value: int = -1, out: Any = None) -> Any:
    """Return the positions of the first `size` nonzero elements, one a row, filled up where there are fewer."""
    size = operator.index(size)
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer; got {size}.")
    found = nonzero(input)[:size]
    made = cat([found, found.new_full((size - found.shape[0], found.shape[1]), fill_value)])
    return _call.give("nonzero_static", out, made)
