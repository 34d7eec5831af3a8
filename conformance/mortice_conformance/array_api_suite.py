"""The public test suite of the array API standard (data-apis/array-api-tests), run on `mortice.array_api`.

`mortice-conformance array-api --suite PATH --backend NAME` runs it from a checkout with its `array-api` submodule in
place. Nothing is skipped or expected to fail: lists of either in the checkout are not read. This module is also the
pytest plugin of that run, which chooses the device.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import mortice
from mortice.backends.plugins import load
from mortice.errors import BackendNotFound, DeviceError

VERSION = "2025.12"
_NEEDS = {"hypothesis": "hypothesis", "ndindex": "ndindex", "pytest_jsonreport": "pytest-json-report"}
_DEVICE = "MORTICE_CONFORMANCE_DEVICE"
# The standard's dtypes; a device may lack some, which the suite is told.
_DTYPES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float32 float64 complex64 complex128").split()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Choose the device of new arrays, before the suite looks at the namespace."""
    if device := os.environ.get(_DEVICE):
        mortice.set_default_device(device)


def add_to(commands: Any) -> None:
    """Add the `array-api` command to the command line."""
    parser = commands.add_parser("array-api", help="run the public test suite of the array API standard on a backend")
    parser.add_argument("--suite", required=True, metavar="PATH", help="a checkout of data-apis/array-api-tests")
    parser.add_argument("--backend", required=True, help="the backend's name, as `python -m mortice backends` lists it")
    parser.add_argument("--device", help="one of the backend's devices; its first one by default")
    parser.add_argument("--max-examples", type=int, default=100, metavar="N", help="examples drawn for each test")
    parser.add_argument("--seed", type=int, help="draw the same examples again")
    parser.add_argument("--json", metavar="FILE", help="write what was run and the counts")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="after `--`, more arguments for pytest, such as `-n 4`")
    parser.set_defaults(call=run)


def run(arguments: Any) -> int:
    """Run the suite in a process of its own; returns 0 when everything passed."""
    suite = Path(arguments.suite).expanduser().resolve()
    try:
        device, lacking = _place(arguments.backend, arguments.device)
        _check(suite)
    except (BackendNotFound, DeviceError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    environment = {
        "MORTICE_BACKEND": arguments.backend, _DEVICE: device, "ARRAY_API_TESTS_MODULE": "mortice.array_api",
        "ARRAY_API_TESTS_VERSION": VERSION, "ARRAY_API_TESTS_SKIP_DTYPES": ",".join(lacking),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [
            sys.executable, "-m", "pytest", "-p", "mortice_conformance.array_api_suite", "-p", "no:cacheprovider", "-q", "-rs",
            f"--max-examples={arguments.max_examples}",
            "--disable-deadline",  # how long an example takes is the machine's affair
            f"--skips-file={os.devnull}", f"--xfails-file={os.devnull}", f"--junitxml={report}",
            *([] if arguments.seed is None else [f"--hypothesis-seed={arguments.seed}"]),
            *[a for a in arguments.rest if a != "--"],
            *([] if _names_tests(arguments.rest) else ["array_api_tests"]),
        ]  # fmt: skip
        shown = " ".join([f"{k}={shlex.quote(v)}" for k, v in environment.items() if v])
        print(f"{shown} {shlex.join(command[1:])}", flush=True)
        code = subprocess.run(command, cwd=suite, env={**os.environ, **environment}, check=False).returncode
        found = _counts(report) if report.exists() else {}
    found = {"spec": VERSION, "suite": _commit(suite), "backend": arguments.backend, "device": device,
             "max_examples": arguments.max_examples, **found}  # fmt: skip
    if arguments.json:
        Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return code


def _place(backend: str, device: str | None) -> tuple[str, list[str]]:
    """Return the device to run on, and which of the standard's dtypes it lacks."""
    kernels = load(backend)
    names = kernels.device_names()
    if device is None and names:
        device = names[0]
    if device not in names:
        raise DeviceError(f"array-api: expected a device among {', '.join(names) or 'none'}; got {device}.")
    have = {d.name for d in kernels.dtypes(kernels.device(device))}
    return device, [name for name in _DTYPES if name not in have]


def _check(suite: Path) -> None:
    """Refuse what is no checkout of the suite, and an environment without what it imports."""
    if not (suite / "array_api_tests").is_dir():
        raise ValueError(
            f"array-api: expected a checkout of data-apis/array-api-tests; got {suite}. "
            "Clone https://github.com/data-apis/array-api-tests and pass its path."
        )
    if not (suite / "array-api" / "spec" / VERSION).is_dir():
        raise ValueError(
            f"array-api: the submodule array-api in {suite} has no specification {VERSION}. "
            "Run `git submodule update --init` there."
        )
    missing = [package for module, package in _NEEDS.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise ValueError(f"array-api: the suite needs {', '.join(missing)}. Run `pip install {' '.join(missing)}`.")


def _names_tests(rest: list[str]) -> bool:
    return any([a.startswith("array_api_tests") for a in rest])


def _counts(report: Path) -> dict[str, Any]:
    """Return how many tests passed, failed and were skipped, and which ones failed."""
    failed, skipped, total = [], 0, 0
    for case in ElementTree.parse(report).iter("testcase"):
        total += 1
        skipped += case.find("skipped") is not None
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
    return {"passed": total - skipped - len(failed), "failed": len(failed), "skipped": skipped, "failures": failed}


def _commit(suite: Path) -> str:
    """Return the checkout's commit, empty where it is none."""
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=suite, capture_output=True, text=True, check=False)
    except OSError:  # no git
        return ""
    return asked.stdout.strip()
