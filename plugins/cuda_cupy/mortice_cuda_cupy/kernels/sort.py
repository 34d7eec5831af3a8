"""Sorting in shared memory: short rows at once, longer ones in parts that are merged, the best few of any; CuPy sorts the longest."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    INTEGERS,
    MAX_BLOCKS,
    Program,
    bool_,
    empty,
    over_elements,
    prod,
    uint8,
)

SMALL, LARGE = 1024, 4096  # elements in the shared memory of a block
LONGEST = 1 << 17  # of rows that are merged: each element looks into every part
_THREADS = (512,)
SORT = Program(
    "sort.cu", *[f"sort_lines<{{T}}, {size}>" for size in (SMALL, LARGE)], "merge_lines<{T}>",
    types=(*FLOATS, *INTEGERS, uint8, bool_),
)  # fmt: skip
_INT64 = np.dtype(np.int64)
Kernel = Callable[..., Any]


def sorting(k: Any) -> dict[str, Kernel]:
    """Return the kernels of a backend by name, each with the one that it has as the way for what is left over."""
    return {
        "argsort": _argsort(k, k.argsort), "sort": _sort(k, k.sort), "sort_pairs": _sort_pairs(k, k.sort_pairs),
        "topk": _topk(k, k.topk),
    }  # fmt: skip


def _rows(k: Any, x: Any, axis: int, most: int) -> Any:
    """Return x in row-major order with an axis last, if rows of it are sorted here; else None."""
    if not x.ndim or not x.size or k._names[x.dtype] not in SORT.types or x.shape[axis] > most:
        return None
    if axis % x.ndim == x.ndim - 1:
        return contiguous(x)
    return k.copy(x.transpose(_moved(x.ndim, axis % x.ndim)))


def _moved(ndim: int, axis: int) -> tuple[int, ...]:
    return (*range(axis), *range(axis + 1, ndim), axis)


def _back(x: Any, axis: int) -> Any:
    """Return a result with its last axis where it belongs."""
    axis %= x.ndim
    return x if axis == x.ndim - 1 else x.transpose((*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)))


def _launch(
    k: Any, x: Any, among: Any, values: Any, places: Any, *, m: int, parts: int, per: int, keep: int, descending: bool
) -> None:
    n = x.shape[-1]
    rows = x.size // n
    shift = max(per - 1, 1).bit_length()
    size = SMALL if 1 << shift <= SMALL else LARGE
    blocks = -(-rows * parts // (size >> shift))
    SORT.get(k._names[x.dtype], f"sort_lines<{{T}}, {size}>")(
        (min(blocks, MAX_BLOCKS),), _THREADS,
        (x, among, values, places, rows, n, m, parts, per, shift, keep, np.bool_(descending)),
    )  # fmt: skip


def _sorted(k: Any, x: Any, axis: int, descending: bool, *, values: bool, places: bool) -> Any:
    x = _rows(k, x, axis, LONGEST)
    if x is None:
        return None
    n = x.shape[-1]
    out = empty(x.shape, x.dtype) if values else None
    order = empty(x.shape, _INT64) if places else None
    if n <= LARGE:
        _launch(k, x, None, out, order, m=n, parts=1, per=n, keep=n, descending=descending)
    else:
        rows, parts = x.size // n, -(-n // LARGE)
        kept, among = (empty((rows, parts * LARGE), d) for d in (x.dtype, _INT64))
        _launch(k, x, None, kept, among, m=n, parts=parts, per=LARGE, keep=LARGE, descending=descending)
        merge = SORT.get(k._names[x.dtype], "merge_lines<{T}>")
        merge(*over_elements(x.size), (kept, among, out, order, rows, n, parts, LARGE, np.bool_(descending)))
    return tuple([_back(made, axis) for made in (out, order) if made is not None])


def _argsort(k: Any, other: Kernel) -> Kernel:
    @functools.wraps(other)
    def argsort(x: Any, *, axis: int, descending: bool = False) -> Any:
        made = _sorted(k, x, axis, descending, values=False, places=True)
        return other(x, axis=axis, descending=descending) if made is None else made[0]

    return argsort


def _sort(k: Any, other: Kernel) -> Kernel:
    @functools.wraps(other)
    def sort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
        made = _sorted(k, x, axis, descending, values=True, places=False)
        return other(x, axis=axis, descending=descending, stable=stable) if made is None else made[0]

    return sort


def _sort_pairs(k: Any, other: Kernel) -> Kernel:
    @functools.wraps(other)
    def sort_pairs(x: Any, *, axis: int = -1, descending: bool = False) -> Any:
        made = _sorted(k, x, axis, descending, values=True, places=True)
        return other(x, axis=axis, descending=descending) if made is None else made

    return sort_pairs


def _topk(k: Any, other: Kernel) -> Kernel:
    @functools.wraps(other)
    def topk(x: Any, count: int, *, axis: int = -1, largest: bool = True) -> Any:
        n = x.shape[axis] if x.ndim else 1
        # Of longer rows each pass must leave few enough for the next to be worth it.
        few = 0 < count and (n <= LARGE or count * 4 <= LARGE)
        rows = _rows(k, x, axis, n) if few else None
        if rows is None:
            return other(x, count, axis=axis, largest=largest)
        lead, total = rows.shape[:-1], prod(rows.shape[:-1])
        among, m = None, n
        while m > LARGE:
            parts = -(-m // LARGE)
            kept = empty((total, parts * count), _INT64)
            _launch(k, rows, among, None, kept, m=m, parts=parts, per=LARGE, keep=count, descending=largest)
            among, m = kept, parts * count
        values, places = empty((*lead, count), x.dtype), empty((*lead, count), _INT64)
        _launch(k, rows, among, values, places, m=m, parts=1, per=m, keep=count, descending=largest)
        return _back(values, axis), _back(places, axis)

    return topk


__all__ = ["LARGE", "LONGEST", "SMALL", "SORT", "sorting"]
