"""What the strict backend is made of: opaque read-only buffers, and how they are made, moved and given away."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from mortice.backends import DTYPES, Backend, DType, HostBuffer
from mortice.backends.dlpack import relabel

# bfloat16 has no NumPy dtype: its buffers hold float32 values, rounded after every kernel.
STORAGE = {d: np.dtype(np.float32 if d.name == "bfloat16" else d.name) for d in DTYPES}
_NARROW = frozenset(d for d in DTYPES if d.name not in ("float64", "complex128"))
_NUMBERS = (bool, int, float, complex)
_KINDS = "buifc"


class StrictError(TypeError):
    """A call that the boundary between core and backends does not allow."""


def _refuse(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise StrictError(f"strict: buffers are opaque; {name} was used on one. Use a kernel instead.")

    method.__name__ = name
    return method


class Buffer:
    """A block of elements that only its backend looks into."""

    __slots__ = ("_strict_array", "_strict_dtype", "_strict_device", "__weakref__")

    def __init__(self, array: Any, dtype: DType, device: Any) -> None:
        self._strict_array, self._strict_dtype, self._strict_device = array, dtype, device

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"strict: buffers are opaque; .{name} was read. Use k.shape_of, k.dtype_of or a kernel.")

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise StrictError("strict: buffers are opaque; one was copied or pickled. Use k.copy or to_host.")

# `array` is there because NumPy would otherwise wrap the object in silence.
for _name in (
    "bool eq ne lt le gt ge len iter getitem setitem contains int float index array add radd sub rsub mul rmul "
    "truediv rtruediv pow rpow neg invert"
).split():
    setattr(Buffer, f"__{_name}__", _refuse(f"__{_name}__"))


def round_bfloat16(x: Any) -> Any:
    """Round float32 values to the nearest that bfloat16 holds, ties to even."""
    words = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    up = ((words >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    rounded = ((words + up) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded).reshape(np.shape(x))


class StrictBackend(Backend):
    """The required kernels over opaque buffers, each operand checked.

    Attributes:
        transfers: how often `to_host` was called, `item` included.
    """

    name = "strict"
    mutable = False

    def __init__(self) -> None:
        super().__init__()
        self.transfers = 0
        self._lock = threading.Lock()
        self._devices = {name: self.device(name) for name in self.device_names()}

    # ---- housekeeping ----

    def device_names(self) -> list[str]:
        return ["strict:0", "strict:1", "strict_f32"]

    def dtypes(self, device: Any) -> frozenset[DType]:
        return _NARROW if device.type == "strict_f32" else frozenset(DTYPES)

    def from_host(self, host: HostBuffer, device: Any) -> Buffer:
        self._check_place("from_host", host.dtype, device)
        if host.dtype.name == "bfloat16":
            array = (np.frombuffer(host.tobytes(), np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
            array = array.reshape(host.shape)
        elif host.raw:
            array = np.frombuffer(host.tobytes(), STORAGE[host.dtype]).reshape(host.shape)
        else:
            array = np.array(np.asarray(host.view)).view(STORAGE[host.dtype]).reshape(host.shape)
        return self._wrap(array, host.dtype, device)

    def to_host(self, x: Buffer) -> HostBuffer:
        array, dtype, _ = self._open("to_host", x)
        with self._lock:
            self.transfers += 1
        if dtype.name == "bfloat16":
            bits = (np.ascontiguousarray(array).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
            return HostBuffer(bits.tobytes(), array.shape, dtype)
        return HostBuffer(memoryview(_in_poison(array)), array.shape, dtype)

    def dlpack_device(self, x: Buffer) -> tuple[int, int]:
        if self._open("dlpack_device", x)[2].type == "strict_f32":
            raise BufferError("strict: strict_f32 stands for what DLPack has no number for. Use .cpu() first, which copies.")
        return 1, 0  # whatever the devices are called, their memory is the host's

    def to_dlpack(self, x: Buffer, *, stream: Any = None, max_version: Any = None) -> Any:
        array, dtype, _ = self._open("to_dlpack", x)
        self.dlpack_device(x)
        if dtype.name == "bfloat16":  # kept as float32: what is lent is a copy
            host = self.to_host(x)
            words = np.frombuffer(host.view, np.uint16).reshape(host.shape)
            return relabel(_lend(words, max_version), dtype)
        return _lend(array, max_version)

    def synchronize(self, device: Any) -> None:
        self._check_device("synchronize", device)

    def shape_of(self, x: Buffer) -> tuple[int, ...]:
        return self._open("shape_of", x)[0].shape  # type: ignore[no-any-return]

    def dtype_of(self, x: Buffer) -> DType:
        return self._open("dtype_of", x)[1]

    def device_of(self, x: Buffer) -> Any:
        return self._open("device_of", x)[2]

    # ---- checks ----

    def _open(self, kernel: str, x: Any) -> tuple[Any, DType, Any]:
        """Return what is in a buffer."""
        if type(x) is not Buffer:
            raise StrictError(f"strict: {kernel}: expected a buffer of this backend; got {type(x).__name__}.")
        return x._strict_array, x._strict_dtype, x._strict_device

    def _check_device(self, kernel: str, device: Any) -> None:
        if self._devices.get(str(device)) is not device:
            raise StrictError(f"strict: {kernel}: expected a Device of this backend; got {device!r}.")

    def _check_place(self, kernel: str, dtype: Any, device: Any) -> None:
        self._check_device(kernel, device)
        if not isinstance(dtype, DType):
            raise StrictError(f"strict: {kernel}: expected a mortice dtype; got {dtype!r}.")
        if dtype not in self.dtypes(device):
            raise StrictError(f"strict: {kernel}: {device} has no {dtype.name}.")

    def _wrap(self, array: Any, dtype: DType, device: Any) -> Buffer:
        """Seal a result: its dtype must be right already, nothing is converted in silence."""
        array = np.asarray(array)
        if array.dtype != STORAGE[dtype]:
            raise StrictError(f"strict: a kernel gave {array.dtype} where {dtype.name} was due.")
        if dtype.name == "bfloat16":
            array = round_bfloat16(array)
        array = array.view()
        array.flags.writeable = False
        return Buffer(array, dtype, device)

    def _number(self, kernel: str, value: Any, dtype: DType) -> Any:
        """Return a Python number as it stands beside elements of `dtype`; refuse what would change its kind."""
        if type(value) not in _NUMBERS:
            raise StrictError(f"strict: {kernel}: expected a buffer or a Python number; got {type(value).__name__}.")
        kind = "b" if type(value) is bool else "i" if type(value) is int else "f" if type(value) is float else "c"
        have = "i" if dtype.kind == "u" else dtype.kind
        if _KINDS.index(kind) > _KINDS.index(have):
            raise StrictError(f"strict: {kernel}: the number {value!r} does not fit {dtype.name}; core promotes first.")
        if dtype.kind in "ui":
            limits = np.iinfo(STORAGE[dtype])
            if not limits.min <= int(value) <= limits.max:
                raise StrictError(f"strict: {kernel}: the number {value!r} is outside {dtype.name}.")
        with np.errstate(over="ignore"):
            array = np.asarray(value).astype(STORAGE[dtype])
        return round_bfloat16(array) if dtype.name == "bfloat16" else array

    def _operands(self, kernel: str, *xs: Any, kinds: str = _KINDS) -> tuple[Any, ...]:
        """Return arrays, then the dtype and device that all of them share."""
        found: tuple[DType, Any] | None = None
        for x in xs:
            if type(x) is Buffer:
                dtype, device = x._strict_dtype, x._strict_device
                if found is None:
                    found = dtype, device
                elif device is not found[1]:
                    raise StrictError(f"strict: {kernel}: operands on {found[1]} and {device}.")
                elif dtype is not found[0]:
                    raise StrictError(f"strict: {kernel}: operands of {found[0].name} and {dtype.name}; core promotes.")
        if found is None:
            raise StrictError(f"strict: {kernel}: expected a buffer; got {', '.join(type(x).__name__ for x in xs)}.")
        if found[0].kind not in kinds:
            raise StrictError(f"strict: {kernel}: not defined for {found[0].name}.")
        arrays = [x._strict_array if type(x) is Buffer else self._number(kernel, x, found[0]) for x in xs]
        return (*arrays, *found)

    def _indices(self, kernel: str, x: Any, device: Any, size: int) -> Any:
        """Return index elements, refusing those that would read memory outside."""
        array, dtype, place = self._open(kernel, x)
        if dtype.name != "int64" or place is not device:
            raise StrictError(f"strict: {kernel}: expected int64 indices on {device}; got {dtype.name} on {place}.")
        if array.size and (array.min() < 0 or array.max() >= size):
            raise StrictError(f"strict: {kernel}: indices must be in [0, {size}); core checks and wraps them.")
        return array


class _Lent:
    """Memory that NumPy takes for writable, since capsules from before DLPack 1 cannot say that it is not."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}


def _lend(array: Any, max_version: Any) -> Any:
    if max_version is None or max_version[0] < 1:
        array = np.asarray(_Lent(array))
    return array.__dlpack__(max_version=max_version)


def _in_poison(array: Any) -> Any:
    """Return the elements strided inside memory full of junk, for whoever would ignore strides."""
    if array.ndim == 0 or array.size == 0:
        return array
    junk = (
        np.frombuffer(b"\xa5" * (array.itemsize * 2), array.dtype) if array.dtype.kind != "b" else np.array([True] * 2)
    )
    base = np.empty((*array.shape[:-1], array.shape[-1] + 2), array.dtype)
    base[..., array.shape[-1] :] = junk
    view = base[..., : array.shape[-1]]
    view[...] = array
    return view
