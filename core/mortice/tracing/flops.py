"""How many floating-point operations a kernel takes: of products, convolutions and arithmetic, as PyTorch counts them."""

from __future__ import annotations

from typing import Any

from mortice.shape import prod
from mortice.tracing import Frame

_ELEMENTWISE = frozenset(("add", "subtract", "multiply", "divide"))
_PRODUCTS = frozenset(("matmul", "linear", "linear_weight_grad", "conv", "conv_input_grad", "conv_weight_grad"))
_LAYERS = {"rnn_layer": 2, "gru_layer": 2, "lstm_layer": 3}  # and at which place the weights begin
_WHOLE = _PRODUCTS | {"attention", *_LAYERS}  # kernels whose parts are not counted again


def flops_of(frame: Frame) -> int:
    """Return the operations of a kernel that has run, 0 where nobody counts them."""
    if frame.failed:
        return 0
    if frame.kernel in _ELEMENTWISE:
        return prod(frame.backend.shape_of(frame.out))
    return 2 * products_of(frame) if frame.kernel in _PRODUCTS else 0


def products_once(frame: Frame) -> int:
    """Return what `products_of` does; 0 for a part of a kernel that is counted whole."""
    count, above = products_of(frame), frame.parent
    while count and above is not None:
        count, above = 0 if above.kernel in _WHOLE else count, above.parent
    return count


def products_of(frame: Frame) -> int:
    """Return the multiply-adds of a kernel that adds up products, of recurrent layers and attention too; 0 for others."""
    kernel, shape_of = frame.kernel, frame.backend.shape_of
    args: tuple[Any, ...] = frame.args
    if frame.failed:
        return 0
    if kernel == "matmul":
        return prod(shape_of(frame.out)) * int(shape_of(args[0])[-1])
    if kernel == "linear_weight_grad":
        return prod(shape_of(args[0])) * int(shape_of(args[1])[-1])
    if kernel == "linear":
        return prod(shape_of(frame.out)) * int(shape_of(args[1])[-1])
    if kernel == "conv":
        return prod(shape_of(frame.out)) * prod(shape_of(args[1])[1:])
    if kernel == "conv_input_grad":
        return prod(shape_of(args[0])) * prod(shape_of(args[1])[1:])
    if kernel == "conv_weight_grad":
        return prod(shape_of(args[0])) * prod(shape_of(frame.out)[1:])
    if kernel == "attention":  # both products, of causal ones the whole squares
        keys, features = shape_of(args[1])[-2:]
        return prod(shape_of(frame.out[1])) * int(keys) * int(features + shape_of(args[2])[-1])
    if kernel in _LAYERS:
        first = _LAYERS[kernel]
        weights = [*args[first : first + 2], *(w for w in args[6:7] if kernel == "lstm_layer" and w is not None)]
        return prod(shape_of(args[0])[:-1]) * sum(prod(shape_of(w)) for w in weights)
    return 0
