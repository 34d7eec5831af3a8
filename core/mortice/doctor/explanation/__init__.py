"""`explain`: what a block of a program makes a backend do, and where in the program the costs come from."""

from __future__ import annotations

import json
import threading
from typing import Any

from mortice import tracing
from mortice.doctor.explanation.collector import Collector
from mortice.doctor.explanation.layout import written
from mortice.doctor.explanation.rows import FIELDS, memory, section, totals
from mortice.tracing.memory import Meter
from mortice.version import release

__all__ = ["Report", "explain"]


class Report:
    """What ran in an `explain` block. Each list has one dict a row, the dearest first; all of it is in `to_dict()`.

    Attributes:
        ops: the ops, and for backward the gradient nodes: name, phase, count, bytes, shapes.
        kernels: which ran, whose body each had ("own", or "default" where the backend has none), and what those called.
        transfers: values that went to the host, to a device, or between devices, with the line that asked.
        copies: copies that were asked for, or made so that a layout fits, for a write, inside another kernel.
        casts: changes of dtype, asked for or by promotion.
        fallbacks: default bodies that took several kernels to do what a backend may do in one.
        memory: per device the bytes that results took, what was in use, and the peak.
    """

    def __init__(self, collector: Collector, times: bool) -> None:
        self._collector, self.times = collector, times

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return section(self._collector, name)
        if name == "memory":
            return memory(self._collector)
        if name == "totals":
            return totals(self._collector)
        raise AttributeError(f"'Report' object has no attribute {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts, lists, strings and numbers; `schema` says how to read it."""
        names = ("totals", *FIELDS, "memory")
        return {
            "schema": 1,
            "mortice": release,
            "times": self.times,
            **{name: getattr(self, name) for name in names},
        }

    def json(self, indent: int | None = None) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def table(self, *, rows: int = 12, width: int | None = None) -> str:
        """Return it as text: at most so many rows a section, as wide as the terminal unless `width` is given."""
        return written(self.to_dict(), rows, width)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        t = self.totals
        return f"<mortice.explain: {t['ops']} ops, {t['kernels']} kernels, {t['to_host']} reads by the host>"


class explain:
    """Tell what a block makes the backends do: ops, kernels, transfers, copies, casts, fallbacks and memory.

    Args:
        times: also measure kernels; devices that work on their own are waited for after each.
        all_threads: count what other threads run as well; by default only what the thread of the block runs, backward
            included. Worker processes are not seen.

    Blocks nest, each with a report of its own, and a profiler may run at the same time. Peaks of backends that count
    memory start anew with the block, as after `reset_peak_memory_stats`.

    Example:
        >>> with mortice.explain() as report:
        ...     loss = model(x).sum()
        ...     loss.backward()
        >>> print(report)
    """

    def __init__(self, *, times: bool = False, all_threads: bool = False) -> None:
        self._times, self._all_threads = times, all_threads
        self._open: list[Collector] = []

    def __enter__(self) -> Report:
        collector = Collector(None if self._all_threads else threading.get_ident(), Meter(peaks=True), self._times)
        self._open.append(collector)
        collector.meter.begin()
        tracing.watch(collector)
        return Report(collector, self._times)

    def __exit__(self, *exc: Any) -> None:
        collector = self._open.pop()
        tracing.unwatch(collector)
        collector.meter.end()
