"""mortice.cuda: what scripts ask about CUDA, answered by whichever backend offers devices of type "cuda".

Nothing here knows a library. Without such a backend `is_available()` is False and the rest says what to install.
"""

from __future__ import annotations

from typing import Any

from mortice import random as _random
from mortice.backends.plugins import devices_of
from mortice.cuda.devices import (
    can_device_access_peer, current_device, device, device_count, device_of, get_arch_list, get_device_capability,
    get_device_name, get_device_properties, init, is_available, is_bf16_supported, is_initialized,
    is_tf32_supported, set_device, synchronize,
)
from mortice.cuda.memory import (
    OutOfMemoryError, empty_cache, ipc_collect, max_memory_allocated, max_memory_cached, max_memory_reserved,
    mem_get_info, memory_allocated, memory_cached, memory_reserved, memory_stats, memory_summary,
    reset_accumulated_memory_stats, reset_max_memory_allocated, reset_max_memory_cached, reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from mortice.cuda.streams import (
    Event, ExternalStream, Stream, StreamContext, current_stream, default_stream, get_stream_from_external,
    is_current_stream_capturing, set_stream, stream,
)

__all__ = [
    "CUDAGraph", "Event", "ExternalStream", "MemPool", "OutOfMemoryError", "Stream", "StreamContext", "can_device_access_peer",
    "current_device", "current_stream", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "get_stream_from_external", "graph", "graph_pool_handle", "has_half", "init",
    "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "is_initialized", "is_tf32_supported", "make_graphed_callables", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_stats", "memory_summary", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream",
    "synchronize", "use_mem_pool",
]  # fmt: skip
has_half = True


def manual_seed(seed: int) -> None:
    """Seed the random numbers.

    Differs from torch: the stream is the same on every device, so this seeds the CPU too, but not PyTorch's numbers there (mt19937).
    """
    _random.seed_beside(int(seed), is_available())


manual_seed_all = manual_seed


def seed() -> None:
    """Seed the random numbers from the system's entropy."""
    manual_seed(_random.Generator().seed())


seed_all = seed


def initial_seed() -> int:
    """Return the seed of the random numbers, which every device shares."""
    return _random.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of the random numbers, which every device shares."""
    return _random.get_rng_state()


def get_rng_state_all() -> list[Any]:
    """Return the state of the random numbers for each device."""
    return [_random.get_rng_state() for _ in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Return the random numbers to a state of `get_rng_state`."""
    _random.set_rng_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """Return the random numbers to a state of `get_rng_state_all`."""
    for state in new_states:
        _random.set_rng_state(state)


def __getattr__(name: str) -> Any:
    import importlib

    # `mortice.cuda.amp` needs no import of its own, as in PyTorch. Few programs capture their work.
    if name in ("amp", "comm", "graphs", "nccl", "nvtx"):
        return importlib.import_module(f"mortice.cuda.{name}")
    if name == "cudart":
        return importlib.import_module("mortice.cuda.nvtx").cudart
    if name in ("CUDAGraph", "MemPool", "graph", "graph_pool_handle", "make_graphed_callables", "use_mem_pool"):
        return getattr(importlib.import_module("mortice.cuda.graphs"), name)
    if name == "default_generators":  # one stream is every device's
        return (_random.default_generator,) * device_count()
    if name == "_initialized":  # programs that keep the random state of a GPU for a second forward ask it
        return is_initialized()
    typed = importlib.import_module("mortice.methods.typed")
    if name in typed.__all__ and name.endswith("Tensor"):
        return typed.on_cuda(name)
    places = [] if name[0] == "_" else devices_of("cuda")
    if places and (found := places[0].backend.cuda_name(name)) is not None:
        return found
    return importlib.import_module("mortice.addresses").attribute(__name__, name)
