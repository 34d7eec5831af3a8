"""Streams and events over devices whose work runs in one queue: every order that a script asks for holds already."""

from __future__ import annotations

import threading
import time
from typing import Any

from mortice.cuda.devices import is_available, place, synchronize


class Stream:
    """A queue of work on a CUDA device.

    Differs from torch: all streams of a device are one queue, so streams never overlap and waiting is already done.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if not is_available():
            raise RuntimeError("cuda.Stream: requires a CUDA device; no backend offers one.")
        self.device = place("Stream", device)
        self.priority = priority
        self.cuda_stream = 0

    def synchronize(self) -> None:
        """Wait until all work in it is done."""
        synchronize(self.device)

    def query(self) -> bool:
        """Tell whether all work in it is done, by waiting for it."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for what is in another stream: it does."""

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event: it does."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<mortice.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A mark in a stream, to wait for or to measure the time between two.

    Differs from torch: recording an event that takes the time waits for the device.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if not is_available():
            raise RuntimeError("cuda.Event: requires a CUDA device; no backend offers one.")
        self.enable_timing = enable_timing
        self.device: Any = None
        self._time: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the work so far."""
        self.device = (stream or current_stream()).device
        if self.enable_timing:
            synchronize(self.device)
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream wait for the mark: it does."""

    def query(self) -> bool:
        """Tell whether the work before the mark is done, by waiting for it."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait until the work before the mark is done."""
        if self.device is not None:
            synchronize(self.device)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this mark to another."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3

    def __repr__(self) -> str:
        return "<mortice.cuda.Event uninitialized>" if self.device is None else f"<mortice.cuda.Event on {self.device}>"


class _Current(threading.local):
    stream: Stream | None = None


_current = _Current()


class StreamContext:
    """Make a stream the current one for a block; None does nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self._before = _current.stream
        set_stream(self.stream)

    def __exit__(self, *exc: object) -> None:
        _current.stream = self._before


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that makes a stream the current one."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Make a stream the current one; None does nothing."""
    if stream is not None:
        _current.stream = stream


def current_stream(device: Any = None) -> Stream:
    """Return the current stream of a device."""
    where = place("current_stream", device)
    found = _current.stream
    return found if found is not None and found.device == where else default_stream(where)


def default_stream(device: Any = None) -> Stream:
    """Return the stream in which work runs unless a script says otherwise."""
    return Stream(place("default_stream", device))


def is_current_stream_capturing() -> bool:
    """Return False: no stream is captured."""
    return False
