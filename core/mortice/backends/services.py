"""What a device may offer beside kernels: queues of work, marks in them, captured work, memory locked for transfers.

The classes here are what holds for a device whose work runs in one queue, in order; `Backend` hands them out unless a
backend has its own. `mortice.cuda` speaks to nothing else.
"""

from __future__ import annotations

import time
from contextlib import nullcontext

from mortice.errors import OutOfMemoryError as OutOfMemoryError  # what a backend may raise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Queue:
    """A queue of work on a device. All queues of this class are one, so that every wait for another has happened."""

    def __init__(self, device: Any, priority: int = 0) -> None:
        self.device, self.priority = device, priority
        self.handle = 0  # what libraries of the vendor know it by

    def use(self) -> None:
        """Send this thread's later work on the device here."""

    def synchronize(self) -> None:
        """Wait until all work in it is done."""
        self.device.backend.synchronize(self.device)

    def done(self) -> bool:
        """Tell whether all work in it is done."""
        self.synchronize()
        return True

    def wait(self, mark: Mark) -> None:
        """Let later work wait for a mark."""

    @property
    def capturing(self) -> bool:
        """Whether work is written down instead of done."""
        return False


class Mark:
    """A place in a queue. Recording one that takes the time waits for the device."""

    def __init__(self, device: Any, timing: bool) -> None:
        self.device, self.timing, self._time = device, timing, 0.0

    def record(self, queue: Queue) -> None:
        """Put the mark behind the work that is in the queue."""
        if self.timing:
            queue.synchronize()
        self._time = time.perf_counter()

    def done(self) -> bool:
        """Tell whether the work before the mark is done."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait until the work before the mark is done."""
        self.device.backend.synchronize(self.device)

    def milliseconds_to(self, other: Mark) -> float:
        """Return the time from this mark to another."""
        return (other._time - self._time) * 1e3


class Services:
    """The methods of a backend that hand them out; every one may be overridden."""

    def queue(self, device: Any, *, priority: int = 0, handle: int | None = None) -> Queue:
        """Make a queue, or show the one of that handle, which another library has made."""
        return Queue(device, priority)

    def default_queue(self, device: Any) -> Queue:
        """Return the queue in which work runs unless a program says otherwise."""
        return Queue(device)

    def mark(self, device: Any, *, timing: bool) -> Mark:
        """Make a mark."""
        return Mark(device, timing)

    def begin_capture(self, queue: Queue, pool: Any = None, mode: str = "global") -> Any:
        """Write work of a queue down instead of doing it; return what `end_capture` takes, with the `pool` of its memory."""
        raise RuntimeError(f"cuda.graph: backend '{self.name}' does not capture work.")  # type: ignore[attr-defined]

    def capture_pool(self, device: Any) -> Any:
        """Return memory for captured work, which several captures may share."""
        return None

    def end_capture(self, capture: Any) -> Any:
        """Return what was written down, an object with `launch()`."""
        raise NotImplementedError

    # Whether work can be captured; then numbers that change from step to step may be given to step kernels as buffers.
    captures = False
    # Operations such as "mul_" that `each_step` does on many buffers at once, of a backend on which launches cost something,
    # and of how many lists at the most.
    at_once: Mapping[str, int] = {}

    def random_cell(self, device: Any) -> Any:
        """Return memory of the device for a seed and an offset.

        Random kernels take it in place of the seed; their offset then counts from the one there.
        """
        raise NotImplementedError

    def set_random_cell(self, cell: Any, seed: int, offset: int) -> None:
        """Write both, for what comes later in the current queue."""
        raise NotImplementedError

    def use_pool(self, pool: Any) -> Any:
        """Return a context in which this thread's new buffers come from a pool of `capture_pool`."""
        return nullcontext()

    def can_access_peer(self, device: Any, other: Any) -> bool:
        """Tell whether kernels on a device can read the memory of another one."""
        return False

    def limit_memory(self, fraction: float, device: Any) -> None:
        """Take no more than a fraction of the device's memory, where the backend can keep to it."""

    def pinned_memory(self, nbytes: int) -> Any:
        """Return memory of the host that the device reads and writes by itself, as a writable buffer."""
        raise RuntimeError(f"pin_memory: backend '{self.name}' does not lock memory.")  # type: ignore[attr-defined]

    def is_pinned(self, address: int) -> bool:
        """Tell whether an address of the host is in such memory."""
        return False

    def cuda_name(self, name: str) -> Any:
        """Return what `mortice.cuda` has by a name that the core does not know, or None."""

    def keep_for(self, x: Any, queue: Queue) -> None:
        """Keep the memory of a buffer, after its last use here, until what a queue holds by then is done."""

    def tell_profiler(self, what: str, *told: Any) -> Any:
        """Tell the vendor's profiler "on", "off", "mark", "push" or "start" and a name, "pop", or "end" and what start gave."""
        return 0

    def libraries(self) -> dict[str, tuple[int, str]]:
        """Return the optional libraries of the vendor: each name with its version, 0 where it is not used, and why not."""
        return {}

    def from_cuda_array(self, source: Any) -> Any:
        """Return a buffer over the memory of an object that has `__cuda_array_interface__` and no DLPack."""
        raise RuntimeError(f"as_tensor: backend '{self.name}' does not read __cuda_array_interface__.")  # type: ignore[attr-defined]

    def from_host_later(self, host: Any, device: Any) -> Any:
        """Copy a HostBuffer to the device, possibly after returning where the host's memory is locked."""
        return self.from_host(host, device)  # type: ignore[attr-defined]
