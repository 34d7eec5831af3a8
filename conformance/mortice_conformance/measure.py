"""Running the whole kit on a backend, with a line that counts, into a scorecard."""

from __future__ import annotations

import sys
import time
from typing import Any

from mortice_conformance import parallel, scorecard
from mortice_conformance.catalog import LEVELS, catalog
from mortice_conformance.runner import Result, known_failures, run, unknown_ids
from mortice_conformance.subject import Subject


def measure(
    subject: Subject, level: int = max(LEVELS), only: str = "", *, quiet: bool, jobs: int = 1, within: float | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Run the kit; return the scorecard, and the ids of declared failures that no check has."""
    everything = catalog(subject)
    known = known_failures(subject.backend)
    items = [i for i in everything if i.level <= level and only in i.id]
    start = time.perf_counter()
    progress = _Progress(len(items), quiet=quiet or not sys.stderr.isatty())
    if jobs == 1 and within is None:
        results = run(items, subject, known, progress)
    else:
        results = parallel.run(items, subject.name, known, progress, jobs=jobs, within=within)
    progress.end()
    return scorecard.make(subject, results, level, time.perf_counter() - start), unknown_ids(known, everything)


class _Progress:
    """A line that counts, on a terminal."""

    def __init__(self, total: int, quiet: bool) -> None:
        self.total, self.quiet, self.done, self.failed, self.shown = total, quiet, 0, 0, 0.0

    def __call__(self, result: Result) -> None:
        self.done += 1
        self.failed += result.bad
        now = time.monotonic()
        if not self.quiet and now - self.shown > 0.1:
            self.shown = now
            print(
                f"\r{self.done}/{self.total}, {self.failed} failed  {result.id[:70]:<70}",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def end(self) -> None:
        """Clear the line."""
        if not self.quiet:
            print(f"\r{'':<110}\r", end="", file=sys.stderr)
