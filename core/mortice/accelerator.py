"""mortice.accelerator: the device that is not a CPU, of whatever type a backend offers; what PyTorch calls by that name."""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from typing import Any

from mortice.backends.plugins import devices_of, entries, resolve
from mortice.device import Device, chosen
from mortice.errors import DeviceError


def _devices() -> list[Device]:
    """Return the devices of the accelerator's type; a backend that is never chosen unasked does not count."""
    for entry in sorted(entries().values(), key=lambda e: (-e.priority, e.name)):
        for kind in entry.info.device_types if entry.info and entry.priority >= 0 else ():
            if kind != "cpu" and (found := devices_of(kind)):
                return found
    return []


def is_available() -> bool:
    """Tell whether a backend offers a device that is not a CPU."""
    return bool(_devices())


def device_count() -> int:
    """Return the number of such devices."""
    return len(_devices())


def current_accelerator(check_available: bool = False) -> Device | None:
    """Return the type of such devices as a device without an index; None where there is none."""
    found = _devices()
    return Device(found[0].type) if found else None


def _one(name: str, index: Any = None) -> Device:
    kind = current_accelerator()
    if kind is None:
        raise DeviceError(f"accelerator.{name}: expected a device other than the CPU; no backend offers one.")
    return resolve(kind if index is None else Device(kind.type, index) if isinstance(index, int) else Device(index))


def current_device_index() -> int:
    """Return the index of the device that the accelerator's type means in this thread."""
    return _one("current_device_index").index or 0


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """Choose the device that the accelerator's type means in this thread."""
    found = _one("set_device_index", device)
    chosen.current = {**chosen.current, found.type: found.index or 0}


set_device_idx = set_device_index


class device_index:
    """Choose the accelerator's device for a block; None does nothing."""

    def __init__(self, device: int | None) -> None:
        self.idx = device

    def __enter__(self) -> None:
        self._before = chosen.current
        if self.idx is not None:
            set_device_index(self.idx)

    def __exit__(self, *exc: object) -> None:
        chosen.current = self._before


def synchronize(device: Any = None) -> None:
    """Wait until all work on the device is done."""
    found = _one("synchronize", device)
    found.backend.synchronize(found)


def empty_cache() -> None:
    """Give the memory that the backend keeps for later back to the system."""
    for found in _devices():
        found.backend.empty_cache(found)


def _counts(where: Device) -> dict[str, int]:
    """Return what a backend counts of a device's memory, in bytes, and what follows from that."""
    allocated = where.backend.memory_allocated(where)
    stats = {"allocated": allocated, "reserved": allocated, **where.backend.memory_stats(where)}
    return {"peak_allocated": stats["allocated"], "peak_reserved": stats["reserved"], **stats}


def memory_allocated(device_index: Any = None) -> int:
    """Return the bytes that tensors occupy on the device, 0 without one."""
    return int(_counts(_one("memory_allocated", device_index))["allocated"]) if is_available() else 0


def memory_reserved(device_index: Any = None) -> int:
    """Return the bytes that the backend has taken from the device."""
    return int(_counts(_one("memory_reserved", device_index))["reserved"])


def max_memory_allocated(device_index: Any = None) -> int:
    """Return the most bytes that tensors have occupied since the peak was reset."""
    return int(_counts(_one("max_memory_allocated", device_index))["peak_allocated"])


def max_memory_reserved(device_index: Any = None) -> int:
    """Return the most bytes that the backend has taken since the peak was reset."""
    return int(_counts(_one("max_memory_reserved", device_index))["peak_reserved"])


def get_memory_info(device_index: Any = None) -> tuple[int, int]:
    """Return the bytes that are free and the bytes there are in all."""
    return _free_and_total("accelerator.get_memory_info", _one("get_memory_info", device_index))


def _free_and_total(name: str, where: Device) -> tuple[int, int]:
    """Return both, for the function `name`."""
    stats = _counts(where)
    if "free" not in stats or "total" not in stats:
        raise RuntimeError(f"{name}: backend '{where.backend.name}' does not say how much of {where} is free.")
    return stats["free"], stats["total"]


def memory_stats(device_index: Any = None) -> OrderedDict[str, int]:
    """Return PyTorch's counts, 0 for what is not counted."""
    return _listed(_counts(_one("memory_stats", device_index)))


def _listed(stats: dict[str, int]) -> OrderedDict[str, int]:
    """Return counts under PyTorch's names."""
    parts = [f"{kind}.{pool}" for kind in _EACH for pool in ("all", "large_pool", "small_pool")]
    names = _ONE + [f"{part}.{when}" for part in parts for when in ("current", "peak", "allocated", "freed")]
    found = OrderedDict((name, stats.get(name, 0)) for name in sorted(names))
    for kind in _EACH[:4]:
        what = "reserved" if kind == "reserved_bytes" else "allocated"
        found[f"{kind}.all.current"], found[f"{kind}.all.peak"] = stats[what], stats[f"peak_{what}"]
    return found


_EACH = "reserved_bytes allocated_bytes active_bytes requested_bytes inactive_split_bytes allocation segment active inactive_split".split()
_ONE = "num_alloc_retries num_device_alloc num_device_free num_ooms num_sync_all_streams".split()


def reset_peak_memory_stats(device_index: Any = None) -> None:
    """Start the peaks anew."""
    where = _one("reset_peak_memory_stats", device_index)
    where.backend.reset_peak_memory(where)


reset_accumulated_memory_stats = reset_peak_memory_stats


def current_stream(device: Any = None) -> Any:
    """Return the stream that work on the device goes to; types whose module has no streams say so."""
    where = _one("current_stream", device)
    return get_device_module(where).current_stream(where)


def set_stream(stream: Any) -> None:
    """Let work on the stream's device go to it."""
    get_device_module(_one("set_stream")).set_stream(stream)


def get_device_module(device: Any = None) -> Any:
    """Return what has a device's type for its name, such as `mortice.cuda`; of the accelerator, or else of the CPU, unless given."""
    if device is not None and not isinstance(device, (str, Device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = (current_accelerator() or Device("cpu")) if device is None else Device(device)
    try:
        return import_module(f"mortice.{kind.type}")
    except ModuleNotFoundError:
        said = f"Device '{kind.type}' does not have a corresponding module registered as 'torch.{kind.type}'."
        raise RuntimeError(said) from None
