"""The stand-in's memory, devices, streams and graphs: what `cupy.cuda` has, as far as the plugin uses it."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import itertools
import threading
import time
import weakref
from typing import Any

import numpy as np

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
        self.entered: list[tuple[int, Any]] = []
        self.allocator: Any = None


_local = _Local()


# ---- memory ----


class Memory:
    """A block of a pool; it goes back when nothing refers to it."""

    def __init__(self, pool: Any, block: Any, device: int) -> None:
        self.pool, self.block, self.device_id = pool, block, device

    def __del__(self) -> None:
        self.pool._take_back(self.block, self.device_id)


class RawMemory:
    """Memory of the current device that is no pool's: CuPy's `Memory`."""

    def __init__(self, size: int) -> None:
        self.block, self.size, self.device_id = np.empty(size + 256, np.uint8), size, _local.device
        self.ptr = -(-self.block.ctypes.data // 256) * 256


class MemoryPointer:
    """A place in a block."""

    def __init__(self, mem: Any, ptr: int, device: int) -> None:
        self.mem, self.ptr, self.device_id = mem, ptr, device

    def copy_from_host_async(self, source: int, nbytes: int, stream: Any = None) -> None:
        """Copy from the host."""
        _check_place(self.device_id)
        if (stream or get_current_stream())._steps is not None:
            # Of pinned memory too.
            raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
        _do(lambda to=self.ptr: ctypes.memmove(to, source, nbytes))

    def copy_from_device_async(self, source: Any, nbytes: int, stream: Any = None) -> None:
        """Copy from a device."""
        if not nbytes:
            raise CUDARuntimeError("emulator: a copy of nothing, which CUDA does not write down while it captures")
        _do(lambda to=self.ptr, at=source.ptr: ctypes.memmove(to, at, nbytes))

    def memset_async(self, value: int, nbytes: int, stream: Any = None) -> None:
        """Set all bytes."""
        if not nbytes:
            raise CUDARuntimeError("emulator: a fill of nothing, which CUDA does not write down while it captures")
        _do(lambda to=self.ptr: ctypes.memset(to, value, nbytes))


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

    def get_limit(self) -> int:
        """Return how much the current device may be asked for, 0 without a limit."""
        return self._limit[_local.device]

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
        self.device_id, self._timed, self._time, self._captured = _local.device, not disable_timing, None, False

    def record(self, stream: Any = None) -> None:
        """Put it behind what is in a stream."""
        stream = stream or get_current_stream()
        if (_local.device if stream.device_id < 0 else stream.device_id) != self.device_id:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        self._time, self._captured = time.perf_counter(), stream._steps is not None

    @property
    def done(self) -> bool:
        """Whether what is before it is done; CuPy takes any error for no."""
        return not self._captured

    def synchronize(self) -> None:
        """Wait."""
        _refuse_in_capture("synchronizing an event")
        if self._captured:
            raise CUDARuntimeError("cudaErrorCapturedEvent: operation not permitted on an event last recorded in a capturing stream")


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
        with np.errstate(all="ignore"):
            for step in self._steps:
                step()


_handles = itertools.count(0x1000, 0x10)


class _BaseStream:
    null: Any

    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id, self.priority = ptr, device_id, 0
        self._steps: list[Any] | None = None

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
        self.use()
        _local.entered.append((_local.device, self))
        return self

    def __exit__(self, *exc: object) -> None:
        # As CuPy: back to the stream of the block outside, whatever `use` has made the current one since.
        device, _ = _local.entered.pop()
        _local.streams[device] = next((s for at, s in reversed(_local.entered) if at == device), Stream.null)

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
        event._time, event._captured = time.perf_counter(), self._steps is not None
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

    @staticmethod
    def from_external(lent: Any) -> _BaseStream:
        """Return somebody else's stream."""
        version, ptr = lent.__cuda_stream__()
        if version != 0:
            raise TypeError("expected version 0 of the protocol")
        return _BaseStream(ptr, _local.device)


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


def _check_place(device: int) -> None:
    if device != _local.device:
        raise ValueError(
            f"The device where the array resides ({device}) is different from the current device ({_local.device}). "
            "Peer access is unavailable between these devices."
        )


def start(devices: int) -> None:
    """Begin with that many devices and nothing in use."""
    global DEVICES, _pool, _global_allocator
    DEVICES, _pool = devices, MemoryPool()
    _global_allocator = _pool.malloc


def default_pool() -> MemoryPool:
    """Return the pool that gives memory unless a program says otherwise."""
    return _pool
