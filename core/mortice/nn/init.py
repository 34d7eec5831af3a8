"""Initialisers: fill a tensor in place, outside the graph, and return it."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import mortice
from mortice.notice import warn

_LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the variance through a nonlinearity."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope: Any = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ValueError(
            f"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions; got shape {list(shape)}. "
            "Initialise biases with zeros_ or constant_."
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


# ---- filling ----

_skipping: ContextVar[bool] = ContextVar("skipping", default=False)


@contextlib.contextmanager
def skipping() -> Iterator[None]:
    """Let initialisers leave tensors as they are; for `nn.utils.skip_init`."""
    token = _skipping.set(True)
    try:
        yield
    finally:
        _skipping.reset(token)


def _fills(fn: Any) -> Any:
    """Run an initialiser outside the graph, unless initialisation is being skipped."""

    @functools.wraps(fn)
    def fill(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if _skipping.get():
            return tensor
        with mortice.no_grad():
            return fn(tensor, *args, **kwargs)

    return fill


@_fills
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Draw from uniform(a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_fills
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Draw from normal(mean, std)."""
    return tensor.normal_(mean, std, generator=generator)


@_fills
def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Draw from normal(mean, std) cut off at [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.")
    low, high = (tensor.new_tensor(bound).item() for bound in (a, b))
    cdf = lambda x: (1.0 + math.erf((x - mean) / (std * math.sqrt(2.0)))) / 2.0
    often = cdf(b) - cdf(a) > 0.3
    peak = max(a, min(mean, b))  # where the density over [a, b] is highest

    def propose() -> tuple[Any, Any]:
        """Draw candidates and say which to refuse: normal ones outside, or uniform ones by their density."""
        x = mortice.empty_like(tensor)
        if often:
            x.normal_(mean, std, generator=generator)
            return x, (x < low) | (x > high)
        x.uniform_(a, b, generator=generator)
        density = (((peak - mean) / std) ** 2 - ((x - mean) / std) ** 2).mul(0.5).exp()
        return x, mortice.empty_like(tensor).uniform_(generator=generator) > density

    values, refused = propose()
    while refused.any():
        others, still = propose()
        values = mortice.where(refused, others, values)
        refused = refused & still
    return tensor.copy_(values)


@_fills
def constant_(tensor: Any, val: float) -> Any:
    """Fill with a number."""
    return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fill with 0."""
    return constant_(tensor, 0.0)


@_fills
def eye_(tensor: Any) -> Any:
    """Fill a matrix with the identity."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tuple(tensor.shape)
    return tensor.copy_(mortice.eye(rows, cols, dtype=tensor.dtype, device=tensor.device))


@_fills
def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill filters so that a convolution passes on as many input channels as it can."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    shape = tuple(tensor.shape)
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = shape[0] // groups
    centre = tuple(n // 2 for n in shape[2:])
    tensor.zero_()
    for group in range(groups):
        for d in range(min(per_group, shape[1])):
            tensor[(group * per_group + d, d, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draw from uniform(-b, b), b = gain * sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draw from normal(0, gain * sqrt(2 / (fan_in + fan_out)))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _empty(tensor: Any) -> bool:
    if 0 in tuple(tensor.shape):
        warn("Initializing zero-element tensors is a no-op")
        return True
    return False


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Draw from uniform(-b, b), b = gain * sqrt(3 / fan)."""
    if _empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Draw from normal(0, gain / sqrt(fan))."""
    if _empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@_fills
def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with a (semi-)orthogonal matrix; dims after the first are flattened."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    cols = tensor.numel() // rows
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    q, r = mortice.linalg.qr(flat.t() if rows < cols else flat)
    # Without the signs of R's diagonal, Q would not be uniformly distributed.
    q = q * mortice.sgn(mortice.diagonal(r))
    q = q.t() if rows < cols else q
    return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


@_fills
def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Draw a matrix from normal(0, std) and zero a share of each column."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tuple(tensor.shape)
    count = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(cols):
        tensor[mortice.randperm(rows, generator=generator, device=tensor.device)[:count], column] = 0
    return tensor


# ---- names without underscore ----


def _old(name: str) -> Any:
    new = globals()[name + "_"]

    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning)
        return new(*args, **kwargs)

    deprecated.__name__ = name
    deprecated.__doc__ = f"Do `{name}_`, under its old name."
    return deprecated


uniform, normal, constant, eye, dirac = _old("uniform"), _old("normal"), _old("constant"), _old("eye"), _old("dirac")
xavier_uniform, xavier_normal = _old("xavier_uniform"), _old("xavier_normal")
kaiming_uniform, kaiming_normal = _old("kaiming_uniform"), _old("kaiming_normal")
orthogonal, sparse = _old("orthogonal"), _old("sparse")

# By their inner names, which libraries call.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
