"""How many floating-point operations a kernel takes: of products, convolutions and arithmetic, as PyTorch counts them."""

from __future__ import annotations

from typing import Any

from mortice.shape import prod
from mortice.tracing import Frame

_ELEMENTWISE = frozenset(("add", "subtract", "multiply", "divide"))


def flops_of(frame: Frame) -> int:
    """Return the operations of a kernel that has run, 0 where nobody counts them."""
    kernel, shape_of = frame.kernel, frame.backend.shape_of
    args: tuple[Any, ...] = frame.args
    if frame.failed:
        return 0
    if kernel in _ELEMENTWISE:
        return prod(shape_of(frame.out))
    if kernel == "matmul":
        return 2 * prod(shape_of(frame.out)) * int(shape_of(args[0])[-1])
    if kernel == "linear":
        return 2 * prod(shape_of(frame.out)) * int(shape_of(args[1])[-1])
    if kernel == "conv":
        return 2 * prod(shape_of(frame.out)) * prod(shape_of(args[1])[1:])
    if kernel == "conv_input_grad":
        return 2 * prod(shape_of(args[0])) * prod(shape_of(args[1])[1:])
    if kernel == "conv_weight_grad":
        return 2 * prod(shape_of(args[0])) * prod(shape_of(frame.out)[1:])
    return 0
