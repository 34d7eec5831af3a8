"""Streams and events: mortice's queues and marks over CuPy's."""

from __future__ import annotations

from typing import Any

import cupy

from mortice.backends.services import Mark, Queue
from mortice_cuda_cupy import cublas
from mortice_cuda_cupy.graphs import Capture, Pool
from mortice_cuda_cupy.guard import refuse_in_capture


class _Lent:
    """Somebody else's stream, as CuPy takes it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class CuPyQueue(Queue):
    """A CUDA stream."""

    def __init__(self, device: Any, stream: Any, priority: int = 0) -> None:
        super().__init__(device, priority)
        self.stream, self.handle = stream, stream.ptr

    def use(self) -> None:
        # CuPy keeps a current stream for each thread and device, and takes one for the current device only.
        with cupy.cuda.Device(self.device.index):
            self.stream.use()

    # The default stream has one name on every device, and means the current one's.

    def synchronize(self) -> None:
        refuse_in_capture("it waits for the device")
        with cupy.cuda.Device(self.device.index):
            self.stream.synchronize()
        self.device.backend.raise_late()

    def done(self) -> bool:
        refuse_in_capture("it asks what the device has done")
        with cupy.cuda.Device(self.device.index):
            return bool(self.stream.done)

    def wait(self, mark: Mark) -> None:
        with cupy.cuda.Device(self.device.index):
            self.stream.wait_event(mark.event)  # type: ignore[attr-defined]

    @property
    def capturing(self) -> bool:
        return self.handle != 0 and self.stream.is_capturing()


class CuPyMark(Mark):
    """A CUDA event."""

    def __init__(self, device: Any, timing: bool) -> None:
        super().__init__(device, timing)
        with cupy.cuda.Device(device.index):
            self.event = cupy.cuda.Event(disable_timing=not timing)

    def record(self, queue: Queue) -> None:
        with cupy.cuda.Device(self.device.index):
            self.event.record(queue.stream)  # type: ignore[attr-defined]

    def done(self) -> bool:
        refuse_in_capture("it asks what the device has done")
        return bool(self.event.done)

    def synchronize(self) -> None:
        refuse_in_capture("it waits for the device")
        self.event.synchronize()
        self.device.backend.raise_late()

    def milliseconds_to(self, other: Mark) -> float:
        return float(cupy.cuda.get_elapsed_time(self.event, other.event))  # type: ignore[attr-defined]


class Streams:
    """Queues, marks and captures of a CUDA device."""

    captures = True

    def synchronize(self, device: Any) -> None:
        self.refuse_in_capture("it waits for the device")
        cupy.cuda.Device(device.index).synchronize()
        self.raise_late()  # type: ignore[attr-defined]

    def queue(self, device: Any, *, priority: int = 0, handle: int | None = None) -> CuPyQueue:
        with cupy.cuda.Device(device.index):
            if handle is not None:
                return CuPyQueue(device, cupy.cuda.Stream.from_external(_Lent(handle)), priority)
            # As PyTorch's, it does not wait for the default stream unless told.
            return CuPyQueue(device, cupy.cuda.Stream(non_blocking=True, priority=priority), priority)

    def default_queue(self, device: Any) -> CuPyQueue:
        return CuPyQueue(device, cupy.cuda.Stream.null)

    def mark(self, device: Any, *, timing: bool) -> CuPyMark:
        return CuPyMark(device, timing)

    def can_access_peer(self, device: Any, other: Any) -> bool:
        return device is other or bool(cupy.cuda.runtime.deviceCanAccessPeer(device.index, other.index))

    def begin_capture(self, queue: Any, pool: Any = None, mode: str = "global") -> Capture:
        with cupy.cuda.Device(queue.device.index):
            cublas.ready(queue.device.index)
        return Capture(queue, pool, mode)

    def capture_pool(self, device: Any) -> Pool:
        return Pool()

    def use_pool(self, pool: Pool) -> Any:
        return cupy.cuda.using_allocator(pool.blocks.malloc)

    def end_capture(self, capture: Capture) -> Any:
        try:
            return capture.end()
        finally:
            with cupy.cuda.Device(capture.queue.device.index):
                self._look(capture.queue.device.index)  # type: ignore[attr-defined]

    def tell_profiler(self, what: str, *told: Any) -> Any:
        from cupy.cuda import nvtx, profiler

        ways = {"on": profiler.start, "off": profiler.stop, "mark": nvtx.Mark, "push": nvtx.RangePush, "pop": nvtx.RangePop,
                "start": lambda name: nvtx.RangeStart(name, 0), "end": nvtx.RangeEnd}  # fmt: skip
        return ways[what](*told)

    def refuse_in_capture(self, why: str) -> None:
        """Raise while work is captured, before CUDA does: its error would end the capture."""
        refuse_in_capture(why)
