"""CUDA graphs: work written down once and launched again as a whole, in memory that stays its own."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import cupy

MODES = ("global", "thread_local", "relaxed")


POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()  # those that are alive, for whoever counts memory


class Pool:
    """Memory that captured work allocates: blocks go round inside it, and only it gives them back.

    CuPy's default pool would hand a freed block to work outside the graph, which the graph then overwrites.
    """

    def __init__(self) -> None:
        self.blocks = cupy.cuda.MemoryPool()
        self.kept: list[Any] = []  # what captured products work in
        POOLS.add(self)


class _Current(threading.local):
    capture: Capture | None = None


_current = _Current()


def current_capture() -> Capture | None:
    """Return what this thread captures."""
    return _current.capture


_numbers = itertools.count(1)


class Capture:
    """Work of a stream while it is written down."""

    def __init__(self, queue: Any, pool: Pool | None, mode: str) -> None:
        if mode not in MODES:
            raise RuntimeError(
                f"cuda.graph: expected capture_error_mode to be one of {', '.join(MODES)}; got {mode!r}."
            )
        self.queue, self.pool, self.number = queue, pool or Pool(), next(_numbers)
        self._room: Any = None
        self._device = cupy.cuda.Device(queue.device.index)
        self._device.__enter__()
        try:
            # In the stricter modes cudaMalloc fails in a thread that captures, and the pool begins empty.
            queue.stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
        except BaseException:
            self._device.__exit__(None, None, None)
            raise
        # In this thread only, and only until the end.
        self._allocator = cupy.cuda.using_allocator(self.pool.blocks.malloc)
        self._allocator.__enter__()
        _current.capture = self

    def room(self, size: int) -> Any:
        """Return memory for products to work in, which the graph keeps: it may run beside others."""
        if self._room is None:
            self._room = cupy.cuda.Memory(size)
            self.pool.kept.append(self._room)
        return self._room

    def end(self) -> Graph:
        """Return what was written down."""
        _current.capture = None
        self._allocator.__exit__(None, None, None)
        try:
            return Graph(self.queue.stream.end_capture(), self.pool, self.queue.device)
        finally:
            self._device.__exit__(None, None, None)


class Graph:
    """Work that was written down, and the memory it uses."""

    def __init__(self, graph: Any, pool: Pool, device: Any) -> None:
        self.graph, self.pool, self._index = graph, pool, device.index

    def launch(self) -> None:
        """Do the work in the current stream."""
        with cupy.cuda.Device(self._index):
            self.graph.launch()
