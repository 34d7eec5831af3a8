"""Streams and events, by the queues and marks that the backend has; see `mortice.backends.services`."""

from __future__ import annotations

from typing import Any

from mortice.cuda.devices import is_available, place, set_device
from mortice.device import Local, chosen


class Stream:
    """A queue of work on a CUDA device.

    Differs from torch: where a backend has one queue for a device, all streams are that one, and waiting is already done.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if not is_available():
            raise RuntimeError("cuda.Stream: requires a CUDA device; no backend offers one.")
        self.device = place("Stream", device)
        self._queue = self.device.backend.queue(self.device, priority=priority, handle=kwargs.get("stream_ptr"))

    @classmethod
    def _over(cls, queue: Any) -> Stream:
        made = cls.__new__(cls)
        made.device, made._queue = queue.device, queue
        return made

    @property
    def priority(self) -> int:
        """The priority that was asked for; a lower number is served first."""
        return int(self._queue.priority)

    @property
    def cuda_stream(self) -> int:
        """The number that CUDA's own functions know it by; 0 is the default stream."""
        return int(self._queue.handle)

    @property
    def device_index(self) -> int:
        """Its device's."""
        return int(self.device.index)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return what other libraries read: the version of the protocol and the stream's number."""
        return 0, self.cuda_stream

    def synchronize(self) -> None:
        """Wait until all work in it is done."""
        self._queue.synchronize()

    def query(self) -> bool:
        """Tell whether all work in it is done."""
        return bool(self._queue.done())

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for what is in another stream."""
        self.wait_event(stream.record_event())

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        event.wait(self)

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


class ExternalStream(Stream):
    """A stream that another library has made, by its number; it must live as long as it is used here."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Return a stream that another library has made, by its number."""
    return ExternalStream(data_ptr, device)


class Event:
    """A mark in a stream, to wait for or to measure the time between two.

    Differs from torch: where a backend has one queue for a device, recording an event that takes the time waits for it.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if not is_available():
            raise RuntimeError("cuda.Event: requires a CUDA device; no backend offers one.")
        self.enable_timing = enable_timing
        self.device: Any = None
        self._mark: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the work so far."""
        stream = stream or current_stream()
        if self._mark is None:
            self.device = stream.device
            self._mark = self.device.backend.mark(self.device, timing=self.enable_timing)
        elif self.device is not stream.device:
            raise RuntimeError(
                f"cuda.Event: it was first recorded on {self.device}, so not on {stream.device}. Make another."
            )
        self._mark.record(stream._queue)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream wait for the mark; an event that was never recorded is no obstacle."""
        if self._mark is not None:
            (stream or current_stream())._queue.wait(self._mark)

    def query(self) -> bool:
        """Tell whether the work before the mark is done."""
        return self._mark is None or bool(self._mark.done())

    def synchronize(self) -> None:
        """Wait until the work before the mark is done."""
        if self._mark is not None:
            self._mark.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this mark to another."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._mark is None or end_event._mark is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float(self._mark.milliseconds_to(end_event._mark))

    def __repr__(self) -> str:
        return "<mortice.cuda.Event uninitialized>" if self.device is None else f"<mortice.cuda.Event on {self.device}>"


class _Current(Local):
    streams: dict[Any, Stream] = {}  # by device; replaced, never written


_current = _Current()


class StreamContext:
    """Make a stream the current one for a block, and its device the current device; None does nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before, self._device = current_stream(self.stream.device), chosen.current
            set_stream(self.stream)

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            set_stream(self._before)
            chosen.current = self._device


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that makes a stream the current one."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Make a stream the current one, and its device the current device; None does nothing."""
    if stream is not None:
        set_device(stream.device)
        _current.streams = {**_current.streams, stream.device: stream}
        stream._queue.use()


def current_stream(device: Any = None) -> Stream:
    """Return the current stream of a device."""
    where = place("current_stream", device)
    return _current.streams.get(where) or default_stream(where)


def default_stream(device: Any = None) -> Stream:
    """Return the stream in which work runs unless a script says otherwise."""
    where = place("default_stream", device)
    return Stream._over(where.backend.default_queue(where))


def is_current_stream_capturing() -> bool:
    """Tell whether work in the current stream is written down instead of done."""
    return is_available() and bool(current_stream()._queue.capturing)
