"""Reading and writing whole positions along one dim, as a vector gives them, or flat ones: the index_ family, take, put."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from mortice import call as _call
from mortice.dtype import bool_, int32, int64
from mortice.errors import DimError, DTypeError, ShapeError
from mortice.layout import contiguous_format, sparse_coo
from mortice.modes import autocasting
from mortice.mutation import check_apart, check_writable, inplace
from mortice.node import named
from mortice.ops import bounds, elementwise
from mortice.ops.arguments import numpy_names
from mortice.ops.fill import _value_tensor
from mortice.ops.gather import _in_range, _lift, _long, _reduced
from mortice.ops.index import may_write_rows, write_rows
from mortice.ops.index_advanced import _index_add, _index_write, _take, check_range, flat_positions
from mortice.ops.movement import cast, clone, expand, is_row_major, reshape
from mortice.ops.views import narrow
from mortice.rules import number_of
from mortice.shape import Size, check_dim, prod
from mortice.tensor import TensorBase

__all__ = ["index_add", "index_copy", "index_fill", "index_reduce", "index_select", "narrow_copy", "put", "take"]

# ---- along one dim, at positions of a vector ----


@numpy_names
def index_select(input: Any, dim: int, index: Any, *, out: Any = None) -> Any:
    """Pick positions along a dim. Of a sparse tensor negative ones count from the end, as in PyTorch; others refuse them."""
    axis = check_dim("index_select", dim, len(input.shape))
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector, but got shape " + str(list(index.shape)))
    index = _lift(_long("index_select", index, int32))
    _call.check_device(_take.op, input, index)
    n = (tuple(input.shape) or (1,))[axis]
    if input.layout is sparse_coo:
        index = check_range("index_select", index, n, axis)
    else:
        _in_range("index_select", index, n, axis, DimError)
    made = named(_like(_take(_lift(input), index, axis=axis), input), "IndexSelectBackward0")
    return _call.give("index_select", out, made, reads=(input, index))


@numpy_names
def narrow_copy(input: Any, dim: int, start: Any, length: int, *, out: Any = None) -> Any:
    """Take `length` positions from `start` along a dim; a copy."""
    if input.layout is sparse_coo:
        made = import_module("mortice.sparse.coo").narrow_copy(input, dim, start, length)
    else:
        made = named(clone(narrow(input, dim, start, length), memory_format=contiguous_format), "NarrowCopyBackward0")
    return _call.give("narrow_copy", out, made)


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
    return _call.give("index_add", out, made, reads=(source,))


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
        if write_rows(input, input._buffer, index, source._buffer, axis, True):
            return input
        alpha = 1
    return _index_add_(input, dim, index, source, alpha=alpha)


@numpy_names
@autocasting
def index_copy(input: Any, dim: int, index: Any, source: Any, *, out: Any = None) -> Any:
    """Replace slices at positions along a dim by those of `source`."""
    axis, x, index, source = _copied(input, dim, index, source)
    made = named(_like(_index_write(x, index, source, axis=axis), input), "IndexCopyBackward0")
    return _call.give("index_copy", out, made, reads=(index, source))


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
        if write_rows(input, input._buffer, index, source._buffer, axis, False):
            return input
    return _index_copy_(input, dim, index, source)


@numpy_names
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Replace slices at positions along a dim by one value."""
    axis, x, index, value = _filled(input, dim, index, value)
    # Else by a mask: a position given twice counts once in the value's gradient, and the order in memory stays.
    if not value._rg and is_row_major(x):
        made = _index_write(x, index, expand(value, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])), axis=axis)
    else:
        n = x.shape[axis]
        chosen = _index_write(x.new_zeros(n, dtype=bool_), index, x.new_ones(index.shape, dtype=bool_), axis=0)
        chosen = reshape(chosen, tuple(n if i == axis else 1 for i in range(len(x.shape))))
        made = bounds._where(chosen, value, x)
    return named(_like(made, input), "IndexFillBackward0")


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
    check_apart(input, (index,), False)
    if input.shape:
        axis, _, index, value = _filled(input, dim, index, value)
        if may_write_rows(input, input, value):
            size = list(input.shape)
            size[axis] = index.shape[0]
            values = input._device.backend.broadcast_to(value._buffer, tuple(size))
            if write_rows(input, input._buffer, index, values, axis, False):
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
    return _call.give("index_reduce", out, made)


# ---- flat positions ----


def _flat(x: Any) -> Any:
    return x if len(x.shape) == 1 else reshape(x, -1)


def take(input: Any, index: Any, *, out: Any = None) -> Any:
    """Read elements at flat positions; the result has the index's shape."""
    if not isinstance(index, TensorBase) or index.dtype is not int64:
        raise DTypeError(f"take(): Expected a long tensor for index, but got {getattr(index, 'dtype', type(index))}")
    _call.check_device(_take.op, input, index)
    n = prod(input.shape)
    if n == 0 and prod(index.shape):
        raise IndexError("take(): tried to take from an empty tensor")
    made = _take(_flat(input), flat_positions([index], (n,), (0,), index.shape, "take"), axis=0)
    made = named(made if len(index.shape) == 1 else reshape(made, index.shape), "TakeBackward0")
    return _call.give("take", out, made, reads=(input, index))


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
    return flat_positions([index], (prod(input.shape),), (0,), index.shape, "put_"), _flat(source)


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Return a copy with elements at flat positions replaced, or added to."""
    places, values = _placed(input, index, source)
    write = _index_add if accumulate else _index_write
    return named(reshape(write(_flat(input), places, values, axis=0), input.shape), "PutBackward0")


def put_(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Replace elements at flat positions, or add to them, in place."""
    check_writable("put_", input)
    check_apart(input, (index, source), False)
    backend = input._device.backend
    if isinstance(source, TensorBase) and may_write_rows(input, input, source) and backend.is_contiguous(input._buffer):
        places, values = _placed(input, index, source)
        if write_rows(input, backend.reshape(input._buffer, (prod(input.shape),)), places, values._buffer, 0, accumulate):
            return input
    return _put_(input, index, source, accumulate)


# Their functions, above, have looked whether the operands lie apart.
_index_add_, _index_copy_, _put_ = inplace(index_add, itself=None), inplace(index_copy, itself=None), inplace(put, itself=None)
_index_fill_ = inplace(index_fill, number=True, itself=None)
index_reduce_ = inplace(index_reduce, itself=False)
