"""Measuring how long statements take: PyTorch's torch.utils.benchmark, on `timeit`."""

from __future__ import annotations

import enum
import statistics
import textwrap
import time
import timeit
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import mortice

__all__ = ["Compare", "Language", "Measurement", "TaskSpec", "Timer"]

_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def _unit(seconds: float) -> tuple[float, str]:
    return next(((scale, u) for scale, u in zip((1.0, 1e-3, 1e-6), _UNITS) if seconds >= scale), (1e-9, "ns"))


class TaskSpec(NamedTuple):
    """What was measured, and under which names a table shows it."""

    stmt: str
    setup: str = "pass"
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Return the label, or the statement, and the second label."""
        second = self.sub_label or ""
        if self.label is None and "\n" in self.stmt:
            return f"stmt:{second and f' ({second})'}\n" + textwrap.indent(self.stmt, "  ")
        return (self.stmt if self.label is None else self.label) + (second and f": {second}")

    def summarize(self) -> str:
        """Return the title, the description and what is run first, each in lines of its own."""
        setup = "" if self.setup in ("", "pass") else f"setup: {self.setup}"
        if "\n" in setup:
            setup = "setup:\n" + textwrap.indent(self.setup, "  ")
        return "\n".join([f"{part}\n" if "\n" in part else part for part in (self.title, self.description, setup) if part])


class Measurement:
    """Times of several runs of one statement, in seconds; its statistics are of a single execution."""

    def __init__(self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec) -> None:
        self.number_per_run, self.raw_times, self.task_spec = number_per_run, raw_times, task_spec

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in (*TaskSpec._fields, "title"):
            raise AttributeError(f"'Measurement' object has no attribute {name!r}")
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """The seconds of one execution, for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The middle of the times."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self.times)

    def _quartiles(self) -> list[float]:
        return statistics.quantiles(self.times, n=4, method="inclusive") if len(self.times) > 1 else [self.median] * 3

    @property
    def iqr(self) -> float:
        """The distance between the quartiles of the times."""
        low, _, high = self._quartiles()
        return high - low

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Join those of the same statement and names."""
        joined: dict[TaskSpec, Measurement] = {}
        for m in measurements:
            found = joined.setdefault(m.task_spec, Measurement(1, [], m.task_spec))
            found.raw_times += m.times
        return list(joined.values())

    def __repr__(self) -> str:
        scale, unit = _unit(self.median)
        runs, threads = len(self.times), self.task_spec.num_threads
        shown = [self.task_spec.summarize(), f"  {'Median: ' if runs > 1 else ''}{self.median / scale:.2f} {unit}"]
        if runs > 3:
            low, _, high = self._quartiles()
            shown.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        shown.append(
            f"  {runs} measurement{'s' * (runs > 1)}, {self.number_per_run} runs {'per measurement' * (runs > 1)}, {threads} "
            f"thread{'s' * (threads > 1)}"
        )
        return "\n".join([object.__repr__(self), *shown])


class Language(enum.Enum):
    """What statements are written in: only Python is measured."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Run a statement again and again, with so many threads; `torch` and `mortice` are among its names."""

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = time.perf_counter,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1, language: Any = "python",
    ) -> None:  # fmt: skip
        if global_setup or str(language).lower() not in ("python", "py", "language.python"):
            raise ValueError("Timer: expected Python; statements in C++ are not compiled here.")
        stmt, setup = (textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        self._task_spec = TaskSpec(stmt, setup, label, sub_label, description, env, num_threads)
        names = {"torch": mortice, "mortice": mortice, **(globals or {})}

        def wait() -> float:
            if mortice.accelerator.is_available():
                mortice.accelerator.synchronize()
            return timer()

        self._timer = timeit.Timer(stmt, setup, wait, names)

    def _run(self, number: int) -> float:
        threads = mortice.get_num_threads()
        mortice.set_num_threads(self._task_spec.num_threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            mortice.set_num_threads(threads)

    def _number(self, min_run_time: float) -> int:
        self._run(2)  # what is loaded at first use does not count
        number, long_enough = 1, min(min_run_time, 1e-3)  # beside which reading the clock is nothing
        while self._run(number) < long_enough:
            number *= 10
        return number

    def timeit(self, number: int = 1000000) -> Measurement:
        """Execute the statement so many times, once more to warm up."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], self._task_spec)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Measure blocks of equal length until they have taken `min_run_time` seconds together."""
        number, times = self._number(min_run_time), list[float]()
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Any = None
    ) -> Measurement:
        """Measure blocks until the quartiles lie within `threshold` of the median, or `max_run_time` is over."""
        number, times = self._number(min_run_time), list[float]()
        while not times or sum(times) < max_run_time:
            times.append(self._run(number))
            found = Measurement(number, times, self._task_spec)
            if sum(times) >= min_run_time and len(times) > 3 and found.iqr <= threshold * found.median:
                break
        return Measurement(number, times, self._task_spec)


class Compare:
    """A table of measurements: a block for each label, a row for each sub-label, a column for each description."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Do nothing: times are shown with one digit after the point."""

    colorize = highlight_warnings = trim_significant_figures

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        scale, unit = _unit(min(m.median for m in results))
        lines = []
        for label in dict.fromkeys(m.task_spec.label for m in results):
            block = [m for m in results if m.task_spec.label == label]
            columns = list(dict.fromkeys(m.task_spec.description or "" for m in block))
            keys = dict.fromkeys((m.task_spec.num_threads, m.task_spec.sub_label or m.task_spec.stmt) for m in block)
            cells = {(m.task_spec.num_threads, m.task_spec.sub_label or m.task_spec.stmt, m.task_spec.description or ""):
                     f"{m.median / scale:.1f}" for m in block}  # fmt: skip
            wide = max(len(name) for _, name in keys) + 2
            widths = [max(len(c), *(len(cells.get((*k, c), "")) for k in keys)) for c in columns]
            head = " " * wide + "".join(f"  |  {c:^{w}}" for c, w in zip(columns, widths))
            lines += ["[" + f" {label or ''} ".center(len(head), "-") + "]", head]
            threads = None
            for n, name in keys:
                if n != threads:
                    lines.append(f"{n} threads: ".ljust(len(head) + 2, "-"))
                    threads = n
                row = "".join(f"  |  {cells.get((n, name, c), ''):>{w}}" for c, w in zip(columns, widths))
                lines.append(f"  {name:<{wide - 2}}{row}")
            lines.append(f"\nTimes are in {_UNITS[unit]} ({unit}).\n")
        return "\n".join(lines)
