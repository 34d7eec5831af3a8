"""mortice.accelerator: the device that is not a CPU, of whatever type a backend offers; what PyTorch calls by that name."""

from __future__ import annotations

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


def memory_allocated(device_index: Any = None) -> int:
    """Return the bytes that tensors occupy on the device, 0 without one."""
    if not is_available():
        return 0
    found = _one("memory_allocated", device_index)
    return int(found.backend.memory_allocated(found))


_THERE = {"get_memory_info": "mem_get_info"}  # names that the device's own module has otherwise
_ASKED = """current_stream get_memory_info max_memory_allocated max_memory_reserved memory_reserved memory_stats
reset_accumulated_memory_stats reset_peak_memory_stats set_stream""".split()


def __getattr__(name: str) -> Any:
    """Find what the accelerator's own module answers: of its memory, in bytes, and of streams."""
    if name not in _ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def ask(*of: Any) -> Any:
        _one(name)
        return getattr(get_device_module(), _THERE.get(name, name))(*of)

    return ask


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
