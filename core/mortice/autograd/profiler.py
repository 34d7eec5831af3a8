"""Timing of operations: `profile` records each op and each backward node while it runs, `record_function` a block.

An op is timed where the call path calls its compiled kernel, so nothing is asked for while no profiler runs. The reports
are in `profiler_report`, schedules and traces over several steps in `mortice.profiler`.
"""

from __future__ import annotations

import functools
import os
import threading
import traceback
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from mortice import graph
from mortice.autograd.profiler_report import EventList, FunctionEvent
from mortice.backends import plugins
from mortice.device import watching

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_running: list[Recorder] = []


class Recorder:
    """What a running profiler collects."""

    def __init__(self, record_shapes: bool, with_stack: bool, synchronize: bool) -> None:
        self.record_shapes, self.with_stack, self.synchronize = record_shapes, with_stack, synchronize
        self.events: list[FunctionEvent] = []
        self.active = False
        self._open = threading.local()
        self._tables: dict[int, _TimedTable] = {}

    def begin(self, name: str, shapes: Any = (), user: bool = False) -> FunctionEvent:
        """Open an event inside the thread's innermost one."""
        parent = getattr(self._open, "event", None)
        stack = _callers() if self.with_stack else []
        event = FunctionEvent(name, threading.get_native_id(), parent, shapes, stack, user)
        self.events.append(event)
        self._open.event = event
        event.start = perf_counter_ns()
        return event

    def end(self, event: FunctionEvent) -> None:
        """Close an event."""
        event.end = perf_counter_ns()
        self._open.event = event.cpu_parent

    # ---- where it listens ----

    def start(self) -> None:
        """Begin to listen to all devices and to backward."""
        if _running:
            raise RuntimeError("profile: a profiler is running already; profilers do not nest.")
        _running.append(self)
        self.active = True
        watching.append(self._timed)
        graph.watchers.append(self._pull)
        for device in _devices():
            device.table = self._timed(device.backend.table)

    def stop(self) -> None:
        """Listen no more."""
        self.active = False
        _running.remove(self)
        watching.remove(self._timed)
        graph.watchers.remove(self._pull)
        for device in _devices():
            device.table = device.backend.table

    def _timed(self, table: Any) -> _TimedTable:
        return self._tables.get(id(table)) or self._tables.setdefault(id(table), _TimedTable(table, self))

    def _pull(self, node: Any, puller: Any, g: Any, graph: bool) -> Any:
        event = self.begin(node.name())
        try:
            return puller.pull(g, graph)
        finally:
            self.end(event)


class _TimedTable(dict[Any, Callable[..., Any]]):
    """A device's compiled ops, each in the care of a profiler."""

    def __init__(self, table: Any, recorder: Recorder) -> None:
        self.table, self.recorder = table, recorder

    def __missing__(self, op: Any) -> Callable[..., Any]:
        kernel, recorder, backend = self.table[op], self.recorder, self.table.backend
        name = f"aten::{op.name}"  # PyTorch's prefix, which people filter by

        @functools.wraps(kernel, assigned=(), updated=())
        def timed(*buffers: Any, **attrs: Any) -> Any:
            if not recorder.active:
                return kernel(*buffers, **attrs)
            event = recorder.begin(name, _shapes(backend, buffers) if recorder.record_shapes else ())
            try:
                out = kernel(*buffers, **attrs)
                if recorder.synchronize:
                    first = out[0] if type(out) is tuple else out
                    backend.synchronize(backend.device_of(first))
                return out
            finally:
                recorder.end(event)

        self[op] = timed
        return timed


def _shapes(backend: Any, buffers: Any) -> list[Any]:
    plain = (int, float, complex, type(None))
    return [[] if isinstance(b, plain) else list(backend.shape_of(b)) for b in buffers]


def _devices() -> list[Any]:
    loaded = [entry.backend for entry in plugins.entries().values() if entry.backend is not None]
    return [device for backend in loaded for device in list(backend.interned.values())]


def _callers() -> list[str]:
    frames = [f for f in traceback.extract_stack() if not f.filename.startswith(_HERE)]
    return [f"{f.filename}({f.lineno}): {f.name}" for f in reversed(frames)]


class record_function:
    """Label a block of code in what a profiler records; also a decorator. Costs next to nothing without one."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        recorder = _running[-1] if _running else None
        self._open.append(recorder and (recorder, recorder.begin(self.name, user=True)))
        return self

    def __exit__(self, *exc: Any) -> None:
        found = self._open.pop()
        if found is not None:
            recorder, event = found
            recorder.end(event)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def labelled(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)

        return labelled


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
        self._recorder = Recorder(record_shapes, with_stack, use_cuda or use_device is not None)
        self._events: EventList | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            self._recorder.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        if self.enabled:
            self._recorder.stop()
            self._events = EventList(self._recorder.events)

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


__all__ = ["EventList", "FunctionEvent", "profile", "record_function"]
