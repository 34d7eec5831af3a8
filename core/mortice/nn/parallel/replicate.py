"""replicate: the modules that run the parts of a batch."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.nn.module import Module

__all__ = ["replicate"]


def replicate(network: Any, devices: Any, detach: bool = False) -> list[Any]:
    """Return a copy of a module for each device, through which gradients reach its parameters."""
    return [_copy(network, device, detach, {}) for device in devices]


def _moved(t: Any, device: Any, detach: bool) -> Any:
    t = t.detach() if detach else t
    # Without a GPU what programs number as GPUs is the one place that there is.
    return t if isinstance(device, int) and not mortice.cuda.device_count() else t.to(device)


def _copy(module: Any, device: Any, detach: bool, made: dict[int, Any]) -> Any:
    def moved(t: Any) -> Any:
        if t is not None and id(t) not in made:
            made[id(t)] = _moved(t, device, detach)
        return made.get(id(t))

    if not isinstance(module, Module):
        return module
    if id(module) in made:
        return made[id(module)]
    replica = made[id(module)] = module._replicate_for_data_parallel()
    replica.__dict__.update({name: moved(p) for name, p in module._parameters.items()})
    replica._buffers = {name: moved(b) for name, b in module._buffers.items()}
    for name, child in module._modules.items():
        replica._modules[name] = _copy(child, device, detach, made)
    return replica


def _broadcast_coalesced_reshape(tensors: Any, devices: Any, detach: bool = False) -> list[list[Any]]:
    """Return the tensors on each device."""
    return [[_moved(t, device, detach) for t in tensors] for device in devices]
