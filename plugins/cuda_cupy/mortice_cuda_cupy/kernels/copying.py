"""Copies into row-major order, whatever lies behind: matrices column by column in tiles, other strides word by word."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

from mortice_cuda_cupy.kernels.launch import THREADS, Plans, Program, axes_of, empty, float32, in_order, launcher, prod

WORD = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "u64", 16: "Word16"}
_COUNTS = ("unsigned", "i64")
_EACH = 4  # words that a thread copies
COPY = Program(
    "copy.cu", *[f"transpose<{word}>" for size, word in WORD.items() if size < 16],
    *[f"{name}<{word}, {i}>" for name in ("strided", "strided_alike") for word in WORD.values() for i in _COUNTS],
    *[f"join<{word}>" for word in WORD.values()], types=(float32,),
)  # fmt: skip


def contiguous(x: Any) -> Any:
    """Return x in row-major order; None stays."""
    return x if x is None or in_order(x) else packed(x)


def turns(x: Any, *others: Any) -> Any:
    """Return the axes in the order in which arrays of one shape lie, and their places; None for row-major order, or none in common.

    What goes through memory element by element need not copy channels-last arrays.
    """
    if in_order(x) or any([y.strides != x.strides for y in others]):
        return None
    return axes_of[x.shape, x.strides, x.itemsize] or None


def packed(x: Any) -> Any:
    """Return a copy in row-major order."""
    import cupy

    plan = _plans[x.shape, x.strides, x.itemsize]
    if not plan:
        return cupy.ascontiguousarray(x)
    out = empty(x.shape, x.dtype)
    at = x.data.ptr
    for size, launch in plan:
        if at % size == 0:
            launch(x, out)
            return out
    raise AssertionError("the last word has the size of an element")


def _plan(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Any:
    """Return the ways of a copy, that with the longest words first; None where it is CuPy's."""
    merged = _merged(shape, strides, itemsize)
    return merged and (_transposed(merged, itemsize) or _strided(merged, itemsize))


def _merged(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Any:
    """Return sizes and strides of at most four axes, None where there are more."""
    merged: list[list[int]] = []
    for n, s in zip(shape, strides):
        if n == 1:
            continue
        if merged and merged[-1][1] == s * n:
            merged[-1] = [merged[-1][0] * n, s]
        else:
            merged.append([n, s])
    return merged if merged and prod(shape) and itemsize in WORD and len(merged) <= 4 else None


def _transposed(merged: list[list[int]], itemsize: int) -> Any:
    """Return the way of matrices that lie column by column."""
    merged = [[1, 0], *merged] if len(merged) == 2 else merged
    if len(merged) != 3 or itemsize > 8:
        return None
    (batches, batch), (rows, step), (columns, lead) = merged
    if step != itemsize or lead <= 0 or batch < 0 or min(rows, columns) < 8:
        return None
    side = 32 if itemsize > 4 else 64
    grid = (min(-(-rows // side) * -(-columns // side) * batches, 1 << 20),)
    sizes = rows, columns, batches, batch // itemsize, lead // itemsize
    return [(itemsize, launcher(COPY.get(float32, f"transpose<{WORD[itemsize]}>"), grid, (32, 8), "xx=====", *sizes))]


def _strided(merged: list[list[int]], itemsize: int, arrays: int = 0) -> Any:
    """Return the ways of one array, or of so many that lie alike."""
    merged = [[1, 0]] * (4 - len(merged)) + merged
    ways = []
    for size in (16, 8, 4, 2, 1):
        words = size // itemsize
        if size < itemsize or (words > 1 and (merged[3][1] != itemsize or merged[3][0] % words)):
            continue
        if any([s % size for _, s in merged[:3]]):
            continue
        rows = [*merged[:3], [merged[3][0] // words, size if words > 1 else merged[3][1]]]
        total = prod([n for n, _ in rows])
        sizes = total, *[n for n, _ in rows[1:]], *[s // size for _, s in rows]
        blocks, kinds = -(-total // (THREADS * _EACH)), f"<{WORD[size]}, {_COUNTS[total >= 1 << 31]}>"
        if arrays:
            absent = _TOGETHER - arrays
            takes, known, grid = f"x========{'x' * arrays}{'=' * absent}", (*sizes, *[None] * absent), (blocks, arrays)
        else:
            takes, known, grid = "xx========", sizes, (blocks,)
        kernel = COPY.get(float32, f"{'strided_alike' if arrays else 'strided'}{kinds}")
        ways.append((size, launcher(kernel, grid, (THREADS,), takes, *known)))
    return ways


def _plan_alike(shape: Sequence[int], strides: Sequence[int], itemsize: int, arrays: int) -> Any:
    merged = _merged(shape, strides, itemsize)
    return merged and _strided(merged, itemsize, arrays)


_plans, _plans_alike = Plans(_plan), Plans(_plan_alike)
_TOGETHER = 8  # arrays that one launch copies or joins


def together(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays in row-major order; those that lie alike are copied by one launch."""
    made, groups = list(arrays), {}
    for i, x in enumerate(arrays):
        if not x._c_contiguous:
            groups.setdefault((x.shape, x.strides, x.dtype), []).append(i)
    for where in groups.values():
        for at in range(0, len(where), _TOGETHER):
            some = where[at : at + _TOGETHER]
            for i, x in zip(some, _alike([arrays[i] for i in some])):
                made[i] = x
    return made


def _alike(arrays: Sequence[Any]) -> list[Any]:
    first = arrays[0]
    plan = len(arrays) > 1 and _plans_alike[first.shape, first.strides, first.itemsize, len(arrays)]
    if not plan:
        return [packed(x) for x in arrays]
    launch = next(launch for size, launch in plan if not any([x.data.ptr % size for x in arrays]))
    out = empty((len(arrays), *first.shape), first.dtype)
    launch(out, *arrays)
    return [out[i] for i in range(len(arrays))]


def joined(arrays: Sequence[Any], axis: int) -> Any:
    """Return arrays of one dtype one behind the other; None where they are CuPy's to join.

    CuPy copies the addresses of more than eight arrays to the device, which cannot be captured, and takes a launch for each
    of fewer.
    """
    first = arrays[0]
    axis %= max(first.ndim, 1)
    plan = _joins[axis, tuple([a.shape for a in arrays]), tuple([a.dtype for a in arrays])]
    if not plan:
        return None
    shape, rows, widths, word = plan
    out = empty(shape, first.dtype)
    if word:
        arrays = [contiguous(a) for a in arrays if a.size]
        at = functools.reduce(operator.or_, [a.data.ptr for a in arrays])
        for begin, launch in _join_plans[min(word, at & -at), rows, widths]:
            launch(out, *arrays[begin : begin + _TOGETHER])
    return out


def _join(axis: int, shapes: Sequence[Any], dtypes: Sequence[Any]) -> Any:
    """Return the shape of arrays joined, its rows, the bytes that each array has of one, and the longest word that these consist of."""
    first, dtype = list(shapes[0]), dtypes[0]
    if not first or dtype.itemsize not in WORD or any([d != dtype for d in dtypes]):
        return None
    rest = lambda shape: (len(shape), shape[:axis], shape[axis + 1 :])
    if any([rest(s) != rest(shapes[0]) for s in shapes]):
        return None
    first[axis] = sum([s[axis] for s in shapes])
    rows = prod(first[:axis])
    widths = tuple([prod(s) // rows * dtype.itemsize for s in shapes if prod(s)])
    return tuple(first), rows, widths, widths and next(size for size in (16, 8, 4, 2, 1) if not any([w % size for w in widths]))


def _join_launches(size: int, rows: int, widths: Sequence[int]) -> list[Any]:
    """Return launches of `join` in words of a size, each with the number of its first array."""
    kernel, row, begin, made = COPY.get(float32, f"join<{WORD[size]}>"), sum(widths) // size, 0, []
    for at in range(0, len(widths), _TOGETHER):
        ends = list(itertools.accumulate([w // size for w in widths[at : at + _TOGETHER]]))
        count = len(ends)
        takes = f"x==={'x' * count}{'=' * (2 * _TOGETHER - count)}"
        known = rows, row, begin, *[None] * (_TOGETHER - count), *ends, *ends[-1:] * (_TOGETHER - count)
        made.append((at, launcher(kernel, (-(-rows * ends[-1] // (THREADS * _EACH)),), (THREADS,), takes, *known)))
        begin += ends[-1]
    return made


_joins, _join_plans = Plans(_join), Plans(_join_launches)

__all__ = ["COPY", "WORD", "joined", "packed", "together", "turns"]
