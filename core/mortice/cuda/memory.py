"""Memory of CUDA devices, as far as the backend counts it: what it does not count is 0."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mortice.backends.plugins import devices_of
from mortice.backends.services import OutOfMemoryError as OutOfMemoryError
from mortice.cuda.devices import TYPE, place


def empty_cache() -> None:
    """Give the memory that the backend keeps for later back to the system; does nothing without a CUDA device."""
    for where in devices_of(TYPE):
        where.backend.empty_cache(where)


def ipc_collect() -> None:
    """Do nothing: memory is not shared between processes."""


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that tensors occupy on the device, 0 without one."""
    return _count("memory_allocated", device, "allocated")


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that the backend has taken from the device, 0 without one."""
    return _count("memory_reserved", device, "reserved")


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that tensors have occupied since the peak was reset, 0 without a device."""
    return _count("max_memory_allocated", device, "peak_allocated")


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that the backend has taken since the peak was reset, 0 without a device."""
    return _count("max_memory_reserved", device, "peak_reserved")


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start the peaks anew; does nothing without a CUDA device."""
    if device is not None or devices_of(TYPE):
        where = place("reset_peak_memory_stats", device)
        where.backend.reset_peak_memory(where)


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes that are free and the bytes there are in all."""
    stats = _stats("mem_get_info", device)
    if "free" not in stats or "total" not in stats:
        where = place("mem_get_info", device)
        raise RuntimeError(f"cuda.mem_get_info: backend '{where.backend.name}' does not say how much of {where} is free.")
    return stats["free"], stats["total"]


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Return PyTorch's counts, 0 for what is not counted; empty without a CUDA device."""
    if device is None and not devices_of(TYPE):
        return OrderedDict()
    stats = _stats("memory_stats", device)
    parts = [f"{kind}.{pool}" for kind in _EACH for pool in ("all", "large_pool", "small_pool")]
    names = _ONE + [f"{part}.{when}" for part in parts for when in ("current", "peak", "allocated", "freed")]
    found = OrderedDict((name, stats.get(name, 0)) for name in sorted(names))
    for kind in _EACH[:4]:
        what = "reserved" if kind == "reserved_bytes" else "allocated"
        found[f"{kind}.all.current"], found[f"{kind}.all.peak"] = stats[what], stats[f"peak_{what}"]
    return found


_EACH = "reserved_bytes allocated_bytes active_bytes requested_bytes inactive_split_bytes allocation segment active inactive_split".split()
_ONE = "num_alloc_retries num_device_alloc num_device_free num_ooms num_sync_all_streams".split()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the counts that are not 0 as text, a line each."""
    stats = {name: value for name, value in memory_stats(device).items() if value}
    return "\n".join(f"{name:<30} {value:>16,}" for name, value in stats.items())


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Take no more of the device's memory than that, where the backend can keep to it."""
    where = place("set_per_process_memory_fraction", device)
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1 (of {where}).")
    where.backend.limit_memory(fraction, where)


def _stats(name: str, device: Any) -> dict[str, int]:
    where = place(name, device)
    allocated = where.backend.memory_allocated(where)
    stats = {"allocated": allocated, "reserved": allocated, **where.backend.memory_stats(where)}
    return {"peak_allocated": stats["allocated"], "peak_reserved": stats["reserved"], **stats}


def _count(name: str, device: Any, key: str) -> int:
    if device is None and not devices_of(TYPE):
        return 0
    return int(_stats(name, device)[key])
