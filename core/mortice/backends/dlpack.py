"""DLPack capsules, by which array libraries lend each other memory: reading them, by ctypes and without an array library.

Making a capsule is a backend's business (`Backend.to_dlpack`), since what it lends must live until the borrower is done.
"""

from __future__ import annotations

import ctypes
import enum
import weakref
from typing import Any, NamedTuple

from mortice.backends.host import HostBuffer
from mortice.dtype import DTYPES, DType
from mortice.errors import DTypeError
from mortice.interop import is_capsule
from mortice.shape import contiguous_strides, prod


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers for kinds of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


_ON_HOST = (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost, DLDeviceType.kDLROCMHost)
_TYPES = {
    "cpu": DLDeviceType.kDLCPU, "cuda": DLDeviceType.kDLCUDA, "opencl": DLDeviceType.kDLOpenCL,
    "vulkan": DLDeviceType.kDLVulkan, "metal": DLDeviceType.kDLMetal, "rocm": DLDeviceType.kDLROCM,
}  # fmt: skip
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_DTYPES = {(4 if d.name == "bfloat16" else _KINDS[d.kind], 8 * d.itemsize): d for d in DTYPES}
_CODES = {d: code for (code, _), d in _DTYPES.items()}


def device_code(device: Any) -> tuple[int, int]:
    """Return DLPack's name of a device; what DLPack does not know is an extension device."""
    return _TYPES.get(device.type, DLDeviceType.kDLExtDev), device.index or 0


def device_name(code: tuple[int, int]) -> str:
    """Return the name under which mortice would have the device."""
    kind, index = code
    if kind in _ON_HOST:
        return "cpu"
    kind = DLDeviceType.kDLCUDA if kind == DLDeviceType.kDLCUDAManaged else kind
    found = next((name for name, number in _TYPES.items() if number == kind), None)
    if found is None:
        raise BufferError(f"from_dlpack: no device here is of DLPack's kind {kind}. Copy the array to the CPU first.")
    return f"{found}:{index}"


class _Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("array", _Array),
    ]  # fmt: skip


def _function(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_get_name = _function("PyCapsule_GetName", ctypes.c_void_p, ctypes.py_object)
_set_name = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_get_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
# A capsule keeps the pointer to its name and may outlive this module, so the names are never freed.
_USED = {name: ctypes.create_string_buffer(b"used_" + name) for name in (b"dltensor", b"dltensor_versioned")}
for _name in _USED.values():
    _function("Py_IncRef", None, ctypes.py_object)(_name)


def on_host(source: Any) -> bool:
    """Tell whether the memory of an array is the host's."""
    return source.__dlpack_device__()[0] in _ON_HOST


def _open(capsule: Any) -> tuple[_Array, bool, bytes]:
    """Return what a capsule describes, whether it may only be read, and the capsule's name."""
    pointer = _get_name(capsule) if is_capsule(capsule) else None
    name = ctypes.string_at(pointer) if pointer else b""
    if name not in _USED:
        raise RuntimeError(
            f"from_dlpack: expected an array that has __dlpack__, or a fresh DLPack capsule; got "
            f"{f'a capsule {name.decode()!r}' if pointer else type(capsule).__name__}. A capsule can be consumed only once."
        )
    address = _get_pointer(capsule, pointer)
    if name == b"dltensor":
        return ctypes.cast(address, ctypes.POINTER(_Array)).contents, False, name
    whole = ctypes.cast(address, ctypes.POINTER(_Versioned)).contents
    if whole.major > 1:
        raise BufferError(f"from_dlpack: expected DLPack 1; got version {whole.major}.{whole.minor}.")
    return whole.array, bool(whole.flags & 1), name


class Held:
    """A capsule as an object that libraries import arrays from."""

    def __init__(self, capsule: Any) -> None:
        array = _open(capsule)[0]
        self._capsule, self._device = capsule, (array.device_type, array.device_id)

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def capsule_of(source: Any, **options: Any) -> Any:
    """Ask an array for a capsule, in the standard's present form or in the first one."""
    try:
        return source.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        return source.__dlpack__(**options)


def relabel(capsule: Any, dtype: DType) -> Any:
    """Let a capsule say that its elements are of another dtype of the same size."""
    _open(capsule)[0].code = _CODES[dtype]
    return capsule


def mark_copied(capsule: Any) -> Any:
    """Let a capsule say that its memory is a copy made for the borrower; capsules from before DLPack 1 cannot."""
    pointer = _get_name(capsule)
    if ctypes.string_at(pointer) == b"dltensor_versioned":
        ctypes.cast(_get_pointer(capsule, pointer), ctypes.POINTER(_Versioned)).contents.flags |= 2
    return capsule


class Loan(NamedTuple):
    """Borrowed memory: all of it as a flat host buffer, and where in it the elements of the array are."""

    memory: HostBuffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def row_major(self) -> bool:
        """Whether the memory is the array's elements in row-major order."""
        plain = contiguous_strides(self.shape)
        return not self.offset and all(n == 1 or s == p for n, s, p in zip(self.shape, self.strides, plain))


def borrow(source: Any) -> Loan:
    """Return the host memory of an array. It is given back when nothing refers to the buffer any more.

    Raises:
        BufferError: when the memory is not the host's.
    """
    capsule = capsule_of(source)
    array, read_only, name = _open(capsule)
    if array.device_type not in _ON_HOST:
        raise BufferError(f"from_dlpack: expected memory of the host; got a device of DLPack's kind {array.device_type}.")
    dtype = _DTYPES.get((array.code, array.bits))
    if dtype is None or array.lanes != 1:
        raise DTypeError(f"from_dlpack: no dtype is DLPack's ({array.code}, {array.bits}, {array.lanes}). Convert it first.")
    shape = tuple(array.shape[: array.ndim])
    strides = tuple(array.strides[: array.ndim]) if array.strides else contiguous_strides(shape)
    if not prod(shape):
        return Loan(HostBuffer(b"", (0,), dtype), shape, contiguous_strides(shape), 0)
    reach = [(n - 1) * s for n, s in zip(shape, strides)]
    first, size = sum(min(r, 0) for r in reach), 1 + sum(map(abs, reach))
    start = array.data + array.byte_offset + first * dtype.itemsize
    block = (ctypes.c_char * (size * dtype.itemsize)).from_address(start)
    # Renamed, nobody else can take the capsule; with its name back, it frees what it lends when it goes.
    original = _get_name(capsule)
    _set_name(capsule, ctypes.addressof(_USED[name]))
    weakref.finalize(block, _set_name, capsule, original).atexit = False
    view = memoryview(block).cast("B")
    return Loan(HostBuffer(view.toreadonly() if read_only else view, (size,), dtype), shape, strides, -first)
