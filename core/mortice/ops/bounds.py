"""Choices and bounds: where, the larger or smaller of two, clamp."""

from __future__ import annotations

from types import NoneType
from typing import Any

from mortice import call as _call
from mortice.backends.kernel_tools import as_buffers, is_number
from mortice.call import no_tensor
from mortice.dtype import DType, bool_, check_kind
from mortice.errors import DTypeError
from mortice.mutation import check_apart
from mortice.node import TENSOR_KERNELS, named
from mortice.notice import warn
from mortice.op import Op, op
from mortice.ops.creation import filled
from mortice.ops.elementwise import common_dtype
from mortice.rules import fit_number, held, hold, promote
from mortice.shape import SCALAR, broadcast
from mortice.tensor import TensorBase

__all__ = ["clamp", "clamp_max", "clamp_min", "clip", "fmax", "fmin", "maximum", "minimum"]


def _fits(op: Op, value: Any, d: DType, position: int = 0) -> Any:
    return fit_number(op, value, d) if d.itemsize < 4 else hold(op.name, value, d)  # half precision may overflow, as in PyTorch


@op(shape=broadcast, fixed=("condition",), kernel="where", scalars=True, name="where", number=_fits, float8="moved")
def _where(k: Any, condition: Any, x: Any, y: Any, /) -> Any:
    """Choose x where the condition holds, else y; broadcasting."""


_where.vjp(
    x=lambda k, g, condition: k.where(condition, g, 0),
    y=lambda k, g, condition: k.where(condition, 0, g),
    jvp="linear",
)


def where(condition: Any, input: Any, other: Any, *, out: Any = None) -> Any:
    """Choose `input` where the condition holds, else `other`."""
    if not isinstance(condition, TensorBase):
        raise no_tensor("where", "condition", condition)
    if condition.dtype is not bool_:
        if condition.dtype.name != "uint8":
            raise DTypeError(f"where: expected condition to be a boolean tensor; got {condition.dtype}. Use != 0.")
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of "
            "PyTorch. Use a boolean condition instead.",
            once=True,
        )
        condition = _call.CAST(condition, bool_)
    if not (isinstance(input, TensorBase) or is_number(input)):
        input = _call.as_operand(_where.op, input, 1)
    if not (isinstance(other, TensorBase) or is_number(other)):
        other = _call.as_operand(_where.op, other, 2)
    if is_number(input) and is_number(other):
        input = filled("where", SCALAR, input, common_dtype(input, other), condition._device)
    return _where(condition, input, other, out=out)


def _half_at_ties(k: Any, g: Any, x: Any, y: Any, beaten: Any) -> Any:
    return k.where(k.equal(x, y), k.multiply(g, 0.5), k.where(beaten, 0, g))


@op(result=promote, shape=broadcast, kernel="maximum", dtypes="buif")
def maximum(k: Any, x: Any, y: Any, /) -> Any:
    """Return the larger of two; nan if either is. Equal values share the gradient."""


maximum.vjp(
    x=lambda k, g, x, y: _half_at_ties(k, g, x, y, k.less(x, y)),
    y=lambda k, g, x, y: _half_at_ties(k, g, x, y, k.less(y, x)),
    jvp="elementwise",
)


@op(result=promote, shape=broadcast, kernel="minimum", dtypes="buif")
def minimum(k: Any, x: Any, y: Any, /) -> Any:
    """Return the smaller of two; nan if either is. Equal values share the gradient."""


minimum.vjp(
    x=lambda k, g, x, y: _half_at_ties(k, g, x, y, k.less(y, x)),
    y=lambda k, g, x, y: _half_at_ties(k, g, x, y, k.less(x, y)),
    jvp="elementwise",
)


def _takes_first(k: Any, x: Any, y: Any, sign: int) -> Any:
    reaches = k.less_equal(y, x) if sign > 0 else k.less_equal(x, y)
    return k.logical_or(reaches, k.isnan(y)) if k.dtype_of(y).is_floating_point else reaches


def _pick(k: Any, x: Any, y: Any, sign: int) -> Any:
    x, y = as_buffers(k, x, y)
    return k.where(_takes_first(k, x, y, sign), x, y)


@op(result=promote, shape=broadcast, dtypes="buif")
def fmax(k: Any, x: Any, y: Any, /) -> Any:
    """Return the larger of two; a number beats nan."""
    return _pick(k, x, y, 1)


fmax.vjp(
    x=lambda k, g, x, y: k.where(_takes_first(k, x, y, 1), g, 0),
    y=lambda k, g, x, y: k.where(_takes_first(k, x, y, 1), 0, g),
    jvp="elementwise",
)


@op(result=promote, shape=broadcast, dtypes="buif")
def fmin(k: Any, x: Any, y: Any, /) -> Any:
    """Return the smaller of two; a number beats nan."""
    return _pick(k, x, y, -1)


fmin.vjp(
    x=lambda k, g, x, y: k.where(_takes_first(k, x, y, -1), g, 0),
    y=lambda k, g, x, y: k.where(_takes_first(k, x, y, -1), 0, g),
    jvp="elementwise",
)


@op(
    result=promote, shape=broadcast, kernel="clip", name="clamp", dtypes="buif", number=held,
    grad_name_of=lambda node: f"ClampBackward{int(node.edges[1] is None is node.edges[2])}",
)  # fmt: skip
def _clamp(k: Any, x: Any, lo: Any, hi: Any, /) -> Any:
    """Limit x to lo from below, then to hi from above; either may be None."""


def _clamp_to_x(k: Any, g: Any, x: Any, lo: Any, hi: Any) -> Any:
    if lo is None or hi is None:
        inside = k.less_equal(x, hi) if lo is None else k.less_equal(lo, x)
    else:
        inside = k.logical_and(k.less_equal(lo, x), k.less_equal(x, hi))
    return k.where(inside, g, 0)


def _clamp_to_low(k: Any, g: Any, x: Any, lo: Any, hi: Any) -> Any:
    used = k.less(x, lo)
    if hi is not None:
        used = k.logical_and(used, k.less(lo, hi))
    return k.where(used, g, 0)


def _clamp_to_high(k: Any, g: Any, x: Any, lo: Any, hi: Any) -> Any:
    used = k.less(hi, x)
    if lo is not None:
        used = k.logical_or(used, k.less(hi, lo))
    return k.where(used, g, 0)


_clamp.vjp(x=_clamp_to_x, lo=_clamp_to_low, hi=_clamp_to_high, jvp="elementwise")
TENSOR_KERNELS.replace("clip", lambda x, lo=None, hi=None: _clamp(x, lo, hi))


def _clamped(x: Any, lo: Any, hi: Any, out: Any) -> Any:
    if not (isinstance(lo, TensorBase) or isinstance(hi, TensorBase)):
        if x.dtype is bool_ and {type(lo), type(hi)} <= {bool, NoneType}:  # other numbers make integers of it
            check_kind("clamp", bool_, "uif")
        return _clamp(x, lo, hi, out=out)
    if out is None:
        return _clamp(x, lo, hi, out=out)
    check_apart(out, (x, lo, hi))
    return _call.WRITE_OUT("clamp", out, _clamp(x, lo, hi))  # between tensors the result may be cast


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Limit to [min, max]: numbers or tensors; where min exceeds max the result is max."""
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None.")
    return _clamped(input, min, max, out)


clamp.op = _clamp.op
clip = clamp


def clamp_min(input: Any, min: Any, *, out: Any = None) -> Any:
    """Limit from below."""
    return named(_clamped(input, min, None, out), f"ClampMinBackward{int(isinstance(min, TensorBase))}")


def clamp_max(input: Any, max: Any, *, out: Any = None) -> Any:
    """Limit from above."""
    return named(_clamped(input, None, max, out), f"ClampMaxBackward{int(isinstance(max, TensorBase))}")
