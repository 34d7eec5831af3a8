"""To and from the host, between GPUs, and memory shared with other libraries."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import cupy
import numpy as np

from mortice.backends import Backend, DType, HostBuffer
from mortice_cuda_cupy.guard import refuse_in_capture
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.waiting import waiting


class Exchange:
    """Copies and loans."""

    # Memory of the host or of a device, and the event after which nothing uses it. Adding and taking out are atomic: the
    # garbage collector adds at any moment.
    _in_use: deque[tuple[Any, Any]]

    def __init__(self, *args: Any, **options: Any) -> None:
        self._in_use = deque()
        super().__init__(*args, **options)

    # ---- the host ----

    def from_host(self, host: HostBuffer, device: Any) -> Any:
        return self._sent(host, device, later=False)

    def from_host_later(self, host: HostBuffer, device: Any) -> Any:
        return self._sent(host, device, later=True)

    def _sent(self, host: HostBuffer, device: Any, *, later: bool) -> Any:
        refuse_in_capture("it copies from the host, and a replay would read memory that is gone by then")
        block = self._block(host)
        with cupy.cuda.Device(device.index):
            x = cupy.empty(host.shape, block.dtype)
            if not x.size:
                return x
            stream = cupy.cuda.get_current_stream()
            # From ordinary memory this returns when all of it has been read. From pinned memory it returns at once.
            x.data.copy_from_host_async(block.ctypes.data, block.nbytes, stream)
            if self.is_pinned(block.ctypes.data):  # type: ignore[attr-defined]
                if later:
                    self._keep(block, stream.record())
                else:
                    stream.synchronize()
            return x

    def _keep(self, block: Any, event: Any) -> None:
        """Keep memory until an event has happened; let go of what was kept for events that have."""
        self._in_use.append((block, event))
        self.let_go()

    def let_go(self) -> None:
        """Let go of what nothing uses any more."""
        for _ in range(len(self._in_use)):
            try:
                held = self._in_use.popleft()
            except IndexError:
                return
            if not held[1].done:
                self._in_use.append(held)

    def keep_for(self, x: Any, queue: Any) -> None:
        # Views hold the array that they are of: with it goes the last use of its memory.
        owner = x if x.base is None else x.base
        weakref.finalize(owner, _keep_until_done, self._in_use, owner.data, queue).atexit = False

    def _block(self, host: HostBuffer) -> Any:
        """Return the host's memory as a row-major NumPy array, without a copy where it is one."""
        dtype = self.native(host.dtype)  # type: ignore[attr-defined]
        if host.raw:
            return np.frombuffer(host.view, np.uint8).view(dtype).reshape(host.shape)
        return np.ascontiguousarray(np.asarray(host.view)).view(dtype).reshape(host.shape)

    def to_host(self, x: Any) -> HostBuffer:
        d: DType = self.dtype_of(x)  # type: ignore[attr-defined]
        refuse_in_capture("it reads values of the device, which are there only after a replay")
        if waiting.mode:
            waiting.told()
        with cupy.cuda.Device(x.data.device_id):
            # In order first: where CuPy does that itself, another stream is the current one afterwards.
            block = contiguous(x).get()
        self.raise_late()  # type: ignore[attr-defined]
        self.let_go()
        # bfloat16 has no PEP 3118 code, so it goes as bytes.
        view = block.reshape(-1).view(np.uint8) if d.name == "bfloat16" else block
        return HostBuffer(memoryview(view), x.shape, d)

    @property
    def copies_host(self) -> bool:
        """Memory of the host is never a device's own."""
        return True

    # ---- another GPU ----

    def copy_to(self, x: Any, device: Any) -> Any:
        home = x.data.device_id
        if device.index == home:
            return x.copy()
        with cupy.cuda.Device(home):
            x = cupy.ascontiguousarray(x)
            sender = cupy.cuda.get_current_stream()
            with cupy.cuda.Device(device.index):
                out = cupy.empty(x.shape, x.dtype)
                receiver = cupy.cuda.get_current_stream()
                ready = receiver.record()
            # The sender copies: its memory may be given to other work of its stream right after. Both wait for each other.
            sender.wait_event(ready)
            if x.size:
                out.data.copy_from_device_async(x.data, x.nbytes, sender)
            sent = sender.record()
        with cupy.cuda.Device(device.index):
            receiver.wait_event(sent)
        return out

    # ---- other libraries ----

    def dlpack_device(self, x: Any) -> tuple[int, int]:
        return x.__dlpack_device__()  # type: ignore[no-any-return]

    def to_dlpack(self, x: Any, *, stream: Any = None, max_version: Any = None) -> Any:
        # CuPy makes the borrower's stream wait for its current one.
        return x.__dlpack__(stream=stream, max_version=max_version)

    def from_cuda_array(self, source: Any) -> Any:
        # CuPy waits for the stream that the object names.
        x = cupy.asarray(source)
        self.dtype_of(x)  # type: ignore[attr-defined]
        return x

    def from_dlpack(self, source: Any, device: Any) -> Any:
        from mortice.backends.dlpack import on_host

        if on_host(source):
            return Backend.from_dlpack(self, source, device)  # type: ignore[arg-type]
        with cupy.cuda.Device(source.__dlpack_device__()[1]):
            # CuPy hands its current stream over, for the lender to make wait.
            x = cupy.from_dlpack(source)
        self.dtype_of(x)  # type: ignore[attr-defined]
        return x if x.data.device_id == device.index else self.copy_to(x, device)


def _keep_until_done(kept: Any, memory: Any, queue: Any) -> None:
    kept.append((memory, _AfterCapture(queue) if queue.capturing else _recorded(queue)))


def _recorded(queue: Any) -> Any:
    with cupy.cuda.Device(queue.device.index):
        return queue.stream.record()


class _AfterCapture:
    """An event of a stream that captures: what is recorded there belongs to the graph, and may not be asked. It comes after that."""

    def __init__(self, queue: Any) -> None:
        self._queue, self._event = queue, None

    @property
    def done(self) -> bool:
        if self._event is None and not self._queue.capturing:
            self._event = _recorded(self._queue)
        return self._event is not None and bool(self._event.done)
