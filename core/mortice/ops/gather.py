"""Reading and writing at positions given as tensors: gather, scatter, take, put, the index_ and masked_ families."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice.backends.movement import highest, lowest
from mortice.call import no_tensor
from mortice.dtype import float32, float64, int32, int64
from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.mutation import REAL, Into, inplace
from mortice.node import TENSOR_KERNELS
from mortice.op import op
from mortice.ops import bounds
from mortice.ops.arguments import numpy_names
from mortice.ops.creation import filled
from mortice.ops.data import refuse_outside
from mortice.ops.index_advanced import _take, check_range
from mortice.ops.movement import cast, expand, reshape
from mortice.rules import hold, same
from mortice.shape import Size, broadcast, check_dim, prod
from mortice.tensor import TensorBase

__all__ = ["gather", "scatter", "scatter_add", "scatter_reduce", "take_along_dim"]

# ---- the ops ----


def _gathered(name: str, shape: Size, indices: Size, *, axis: int) -> Size:
    return indices


@op(shape=_gathered, fixed=("indices",), kernel="gather", name="gather")
def _gather(k: Any, x: Any, indices: Any, /, *, axis: int) -> Any:
    """Read, for each index, the element at that place along an axis."""


def gather_back(k: Any, g: Any, x_shape: Any, indices: Any, axis: int) -> Any:
    return k.scatter_add(k.new_full(g, x_shape, 0), indices, g, axis=axis)


_gather.vjp(x=gather_back, jvp="linear")


def _kernel_take_along_axis(x: Any, indices: Any, *, axis: int) -> Any:
    return _gather(x, indices, axis=axis % len(x.shape))


TENSOR_KERNELS.replace("take_along_axis", _kernel_take_along_axis)


@op(shape=same, fixed=("indices",), kernel="scatter_add", name="scatter_add")
def _scatter_add(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Add each value at its index along an axis."""


_scatter_add.vjp(
    x=lambda k, g: g, values=lambda k, g, indices, axis: k.gather(g, indices, axis=axis), jvp="linear"
)


@op(shape=same, fixed=("indices",), kernel="scatter_write", name="scatter_write", grad_name="ScatterBackward0")
def _scatter(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Write each value at its index along an axis."""


def _scatter_back(k: Any, g: Any, indices: Any, axis: int) -> Any:
    return k.scatter_write(g, indices, k.new_full(g, k.shape_of(indices), 0), axis=axis)


_scatter.vjp(x=_scatter_back, values=lambda k, g, indices, axis: k.gather(g, indices, axis=axis), jvp="linear")


@op(shape=same, fixed=("indices",), name="scatter_combine", grad_name="ScatterReduceBackward0")
def _combine(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int, how: str) -> Any:
    """Multiply each element with the values that land on it, or take their largest or smallest.

    After "max nan" and "min nan" the gradient of a nan goes to the nans that landed, else it goes nowhere. After "prod nan" the
    gradient of the only nan is what the others give, as that of the only zero always is.
    """
    return k.scatter_combine(x, indices, values, axis=axis, how=how.removesuffix(" nan"))


def _hit(k: Any, x: Any, out: Any, how: str) -> Any:
    same = k.equal(x, out)
    return k.logical_or(same, k.logical_and(k.isnan(x), k.isnan(out))) if how.endswith("nan") else same


def _count(k: Any, x: Any, indices: Any, mask: Any, values: Any, axis: int) -> Any:
    """Return, in x's dtype, how many of the places `mask` land on each element, plus x."""
    one = k.where(mask, k.ones_like(values), 0)
    return k.scatter_add(x, indices, one, axis=axis)


def _combine_x(k: Any, g: Any, x: Any, indices: Any, values: Any, out: Any, axis: int, how: str) -> Any:
    if how.startswith("prod"):
        # Without x itself, so that a zero in x does no harm.
        return k.multiply(g, k.scatter_combine(k.ones_like(x), indices, values, axis=axis, how="prod"))
    mine = k.where(k.equal(x, out), k.ones_like(x), 0)
    hits = _count(k, mine, indices, _hit(k, values, k.gather(out, indices, axis=axis), how), values, axis)
    return k.divide(k.multiply(g, mine), k.maximum(hits, 1))


def _combine_values(k: Any, g: Any, x: Any, indices: Any, values: Any, out: Any, axis: int, how: str) -> Any:
    if how.startswith("prod"):
        zero = k.equal(values, 0)
        if how.endswith("nan"):
            zero = k.logical_or(zero, k.isnan(values))
        zeros = k.gather(_count(k, k.zeros_like(x), indices, zero, values, axis), indices, axis=axis)
        twice = k is TENSOR_KERNELS  # of two zeros each is a factor of the other's gradient, which counts in the second
        few = k.logical_or(k.equal(zeros, 1), k.equal(zeros, 2)) if twice else k.equal(zeros, 1)
        left_out = k.logical_and(zero, few)
        others = k.scatter_combine(x, indices, k.where(left_out, 1, values), axis=axis, how="prod")
        at_zero = k.gather(k.multiply(g, others), indices, axis=axis)
        if twice:
            pairs = k.scatter_add(k.zeros_like(x), indices, k.where(zero, values, 0), axis=axis)
            pair = k.subtract(k.gather(pairs, indices, axis=axis), values)
            at_zero = k.where(k.equal(zeros, 2), k.multiply(at_zero, pair), at_zero)
        elsewhere = k.divide(k.gather(k.multiply(g, out), indices, axis=axis), k.where(zero, 1, values))
        return k.where(left_out, at_zero, elsewhere)
    mine = k.where(k.equal(x, out), k.ones_like(x), 0)
    same = _hit(k, values, k.gather(out, indices, axis=axis), how)
    hits = k.maximum(_count(k, mine, indices, same, values, axis), 1)
    return k.where(same, k.gather(k.divide(g, hits), indices, axis=axis), 0)


_combine.vjp(x=_combine_x, values=_combine_values)


# ---- checks ----


def _same_dtype(name: str, x: Any, y: Any, what: str = "src") -> None:
    if x.dtype is not y.dtype:
        raise DTypeError(f"{name}(): Expected self.dtype to be equal to {what}.dtype; got {x.dtype} and {y.dtype}.")


def _long(name: str, index: Any, *others: Any, error: Any = DTypeError) -> Any:
    if not isinstance(index, TensorBase):
        raise no_tensor(name, "index", index)
    if 0 in index.shape and name in ("gather", "scatter", "scatter_add", "scatter_reduce"):
        return cast(index, int64)
    if index.dtype not in others and index.dtype is not int64:
        raise error(f"{name}(): Expected dtype int64 for index; got {index.dtype}.")
    return index if index.dtype is int64 else cast(index, int64)


def _in_range(name: str, index: Any, n: int, axis: int, error: Any = RuntimeError) -> None:
    """Refuse positions outside [0, n); reads the index once."""
    read = index._device.backend.flat_index if len(index.shape) == 1 and index.dtype is int64 else None
    if 0 not in index.shape and (read is None or read(index._buffer, sizes=(n,)) is not index._buffer):
        refuse_outside(
            index, 0, n - 1, lambda bad: error(f"{name}: index {bad} is out of bounds for dimension {axis} with size {n}")
        )


def _lift(x: Any) -> Any:
    return x if x.shape else reshape(x, 1)


@lru_cache(256)  # shapes recur
def _fits(name: str, x: Size, axis: int, index: Size, src: Size | None = None) -> None:
    """Check the ranks and sizes of shapes as gather and scatter ask for them."""
    if 0 in index:
        return
    ndim = max(len(x), 1)
    if max(len(index), 1) != ndim:
        raise ShapeError(
            f"{name}: Index tensor must have the same number of dimensions as self tensor; got {list(index)} and {list(x)}."
        )
    if src is not None and max(len(src), 1) != ndim:
        raise ShapeError(
            f"{name}: Index tensor must have the same number of dimensions as src tensor; got {list(index)} and {list(src)}."
        )
    a, b = tuple(index) or (1,), tuple(x) or (1,)
    c = (tuple(src) or (1,)) if src is not None else a
    if any([i != axis and n > m for i, (n, m) in enumerate(zip(a, b))]) or (c is not a and any([n > m for n, m in zip(a, c)])):
        at = next((i for i, (n, m) in enumerate(zip(a, b)) if i != axis and n > m), axis)
        beside = f" and to be no larger size than src {list(src)}" if src is not None else ""
        raise ShapeError(
            f"{name}: Size does not match at dimension {at} expected index {list(a)} to be no larger than self {list(b)} "
            f"apart from dimension {axis}{beside}"
        )


# ---- gather and scatter ----


@numpy_names
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False, out: Any = None) -> Any:
    """Read, for each index, the element of `input` at that place along a dim."""
    axis = check_dim("gather", dim, len(input.shape))
    index = _long("gather", index, int32)
    _call.check_device(_gather.op, input, index)
    _fits("gather", input.shape, axis, index.shape)
    if 0 in index.shape:
        made = expand(reshape(input, -1)[:0].sum(), index.shape) if input._rg else input.new_empty(index.shape)
    else:
        _in_range("gather", index, (tuple(input.shape) or (1,))[axis], axis)
        made = _gather(_lift(input), _lift(index), axis=axis)
        made = made if made.shape == index.shape else reshape(made, index.shape)
    return _call.give("gather", out, made, reads=(input, index))


def _as_far(src: Any, index: Any) -> Any:
    """Return the part of src that there are indices for."""
    return src if src.shape == index.shape else src[tuple([slice(0, n) for n in index.shape])]


_REDUCTIONS = {"add": "sum", "multiply": "prod"}
_COMBINED = {"amax": "max", "amin": "min", "max": "max", "min": "min", "prod": "prod"}  # what a kernel combines, by its names


def _scatter_with(
    name: str, x: Any, dim: int, index: Any, src: Any, how: str | None, out: Any, include_self: bool = True
) -> Any:
    """Do every scatter: check, then write, add, multiply, or take extremes."""
    axis = check_dim(name, dim, len(x.shape))
    index = _long(name, index, int32)
    if isinstance(src, TensorBase):
        _call.check_device(_scatter.op, x, src)
        _same_dtype(name, x, src)
    _call.check_device(_scatter.op, x, index)
    _fits(name, x.shape, axis, index.shape, src.shape if isinstance(src, TensorBase) else None)
    recorded = isinstance(src, TensorBase) and src._rg  # without indices too, the result has src behind it
    if 0 in index.shape and not recorded:
        return x.clone() if out is None else _call.WRITE_OUT(name, out, x.clone())
    base, index = _lift(x), _lift(index)
    if 0 not in index.shape:
        _in_range(name, index, base.shape[axis], axis)
    if not isinstance(src, TensorBase):
        src = filled(name, index.shape, hold(name, src, x.dtype), x.dtype, x._device)
    else:
        src = _as_far(_lift(src), index)
    if type(out) is Into and base is x and (how is None or how == "sum") and include_self:
        fn = _scatter if how is None else _scatter_add
        made = _call.DIRECTLY(fn.op, out, (x, index, src), {"axis": axis})
        return fn(x, index, src, axis=axis, out=out) if made is None else made
    made = _reduced(base, axis, index, src, how, include_self)
    made = made if made.shape == x.shape else reshape(made, x.shape)
    return _call.give(name, out, made, reads=(index, src))


def _reduced(base: Any, axis: int, index: Any, src: Any, how: str | None, include_self: bool) -> Any:
    d = base.dtype
    if how is None:
        return _scatter(base, index, src, axis=axis)
    if not include_self:
        start = {"sum": 0, "mean": 0, "prod": 1, "amax": lowest, "amin": highest}[how]
        start = start(d) if callable(start) else start
        base = _scatter(base, index, src.new_full(index.shape, start), axis=axis)
    if how == "sum":
        return _scatter_add(base, index, src, axis=axis)
    if how == "mean":
        count = base.new_full(base.shape, int(include_self), dtype=int64)
        count = _scatter_add(count, index, index.new_full(index.shape, 1), axis=axis)
        count = bounds.where(count < 1, count.new_full((), 1), count)
        total = _scatter_add(base, index, src, axis=axis)
        return total / cast(count, d) if d.kind in "fc" else total // cast(count, d)
    if d.kind == "c" and how != "prod":
        raise DTypeError(f"scatter_reduce: {how} is not implemented for {d}.")
    return _combine(base, index, src, axis=axis, how=_COMBINED.get(how, how))  # segments name the kernel's own


@numpy_names
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None, out: Any = None
) -> Any:
    """Write each value of `src` (or one number) at its index along a dim; `reduce` "add" or "multiply" combines."""
    if reduce is not None and reduce not in ("add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply; got {reduce!r}.")
    if src is None and value is None:
        raise TypeError("scatter: expected src or value.")
    return _scatter_with("scatter", input, dim, index, value if src is None else src, reduce and _REDUCTIONS[reduce], out)


@numpy_names
@autocasting
def scatter_add(input: Any, dim: int, index: Any, src: Any, *, out: Any = None) -> Any:
    """Add each value of `src` at its index along a dim."""
    return _scatter_with("scatter_add", input, dim, index, src, "sum", out)


@numpy_names
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True, out: Any = None
) -> Any:
    """Combine the values that land on each element: "sum", "prod", "mean", "amax" or "amin".

    Differs from torch: without `include_self` no share of an extreme's gradient is lost to elements of `input` that equal it.
    """
    # PyTorch documents the long names and takes the short ones too; Keras writes "min".
    reduce = {"min": "amin", "max": "amax"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    return _scatter_with("scatter_reduce", input, dim, index, src, reduce, out, include_self)


@lru_cache(4096)  # shapes recur
def _along(x: Size, indices: Size, axis: int) -> tuple[Size, Size]:
    """Return the shapes that x and the indices are expanded to: one shape, but for the axis."""
    a, b = list(x), list(indices)
    a[axis], b[axis] = indices[axis], x[axis]
    return broadcast("take_along_dim", x, Size(b)), broadcast("take_along_dim", indices, Size(a))


@numpy_names
def take_along_dim(input: Any, indices: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """Read, for each index, the element at that place along a dim; the other dims broadcast."""
    if indices.dtype is not int64 and (dim is not None or indices.dtype is not int32):
        raise DTypeError(f"take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    _call.check_device(_take.op, input, indices)
    if dim is None:
        made = gather(reshape(input, -1), 0, check_range("take_along_dim", cast(reshape(indices, -1), int64), prod(input.shape), 0))
    else:
        if len(input.shape) != len(indices.shape):
            raise ShapeError(
                "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
                f"{len(input.shape)} dimensions for input, and {len(indices.shape)} dimensions for indices"
            )
        axis = check_dim("take_along_dim", dim, len(input.shape))
        x_shape, shape = _along(input.shape, indices.shape, axis)
        x = input if x_shape == input.shape else expand(input, x_shape)
        indices = check_range("take_along_dim", indices if shape == indices.shape else expand(indices, shape), x_shape[axis], axis)
        ordinary = shape and 0 not in shape and indices.dtype is int64
        made = _gather(x, indices, axis=axis) if ordinary else gather(x, axis, indices)
    return _call.give("take_along_dim", out, made)


def _straight(name: str, op: Any, input: Any, dim: Any, index: Any, src: Any) -> Any:
    """Return what `scatter_` and `scatter_add_` come to where all is as it should be; None asks the functions."""
    if (
        dim.__class__ is not int or not isinstance(src, TensorBase) or not isinstance(index, TensorBase) or index.dtype is not int64
        or src.dtype is not input.dtype or not (index.shape and input.shape) or 0 in index.shape
        or index._device is not input._device or src._device is not input._device or input is index or input is src
    ):  # fmt: skip
        return None
    axis = check_dim(name, dim, len(input.shape))
    _fits(name, input.shape, axis, index.shape, src.shape)
    _in_range(name, index, input.shape[axis], axis)
    return op, (input, index, _as_far(src, index)), {"axis": axis}


# What is missing, or has NumPy's name, the functions see to.


_SURELY: dict[Any, Any] = {float32: 3e38, float64: 3e38, int64: 1 << 63}  # below it a number surely fits


def _scattered(
    input: Any, dim: Any = None, index: Any = None, src: Any = None, *, value: Any = None, reduce: Any = None, **more: Any
) -> Any:
    src = value if src is None else src
    if src.__class__ in REAL and isinstance(index, TensorBase):
        most = _SURELY.get(input.dtype)
        if most is not None and -most < src < most and (src.__class__ is int or input.dtype is not int64):
            src = filled("scatter", index.shape, src, input.dtype, input._device)
    return _straight("scatter", _scatter.op, input, dim, index, src) if reduce is None and not more else None


def _scattered_add(input: Any, dim: Any = None, index: Any = None, src: Any = None, **more: Any) -> Any:
    return None if more else _straight("scatter_add", _scatter_add.op, input, dim, index, src)


def _scattered_reduced(input: Any, dim: Any = None, index: Any = None, src: Any = None, reduce: Any = None, **more: Any) -> Any:
    if (more and more != {"include_self": True}) or reduce.__class__ is not str or input.dtype.kind == "c":
        return None
    if reduce == "sum":
        return _straight("scatter_reduce", _scatter_add.op, input, dim, index, src)
    found = _straight("scatter_reduce", _combine.op, input, dim, index, src) if reduce in _COMBINED else None
    return found and (*found[:2], {**found[2], "how": _COMBINED[reduce]})


scatter_ = inplace(scatter, takes_out=True, short=_scattered, itself=False)
scatter_add_ = inplace(scatter_add, takes_out=True, short=_scattered_add, itself=False)
scatter_reduce_ = inplace(scatter_reduce, takes_out=True, short=_scattered_reduced, itself=False)
