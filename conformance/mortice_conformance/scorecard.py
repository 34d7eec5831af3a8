"""The scorecard: results of a run as JSON, in the terminal, as JUnit XML and as a badge, and the difference of two."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from mortice.backends import REQUIRED
from mortice_conformance.catalog import LEVELS
from mortice_conformance.runner import FAILED, KNOWN, NOTE, PASSED, SKIPPED, UNEXPECTED, WAITS, Result
from mortice_conformance.subject import Subject

FORMAT = 2
_MARKS = {PASSED: "pass", FAILED: "FAIL", SKIPPED: "skip", KNOWN: "known", UNEXPECTED: "UNEXPECTED PASS"}
_DTYPE = re.compile(r"-(bool|u?int\d+|b?float\d+|complex\d+)$")  # at the end of an id


def installed(distribution: str) -> str:
    """Return the version of a distribution, or "" when it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def libraries(distribution: str) -> dict[str, str]:
    """Return the versions of what a distribution requires and is installed; mortice has its own line."""
    try:
        needs = [re.split(r"[^\w.-]", need)[0] for need in requires(distribution) or () if "extra ==" not in need]
    except (PackageNotFoundError, ValueError):
        return {}
    return {
        name: installed(name) for name in sorted(set(needs)) if name not in ("mortice", "numpy") and installed(name)
    }


def environment(subject: Subject) -> dict[str, Any]:
    """Return what a result depends on: versions, devices, dtypes, MORTICE_* variables."""
    from mortice.backends.plugins import entries

    entry = entries().get(subject.name)
    k = subject.backend
    return {
        "backend": subject.name,
        "distribution": entry.distribution if entry else "",
        "version": entry.version if entry else "",
        "mortice": installed("mortice"),
        "conformance": installed("mortice-conformance"),
        "python": platform.python_version(),
        "numpy": installed("numpy"),
        "libraries": libraries(entry.distribution) if entry else {},
        "system": f"{platform.system()} {platform.machine()}",
        "devices": {str(d): sorted(t.name for t in k.dtypes(k.device(d))) for d in subject.devices},
        "mutable": bool(k.mutable),
        "overridden": list(k.overridden),
        "unwritten": list(k.unwritten),
        "environment": {n: v for n, v in sorted(os.environ.items()) if n.startswith("MORTICE_")},
    }


def make(subject: Subject, results: list[Result], level: int, seconds: float) -> dict[str, Any]:
    """Return a run as a scorecard."""
    counts: dict[str, dict[str, int]] = {
        str(n): dict.fromkeys((PASSED, FAILED, SKIPPED, KNOWN, UNEXPECTED), 0) for n in range(level + 1)
    }
    for r in results:
        counts[str(r.level)][r.outcome] += 1
    return {
        "format": FORMAT,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 2),
        **environment(subject),
        "asked": level,
        "reached": reached(results, level),
        "levels": counts,
        "tests": [r.as_dict() for r in results],
    }


def reached(results: list[Result], level: int) -> int:
    """Return the highest level up to which every check that ran has passed; -1 for none."""
    failing = [r.level for r in results if r.bad]
    return min(failing, default=level + 1) - 1


def total(card: dict[str, Any], outcome: str) -> int:
    """Count the checks with that outcome."""
    return sum(row[outcome] for row in card["levels"].values())


def failed(card: dict[str, Any]) -> int:
    """Count the checks by which the run fails."""
    return total(card, FAILED) + total(card, UNEXPECTED)


# ---- terminal ----


def terminal(card: dict[str, Any], colour: bool = False, limit: int = 20) -> str:
    """Return the scorecard as text: a line per level, then what failed."""
    paint = (lambda code, s: f"\033[{code}m{s}\033[0m") if colour else (lambda code, s: s)
    devices = "; ".join(f"{name} ({len(dtypes)} dtypes)" for name, dtypes in card["devices"].items())
    lines = [
        paint("1", f"mortice conformance: {card['backend']} {card['version']}".rstrip()),
        f"mortice {card['mortice']}, kit {card['conformance']}, Python {card['python']}, NumPy {card['numpy']}, {card['system']}",
        f"devices: {devices}",
        "",
    ]
    for number, row in card["levels"].items():
        count = sum(row.values())
        bad = row[FAILED] + row[UNEXPECTED]
        good = count - row[SKIPPED] - bad - row[KNOWN]
        mark = paint("31", "FAIL") if bad else paint("32", "pass") if count else "  - "
        extra = [f"{row[o]} {o}" for o in (FAILED, UNEXPECTED, KNOWN, SKIPPED) if row[o]]
        filled = round(20 * (good + row[KNOWN] + row[SKIPPED]) / count) if count else 0
        bar = "#" * filled + "." * (20 - filled)
        lines.append(
            f"  L{number} {LEVELS[int(number)]:<24} {mark}  [{bar}] {good:>5} passed  {', '.join(extra)}".rstrip()
        )
    bad_tests = [t for t in card["tests"] if t["outcome"] in (FAILED, UNEXPECTED)]
    if card["unwritten"]:
        waiting = sum(t["message"].startswith(WAITS) for t in bad_tests)
        lines += ["", paint("1", f"{len(card['unwritten'])} required kernels are not written yet"),
                  f"{waiting:,} checks failed for no other reason; levels above L1 are left out until then. By family:"]  # fmt: skip
        for family, names in REQUIRED.items():
            if missing := [n for n in names.split() if n in card["unwritten"]]:
                lines.append(f"  {family}: {' '.join(missing)}")
        bad_tests = [t for t in bad_tests if not t["message"].startswith(WAITS)]
    if bad_tests:
        lines += ["", paint("1", f"{len(bad_tests)} failed")]
        # One fault fails an op in many dtypes and checks: the first of each is shown, so that the others are seen as well.
        kinds: dict[str, list[dict[str, Any]]] = {}
        for t in bad_tests:
            what = t["op"] or _DTYPE.sub("", t["id"].removesuffix(f"-{card['backend']}]"))
            kinds.setdefault(what, []).append(t)
        for t, *rest in list(kinds.values())[:limit]:
            lines.append(f"  {paint('31', _MARKS[t['outcome']])} {t['id']}" + (f" and {len(rest)} like it" if rest else ""))
            lines += [f"       {line}" for line in _told(t["message"])]
        if len(kinds) > limit:
            left = sum(map(len, list(kinds.values())[limit:]))
            lines.append(f"  ... and {left} more; --json or --html lists them.")
    verdict = f"L{card['reached']}" if card["reached"] >= 0 else "no level"
    lines += ["", f"reached {paint('1', verdict)}: {total(card, PASSED)} passed, {failed(card)} failed, "
              f"{total(card, KNOWN)} known, {total(card, SKIPPED)} skipped in {card['seconds']} s"]  # fmt: skip
    return "\n".join(lines)


def _told(message: str) -> list[str]:
    """Return the first line of a message, where an error was raised, and what is due."""
    frames = re.findall(r'^  File "(.*)", line (\d+), in (.*)\n    (.*)', message, re.MULTILINE)
    where = ["at {}:{}, in {}: {}".format(*frames[-1])] if frames else []
    first, *others = message.splitlines() or [""]
    return [first, *where, *(line for line in others if line.startswith(NOTE))]


# ---- files ----


def save_json(card: dict[str, Any], path: str | Path) -> None:
    """Write the scorecard: checks of one kind, level and outcome are one line, each with its milliseconds."""
    head = json.dumps({k: v for k, v in card.items() if k != "tests"}, indent=1)
    lines = ",\n".join(f"  {json.dumps(group, separators=(',', ':'))}" for group in grouped(card))
    Path(path).write_text(f'{head[:-2]},\n "tests": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def grouped(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tests as a file has them, in a tenth of the room."""
    groups: dict[Any, dict[str, Any]] = {}
    for t in card["tests"]:
        names = {"check": t["check"], "level": t["level"], "ops": bool(t["op"]), "outcome": t["outcome"]}
        group = groups.setdefault(tuple(names.values()), {**names, "ms": {}, "messages": {}})
        key = t["id"].removeprefix(f"test_{t['check']}[").removesuffix(f"-{card['backend']}]")
        group["ms"][key] = round(t["seconds"] * 1000)
        if t["message"]:
            # Many checks fail or are skipped for one reason, which is written once.
            group["messages"].setdefault(t["message"], []).append(key)
    return [{k: v for k, v in group.items() if k != "messages" or v} for group in groups.values()]


def load_json(path: str | Path) -> dict[str, Any]:
    """Read a scorecard."""
    card = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise ValueError(f"{path}: expected a scorecard of format {FORMAT}. Make it anew with this kit.")
    card["tests"] = [t for group in card["tests"] for t in _opened(group, card["backend"])]
    return card


def _opened(group: dict[str, Any], backend: str) -> list[dict[str, Any]]:
    """Return the tests of a group."""
    check, told = group["check"], {key: text for text, keys in group.get("messages", {}).items() for key in keys}
    return [
        {
            "id": f"test_{check}[{key}-{backend}]", "check": check, "op": op_of(key) if group["ops"] else "",
            "level": group["level"], "outcome": group["outcome"], "seconds": ms / 1000, "message": told.get(key, ""),
        }
        for key, ms in group["ms"].items()
    ]  # fmt: skip


def op_of(key: str) -> str:
    """Return the op in the key of a sample's check, such as pow:integers-int64."""
    return key.partition("-")[0].partition(":")[0]


_CONTROL = dict.fromkeys(i for i in range(32) if i not in (9, 10, 13))


def save_junit(card: dict[str, Any], path: str | Path) -> None:
    """Write the results as JUnit XML, a test suite per level."""
    text = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>"]
    for number, row in card["levels"].items():
        tests = [t for t in card["tests"] if str(t["level"]) == number]
        seconds = sum(t["seconds"] for t in tests)
        text.append(
            f'<testsuite name="L{number} {LEVELS[int(number)]}" tests="{len(tests)}" '
            f'failures="{row[FAILED] + row[UNEXPECTED]}" skipped="{row[SKIPPED] + row[KNOWN]}" time="{seconds:.3f}">'
        )
        for t in tests:
            message = t["message"].translate(_CONTROL)
            case = (
                f'<testcase classname="{card["backend"]}.L{number}" name={quoteattr(t["id"])} time="{t["seconds"]:.4f}"'
            )
            if t["outcome"] in (FAILED, UNEXPECTED):
                first = message.splitlines()[0] if message else ""
                text.append(f"{case}><failure message={quoteattr(first)}>{escape(message)}</failure></testcase>")
            elif t["outcome"] in (SKIPPED, KNOWN):
                text.append(f"{case}><skipped message={quoteattr(message)}/></testcase>")
            else:
                text.append(f"{case}/>")
        text.append("</testsuite>")
    text.append("</testsuites>")
    Path(path).write_text("\n".join(text) + "\n", encoding="utf-8")


def badge(card: dict[str, Any]) -> str:
    """Return a small SVG: the level reached and the number of checks passed."""
    level = f"L{card['reached']}" if card["reached"] >= 0 else "below L0"
    right = f"{level} of L{card['asked']} · {total(card, PASSED):,} passed"
    left = f"mortice · {card['backend']}"
    colour = "#2f855a" if card["reached"] == card["asked"] else "#b7791f" if card["reached"] >= 2 else "#c53030"
    a, b = 8 + round(6.6 * len(left)) + 8, 8 + round(6.6 * len(right)) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{a + b}" height="22" role="img" aria-label="{escape(left)}: '
        f'{escape(right)}"><clipPath id="r"><rect width="{a + b}" height="22" rx="4"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{a}" height="22" fill="#2d3748"/><rect x="{a}" width="{b}" height="22" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{a / 2}" y="15" textLength="{a - 16}">{escape(left)}</text>'
        f'<text x="{a + b / 2}" y="15" textLength="{b - 16}">{escape(right)}</text></g></svg>\n'
    )


# ---- the difference of two ----


def changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Return the checks whose outcome differs between two scorecards, by what became of them."""
    before = {_without_backend(t["id"], old["backend"]): t for t in old["tests"]}
    after = {_without_backend(t["id"], new["backend"]): t for t in new["tests"]}
    bad = (FAILED, UNEXPECTED)
    groups: dict[str, list[dict[str, str]]] = {
        "newly failing": [], "newly passing": [], "new": [], "otherwise changed": [], "gone": [],
    }  # fmt: skip
    for id in [*after, *(i for i in before if i not in after)]:
        was, now = (side.get(id, {}).get("outcome", "") for side in (before, after))
        if was == now:
            continue
        fails = now in bad and was not in bad
        name = "gone" if not now else "new" if not was else "newly failing" if fails else "otherwise changed"
        if was in bad and now and now not in bad:
            name = "newly passing"
        groups[name].append({"id": id, "was": was, "now": now, "message": after.get(id, {}).get("message", "")})
    return groups


def surroundings(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return what differs between two scorecards beside the checks: name, before, after."""
    keys = ("mortice", "conformance", "python", "numpy", "libraries", "system", "devices")
    return [(key, old[key], new[key]) for key in keys if old[key] != new[key]]


def diff(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, bool]:
    """Return what changed from one scorecard to another, and whether something that passed now fails."""
    groups = changes(old, new)
    lines = [
        f"{side}: {c['backend']} {c['version']}, {c['date']}: L{c['reached']}, {total(c, PASSED)} passed in {c['seconds']} s"
        for side, c in (("old", old), ("new", new))
    ]
    lines += [f"{key}: {was} -> {now}" for key, was, now in surroundings(old, new)]
    for name, found in groups.items():
        if found:
            lines += ["", f"{name}: {len(found)}"]
        for t in found:
            lines.append(f"    {t['id']} ({' -> '.join(filter(None, (t['was'], t['now'])))})")
            if t["message"]:
                lines.append(f"        {t['message'].splitlines()[0]}")
    if not any(groups.values()):
        lines += ["", "no difference"]
    return "\n".join(lines), worse(groups)


def worse(groups: dict[str, list[dict[str, str]]]) -> bool:
    """Tell whether changes are for the worse: a check fails that passed, or that was not there."""
    return bool(groups["newly failing"]) or any(t["now"] in (FAILED, UNEXPECTED) for t in groups["new"])


def _without_backend(id: str, backend: str) -> str:
    return id.removesuffix(f"-{backend}]") + "]" if id.endswith(f"-{backend}]") else id


def wants_colour() -> bool:
    """Tell whether the terminal takes colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
