"""scatter and gather: nests of tensors split over devices and put together again, and the steps that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter", "gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return a nest for each device: tensors are split along a dim, other leaves are in each."""
    if isinstance(inputs, mortice.Tensor):
        return Scatter.apply(target_gpus, None, dim, inputs)
    if isinstance(inputs, dict):
        split = [scatter(pair, target_gpus, dim) for pair in inputs.items()] if inputs else []
        return [type(inputs)(pairs) for pairs in zip(*split)] if split else [inputs] * len(target_gpus)
    if isinstance(inputs, (tuple, list)) and inputs:
        parts = zip(*[scatter(x, target_gpus, dim) for x in inputs])
        make: Any = type(inputs)
        return [make(*part) if hasattr(make, "_fields") else make(part) for part in parts]
    return [inputs for _ in target_gpus]


def _get_stream(device: Any) -> Any:
    """Return the stream on which copies go to a device; None for what has none, such as the CPU."""
    return mortice.cuda.current_stream(device) if mortice.device(device).type == "cuda" else None


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return one nest of the nests of several devices, on one device."""
    first = outputs[0]
    if isinstance(first, mortice.Tensor):
        return Gather.apply(target_device, dim, *outputs)
    if first is None:
        return None
    make: Any = type(first)
    if isinstance(first, dict):
        return make((key, gather([x[key] for x in outputs], target_device, dim)) for key in first)
    parts = [gather(part, target_device, dim) for part in zip(*outputs)]
    return make(*parts) if hasattr(make, "_fields") else make(parts)


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Sequence[Any], dim: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the positional arguments and the named ones for each device; a tensor too small for all gives fewer of both."""
    rows = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(rows), len(named))
    return tuple(rows + [()] * (count - len(rows))), tuple(named + [{}] * (count - len(named)))


# PyTorch keeps these in nn.parallel._functions. Tensors go through as other ops take them, so that gradients pass.


class Scatter:
    """Parts of a batch, one for each device."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], chunk_sizes: Sequence[int] | None, dim: int, input: Any) -> tuple[Any, ...]:
        parts = input.split(list(chunk_sizes), dim) if chunk_sizes else input.chunk(len(target_gpus), dim)
        return tuple(part.to(device) for part, device in zip(parts, target_gpus))


class Gather:
    """Parts of a batch joined on one device."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Any) -> Any:
        parts = [x.to(target_device) for x in inputs]
        return mortice.cat(parts, dim) if inputs[0].shape else mortice.stack(parts)


class Broadcast:
    """Copies of tensors on each device, one device after another."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], *inputs: Any) -> tuple[Any, ...]:
        return tuple(x.to(device) for device in target_gpus for x in inputs)


class ReduceAddCoalesced:
    """Sums, on one device, of every `num_inputs`-th tensor."""

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: Any) -> tuple[Any, ...]:
        return tuple(sum(g.to(destination) for g in grads[i::num_inputs]) for i in range(num_inputs))
