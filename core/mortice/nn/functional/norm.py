"""Normalisation: `mortice.nn.functional`'s argument orders over the ops."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import _nn

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


def _more_than_one(size: Any, per_sample: bool, advice: str = "") -> None:
    """Refuse training on one value a channel, of which variance says nothing."""
    count = 1 if per_sample else size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        kind = "spatial element" if per_sample else "value per channel"
        raise ValueError(f"Expected more than 1 {kind} when training, got input size {size}{advice}")


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Normalise each channel of (N, C, *); in training by the batch, whose statistics move the running ones.

    Differs from torch: beside half-precision parameters the batch's statistics are not rounded before they are used.
    """
    if training:
        _more_than_one(input.shape, False, ". Predict after .eval(); drop_last=True leaves out a last batch of 1.")
    if eps < 0.0 or training and eps == 0.0:
        raise ValueError(f"batch_norm eps must be {'positive during training' if training else 'non-negative'}, but got {eps}")
    return _nn.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Normalise each channel of each sample of (N, C, *)."""
    if use_input_stats:
        _more_than_one(input.shape, True)
    return _nn.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalise over the last dims, which have `normalized_shape`."""
    return _nn.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Divide by the root mean square of the last dims."""
    return _nn.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalise groups of channels of each sample of (N, C, *)."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    shape = tuple(input.shape)
    if num_groups > 0:
        _more_than_one([shape[0] * shape[1] // num_groups, num_groups, *shape[2:]], False)
    return _nn.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Divide by (k + alpha * the mean square of `size` neighbouring channels)**beta."""
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    if input.numel() == 0:
        return input
    n, c, *rest = tuple(input.shape)
    squares = (input * input).reshape(n, 1, c, -1)
    squares = _nn.pad(squares, (0, 0, size // 2, (size - 1) // 2))
    mean = _nn.avg_pool2d(squares, (size, 1), stride=1).reshape(input.shape)
    return input / mortice.pow(mean * alpha + k, beta)
