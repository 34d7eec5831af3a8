"""Changing the arrangement of elements: shapes, axes, joining, repeating."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice import moveaxis
from mortice.errors import ShapeError
from mortice.shape import check_dim, check_dims

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims",
    "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack",
]  # fmt: skip


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """Give arrays their common shape."""
    return tuple(mt.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape of several."""
    return tuple(mt.broadcast_shapes(*shapes))


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """Repeat without copying until the shape is reached."""
    return mt.broadcast_to(x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Join along an existing axis; all elements one after another for None."""
    if axis is None:
        arrays, axis = [mt.reshape(x, (-1,)) for x in arrays], 0
    return mt.concat(arrays, axis)


def expand_dims(x: Any, /, axis: int | tuple[int, ...]) -> Any:
    """Insert axes of size 1, at the places that they have in the result."""
    places = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = x.ndim + len(places)
    inserted = check_dims("expand_dims", places, ndim) if places else ()
    sizes = iter(x.shape)
    return mt.reshape(x, tuple([1 if i in inserted else next(sizes) for i in range(ndim)]))


def flip(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """Reverse the order along axes, all of them by default."""
    return mt.flip(x, tuple(range(x.ndim)) if axis is None else axis)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Any:
    """Reorder the axes."""
    return mt.permute(x, axes)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Repeat each element along an axis, so many times or as many as `repeats` says for each; flat by default."""
    return mt.repeat_interleave(x, repeats.to(mt.int64) if isinstance(repeats, mt.Tensor) else repeats, axis)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """Give the elements another shape; `copy` True always copies, False never.

    Raises:
        ValueError: when `copy` is False and a copy would be needed.
    """
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: {list(x.shape)} to {list(shape)} takes a copy here; got copy=False.") from error
    made = mt.reshape(x, shape)
    return mt.clone(made) if copy else made


def roll(x: Any, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Any:
    """Shift elements along axes; what falls off comes in at the other end. Without axes the array counts as flat."""
    if isinstance(axis, (tuple, list)) and not isinstance(shift, (tuple, list)):
        shift = (shift,) * len(axis)
    return mt.roll(x, shift, axis)


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Any:
    """Remove axes, which must be of size 1."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for a in axes:
        if x.shape[check_dim("squeeze", a, x.ndim)] != 1:
            raise ShapeError(f"squeeze: expected size 1 along axis {a}; got shape {tuple(x.shape)}.")
    return mt.squeeze(x, tuple(axes))


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Join along a new axis."""
    return mt.stack(arrays, axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> Any:
    """Lay copies side by side; fewer numbers than axes count from the last."""
    return mt.tile(x, repetitions)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Split into the slices along an axis."""
    return tuple(mt.unbind(x, axis))
