"""The gradients of convolutions by their input and by their filters, as functions."""

from __future__ import annotations

from collections.abc import Callable
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


def _gradients(nd: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def by_input(
        input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        return _gradient(nd, 0, input_size, weight, grad_output, (stride, padding, dilation, groups))

    def by_weight(
        input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        return _gradient(nd, 1, weight_size, input, grad_output, (stride, padding, dilation, groups))

    for fn, name, by in ((by_input, "input", "input"), (by_weight, "weight", "filters")):
        fn.__name__ = fn.__qualname__ = f"conv{nd}d_{name}"
        fn.__doc__ = f"Return the gradient of conv{nd}d by its {by}."
    return by_input, by_weight


conv1d_input, conv1d_weight = _gradients(1)
conv2d_input, conv2d_weight = _gradients(2)
conv3d_input, conv3d_weight = _gradients(3)
