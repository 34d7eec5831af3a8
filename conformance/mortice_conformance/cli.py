"""The command line: `mortice-conformance run`, `new`, `scorecards`, `diff`, `planted` and `array-api`; `--help` says more."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from mortice.errors import BackendNotFound
from mortice_conformance import array_api_suite, scorecard
from mortice_conformance.catalog import LEVELS
from mortice_conformance.measure import measure
from mortice_conformance.subject import Subject


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 0 when everything passed."""
    parser = argparse.ArgumentParser(prog="mortice-conformance", description="Prove a backend of mortice.")
    commands = parser.add_subparsers(dest="command", required=True)
    for add in (_add_run, _add_new, _add_scorecards, _add_diff, _add_planted, array_api_suite.add_to):
        add(commands)
    try:
        try:
            arguments = parser.parse_args(argv)
            return int(arguments.call(arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough, as `head` has; nor can what is left be written when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _add_run(commands: Any) -> None:
    one = commands.add_parser("run", help="run the kit on a backend and print its scorecard")
    one.add_argument("backend", help="the backend's name, as `python -m mortice backends` lists it")
    levels = "; ".join(f"L{n} {name}" for n, name in LEVELS.items())
    one.add_argument("--level", default="6", help=f"the highest level to run, such as L2: {levels}")
    one.add_argument("--only", default="", metavar="TEXT", help="run the checks whose id contains TEXT")
    one.add_argument("--json", metavar="FILE", help="write the scorecard")
    one.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
    one.add_argument("--html", metavar="FILE", help="write the scorecard as one page")
    one.add_argument("--badge", metavar="FILE", help="write an SVG badge")
    one.add_argument("--jobs", type=int, default=1, metavar="N", help="processes; with more than one, a crash loses one check")
    one.add_argument("--within", type=float, metavar="SECONDS", help="stop then; what has not run counts as failed")
    one.add_argument("--quiet", action="store_true", help="show no progress")
    one.set_defaults(call=_run)


def _add_new(commands: Any) -> None:
    one = commands.add_parser("new", help="write the package of a new backend: hook, kernels, tests, CI, README")
    one.add_argument("name", help="the backend's name, such as my_device; the folder has it too")
    one.add_argument("--directory", default=".", metavar="D", help="where the folder is made; here by default")
    one.add_argument("--over", metavar="NAMESPACE", help="take the kernels of an array-API namespace, such as torch")
    one.add_argument("--device", metavar="TYPE", help="the device type: its own name by default, cpu with --over")
    one.add_argument(
        "--kernels", default="plain", choices=("plain", "todo"),
        help="plain: a complete backend in plain Python, to be replaced kernel by kernel; todo: methods that say what each must do",
    )  # fmt: skip
    one.add_argument(
        "--license", default="MIT", metavar="SPDX", help="MIT, Apache-2.0, BSD-3-Clause or LicenseRef-Proprietary"
    )
    one.set_defaults(call=_new)


def _add_scorecards(commands: Any) -> None:
    one = commands.add_parser("scorecards", help="write the scorecards of backends into a folder, with an index")
    one.add_argument("folder", help="where <backend>.json, .html and .svg, README.md and index.html are written")
    one.add_argument("backends", nargs="*", help="which backends; all that are installed by default")
    one.add_argument(
        "--expect", action="append", default=[], metavar="NAME", help="say so when this one is not installed"
    )
    one.set_defaults(call=_scorecards)


def _add_diff(commands: Any) -> None:
    one = commands.add_parser("diff", help="compare two scorecards; fails when something that passed now fails")
    one.add_argument("old")
    one.add_argument("new")
    one.add_argument("--html", metavar="FILE", help="write the difference as one page")
    one.set_defaults(call=_diff)


def _add_planted(commands: Any) -> None:
    one = commands.add_parser("planted", help="plant bugs in a backend and report the share that the kit catches")
    one.add_argument("--json", metavar="FILE")
    one.add_argument("--markdown", metavar="FILE")
    one.set_defaults(call=_planted)


def _run(arguments: Any) -> int:
    try:
        level = int(arguments.level.upper().removeprefix("L"))
        if level not in LEVELS:
            raise ValueError
    except ValueError:
        print(f"run: expected a level from L0 to L{max(LEVELS)}; got {arguments.level!r}.", file=sys.stderr)
        return 2
    try:
        subject = Subject(arguments.backend)
    except BackendNotFound as error:
        print(error, file=sys.stderr)
        return 2
    if subject.backend.unwritten:
        # All else is made of the required kernels: it would fail by thousands and tell nothing.
        level = min(level, 1)
    card, strangers = measure(
        subject, level, arguments.only, quiet=arguments.quiet, jobs=arguments.jobs, within=arguments.within
    )
    if not card["tests"]:
        print(f"run: expected part of a check's id, such as pow-float32, after --only; up to L{level} no id contains "
              f"{arguments.only!r}.", file=sys.stderr)  # fmt: skip
        return 2
    _write(arguments, card)
    print(scorecard.terminal(card, scorecard.wants_colour()))
    if arguments.only:
        print(f"Only the checks whose id contains {arguments.only!r} have run.")
    for id in strangers:
        print(f"known_failures.toml: no check is called {id!r}. Remove the entry.")
    return 1 if strangers or scorecard.failed(card) else 0


def _write(arguments: Any, card: dict[str, Any]) -> None:
    from mortice_conformance.page import save_html

    writers = {"json": scorecard.save_json, "junit": scorecard.save_junit, "html": save_html}
    for name, write in writers.items():
        if path := getattr(arguments, name):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write(card, path)
    if arguments.badge:
        Path(arguments.badge).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.badge).write_text(scorecard.badge(card), encoding="utf-8")


def _new(arguments: Any) -> int:
    from mortice_conformance import new

    try:
        folder = new.create(
            arguments.name, arguments.directory, over=arguments.over, device=arguments.device,
            kernels=arguments.kernels, license=arguments.license,
        )  # fmt: skip
    except (new.NewError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(new.next_steps(folder, arguments.over, arguments.kernels))
    return 0


def _scorecards(arguments: Any) -> int:
    from mortice_conformance.gallery import write

    return write(Path(arguments.folder), arguments.backends, arguments.expect)


def _diff(arguments: Any) -> int:
    try:
        old, new = scorecard.load_json(arguments.old), scorecard.load_json(arguments.new)
    except (OSError, ValueError) as error:
        print(f"diff: {error}", file=sys.stderr)
        return 2
    if arguments.html:
        from mortice_conformance.page_diff import save_html

        save_html(old, new, arguments.html)
    text, worse = scorecard.diff(old, new)
    print(text)
    return 1 if worse else 0


def _planted(arguments: Any) -> int:
    from mortice_conformance.planted import report

    card, text = report()
    if arguments.json:
        import json

        Path(arguments.json).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    if arguments.markdown:
        Path(arguments.markdown).write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if card["share"] >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
