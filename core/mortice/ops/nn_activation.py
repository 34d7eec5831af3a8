"""Activations, softmax and dropout. Half precision is computed in float32 and rounded once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from mortice.backends.kernel_tools import in_float32
from mortice.call import no_tensor
from mortice.dtype import DType, check_kind, finfo, float32
from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.mutation import inplace
from mortice.node import named
from mortice.op import op
from mortice.ops.arguments import numpy_names
from mortice.ops.data import number
from mortice.ops.movement import cast, reshape
from mortice.ops.random import bernoulli_mask
from mortice.rules import hold, same
from mortice.shape import Size, broadcast, check_dim, prod
from mortice.tensor import TensorBase

__all__ = [
    "alpha_dropout", "alpha_dropout_", "celu", "celu_", "dropout", "dropout_", "feature_alpha_dropout",
    "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "hardshrink", "log_softmax", "prelu",
    "relu", "relu_", "selu", "selu_", "softmax", "threshold", "threshold_",
]  # fmt: skip

# ---- relu and the other straight lines ----


@op(shape=same, kernel="relu", dtypes="uif")
def relu(k: Any, x: Any, /) -> Any:
    """Replace what is negative by 0."""


relu.vjp(x=lambda k, g, out: k.relu_grad(g, out), jvp="elementwise", zero_again=True)


@op(shape=same, name="hardtanh", dtypes="uif")
def _hardtanh(k: Any, x: Any, /, *, low: Any, high: Any) -> Any:
    """Limit to [low, high]; no gradient at the limits."""
    return k.clip(x, low, high)


_hardtanh.vjp(x=lambda k, g, x, low, high: k.hardtanh_grad(g, x, low=low, high=high), jvp="elementwise", zero_again=True)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """Limit to [min_val, max_val]."""
    min_val, max_val = number(min_val, "hardtanh", "min_val"), number(max_val, "hardtanh", "max_val")
    if isinstance(input, TensorBase) and input.dtype.kind in "ui":
        if input.dtype.kind == "u" and min_val < 0:
            raise DTypeError(f"hardtanh: cannot do hardtanh on an unsigned type with negative limits; got {min_val}.")
    if isinstance(input, TensorBase) and input.dtype.kind in "uif":
        min_val, max_val = (hold("hardtanh", v, input.dtype) for v in (min_val, max_val))
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val cannot be greater than max_val; got {min_val} and {max_val}.")
    return _hardtanh(input, low=min_val, high=max_val)


def relu6(input: Any) -> Any:
    """Limit to [0, 6]."""
    return hardtanh(input, 0.0, 6.0)


@op(shape=same, kernel="leaky_relu", name="leaky_relu", dtypes="f")
def _leaky_relu(k: Any, x: Any, /, *, slope: float) -> Any:
    """Multiply what is negative by a slope."""


_leaky_relu.vjp(x=lambda k, g, x, slope: k.leaky_relu_grad(g, x, slope=slope), jvp="elementwise", zero_again=True)


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    """Multiply what is negative by a slope."""
    return _leaky_relu(input, slope=negative_slope)


@op(shape=broadcast, kernel="prelu", name="prelu_kernel", dtypes="f", scalars=False)
def _prelu(k: Any, x: Any, weight: Any, /) -> Any:
    """Multiply what is negative by a weight, broadcasting."""


_prelu.vjp(
    x=lambda k, g, x, weight: k.where(k.less(0, x), g, k.multiply(g, weight)),
    weight=lambda k, g, x: k.where(k.less(0, x), 0, k.multiply(g, x)),
    jvp="elementwise",
    zero_again=True,
)


@autocasting
def prelu(input: Any, weight: Any) -> Any:
    """Multiply what is negative by a learned slope: one for all, or one a channel (dim 1)."""
    if not isinstance(weight, TensorBase):
        raise no_tensor("prelu", "weight", weight)
    if input.dtype is not weight.dtype:
        raise DTypeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    ndim, n = len(input.shape), prod(weight.shape)
    if len(weight.shape) > 1:
        raise ShapeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {len(weight.shape)}")
    if n != 1:
        channels = input.shape[1] if ndim > 1 else 1
        if ndim == 0:
            raise ShapeError("prelu: Not allow zero-dim input tensor.")
        if channels != n:
            raise ShapeError(
                f"prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = {n} and channel "
                f"size = {channels}."
            )
    shape = (1,) * ndim if n == 1 else (1, n, *[1] * (ndim - 2))
    return _prelu(input, reshape(weight, shape if ndim else ()))


@op(shape=same, name="threshold", dtypes="uif")
@in_float32
def _threshold(k: Any, x: Any, /, *, limit: Any, value: Any) -> Any:
    """Replace what does not exceed a limit by a value."""
    return k.where(k.less_equal(x, limit), value, x)


_threshold.vjp(
    x=in_float32(lambda k, g, x, limit: k.where(k.less_equal(x, limit), 0, g)), jvp="elementwise", zero_again=True
)


def threshold(input: Any, threshold: float, value: float, *, out: Any = None) -> Any:
    """Replace what does not exceed `threshold` by `value`."""
    threshold, value = number(threshold, "threshold", "threshold"), number(value, "threshold", "value")
    if isinstance(input, TensorBase) and input.dtype.kind in "uif":
        d = input.dtype
        threshold = hold("threshold", threshold, float32 if d.kind == "f" and d.itemsize == 2 else d)
        value = hold("threshold", value, d)
    return _threshold(input, limit=threshold, value=value, out=out)


@op(shape=same, kernel="hardshrink", name="hardshrink", dtypes="f")
def _hardshrink(k: Any, x: Any, /, *, lambd: float) -> Any:
    """Replace what lies within [-lambd, lambd] by 0."""


_hardshrink.vjp(
    x=lambda k, g, x, lambd: k.where(k.less_equal(k.abs(x), lambd), 0, g), jvp="elementwise", zero_again=True
)


def hardshrink(input: Any, lambd: float = 0.5, *, out: Any = None) -> Any:
    """Replace what lies within [-lambd, lambd] by 0."""
    lambd = number(lambd, "hardshrink", "lambd")
    if isinstance(input, TensorBase) and input.dtype.kind == "f":
        hold("hardshrink", lambd, input.dtype)
    return _hardshrink(input, lambd=lambd, out=out)


@op(shape=same, kernel="softshrink", name="softshrink", dtypes="f")
def _softshrink(k: Any, x: Any, /, *, lambd: float) -> Any:
    """Move towards 0 by lambd, no further than 0."""


_softshrink.vjp(
    x=lambda k, g, x, lambd: k.where(k.less_equal(k.abs(x), lambd), 0, g), jvp="elementwise", zero_again=True
)


def softshrink(input: Any, lambd: float = 0.5, *, out: Any = None) -> Any:
    """Move towards 0 by lambd, no further than 0."""
    lambd = number(lambd, "softshrink", "lambd")
    most = finfo(input.dtype).max if isinstance(input, TensorBase) and input.dtype.kind == "f" else lambd
    if not 0 <= lambd <= most:
        raise ShapeError(f"softshrink: lambda must be in range [0, {most:g}] for input dtype {input.dtype.name}, but found {lambd}.")
    return _softshrink(input, lambd=lambd, out=out)


@op(shape=same, kernel="hardsigmoid", dtypes="f")
def hardsigmoid(k: Any, x: Any, /) -> Any:
    """Compute x / 6 + 1 / 2, limited to [0, 1]."""


hardsigmoid.vjp(x=lambda k, g, x: k.hardsigmoid_grad(g, x), jvp="elementwise")


@op(shape=same, kernel="hardswish", dtypes="f")
def hardswish(k: Any, x: Any, /) -> Any:
    """Compute x times its hardsigmoid."""


hardswish.vjp(x=lambda k, g, x: k.hardswish_grad(g, x), jvp="elementwise")

# ---- smooth ones ----


@op(shape=same, kernel="silu", dtypes="fc")
def silu(k: Any, x: Any, /) -> Any:
    """Compute x * sigmoid(x)."""


silu.vjp(x=lambda k, g, x: k.silu_grad(g, x), jvp="elementwise")


@op(shape=same, kernel="gelu", name="gelu", dtypes="f")
def _gelu(k: Any, x: Any, /, *, approximate: str) -> Any:
    """Compute x times the normal distribution function of x."""


_gelu.vjp(x=lambda k, g, x, approximate: k.gelu_grad(g, x, approximate=approximate), jvp="elementwise")


def gelu(input: Any, *, approximate: str = "none", out: Any = None) -> Any:
    """Compute x times the normal distribution function of x, exactly or with approximate="tanh"."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate argument must be either none or tanh; got {approximate!r}.")
    return _gelu(input, approximate=approximate, out=out)


@op(shape=same, kernel="elu", name="elu", dtypes="f")
def _elu(k: Any, x: Any, /, *, alpha: float, scale: float, input_scale: float) -> Any:
    """Compute scale * x above 0 and scale * alpha * (exp(input_scale * x) - 1) below."""


_elu.vjp(
    x=lambda k, g, x, alpha, scale, input_scale: k.elu_grad(
        g, x, alpha=alpha, scale=scale, input_scale=input_scale
    ),
    jvp="elementwise",
)

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def elu(input: Any, alpha: float = 1.0) -> Any:
    """Compute alpha * (exp(x) - 1) below 0, x above."""
    return _elu(input, alpha=alpha, scale=1.0, input_scale=1.0)


def selu(input: Any) -> Any:
    """Compute elu with the constants that keep mean 0 and variance 1."""
    return _elu(input, alpha=_SELU_ALPHA, scale=_SELU_SCALE, input_scale=1.0)


def celu(input: Any, alpha: float = 1.0) -> Any:
    """Compute alpha * (exp(x / alpha) - 1) below 0, x above."""
    if alpha == 0:
        raise RuntimeError("celu: ZeroDivisionError: alpha cannot be 0 for CELU")
    return named(_elu(input, alpha=alpha, scale=1.0, input_scale=1 / alpha), "CeluBackward0")


@op(shape=same, name="softplus", dtypes="f")
@in_float32
def _softplus(k: Any, x: Any, /, *, beta: float, threshold: float) -> Any:
    """Compute log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold."""
    return k.softplus(x, beta, threshold)


_softplus.vjp(
    x=lambda k, g, x, beta, threshold: k.softplus_grad(g, x, beta=beta, threshold=threshold), jvp="elementwise"
)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0, *, out: Any = None) -> Any:
    """Compute log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`."""
    return _softplus(input, beta=beta, threshold=threshold, out=out)


@op(shape=same, dtypes="f", grad_name="LogSigmoidBackward0")
def logsigmoid(k: Any, x: Any, /) -> Any:
    """Compute log(sigmoid(x))."""
    return k.logsigmoid(k.contiguous(x))


logsigmoid.vjp(x=lambda k, g, x: k.logsigmoid_grad(g, x), jvp="elementwise")


@op(shape=same, kernel="mish", dtypes="f")
def mish(k: Any, x: Any, /) -> Any:
    """Compute x * tanh(softplus(x))."""


mish.vjp(x=lambda k, g, x: k.mish_grad(g, x), jvp="elementwise")


def _halved(name: str, x: Size, *, axis: int) -> Size:
    shape = list(x)
    shape[axis] //= 2
    return Size(shape)


def _halves(k: Any, x: Any, axis: int) -> tuple[Any, Any]:
    n = k.shape_of(x)[axis] // 2
    before = (slice(None),) * axis
    return k.getitem(x, (*before, slice(0, n))), k.getitem(x, (*before, slice(n, 2 * n)))


@op(shape=_halved, name="glu", dtypes="f")
@in_float32
def _glu(k: Any, x: Any, /, *, axis: int) -> Any:
    """Multiply the first half along an axis by the sigmoid of the second."""
    a, b = _halves(k, x, axis)
    return k.multiply(a, k.sigmoid(b))


def _glu_back(k: Any, g: Any, x: Any, axis: int) -> Any:
    a, b = _halves(k, x, axis)
    s = k.sigmoid(b)
    first = k.multiply(g, s)
    second = k.multiply(k.multiply(first, k.subtract(1, s)), a)
    return k.concat([first, second], axis=axis)


_glu.vjp(x=in_float32(_glu_back))


def glu(input: Any, dim: int = -1) -> Any:
    """Multiply the first half along a dim by the sigmoid of the second."""
    if not input.shape:
        raise ShapeError("glu: glu does not support 0-dimensional tensors")
    axis = check_dim("glu", dim, len(input.shape))
    if input.shape[axis] % 2:
        raise ShapeError(f"glu: Halving dimension must be even, but dimension {axis} is size {input.shape[axis]}")
    return _glu(input, axis=axis)


# ---- softmax ----


@op(shape=same, kernel="softmax", name="softmax", dtypes="f")
def _softmax(k: Any, x: Any, /, *, axis: int) -> Any:
    """Exponentiate and divide by the sum along an axis."""


_softmax.vjp(x=lambda k, g, out, axis: k.softmax_grad(g, out, axis=axis))


@op(shape=same, kernel="log_softmax", name="log_softmax", dtypes="f")
def _log_softmax(k: Any, x: Any, /, *, axis: int) -> Any:
    """Take the logarithm of softmax, stably."""


_log_softmax.vjp(x=lambda k, g, out, axis: k.log_softmax_grad(g, out, axis=axis))


@numpy_names
def softmax(input: Any, dim: int, dtype: DType | None = None, *, out: Any = None) -> Any:
    """Exponentiate and divide by the sum along a dim."""
    x = input if dtype is None else cast(input, dtype)
    return _softmax(x, axis=check_dim("softmax", dim, len(x.shape)), out=out)


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: DType) -> Any:
    """Return the gradient of softmax from its result, for the backward of a Function that a program wrote itself."""
    g = grad_output * output
    return cast(g - output * g.sum(dim, keepdim=True), input_dtype)


@numpy_names
def log_softmax(input: Any, dim: int, dtype: DType | None = None, *, out: Any = None) -> Any:
    """Take the logarithm of softmax along a dim, stably."""
    x = input if dtype is None else cast(input, dtype)
    return _log_softmax(x, axis=check_dim("log_softmax", dim, len(x.shape)), out=out)


# ---- dropout ----


@op(shape=same, kernel="dropout", name="dropout", dtypes="fc", fixed=("keep",), grad_name="MulBackward0")
def _dropout(k: Any, x: Any, keep: Any, /, *, p: float) -> Any:
    """Zero what is not kept and scale the rest by 1 / (1 - p)."""


_dropout.vjp(x=lambda k, g, keep, p: k.dropout(g, keep, p=p), jvp="linear")


def keep_mask(x: Any, p: float, shape: Any = None) -> Any:
    """Draw a bool mask, False with probability p: in the order x lies in, unless a shape is given, or lane by lane."""
    like = x if shape is None and x._device.level is None else None
    return bernoulli_mask(1 - p, x.shape if shape is None else Size(shape), x._device, like=like)


def check_probability(name: str, p: float) -> None:
    """Refuse what is no probability."""
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Any, p: float, train: bool) -> Any:
    """Zero elements with probability p and scale the rest by 1 / (1 - p), in training."""
    check_probability("dropout", p)
    if not train or p == 0:
        return input
    return _dropout(input, keep_mask(input, p), p=p)


def _feature_mask(name: str, x: Any, p: float) -> Any:
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: Feature dropout requires at least 2 dimensions in the input; got {list(x.shape)}.")
    n, channels, *rest = tuple(x.shape)
    return keep_mask(x, p, (n, channels, *[1] * len(rest)))


def feature_dropout(input: Any, p: float, train: bool) -> Any:
    """Zero whole channels of (N, C, *) with probability p and scale the rest, in training."""
    check_probability("feature_dropout", p)
    if not train or p == 0:
        return input
    return _dropout(input, _feature_mask("feature_dropout", input, p), p=p)


_ALPHA_PRIME = 1.7580993408473766


def _alpha(x: Any, keep: Any, p: float) -> Any:
    """Set what is dropped to selu's lower limit and rescale, so that mean and variance stay."""
    check_kind("alpha_dropout", x.dtype, "f")
    if p == 1:
        return x * 0.0
    a = 1 / math.sqrt((_ALPHA_PRIME**2 * p + 1) * (1 - p))
    kept = cast(keep, x.dtype)
    return x * (kept * a) + ((kept - 1.0) * (_ALPHA_PRIME * a) + _ALPHA_PRIME * a * p)


def alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """Drop elements so that selu's mean and variance stay, in training."""
    check_probability("alpha_dropout", p)
    return _alpha(input, keep_mask(input, p), p) if train and p else input


def feature_alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """Drop whole channels so that selu's mean and variance stay, in training."""
    check_probability("feature_alpha_dropout", p)
    return _alpha(input, _feature_mask("feature_alpha_dropout", input, p), p) if train and p else input


# ---- in place ----


def _overwriting(fn: Callable[..., Any], told: str, slope: str) -> Callable[..., Any]:
    """Make what is written over its input refuse backward for a negative slope, of which the result does not tell the input."""

    def refuse(grads: Any) -> None:
        raise RuntimeError(
            f"In-place {told} backward calculation is triggered with a negative slope which is not supported. This is caused by "
            "calling in-place forward function with a negative slope, please call out-of-place version instead."
        )

    @functools.wraps(fn)
    def write(*args: Any, **kwargs: Any) -> Any:
        made = fn(*args, **kwargs)
        if made.requires_grad and made.grad_fn.attrs[slope] < 0:
            made.grad_fn.register_prehook(refuse)
        return made

    return write


relu_ = inplace(relu)
hardtanh_ = inplace(hardtanh)
relu6_ = inplace(relu6)
leaky_relu_ = inplace(_overwriting(leaky_relu, "leakyReLu", "slope"))
threshold_ = inplace(threshold)
hardsigmoid_ = inplace(hardsigmoid)
hardswish_ = inplace(hardswish)
silu_ = inplace(silu)
mish_ = inplace(mish)
elu_ = inplace(_overwriting(elu, "elu", "alpha"))
selu_ = inplace(selu)
celu_ = inplace(_overwriting(celu, "elu", "alpha"))


def _dropping(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make the in-place form of a dropout: where nothing is dropped it writes nothing, so any tensor may come."""
    write = inplace(fn)

    @functools.wraps(write)
    def method(input: Any, p: float, train: bool) -> Any:
        return (write if train and p else fn)(input, p, train)

    return method


dropout_ = _dropping(dropout)
feature_dropout_ = _dropping(feature_dropout)
alpha_dropout_ = _dropping(alpha_dropout)
feature_alpha_dropout_ = _dropping(feature_alpha_dropout)
