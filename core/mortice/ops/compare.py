"""Comparisons, tests of single values, logic and bits: results that are true or false, or made of bits."""

from __future__ import annotations

from typing import Any

from mortice import call as _call
from mortice.call import no_tensor
from mortice.dtype import bool_, get_default_dtype
from mortice.errors import DTypeError
from mortice.op import op
from mortice.rules import comparison, logical, number_of, promote, same, wrap_operand
from mortice.shape import broadcast
from mortice.tensor import TensorBase

__all__ = [
    "allclose", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "eq", "equal", "ge", "greater", "greater_equal", "gt", "isclose", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "le", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
    "ne", "not_equal", "signbit",
]  # fmt: skip

# ---- order ----


@op(result=comparison, shape=broadcast, kernel="equal", number=wrap_operand, float8="read")
def eq(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where x equals y."""


@op(result=comparison, shape=broadcast, kernel="not_equal", number=wrap_operand, float8="read")
def ne(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where x differs from y; nan differs from everything."""


@op(result=comparison, shape=broadcast, kernel="less", dtypes="buif", number=wrap_operand)
def lt(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where x < y."""


@op(result=comparison, shape=broadcast, kernel="less_equal", dtypes="buif", number=wrap_operand)
def le(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where x <= y."""


@op(result=comparison, shape=broadcast, kernel="greater", dtypes="buif", number=wrap_operand)
def gt(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where x > y."""


@op(result=comparison, shape=broadcast, kernel="greater_equal", dtypes="buif", number=wrap_operand)
def ge(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where x >= y."""


for _fn in (eq, ne, lt, le, gt, ge):
    _fn.no_grad("its result is a truth value")
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge

# ---- single values ----


@op(result=comparison, shape=same, name="isnan", kernel="isnan", dtypes="fc", float8="read")
def _isnan(k: Any, x: Any, /) -> Any:
    """Tell where x is not a number."""


@op(result=comparison, shape=same, kernel="isinf")
def isinf(k: Any, x: Any, /) -> Any:
    """Tell where x, or a part of it, is infinite."""


@op(result=comparison, shape=same, kernel="isfinite")
def isfinite(k: Any, x: Any, /) -> Any:
    """Tell where x is neither infinite nor nan."""


@op(result=comparison, shape=same, kernel="signbit", dtypes="buif")
def signbit(k: Any, x: Any, /) -> Any:
    """Tell where the sign is set, that of -0.0 included."""


for _fn in (_isnan, isinf, isfinite, signbit):
    _fn.no_grad("its result is a truth value")


def _constant(x: Any, value: bool) -> Any:
    from mortice.ops.creation import full_like

    return full_like(x, value, dtype=bool_)


def isnan(input: Any) -> Any:
    """Tell where x is not a number."""
    return _isnan(input) if input.dtype.kind in "fc" else _constant(input, False)


def isposinf(input: Any, *, out: Any = None) -> Any:
    """Tell where x is positive infinity."""
    found = eq(input, float("inf")) if _ordered("isposinf", input).kind == "f" else _constant(input, False)
    return _call.give("isposinf", out, found)


def isneginf(input: Any, *, out: Any = None) -> Any:
    """Tell where x is negative infinity."""
    found = eq(input, float("-inf")) if _ordered("isneginf", input).kind == "f" else _constant(input, False)
    return _call.give("isneginf", out, found)


def _ordered(name: str, x: Any) -> Any:
    if x.dtype.is_complex:
        raise DTypeError(f"{name}: does not support complex inputs; got {x.dtype}. Test the parts.")
    return x.dtype


def isreal(input: Any) -> Any:
    """Tell where the imaginary part is 0."""
    if not input.dtype.is_complex:
        return _constant(input, True)
    from mortice.ops.complex import imag

    return eq(imag(input), 0)


def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Tell where |input - other| <= atol + rtol * |other|."""
    for x in (input, other):
        if not isinstance(x, TensorBase):
            raise TypeError(f"isclose: expected two Tensors; got {type(x).__name__}.")
    if input.dtype is not other.dtype:
        raise DTypeError(f"isclose: {input.dtype.name} did not match {other.dtype.name}. Convert one of them.")
    rtol, atol = number_of("isclose", "rtol", rtol), number_of("isclose", "atol", atol)
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"isclose: {name} must be greater than or equal to zero, but got {value}")
    close = eq(input, other)
    if equal_nan and input.dtype.kind in "fc":
        close = close | (_isnan(input) & _isnan(other))
    if rtol == 0 and atol == 0:
        return close
    x, y = input.detach(), other.detach()
    if input.dtype.kind in "bui":
        x, y = _call.CAST(x, get_default_dtype()), _call.CAST(y, get_default_dtype())
    apart = abs(x - y)
    return close | (isfinite(apart) & (apart <= atol + abs(rtol * y)))


def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Tell whether all elements are close, as `isclose` has it."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


def equal(input: Any, other: Any) -> bool:
    """Tell whether two tensors have the same shape and elements."""
    if not isinstance(other, TensorBase):
        raise no_tensor("equal", "other", other)
    _call.check_device(eq.op, input, other)
    if input.shape != other.shape:
        return False
    d = input.dtype
    if d is other.dtype and d.stored is d and input._device is other._device and input._device.level is None:
        return input._device.backend.all_equal(input._buffer, other._buffer)
    return bool(eq(input, other).all().item())


# ---- logic ----


@op(result=logical, shape=broadcast, kernel="logical_and")
def logical_and(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where both are nonzero."""


@op(result=logical, shape=broadcast, kernel="logical_or")
def logical_or(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where at least one is nonzero."""


@op(result=logical, shape=broadcast, kernel="logical_xor")
def logical_xor(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where exactly one is nonzero."""


@op(result=logical, shape=same, kernel="logical_not")
def logical_not(k: Any, x: Any, /) -> Any:
    """Tell where x is zero."""


for _fn in (logical_and, logical_or, logical_xor, logical_not):
    _fn.no_grad("its result is a truth value")

# ---- bits ----


@op(result=promote, shape=broadcast, kernel="bitwise_and", dtypes="bui", number=wrap_operand)
def bitwise_and(k: Any, x: Any, y: Any, /) -> Any:
    """Combine bits by and; of bools the truth values."""


@op(result=promote, shape=broadcast, kernel="bitwise_or", dtypes="bui", number=wrap_operand)
def bitwise_or(k: Any, x: Any, y: Any, /) -> Any:
    """Combine bits by or; of bools the truth values."""


@op(result=promote, shape=broadcast, kernel="bitwise_xor", dtypes="bui", number=wrap_operand)
def bitwise_xor(k: Any, x: Any, y: Any, /) -> Any:
    """Combine bits by exclusive or; of bools the truth values."""


@op(result=promote, shape=same, kernel="bitwise_invert", dtypes="bui")
def bitwise_not(k: Any, x: Any, /) -> Any:
    """Flip every bit; of bools the truth value."""


@op(result=promote, shape=broadcast, kernel="bitwise_left_shift", dtypes="ui", number=wrap_operand)
def bitwise_left_shift(k: Any, x: Any, y: Any, /) -> Any:
    """Shift bits to the left; 0 by more bits than there are."""


@op(result=promote, shape=broadcast, kernel="bitwise_right_shift", dtypes="ui", number=wrap_operand)
def bitwise_right_shift(k: Any, x: Any, y: Any, /) -> Any:
    """Shift bits to the right, keeping the sign."""


for _fn in (bitwise_and, bitwise_or, bitwise_xor, bitwise_not, bitwise_left_shift, bitwise_right_shift):
    _fn.no_grad("it computes with bits")
