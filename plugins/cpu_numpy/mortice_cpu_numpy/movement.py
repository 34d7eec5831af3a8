"""NumPy's own strided views and unbuffered writes, in place of the copies that the default bodies make."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

_BETWEEN = type(as_strided(np.zeros(1), (1,), (1,)).base)


@functools.lru_cache(256)
def _grid(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return np.ix_(*[np.arange(n) for n in shape])


def _positions(indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index arrays that reach what a scatter along an axis reaches."""
    grid = _grid(indices.shape)
    return (*grid[:axis], indices, *grid[axis % len(grid) + 1 :])


def _base(x: Any) -> Any:
    """Return what an array is a view of; as_strided puts an object of its own between the two."""
    return x.base.base if type(x.base) is _BETWEEN else x.base


class MovementOverrides:
    """Views where the default bodies copy, and ufunc.at where they sort."""

    def item(self, x: Any) -> Any:
        return x.item()

    def index_range(self, indices: Any) -> tuple[int, int]:
        if indices.dtype.kind not in "iu":
            return super().index_range(indices)  # type: ignore[misc,no-any-return]  # silent about NaN
        return indices.min().item(), indices.max().item()

    def gather(self, x: Any, indices: Any, *, axis: int) -> Any:
        # The grid bounds the other axes, and the core has checked the indices.
        return x[_positions(indices, axis)]

    def take_along_axis(self, x: Any, indices: Any, *, axis: int) -> Any:
        axis %= x.ndim
        here, there = x.shape, indices.shape
        if here[:axis] == there[:axis] and here[axis + 1 :] == there[axis + 1 :]:
            return x[_positions(indices, axis)]  # NumPy's function, in Python, builds the same grid every time
        return np.take_along_axis(x, indices, axis=axis)

    def stack(self, arrays: Any, axis: int) -> Any:
        return np.asarray(np.stack(arrays, axis), order="C")

    def contiguous(self, x: Any) -> Any:
        return np.array(x, order="C")

    def reinterpret(self, x: Any, dtype: Any) -> Any:
        if x.ndim and x.shape[-1] == 1 and x.itemsize != dtype.itemsize:
            x = as_strided(x, x.shape, (*x.strides[:-1], x.itemsize))  # NumPy asks for the stride that one element has not
        return x.view(self.native(dtype))  # type: ignore[attr-defined]

    def diagonal(self, x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
        # np.diagonal gives read-only views; these can be written.
        step = x.strides[axis1] + x.strides[axis2]
        m, n = x.shape[axis1], x.shape[axis2]
        count = max(min(m, n - offset) if offset >= 0 else min(m + offset, n), 0)
        key = [slice(None)] * x.ndim
        key[axis2 if offset >= 0 else axis1] = slice(abs(offset), None)
        start = x[tuple(key)]
        rest = [i for i in range(x.ndim) if i not in (axis1, axis2)]
        return as_strided(start, [*(x.shape[i] for i in rest), count], [*(x.strides[i] for i in rest), step])

    def sliding_window(self, x: Any, *, axis: int, size: int, step: int) -> Any:
        if not x.ndim:
            return x.reshape(size)
        count = (x.shape[axis] - size) // step + 1
        shape, strides = list(x.shape), list(x.strides)
        shape[axis], strides[axis] = count, strides[axis] * step
        return as_strided(x, [*shape, size], [*strides, x.strides[axis]])

    def whole(self, x: Any) -> tuple[Any, int]:
        root = x
        while isinstance(base := _base(root), np.ndarray):
            root = base
        # From its lowest address on; an array of another dtype shows the same memory.
        root = root[(*(slice(None, None, -1 if s < 0 else 1) for s in root.strides), ...)]
        start = root.__array_interface__["data"][0]
        count = sum((n - 1) * s for n, s in zip(root.shape, root.strides)) // root.itemsize + 1 if root.size else 0
        flat = as_strided(root, (count,), (root.itemsize,)).view(x.dtype)
        return flat, (x.__array_interface__["data"][0] - start) // x.itemsize if x.size else 0

    def strided(self, x: Any, *, shape: Any, strides: Any, offset: int) -> Any:
        return as_strided(x[offset:], shape, [s * x.itemsize for s in strides])

    def scatter_write(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        out = np.array(x)
        # NumPy walks backwards through indices of negative stride, but the last write is to stay.
        out[_positions(np.ascontiguousarray(indices), axis)] = values
        return out

    def scatter_combine(self, x: Any, indices: Any, values: Any, *, axis: int, how: str) -> Any:
        out = np.array(x)
        ufunc = {"prod": np.multiply, "max": np.maximum, "min": np.minimum}[how]
        with np.errstate(all="ignore"):
            ufunc.at(out, _positions(indices, axis), values)
        return out
