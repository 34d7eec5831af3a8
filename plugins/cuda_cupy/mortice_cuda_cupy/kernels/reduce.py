"""Direct launches of reductions over neighbouring axes of arrays in row-major order; the rest is CuPy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.elementwise import Plans
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    INTEGERS,
    MAX_BLOCKS,
    THREADS,
    Program,
    bfloat16,
    bool_,
    contiguous,
    over_elements,
    over_rows,
    prod,
    uint8,
)

VALUES = {"sum": "Sum", "prod": "Product", "max": "Largest", "min": "Least"}
TRUTHS = {"any": "Any", "all": "All"}
PLACES = {"argmax": "Greatest", "argmin": "Smallest"}
_WAYS = ("rows", "columns")
_NARROW = tuple([d for d in FLOATS if d.itemsize == 2])


def _kernels(narrow: bool) -> list[str]:
    kinds = ["{T}, {T}", *(["{T}, float", "float, {T}", "float, float"] if narrow else [])]
    return [f"reduce_{way}<{kind}, {op}>" for way in _WAYS for kind in kinds for op in VALUES.values()]


_PLACES = [f"arg_{way}<{{T}}, {op}>" for way in _WAYS for op in PLACES.values()]
HALVES = Program("reduce.cu", *_kernels(True), *_PLACES, types=_NARROW)
WHOLE = Program(
    "reduce.cu", *_kernels(False), *_PLACES, types=tuple([d for d in (*FLOATS, *INTEGERS) if d not in _NARROW])
)
TRUTH = Program(
    "reduce.cu", *[f"reduce_{way}<{kind}, {op}>" for way in _WAYS for op in TRUTHS.values()
                   for kind in ("{T}, bool", "{T}, int", "int, bool", "int, int")],
    types=(*FLOATS, *INTEGERS, bool_, uint8),
)  # fmt: skip
_BLOCKS = 1056  # that share a long sum: 8 for each of 132 multiprocessors
Kernel = Callable[..., Any]


def reductions(k: Any) -> dict[str, Kernel]:
    """Return the kernels of a backend by name, each with the one that it has as the way for what is left over."""
    made = {name: _reduction(k, name, op, getattr(k, name)) for name, op in (VALUES | TRUTHS).items()}
    made["mean"] = _reduction(k, "mean", "Sum", k.mean)
    made.update({name: _places(k, op, getattr(k, name)) for name, op in PLACES.items()})
    return made


def runs(ndim: int, axis: Any) -> list[tuple[int, int]] | None:
    """Return the runs of neighbouring axes, each as its first and the one after its last; None where an axis is not there."""
    axes = (
        range(ndim)
        if axis is None
        else sorted({a % ndim for a in ((axis,) if isinstance(axis, int) else axis)} if ndim else ())
    )
    found: list[tuple[int, int]] = []
    for a in axes:
        if found and found[-1][1] == a:
            found[-1] = found[-1][0], a + 1
        else:
            found.append((a, a + 1))
    return found


def _reduction(k: Any, name: str, op: str, other: Kernel) -> Kernel:
    import cupy

    empty, brief = cupy.empty, k.native(bfloat16)
    truth = name in TRUTHS

    def make(native: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        dtype, found = k._names[native], runs(len(shape), axis)
        known = TRUTH.types if truth else FLOATS if name == "mean" else (*FLOATS, *INTEGERS)
        if dtype not in known or not prod(shape) or not found or len(found) > 2:
            return None
        source = TRUTH if truth else HALVES if dtype in _NARROW else WHOLE
        count = prod(shape[a] for first, end in found for a in range(first, end))
        small = "bool" if truth else "{T}"
        wide = "int" if truth else "float" if dtype in _NARROW else "{T}"
        natives = {"bool": np.dtype(bool), "int": np.dtype(np.int32), "float": np.dtype(np.float32), "{T}": native}
        steps, sizes, reads = [], list(shape), "{T}"
        for last, (first, end) in enumerate(reversed(found), 1):
            outer, n, inner = prod(sizes[:first]), prod(sizes[first:end]), prod(sizes[end:])
            sizes[first:end] = [1] * (end - first)
            for final, way, dims, geometry in _stages(outer, n, inner):
                done = final and last == len(found)
                writes = small if done else wide
                kernel = source.get(dtype, f"reduce_{way}<{reads}, {writes}, {op}>")
                divisor = float(count) if done and name == "mean" else 0.0
                steps.append((kernel, *geometry, dims[0], natives[writes], (*dims[1], divisor)))
                reads = writes
        out = sizes if keepdims else [s for i, s in enumerate(shape) if not any([a <= i < b for a, b in found])]
        steps[-1] = (*steps[-1][:3], tuple(out), *steps[-1][4:])
        return steps

    plans = Plans(make)

    @functools.wraps(other)
    def run(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        if axis.__class__ is list:
            axis = tuple(axis)
        if x.dtype == brief and not x._c_contiguous:
            x = contiguous(x)  # not all of CuPy's have bfloat16
        steps = plans[x.dtype, x.shape, axis, keepdims] if x._c_contiguous else None
        if not steps:
            if x.ndim == 2 and x._f_contiguous and not x._c_contiguous:
                # The other way round it is in order.
                axes = (
                    axis
                    if axis is None
                    else (1 - axis % 2,)
                    if axis.__class__ is int
                    else tuple([1 - a % 2 for a in axis])
                )
                return run(x.T, axis=axes, keepdims=keepdims).T
            return other(x, axis=axis, keepdims=keepdims)
        for kernel, grid, block, shape, dtype, sizes in steps:
            out = empty(shape, dtype)
            kernel(grid, block, (x, out, *sizes))
            x = out
        return x

    return run


def _stages(outer: int, n: int, inner: int) -> list[tuple[bool, str, tuple[Any, tuple[int, ...]], tuple[Any, Any]]]:
    """Return the launches that reduce n: whether it is the last, the way, shape of the result and sizes, geometry."""
    made: list[Any] = []
    if inner == 1:
        parts = max(1, min(_BLOCKS // outer, n // 8192))
        per = _share(n, parts, 16)
        parts = -(-n // per)
        made.append((parts == 1, "rows", ((outer, parts), (outer, n, parts, per)), over_rows(outer * parts, per)))
        if parts > 1:
            made.append((True, "rows", ((outer,), (outer, parts, 1, parts)), over_rows(outer, parts)))
        return made
    across = min(inner, 32)
    strips = -(-inner // across)
    parts = max(1, min(_BLOCKS // (outer * strips), n // 64))
    per = _share(n, parts, 1)
    parts = -(-n // per)
    grid = (min(outer * strips * parts, MAX_BLOCKS),)
    sizes = (outer, n, inner, parts, per, across)
    made.append((parts == 1, "columns", ((parts, outer, inner), sizes), (grid, (THREADS,))))
    if parts > 1:
        whole = outer * inner
        across = min(whole, 32)
        sizes, grid = (1, parts, whole, 1, parts, across), (min(-(-whole // across), MAX_BLOCKS),)
        made.append((True, "columns", ((whole,), sizes), (grid, (THREADS,))))
    return made


def _share(n: int, parts: int, multiple: int) -> int:
    return -(-n // (parts * multiple)) * multiple if parts > 1 else n


def _places(k: Any, op: str, other: Kernel) -> Kernel:
    import cupy

    empty, native = cupy.empty, np.dtype(np.int64)

    def make(dtype: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        mine = k._names[dtype]
        if mine not in (*FLOATS, *INTEGERS) or not prod(shape):
            return None
        at = None if axis is None else axis % len(shape) if shape else 0
        outer, n, inner = (
            (1, prod(shape), 1) if at is None or not shape else (prod(shape[:at]), shape[at], prod(shape[at + 1 :]))
        )
        out = [1 if at is None or i == at else s for i, s in enumerate(shape)] if keepdims else (
            [] if at is None else [s for i, s in enumerate(shape) if i != at]
        )  # fmt: skip
        source = HALVES if mine in _NARROW else WHOLE
        if inner > 1:
            return source.get(mine, f"arg_columns<{{T}}, {op}>"), None, None, tuple(out), (outer, n, inner)
        parts = max(1, min(_BLOCKS // outer, n // 8192))
        per = _share(n, parts, 1)
        return source.get(mine, f"arg_rows<{{T}}, {op}>"), -(-n // per), per, tuple(out), (outer, n)

    plans = Plans(make)

    @functools.wraps(other)
    def run(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        plan = plans[x.dtype, x.shape, axis, keepdims] if x._c_contiguous else None
        if not plan:
            return other(x, axis=axis, keepdims=keepdims)
        kernel, parts, per, shape, sizes = plan
        out = empty(shape, native)
        if parts is None:
            kernel(*over_elements(sizes[0] * sizes[2]), (x, out, *sizes))
        elif parts == 1:
            kernel(*over_rows(*sizes), (x, None, out, *sizes, 1, per))
        else:
            found = empty((sizes[0], parts), native)
            kernel(*over_rows(sizes[0] * parts, per), (x, None, found, *sizes, parts, per))
            kernel(*over_rows(sizes[0], parts), (x, found, out, *sizes, parts, per))
        return out

    return run
