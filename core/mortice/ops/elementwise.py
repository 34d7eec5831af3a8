"""Arithmetic, powers, exponentials, trigonometry, rounding, clamping: one value out per value in, broadcasting."""

from __future__ import annotations

import math
import warnings
from typing import Any

from mortice.dtype import DType, bool_, float32
from mortice.errors import DTypeError
from mortice.op import TensorBase, broadcast, comparison, floating, op, promote, real_part, same

PI_ROOT = math.sqrt(math.pi)


def no_bool(name: str, x: Any, y: Any, **attrs: Any) -> None:
    """Refuse subtraction on bools, which users write when they mean `^` or `~`."""
    if (x if isinstance(x, TensorBase) else y).dtype is bool_:
        raise DTypeError(
            f"{name}: Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )


# ---- arithmetic ----


@op(result=promote, shape=broadcast, kernel="add", name="add")
def _add(k: Any, x: Any, y: Any, /) -> Any:
    """Add elementwise, broadcasting."""
    return k.add(x, y)


_add.vjp(x=lambda k, g: g, y=lambda k, g: g, jvp="linear")


@op(result=promote, shape=broadcast, kernel="subtract", name="sub", dtypes="uifc")
def _sub(k: Any, x: Any, y: Any, /) -> Any:
    """Subtract elementwise, broadcasting. Bools are refused: use `^`."""
    return k.subtract(x, y)


_sub.vjp(x=lambda k, g: g, y=lambda k, g: k.negative(g), jvp="linear")


@op(result=promote, shape=broadcast, kernel="multiply")
def mul(k: Any, x: Any, y: Any, /) -> Any:
    """Multiply elementwise, broadcasting."""
    return k.multiply(x, y)


mul.vjp(x=lambda k, g, y: k.multiply(g, y), y=lambda k, g, x: k.multiply(g, x), jvp="bilinear")


@op(result=floating, shape=broadcast, kernel="divide", name="div")
def _div(k: Any, x: Any, y: Any, /) -> Any:
    """Divide elementwise, broadcasting. Integers give the default float dtype."""
    return k.divide(x, y)


_div.vjp(
    x=lambda k, g, y: k.divide(g, y),
    y=lambda k, g, y, out: k.negative(k.divide(k.multiply(g, out), y)),
    jvp="elementwise",
)


@op(result=promote, shape=broadcast, kernel="floor_divide", dtypes="uif")
def floor_divide(k: Any, x: Any, y: Any, /) -> Any:
    """Divide and round towards minus infinity."""
    return k.floor_divide(x, y)


floor_divide.no_grad()


@op(shape=broadcast, fixed=("condition",), kernel="where", scalars=True, name="where")
def _where(k: Any, condition: Any, x: Any, y: Any, /) -> Any:
    """Choose x where the condition holds, else y; broadcasting."""
    return k.where(condition, x, y)


_where.vjp(
    x=lambda k, g, condition: k.where(condition, g, 0),
    y=lambda k, g, condition: k.where(condition, 0, g),
    jvp="linear",
)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Choose `input` where the condition holds, else `other`; with a condition alone, return where it is true."""
    return _where(condition, input, other)


# ---- the table of simple functions, comparisons ----


@op(result=comparison, shape=broadcast, kernel="less")
def lt(k: Any, x: Any, y: Any, /) -> Any:
    """Tell where x < y."""
    return k.less(x, y)


lt.no_grad()
