"""What PyTorch's allocator is asked beyond its counts, and whether the host may wait for a device."""

from __future__ import annotations

from typing import Any

import cupy

from mortice.cuda.devices import device_count, place
from mortice.cuda.memory import mem_get_info, memory_stats
from mortice_cuda_cupy.waiting import MODES, waiting

__all__ = [
    "caching_allocator_alloc", "caching_allocator_delete", "device_memory_used", "get_allocator_backend",
    "get_per_process_memory_fraction", "get_sync_debug_mode", "host_memory_stats", "memory_snapshot",
    "memory_stats_as_nested_dict", "set_sync_debug_mode",
]  # fmt: skip
_lent: dict[int, Any] = {}


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return `memory_stats` as dicts inside each other."""
    found: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *above, last = name.split(".")
        inner = found
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return found


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Return a segment for each device that memory was taken of; CuPy's pool does not say how it lies in blocks."""
    found = []
    for index in range(device_count()):
        stats = memory_stats(index)
        total, used = stats["reserved_bytes.all.current"], stats["allocated_bytes.all.current"]
        if total:
            found.append({
                "device": index, "address": 0, "total_size": total, "allocated_size": used, "active_size": used,
                "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                "blocks": [],
            })  # fmt: skip
    return found


def get_allocator_backend() -> str:
    """Return "native", as PyTorch calls an allocator that keeps what it was given back."""
    return "native"


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the share of the device's memory that may be taken."""
    where = place("get_per_process_memory_fraction", device)
    with cupy.cuda.Device(where.index) as here:
        limit = cupy.get_default_memory_pool().get_limit()
        return limit / here.mem_info[1] if limit else 1.0  # type: ignore[no-any-return]


def device_memory_used(device: Any = None) -> int:
    """Return the bytes of the device that anybody uses."""
    free, total = mem_get_info(device)
    return total - free


def host_memory_stats() -> dict[str, Any]:
    """Return nothing: CuPy does not count memory of the host."""
    return {}


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Take memory of a device, until `caching_allocator_delete`; return its address."""
    where = place("caching_allocator_alloc", device)
    if size < 0:
        raise ValueError(f"caching_allocator_alloc: expected a size that is not negative; got {size}.")
    with cupy.cuda.Device(where.index):
        memory = cupy.cuda.alloc(size)
    _lent[memory.ptr] = memory
    return int(memory.ptr)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give such memory back."""
    if _lent.pop(mem_ptr, None) is None:
        raise RuntimeError(f"caching_allocator_delete: expected what caching_allocator_alloc has returned; got {mem_ptr:#x}.")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Say what happens where the host reads values and so waits for a device: 0 "default", nothing; 1 "warn"; 2 "error"."""
    if isinstance(debug_mode, str):
        if debug_mode not in MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = MODES.index(debug_mode)
    if debug_mode not in range(len(MODES)):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1 or 2; got {debug_mode}")
    waiting.mode = int(debug_mode)


def get_sync_debug_mode() -> int:
    """Return what `set_sync_debug_mode` has set, as a number."""
    return waiting.mode
