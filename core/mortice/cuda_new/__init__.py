"""mortice.cuda: what scripts ask about CUDA, answered by whichever backend offers devices of type "cuda".

Nothing here knows a library. Without such a backend `is_available()` is False and the rest says what to install.
"""

from __future__ import annotations

from typing import Any

from mortice.backends.plugins import devices_of, resolve
from mortice.device import Device, chosen
from mortice.errors import DeviceError
from mortice.random import default_generator
from mortice.random import manual_seed as _manual_seed

__all__ = [
    "current_device", "device", "device_count", "empty_cache", "get_device_name", "init",
    "is_available", "is_initialized", "manual_seed", "manual_seed_all", "memory_allocated", "seed_all", "set_device",
    "synchronize",
]  # fmt: skip
_TYPE = "cuda"


def is_available() -> bool:
    """Tell whether a backend offers a CUDA device here."""
    return bool(devices_of(_TYPE))


def device_count() -> int:
    """Return the number of CUDA devices."""
    return len(devices_of(_TYPE))


def init() -> None:
    """Load the backend that offers CUDA; otherwise this happens at the first use."""
    resolve(_TYPE)


def is_initialized() -> bool:
    """Tell whether CUDA can be used; finding out loads the backend."""
    return is_available()


def current_device() -> int:
    """Return the index of the device that "cuda" means in this thread."""
    return resolve(_TYPE).index or 0


def set_device(device: Any) -> None:
    """Choose the device that "cuda" means in this thread; a negative index does nothing, as in PyTorch."""
    if isinstance(device, int) and device < 0:
        return
    index = _device("set_device", device).index
    chosen.current = {**chosen.current, _TYPE: index or 0}


class device:
    """Choose the device that "cuda" means for a block, in this thread."""

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> None:
        self._before = chosen.current
        set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        chosen.current = self._before


def synchronize(device: Any = None) -> None:
    """Wait until all work on the device is done."""
    place = _device("synchronize", device)
    place.backend.synchronize(place)


def empty_cache() -> None:
    """Give the memory that the backend keeps for later back to the system; does nothing without a CUDA device."""
    for place in devices_of(_TYPE):
        place.backend.empty_cache(place)


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that tensors occupy on the device, 0 without one."""
    if device is None and not is_available():
        return 0
    place = _device("memory_allocated", device)
    return int(place.backend.memory_allocated(place))


def get_device_name(device: Any = None) -> str:
    """Return what people call the device."""
    place = _device("get_device_name", device)
    return str(place.backend.device_label(place))


def manual_seed(seed: int) -> None:
    """Seed the random numbers.

    Differs from torch: the stream is the same on every device, so this seeds the CPU too.
    """
    _manual_seed(seed)


manual_seed_all = manual_seed


def seed_all() -> None:
    """Seed the random numbers from the system's entropy."""
    default_generator.seed()


def _device(name: str, device: Any) -> Device:
    """Return the CUDA device that a user means by None, an index, a string or a device."""
    wanted = Device(_TYPE if device is None else device)
    if wanted.type != _TYPE:
        raise DeviceError(f"cuda.{name}: expected a CUDA device; got '{wanted}'. Pass an index or 'cuda:N'.")
    return resolve(wanted)
