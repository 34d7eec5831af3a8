"""Filling: one value everywhere or where a mask is true, the elements that a mask chooses, copies with one region replaced."""

from __future__ import annotations

import operator
from typing import Any

from mortice import call as _call
from mortice.dtype import bool_, promote_scalar
from mortice.errors import ShapeError
from mortice.layout import strided
from mortice.levels import lane_by_lane
from mortice.mutation import check_apart, inplace, plain
from mortice.node import named
from mortice.op import op
from mortice.ops import bounds
from mortice.ops.arguments import numpy_names
from mortice.ops.creation import filled, full_like
from mortice.ops.index import _set_plainly
from mortice.ops.index_advanced import _index_write, _take, flat_nonzero
from mortice.ops.index_basic import _set_slice, basic_key
from mortice.ops.movement import cast, contiguous, reshape
from mortice.ops.views import common, cut, select
from mortice.rules import hold, same
from mortice.shape import SCALAR, broadcast, check_dim, check_region, prod
from mortice.strides import layout
from mortice.tensor import TensorBase

__all__ = [
    "fill", "fill_", "masked_fill", "masked_scatter", "masked_select", "select_scatter", "slice_scatter",
    "zero_",
]  # fmt: skip

# ---- masks ----


def _value_tensor(name: str, x: Any, value: Any, shape: Any = None) -> Any:
    """Return a 0-d tensor of x's dtype for a number, or check and cast a 0-d tensor; for all of `shape`, if that is given."""
    if not isinstance(value, TensorBase):
        return filled(name, SCALAR, hold(name, value, x.dtype, shape), x.dtype, x._device)
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
    if mask.shape != input.shape:
        broadcast("masked_fill", input.shape, mask.shape)  # says what does not fit, where `where` would
    if isinstance(value, TensorBase):
        made = bounds._where(mask, _value_tensor("masked_fill", input, value), input)
        return contiguous(named(made, "MaskedFillBackward1"))
    value = hold("masked_fill", value, input.dtype)
    if promote_scalar(input.dtype, value) is not input.dtype:
        value = input.new_full((), value)
    return contiguous(named(bounds._where(mask, value, input), "MaskedFillBackward0"))


def _masked_fill_into(self: Any, mask: Any, value: Any) -> Any:
    if isinstance(mask, TensorBase) and broadcast("masked_fill_", self.shape, mask.shape) != self.shape:
        raise ShapeError(
            f"masked_fill_: the mask must broadcast to the tensor's shape; got {list(mask.shape)} for {list(self.shape)}."
        )
    return masked_fill(self, mask, value)


def masked_select(input: Any, mask: Any, *, out: Any = None) -> Any:
    """Read the elements where the mask is true, as a vector."""
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask; got {mask.dtype}.")
    x, mask = common("masked_select", input, mask)
    made = named(_take(reshape(x, -1), flat_nonzero(mask), axis=0), "MaskedSelectBackward0")
    return _call.give("masked_select", out, made, reads=(x, mask))


@lane_by_lane
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Replace elements where the mask is true by those of `source`, in order."""
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter_: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}"
        )
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    x, mask = common("masked_scatter", input, mask)
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
    check_region("select_scatter", src.shape, select(input.detach(), axis, index).shape)
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
    check_region("slice_scatter", src.shape, shape)
    made = _set_slice(input, cast(src, input.dtype), key=key)
    return _call.give("slice_scatter", out, made)


# ---- filling ----


@op(shape=same, name="fill", float8="moved")
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
    if input._device.level is not None and input.layout is not strided and not isinstance(value, TensorBase) and value:
        return full_like(input, value)  # where it has any, which is what is compressed
    return _fill(input, _value_tensor("fill", input, value, input.shape))


def zero(input: Any) -> Any:
    """Return zeros of the same shape and dtype."""
    return fill(input, 0)


masked_scatter_ = inplace(masked_scatter, itself=None)
_masked_fill_, _fill_ = inplace(_masked_fill_into, "masked_fill_", number=True, itself=None), inplace(fill, itself=None)


def masked_fill_(input: Any, mask: Any, value: Any) -> Any:
    """Write a value where the mask is true, in place."""
    check_apart(input, (mask,))
    if isinstance(mask, TensorBase) and mask.dtype is bool_ and mask.shape and _set_plainly(input, mask, value, True):
        return input
    return _masked_fill_(input, mask, value)


def fill_(input: Any, value: Any) -> Any:
    """Write a value everywhere, in place."""
    if isinstance(value, (int, float, complex)) and input.dtype.stored is input.dtype and plain(input):
        input._device.backend.setitem(input._buffer, (...,), hold("fill_", value, input.dtype, input.shape))
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
    input._device.backend.setitem(input._buffer, (...,), 0)
    input._storage.version += 1
    return input
