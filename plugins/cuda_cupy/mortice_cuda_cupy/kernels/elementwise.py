"""Direct launches of the commonest elementwise kernels: what CuPy's own dispatch takes longer for than the GPU.

Each kernel here is a function that knows plans: for operands of these dtypes and shapes, which kernel in which geometry.
It serves arrays in row-major order, numbers, and what repeats along leading, middle or trailing axes. Floats that lie
otherwise are brought into order; all else goes to the function that it was made from.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import packed
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    INTEGERS,
    NAMES,
    THREADS,
    Plans,
    Program,
    array_maker,
    axes_of,
    bool_,
    float32,
    float64,
    launcher,
    prod,
    tiles,
)

# Kernel by its name here and in CUDA, and the dtype of its result: that of the operands, or bool.
ONE = {
    "negative": "Negative", "abs": "Abs", "sign": "Sign", "exp": "Exp", "log": "Log", "log1p": "Log1p", "expm1": "Expm1",
    "sqrt": "Sqrt", "rsqrt": "Rsqrt", "reciprocal": "Reciprocal", "square": "Square", "sin": "Sin", "cos": "Cos",
    "tanh": "Tanh", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "relu": "Relu", "tan": "Tan", "asin": "Asin",
    "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "exp2": "Exp2", "log2": "Log2", "log10": "Log10", "trunc": "Trunc",
}  # fmt: skip
ONE_TRUTH = {"isnan": "IsNan", "isfinite": "IsFinite", "logical_not": "LogicalNot"}
TWO = {
    "add": "Add", "subtract": "Subtract", "multiply": "Multiply", "divide": "Divide", "maximum": "Maximum",
    "minimum": "Minimum", "remainder": "Remainder", "floor_divide": "FloorDivide", "pow": "Pow",
    "atan2": "Atan2", "hypot": "Hypot", "rdivide": "Rdivide",
}  # fmt: skip
TWO_TRUTH = {
    "equal": "Equal", "not_equal": "NotEqual", "less": "Less", "less_equal": "LessEqual", "greater": "Greater",
    "greater_equal": "GreaterEqual",
}  # fmt: skip
LOGIC = {"logical_and": "LogicalAnd", "logical_or": "LogicalOr"}
# What integers have too; CuPy does the rest of them.
_WHOLE = frozenset("negative square relu add subtract multiply maximum minimum".split()) | TWO_TRUTH.keys()

FLOATING = Program(
    "elementwise.cu",
    *[f"unary<{{T}}, {{T}}, {op}>" for op in ONE.values()],
    *[f"unary<{{T}}, bool, {op}>" for op in ONE_TRUTH.values()],
    *[f"binary<{{T}}, {{T}}, {op}>" for op in TWO.values()],
    *[f"binary<{{T}}, bool, {op}>" for op in TWO_TRUTH.values()],
    "clip<{T}>", "blended<{T}, AddProduct>", "blended<{T}, AddQuotient>",
)  # fmt: skip
WHOLE = Program(
    "elementwise.cu",
    *[f"unary<{{T}}, {{T}}, {op}>" for name, op in ONE.items() if name in _WHOLE],
    *[f"binary<{{T}}, {{T}}, {op}>" for name, op in TWO.items() if name in _WHOLE],
    *[f"binary<{{T}}, bool, {op}>" for op in TWO_TRUTH.values()],
    types=tuple(INTEGERS),
)
TRUTH = Program(
    "elementwise.cu", "unary<bool, bool, LogicalNot>", *[f"binary<bool, bool, {op}>" for op in LOGIC.values()],
    "binary<bool, bool, Equal>", "binary<bool, bool, NotEqual>", types=(bool_,),
)  # fmt: skip
_CAST_TO = (*FLOATS, *INTEGERS, bool_)
CAST = Program("elementwise.cu", *[f"cast<{{T}}, {NAMES[d]}>" for d in _CAST_TO], types=tuple(NAMES))
_WORD = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "u64"}
WORDS = Program(
    "elementwise.cu", *[f"{name}<{word}>" for name in ("choose", "fill") for word in _WORD.values()],
    types=(float32,),
)  # fmt: skip
_FULL, _SINGLE, _REPEATED, _NUMBER = range(4)
Kernel = Callable[..., Any]


def program_of(kernel: str, dtype: Any) -> Program | None:
    """Return the source of a kernel for that dtype, None where it has none."""
    if dtype in FLOATS and kernel not in LOGIC:
        return FLOATING
    if dtype in INTEGERS and kernel in _WHOLE:
        return WHOLE
    return TRUTH if dtype is bool_ and kernel in (*LOGIC, "logical_not", "equal", "not_equal") else None


_BLOCK = (THREADS,)


def lay(shape: Sequence[int], mine: Sequence[int]) -> tuple[int, int, int] | None:
    """Return how an operand in order lies in the shape it broadcasts to: kind, equal elements in a row, period."""
    size = prod(mine)
    if size == prod(shape):
        return _FULL, 1, 1
    if size == 1:
        return _SINGLE, 1, 1
    wide = (*[1] * (len(shape) - len(mine)), *mine)
    first = next(i for i, n in enumerate(wide) if n > 1)
    last = max(i for i, n in enumerate(wide) if n > 1) + 1
    if tuple(wide[first:last]) != tuple(shape[first:last]):
        return None
    return _REPEATED, prod(shape[last:]), size


def direct(k: Any) -> dict[str, Kernel]:
    """Return the kernels of a backend by name, each with the one that it has as the way for what is left over."""
    made: dict[str, Kernel] = {}
    for name, op in {**ONE, **ONE_TRUTH}.items():
        made[name] = _one(k, name, op, getattr(k, name), truth=name in ONE_TRUTH)
    for name, op in {**TWO, **TWO_TRUTH, **LOGIC}.items():
        made[name] = _two(k, name, op, getattr(k, name), truth=name in TWO_TRUTH or name in LOGIC)
    made.update(astype=_astype(k), where=_where(k), full=_full(k), copy=_copy(k), clip=_clip(k))
    made.update(addcmul=_blended(k, "addcmul", "AddProduct"), addcdiv=_blended(k, "addcdiv", "AddQuotient"))
    return made


def _one(k: Any, name: str, op: str, other: Kernel, *, truth: bool) -> Kernel:
    empty, boolean = array_maker(), np.dtype(bool)

    def make(dtype: Any, shape: Any) -> Any:
        source, n = program_of(name, k._names[dtype]), prod(shape)
        if source is None or not n:
            return None
        kernel = source.get(k._names[dtype], f"unary<{{T}}, {'bool' if truth else '{T}'}, {op}>")
        return launcher(kernel, tiles(n, dtype.itemsize, 4), _BLOCK, "xx=", n), boolean if truth else dtype

    plans = Plans(make)

    def rest(x: Any) -> Any:
        # CuPy's own kernels flush subnormal numbers to zero, so that floats are brought into order instead.
        if x._c_contiguous or k._names[x.dtype] not in FLOATS:
            return other(x)
        axes = axes_of[x.shape, x.strides, x.itemsize]
        return run(x.transpose(axes[0])).transpose(axes[1]) if axes else run(packed(x))

    @functools.wraps(other)
    def run(x: Any) -> Any:
        plan = plans[x.dtype, x.shape] if x._c_contiguous else None
        if not plan:
            return rest(x)
        launch, dtype = plan
        out = empty(x.shape, dtype)
        launch(x, out)
        return out

    return run


def _two(k: Any, name: str, op: str, other: Kernel, *, truth: bool) -> Kernel:
    import cupy

    ndarray, empty, boolean = cupy.ndarray, array_maker(), np.dtype(bool)

    def make(dtype: Any, left: Any, right: Any) -> Any:
        source = program_of(name, k._names[dtype])
        shape = right if left is None else left if right is None else _together(left, right)
        if source is None or shape is None or not prod(shape):
            return None
        lies = [(_NUMBER, 1, 1) if s is None else lay(shape, s) for s in (left, right)]
        if None in lies:
            return None
        n = prod(shape)
        kernel = source.get(k._names[dtype], f"binary<{{T}}, {'bool' if truth else '{T}'}, {op}>")
        (kind_x, *rest_x), (kind_y, *rest_y) = lies  # type: ignore[misc]
        sizes = n, kind_x | kind_y << 2, *rest_x, *rest_y
        zero: Any = 0.0 if k._names[dtype] in FLOATS else 0
        takes, known = "xxx=======", (*sizes, zero)
        if left is None or right is None:
            takes, known = ("=xx" if left is None else "x=x") + "======" + ("f" if zero.__class__ is float else "i"), (None, *sizes)
        launch = launcher(kernel, tiles(n, dtype.itemsize, 2), _BLOCK, takes, *known)
        return launch, shape, boolean if truth else dtype, zero

    plans = Plans(make)

    def rest(x: Any, y: Any) -> Any:
        """Bring floats into order, since CuPy's own kernels flush subnormal numbers to zero; CuPy has all else."""
        arrays = [a for a in (x, y) if a.__class__ is ndarray]
        mine = k._names[arrays[0].dtype]
        known = [_number(a, 0.0) is not None for a in (x, y) if a.__class__ is not ndarray]
        if program_of(name, mine) is None or mine not in FLOATS or not all(known):
            return other(x, y)
        shape = arrays[0].shape if len(arrays) == 1 else _together(x.shape, y.shape)
        if shape is None or not prod(shape):
            return other(x, y)
        if not all([a._c_contiguous for a in arrays]):
            axes = [axes_of[a.shape, a.strides, a.itemsize] for a in arrays]
            if axes[0] and axes[0] == axes[-1] and arrays[0].shape == arrays[-1].shape:
                turned = [a.transpose(axes[0][0]) if a.__class__ is ndarray else a for a in (x, y)]
                return run(*turned).transpose(axes[0][1])
            return run(*[packed(a) if a.__class__ is ndarray and not a._c_contiguous else a for a in (x, y)])
        # What repeats in another way than the kernels know is written out.
        return run(*[a if lay(shape, a.shape) else packed(cupy.broadcast_to(a, shape)) for a in (x, y)])

    @functools.wraps(other)
    def run(x: Any, y: Any) -> Any:
        if x.__class__ is ndarray and y.__class__ is ndarray:
            plan = x._c_contiguous and y._c_contiguous and plans[x.dtype, x.shape, y.shape]
            if not plan:
                return rest(x, y)
            launch, shape, dtype, _ = plan
            out = empty(shape, dtype)
            launch(x, y, out)
            return out
        array, number = (y, x) if y.__class__ is ndarray else (x, y)
        plan = array._c_contiguous and plans[array.dtype, None if array is y else array.shape, array.shape if array is y else None]
        number = _number(number, plan[3]) if plan else None
        if number is None:
            return rest(x, y)
        launch, shape, dtype, _ = plan
        out = empty(shape, dtype)
        launch(array, out, number)
        return out

    return run


def _number(value: Any, like: Any) -> Any:
    """Return a Python number as a float or int argument; None where it is CuPy's to convert."""
    cls = value.__class__
    if cls is float:
        return value if like.__class__ is float else None
    if (cls is not int and cls is not bool) or not -(1 << 63) <= value < 1 << 63:
        return None
    return like.__class__(value)


def _together(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...] | None:
    """Return the shape that two operands broadcast to; None where they do not, for CuPy to say so."""
    if left == right:
        return tuple(left)
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        return None


def _astype(k: Any) -> Kernel:
    other, empty = k.astype, array_maker()

    def make(native: Any, shape: Any, dtype: Any) -> Any:
        mine, n = k._names[native], prod(shape)
        # CuPy rounds float64 to halves in one step.
        if mine not in NAMES or dtype not in _CAST_TO or not n or (mine is float64 and dtype.itemsize == 2):
            return None
        wide = max(native.itemsize, dtype.itemsize)
        kernel = CAST.get(mine, f"cast<{{T}}, {NAMES[dtype]}>")
        return launcher(kernel, tiles(n, wide, 4), _BLOCK, "xx=", n), k.native(dtype)

    plans = Plans(make)

    @functools.wraps(other)
    def astype(x: Any, dtype: Any) -> Any:
        plan = plans[x.dtype, x.shape, dtype] if x._c_contiguous else None
        if not plan:
            return other(x, dtype)
        launch, native = plan
        out = empty(x.shape, native)
        launch(x, out)
        return out

    return astype


@functools.lru_cache(1024)
def _word(value: Any, sign: float, dtype: Any) -> Any:
    """Return the bits of a number in a dtype; the sign tells zeros apart."""
    with np.errstate(all="ignore"):
        return np.uint64(int(np.array(value).astype(dtype).view(f"u{dtype.itemsize}")))


def _bits(value: Any, dtype: Any) -> Any:
    """Return the bits of a Python number as kernels take them; None where they are CuPy's to find."""
    cls, kind = value.__class__, dtype.kind
    if cls is float:
        return _word(value, math.copysign(1, value), dtype) if kind in "fV" and value == value else None
    if cls is bool:
        return _word(int(value), 1.0, dtype) if kind != "c" else None
    if cls is not int or kind == "c":
        return None
    low, high = (-(1 << 53), 1 << 53) if kind in "fV" else (0, 1) if kind == "b" else _ends(dtype)
    return _word(value, 1.0, dtype) if low <= value <= high else None


@functools.cache
def _ends(dtype: Any) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _where(k: Any) -> Kernel:
    import cupy

    other, ndarray, empty = k.where, cupy.ndarray, array_maker()

    def make(dtype: Any, *shapes: Any) -> Any:
        shape: Any = ()
        for s in shapes:
            shape = shape if s is None or shape is None else _together(shape, s)
        if shape is None or not prod(shape) or dtype.itemsize not in _WORD:
            return None
        lies = [(_NUMBER, 1, 1) if s is None else lay(shape, s) for s in shapes]
        if None in lies:
            return None
        n, kinds = prod(shape), sum(kind << 2 * i for i, (kind, *_) in enumerate(lies))  # type: ignore[misc]
        kernel = WORDS.get(float32, f"choose<{_WORD[dtype.itemsize]}>")
        lanes = 16 // dtype.itemsize
        grid = (-(-n // (THREADS * min(lanes, 4))),)
        sizes = n, kinds, *[v for _, *rest in lies for v in rest]  # type: ignore[misc]
        return launcher(kernel, grid, _BLOCK, f"xoox{'=' * len(sizes)}ww", *sizes), shape

    plans = Plans(make)

    @functools.wraps(other)
    def where(cond: Any, x: Any, y: Any) -> Any:
        one, two = x.__class__ is ndarray, y.__class__ is ndarray
        if not cond._c_contiguous or cond.dtype.kind != "b" or not (one or two):
            return other(cond, x, y)
        dtype = (x if one else y).dtype
        left = right = 0
        if not one:
            left = _bits(x, dtype)
        elif not x._c_contiguous:
            left = None
        if not two:
            right = _bits(y, dtype)
        elif not y._c_contiguous:
            right = None
        plan = left is not None and right is not None
        plan = plan and plans[dtype, cond.shape, x.shape if one else None, y.shape if two else None]
        if not plan:
            return other(cond, x, y)
        launch, shape = plan
        out = empty(shape, dtype)
        launch(cond, x if one else None, y if two else None, out, left, right)
        return out

    return where


def _full(k: Any) -> Kernel:
    other, empty = k.full, array_maker()

    def make(itemsize: int, n: int) -> Any:
        return launcher(WORDS.get(float32, f"fill<{_WORD[itemsize]}>"), tiles(n, itemsize, 4), _BLOCK, "x=w", n)

    plans = Plans(make)

    @functools.wraps(other)
    def full(shape: Any, value: Any, *, dtype: Any, device: Any) -> Any:
        native, n = k.native(dtype), prod(shape)
        if n and (value.__class__ is int or value.__class__ is bool) and not value:
            out = empty(shape if shape.__class__ is tuple else tuple(shape), native)
            out.data.memset_async(0, out.nbytes)
            return out
        word = _bits(value, native) if value and native.itemsize in _WORD else None
        if word is None or not n:
            return other(shape, value, dtype=dtype, device=device)
        out = empty(shape, native)
        plans[native.itemsize, n](out, word)
        return out

    return full


def _copy(k: Any) -> Kernel:
    empty = array_maker()

    @functools.wraps(k.copy)
    def copy(x: Any) -> Any:
        if not x._c_contiguous:
            return packed(x)
        # CuPy's own copy asks much of the array before it does this.
        out = empty(x.shape, x.dtype)
        if size := x.nbytes:
            out.data.copy_from_device_async(x.data, size)
        return out

    return copy


def _clip(k: Any) -> Kernel:
    other, empty = k.clip, array_maker()

    def make(dtype: Any, shape: Any) -> Any:
        source, n = program_of("clip", k._names[dtype]), prod(shape)
        kernel = source and n and source.get(k._names[dtype], "clip<{T}>")
        return kernel and launcher(kernel, tiles(n, dtype.itemsize, 4), _BLOCK, "xx=ff", n)

    plans = Plans(make)

    @functools.wraps(other)
    def clip(x: Any, lo: Any = None, hi: Any = None) -> Any:
        launch = lo.__class__ is hi.__class__ is float and x._c_contiguous and plans[x.dtype, x.shape]
        if not launch:
            return other(x, lo, hi)
        out = empty(x.shape, x.dtype)
        launch(x, out, lo, hi)
        return out

    return clip


def _blended(k: Any, name: str, op: str) -> Kernel:
    import cupy

    other, ndarray, empty = getattr(k, name), cupy.ndarray, array_maker()

    def make(dtype: Any, shape: Any) -> Any:
        mine, n = k._names[dtype], prod(shape)
        if mine not in FLOATS or not n:
            return None
        return launcher(FLOATING.get(mine, f"blended<{{T}}, {op}>"), tiles(n, dtype.itemsize, 2), _BLOCK, "xxox=ff", n)

    plans = Plans(make)

    @functools.wraps(other)
    def blended(x: Any, a: Any, b: Any, value: Any = 1) -> Any:
        times, arrays = _number(value, 0.0), b.__class__ is ndarray
        number = 0.0 if arrays else _number(b, 0.0)
        if times is None or number is None or x.__class__ is not ndarray or a.__class__ is not ndarray:
            return other(x, a, b, value)
        launch = x.shape == a.shape and (not arrays or b.shape == a.shape) and plans[x.dtype, x.shape]
        if not launch or not (x._c_contiguous and a._c_contiguous and (not arrays or b._c_contiguous)):
            return other(x, a, b, value)
        out = empty(x.shape, x.dtype)
        launch(x, a, b if arrays else None, out, number, times)
        return out

    return blended
