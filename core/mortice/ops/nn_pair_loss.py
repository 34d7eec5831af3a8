"""Losses of an input and a target, element by element, with their reduction: one op each, whose node has PyTorch's name."""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import in_float32
from mortice.op import op
from mortice.ops.data import number, range_of
from mortice.ops.movement import cast
from mortice.ops.unary import slope_of_abs
from mortice.ops.views import common
from mortice.shape import SCALAR, Size, prod


def _reduced_shape(name: str, x: Size, y: Size, *weights: Any, reduction: str, **attrs: Any) -> Size:
    return x if reduction == "none" else SCALAR


def _reduced(k: Any, losses: Any, reduction: str) -> Any:
    return k.mean(losses) if reduction == "mean" else k.sum(losses) if reduction == "sum" else losses


def _each(k: Any, g: Any, x: Any, reduction: str) -> Any:
    """Return the gradient of one element's loss from that of the reduced."""
    return k.multiply(g, 1.0 / max(prod(k.shape_of(x)), 1)) if reduction == "mean" else g


def _together(name: str, input: Any, target: Any) -> Any:
    return (input, target) if input.shape == target.shape else common(name, input, target)


# ---- of differences ----


@op(shape=_reduced_shape, name="mse_loss", dtypes="f", grad_name="MseLossBackward0")
@in_float32
def _mse_loss(k: Any, x: Any, y: Any, /, *, reduction: str) -> Any:
    """Return (x - y)^2."""
    d = k.subtract(x, y)
    return _reduced(k, k.into(d, k.multiply, d, d), reduction)


def _mse_back(k: Any, g: Any, x: Any, y: Any, reduction: str) -> Any:
    d = k.subtract(x, y)
    return k.into(d, k.multiply, d, k.multiply(_each(k, g, x, reduction), 2.0))


_mse_loss.vjp(
    x=in_float32(_mse_back), y=in_float32(lambda k, g, x, y, reduction: _mse_back(k, g, y, x, reduction))
)


def mse_loss(input: Any, target: Any, reduction: str) -> Any:
    """Return the squared differences, reduced."""
    return _mse_loss(*_together("mse_loss", input, target), reduction=reduction)


@op(shape=_reduced_shape, name="smooth_l1_loss", dtypes="f", grad_name="SmoothL1LossBackward0")
@in_float32
def _smooth_l1_loss(k: Any, x: Any, y: Any, /, *, reduction: str, beta: float) -> Any:
    """Return d * d / (2 * beta) where d = |x - y| is below beta, else d - beta / 2."""
    return _reduced(k, k.abs(k.subtract(x, y)) if beta == 0 else _huber(k, x, y, beta, beta), reduction)


def _huber(k: Any, x: Any, y: Any, delta: float, scale: float = 1) -> Any:
    """Return d * d / 2 where d = |x - y| is below delta, else delta * (d - delta / 2), divided by `scale`.

    With z as d within -delta and delta both are z * (d - z / 2): no choice between two, and signs cancel.
    """
    d = k.subtract(x, y)
    z = k.clip(d, -delta, delta)
    d = k.into(d, k.addcmul, d, z, -0.5)
    return k.into(d, k.multiply, d, _divided(k, z, scale))


def _divided(k: Any, x: Any, scale: float) -> Any:
    return x if scale == 1 else k.divide(x, scale)


def _huber_slope(k: Any, g: Any, x: Any, y: Any, reduction: str, delta: float, scale: float = 1) -> Any:
    d = k.subtract(x, y)
    d = _divided(k, k.into(d, k.clip, d, -delta, delta), scale)
    return k.into(d, k.multiply, d, _each(k, g, x, reduction))


def _smooth_l1_back(k: Any, g: Any, x: Any, y: Any, reduction: str, beta: float) -> Any:
    if beta:
        return _huber_slope(k, g, x, y, reduction, beta, beta)
    return k.multiply(slope_of_abs(k, k.subtract(x, y)), _each(k, g, x, reduction))


_smooth_l1_loss.vjp(
    x=in_float32(_smooth_l1_back),
    y=in_float32(lambda k, g, x, y, reduction, beta: _smooth_l1_back(k, g, y, x, reduction, beta)),
)


def smooth_l1_loss(input: Any, target: Any, reduction: str, beta: float) -> Any:
    """Return the smooth absolute differences, reduced."""
    return _smooth_l1_loss(*_together("smooth_l1_loss", input, target), reduction=reduction, beta=number(beta, "smooth_l1_loss", "beta"))


@op(shape=_reduced_shape, name="huber_loss", dtypes="f", grad_name="HuberLossBackward0")
@in_float32
def _huber_loss(k: Any, x: Any, y: Any, /, *, reduction: str, delta: float) -> Any:
    """Return d * d / 2 where d = |x - y| is below delta, else delta * (d - delta / 2)."""
    return _reduced(k, _huber(k, x, y, delta), reduction)


_huber_loss.vjp(
    x=in_float32(lambda k, g, x, y, reduction, delta: _huber_slope(k, g, x, y, reduction, delta)),
    y=in_float32(lambda k, g, x, y, reduction, delta: _huber_slope(k, g, y, x, reduction, delta)),
)


def huber_loss(input: Any, target: Any, reduction: str, delta: float) -> Any:
    """Return Huber's function of the differences, reduced."""
    loss = _huber_loss(*_together("huber_loss", input, target), reduction=reduction, delta=number(delta, "huber_loss", "delta"))
    return cast(loss, input.dtype)  # also beside a wider target


# ---- of probabilities ----


def _log(k: Any, x: Any) -> Any:
    return k.maximum(k.log(x), -100.0)


def _log_rest(k: Any, x: Any) -> Any:
    return k.maximum(k.log1p(k.negative(x)), -100.0)


@op(shape=_reduced_shape, name="binary_cross_entropy", dtypes="f", grad_name="BinaryCrossEntropyBackward0")
@in_float32
def _binary_cross_entropy(k: Any, x: Any, y: Any, /, *, reduction: str) -> Any:
    """Return -(y * log(x) + (1 - y) * log(1 - x)), the logarithms no lower than -100."""
    losses = k.subtract(k.multiply(k.subtract(y, 1), _log_rest(k, x)), k.multiply(y, _log(k, x)))
    return _reduced(k, losses, reduction)


_binary_cross_entropy.vjp(
    x=in_float32(
        lambda k, g, x, y, reduction: k.divide(
            k.multiply(_each(k, g, x, reduction), k.subtract(x, y)),
            k.maximum(k.multiply(k.subtract(1, x), x), 1e-12),
        )
    ),
    y=in_float32(
        lambda k, g, x, reduction: k.multiply(
            _each(k, g, x, reduction), k.subtract(_log_rest(k, x), _log(k, x))
        )
    ),
)


def binary_cross_entropy(input: Any, target: Any, reduction: str) -> Any:
    """Return the binary cross entropy of probabilities, reduced.

    Raises:
        RuntimeError: where the input or the target is NaN or lies outside [0, 1].
    """
    _binary_cross_entropy.op.rule(input.dtype)  # complex numbers have no range
    hint = " Use binary_cross_entropy_with_logits for unbounded numbers."
    for name, t, advice in ("input", input, hint), ("target", target, ""):
        low, high = prod(t.shape) and range_of(t) or (0, 1)
        if not (low >= 0 and high <= 1):
            raise RuntimeError(
                f"binary_cross_entropy: all elements of {name} should be between 0 and 1; got {high if low >= 0 else low}.{advice}"
            )
    return _binary_cross_entropy(input, target, reduction=reduction)


@op(
    shape=_reduced_shape, name="binary_cross_entropy_with_logits", dtypes="f",
    grad_name="BinaryCrossEntropyWithLogitsBackward0",
)  # fmt: skip
@in_float32
def _with_logits(k: Any, x: Any, y: Any, /, *, reduction: str) -> Any:
    """Return -(y * log(sigmoid(x)) + (1 - y) * log(1 - sigmoid(x))) as (1 - y) * x - logsigmoid(x)."""
    return _reduced(k, k.subtract(k.multiply(k.subtract(1, y), x), k.logsigmoid(x)), reduction)


_with_logits.vjp(
    x=in_float32(
        lambda k, g, x, y, reduction: k.multiply(k.subtract(k.sigmoid(x), y), _each(k, g, x, reduction))
    ),
    y=in_float32(lambda k, g, x, reduction: k.negative(k.multiply(x, _each(k, g, x, reduction)))),
)


def binary_cross_entropy_with_logits(input: Any, target: Any, reduction: str) -> Any:
    """Return the binary cross entropy of logits, reduced."""
    return _with_logits(*_together("binary_cross_entropy_with_logits", input, target), reduction=reduction)
