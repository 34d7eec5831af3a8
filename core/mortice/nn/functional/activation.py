"""Activations, softmax and dropout: `mortice.nn.functional`'s signatures over the ops."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import _nn
from mortice.notice import warn

__all__ = [
    "alpha_dropout", "celu", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "feature_alpha_dropout",
    "gumbel_softmax", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_softmax", "mish", "relu",
    "relu6", "rrelu", "selu", "sigmoid", "silu", "softmax", "softmin", "softsign", "tanh", "tanhshrink",
    "threshold",
]  # fmt: skip

# ---- elementwise ----


def relu(input: Any, inplace: bool = False) -> Any:
    """Replace what is negative by 0."""
    return _nn.relu_(input) if inplace else _nn.relu(input)


def relu6(input: Any, inplace: bool = False) -> Any:
    """Limit to [0, 6]."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Limit to [min_val, max_val]."""
    return (_nn.hardtanh_ if inplace else _nn.hardtanh)(input, min_val, max_val)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Multiply what is negative by a slope."""
    return (_nn.leaky_relu_ if inplace else _nn.leaky_relu)(input, negative_slope)


def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """Multiply what is negative by a slope: drawn from [lower, upper] in training, their middle otherwise."""
    if lower > upper:
        raise RuntimeError(
            f"rrelu: Lower bound should be less than or equal to the upper bound; got {lower} and {upper}."
        )
    if not inplace:
        input = input.contiguous()
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = mortice.rand_like(input) * (upper - lower) + lower
    out = mortice.where(input > 0, input, input * slope)
    return input.copy_(out) if inplace else out


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Compute alpha * (exp(x) - 1) below 0, x above."""
    return (_nn.elu_ if inplace else _nn.elu)(input, alpha)


def selu(input: Any, inplace: bool = False) -> Any:
    """Compute elu with the constants that keep mean 0 and variance 1."""
    return (_nn.selu_ if inplace else _nn.selu)(input)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Compute alpha * (exp(x / alpha) - 1) below 0, x above."""
    return (_nn.celu_ if inplace else _nn.celu)(input, alpha)


def silu(input: Any, inplace: bool = False) -> Any:
    """Compute x * sigmoid(x)."""
    return (_nn.silu_ if inplace else _nn.silu)(input)


def mish(input: Any, inplace: bool = False) -> Any:
    """Compute x * tanh(softplus(x))."""
    return (_nn.mish_ if inplace else _nn.mish)(input)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """Compute x / 6 + 1 / 2, limited to [0, 1]."""
    return (_nn.hardsigmoid_ if inplace else _nn.hardsigmoid)(input)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """Compute x times its hardsigmoid."""
    return (_nn.hardswish_ if inplace else _nn.hardswish)(input)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Replace what does not exceed `threshold` by `value`."""
    return (_nn.threshold_ if inplace else _nn.threshold)(input, threshold, value)


def sigmoid(input: Any) -> Any:
    """Compute 1 / (1 + exp(-x))."""
    return mortice.sigmoid(input)


def tanh(input: Any) -> Any:
    """Compute the hyperbolic tangent."""
    return mortice.tanh(input)


def softsign(input: Any) -> Any:
    """Compute x / (1 + |x|)."""
    return input / (mortice.abs(input) + 1)


def tanhshrink(input: Any) -> Any:
    """Compute x - tanh(x)."""
    return input - mortice.tanh(input)


# ---- softmax ----


def _dim(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Exponentiate and divide by the sum along a dim."""
    return _nn.softmax(input, _dim("softmax", input.ndim) if dim is None else dim, dtype=dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Compute softmax(-x) along a dim."""
    return _nn.softmax(-input, _dim("softmin", input.ndim) if dim is None else dim, dtype=dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Take the logarithm of softmax along a dim, stably."""
    return _nn.log_softmax(input, _dim("log_softmax", input.ndim) if dim is None else dim, dtype=dtype)


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """Draw from the Gumbel-softmax distribution; with `hard`, one-hot with the soft gradient."""
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -mortice.log(mortice.empty_like(logits, memory_format=mortice.contiguous_format).exponential_())
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = mortice.argmax(soft, dim, keepdim=True)
    picked = mortice.zeros_like(logits).scatter(dim, best, 1.0)
    return picked - soft.detach() + soft


# ---- dropout ----


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero elements with probability p and scale the rest by 1 / (1 - p), in training."""
    return (_nn.dropout_ if inplace else _nn.dropout)(input, p, training)


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Drop elements so that selu's mean and variance stay, in training."""
    return (_nn.alpha_dropout_ if inplace else _nn.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Drop whole channels so that selu's mean and variance stay, in training."""
    return (_nn.feature_alpha_dropout_ if inplace else _nn.feature_alpha_dropout)(input, p, training)


def _channels(
    name: str, input: Any, p: float, training: bool, inplace: bool, batched: tuple[int, ...], single: int
) -> Any:
    _nn.check_probability(name, p)
    if input.ndim not in (*batched, single):
        warn(
            f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will result in an error in a "
            f"future release. Expected {single}-D (no batch) or {batched[-1]}-D input."
        )
    if input.ndim not in batched and single not in batched:
        if inplace:
            _nn.feature_dropout_(input.unsqueeze(0), p, training)
            return input
        return _nn.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)
    return (_nn.feature_dropout_ if inplace else _nn.feature_dropout)(input, p, training)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of (N, C, L) or (C, L) with probability p, in training."""
    _nn.check_probability("dropout1d", p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _channels("dropout1d", input, p, training, inplace, (3,), 2)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of (N, C, H, W) with probability p, in training.

    A 3-D input is taken as (N, C, L), with a warning, as in PyTorch.
    """
    _nn.check_probability("dropout2d", p)
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _channels("dropout2d", input, p, training, inplace, (3, 4), 3)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W) with probability p, in training."""
    return _channels("dropout3d", input, p, training, inplace, (5,), 4)
