"""Where a tensor is not zero, as positions."""

from __future__ import annotations

import operator
from typing import Any

from mortice import op as _op
from mortice.ops.index import along_dims, flat_nonzero
from mortice.ops.movement import cat, reshape, stack


def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the positions of nonzero elements: one a row, or one tensor per dim with `as_tuple`."""
    shape = tuple(input.shape)
    if as_tuple and out is not None:
        raise RuntimeError("nonzero: as_tuple=True gives one tensor per dim, which no out= can hold. Leave one of them out.")
    if as_tuple and not shape:
        return nonzero(reshape(input, 1), as_tuple=True)
    flat = flat_nonzero(input.detach())
    parts = along_dims(flat, shape)
    if as_tuple:
        return tuple(parts)
    made = stack(parts, 1) if parts else flat.new_empty((flat.shape[0], 0))
    return made if out is None else _op.WRITE_OUT("nonzero", out, made)


def argwhere(input: Any) -> Any:
    """Return the positions of nonzero elements, one a row."""
    return nonzero(input)


def nonzero_static(input: Any, *, size: int, fill_value: int = -1, out: Any = None) -> Any:
    """Return the positions of the first `size` nonzero elements, one a row, filled up where there are fewer."""
    size = operator.index(size)
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer; got {size}.")
    found = nonzero(input)[:size]
    missing = size - found.shape[0]
    made = cat([found, found.new_full((missing, found.shape[1]), fill_value)]) if missing else found
    return made if out is None else _op.WRITE_OUT("nonzero_static", out, made)
