"""Reading and writing at positions given as tensors: gather, scatter, take, put, the index_ and masked_ families."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice.backends.movement import highest, lowest
from mortice.call import no_tensor
from mortice.dtype import bool_, float32, float64, int32, int64, promote_scalar
from mortice.errors import DimError, DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.mutation import REAL, Into, check_apart, check_writable, inplace, layout, plain
from mortice.node import TENSOR_KERNELS, named
from mortice.op import op
from mortice.ops import elementwise
from mortice.ops.arguments import numpy_names
from mortice.ops.creation import filled
from mortice.ops.data import refuse_outside
from mortice.ops.index import _set_plainly, may_write_rows, write_rows
from mortice.ops.index_advanced import _index_add, _index_write, _take, check_range, flat_nonzero
from mortice.ops.index_basic import _set_slice, basic_key
from mortice.ops.movement import cast, contiguous, expand, reshape
from mortice.ops.views import broadcast_tensors, cut, select
from mortice.rules import hold, number_of, same
from mortice.shape import SCALAR, Size, broadcast, check_dim, prod
from mortice.tensor import TensorBase

# ---- the ops ----


def _gathered(name: str, shape: Size, indices: Size, *, axis: int) -> Size:
    return indices


@op(shape=_gathered, fixed=("indices",), kernel="gather", name="gather")
def _gather(k: Any, x: Any, indices: Any, /, *, axis: int) -> Any:
    """Read, for each index, the element at that place along an axis."""
    return k.gather(x, indices, axis=axis)


def _gather_back(k: Any, g: Any, x_shape: Any, indices: Any, axis: int) -> Any:
    return k.scatter_add(k.new_full(g, x_shape, 0), indices, g, axis=axis)


_gather.vjp(x=_gather_back, jvp="linear")


def _kernel_take_along_axis(x: Any, indices: Any, *, axis: int) -> Any:
    return _gather(x, indices, axis=axis % len(x.shape))


TENSOR_KERNELS.replace("take_along_axis", _kernel_take_along_axis)


@op(shape=same, fixed=("indices",), kernel="scatter_add", name="scatter_add")
def _scatter_add(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Add each value at its index along an axis."""
    return k.scatter_add(x, indices, values, axis=axis)


_scatter_add.vjp(
    x=lambda k, g: g, values=lambda k, g, indices, axis: k.gather(g, indices, axis=axis), jvp="linear"
)


@op(shape=same, fixed=("indices",), kernel="scatter_write", name="scatter_write", grad_name="ScatterBackward0")
def _scatter(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Write each value at its index along an axis."""
    return k.scatter_write(x, indices, values, axis=axis)


def _scatter_back(k: Any, g: Any, indices: Any, axis: int) -> Any:
    return k.scatter_write(g, indices, k.new_full(g, k.shape_of(indices), 0), axis=axis)


_scatter.vjp(x=_scatter_back, values=lambda k, g, indices, axis: k.gather(g, indices, axis=axis), jvp="linear")


@op(
    shape=same, fixed=("indices",), kernel="scatter_combine", name="scatter_combine",
    grad_name="ScatterReduceBackward0",
)  # fmt: skip
def _combine(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int, how: str) -> Any:
    """Multiply each element with the values that land on it, or take their largest or smallest."""
    return k.scatter_combine(x, indices, values, axis=axis, how=how)


def _count(k: Any, x: Any, indices: Any, mask: Any, values: Any, axis: int) -> Any:
    """Return, in x's dtype, how many of the places `mask` land on each element, plus x."""
    one = k.where(mask, k.ones_like(values), 0)
    return k.scatter_add(x, indices, one, axis=axis)


def _combine_x(k: Any, g: Any, x: Any, indices: Any, values: Any, out: Any, axis: int, how: str) -> Any:
    if how == "prod":
        # Without x itself, so that a zero in x does no harm.
        return k.multiply(g, k.scatter_combine(k.ones_like(x), indices, values, axis=axis, how=how))
    mine = k.where(k.equal(x, out), k.ones_like(x), 0)
    hits = _count(k, mine, indices, k.equal(values, k.gather(out, indices, axis=axis)), values, axis)
    return k.divide(k.multiply(g, mine), k.maximum(hits, 1))


def _combine_values(k: Any, g: Any, x: Any, indices: Any, values: Any, out: Any, axis: int, how: str) -> Any:
    if how == "prod":
        zero = k.equal(values, 0)
        zeros = _count(k, k.zeros_like(x), indices, zero, values, axis)
        single = k.logical_and(zero, k.equal(k.gather(zeros, indices, axis=axis), 1))
        others = k.scatter_combine(x, indices, k.where(single, 1, values), axis=axis, how=how)
        at_zero = k.gather(k.multiply(g, others), indices, axis=axis)
        elsewhere = k.divide(k.gather(k.multiply(g, out), indices, axis=axis), k.where(zero, 1, values))
        return k.where(single, at_zero, elsewhere)
    mine = k.where(k.equal(x, out), k.ones_like(x), 0)
    same = k.equal(values, k.gather(out, indices, axis=axis))
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
    if 0 not in index.shape:
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
            f"{name}: Index tensor must have the same number of dimensions as self tensor; got {list(index)} and "
            f"{list(x)}."
        )
    if src is not None and max(len(src), 1) != ndim:
        raise ShapeError(
            f"{name}: Index tensor must have the same number of dimensions as src tensor; got {list(index)} and "
            f"{list(src)}."
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
    return made if out is None else _call.WRITE_OUT("gather", out, made, reads=(input, index))


def _as_far(src: Any, index: Any) -> Any:
    """Return the part of src that there are indices for."""
    return src if src.shape == index.shape else src[tuple([slice(0, n) for n in index.shape])]


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


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
        src = filled(index.shape, hold(name, src, x.dtype), x.dtype, x._device)
    else:
        src = _as_far(_lift(src), index)
    if type(out) is Into and base is x and (how is None or how == "sum") and include_self:
        fn = _scatter if how is None else _scatter_add
        made = _call.DIRECTLY(fn.op, out, (x, index, src), {"axis": axis})  # type: ignore[attr-defined]
        return fn(x, index, src, axis=axis, out=out) if made is None else made
    made = _reduced(base, axis, index, src, how, include_self)
    made = made if made.shape == x.shape else reshape(made, x.shape)
    return made if out is None else _call.WRITE_OUT(name, out, made, reads=(index, src))


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
        count = elementwise.where(count < 1, count.new_full((), 1), count)
        total = _scatter_add(base, index, src, axis=axis)
        return total / cast(count, d) if d.kind in "fc" else total // cast(count, d)
    if d.kind == "c" and how != "prod":
        raise DTypeError(f"scatter_reduce: {how} is not implemented for {d}.")
    return _combine(base, index, src, axis=axis, how={"prod": "prod", "amax": "max", "amin": "min"}[how])


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
    """Combine the values that land on each element: "sum", "prod", "mean", "amax" or "amin"."""
    # PyTorch documents the long names and takes the short ones too; Keras writes "min".
    reduce = {"min": "amin", "max": "amax"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    return _scatter_with("scatter_reduce", input, dim, index, src, reduce, out, include_self)


# ---- along one dim, at positions of a vector ----


@numpy_names
def index_select(input: Any, dim: int, index: Any, *, out: Any = None) -> Any:
    """Pick positions along a dim."""
    axis = check_dim("index_select", dim, len(input.shape))
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector, but got shape " + str(list(index.shape)))
    index = _lift(_long("index_select", index, int32))
    _call.check_device(_take.op, input, index)
    n = (tuple(input.shape) or (1,))[axis]
    _in_range("index_select", index, n, axis, DimError)
    made = named(_like(_take(_lift(input), index, axis=axis), input), "IndexSelectBackward0")
    return made if out is None else _call.WRITE_OUT("index_select", out, made, reads=(input, index))


def _like(made: Any, input: Any) -> Any:
    """Return what was made of a lifted tensor, without its dim."""
    return made if input.shape else reshape(made, ())


def _vector(name: str, x: Any, dim: int, index: Any, source: Any) -> tuple[int, Any, Any, Any]:
    """Check the arguments of index_add and its kin; return the axis and x, index, source with 0-d ones lifted."""
    axis = check_dim(name, dim, len(x.shape))
    index = _long(name, index) if name == "index_copy" else _long(name, index, int32)
    if len(index.shape) > 1:
        raise IndexError(f"{name}: Index is supposed to be a vector, but got dim: {len(index.shape)}.")
    _call.check_device(_take.op, x, index)
    _call.check_device(_take.op, x, source)
    if x.dtype is not source.dtype:
        raise DTypeError(
            f"{name}: self ({x.dtype.name}) and source ({source.dtype.name}) must have the same scalar type."
        )
    _vectors_fit(name, x.shape, axis, index.shape, source.shape)
    return axis, _lift(x), _lift(index), _lift(source)


@lru_cache(4096)  # shapes recur
def _vectors_fit(name: str, x: Size, axis: int, index: Size, source: Size) -> None:
    """Check the sizes that index_add and its kin are given."""
    scalars = not x or not source
    lifted, rows = tuple(x) or (1,), tuple(source) or (1,)
    if len(rows) != len(lifted):
        raise (IndexError if name == "index_copy" and not scalars else ShapeError)(
            f"{name}: source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(x)} source.shape = {list(source)}"
        )
    count = (tuple(index) or (1,))[0]
    if rows[axis] != count:
        raise (IndexError if name == "index_copy" else ShapeError)(
            f"{name}: Number of indices ({count}) should be equal to source.size(dim): ({rows[axis]}), for dim: {axis}"
        )
    if any([i != axis and n != m for i, (n, m) in enumerate(zip(lifted, rows))]):
        raise RuntimeError(
            f"{name}: Source/destination tensor must have same slice shapes; got {list(rows)} and {list(lifted)} at "
            f"dimension {axis}."
        )


@numpy_names
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Add slices of `source`, times alpha, at positions along a dim; repeated positions add up."""
    axis, x, index, source = _added(input, dim, index, source, alpha)
    made = _like(_index_add(x, index, source, axis=axis), input)
    return made if out is None else _call.WRITE_OUT("index_add", out, made, reads=(source,))


def _added(input: Any, dim: int, index: Any, source: Any, alpha: Any) -> tuple[int, Any, Any, Any]:
    axis, x, index, source = _vector("index_add", input, dim, index, source)
    _in_range("index_add", index, x.shape[axis], axis)
    alpha = number_of("index_add", "alpha", alpha)
    if alpha != 1:
        if input.dtype.kind in "ui":
            alpha = int(alpha)
        source = cast(elementwise.mul(source, alpha), source.dtype)
    return axis, x, index, source


@numpy_names
def index_add_(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Add slices of `source`, times alpha, at positions along a dim, in place."""
    check_writable("index_add_", input)
    check_apart(input, (index, source), False)
    if isinstance(source, TensorBase) and input.shape and may_write_rows(input, input, source):
        axis, _, index, source = _added(input, dim, index, source, alpha)
        if write_rows(input, input._data, index, source._data, axis, True):
            return input
        alpha = 1
    return _index_add_(input, dim, index, source, alpha=alpha)


@numpy_names
@autocasting
def index_copy(input: Any, dim: int, index: Any, source: Any, *, out: Any = None) -> Any:
    """Replace slices at positions along a dim by those of `source`."""
    axis, x, index, source = _copied(input, dim, index, source)
    made = named(_like(_index_write(x, index, source, axis=axis), input), "IndexCopyBackward0")
    return made if out is None else _call.WRITE_OUT("index_copy", out, made, reads=(index, source))


def _copied(input: Any, dim: int, index: Any, source: Any) -> tuple[int, Any, Any, Any]:
    axis, x, index, source = _vector("index_copy", input, dim, index, source)
    _in_range("index_copy_()", index, x.shape[axis], axis, IndexError)
    return axis, x, index, source


@numpy_names
def index_copy_(input: Any, dim: int, index: Any, source: Any) -> Any:
    """Replace slices at positions along a dim by those of `source`, in place."""
    check_writable("index_copy_", input)
    check_apart(input, (index, source), False)
    if isinstance(source, TensorBase) and input.shape and may_write_rows(input, input, source):
        axis, _, index, source = _copied(input, dim, index, source)
        if write_rows(input, input._data, index, source._data, axis, False):
            return input
    return _index_copy_(input, dim, index, source)


@numpy_names
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Replace slices at positions along a dim by one value."""
    axis, x, index, value = _filled(input, dim, index, value)
    n = x.shape[axis]
    # By a mask, so that a position given twice counts once in the gradient.
    chosen = _index_write(x.new_zeros(n, dtype=bool_), index, x.new_ones(index.shape, dtype=bool_), axis=0)
    chosen = reshape(chosen, tuple(n if i == axis else 1 for i in range(len(x.shape))))
    return named(_like(elementwise._where(chosen, value, x), input), "IndexFillBackward0")


def _filled(input: Any, dim: int, index: Any, value: Any) -> tuple[int, Any, Any, Any]:
    axis = check_dim("index_fill", dim, len(input.shape))
    index = _long("index_fill", index, error=IndexError)
    if len(index.shape) > 1:
        raise IndexError("index_fill_(): Index is supposed to be a vector.")
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    value = _value_tensor("index_fill", input, value)
    x, index = _lift(input), _lift(index)
    return axis, x, check_range("index_fill", index, x.shape[axis], axis), value


@numpy_names
def index_fill_(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Replace slices at positions along a dim by one value, in place."""
    check_writable("index_fill_", input)
    if input.shape:
        axis, _, index, value = _filled(input, dim, index, value)
        if may_write_rows(input, input, value):
            size = list(input.shape)
            size[axis] = index.shape[0]
            values = input._device.backend.broadcast_to(value._data, tuple(size))
            if write_rows(input, input._data, index, values, axis, False):
                return input
    return _index_fill_(input, dim, index, value)


@numpy_names
def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True, out: Any = None
) -> Any:
    """Combine slices of `source` at positions along a dim: "prod", "mean", "amax" or "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis, x, index, source = _vector("index_reduce", input, dim, index, source)
    _in_range("index_reduce", index, x.shape[axis], axis, IndexError)
    if not prod(source.shape):
        return input.clone()
    wide = expand(reshape(index, tuple(-1 if i == axis else 1 for i in range(len(x.shape)))), source.shape)
    made = reshape(_reduced(x, axis, wide, source, reduce, include_self), input.shape)
    return made if out is None else _call.WRITE_OUT("index_reduce", out, made)


# ---- flat positions ----


def take(input: Any, index: Any, *, out: Any = None) -> Any:
    """Read elements at flat positions; the result has the index's shape."""
    if not isinstance(index, TensorBase) or index.dtype is not int64:
        raise DTypeError(f"take(): Expected a long tensor for index, but got {getattr(index, 'dtype', type(index))}")
    _call.check_device(_take.op, input, index)
    n = prod(input.shape)
    if n == 0 and prod(index.shape):
        raise IndexError("take(): tried to take from an empty tensor")
    places = reshape(check_range("take", index, n, 0), -1)
    made = named(reshape(_take(reshape(input, -1), places, axis=0), index.shape), "TakeBackward0")
    return made if out is None else _call.WRITE_OUT("take", out, made, reads=(input, index))


def _placed(input: Any, index: Any, source: Any) -> tuple[Any, Any]:
    """Check the arguments of put; return the positions, none negative, and the values, both as vectors."""
    if index.dtype is not int64:
        raise DTypeError(f"put_(): Expected a long tensor for index, but got {index.dtype}")
    if source.dtype is not input.dtype:
        raise DTypeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype} and "
            f"source.dtype = {source.dtype}"
        )
    if prod(source.shape) != prod(index.shape):
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{prod(source.shape)}, index.numel() = {prod(index.shape)}"
        )
    if prod(input.shape) == 0 and prod(index.shape):
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    return reshape(check_range("put_", index, prod(input.shape), 0), -1), reshape(source, -1)


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Return a copy with elements at flat positions replaced, or added to."""
    places, values = _placed(input, index, source)
    write = _index_add if accumulate else _index_write
    return named(reshape(write(reshape(input, -1), places, values, axis=0), input.shape), "PutBackward0")


def put_(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Replace elements at flat positions, or add to them, in place."""
    check_writable("put_", input)
    check_apart(input, (index, source), False)
    backend = input._device.backend
    if isinstance(source, TensorBase) and may_write_rows(input, input, source) and backend.is_contiguous(input._data):
        places, values = _placed(input, index, source)
        if write_rows(input, backend.reshape(input._data, (prod(input.shape),)), places, values._data, 0, accumulate):
            return input
    return _put_(input, index, source, accumulate)


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
    return made if out is None else _call.WRITE_OUT("take_along_dim", out, made)


# ---- masks ----


def _value_tensor(name: str, x: Any, value: Any) -> Any:
    """Return a 0-d tensor of x's dtype for a number, or check and cast a 0-d tensor."""
    if not isinstance(value, TensorBase):
        return filled(SCALAR, hold(name, value, x.dtype), x.dtype, x._device)
    if value.shape:
        raise RuntimeError(
            f"{name}_ only supports a 0-dimensional value tensor, but got tensor with {len(value.shape)} dimension(s)."
        )
    d = x.dtype
    wider = value.dtype is not d and (d.kind in "ui" or (d.kind == "f" and value.dtype.is_complex))
    if wider and name != "fill" and value._device.level is None and value._device.type != "meta":
        number = value.item()
        hold(name, number if number.imag else number.real, d)  # which refuses what the dtype cannot hold
    return cast(value.to(x._device), x.dtype)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Replace elements where the mask is true by one value."""
    if not isinstance(mask, TensorBase) or mask.dtype is not bool_:
        kind = getattr(mask, "dtype", type(mask).__name__)
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {kind}")
    if isinstance(value, TensorBase):
        made = elementwise._where(mask, _value_tensor("masked_fill", input, value), input)
        return contiguous(named(made, "MaskedFillBackward1"))
    value = hold("masked_fill", value, input.dtype)
    if promote_scalar(input.dtype, value) is not input.dtype:
        value = input.new_full((), value)
    return contiguous(named(elementwise._where(mask, value, input), "MaskedFillBackward0"))


def _masked_fill_into(self: Any, mask: Any, value: Any) -> Any:
    if isinstance(mask, TensorBase) and broadcast("masked_fill_", self.shape, mask.shape) != self.shape:
        raise ShapeError(
            f"masked_fill_: the mask must broadcast to the tensor's shape; got {list(mask.shape)} for "
            f"{list(self.shape)}."
        )
    return masked_fill(self, mask, value)


def masked_select(input: Any, mask: Any, *, out: Any = None) -> Any:
    """Read the elements where the mask is true, as a vector."""
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask; got {mask.dtype}.")
    x, mask = broadcast_tensors(input, mask)
    made = named(_take(reshape(x, -1), flat_nonzero(mask), axis=0), "MaskedSelectBackward0")
    return made if out is None else _call.WRITE_OUT("masked_select", out, made, reads=(x, mask))


def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Replace elements where the mask is true by those of `source`, in order."""
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter_: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}"
        )
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    x, mask = broadcast_tensors(input, mask)
    places = flat_nonzero(mask)
    count = places.shape[0]
    if prod(source.shape) < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    values = cut(reshape(source, -1), 0, 0, count)
    return named(reshape(_index_write(reshape(x, -1), places, values, axis=0), x.shape), "MaskedScatterBackward0")


# ---- copies with one region replaced ----


@numpy_names
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """Return a copy with one position along a dim replaced by `src`."""
    axis, index = check_dim("select_scatter", dim, len(input.shape)), operator.index(index)
    shape = select(input.detach(), axis, index).shape
    if src.shape != shape:
        raise ShapeError(
            f"select_scatter: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(shape)}"
        )
    key = (*(slice(None),) * axis, index % input.shape[axis])
    return _set_slice(input, cast(src, input.dtype), key=key)


@numpy_names
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
    out: Any = None,
) -> Any:  # fmt: skip
    """Return a copy with a slice along a dim replaced by `src`."""
    axis = check_dim("slice_scatter", dim, len(input.shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    key, shape = basic_key(input.shape, (*(slice(None),) * axis, slice(start, end, step)))
    if src.shape != shape:
        raise ShapeError(
            f"slice_scatter: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(shape)}"
        )
    made = _set_slice(input, cast(src, input.dtype), key=key)
    return made if out is None else _call.WRITE_OUT("slice_scatter", out, made)


# ---- filling ----


@op(shape=same, name="fill")
def _fill(k: Any, x: Any, value: Any, /) -> Any:
    """Return x's shape filled with a 0-d value."""
    return k.copy(k.broadcast_to(value, tuple(k.shape_of(x))))


_fill.vjp(x=lambda k, g: k.zeros_like(g), value=lambda k, g: k.sum(g, axis=None, keepdims=False), jvp="linear")


def fill(input: Any, value: Any) -> Any:
    """Return a tensor of the same shape and dtype filled with a value."""
    if isinstance(value, TensorBase) and value.shape:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {len(value.shape)} dimensions."
        )
    return _fill(input, _value_tensor("fill", input, value))


def zero(input: Any) -> Any:
    """Return zeros of the same shape and dtype."""
    return fill(input, 0)


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


def _scattered(input: Any, dim: Any, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None) -> Any:
    src = value if src is None else src
    if src.__class__ in REAL and isinstance(index, TensorBase) and input.dtype in (float32, float64) and -3e38 < src < 3e38:
        src = filled(index.shape, src, input.dtype, input._device)  # a number that surely fits
    return _straight("scatter", _scatter.op, input, dim, index, src) if reduce is None else None


def _scattered_add(input: Any, dim: Any, index: Any, src: Any) -> Any:
    return _straight("scatter_add", _scatter_add.op, input, dim, index, src)


scatter_ = inplace(scatter, takes_out=True, short=_scattered, itself=False)
scatter_add_ = inplace(scatter_add, takes_out=True, short=_scattered_add, itself=False)
scatter_reduce_ = inplace(scatter_reduce, takes_out=True, itself=False)
# Their functions, above, have looked whether the operands lie apart.
_index_add_, _index_copy_, _put_ = inplace(index_add, itself=None), inplace(index_copy, itself=None), inplace(put, itself=None)
_index_fill_ = inplace(index_fill, number=True, itself=None)
index_reduce_ = inplace(index_reduce, itself=False)
masked_scatter_ = inplace(masked_scatter, itself=None)
_masked_fill_, _fill_ = inplace(_masked_fill_into, "masked_fill_", number=True, itself=None), inplace(fill, itself=None)


def masked_fill_(input: Any, mask: Any, value: Any) -> Any:
    """Write a value where the mask is true, in place."""
    if isinstance(mask, TensorBase) and mask.dtype is bool_ and mask.shape and _set_plainly(input, mask, value, True):
        return input
    return _masked_fill_(input, mask, value)


def fill_(input: Any, value: Any) -> Any:
    """Write a value everywhere, in place."""
    if isinstance(value, (int, float, complex)) and plain(input):
        input._device.backend.setitem(input._data, (...,), hold("fill_", value, input.dtype))
        input._storage.version += 1
        return input
    if input._storage is not None and input._steps is not None and 0 in (strides := layout(input)) and 0 not in input.shape:
        _fill_(input[tuple([slice(0, None if s else 1) for s in strides])], value)  # what is expanded is written once
        return input
    return _fill_(input, value)


def zero_(input: Any) -> Any:
    """Write zeros everywhere, in place."""
    if not plain(input):
        return fill_(input, 0)
    input._device.backend.setitem(input._data, (...,), 0)
    input._storage.version += 1
    return input
