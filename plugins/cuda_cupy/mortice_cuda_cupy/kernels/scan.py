"""Running sums, products and extremes, in one launch or, where lines are long and few, in three."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    INTEGERS,
    THREADS,
    Program,
    empty,
    over_elements,
    over_rows,
    prod,
)

_OPERATIONS = {
    "cumulative_sum": "RunningSum", "cumulative_prod": "RunningProduct", "logcumsumexp": "RunningLogSum",
    "cumulative_max": "RunningMax", "cumulative_min": "RunningMin",
}  # fmt: skip
_WHOLE = {**_OPERATIONS, "cumulative_prod": "RunningWholeProduct"}
_PLACED = ("cumulative_max", "cumulative_min")
_KERNELS = ("scan_rows", "scan_columns", "scan_ends")


def _expressions(operations: list[str]) -> list[str]:
    return [f"{kernel}<{{T}}, {op}<{{T}}>>" for kernel in _KERNELS for op in operations]


FLOATING = Program("scan.cu", *_expressions(list(_OPERATIONS.values())))
WHOLE = Program(
    "scan.cu", *_expressions([op for name, op in _WHOLE.items() if name != "logcumsumexp"]), types=tuple(INTEGERS)
)
_STATE = 16  # bytes that the state of any operation takes at most
_ROWS = 1056  # lines at a time that keep a device busy: 8 for each of 132 multiprocessors
_COLUMNS = 1 << 16  # threads that do
_MOST = 256  # parts that a thread goes through one after the other
Kernel = Callable[..., Any]


def scans(k: Any) -> dict[str, Kernel]:
    """Return the kernels of a backend by name, each with the one that it has as the way for what is left over."""
    return {name: _scan(k, name, getattr(k, name)) for name in _OPERATIONS}


def _scan(k: Any, name: str, other: Kernel) -> Kernel:
    @functools.wraps(other)
    def run(x: Any, *, axis: int) -> Any:
        dtype = k._names[x.dtype]
        source, op = (FLOATING, _OPERATIONS[name]) if dtype in FLOATS else (WHOLE, _WHOLE[name])
        if not x.size or not x.ndim or dtype not in source.types or (source is WHOLE and name == "logcumsumexp"):
            return other(x, axis=axis)
        axis %= x.ndim
        x = contiguous(x)
        outer, n, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
        out = empty(x.shape, x.dtype)
        places = empty(x.shape, np.dtype(np.int64)) if name in _PLACED else None
        parts, per = split(outer, n, inner)
        if inner == 1:
            grid, (across, down) = over_rows(outer * parts, per)
            way, sizes, geometry = "scan_rows", (outer, n, parts, per), (grid, (min(across, THREADS), down))
        else:
            way, sizes, geometry = "scan_columns", (outer, n, inner, parts, per), over_elements(outer * parts * inner)
        scan = source.get(dtype, f"{way}<{{T}}, {op}<{{T}}>>")
        ends = None
        if parts > 1:
            ends = empty((outer * parts * inner * _STATE,), np.dtype(np.uint8))
            scan(*geometry, (x, None, None, ends, *sizes))
            grid = over_elements(outer * inner)[0] if inner > 1 else (min(outer, _ROWS),)
            source.get(dtype, f"scan_ends<{{T}}, {op}<{{T}}>>")(grid, (THREADS,), (ends, outer, parts, inner))
        scan(*geometry, (x, out, places, ends, *sizes))
        return out if places is None else (out, places)

    return run


def split(outer: int, n: int, inner: int) -> tuple[int, int]:
    """Return into how many parts a line goes, and how long they are."""
    if inner == 1:
        parts, multiple = max(1, min(_ROWS // outer, n // 8192)), 16
    else:
        parts, multiple = max(1, min(_COLUMNS // (outer * inner), n // 64, _MOST)), 1
    if parts == 1:
        return 1, n
    per = -(-n // (parts * multiple)) * multiple
    return -(-n // per), per


__all__ = ["scans", "split"]
