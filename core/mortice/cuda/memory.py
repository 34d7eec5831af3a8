"""Memory of CUDA devices, as far as the backend counts it: what it does not count is 0."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mortice.accelerator import _counts, _free_and_total, _listed
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
    return _free_and_total("cuda.mem_get_info", place("mem_get_info", device))


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Return PyTorch's _counts, 0 for what is not counted; empty without a CUDA device."""
    if device is None and not devices_of(TYPE):
        return OrderedDict()
    return _listed(_counts(place("memory_stats", device)))


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


def _count(name: str, device: Any, key: str) -> int:
    if device is None and not devices_of(TYPE):
        return 0
    return int(_counts(place(name, device))[key])
