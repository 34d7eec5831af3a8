"""Timing of operations: `profile` records each op, kernel and backward node while it runs, `record_function` a block.

What runs is told by `tracing`, so nothing is asked for while no profiler runs. The reports are in `profiler_report`,
schedules and traces over several steps in `mortice.profiler`.
"""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from mortice import graph, tracing
from mortice.autograd.profiler_report import EventList, FunctionEvent
from mortice.tracing import Frame, Watcher
from mortice.tracing.buffers import described
from mortice.tracing.flops import flops_of
from mortice.tracing.memory import Meter
from mortice.tracing.places import is_own

_running: list[Recorder] = []


class Recorder(Watcher):
    """What a running profiler collects."""

    def __init__(
        self,
        *,
        shapes: bool = False,
        stack: bool = False,
        memory: bool = False,
        flops: bool = False,
        waits: bool = False,
    ) -> None:
        self.shapes, self.stack, self.flops, self.waits = shapes, stack, flops, waits
        self.meter = Meter(peaks=False) if memory else None
        self.events: list[FunctionEvent] = []
        self.samples: list[tuple[int, str, int]] = []  # (time, device, bytes in use)
        self._forward: dict[int, FunctionEvent] = {}  # the op that may have made the node of that number

    # ---- what is told ----

    def began(self, frame: Frame) -> None:
        parent = frame.parent
        while parent is not None and self not in parent.notes:
            parent = parent.parent
        event = FunctionEvent(_name(frame), threading.get_native_id(), None if parent is None else parent.notes[self])
        frame.notes[self] = event
        event.is_user_annotation = not (frame.op or frame.kernel or frame.node)
        if frame.kernel is not None:
            event.kernel, event.backend = frame.kernel, frame.backend.name
        if frame.node is not None:
            event.sequence_nr = frame.node.seq
            event.forward = self._made(frame.node)
            event.fwd_thread = None if event.forward is None else event.forward.thread
        if self.shapes:
            event.input_shapes, event.input_dtypes = described(frame.backend, frame.args)
        if self.stack:
            event.stack = _callers()
        if self.meter is not None:
            event.memory_before = _split(self.meter)
        self.events.append(event)
        event.start = perf_counter_ns()

    def ended(self, frame: Frame) -> None:
        event = frame.notes.pop(self, None)
        if event is None:
            return
        event.start, event.end = frame.start, frame.end
        if frame.kernel is not None:
            event.body = "own" if frame.own and not frame.stood_in else "default"
        if frame.op and frame.outer is frame and not frame.backward:
            # A node made next, by this thread, is the op's.
            event.sequence_nr = _next_number()
            self._forward[event.sequence_nr] = event
        if self.flops and frame.kernel is not None and not frame.calls:
            event.flops = flops_of(frame)
        if self.meter is not None:
            self.meter.note(frame)
            (cpu, other), (cpu_before, other_before) = _split(self.meter), event.memory_before
            event.cpu_memory_usage, event.device_memory_usage = cpu - cpu_before, other - other_before
            if frame.kernel is not None:
                own, places = frame.backend.name, list(self.meter.places.items())
                self.samples.extend([(frame.end, f"{d} ({n})", place.now) for (n, d), place in places if n == own])

    def _made(self, node: Any) -> FunctionEvent | None:
        found = self._forward.pop(node.seq, None)
        return (
            found
            if found is not None and f"aten::{getattr(getattr(node, 'op', None), 'name', '')}" == found.name
            else None
        )

    # ---- when ----

    def start(self) -> None:
        """Begin to listen to all backends and to backward."""
        if _running:
            raise RuntimeError("profile: a profiler is running already; profilers do not nest.")
        _running.append(self)
        self.resume()

    def resume(self) -> None:
        """Go on."""
        if self not in tracing.watchers():
            if self.meter is not None:
                self.meter.begin()
            tracing.watch(self)

    def pause(self) -> None:
        """Listen no more for now."""
        if self in tracing.watchers():
            tracing.unwatch(self)
            if self.meter is not None:
                self.meter.end()

    def stop(self) -> None:
        """Listen no more; what still runs ends here."""
        self.pause()
        if self in _running:  # not in a process that was forked off
            _running.remove(self)
        now = perf_counter_ns()
        for event in self.events:
            event.end = event.end or now

    def unwatched(self) -> None:
        _running.clear()


def _profiler_enabled() -> bool:
    """Tell whether a profiler runs."""
    return bool(_running)


def _disable_profiler() -> None:
    """End the profiler that was left running, if there is one."""
    for recorder in _running[:]:
        recorder.stop()


def _name(frame: Frame) -> str:
    """Return an op's name with PyTorch's prefix, by which people filter; kernels within have their backend's."""
    public = frame.public or frame.op
    if public:
        return f"aten::{public}"
    return frame.name if frame.kernel is None else f"{frame.backend.name}::{frame.kernel}"


def _next_number() -> int:
    """Return the number that the next node will have; to take one would leave a gap."""
    return int(repr(graph.next_seq.__self__)[6:-1])  # type: ignore[attr-defined]


def _split(meter: Meter) -> tuple[int, int]:
    """Return the bytes in use on the CPU, and on other devices."""
    cpu = other = 0
    for (_, device), place in list(meter.places.items()):
        if device.partition(":")[0] == "cpu":
            cpu += place.ask()
        else:
            other += place.ask()
    return cpu, other


def _callers() -> list[str]:
    frames = [f for f in traceback.extract_stack() if not is_own(f.filename)]
    return [f"{f.filename}({f.lineno}): {f.name}" for f in reversed(frames)]


class record_function:
    """Label a block of code in what a profiler records; also a decorator. Costs next to nothing without one."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        self._open.append(tracing.open_label(self.name))
        return self

    def __exit__(self, *exc: Any) -> None:
        tracing.close_label(self._open.pop())

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def labelled(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)

        return labelled


class emit_nvtx:
    """Ranges for NVIDIA's own profilers, which are left out; entering it says so."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise NotImplementedError("emit_nvtx: ranges for NVIDIA's profilers are left out. Use profiler.profile.")
        return self

    def __exit__(self, *exc: Any) -> None:
        pass


class profile:
    """Record every op and backward node in a block, with its time.

    Differs from torch: profilers that count accelerators' time wait for each op, so that what is shown is the op's own.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False,
        with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False, with_modules: bool = False,
        use_kineto: bool = False, use_cpu: bool = True, experimental_config: Any = None, acc_events: bool = False,
        custom_trace_id_callback: Any = None, post_processing_timeout_s: float | None = None, activity_filters: Any = None,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        self.recorder = Recorder(
            shapes=record_shapes, stack=with_stack, memory=profile_memory, flops=with_flops,
            waits=use_cuda or use_device is not None,
        )  # fmt: skip
        self._events: EventList | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            self.recorder.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        if self.enabled:
            self.recorder.stop()
            self._events = EventList(self.recorder.events, self.recorder.samples)

    @property
    def function_events(self) -> EventList:
        """The events, in the order in which they began."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all ops in microseconds."""
        return self.function_events.self_cpu_time_total

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **named: Any) -> EventList:
        """Return one entry for each kind of event, with times added up."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> Any:
        """Return one entry for all events."""
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **settings: Any) -> str:
        """Return the events as a text table."""
        return self.function_events.table(sort_by, row_limit, **settings)

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace for chrome://tracing or Perfetto."""
        self.function_events.export_chrome_trace(path)

    def __str__(self) -> str:
        return "<unfinished profiler>" if self._events is None else str(self._events)


__all__ = ["EventList", "FunctionEvent", "emit_nvtx", "profile", "record_function"]
