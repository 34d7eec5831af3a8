"""scatter and gather: nests of tensors split over devices and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice

__all__ = ["gather", "scatter"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return a nest for each device: tensors are split along a dim, other leaves are in each."""
    if isinstance(inputs, mortice.Tensor):
        return tuple(part.to(device) for part, device in zip(inputs.chunk(len(target_gpus), dim), target_gpus))
    if isinstance(inputs, dict):
        split = [scatter(pair, target_gpus, dim) for pair in inputs.items()] if inputs else []
        return [type(inputs)(pairs) for pairs in zip(*split)] if split else [inputs] * len(target_gpus)
    if isinstance(inputs, (tuple, list)) and inputs:
        parts = zip(*[scatter(x, target_gpus, dim) for x in inputs])
        make: Any = type(inputs)
        return [make(*part) if hasattr(make, "_fields") else make(part) for part in parts]
    return [inputs for _ in target_gpus]


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return one nest of the nests of several devices, on one device."""
    first = outputs[0]
    if isinstance(first, mortice.Tensor):
        if not first.shape:
            return mortice.stack([x.to(target_device) for x in outputs])
        return mortice.cat([x.to(target_device) for x in outputs], dim)
    if first is None:
        return None
    make: Any = type(first)
    if isinstance(first, dict):
        return make((key, gather([x[key] for x in outputs], target_device, dim)) for key in first)
    parts = [gather(part, target_device, dim) for part in zip(*outputs)]
    return make(*parts) if hasattr(make, "_fields") else make(parts)
