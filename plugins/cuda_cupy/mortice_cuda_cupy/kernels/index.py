"""Direct launches of reading and adding at positions along an axis; what is not in row-major order is brought into it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    INTEGERS,
    Program,
    empty,
    float32,
    over_elements,
    prod,
)

_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "u64", 16: "Word16"}
_COUNTS = ("unsigned", "i64")
READ = Program(
    "index.cu", *[f"{name}<{word}, {i}>" for name in ("gather", "take") for word in _WORDS.values() for i in _COUNTS],
    types=(float32,),
)  # fmt: skip
ADD = Program(
    "index.cu", *[f"{name}<{{T}}, {i}>" for name in ("scatter_add", "index_add") for i in _COUNTS],
    types=(*FLOATS, *INTEGERS),
)  # fmt: skip
_INT64 = np.dtype(np.int64)
Kernel = Callable[..., Any]


def indexing(k: Any) -> dict[str, Kernel]:
    """Return the kernels of a backend by name, each with the one that it has as the way for what is left over."""
    return {
        "take": _take(k, k.take), "take_along_axis": _gather(k, k.take_along_axis), "gather": _gather(k, k.gather),
        "scatter_add": _add(k, "scatter_add", k.scatter_add), "index_add": _add(k, "index_add", k.index_add),
    }  # fmt: skip


def _sizes(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def _count(total: int) -> str:
    return _COUNTS[total >= 1 << 31]


def _take(k: Any, other: Kernel) -> Kernel:
    @functools.wraps(other)
    def take(x: Any, indices: Any, *, axis: int) -> Any:
        if not x.ndim or not x.size or not indices.size or indices.dtype != _INT64:
            return other(x, indices, axis=axis)
        x, indices, axis = contiguous(x), contiguous(indices), axis % x.ndim
        outer, n, inner = _sizes(x.shape, axis)
        out = empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
        # Slices move in the widest words that they are made of.
        size = next(s for s in (16, 8, 4, 2, 1) if inner * x.itemsize % s == 0 and x.data.ptr % s == 0)
        words, count = inner * x.itemsize // size, indices.size
        total = outer * count * words
        kernel = READ.get(float32, f"take<{_WORDS[size]}, {_count(total)}>")
        kernel(*over_elements(total), (x, indices, out, total, count, words, n))
        return out

    return take


def _gather(k: Any, other: Kernel) -> Kernel:
    @functools.wraps(other)
    def gather(x: Any, indices: Any, *, axis: int) -> Any:
        if not x.ndim or not x.size or not indices.size or indices.dtype != _INT64 or indices.ndim != x.ndim:
            return other(x, indices, axis=axis)
        axis %= x.ndim
        have, want = x.shape, indices.shape
        cut = tuple([slice(None) if i == axis else slice(0, m) for i, m in enumerate(want)])
        if any([n < m for i, (n, m) in enumerate(zip(have, want)) if i != axis]):
            return other(x, indices, axis=axis)
        x, indices = contiguous(x[cut]), contiguous(indices)
        outer, n, inner = _sizes(x.shape, axis)
        out = empty(want, x.dtype)
        kernel = READ.get(float32, f"gather<{_WORDS[x.itemsize]}, {_count(out.size)}>")
        kernel(*over_elements(out.size), (x, indices, out, out.size, want[axis], inner, n))
        return out

    return gather


def _add(k: Any, name: str, other: Kernel) -> Kernel:
    each = name == "scatter_add"

    @functools.wraps(other)
    def add(x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        dtype = k._names[x.dtype]
        fits = x.ndim and values.size and indices.dtype == _INT64 and values.dtype == x.dtype and values.ndim == x.ndim
        if not fits or dtype not in ADD.types:
            return other(x, indices, values, axis=axis)
        axis %= x.ndim
        shape = values.shape
        if (shape[:axis], shape[axis + 1 :]) != (x.shape[:axis], x.shape[axis + 1 :]):
            return other(x, indices, values, axis=axis)
        if indices.shape != (shape if each else shape[axis : axis + 1]):
            return other(x, indices, values, axis=axis)
        narrow = dtype in FLOATS and x.itemsize == 2
        out = contiguous(k.astype(x, float32)) if narrow else k.copy(x)
        _, n, inner = _sizes(x.shape, axis)
        kernel = ADD.get(dtype, f"{name}<{{T}}, {_count(values.size)}>")
        sizes = (values.size, shape[axis], inner, n)
        kernel(*over_elements(values.size), (out, contiguous(indices), contiguous(values), *sizes))
        return k.astype(out, dtype) if narrow else out

    return add
