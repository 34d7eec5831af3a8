"""`python -m tests.oracle.report`, run from core/: each op beside PyTorch, the first differences in full, the coverage.

python -m tests.oracle.report --ops add,mul --dtypes float32
python -m tests.oracle.report --ops 'fft.*' --checks gradients --show 10
python -m tests.oracle.report --level everyday --quiet
python -m tests.oracle.report --missing
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import sys
import textwrap
import time
from collections import Counter

from . import differences, samples
from .checks import CHECKS, check
from .compare import Failure
from .subject import Subject, dtype_name


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.report", description="mortice beside PyTorch")
    parser.add_argument("--ops", type=words, help="names or patterns, by commas; any op of PyTorch's table")
    parser.add_argument("--level", choices=("everyday", "wider"), help="the surface's ops of one level")
    parser.add_argument("--checks", type=words, default=list(CHECKS), help=f"of {','.join(CHECKS)}")
    parser.add_argument("--dtypes", type=words, help=f"of {','.join(map(dtype_name, samples.DTYPES))}")
    parser.add_argument("--show", type=int, default=3, help="how many differences of an op to print (3)")
    parser.add_argument("--quiet", action="store_true", help="print only ops with differences, a line each")
    parser.add_argument("--missing", action="store_true", help="list the names of the surface that are missing; stop")
    parser.add_argument("--subject", default="mortice", help="the module under comparison (mortice)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.checks if name not in CHECKS]:
        parser.error(f"--checks: expected some of {','.join(CHECKS)}; got {','.join(unknown)}")
    return options


def words(text: str) -> list[str]:
    """Split an option at its commas."""
    return text.split(",")


def selected(options: argparse.Namespace) -> list[str]:
    """Return the names of the ops that are asked for."""
    if options.ops:
        return [name for pattern in options.ops for name in fnmatch.filter(samples.table(), pattern)]
    return [name for name, (level, _) in samples.surface().items() if options.level in (None, level)]


def coverage(subject: Subject) -> None:
    """Print which names of the surface are missing, by level."""
    for level in ("everyday", "wider"):
        size = sum(level == there for there, _ in samples.surface().values())
        size += list(samples.names().values()).count(level)
        missing = samples.missing(subject, level)
        print(f"{level}: {size - len(missing)} of {size} names are there{'; missing:' if missing else ''}")
        print(textwrap.fill(" ".join(missing), 118, initial_indent="  ", subsequent_indent="  "))


def line(name: str, calls: int, found: list[Failure], took: float) -> str:
    """Return the line of one op."""
    if any(failure.detail.startswith("there is no op") for failure in found):
        return f"{name:44} missing"
    if not calls and not found:
        return f"{name:44} skipped: nothing could be compared"
    if not found:
        return f"{name:44} ok      {calls:6} calls {took:6.1f} s"
    kinds = Counter(f"{failure.check}:{failure.kind}" for failure in found)
    counts = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    return f"{name:44} DIFFERS {calls:6} calls {took:6.1f} s  {counts}"


def main(arguments: list[str] | None = None) -> int:
    """Compare what the command line asks for; return 1 if anything differs."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    subject = Subject(importlib.import_module(options.subject))
    if options.missing:
        coverage(subject)
        return 0
    entries = differences.load()
    totals: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    start = time.perf_counter()
    for name in selected(options):
        began = time.perf_counter()
        runs = [check(subject, name, kind, options.dtypes) for kind in options.checks]
        failures = [failure for run in runs for failure in run.failures]
        found = differences.unexpected(failures, entries)
        calls = sum(run.calls for run in runs)
        text = line(name, calls, found, time.perf_counter() - began)
        state = text.split()[1]
        totals += Counter({state: 1, "calls": calls, "meant": len(failures) - len(found), "differ": len(found)})
        for run in runs:
            skipped += run.skipped
        if not (options.quiet and state == "ok"):
            print(text, flush=True)
        for failure in [] if options.quiet or state == "missing" else found[: options.show]:
            print("  " + str(failure).replace("\n", "\n  "))
    print(f"\n{totals['ok']} ops ok, {totals['DIFFERS']} differ, {totals['missing']} missing", end=", ")
    print(f"{totals['skipped:']} skipped", end="; ")
    print(f"{totals['calls']} calls, {totals['differ']} differences, {totals['meant']} deliberate", end="; ")
    print(f"{time.perf_counter() - start:.0f} s")
    for reason, count in skipped.most_common():
        print(f"skipped {count} samples: {reason}")
    old = []
    if not (options.ops or options.level or options.dtypes) and options.checks == list(CHECKS):
        coverage(subject)
        old = [entry for entry in entries if not entry.seen and options.subject != "torch"]
        for entry in old:
            print(f"differences.toml: matches nothing any more, delete it: {','.join(entry.ops)}: {entry.reason}")
    return int(bool(totals["DIFFERS"] or totals["missing"] or old))


if __name__ == "__main__":
    sys.exit(main())
