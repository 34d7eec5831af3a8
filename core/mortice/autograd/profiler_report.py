"""What a profiler has found: events, sums by name, text tables, traces for a browser."""

from __future__ import annotations

import gzip
import json
from typing import Any, NamedTuple

from mortice.autograd.profiler_trace import trace


class Interval(NamedTuple):
    """When an event ran, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return how long it took."""
        return self.end - self.start


class _Times:
    """The names by which times are read; everything is in microseconds."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    is_user_annotation = False
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0
    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    flops = 0

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """The mean time, written with its unit."""
        return written(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """The whole time, written with its unit."""
        return written(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """The time outside of the events within, written with its unit."""
        return written(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One call: an op, a backward node, or a block that `record_function` labels."""

    count = 1

    def __init__(self, name: str, thread: int, parent: FunctionEvent | None) -> None:
        self.name = self.key = name
        self.thread, self.cpu_parent = thread, parent
        self.input_shapes: list[Any] = []
        self.input_dtypes: list[str] = []
        self.stack: list[str] = []
        self.cpu_children: list[FunctionEvent] = []
        self.start = self.end = 0
        self.id = 0
        self.sequence_nr = -1
        self.fwd_thread: int | None = None
        self.forward: FunctionEvent | None = None  # of a backward node, the op whose node it is
        self.kernel, self.backend, self.body = "", "", ""
        self.memory_before = (0, 0)
        if parent is not None:
            parent.cpu_children.append(self)

    @property
    def time_range(self) -> Interval:
        """When it ran."""
        return Interval(self.start / 1e3, self.end / 1e3)

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """How long it took."""
        return max(self.end - self.start, 0) / 1e3

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """How long it took without the events within."""
        return self.cpu_time_total - sum([child.cpu_time_total for child in self.cpu_children])

    @property
    def self_cpu_memory_usage(self) -> int:  # type: ignore[override]
        """The bytes of the CPU's memory that it took, or gave back, outside of the events within."""
        return self.cpu_memory_usage - sum([child.cpu_memory_usage for child in self.cpu_children])

    @property
    def self_device_memory_usage(self) -> int:  # type: ignore[override]
        """The bytes of other devices' memory that it took, or gave back, outside of the events within."""
        return self.device_memory_usage - sum([child.device_memory_usage for child in self.cpu_children])

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.start / 1e3:.3f} "
            f"end_us={self.end / 1e3:.3f} cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """Calls of one kind, added up."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.count, self.cpu_time_total, self.self_cpu_time_total = 0, 0.0, 0.0
        self.input_shapes: Any = []
        self.stack: list[str] = []

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or another sum."""
        if self.key is None or not self.count:
            self.key, self.input_shapes = self.key or other.key, other.input_shapes
            self.stack, self.is_user_annotation = other.stack, other.is_user_annotation
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.device_memory_usage += other.device_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        self.flops += other.flops
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"count={self.count} input_shapes={self.input_shapes or ''}>"
        )


class EventList(list[Any]):
    """Events, or sums of events."""

    def __init__(self, events: Any = (), samples: Any = ()) -> None:
        super().__init__(events)
        self.samples = list(samples)  # of memory: (time, device, bytes in use)
        for i, event in enumerate(self):
            if isinstance(event, FunctionEvent):
                event.id = i + 1

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each moment counted once."""
        return float(sum([event.self_cpu_time_total for event in self]))

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Add events of one name up; of one name and shapes, or of one place in the code, if asked."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]),
            )
            found.setdefault(key, FunctionEventAvg(event.key)).add(event)
        for total in found.values():
            if not group_by_input_shapes:
                total.input_shapes = []
            total.stack = total.stack[:group_by_stack_n]
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """Add all events up."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a text table, one line an entry; `sort_by` is the name of an attribute such as "cpu_time_total"."""
        events = list(self)
        if sort_by is not None:
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        if top_level_events_only:
            events = [event for event in events if getattr(event, "cpu_parent", None) is None]
        whole = self.self_cpu_time_total
        columns = [("Name", max([min(len(e.key), max_name_column_width) for e in events], default=4))]
        columns += [(title, 12) for title in ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg")]
        memory = [
            (title, name)
            for title, name in _MEMORY
            if any(e.cpu_memory_usage if "cpu" in name else e.device_memory_usage for e in events)
        ]
        columns += [(title, 14) for title, _ in memory]
        columns.append(("# of Calls", 12))
        flops = any(e.flops for e in events)
        if flops:
            columns.append(("Total MFLOPs", 12))
        shapes = any(e.input_shapes for e in events)
        if shapes:
            columns.append(("Input Shapes", min(max([len(str(e.input_shapes)) for e in events]), max_shapes_column_width)))
        stacks = any(e.stack for e in events)
        if stacks:
            columns.append(("Source Location", max_src_column_width))
        line = "  ".join("-" * width for _, width in columns)
        out = [line, "  ".join(title.rjust(width) for title, width in columns), line]
        if header is not None:
            out = ["=" * len(line), header, *out]
        for event in events[: row_limit if row_limit >= 0 else None]:
            cells = [
                event.key, _share(event.self_cpu_time_total, whole), written(event.self_cpu_time_total, time_unit),
                _share(event.cpu_time_total, whole), written(event.cpu_time_total, time_unit),
                written(event.cpu_time, time_unit), *[in_bytes(getattr(event, name)) for _, name in memory], str(event.count),
            ]  # fmt: skip
            cells += [f"{event.flops / 1e6:.3f}" if event.flops else "--"] * flops
            cells += [str(event.input_shapes)] * shapes + [event.stack[0] if event.stack else ""] * stacks
            out.append("  ".join(_cut(cell, width) for cell, (_, width) in zip(cells, columns)))
        return "\n".join([*out, line, f"Self CPU time total: {written(whole, time_unit)}", ""])

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Write a trace for chrome://tracing or Perfetto; a name that ends in .gz is compressed."""
        text = json.dumps(trace(self, self.samples, metadata or {}))
        with gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w") as f:
            f.write(text)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their times, as flame graph tools read them."""
        with open(path, "w") as f:
            for event in self:
                if event.stack and int(getattr(event, metric)) > 0:
                    f.write(";".join(reversed([s.replace(" ", "_") for s in event.stack])) + f" {int(getattr(event, metric))}\n")

    def __str__(self) -> str:
        return self.table()


_MEMORY = (
    ("CPU Mem", "cpu_memory_usage"), ("Self CPU Mem", "self_cpu_memory_usage"),
    ("Device Mem", "device_memory_usage"), ("Self Device Mem", "self_device_memory_usage"),
)  # fmt: skip


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "0.00%"


def _cut(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - 3] + "...").rjust(width)


def written(us: float, unit: str | None = None) -> str:
    """Write microseconds with the unit that suits, or the one asked for."""
    unit = unit or ("s" if us >= 1e6 else "ms" if us >= 1e3 else "us")
    return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1}[unit]:.3f}{unit}"


def in_bytes(n: int) -> str:
    """Write a number of bytes with the unit that suits."""
    for size, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"
