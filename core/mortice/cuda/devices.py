"""Which CUDA devices there are, which one "cuda" means in this thread, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from mortice.backends.plugins import devices_of, resolve
from mortice.device import Device, chosen
from mortice.errors import DeviceError

TYPE = "cuda"


class NoCuda(DeviceError, AssertionError):
    """No backend offers a CUDA device; an AssertionError too, which is what PyTorch raises."""


def is_available() -> bool:
    """Tell whether a backend offers a CUDA device here."""
    return bool(devices_of(TYPE))


def device_count() -> int:
    """Return the number of CUDA devices."""
    return len(devices_of(TYPE))


def init() -> None:
    """Load the backend that offers CUDA; otherwise this happens at the first use."""
    _resolve(TYPE)


def is_initialized() -> bool:
    """Tell whether CUDA can be used; finding out loads the backend."""
    return is_available()


def current_device() -> int:
    """Return the index of the device that "cuda" means in this thread."""
    return _resolve(TYPE).index or 0


def set_device(device: Any) -> None:
    """Choose the device that "cuda" means in this thread; a negative index does nothing, as in PyTorch."""
    if isinstance(device, int) and device < 0:
        return
    index = place("set_device", device).index
    chosen.current = {**chosen.current, TYPE: index or 0}


class device:
    """Choose the device that "cuda" means for a block, in this thread."""

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> None:
        self._before = chosen.current
        if self.idx is not None:
            set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        chosen.current = self._before


class device_of(device):
    """Choose the device of a tensor for a block; does nothing for a tensor that is not on a CUDA device."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def synchronize(device: Any = None) -> None:
    """Wait until all work on the device is done."""
    where = place("synchronize", device)
    where.backend.synchronize(where)


def get_device_name(device: Any = None) -> str:
    """Return what people call the device."""
    where = place("get_device_name", device)
    return str(where.backend.device_label(where))


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Return what the backend knows of the device, by PyTorch's names: name, major, minor, total_memory and so on."""
    where = place("get_device_properties", device)
    known = where.backend.device_properties(where)
    blank = {"major": 0, "minor": 0, "total_memory": 0, "multi_processor_count": 0}
    return SimpleNamespace(**{"name": where.backend.device_label(where), **blank, **known})


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability as (major, minor); (0, 0) where the backend does not say."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether the current device computes in bfloat16."""
    if not is_available():
        return False
    where = _resolve(TYPE)
    return any(d.name == "bfloat16" for d in where.backend.dtypes(where))


def is_tf32_supported() -> bool:
    """Tell whether the current device can round float32 products to fewer digits."""
    return is_available() and get_device_capability() >= (8, 0)


def get_arch_list() -> list[str]:
    """Return the architectures that kernels are compiled for here: those of the devices."""
    return sorted({f"sm_{''.join(map(str, get_device_capability(i)))}" for i in range(device_count())})


def known(below: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that lies in a backend; without a device its functions raise."""

    def find(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module 'mortice.cuda.{below}' has no attribute {name!r}")
        for where in devices_of(TYPE):
            return getattr(where.backend.cuda_name(below), name)

        def missing(*args: Any, **kwargs: Any) -> bool:
            return name != "is_available" and bool(_resolve(Device(TYPE)))

        return missing

    return find


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Tell whether kernels on a device can read the memory of another one; copies between them work either way."""
    here, there = place("can_device_access_peer", device), place("can_device_access_peer", peer_device)
    return bool(here.backend.can_access_peer(here, there))


def place(name: str, device: Any) -> Device:
    """Return the CUDA device that a user means by None, an index, a string or a device."""
    wanted = Device(TYPE if device is None else device)
    if wanted.type != TYPE:
        raise DeviceError(f"cuda.{name}: expected a CUDA device; got '{wanted}'. Pass an index or 'cuda:N'.")
    return _resolve(wanted)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """Return the index that a device names, -1 of a CPU; None where none is named, if that may be."""
    wanted = Device(device) if isinstance(device, (str, int, Device)) else None
    if wanted is not None and wanted.type != TYPE and not (allow_cpu and wanted.type == "cpu"):
        raise ValueError(f"Expected a cuda device, but got: {wanted}")
    index = wanted if wanted is None else -1 if wanted.type == "cpu" else wanted.index
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def _resolve(wanted: Any) -> Device:
    try:
        return resolve(wanted)
    except DeviceError as error:
        raise error if devices_of(TYPE) else NoCuda(str(error)) from None
