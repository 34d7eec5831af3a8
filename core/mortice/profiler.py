"""Profiling over the steps of a program: `profile` with activities and a schedule, and what to do with each trace."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from mortice.autograd import profiler as _profiler
from mortice.autograd.profiler import record_function
from mortice.autograd.profiler_report import EventList

__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses


class ProfilerActivity(enum.Enum):
    """What is to be timed. Anything but CPU makes the profiler wait for each op."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule says to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class DeviceType(enum.Enum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1


def kineto_available() -> bool:
    """Tell whether PyTorch's Kineto library serves the profiler: it does not."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """Return what can be timed here."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return which steps to record: after `skip_first` steps, cycles of `wait` idle, `warmup` and `active` ones."""
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        cycle = wait + warmup + active
        if skip_first_wait:
            step += wait
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == cycle - 1 else ProfilerAction.RECORD

    return action


def _default_schedule_fn(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """Return an `on_trace_ready` that writes each trace into a folder, under names that TensorBoard knows."""

    def handler(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(
            os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}")
        )

    return handler


class profile:
    """Record ops and backward nodes with their times, all along or in the steps that a schedule names.

    Example:
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            model(x).sum().backward()
        print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else {ProfilerActivity.CPU}
        if use_cuda:
            self.activities.add(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _default_schedule_fn
        self._steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.with_stack, self.profile_memory = record_shapes, with_stack, profile_memory
        self.with_flops, self.with_modules = with_flops, with_modules
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._running: Any = None
        self._label: Any = None
        self._found: EventList | None = None
        self._metadata: dict[str, Any] = {}
        self._trace_id: str | None = None
        self.custom_trace_id_callback = custom_trace_id_callback

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        self._enter(self.current_action)

    def stop(self) -> None:
        """End; what is being recorded is a whole trace."""
        if self._running is not None:
            self._finish()

    def prepare_trace(self) -> None:
        """Do nothing: there is nothing to warm up."""

    def start_trace(self) -> None:
        """Begin to record, whatever the schedule says."""
        self._enter(ProfilerAction.RECORD)

    stop_trace = stop

    def step(self) -> None:
        """Say that a step of the program is done."""
        before = self.current_action
        self._close_label()
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        recording = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if self._running is not None and (before is ProfilerAction.RECORD_AND_SAVE or not recording):
            self._finish()
        self._enter(self.current_action)

    def _enter(self, action: ProfilerAction) -> None:
        if action not in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            return
        if self._running is None:
            waits = bool(self.activities - {ProfilerActivity.CPU})
            self._running = _profiler.profile(
                record_shapes=self.record_shapes, with_stack=self.with_stack, profile_memory=self.profile_memory,
                with_flops=self.with_flops, use_cuda=waits,
            ).__enter__()  # fmt: skip
            callback = self.custom_trace_id_callback
            self._trace_id = uuid.uuid4().hex.upper() if callback is None else callback()
        if self._steps:
            self._label = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _close_label(self) -> None:
        if self._label is not None:
            self._label.__exit__()
            self._label = None

    def _finish(self) -> None:
        self._close_label()
        running, self._running = self._running, None
        running.__exit__()
        earlier = self._found if self.acc_events and self._found is not None else EventList()
        found = running.function_events
        self._found = EventList([*earlier, *found], [*earlier.samples, *found.samples])
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def events(self) -> EventList:
        """Return the events of the trace, in the order in which they began."""
        if self._found is None:
            raise AssertionError("Profiler must be initialized before accessing events: nothing has been recorded yet.")
        return self._found

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **named: Any) -> EventList:
        """Return one entry for each kind of event, with times added up."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write a trace for chrome://tracing or Perfetto; a name that ends in .gz is compressed."""
        about = {
            "record_shapes": int(self.record_shapes), "profile_memory": int(self.profile_memory),
            "with_stack": int(self.with_stack), "with_flops": int(self.with_flops), "trace_id": self._trace_id,
        }  # fmt: skip
        self.events().export_chrome_trace(path, {**about, **self._metadata})

    def add_metadata(self, key: str, value: str) -> None:
        """Write a text of your own beside the events of the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write a value, given as JSON, beside the events of the trace."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> str | None:
        """Return the name of the last trace, None before the first."""
        return self._trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Name the traces to come by what the function returns."""
        self.custom_trace_id_callback = callback

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop recording for a while, or go on; the activities that ops belong to are recorded together."""
        if self._running is not None and set(activities) & self.activities:
            (self._running.recorder.resume if enable else self._running.recorder.pause)()

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their times, as flame graph tools read them; needs `with_stack`."""
        self.events().export_stacks(path, metric)
