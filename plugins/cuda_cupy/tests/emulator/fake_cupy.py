"""A stand-in for the part of CuPy that the plugin uses, over NumPy, for tests where there is no GPU. It is an emulator.

It refuses what CuPy 14 refuses (NumPy arrays among operands, conversion in silence, operands on another device, dtypes that
a function lacks) and errs where CuPy errs, so that the plugin is kept honest. Work is done at once; while a stream is
captured it is written down. It says nothing of speed. `install()` puts it where `import cupy` finds it.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import importlib.util
import itertools
import sys
import threading
import time
import types
import warnings
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

__version__ = "14.2.0"
NAME = "emulated GPU (NumPy; no CUDA)"
BF = np.dtype(ml_dtypes.bfloat16)
DEVICES = 2
TOTAL = 1 << 34
JUNK = 0xA5


class CUDARuntimeError(RuntimeError):
    """What the CUDA runtime refuses."""


class OutOfMemoryError(MemoryError):
    """The pool's limit is reached."""


class _Local(threading.local):
    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, Any] = {}
        self.allocator: Any = None


_local = _Local()


# ---- memory ----


class Memory:
    """A block of a pool; it goes back when nothing refers to it."""

    def __init__(self, pool: Any, block: Any, device: int) -> None:
        self.pool, self.block, self.device_id = pool, block, device

    def __del__(self) -> None:
        self.pool._take_back(self.block, self.device_id)


class MemoryPointer:
    """A place in a block."""

    def __init__(self, mem: Any, ptr: int, device: int) -> None:
        self.mem, self.ptr, self.device_id = mem, ptr, device

    def copy_from_host_async(self, source: int, nbytes: int, stream: Any = None) -> None:
        """Copy from the host."""
        _check_place(self.device_id)
        if not _pointer_attributes(source).type:
            _refuse_in_capture("copying from pageable memory of the host")
        _do(lambda: ctypes.memmove(self.ptr, source, nbytes))

    def copy_from_device_async(self, source: Any, nbytes: int, stream: Any = None) -> None:
        """Copy from a device."""
        _do(lambda: ctypes.memmove(self.ptr, source.ptr, nbytes))


class MemoryPool:
    """Blocks by size, for each device; a fresh one is full of junk."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._free: dict[tuple[int, int], list[Any]] = {}
        self._used, self._total, self._limit = [0] * DEVICES, [0] * DEVICES, [0] * DEVICES

    def malloc(self, size: int) -> MemoryPointer:
        """Return memory."""
        device, rounded = _local.device, builtins.max((size + 511) // 512, 1) * 512
        with self._lock:
            free = self._free.get((device, rounded))
            if free:
                block = free.pop()
            else:
                if self._limit[device] and self._total[device] + rounded > self._limit[device]:
                    raise OutOfMemoryError(
                        f"Out of memory allocating {rounded:,} bytes (allocated so far: {self._total[device]:,} bytes)."
                    )
                stream = get_current_stream()
                if stream._steps is not None and stream._mode != 2:
                    raise CUDARuntimeError(
                        "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing"
                    )
                block = np.empty(rounded, np.uint8)
                self._total[device] += rounded
            self._used[device] += rounded
        block.fill(JUNK)
        return MemoryPointer(Memory(self, block, device), block.ctypes.data, device)

    def _take_back(self, block: Any, device: int) -> None:
        with self._lock:
            self._used[device] -= block.nbytes
            self._free.setdefault((device, block.nbytes), []).append(block)

    def used_bytes(self) -> int:
        """Return the bytes in use on the current device."""
        return self._used[_local.device]

    def total_bytes(self) -> int:
        """Return the bytes taken from the current device."""
        return self._total[_local.device]

    def free_bytes(self) -> int:
        """Return the bytes kept for later."""
        return self.total_bytes() - self.used_bytes()

    def free_all_blocks(self) -> None:
        """Give unused blocks back."""
        with self._lock:
            for (device, size), blocks in self._free.items():
                if device == _local.device:
                    self._total[device] -= size * len(blocks)
                    blocks.clear()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Limit what is taken from the current device."""
        self._limit[_local.device] = int(size if size is not None else (fraction or 0) * TOTAL)


class PinnedMemoryPool:
    """Nothing is kept."""

    def free_all_blocks(self) -> None:
        """Do nothing."""


_pool, _pinned_pool = MemoryPool(), PinnedMemoryPool()
_global_allocator: Any = _pool.malloc
_pinned: dict[int, Any] = {}


def set_allocator(allocator: Any = None) -> None:
    """Choose who gives memory."""
    global _global_allocator
    _global_allocator = allocator or _pool.malloc


def get_allocator() -> Any:
    """Return who gives memory."""
    return _local.allocator or _global_allocator


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Any:
    """Choose who gives memory, for a block and a thread."""
    before, _local.allocator = _local.allocator, allocator
    try:
        yield
    finally:
        _local.allocator = before


def alloc_pinned_memory(nbytes: int) -> Any:
    """Return locked memory of the host; a power of two of bytes, as CuPy's pool rounds."""
    block = np.empty(1 << builtins.max(nbytes - 1, 0).bit_length(), np.uint8)
    address = block.ctypes.data
    _pinned[address] = block.nbytes
    weakref.finalize(block, _pinned.pop, address, None).atexit = False
    return block


# ---- devices, streams, graphs ----


class Device:
    """A device, and a context in which it is the current one."""

    def __init__(self, device: Any = None) -> None:
        self.id = _local.device if device is None else int(device)
        if not 0 <= self.id < DEVICES:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self._before: list[int] = []

    def __enter__(self) -> Device:
        self._before.append(_local.device)
        _local.device = self.id
        return self

    def __exit__(self, *exc: object) -> None:
        _local.device = self._before.pop()

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return self.id

    def use(self) -> None:
        """Make it the current one."""
        _local.device = self.id

    def synchronize(self) -> None:
        """Wait."""
        _refuse_in_capture("synchronizing a device")

    @property
    def mem_info(self) -> tuple[int, int]:
        """The free and all bytes."""
        return TOTAL - _pool._total[self.id], TOTAL

    @property
    def compute_capability(self) -> str:
        """As of an H200."""
        return "90"


class Event:
    """A mark."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.device_id, self._timed, self._time = _local.device, not disable_timing, None

    def record(self, stream: Any = None) -> None:
        """Put it behind what is in a stream."""
        stream = stream or get_current_stream()
        if (_local.device if stream.device_id < 0 else stream.device_id) != self.device_id:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        self._time = time.perf_counter()

    done = True

    def synchronize(self) -> None:
        """Wait."""
        _refuse_in_capture("synchronizing an event")


def get_elapsed_time(start: Event, end: Event) -> float:
    """Return milliseconds."""
    if not (start._timed and end._timed) or start._time is None or end._time is None:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return (end._time - start._time) * 1e3


class Graph:
    """Work that was written down."""

    def __init__(self, steps: list[Any]) -> None:
        self._steps = steps

    def launch(self, stream: Any = None) -> None:
        """Do it."""
        for step in self._steps:
            step()


_handles = itertools.count(0x1000, 0x10)


class _BaseStream:
    null: Any

    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id, self.priority = ptr, device_id, 0
        self._steps: list[Any] | None = None
        self._before: list[Any] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def use(self) -> Any:
        """Make it the current one of the current device."""
        if self.device_id not in (-1, _local.device):
            raise RuntimeError(
                f"This stream can only be used on device {self.device_id}, but current device is {_local.device}."
            )
        _local.streams[_local.device] = self
        return self

    def __enter__(self) -> Any:
        self._before.append(get_current_stream())
        return self.use()

    def __exit__(self, *exc: object) -> None:
        _local.streams[_local.device] = self._before.pop()

    @property
    def done(self) -> bool:
        """Whether all is done."""
        _refuse_in_capture("asking a stream")
        return True

    def synchronize(self) -> None:
        """Wait."""
        _refuse_in_capture("synchronizing a stream")

    def record(self, event: Event | None = None) -> Event:
        """Record an event."""
        event = Event() if event is None else event
        if (_local.device if self.device_id < 0 else self.device_id) != event.device_id:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        event._time = time.perf_counter()
        return event

    def wait_event(self, event: Event) -> None:
        """Wait for an event."""

    def begin_capture(self, mode: int | None = None) -> None:
        """Write work down from now on."""
        if not self.ptr:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self._steps is not None:
            raise CUDARuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        self._steps, self._mode = [], mode

    def end_capture(self) -> Graph:
        """Return what was written down."""
        if self._steps is None:
            raise CUDARuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        steps, self._steps = self._steps, None
        return Graph(steps)

    def is_capturing(self) -> bool:
        """Tell whether work is written down."""
        return self._steps is not None


class Stream(_BaseStream):
    """A stream of the current device."""

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int = 0) -> None:
        super().__init__(0 if null else next(_handles), -1 if null else _local.device)
        self.priority = priority


class ExternalStream(_BaseStream):
    """Somebody else's stream."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__(ptr, device_id)


Stream.null = Stream(null=True)


def get_current_stream(device_id: int = -1) -> Any:
    """Return the current stream."""
    return _local.streams.get(_local.device if device_id < 0 else device_id, Stream.null)


def _refuse_in_capture(what: str) -> None:
    if get_current_stream()._steps is not None:
        raise CUDARuntimeError(
            f"cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing ({what})"
        )


def _do(step: Any) -> None:
    """Do some work now, or write it down."""
    steps = get_current_stream()._steps
    if steps is None:
        with np.errstate(all="ignore"):
            step()
    else:
        steps.append(step)


class _Pointer:
    def __init__(self, kind: int) -> None:
        self.type = kind


def _pointer_attributes(address: int) -> _Pointer:
    return _Pointer(1 if builtins.any(a <= address < a + n for a, n in list(_pinned.items())) else 0)


# ---- arrays ----


def _check_place(device: int) -> None:
    if device != _local.device:
        raise ValueError(
            f"The device where the array resides ({device}) is different from the current device ({_local.device}). "
            "Peer access is unavailable between these devices."
        )


def _open(value: Any) -> Any:
    """Return an operand as NumPy takes it; refuse what CuPy refuses."""
    if isinstance(value, ndarray):
        _check_place(value.data.device_id)
        return value._a
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if type(value) in (list, tuple):
        return type(value)(map(_open, value))
    return value


def _new(shape: Any, dtype: Any) -> ndarray:
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = get_allocator()(size)
    _check_place(data.device_id)
    return ndarray(data.mem.block[:size].view(dtype).reshape(shape), data)


def _result(compute: Any) -> ndarray:
    """Return a new array of what a computation gives; while work is written down, junk until it is done."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = np.asarray(compute())
    out = _new(found.shape, found.dtype)

    def step(known: Any = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            out._a[...] = compute() if known is None else known

    if get_current_stream()._steps is None:
        step(found)
    else:
        _do(step)
    return out


def _write(compute: Any) -> None:
    _do(compute)


class _Flags:
    def __init__(self, a: Any) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata = a.flags.c_contiguous, a.flags.f_contiguous, a.base is None


class ndarray:
    """An array on an emulated device."""

    __slots__ = ("_a", "data", "base", "__weakref__")
    __array_priority__ = 100

    def __init__(self, a: Any, data: MemoryPointer, base: Any = None) -> None:
        self._a, self.base = a, base
        self.data = data if a.ctypes.data == data.ptr else MemoryPointer(data.mem, a.ctypes.data, data.device_id)

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    strides = property(lambda self: self._a.strides)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    flags = property(lambda self: _Flags(self._a))
    device = property(lambda self: Device(self.data.device_id))
    T = property(lambda self: self._view(self._a.T))

    def _view(self, a: Any) -> ndarray:
        return ndarray(a, self.data, self if self.base is None else self.base)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
        )

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        raise TypeError("emulator: iterating over an array on a device reads it element by element")

    def _read(self, convert: Any) -> Any:
        raise TypeError("emulator: a number was read from the device; only get() may")

    def __bool__(self) -> bool:
        return self._read(bool)  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return self._read(int)  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return self._read(float)  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return self._read(int)  # type: ignore[no-any-return]

    item = tolist = __bool__

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """Copy to the host."""
        _check_place(self.data.device_id)
        _refuse_in_capture("copying to the host")
        return np.array(self._a, order=order)  # type: ignore[call-overload]

    @property
    def real(self) -> ndarray:
        """The real part, a view."""
        return self._view(self._a.real)

    @property
    def imag(self) -> ndarray:
        """The imaginary part, a view."""
        return self._view(self._a.imag) if self._a.dtype.kind == "c" else _result(lambda: np.zeros_like(self._a))

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> ndarray:
        """Convert."""
        _open(self)
        dtype = np.dtype(dtype)
        if not copy and dtype == self.dtype:
            return self
        if self.dtype.kind == "c" and dtype.kind in "iuf":
            warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)  # noqa: B028
        return _result(lambda: self._a.astype(dtype))

    def copy(self, order: str = "C") -> ndarray:
        """Copy."""
        _open(self)
        return _result(lambda: np.array(self._a, order="C"))

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        """Show under another shape, by a copy where strides do not allow a view."""
        shape = shape[0] if len(shape) == 1 else shape
        a = self._a.reshape(shape)
        if np.shares_memory(a, self._a) or not a.size:
            return self._view(a)
        _open(self)
        return _result(lambda: self._a.reshape(shape))

    def ravel(self) -> ndarray:
        """Show in one dimension."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> ndarray:
        """Permute the axes."""
        return self._view(self._a.transpose(*axes))

    def view(self, dtype: Any = None) -> ndarray:
        """Show the same memory."""
        return self._view(self._a.view(dtype) if dtype is not None else self._a.view())

    def squeeze(self, axis: Any = None) -> ndarray:
        """Drop axes of size 1."""
        return self._view(self._a.squeeze(axis))

    def fill(self, value: Any) -> None:
        """Fill with a number."""
        _open(self)
        if self.dtype == BF and type(value) is float:
            raise TypeError("emulator: a Python float beside bfloat16 counts as float64")
        if isinstance(value, (ndarray, np.ndarray)):
            raise TypeError("emulator: fill takes a number")
        number = np.array(value).astype(self.dtype) if type(value) is not int or self.dtype.kind not in "iu" else value
        # Every zero is a memset.
        _write(lambda: self._a.fill(number if number != 0 else 0))

    def __getitem__(self, key: Any) -> ndarray:
        parts = key if isinstance(key, tuple) else (key,)
        if builtins.any(isinstance(p, (ndarray, np.ndarray, list)) for p in parts):
            where = tuple(_open(p) for p in parts)
            _open(self)
            return _result(lambda: self._a[_wrapped(where, self._a.shape)])
        return self._view(self._a[parts if Ellipsis in parts else (*parts, Ellipsis)])

    def __setitem__(self, key: Any, value: Any) -> None:
        _open(self)
        if self.dtype == BF and type(value) is float:
            raise TypeError("emulator: a Python float beside bfloat16 counts as float64")
        parts = key if isinstance(key, tuple) else (key,)
        where, given = tuple(_open(p) for p in parts), _open(value)
        if isinstance(given, np.ndarray):
            _write(lambda: self._a.__setitem__(where, given))
        else:
            self._view(self._a[where if Ellipsis in where else (*where, Ellipsis)]).fill(given)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._a.__array_interface__, "version": 3, "stream": get_current_stream().ptr or 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.data.device_id

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        from mortice.backends import dlpack

        if stream is not None and (type(stream) is not int or stream < -1):
            raise ValueError(f"On CUDA, the valid stream for the DLPack protocol is -1, 1, 2, or larger; got {stream}")
        # NumPy 2.4 has no capsules of 16-bit words that it calls bfloat16; the label is put on.
        a = self._a.view(np.uint16) if self.dtype == BF else self._a
        capsule = a.__dlpack__(max_version=max_version)
        lent = dlpack._open(capsule)[0]
        lent.device_type, lent.device_id = 2, self.data.device_id
        if self.dtype == BF:
            lent.code = 4
        return capsule


for _name, _function in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "true_divide"), ("floordiv", "floor_divide"),
    ("mod", "remainder"), ("pow", "power"), ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
    ("lshift", "left_shift"), ("rshift", "right_shift"), ("matmul", "matmul"),
):  # fmt: skip
    setattr(ndarray, f"__{_name}__", lambda x, y, f=_function: globals()[f](x, y))
    setattr(ndarray, f"__r{_name}__", lambda x, y, f=_function: globals()[f](y, x))
for _name, _function in (
    ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"),
):  # fmt: skip
    setattr(ndarray, f"__{_name}__", lambda x, y, f=_function: globals()[f](x, y))
ndarray.__neg__ = lambda x: negative(x)  # type: ignore[attr-defined]  # noqa: F821
ndarray.__invert__ = lambda x: invert(x)  # type: ignore[attr-defined]  # noqa: F821
ndarray.__hash__ = None  # type: ignore[assignment]


def _wrapped(where: Any, shape: Any) -> Any:
    """Wrap indices around as CuPy does, which does not look whether they are inside."""
    return tuple(w % n if isinstance(w, np.ndarray) and w.dtype.kind in "iu" and n else w for w, n in zip(where, shape))


# ---- elementwise functions ----

_NO_BFLOAT16 = {"logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"}
_NO_BOOL = {"negative", "subtract"}
_IN_FLOAT32 = {"bfloat16", "float16"}


def _loops(name: str, xs: Any) -> Any:
    """Return operands of one dtype, chosen as CuPy chooses a loop."""
    kinds = [x.dtype for x in xs if isinstance(x, (np.ndarray, np.generic))]
    if BF in kinds:
        if builtins.any(type(x) is float for x in xs):
            # np.result_type(0.0, bfloat16) is float64, and that is whom CuPy asks.
            return [np.asarray(x, np.float64) for x in xs]
        if name in _NO_BFLOAT16:
            raise TypeError(f"Wrong type ({kinds}) of arguments for cupy_{name}")
    if name in _NO_BOOL and builtins.all(k.kind == "b" for k in kinds):
        raise TypeError(f"The cupy boolean {name} is not supported.")
    return xs


def _ufunc(name: str, compute: Any = None) -> Any:
    compute = compute or getattr(np, name)

    def function(*operands: Any, out: Any = None) -> Any:
        if not builtins.any(isinstance(x, ndarray) for x in operands):
            raise TypeError(f"emulator: cupy.{name} without an array on a device")
        xs = _loops(name, [_open(x) for x in operands])
        if out is not None:
            _open(out)
            _write(lambda: out._a.__setitem__(..., compute(*xs)))
            return out
        return _result(lambda: compute(*xs))

    function.__name__ = name
    return function


def _floor_divide(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind in "fV":
        return np.floor(np.true_divide(x, y))
    return np.floor_divide(x, y)


def _remainder(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind in "fV":
        return np.subtract(x, np.multiply(_floor_divide(x, y), y))
    return np.remainder(x, y)


def _power(x: Any, y: Any) -> Any:
    d = np.result_type(x, y)
    if d.kind not in "iu":
        return np.power(x, y)
    x, y = np.broadcast_arrays(np.asarray(x, d), np.asarray(y, d))
    negative_power = np.where(x == 1, 1, np.where((x == -1) if d.kind == "i" else False, 1 - 2 * (y & 1), 0)).astype(d)
    return np.where(y < 0, negative_power, np.power(x, np.maximum(y, 0)))


_OWN = {"floor_divide": _floor_divide, "remainder": _remainder, "power": _power}
for _name in (
    "exp log sqrt sin cos tan tanh sinh cosh arcsin arccos arctan arcsinh arccosh arctanh expm1 log1p log2 log10 exp2 floor "
    "ceil trunc rint isnan isinf isfinite signbit square reciprocal negative absolute sign logical_not invert conj add "
    "subtract multiply true_divide floor_divide remainder power maximum minimum equal not_equal less less_equal greater "
    "greater_equal bitwise_and bitwise_or bitwise_xor left_shift right_shift logical_and logical_or logical_xor arctan2 hypot "
    "copysign fmod nextafter fmax fmin cbrt deg2rad rad2deg logaddexp"
).split():  # fmt: skip
    globals()[_name] = _ufunc(_name, _OWN.get(_name))


def where(condition: Any, x: Any, y: Any) -> ndarray:
    """Choose."""
    c, x, y = _open(condition), _open(x), _open(y)
    kinds = [a.dtype for a in (x, y) if isinstance(a, (np.ndarray, np.generic))]
    if BF in kinds:
        raise TypeError("Wrong type of arguments for cupy_where: it has no bfloat16")
    return _result(lambda: np.where(c, x, y))


# ---- everything else ----


def _function(name: str) -> Any:
    compute = getattr(np, name)

    def function(*operands: Any, **options: Any) -> Any:
        xs = [_open(x) for x in operands]
        options = {k: _open(v) for k, v in options.items()}
        return _result(lambda: compute(*xs, **options))

    function.__name__ = name
    return function


for (
    _name
) in "concatenate stack repeat tile roll take_along_axis tril triu cumsum cumprod prod all any outer argmin".split():
    globals()[_name] = _function(_name)
concat = concatenate  # type: ignore[name-defined]  # noqa: F821


def sum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Add up; halves in float32, as CuPy does."""
    a = _open(x)
    wide = np.float32 if np.dtype(dtype or a.dtype).name in _IN_FLOAT32 else dtype
    return _result(lambda: np.asarray(np.sum(a, axis=axis, dtype=wide, keepdims=keepdims)).astype(dtype or a.dtype))


def _extreme(name: str) -> Any:
    def function(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        a = _open(x)
        return _result(lambda: getattr(np, name)(a, axis=axis, keepdims=keepdims))

    return function


max, min = _extreme("max"), _extreme("min")


def argmax(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Find the largest; of several nan any, here the last."""
    a = _open(x)
    if a.dtype.kind in "fV":
        nan = np.isnan(a)
        flat = a.astype(np.float32) if a.dtype == BF else a
        if nan.any():
            last = lambda: _last(nan, axis, keepdims)
            return _result(
                lambda: np.where(
                    nan.any(axis=axis, keepdims=keepdims), last(), np.argmax(flat, axis, keepdims=keepdims)
                )
            )
        return _result(lambda: np.argmax(flat, axis=axis, keepdims=keepdims))
    return _result(lambda: np.argmax(a, axis=axis, keepdims=keepdims))


def _last(found: Any, axis: Any, keepdims: bool) -> Any:
    n = found.size if axis is None else found.shape[axis]
    return n - 1 - np.argmax(np.flip(found, axis), axis=axis, keepdims=keepdims)


def argsort(x: Any, axis: int = -1, kind: Any = None) -> ndarray:
    """Sort, stably; Thrust knows no bfloat16."""
    a = _open(x)
    if a.dtype == BF:
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    return _result(lambda: np.argsort(a, axis=axis, kind="stable"))


def sort(x: Any, axis: int = -1) -> ndarray:
    """Sort."""
    a = _open(x)
    if a.dtype == BF:
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    return _result(lambda: np.sort(a, axis=axis))


def take(x: Any, indices: Any, axis: Any = None) -> ndarray:
    """Take, wrapping indices around."""
    a, i = _open(x), _open(indices)
    return _result(lambda: np.take(a, i, axis=axis, mode="wrap"))


def matmul(x: Any, y: Any) -> ndarray:
    """Multiply matrices of integers; the plugin calls cuBLAS for the rest."""
    a, b = _open(x), _open(y)
    if a.dtype.kind not in "iu":
        raise TypeError("emulator: cupy.matmul is expected for integers only")
    return _result(lambda: np.matmul(a, b))


def flip(x: Any, axis: Any = None) -> ndarray:
    """Reverse, a view."""
    return x._view(np.flip(x._a, axis))


def broadcast_to(x: Any, shape: Any) -> ndarray:
    """Repeat, a view."""
    a = np.broadcast_to(x._a, shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a.flags.writeable = True
    return x._view(a)


def ascontiguousarray(x: Any, dtype: Any = None) -> ndarray:
    """Return it in row-major order."""
    if x._a.flags.c_contiguous and dtype in (None, x.dtype):
        return x  # type: ignore[no-any-return]
    _open(x)
    return _result(lambda: np.ascontiguousarray(x._a, dtype).reshape(x.shape))


def asarray(x: Any, dtype: Any = None) -> ndarray:
    """Make an array of a CuPy array or a number; NumPy arrays come by copy_from_host_async."""
    if isinstance(x, ndarray):
        return x if dtype in (None, x.dtype) else x.astype(dtype)
    if isinstance(x, np.ndarray):
        _refuse_in_capture("copying from memory of the host that may be gone by the replay")
    return _result(lambda: np.asarray(x, dtype))


array = asarray


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """Make an array of junk."""
    return _new(shape, dtype)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    """Make zeros."""
    out = _new(shape, dtype)
    _write(lambda: out._a.fill(0))
    return out


def empty_like(x: Any, dtype: Any = None) -> ndarray:
    """Make an array of junk."""
    return _new(x.shape, dtype or x.dtype)


def zeros_like(x: Any, dtype: Any = None) -> ndarray:
    """Make zeros."""
    return zeros(x.shape, dtype or x.dtype)


def ones(shape: Any, dtype: Any = float) -> ndarray:
    """Make ones."""
    return full(shape, 1, dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    """Fill."""
    out = _new(shape, dtype or np.asarray(value).dtype)
    out.fill(value)
    return out


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """Count."""
    return _result(lambda: np.arange(start, stop, step, dtype) if stop is not None else np.arange(start, dtype=dtype))


def from_dlpack(source: Any) -> ndarray:
    """Borrow memory of a device."""
    from mortice.backends import dlpack

    kind, index = source.__dlpack_device__()
    if kind != 2:
        raise BufferError("emulator: from_dlpack takes memory of a device")
    capsule = dlpack.capsule_of(source, stream=get_current_stream().ptr or 1)
    lent = dlpack._open(capsule)[0]
    words = lent.code == 4
    lent.device_type, lent.device_id = 1, 0
    if words:
        lent.code = 1
    a = np.from_dlpack(dlpack.Held(capsule))
    if words:
        a = a.view(BF)
    with contextlib.suppress(ValueError):
        a.flags.writeable = True
    return ndarray(a, MemoryPointer(a, a.ctypes.data, index), base=a)


def scatter_add(a: ndarray, slices: Any, value: Any) -> None:
    """Add at indices, wrapping them around (cupyx)."""
    allowed = "int32 int64 uint32 uint64 float16 float32 float64".split()
    if value.dtype.name not in allowed or a.dtype != value.dtype:
        raise TypeError(f"cupy.add.at only supports {', '.join(allowed)} as data type")
    where, added = tuple(_open(s) for s in slices), _open(value)
    target = _open(a)
    _write(lambda: np.add.at(target, _wrapped(where, target.shape), added))


def scatter_max(a: ndarray, slices: Any, value: Any) -> None:
    """Raise to the maximum at indices (cupyx)."""
    if value.dtype.name not in "int32 int64 uint32 uint64 float32 float64".split():
        raise TypeError("cupy.maximum.at: dtype")
    where, given, target = tuple(_open(s) for s in slices), _open(value), _open(a)
    _write(lambda: np.maximum.at(target, _wrapped(where, target.shape), given))


def as_strided(x: ndarray, shape: Any, strides: Any) -> ndarray:
    """Show memory under other strides."""
    # Without a base, as CuPy has it.
    return ndarray(np.lib.stride_tricks.as_strided(x._a, shape, strides), x.data)


class RawModule:
    """Sources compiled for the CPU by `run_on_cpu`."""

    def __init__(
        self, *, code: str, options: Any = (), backend: str = "nvrtc", name_expressions: Any = None, jitify: bool = False,
        translate_cucomplex: bool = False, enable_cooperative_groups: bool = False,
    ) -> None:  # fmt: skip
        self._module = _run_on_cpu().Module(code, options, name_expressions)

    def get_function(self, name: str) -> Any:
        """Return a kernel."""
        kernel = self._module.get_function(name)

        def launch(grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
            opened = tuple(_open(x) for x in args)
            _do(lambda: kernel(grid, block, opened, shared_mem=shared_mem))

        return launch


def _run_on_cpu() -> Any:
    found = sys.modules.get("run_on_cpu")
    if found is None:
        place = Path(__file__).with_name("run_on_cpu.py")
        spec = importlib.util.spec_from_file_location("run_on_cpu", place)
        assert spec and spec.loader
        found = sys.modules["run_on_cpu"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return found


# ---- cuBLAS ----

_GEMM_TYPES = {2: np.dtype(np.float16), 14: BF, 0: np.dtype(np.float32), 1: np.dtype(np.float64),
               4: np.dtype(np.complex64), 5: np.dtype(np.complex128)}  # fmt: skip
products: list[int] = []  # the compute type of each product, for tests


def _matrices(ptr: int, dtype: Any, rows: int, columns: int, lead: int, step: int, count: int) -> Any:
    """Return matrices that lie column by column."""
    if lead < builtins.max(rows, 1):
        raise RuntimeError("CUBLAS_STATUS_INVALID_VALUE: leading dimension")
    extent = (abs(step) * (count - 1) + lead * (columns - 1) + rows) * dtype.itemsize
    block = np.frombuffer((ctypes.c_char * extent).from_address(ptr), np.uint8).view(dtype)
    strides = (step * dtype.itemsize, dtype.itemsize, lead * dtype.itemsize)
    return np.lib.stride_tricks.as_strided(block, (count, rows, columns), strides)


def _rounded(x: Any, compute: int) -> Any:
    """Round operands as the tensor cores do: TF32 has 10 bits after the point, bfloat16 has 7."""
    if compute not in (75, 77) or x.dtype.kind == "c":
        return x
    drop = 16 if compute == 75 else 13
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << (drop - 1))) & np.uint32((0xFFFFFFFF << drop) & 0xFFFFFFFF)).view(np.float32)


def gemm(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, a_type: int, lda: int, stride_a: int,
    b: int, b_type: int, ldb: int, stride_b: int, beta: int, c: int, c_type: int, ldc: int, stride_c: int, count: int,
    compute: int, algo: int,
) -> None:  # fmt: skip
    """cublasGemmStridedBatchedEx, on memory that is really there."""
    d = _GEMM_TYPES[a_type]
    if not a_type == b_type == c_type:
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")
    if compute != 70 and d.itemsize // (2 if d.kind == "c" else 1) == 8:
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")
    products.append(compute)
    wide = np.dtype(np.float32) if d.itemsize == 2 else d
    x = _matrices(a, d, *((k, m) if transa else (m, k)), lda, stride_a, count)
    y = _matrices(b, d, *((n, k) if transb else (k, n)), ldb, stride_b, count)
    out = _matrices(c, d, m, n, ldc, stride_c, count)

    def step() -> None:
        left, right = (_rounded(v.astype(wide), compute) for v in (x, y))
        left = left.swapaxes(1, 2) if transa else left
        right = right.swapaxes(1, 2) if transb else right
        out[...] = np.matmul(left, right).astype(d)

    _do(step)


# ---- the modules ----


def _properties(device: int) -> dict[str, Any]:
    return {"name": NAME.encode(), "major": 9, "minor": 0, "totalGlobalMem": TOTAL, "multiProcessorCount": 132, "warpSize": 32,
            "maxThreadsPerMultiProcessor": 2048, "sharedMemPerBlock": 49152, "l2CacheSize": 1 << 25}  # fmt: skip


def _set_device(device: int) -> None:
    Device(device).use()


def install(devices: int = 2) -> Any:
    """Let `import cupy` find the emulator in this process, and say so."""
    global DEVICES, _pool, _global_allocator
    if "cupy" in sys.modules:
        raise RuntimeError("emulator: CuPy itself is loaded already")
    DEVICES = devices
    _pool = MemoryPool()
    _global_allocator = _pool.malloc
    this = sys.modules[__name__]
    cupy = types.ModuleType("cupy", "The emulator of CuPy; no GPU is here.")
    for name, value in vars(this).items():
        if not name.startswith("_") and name not in ("install", "np", "gemm"):
            setattr(cupy, name, value)
    cupy.__version__ = __version__  # type: ignore[attr-defined]
    for d in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split():
        setattr(cupy, d, getattr(np, d))
    cupy.bool_, cupy.newaxis, cupy.pi = np.bool_, None, np.pi  # type: ignore[attr-defined]
    cupy.get_default_memory_pool = lambda: _pool  # type: ignore[attr-defined]
    cupy.get_default_pinned_memory_pool = lambda: _pinned_pool  # type: ignore[attr-defined]
    fft = types.SimpleNamespace(**{n: _transform(n) for n in "fftn ifftn rfftn irfftn fft ifft rfft irfft".split()})
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: DEVICES, getDevice=lambda: _local.device, setDevice=_set_device,
        getDeviceProperties=_properties, pointerGetAttributes=_pointer_attributes, memoryTypeHost=1,
        CUDARuntimeError=CUDARuntimeError, deviceCanAccessPeer=lambda a, b: int(a != b), streamCaptureModeGlobal=0,
        streamCaptureModeThreadLocal=1, streamCaptureModeRelaxed=2, runtimeGetVersion=lambda: 13020,
        driverGetVersion=lambda: 13020,
    )  # fmt: skip
    device = types.SimpleNamespace(get_cublas_handle=lambda: 1 + _local.device, get_compute_capability=lambda: "90")
    cuda = types.SimpleNamespace(
        Device=Device, Event=Event, Stream=Stream, ExternalStream=ExternalStream, Graph=Graph, MemoryPool=MemoryPool,
        MemoryPointer=MemoryPointer, runtime=runtime, device=device, get_current_stream=get_current_stream,
        get_elapsed_time=get_elapsed_time, set_allocator=set_allocator, get_allocator=get_allocator,
        using_allocator=using_allocator, alloc_pinned_memory=alloc_pinned_memory, is_available=lambda: True,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    )  # fmt: skip
    cupy.cuda, cupy.fft, cupy.ndarray = cuda, fft, ndarray  # type: ignore[attr-defined]
    cupyx = types.ModuleType("cupyx")
    cupyx.scatter_add, cupyx.scatter_max = scatter_add, scatter_max  # type: ignore[attr-defined]
    sys.modules.update({"cupy": cupy, "cupyx": cupyx})
    for name in (
        "cupy.lib",
        "cupy.lib.stride_tricks",
        "cupy_backends",
        "cupy_backends.cuda",
        "cupy_backends.cuda.libs",
        "cupy_backends.cuda.libs.cublas",
    ):
        sys.modules[name] = types.ModuleType(name)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, sys.modules[name])
    sys.modules["cupy.lib.stride_tricks"].as_strided = as_strided  # type: ignore[attr-defined]
    sys.modules["cupy_backends.cuda.libs.cublas"].gemmStridedBatchedEx = gemm  # type: ignore[attr-defined]
    print("emulator: `cupy` is a stand-in over NumPy; no GPU takes part", file=sys.stderr)
    return cupy


def _transform(name: str) -> Any:
    compute = getattr(np.fft, name)

    def function(x: Any, *args: Any, **options: Any) -> ndarray:
        a = _open(x)
        return _result(lambda: compute(a, *args, **options))

    return function
