"""Derivatives and integrals of sampled functions: gradient, the trapezoidal rule and its running form."""

from __future__ import annotations

import numbers
from typing import Any

from mortice import call as _call
from mortice.dtype import get_default_dtype
from mortice.errors import DTypeError, ShapeError
from mortice.ops.arguments import numpy_names
from mortice.ops.elementwise import mul, sub
from mortice.ops.joining import cat
from mortice.ops.movement import reshape
from mortice.ops.scan import cumsum, diff
from mortice.ops.views import narrow
from mortice.shape import check_dim, check_dims
from mortice.tensor import TensorBase

__all__ = ["cumulative_trapezoid", "gradient", "trapezoid", "trapz"]

# ---- gradient ----


def _spacings(spacing: Any, count: int, listed: bool) -> list[Any]:
    """Return a spacing, or the coordinates, for each dim."""
    if spacing is None or isinstance(spacing, numbers.Number):
        return [1 if spacing is None else spacing] * count
    if isinstance(spacing, TensorBase):
        spacing = [spacing] if spacing.shape else [spacing.item()] * count
    found = list(spacing)
    if len(found) != count:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or "
            + ("it's spacing and dim arguments to have the same length, but got a spacing argument of length "
               f"{len(found)} and a dim argument of length {count}." if listed else
               f"a list of length equal to 'self.dim() = {count}', but got a list of length {len(found)}")
        )
    return found


def _edges(x: Any, axis: int, order: int, steps: Any) -> tuple[Any, Any]:
    """Return the derivatives at both ends; `steps` is the spacing, or the differences of the coordinates."""
    n = x.shape[axis]

    def at(i: int) -> Any:
        return narrow(x, axis, i % n, 1)

    def gap(i: int) -> Any:
        return narrow(steps, axis, i % (n - 1), 1) if isinstance(steps, TensorBase) else steps

    if order == 1:
        return (at(1) - at(0)) / gap(0), (at(-1) - at(-2)) / gap(-1)
    if not isinstance(steps, TensorBase):
        return (at(1) * 2 - at(0) * 1.5 - at(2) * 0.5) / steps, (at(-1) * 1.5 - at(-2) * 2 + at(-3) * 0.5) / steps
    ends = []
    # From the end inwards; the differences change their sign on the way back.
    for i, first, second, sign in ((0, gap(0), gap(1), 1), (-1, gap(-1), gap(-2), -1)):
        whole = first + second
        value = at(i) * (-(first + whole) / (first * whole)) + at(i + sign) * (whole / (first * second))
        ends.append((value - at(i + 2 * sign) * (first / (second * whole))) * sign)
    return ends[0], ends[1]


def _along(x: Any, axis: int, spacing: Any, order: int) -> Any:
    n = x.shape[axis]
    before, here, after = (narrow(x, axis, i, n - 2) for i in range(3))
    if not isinstance(spacing, TensorBase):
        first, last = _edges(x, axis, order, spacing)
        return cat([first, (after - before) / (2 * spacing), last], axis)
    if spacing.shape != (n,):
        raise ShapeError(
            f"gradient: expected each coordinate tensor to be one-dimensional, as long as its dim; got "
            f"{list(spacing.shape)} for a dim of size {n}."
        )
    steps = reshape(diff(spacing), [-1 if d == axis else 1 for d in range(len(x.shape))])
    first, last = _edges(x, axis, order, steps)
    left, right = narrow(steps, axis, 0, n - 2), narrow(steps, axis, 1, n - 2)
    whole = left + right
    inner = after * (left / (right * whole)) + here * ((right - left) / (left * right))
    return cat([first, inner - before * (right / (left * whole)), last], axis)


@numpy_names
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """Estimate the derivative along each dim by differences: central inside, one-sided of `edge_order` at the ends.

    `spacing` is one number, a number per dim, or a vector of coordinates per dim.
    """
    ndim = len(input.shape)
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2; got {edge_order}.")
    axes = check_dims("gradient", dim, ndim)
    for axis in axes:
        if input.shape[axis] < edge_order + 1:
            raise ShapeError(
                "torch.gradient expected each dimension size to be at least edge_order+1; got "
                f"{list(input.shape)} and edge_order {edge_order}."
            )
    if input.dtype.kind == "b":
        raise DTypeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    x = input if input.dtype.kind in "fc" else _call.CAST(input, get_default_dtype())
    spacings = _spacings(spacing, len(axes), dim is not None)
    return tuple([_along(x, a, s, edge_order) for a, s in zip(axes, spacings)])


# ---- the trapezoidal rule ----


def _panels(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, int]:
    """Return twice the area between neighbours along a dim."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}: expected either x or dx; got both.")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number; got {dx}.")
    if isinstance(x, TensorBase) and x.dtype.kind == "b" or y.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported.")
    axis = check_dim(name, dim, len(y.shape))
    if not y.shape:
        raise ShapeError(f"{name}: expected y to have at least one dim; got a 0-d tensor.")
    n = y.shape[axis]
    if not n:
        return narrow(y, axis, 0, 0) * 1.0, axis
    pairs = narrow(y, axis, 1, n - 1) + narrow(y, axis, 0, n - 1)
    if x is None:
        return mul(pairs, 1 if dx is None else dx), axis
    if not isinstance(x, TensorBase):
        return mul(pairs, x), axis
    if not x.shape:
        raise ShapeError(f"{name}: the provided `x` is not allowed to be a scalar; got a 0-d tensor. Pass dx=.")
    if len(x.shape) == 1:
        if x.shape[0] != n:
            raise ShapeError(
                f"{name}: There must be one `x` value for each sample point; got {x.shape[0]} for {n} along dim {dim}."
            )
        x = reshape(x, [-1 if d == axis else 1 for d in range(len(y.shape))])
    elif len(x.shape) < len(y.shape):
        x = reshape(x, (*(1,) * (len(y.shape) - len(x.shape)), *x.shape))
    at = axis - len(y.shape)
    size = x.shape[at]
    return mul(sub(narrow(x, at, 1, size - 1), narrow(x, at, 0, size - 1)), pairs), axis


@numpy_names
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Integrate samples along a dim by trapezoids; x holds their places, dx is their distance."""
    panels, axis = _panels("trapezoid", y, x, dx, dim)
    return panels.sum(axis) / 2.0


@numpy_names
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Integrate samples along a dim by trapezoids: trapezoid's older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


@numpy_names
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Integrate samples up to each but the first, along a dim, by trapezoids."""
    panels, axis = _panels("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(panels, axis) / 2.0
