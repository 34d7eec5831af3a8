"""The gradients of convolutions by their input and by their filters, as functions."""

from __future__ import annotations

from typing import Any

import mortice


def _gradient(nd: int, by: int, shape: Any, other: Any, grad_output: Any, settings: tuple[Any, ...]) -> Any:
    """Differentiate a convolution by one of its two operands: it is linear in each, so that one's values are free."""
    wanted = mortice.zeros(tuple(shape), dtype=other.dtype, device=other.device, requires_grad=True)
    recording = mortice.is_grad_enabled()
    with mortice.enable_grad():
        operands = (wanted, other) if by == 0 else (other, wanted)
        out = getattr(mortice, f"conv{nd}d")(*operands, None, *settings)
    return mortice.autograd.grad(out, wanted, grad_output, create_graph=recording)[0]


def conv1d_input(
    input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Return the gradient of conv1d by its input."""
    return _gradient(1, 0, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Return the gradient of conv1d by its filters."""
    return _gradient(1, 1, weight_size, input, grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Return the gradient of conv2d by its input."""
    return _gradient(2, 0, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Return the gradient of conv2d by its filters."""
    return _gradient(2, 1, weight_size, input, grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Return the gradient of conv3d by its input."""
    return _gradient(3, 0, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Return the gradient of conv3d by its filters."""
    return _gradient(3, 1, weight_size, input, grad_output, (stride, padding, dilation, groups))
