"""The scorecard as one static HTML page: no script from elsewhere, nothing fetched."""

from __future__ import annotations

import importlib.resources
import json
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any

from mortice.backends import DTYPES
from mortice_conformance.catalog import LEVELS
from mortice_conformance.runner import FAILED, KNOWN, PASSED, SKIPPED, UNEXPECTED
from mortice_conformance.scorecard import total

_SHORT = {PASSED: "pass", FAILED: "fail", SKIPPED: "skip", KNOWN: "known", UNEXPECTED: "fail"}
_RANK = {"fail": 3, "known": 2, "pass": 1, "skip": 0}


def save_html(card: dict[str, Any], path: str | Path) -> None:
    """Write the page."""
    Path(path).write_text(render(card), encoding="utf-8")


def render(card: dict[str, Any]) -> str:
    """Return the page."""
    template = (importlib.resources.files("mortice_conformance") / "page.html").read_text(encoding="utf-8")
    reached = card["reached"]
    parts = {
        "title": escape(f"{card['backend']} · mortice conformance"),
        "backend": escape(card["backend"]),
        "verdict": f"L{reached}" if reached >= 0 else "—",
        "verdict_class": "good" if reached == card["asked"] else "middling" if reached >= 2 else "bad",
        "meaning": _meaning(card),
        "facts": _facts(card),
        "levels": _levels(card),
        "matrix": _matrix(card),
        "rows": _data(card),
        "date": escape(card["date"]),
    }
    for name, value in parts.items():
        template = template.replace("{{" + name + "}}", value)
    return template


def _meaning(card: dict[str, Any]) -> str:
    failed = total(card, FAILED) + total(card, UNEXPECTED)
    if not failed:
        return f"Every one of {total(card, PASSED):,} checks up to level {card['asked']} passed."
    if card["reached"] < 0:
        return f"{failed:,} checks failed, some at level 0."
    return f"Complete up to {LEVELS[card['reached']]}; {failed:,} checks failed above."


def _facts(card: dict[str, Any]) -> str:
    facts = [
        ("version", card["version"] or "—"),
        ("mortice", card["mortice"]),
        ("kit", card["conformance"]),
        ("Python", card["python"]),
        ("NumPy", card["numpy"]),
        ("system", card["system"]),
        ("devices", ", ".join(card["devices"])),
        ("in place", "writes memory" if card["mutable"] else "rebinds"),
        ("free kernels of its own", str(len(card["overridden"]))),
        ("time", f"{card['seconds']:.1f} s"),
    ]
    facts += list(card["environment"].items())
    return "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(str(v))}</dd></div>" for k, v in facts)


def _levels(card: dict[str, Any]) -> str:
    out = []
    for number, row in card["levels"].items():
        count = sum(row.values())
        failed = row[FAILED] + row[UNEXPECTED]
        state = "fail" if failed else "pass" if count else "skip"
        widths = [(_SHORT[o], row[o]) for o in (PASSED, KNOWN, SKIPPED, FAILED, UNEXPECTED) if row[o]]
        bar = "".join(f'<i class="{c}" style="flex-grow:{n}" title="{n} {c}"></i>' for c, n in widths)
        detail = (
            ", ".join(f"{row[o]:,} {o}" for o in (PASSED, FAILED, UNEXPECTED, KNOWN, SKIPPED) if row[o])
            or "nothing here"
        )
        out.append(
            f'<button class="level {state}" data-level="{number}"><b>L{number}</b><span>{LEVELS[int(number)]}</span>'
            f'<div class="bar">{bar}</div><small>{detail}</small></button>'
        )
    return "".join(out)


def _matrix(card: dict[str, Any]) -> str:
    """Return a table of ops by dtype, and by kind of check."""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    checks: set[str] = set()
    for t in card["tests"]:
        if not t["op"]:
            continue
        parts = t["id"].partition("[")[2].rstrip("]").split("-")
        dtype = parts[1] if t["check"] == "values" and len(parts) > 2 else ""
        column = dtype or t["check"].replace("_", " ")
        if not dtype:
            checks.add(column)
        state = _SHORT[t["outcome"]]
        if _RANK[state] >= _RANK.get(cells[t["op"]].get(column, "skip"), 0):
            cells[t["op"]][column] = state
    columns = [d.name for d in DTYPES] + sorted(checks)
    if not cells:
        return "<p>No ops were checked.</p>"
    head = "".join(f"<th><span>{escape(c)}</span></th>" for c in columns)
    body = "".join(
        f"<tr><th>{escape(op)}</th>"
        + "".join(
            f'<td class="{row.get(c, "none")}" title="{escape(op)} · {escape(c)}: {row.get(c, "not applicable")}"></td>'
            for c in columns
        )
        + "</tr>"
        for op, row in sorted(cells.items())
    )
    return f"<table class='matrix'><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"


def _data(card: dict[str, Any]) -> str:
    """Return the tests as JSON for the page's own filter."""
    rows = [
        [t["id"], t["level"], _SHORT[t["outcome"]], round(t["seconds"] * 1000, 1), t["message"]] for t in card["tests"]
    ]
    # "</" would end the script element.
    return json.dumps(rows, separators=(",", ":")).replace("</", "<\\/")
