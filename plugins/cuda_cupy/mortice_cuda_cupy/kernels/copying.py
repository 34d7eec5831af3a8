"""Copies into row-major order, whatever lies behind: matrices column by column in tiles, other strides word by word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice_cuda_cupy.kernels.launch import THREADS, Plans, Program, float32, prod

WORD = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "u64", 16: "Word16"}
_COUNTS = ("unsigned", "i64")
_EACH = 4  # words that a thread copies
COPY = Program(
    "copy.cu", *[f"transpose<{word}>" for size, word in WORD.items() if size < 16],
    *[f"strided<{word}, {i}>" for word in WORD.values() for i in _COUNTS], types=(float32,),
)  # fmt: skip


def packed(x: Any) -> Any:
    """Return a copy in row-major order."""
    import cupy

    plan = _plans[x.shape, x.strides, x.itemsize]
    if not plan:
        return cupy.ascontiguousarray(x)
    out = cupy.empty(x.shape, x.dtype)
    at = x.data.ptr
    for size, kernel, grid, block, sizes in plan:
        if at % size == 0:
            kernel(grid, block, (x, out, *sizes))
            return out
    raise AssertionError("the last word has the size of an element")


def _plan(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Any:
    """Return the ways of a copy, that with the longest words first; None where it is CuPy's."""
    merged: list[list[int]] = []
    for n, s in zip(shape, strides):
        if n == 1:
            continue
        if merged and merged[-1][1] == s * n:
            merged[-1] = [merged[-1][0] * n, s]
        else:
            merged.append([n, s])
    if not merged or not prod(shape) or itemsize not in WORD or len(merged) > 4:
        return None
    return _transposed(merged, itemsize) or _strided(merged, itemsize)


def _transposed(merged: list[list[int]], itemsize: int) -> Any:
    """Return the way of matrices that lie column by column."""
    merged = [[1, 0], *merged] if len(merged) == 2 else merged
    if len(merged) != 3 or itemsize > 8:
        return None
    (batches, batch), (rows, step), (columns, lead) = merged
    if step != itemsize or lead <= 0 or batch < 0 or min(rows, columns) < 8:
        return None
    grid = (min(-(-rows // 32) * -(-columns // 32) * batches, 1 << 20),)
    sizes = (rows, columns, batches, batch // itemsize, lead // itemsize)
    return [(itemsize, COPY.get(float32, f"transpose<{WORD[itemsize]}>"), grid, (32, 8), sizes)]


def _strided(merged: list[list[int]], itemsize: int) -> Any:
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
        kernel = COPY.get(float32, f"strided<{WORD[size]}, {_COUNTS[total >= 1 << 31]}>")
        sizes = (total, *[n for n, _ in rows[1:]], *[s // size for _, s in rows])
        ways.append((size, kernel, (-(-total // (THREADS * _EACH)),), (THREADS,), sizes))
    return ways


_plans = Plans(_plan)

__all__ = ["COPY", "WORD", "packed"]
