"""The scorecard as one static HTML page: nothing fetched, and all but the search works without a script."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any

from mortice.backends import DTYPES
from mortice_conformance.catalog import LEVELS
from mortice_conformance.runner import FAILED, KNOWN, PASSED, SKIPPED, UNEXPECTED
from mortice_conformance.scorecard import failed, grouped, total

SHORT = {PASSED: "pass", FAILED: "fail", SKIPPED: "skip", KNOWN: "known", UNEXPECTED: "fail"}
_RANK = {"fail": 3, "known": 2, "pass": 1, "skip": 0}
_MEANING = {
    0: "values come back as they went in; copies, views, pickles, devices",
    1: "each kernel that a backend must have, by itself",
    2: "every operation against a float64 reference, in every dtype and layout",
    3: "first and second gradients, by finite differences",
    4: "the random streams, bit for bit",
    5: "small models reach known losses by the known curve",
    6: "misuse, threads, freed memory, long graphs",
}
_SHOWN, _SLOWEST = 60, 12


def save_html(card: dict[str, Any], path: str | Path) -> None:
    """Write the page."""
    Path(path).write_text(render(card), encoding="utf-8")


def render(card: dict[str, Any]) -> str:
    """Return the page."""
    reached, bad = card["reached"], (FAILED, UNEXPECTED)
    parts = {
        "backend": escape(card["backend"]),
        "verdict": f"L{reached}" if reached >= 0 else "—",
        "verdict_of": f"of L{card['asked']}",
        "verdict_class": verdict(card),
        "meaning": meaning(card),
        "facts": _facts(card),
        "unwritten": _unwritten(card),
        "levels": _levels(card),
        "failures": _listing(card, "Failures", "what a run fails by", bad),
        "known": _listing(card, "Known failures", "declared by the plugin, with reasons", (KNOWN,)),
        "skipped": _skipped(card),
        "matrix": _matrix(card),
        "ops": str(len({t["op"] for t in card["tests"] if t["op"]})),
        "seconds": f"{card['seconds']:.1f}",
        "slowest": _slowest(card),
        "level_options": "".join(f'<option value="{n}">L{n} {LEVELS[int(n)]}</option>' for n in card["levels"]),
        "rows": _data(card),
        "date": escape(day(card)),
    }
    return shell(f"{card['backend']} · mortice conformance", filled("page.html", parts))


def shell(title: str, body: str) -> str:
    """Return a whole page around a body, with the style that all pages have."""
    return filled("shell.html", {"title": escape(title), "style": _read("page.css"), "body": body})


def filled(file: str, parts: dict[str, str]) -> str:
    """Return a template with its {{parts}} put in, each once: what is put in is not looked into."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read(file))


def _read(file: str) -> str:
    return (importlib.resources.files("mortice_conformance") / file).read_text(encoding="utf-8")


def verdict(card: dict[str, Any]) -> str:
    """Return how the level reached is coloured."""
    return "good" if card["reached"] == max(LEVELS) else "middling" if card["reached"] >= 2 else "bad"


def day(card: dict[str, Any]) -> str:
    """Return when it was measured, for people."""
    return card["date"][:16].replace("T", " ") + " UTC"  # type: ignore[no-any-return]


def meaning(card: dict[str, Any]) -> str:
    """Say in a sentence what was found."""
    count = failed(card)
    known = f", {total(card, KNOWN):,} are known to fail" if total(card, KNOWN) else ""
    if not count:
        return f"{total(card, PASSED):,} checks up to level {card['asked']} passed, none failed{known}."
    found = f"{total(card, PASSED):,} checks passed, {count:,} failed{known}"
    if card["reached"] < 0:
        return f"{found}, some of them at level 0."
    return f"Complete up to {LEVELS[card['reached']]}. {found}."


def _facts(card: dict[str, Any]) -> str:
    devices = (f"{name} ({len(dtypes)} dtypes)" for name, dtypes in card["devices"].items())
    facts = [
        ("measured", day(card)),
        ("version", " ".join(filter(None, (card["distribution"], card["version"]))) or "—"),
        ("mortice, kit", f"{card['mortice']}, {card['conformance']}"),
        ("Python", card["python"]),
        ("NumPy", card["numpy"]),
        *card["libraries"].items(),
        ("system", card["system"]),
        ("devices", ", ".join(devices)),
        ("in place", "writes memory" if card["mutable"] else "rebinds"),
        ("free kernels of its own", str(len(card["overridden"]))),
        *card["environment"].items(),
    ]
    return "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(str(v))}</dd></div>" for k, v in facts)


def _unwritten(card: dict[str, Any]) -> str:
    if not card["unwritten"]:
        return ""
    names = " ".join(f"<code>{escape(n)}</code>" for n in card["unwritten"])
    return f"<h2>Not written yet <small>{len(card['unwritten'])} required kernels</small></h2><p>{names}</p>"


def _levels(card: dict[str, Any]) -> str:
    """Return the rungs of the ladder, highest first."""
    seconds: dict[int, float] = defaultdict(float)
    for t in card["tests"]:
        seconds[t["level"]] += t["seconds"]
    out = []
    for number, row in reversed(card["levels"].items()):
        level, count = int(number), sum(row.values())
        bad = row[FAILED] + row[UNEXPECTED]
        state = "climbed" if level <= card["reached"] else "broken" if bad else "above"
        if level == card["reached"]:
            state += " top"
        counts = {"pass": row[PASSED], "fail": bad, "known": row[KNOWN], "skip": row[SKIPPED]}
        words = {"pass": "passed", "fail": "failed", "known": "known", "skip": "skipped"}
        bar = "".join(f'<i class="{c}" style="flex-grow:{n}"></i>' for c, n in counts.items() if n)
        tags = "".join(f'<span class="tag {c}">{n:,} {words[c]}</span>' for c, n in counts.items() if n)
        said = "<span class=hidden>reached: </span>" if level <= card["reached"] else ""
        out.append(
            f'<li class="{state}" value="{level}"><span class="rung" aria-hidden="true">L{level}</span><div class="step">'
            f"<span><b>{said}{LEVELS[level]}</b><small>{_MEANING[level]}</small></span>"
            f'<div class="bar" aria-hidden="true">{bar}</div>'
            f'<span class="tags">{tags if count else "nothing here"}</span><time>{seconds[level]:.1f} s</time></div></li>'
        )
    return "".join(out)


def _listing(card: dict[str, Any], title: str, note: str, outcomes: tuple[str, ...]) -> str:
    """Return the checks of some outcomes with their messages, links made."""
    found = [t for t in card["tests"] if t["outcome"] in outcomes]
    if not found:
        return ""
    body = "".join(
        f"<tr><td><code>{escape(t['id'])}</code><pre>{linked(t['message'])}</pre></td>"
        f'<td class="right">L{t["level"]}</td><td class="right">{1000 * t["seconds"]:.0f} ms</td></tr>'
        for t in found[:_SHOWN]
    )
    more = (
        f"<tr><td colspan=3>and {len(found) - _SHOWN:,} more: the JSON has them</td></tr>"
        if len(found) > _SHOWN
        else ""
    )
    return (
        f"<h2>{title} <small>{len(found):,}; {note}</small></h2>"
        f'<div class="panel"><table class="list"><tbody>{body}{more}</tbody></table></div>'
    )


def linked(text: str) -> str:
    """Return a message as HTML, its addresses as links."""
    return re.sub(r"https?://[^\s<>&\"']+[^\s<>&\"'.,;)]", lambda m: f'<a href="{m[0]}">{m[0]}</a>', escape(text))


def _skipped(card: dict[str, Any]) -> str:
    """Return the skipped checks, a line for each reason."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for t in card["tests"]:
        if t["outcome"] == SKIPPED:
            reasons[t["message"]].append(t["id"])
    if not reasons:
        return ""
    body = "".join(
        f"<details><summary>{escape(why)} <small>{len(ids):,}</small></summary><p><code>{escape(' '.join(ids))}</code></p></details>"
        for why, ids in sorted(reasons.items(), key=lambda r: -len(r[1]))
    )
    count = sum(map(len, reasons.values()))
    return f"<h2>Skipped <small>{count:,} that do not apply here, by reason</small></h2><div class='panel'>{body}</div>"


def _matrix(card: dict[str, Any]) -> str:
    """Return a table of ops by dtype, and by kind of check."""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    names = {d.name for d in DTYPES}
    checks: set[str] = set()
    for t in card["tests"]:
        if not t["op"]:
            continue
        key = t["id"].partition("[")[2].removesuffix(f"-{card['backend']}]")
        dtype = key.rpartition("-")[2]
        column = dtype if t["check"] == "values" and dtype in names else t["check"].replace("_", " ")
        checks.add(column)
        state = SHORT[t["outcome"]]
        if _RANK[state] >= _RANK.get(cells[t["op"]].get(column, "skip"), 0):
            cells[t["op"]][column] = state
    if not cells:
        return "<p>No operations were checked.</p>"
    columns = [d.name for d in DTYPES if d.name in checks]
    others = sorted(checks - names)
    columns += others
    # Quotes and end tags are left out where HTML allows it: there are thousands of cells.
    head = "".join(
        f"<th scope=col{' class=gap' if others and c == others[0] else ''}><span>{escape(c)}</span></th>"
        for c in columns
    )
    body = "".join(
        f"<tr><th scope=row>{escape(op)}" + "".join(f"<td class={row[c][0]}>" if c in row else "<td>" for c in columns)
        for op, row in sorted(cells.items())
    )
    corner = "<th scope=col><span class=hidden>operation</span></th>"
    return f"<table class='grid'><thead><tr>{corner}{head}</tr></thead><tbody>{body}</tbody></table>"


def _slowest(card: dict[str, Any]) -> str:
    found = sorted(card["tests"], key=lambda t: -t["seconds"])[:_SLOWEST]
    return "".join(
        f'<tr><td><code>{escape(t["id"])}</code></td><td class="right">L{t["level"]}</td>'
        f'<td class="right">{1000 * t["seconds"]:,.0f}</td></tr>'
        for t in found
    )


def _data(card: dict[str, Any]) -> str:
    """Return the ids as JSON for the page's own search, with what they share written once."""
    rows = []
    for group in grouped(card):
        heads: dict[str, list[str]] = defaultdict(list)
        for key in group["ms"]:
            head, _, rest = key.partition("-")
            heads[head].append(rest)
        packed = {head: "|".join(rest) for head, rest in heads.items()}
        rows.append([group["check"], group["level"], SHORT[group["outcome"]], packed])
    # "</" would end the script element.
    return json.dumps(rows, separators=(",", ":")).replace("</", "<\\/")
