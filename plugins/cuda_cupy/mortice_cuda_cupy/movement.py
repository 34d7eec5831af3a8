"""Views by strides, where the default bodies copy."""

from __future__ import annotations

import weakref
from typing import Any

import cupy
import numpy as np
from cupy.lib.stride_tricks import as_strided

from mortice_cuda_cupy.kernels.copying import contiguous, joined


class Movement:
    """CuPy's own strided views."""

    _roots: dict[int, tuple[Any, Any]]

    def __init__(self, *args: Any, **options: Any) -> None:
        self._roots = {}
        super().__init__(*args, **options)

    def strided(self, x: Any, *, shape: Any, strides: Any, offset: int) -> Any:
        return self._seen(x[offset:], shape, [s * x.itemsize for s in strides])

    def diagonal(self, x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
        m, n = x.shape[axis1], x.shape[axis2]
        count = max(min(m, n - offset) if offset >= 0 else min(m + offset, n), 0)
        key = [slice(None)] * x.ndim
        key[axis2 if offset >= 0 else axis1] = slice(abs(offset), None)
        rest = [i for i in range(x.ndim) if i not in (axis1, axis2)]
        strides = [*(x.strides[i] for i in rest), x.strides[axis1] + x.strides[axis2]]
        return self._seen(x[tuple(key)], [*(x.shape[i] for i in rest), count], strides)

    def sliding_window(self, x: Any, *, axis: int, size: int, step: int) -> Any:
        if not x.ndim:
            return x.reshape(size)
        shape, strides = list(x.shape), list(x.strides)
        shape[axis], strides[axis] = (shape[axis] - size) // step + 1, strides[axis] * step
        return self._seen(x, [*shape, size], [*strides, x.strides[axis]])

    def _seen(self, x: Any, shape: Any, strides: Any) -> Any:
        """Return the memory of x, from its first element on, by other sizes and strides."""
        view = as_strided(x, shape, strides)
        # CuPy's as_strided gives arrays without a base, and none can be set: what they are views of is kept here.
        key, roots = id(view), self._roots
        roots[key] = weakref.ref(view, lambda _: roots.pop(key, None)), self._root(x)
        return view

    def _root(self, x: Any) -> Any:
        """Return the array that the memory of x was made for."""
        x = x if x.base is None else x.base
        known = self._roots.get(id(x))
        return x if known is None else known[1]

    def owns(self, x: Any) -> bool:
        return x.base is None and id(x) not in self._roots

    def whole(self, x: Any) -> tuple[Any, int]:
        root = self._root(x)
        # From its lowest address on; an array of another dtype shows the same memory.
        root = root[tuple(slice(None, None, -1 if s < 0 else 1) for s in root.strides)]
        start = root.data.ptr
        count = sum((n - 1) * s for n, s in zip(root.shape, root.strides)) // root.itemsize + 1 if root.size else 0
        flat = as_strided(root, (count,), (root.itemsize,)).view(x.dtype)
        return flat, (x.data.ptr - start) // x.itemsize if x.size else 0

    def reinterpret(self, x: Any, dtype: Any) -> Any:
        if x.ndim and x.shape[-1] == 1 and x.itemsize != dtype.itemsize:
            x = self._seen(x, x.shape, (*x.strides[:-1], x.itemsize))  # CuPy asks for the stride that one element has not
        return x.view(self.native(dtype))  # type: ignore[attr-defined]

    def contiguous(self, x: Any) -> Any:
        return self.copy(x)  # type: ignore[attr-defined]

    def stack(self, arrays: Any, axis: int) -> Any:
        axis %= arrays[0].ndim + 1
        made = joined([a.reshape(*a.shape[:axis], 1, *a.shape[axis:]) for a in map(contiguous, arrays)], axis)
        return cupy.stack(arrays, axis=axis) if made is None else made

    def gather(self, x: Any, indices: Any, *, axis: int) -> Any:
        # The grid bounds the other axes, and the core has checked the indices.
        return x[grid(indices, x.ndim, axis)]

    def index_write(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        """Replace slices; what is written to a position twice is the last of them."""
        count = indices.shape[0]
        out = x.copy()
        if not count or not out.size:
            return out
        # CuPy writes in any order: for each position the last writer is found first, and all write what it has.
        order = cupy.arange(count)
        last = cupy.full((x.shape[axis],), -1, np.int64)
        cupy.maximum.at(last, (indices,), order)
        out[(*(slice(None),) * axis, indices)] = cupy.take(values, last[indices], axis=axis)
        return out


def grid(indices: Any, ndim: int, axis: int) -> tuple[Any, ...]:
    """Return an index for every axis: `indices` along one, the position itself along the others."""
    where = []
    for i, n in enumerate(indices.shape):
        if i == axis % ndim:
            where.append(indices)
        else:
            where.append(cupy.arange(n).reshape(*[1] * i, n, *[1] * (ndim - 1 - i)))
    return tuple(where)
