"""Noting the shape and dtype of each value of a graph, by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

import mortice
from mortice.fx.interpreter import Interpreter
from mortice.fx.node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    formats = (mortice.contiguous_format, mortice.channels_last, mortice.channels_last_3d)
    dense = (f for f in formats if include_contiguity and _is(result, f))
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, tuple(result.stride()), next(dense, None), False, {}
    )


def _is(result: Any, memory_format: Any) -> bool:
    rank = {mortice.channels_last: 4, mortice.channels_last_3d: 5}.get(memory_format)
    return (rank is None or result.ndim == rank) and result.is_contiguous(memory_format=memory_format)


class ShapeProp(Interpreter):
    """Runs a graph and writes `tensor_meta` and `type` into the `meta` of its nodes."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        seen = []

        def note(value: Any) -> Any:
            if not isinstance(value, mortice.Tensor):
                return value
            seen.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, note)
        if seen:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph, noting what comes by; return its output."""
        return super().run(*args)
