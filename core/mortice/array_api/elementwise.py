"""Elementwise functions: mortice's own, under the standard's names, and those whose special cases differ from PyTorch's."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    exp,
    expm1,
    floor,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    trunc,
)
from mortice import bitwise_not as bitwise_invert
from mortice import eq as equal
from mortice import sgn as sign
from mortice.ops.elementwise import floordiv as floor_divide

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos",
    "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag",
    "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal",
    "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


def round(x: Any, /) -> Any:
    """Round to the nearest, ties to even; of complex numbers each part."""
    return mt.complex(mt.round(x.real), mt.round(x.imag)) if x.dtype.is_complex else mt.round(x)


def tanh(x: Any, /) -> Any:
    """Return the hyperbolic tangent; of +-infinity + bj it is +-1 with a zero of the sign of b, or of C99's sin(2 b) in PyTorch."""
    t = mt.tanh(x)
    if not x.dtype.is_complex:
        return t
    at_the_end = mt.logical_and(mt.isinf(x.real), mt.isfinite(x.imag))
    return mt.where(at_the_end, mt.complex(t.real, mt.copysign(mt.zeros_like(x.imag), x.imag)), t)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Limit to a range that may be open at either end, or at both."""
    return mt.clone(x) if min is None and max is None else mt.clip(x, min, max)
