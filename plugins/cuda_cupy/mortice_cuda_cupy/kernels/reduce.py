"""Direct launches of reductions over neighbouring axes of arrays in row-major order; the rest is CuPy's."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    INTEGERS,
    MAX_BLOCKS,
    THREADS,
    Plans,
    Program,
    array_maker,
    bfloat16,
    bool_,
    launcher,
    prod,
    uint8,
)
from mortice_cuda_cupy.waiting import waiting

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
_WIDE = "work_t<{T}>"
SPREAD = Program(
    "reduce.cu", "variance_rows<{T}>", "variance_parts<{T}>",
    *[f"reduce_{way}<{kind}>" for way in _WAYS
      for kind in (f"{{T}}, {_WIDE}, Squares", "{T}, {T}, Length", f"{_WIDE}, {{T}}, Root", f"{_WIDE}, {_WIDE}, Sum")],
)  # fmt: skip
TRUTH = Program(
    "reduce.cu", *[f"reduce_{way}<{kind}, {op}>" for way in _WAYS for op in TRUTHS.values()
                   for kind in ("{T}, bool", "{T}, int", "int, bool", "int, int")],
    types=(*FLOATS, *INTEGERS, bool_, uint8),
)  # fmt: skip
_BLOCKS = 528  # that share a long sum: 4 for each of 132 multiprocessors, which all run at a time
_AT_ONCE = 1 << 22  # elements that are not worth a second launch
Kernel = Callable[..., Any]


def reductions(k: Any) -> dict[str, Kernel]:
    """Return the kernels of a backend by name, each with the one that it has as the way for what is left over."""
    made = {name: _reduction(k, name, op, getattr(k, name)) for name, op in (VALUES | TRUTHS).items()}
    made["mean"] = _reduction(k, "mean", "Sum", k.mean)
    made.update(vector_norm=_norm(k, k.vector_norm), var=_variance(k, k.var), index_range=_index_range(k, k.index_range))
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


def _steps(
    k: Any, source: Program, ops: Callable[[bool, bool], str], small: str, wide: str, native: Any, shape: Any, axis: Any,
    keepdims: bool, mean: bool = False,
) -> Any:  # fmt: skip
    """Return the launches of a reduction, None where it is not here; `ops` names the operation of a first and of a last one."""
    dtype, found = k._names[native], runs(len(shape), axis)
    if not prod(shape) or not found or len(found) > 2:
        return None
    count = prod(shape[a] for first, end in found for a in range(first, end))
    natives = {"bool": np.dtype(bool), "int": np.dtype(np.int32), "{T}": native}
    natives[wide] = natives.get(wide, native if native.itemsize > 2 else np.dtype(np.float32))
    stages, sizes = [], list(shape)
    for first, end in reversed(found):
        outer, n, inner = prod(sizes[:first]), prod(sizes[first:end]), prod(sizes[end:])
        sizes[first:end] = [1] * (end - first)
        stages += _stages(outer, n, inner, native.itemsize)
    steps, reads = [], "{T}"
    for i, (way, result, numbers, geometry) in enumerate(stages):
        first, last = i == 0, i == len(stages) - 1
        writes = small if last else wide
        kernel = source.get(dtype, f"reduce_{way}<{reads}, {writes}, {ops(first, last)}>")
        divisor = float(count) if last and mean else 0.0
        launch = launcher(kernel, *geometry, f"xx{'=' * (len(numbers) + 1)}", *numbers, divisor)
        steps.append((launch, result, natives[writes]))
        reads = writes
    out = sizes if keepdims else [s for i, s in enumerate(shape) if not any([a <= i < b for a, b in found])]
    steps[-1] = (steps[-1][0], tuple(out), steps[-1][2])
    return steps


def _done(empty: Any, steps: Any, x: Any) -> Any:
    for launch, shape, dtype in steps:
        out = empty(shape, dtype)
        launch(x, out)
        x = out
    return x


def _reduction(k: Any, name: str, op: str, other: Kernel) -> Kernel:
    empty, brief = array_maker(), k.native(bfloat16)
    truth = name in TRUTHS

    def make(native: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        dtype = k._names[native]
        known = TRUTH.types if truth else FLOATS if name == "mean" else (*FLOATS, *INTEGERS)
        if dtype not in known:
            return None
        source = TRUTH if truth else HALVES if dtype in _NARROW else WHOLE
        wide = "int" if truth else "float" if dtype in _NARROW else "{T}"
        small = "bool" if truth else "{T}"
        return _steps(k, source, lambda first, last: op, small, wide, native, shape, axis, keepdims, name == "mean")

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
        return _done(empty, steps, x)

    return run


def _norm(k: Any, other: Kernel) -> Kernel:
    empty = array_maker()
    ops = {(True, True): "Length", (True, False): "Squares", (False, False): "Sum", (False, True): "Root"}

    def make(native: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        if k._names[native] not in FLOATS:
            return None
        return _steps(k, SPREAD, lambda *ends: ops[ends], "{T}", _WIDE, native, shape, axis, keepdims)

    plans = Plans(make)

    @functools.wraps(other)
    def run(x: Any, *, p: float, axis: Any = None, keepdims: bool = False) -> Any:
        axis = tuple(axis) if axis.__class__ is list else axis
        steps = plans[x.dtype, x.shape, axis, keepdims] if p == 2 and x._c_contiguous else None
        return _done(empty, steps, x) if steps else other(x, p=p, axis=axis, keepdims=keepdims)

    return run


def _variance(k: Any, other: Kernel) -> Kernel:
    empty = array_maker()

    def make(native: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        dtype, found = k._names[native], runs(len(shape), axis)
        if dtype not in FLOATS or not prod(shape) or not found or len(found) > 1 or prod(shape[found[0][1] :]) != 1:
            return None
        first, end = found[0]
        rows, n = prod(shape[:first]), prod(shape[first:end])
        parts, per = _parts(rows, n)
        out = (*shape[:first], *[1] * (len(shape) - first)) if keepdims else (*shape[:first], *shape[end:])
        sizes = (rows, n, parts, per)
        kernels = tuple([SPREAD.get(dtype, f"variance_{part}<{{T}}>") for part in ("rows", "parts")])
        wide = native if native.itemsize > 2 else np.dtype(np.float32)
        return *kernels, _lines(rows * parts, per), wide, out, sizes, n

    plans = Plans(make)

    @functools.wraps(other)
    def run(x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
        axis = tuple(axis) if axis.__class__ is list else axis
        plan = plans[x.dtype, x.shape, axis, keepdims] if x._c_contiguous else None
        if not plan:
            return other(x, axis=axis, correction=correction, keepdims=keepdims)
        kernel, join, geometry, wide, shape, sizes, n = plan
        out, freedom = empty(shape, x.dtype), float(max(n - correction, 0))
        if sizes[2] == 1:
            kernel(*geometry, (x, None, out, *sizes, freedom))
            return out
        found = empty((2, sizes[0] * sizes[2]), wide)
        kernel(*geometry, (x, found, None, *sizes, freedom))
        join((min(-(-sizes[0] // 8), MAX_BLOCKS),), (32, 8), (found, out, *sizes, freedom))
        return out

    return run


EXTENT = Program("reduce.cu", "extent<{T}>", types=tuple(INTEGERS))
LOOK = Program("reduce.cu", "outside<{T}>", "look<{T}>", types=tuple(INTEGERS))
FEW = 1 << 16  # that one block looks at


class _Ends(threading.local):
    """Memory of the host that kernels write to."""

    def __init__(self) -> None:
        import cupy

        self.held = np.frombuffer(cupy.cuda.alloc_pinned_memory(16), np.uint8, 16)
        self.address = int(self.held.ctypes.data)


def _index_range(k: Any, other: Kernel) -> Kernel:
    import cupy

    ends: list[_Ends] = []

    @functools.wraps(other)
    def index_range(x: Any) -> tuple[int, int]:
        dtype = k._names[x.dtype]
        if dtype not in INTEGERS or not 0 < x.size <= FEW or not x._c_contiguous:
            return other(x)  # type: ignore[no-any-return]
        k.refuse_in_capture("it reads values of the device, which are there only after a replay")
        waiting.told()
        if not ends:
            ends.append(_Ends())
        place = ends[0]
        # Straight to the host: one launch and one wait, and nothing to copy.
        EXTENT.get(dtype, "extent<{T}>")((1,), (min(-(-x.size // 32) * 32, 1024),), (x, place.address, x.size))
        cupy.cuda.get_current_stream().synchronize()
        k.raise_late()
        low, high = place.held.view(x.dtype)[:2].tolist()
        return low, high

    return index_range


def _lines(lines: int, n: int) -> tuple[tuple[int], tuple[int, int]]:
    """Return grid and block for lines of n elements: a warp each where they are short, else a block."""
    if n <= 1024:
        return (min(-(-lines // 8), MAX_BLOCKS),), (32, 8)
    return (min(lines, MAX_BLOCKS),), (THREADS, 1)


def _parts(rows: int, n: int) -> tuple[int, int]:
    """Return into how many parts rows go, and how long they are."""
    per = _share(n, max(1, min(_BLOCKS // rows, n // 8192)), 16)
    return -(-n // per), per


def _stages(outer: int, n: int, inner: int, itemsize: int) -> list[tuple[str, Any, tuple[Any, ...], tuple[Any, Any]]]:
    """Return the launches that reduce n: the way, shape of the result, sizes, geometry."""
    made: list[Any] = []
    if inner == 1:
        parts, per = _parts(outer, n)
        made.append(("rows", (outer, parts), (outer, n, parts, per), _lines(outer * parts, per)))
        if parts > 1:
            made.append(("rows", (outer,), (outer, parts, 1, parts), _lines(outer, parts)))
        return made
    across, packs, strips = _strips(inner, itemsize)
    parts = max(1, min(_BLOCKS // (outer * strips), n // 64))
    if parts > 1 and n <= 2048 and outer * n * inner <= _AT_ONCE:
        # Narrower strips make blocks too, and leave nothing to be joined: a thread still has at most 32 rows.
        parts, (across, packs, strips) = 1, _strips(inner, itemsize, max(4, min(32, 8192 // n)))
    per = _share(n, parts, 1)
    parts = -(-n // per)
    grid = (min(outer * strips * parts, MAX_BLOCKS),)
    made.append(("columns", (parts, outer, inner), (outer, n, inner, parts, per, across, packs), (grid, (THREADS,))))
    if parts > 1:
        whole = outer * inner
        across, packs, strips = _strips(whole, max(itemsize, 4))
        sizes, grid = (1, parts, whole, 1, parts, across, packs), (min(strips, MAX_BLOCKS),)
        made.append(("columns", (whole,), sizes, (grid, (THREADS,))))
    return made


def _strips(inner: int, itemsize: int, most: int = 32) -> tuple[int, Any, int]:
    """Return how many threads of a block lie side by side, whether each takes columns of 16 bytes, and the strips there are."""
    lanes = min(16 // itemsize, 8)
    packs = inner % lanes == 0
    wide = inner // lanes if packs else inner
    across = min(wide, most)
    return across, np.bool_(packs), -(-wide // across)


def _share(n: int, parts: int, multiple: int) -> int:
    return -(-n // (parts * multiple)) * multiple if parts > 1 else n


def _places(k: Any, op: str, other: Kernel) -> Kernel:
    empty, native = array_maker(), np.dtype(np.int64)

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
        strips = -(-outer * inner // 32)
        parts = max(1, min(_BLOCKS // outer, n // 8192) if inner == 1 else min(_BLOCKS // strips, n // 256))
        per = _share(n, parts, 16)
        parts = -(-n // per)
        if inner == 1:
            kernel, sizes, lines = source.get(mine, f"arg_rows<{{T}}, {op}>"), (outer, n), outer
            first, last = _lines(outer * parts, per), _lines(outer, parts)
        else:
            kernel, sizes, lines = source.get(mine, f"arg_columns<{{T}}, {op}>"), (outer, n, inner), outer * inner
            first, last = [((min(strips * count, MAX_BLOCKS),), (32, 8)) for count in (parts, 1)]
        return kernel, first, last, (lines, parts), tuple(out), (*sizes, parts, per)

    plans = Plans(make)

    @functools.wraps(other)
    def run(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        plan = plans[x.dtype, x.shape, axis, keepdims] if x._c_contiguous else None
        if not plan:
            return other(x, axis=axis, keepdims=keepdims)
        kernel, first, last, found, shape, sizes = plan
        out = empty(shape, native)
        if found[1] == 1:
            kernel(*first, (x, None, out, *sizes))
        else:
            among = empty(found, native)
            kernel(*first, (x, None, among, *sizes))
            kernel(*last, (x, among, out, *sizes))
        return out

    return run
