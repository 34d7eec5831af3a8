"""The driver: `python -m benchmarks [GROUP ...]` prints a table and writes JSON under out/benchmarks/."""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import harness

GROUPS = ("overhead", "elementwise", "reductions", "training")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP", help=f"any of: {' '.join(GROUPS)} import (default all)"
    )
    parser.add_argument(
        "--threads", choices=["1", "default", "both"], default="1", help="threads of the kernels"
    )
    parser.add_argument("--backend", help="mortice's backend (default: the one it chooses)")
    parser.add_argument(
        "--without", action="append", default=[], choices=["torch", "jax"], help="leave one out"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds (default 15)")
    parser.add_argument("--quick", action="store_true", help="5 short rounds: to see that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default out/benchmarks/threads-N.json")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    options = parser.parse_args(arguments)
    if unknown := set(options.groups) - {*GROUPS, "import"}:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are: {' '.join(GROUPS)} import")
    if options.rounds < 2:
        parser.error(f"--rounds: expected 2 or more; got {options.rounds}")
    if options.threads == "both" and options.json:
        parser.error("--json takes one file; with --threads both each run writes its default file")
    options.groups = options.groups or [*GROUPS, "import"]
    return options


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; the exit status tells whether every case of mortice ran."""
    options = parse(arguments)
    if options.threads == "both":
        # The number of threads is read when the libraries are loaded, so each setting needs its own process.
        command = [sys.executable, "-m", "benchmarks", *arguments]
        return max(
            subprocess.run([*command, "--threads", threads]).returncode for threads in ("1", "default")
        )
    if options.threads == "1":
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))

    cases = [case for group in options.groups if group != "import" for case in _cases(group)]
    cases = [case for case in cases if options.only in case.name]
    if options.list:
        print(*(f"{case.group}: {case.name}" for case in cases), sep="\n")
        return 0
    rounds, min_time = (5, 0.002) if options.quick else (options.rounds, 0.02)
    rows: list[harness.Row] = []
    versions: dict[str, str] = {}
    if cases:
        rows, versions = _compare(cases, options, rounds, min_time)
    if "import" in options.groups and not options.only:
        rows += _imports(options, rounds)

    target = options.json or Path("out/benchmarks") / f"threads-{options.threads}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(_report(options, versions, rounds, rows), indent=1) + "\n")
    print(f"\nwritten: {target}")
    failed = [row.name for row in rows if any("mortice" in problem for problem in row.problems)]
    if failed:
        print(f"{len(failed)} with a problem: {'; '.join(failed)}")
    return 1 if failed else 0


def _cases(group: str) -> list[harness.Case]:
    cases: list[harness.Case] = importlib.import_module(f"benchmarks.{group}").CASES
    return cases


def _compare(
    cases: list[harness.Case], options: argparse.Namespace, rounds: int, min_time: float
) -> tuple[list[harness.Row], dict[str, str]]:
    libraries = _libraries(options)
    names = [library.name for library in libraries]
    rows: list[harness.Row] = []
    group = ""
    for case in cases:
        if case.group != group:
            print(_closing(rows, group, names), end="")
            group = case.group
            print(f"\n{group}: threads {options.threads}, {rounds} rounds, median (quartiles)")
            print(harness.header(names))
        rows.append(harness.measure(case, libraries, rounds=rounds, min_time=min_time))
        print(harness.line(rows[-1], names, names[1:]), flush=True)
    print(_closing(rows, group, names), end="")
    return rows, {library.name: _version(library) for library in libraries}


def _closing(rows: list[harness.Row], group: str, names: list[str]) -> str:
    text = harness.summary([row for row in rows if row.group == group], names)
    return f"{group}: {text}\n" if text else ""


def _libraries(options: argparse.Namespace) -> list[harness.Library]:
    import mortice

    if options.backend:
        mortice.set_backend(options.backend)
    libraries = [harness.Library("mortice", mortice)]
    for name, module in (("torch", "torch"), ("jax", "jax.numpy")):
        if name in options.without:
            continue
        try:
            libraries.append(harness.Library(name, importlib.import_module(module)))
        except ImportError as error:
            print(f"SKIPPED {name}: not installed here ({error}); its columns are missing")
            continue
        if name == "torch" and options.threads == "1":
            libraries[-1].module.set_num_threads(1)
    return libraries


def _imports(options: argparse.Namespace, rounds: int) -> list[harness.Row]:
    from benchmarks.importtime import measure_imports

    without = set(options.without)
    if "torch" not in without and importlib.util.find_spec("torch") is None:
        print("SKIPPED import torch: not installed here")
        without.add("torch")
    rows = measure_imports(rounds=rounds, without=without)
    print(f"\nimport in a fresh interpreter, less the bare interpreter: {rounds} rounds, median (quartiles)")
    print(f"{'':40}{'time':>12}{'to numpy':>26}")
    for row in rows:
        print(harness.line(row, ["import"], ["numpy"]))
    return rows


def _version(library: harness.Library) -> str:
    try:
        return importlib.metadata.version(library.name)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(library.module, "__version__", "unknown"))


def _report(
    options: argparse.Namespace, versions: dict[str, str], rounds: int, rows: list[harness.Row]
) -> dict[str, Any]:
    try:
        numpy = importlib.metadata.version("numpy")
    except importlib.metadata.PackageNotFoundError:
        numpy = "not installed"
    return {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "threads": options.threads,
        "backend": options.backend or "default",
        "rounds": rounds,
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "versions": {**versions, "numpy": numpy},
        "rows": [row.as_json() for row in rows],
    }


def _commit() -> str:
    try:
        command = ["git", "describe", "--always", "--dirty"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
