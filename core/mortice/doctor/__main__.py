"""The command line: `python -m mortice.doctor train.py` checks programs without running them; `run` runs one under the doctor."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from mortice.doctor import static
from mortice.doctor.finding import LEVELS, Finding
from mortice.doctor.static.sources import files
from mortice.version import release

_ABOUT = "Find the classic mistakes of training in programs for mortice and PyTorch, without running them."
_COMMANDS = """other commands:
  python -m mortice.doctor run [--report FILE] PROGRAM [ARGUMENT ...]   run a program under the doctor
  python -m mortice.doctor explain ID [ID ...]                          what a rule is about
  python -m mortice.doctor rules                                        list all rules

exit status: 0 without errors and warnings, 1 with some, 2 where a file is no Python or the command line is wrong"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    command = {"run": _run, "explain": _explain, "rules": _rules}.get(argv[0]) if argv else None
    return _check(argv) if command is None else command(argv[1:])


def _check(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m mortice.doctor", description=_ABOUT, epilog=_COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "path", nargs="+", help="a script, a notebook, or a folder of them; - reads a script from stdin"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--select", action="append", metavar="IDS", help='only these rules: "D23,D39"; patterns such as "D0*" work'
    )
    parser.add_argument("--ignore", action="append", metavar="IDS", help="not these rules")
    parser.add_argument("--style", action="store_true", help="also report matters of taste")
    parser.add_argument("--exit-zero", action="store_true", help="exit with status 0 whatever is found")
    arguments = parser.parse_args(argv)
    select, ignore = _ids(arguments.select), _ids(arguments.ignore) or []
    ids = {r.id for r in static.rules()}
    for pattern in (*(select or ()), *ignore):
        if not fnmatch.filter(ids, pattern) and pattern not in ignore:
            parser.error(f"no rule about the text of programs is called {pattern}; there are {', '.join(sorted(ids))}")
    for path in arguments.path:
        if path != "-" and not os.path.exists(path):
            parser.error(f"no such file or folder: {path}")
    found: list[Finding] = []
    count = 0
    options: dict[str, Any] = {"select": select, "ignore": ignore, "style": arguments.style}
    for path in files(arguments.path):
        count += 1
        found += (
            static.check_source(sys.stdin.read(), "<stdin>", **options)
            if path == "-"
            else static.check(path, **options)
        )
    print(_json(found, count) if arguments.json else _text(found, count))
    if arguments.exit_zero:
        return 0
    return 2 if any(f.rule == static.UNREADABLE for f in found) else int(any(f.level != "info" for f in found))


def _ids(given: list[str] | None) -> list[str] | None:
    """Return the ids in `--select D23,D39 --select D04`."""
    return None if given is None else [i.strip() for each in given for i in each.split(",") if i.strip()]


def line(f: Finding) -> str:
    """Return a finding as editors read it: "train.py:12:5: warning D39 ..."; of a notebook, "it.ipynb:cell 3:2:1: ..."."""
    cell = f"cell {f.values['cell']}:" if "cell" in f.values else ""
    said = f"{f.message} {f.remedy}".rstrip()
    return f"{f.site.file}:{cell}{f.site.line}:{f.values['column']}: {f.level} {f.rule} {said}"


def _text(found: list[Finding], count: int) -> str:
    of = f"in {count} file{'s' if count != 1 else ''}"
    return "\n".join([*map(line, found), f"{summary(found)} {of}"])


def summary(found: list[Finding]) -> str:
    """Count findings by level: "1 error, 2 warnings"."""
    counts = [(sum(f.level == level for f in found), level) for level in LEVELS]
    return (
        ", ".join(f"{n} {level}{'s' if n > 1 and level != 'info' else ''}" for n, level in counts if n) or "no findings"
    )


def _json(found: list[Finding], count: int) -> str:
    return json.dumps(
        {
            "mortice": release,
            "files": count,
            "rules": [r.id for r in static.rules()],
            "findings": [f.as_dict() for f in found],
        },
        indent=2,
    )


def _run(argv: list[str]) -> int:
    """Run a program in an interpreter of its own, as MORTICE_DOCTOR in the environment would."""
    parser = argparse.ArgumentParser(prog="python -m mortice.doctor run", description="Run a program under the doctor.")
    parser.add_argument(
        "--report", metavar="FILE", default="1", help="write the report to a file: .html, .json or .txt"
    )
    parser.add_argument("program", help="the script, or -m and a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what it is given")
    split = next((i for i, a in enumerate(argv) if a == "-m"), None)
    if split is not None and all(
        a.startswith("--report") or argv[i - 1] == "--report" for i, a in enumerate(argv[:split])
    ):
        arguments = parser.parse_args([*argv[:split], "-"])
        program = argv[split:]
    else:
        arguments = parser.parse_args(argv)
        program = [arguments.program, *arguments.arguments]
    environment = {**os.environ, "MORTICE_DOCTOR": arguments.report}
    try:
        return subprocess.run([sys.executable, *program], env=environment).returncode
    except KeyboardInterrupt:  # the program has got it as well, and said so
        return 130


def _described() -> dict[str, dict[str, Any]]:
    """Return what is known of every rule; of one that watches and also reads, what it says of itself while it watches."""
    from mortice.doctor.known import rules

    found: dict[str, dict[str, Any]] = {}
    every: tuple[Any, ...] = (*rules(), *static.rules())
    for rule in every:
        known = found.setdefault(
            rule.id, {"level": rule.level, "title": rule.title, "why": rule.why, "remedy": rule.remedy, "finds": []}
        )
        known["finds"].append("while it runs" if not issubclass(rule, static.StaticRule) else "in its text")
        known["style"] = rule.style
    return dict(sorted(found.items()))


def _explain(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m mortice.doctor explain", description="Say what a rule is about.")
    parser.add_argument("id", nargs="+", help='the id of a rule, such as "D03"')
    described = _described()
    ids = parser.parse_args(argv).id
    unknown = [i for i in ids if i.upper() not in described]
    if unknown:
        parser.error(f"no rule is called {', '.join(unknown)}; `python -m mortice.doctor rules` lists them")
    texts = []
    for known in map(str.upper, ids):
        d = described[known]
        texts.append(
            f"{known} {d['title']}\n\n    level    {d['level']}{', a matter of taste: off unless asked for' if d['style'] else ''}\n"
            f"    found    {_finds(d['finds'])}\n    why      {d['why']}\n    remedy   {d['remedy']}\n"
            f"    silence  # doctor: ignore[{known}] in the line, or mortice.doctor.ignore({known!r})"
        )
    print("\n\n".join(texts))
    return 0


def _finds(how: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(how))


def _rules(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m mortice.doctor rules", description="List all rules.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args(argv)
    described = _described()
    if arguments.json:
        print(json.dumps([{"id": i, **d} for i, d in described.items()], indent=2))
    else:
        for known, d in described.items():
            print(f"{known}  {d['level']:<8} {d['title']} (found {_finds(d['finds'])})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
