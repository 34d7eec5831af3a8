"""`mortice-conformance scorecards FOLDER`: the scorecards of all backends that are installed, and an index of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from mortice.backends.plugins import broken, entries, load
from mortice.errors import BackendNotFound
from mortice_conformance import scorecard
from mortice_conformance.catalog import LEVELS
from mortice_conformance.measure import measure
from mortice_conformance.page import day, save_html, shell, verdict
from mortice_conformance.runner import KNOWN, PASSED, SKIPPED
from mortice_conformance.subject import Subject

_COMMAND = "mortice-conformance scorecards"


def write(folder: Path, names: Sequence[str] = (), expected: Sequence[str] = ()) -> int:
    """Measure backends and write their scorecards and the index; return 0 when nothing failed.

    A backend that is asked for, or expected, and is not there is said aloud; its old scorecard, if there is one, stays
    in the index with its own date.
    """
    folder.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in dict.fromkeys([*(names or sorted(entries())), *expected]):
        try:
            load(name)
        except BackendNotFound as error:
            print(f"NOT INSTALLED {name}: {error}", flush=True)
            status = max(status, 1 if name in names else 0)
            continue
        status = max(status, _measure(folder, name))
    for entry in broken():
        print(f"BROKEN {entry.name}: {entry.problem}", flush=True)
    index(folder)
    return status


def _measure(folder: Path, name: str) -> int:
    """Write the scorecard of one backend as JSON, as a page and as a badge."""
    card, strangers = measure(Subject(name), quiet=True)
    # What the environment of this one run was called is nobody else's business.
    card["environment"] = {}
    scorecard.save_json(card, folder / f"{name}.json")
    save_html(card, folder / f"{name}.html")
    (folder / f"{name}.svg").write_text(scorecard.badge(card), encoding="utf-8")
    level = f"L{card['reached']}" if card["reached"] >= 0 else "no level"
    print(
        f"{name}: {level}, {scorecard.total(card, PASSED):,} passed, {scorecard.failed(card):,} failed, {card['seconds']} s",
        flush=True,
    )
    for id in strangers:
        print(f"{name}: known_failures.toml: no check is called {id!r}. Remove the entry.", file=sys.stderr)
    return 1 if strangers or scorecard.failed(card) else 0


def index(folder: Path) -> None:
    """Write README.md and index.html for the scorecards in a folder."""
    cards = [scorecard.load_json(path) for path in sorted(folder.glob("*.json"))]
    cards.sort(key=lambda c: (-c["reached"], c["backend"]))
    (folder / "README.md").write_text(_markdown(cards), encoding="utf-8")
    (folder / "index.html").write_text(_html(cards), encoding="utf-8")


def _versions(card: dict[str, Any]) -> str:
    """Return what was measured: the plugin, and the libraries that compute."""
    own = " ".join(filter(None, (card["distribution"], card["version"]))) or card["backend"]
    return ", ".join([own, *(f"{name} {v}" for name, v in {"numpy": card["numpy"], **card["libraries"]}.items() if v)])


def _failing(card: dict[str, Any]) -> str:
    """Return how many checks failed at which levels."""
    found = {n: row["failed"] + row["unexpectedly passed"] for n, row in card["levels"].items()}
    return ", ".join(f"{count:,} at L{n}" for n, count in found.items() if count) or "none"


def _markdown(cards: list[dict[str, Any]]) -> str:
    lines = [
        "# Scorecards",
        "",
        "What the conformance kit found, backend by backend. The levels are explained in",
        "[conformance.md](../conformance.md); each page can be opened as it is, and two JSON files can be compared with",
        f"`mortice-conformance diff`. This folder is written by `{_COMMAND} docs/scorecards`.",
        "",
        "| backend | level | passed | failed | known | skipped | measured | versions |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in cards:
        name = c["backend"]
        counts = f"{scorecard.total(c, PASSED):,} | {_failing(c)} | {scorecard.total(c, KNOWN):,} | {scorecard.total(c, SKIPPED):,}"
        files = f"[page]({name}.html), [JSON]({name}.json)"
        lines.append(f"| {name}: {files} | ![{_level(c)}]({name}.svg) | {counts} | {c['date'][:10]} | {_versions(c)} |")
    first = next(iter(cards), None)
    if first is not None:
        lines += [
            "",
            f"Python {first['python']}, {first['system']}, mortice {first['mortice']}, kit {first['conformance']}.",
        ]
    return "\n".join(lines) + "\n"


def _level(card: dict[str, Any]) -> str:
    return f"L{card['reached']}" if card["reached"] >= 0 else "no level"


def _html(cards: list[dict[str, Any]]) -> str:
    head = "".join(f'<th scope="col" title="{name}">L{n}</th>' for n, name in LEVELS.items())
    body = ""
    for c in cards:
        name = escape(c["backend"])
        tone = {"good": "pass", "middling": "known", "bad": "fail"}[verdict(c)]
        body += (
            f'<tr><td><a href="{name}.html"><b>{name}</b></a><br><small>{escape(_versions(c))}</small></td>'
            f'<td><span class="tag {tone}">{_level(c)}</span></td>{"".join(_cell(c, n) for n in LEVELS)}'
            f'<td class="right">{scorecard.total(c, PASSED):,}</td><td class="right">{scorecard.failed(c):,}</td>'
            f'<td class="right">{day(c)}<br><a href="{name}.json">JSON</a> <a href="{name}.svg">badge</a></td></tr>'
        )
    text = (
        '<header><div><div class="over">mortice conformance</div><h1>Scorecards</h1>'
        f"<p>{len(cards)} backends, each measured by the same kit.</p></div></header>"
        '<div class="panel scroll"><table class="list gallery"><thead><tr><th scope="col">backend</th><th scope="col">reached</th>'
        f'{head}<th scope="col" class="right">passed</th><th scope="col" class="right">failed</th>'
        f'<th scope="col" class="right">measured</th></tr></thead><tbody>{body}</tbody></table></div>'
        '<div class="key"><span><span class="tag pass">✓</span> nothing failed</span>'
        '<span><span class="tag known">!</span> with known failures</span><span><span class="tag fail">✕</span> failed</span></div>'
        f"<p class=key>{' · '.join(f'L{n} {name}' for n, name in LEVELS.items())}</p>"
        f"<footer>Written by <code>{_COMMAND} FOLDER</code>.</footer>"
    )
    return shell("Scorecards · mortice conformance", text)


def _cell(card: dict[str, Any], level: int) -> str:
    row = card["levels"].get(str(level))
    if row is None:
        return "<td>–</td>"
    bad = row["failed"] + row["unexpectedly passed"]
    tone, mark = ("fail", f"✕ {bad:,}") if bad else ("known", f"! {row[KNOWN]:,}") if row[KNOWN] else ("pass", "✓")
    return f'<td><span class="tag {tone}">{mark}</span></td>'
