"""The difference of two scorecards as one static HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from mortice_conformance.catalog import LEVELS
from mortice_conformance.page import SHORT, day, linked, shell
from mortice_conformance.runner import FAILED, KNOWN, PASSED, SKIPPED, UNEXPECTED
from mortice_conformance.scorecard import changes, surroundings, worse

_SHOWN = 300


def save_html(old: dict[str, Any], new: dict[str, Any], path: str | Path) -> None:
    """Write the page."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(render(old, new), encoding="utf-8")


def render(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the page: what became worse and better, level by level and check by check."""
    groups = changes(old, new)
    bad, any_change = worse(groups), any(groups.values())
    mark, text = ("bad", "worse") if bad else ("good", "no change" if not any_change else "no worse")
    counts = (
        ", ".join(f"{len(found):,} {name}" for name, found in groups.items() if found) or "Every check ended as before."
    )
    names = old["backend"] if old["backend"] == new["backend"] else f"{old['backend']} → {new['backend']}"
    body = (
        f'<header><div class="seal {mark}">{_level(new)}<small>{text}</small></div>'
        f'<div><div class="over">mortice conformance, compared</div><h1>{escape(names)}</h1><p>{escape(counts)}</p></div></header>'
        f"{_cards(old, new)}{_levels(old, new)}{''.join(_group(n, g) for n, g in groups.items() if g)}"
        "<footer>Made with <code>mortice-conformance diff OLD.json NEW.json --html FILE</code>.</footer>"
    )
    return shell(f"{names} · mortice conformance, compared", body)


def _level(card: dict[str, Any]) -> str:
    return f"L{card['reached']}" if card["reached"] >= 0 else "—"


def _cards(old: dict[str, Any], new: dict[str, Any]) -> str:
    rows = [
        ("measured", day(old), day(new)),
        ("version", old["version"] or "—", new["version"] or "—"),
        ("level", _level(old), _level(new)),
        ("seconds", old["seconds"], new["seconds"]),
        *surroundings(old, new),
    ]
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(_said(was))}</td><td>{escape(_said(now))}</td></tr>"
        for name, was, now in rows
    )
    head = "<tr><th></th><th scope='col'>old</th><th scope='col'>new</th></tr>"
    return f"<div class='panel'><table class='list'><thead>{head}</thead><tbody>{body}</tbody></table></div>"


def _said(value: Any) -> str:
    """Return a value as people read it: libraries with versions, devices with their number of dtypes."""
    if isinstance(value, dict):
        return ", ".join(f"{k} {v if isinstance(v, str) else f'({len(v)} dtypes)'}" for k, v in value.items()) or "—"
    return str(value)


def _levels(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return a table of levels: counts before and after, and the time of each."""
    words = {"passed": (PASSED,), "failed": (FAILED, UNEXPECTED), "known": (KNOWN,), "skipped": (SKIPPED,)}
    body = ""
    for number in sorted({*old["levels"], *new["levels"]}, key=int, reverse=True):
        cells = ""
        for outcomes in words.values():
            was, now = (sum(c["levels"].get(number, {}).get(o, 0) for o in outcomes) for c in (old, new))
            step = f" <small>({now - was:+,})</small>" if was != now else ""
            cells += f'<td class="right">{now:,}{step}</td>'
        was, now = (sum(t["seconds"] for t in c["tests"] if str(t["level"]) == number) for c in (old, new))
        cells += f'<td class="right">{was:.1f} → {now:.1f} s</td>'
        body += f"<tr><th scope='row'>L{number} {LEVELS[int(number)]}</th>{cells}</tr>"
    head = "".join(f'<th scope="col" class="right">{w}</th>' for w in (*words, "time"))
    return (
        f"<h2>Levels</h2><div class='panel scroll'><table class='list'><thead><tr><th></th>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _group(name: str, found: list[dict[str, str]]) -> str:
    def tag(outcome: str) -> str:
        return f'<span class="tag {SHORT[outcome]}">{outcome}</span>' if outcome else "—"

    body = "".join(
        f"<tr><td><code>{escape(t['id'])}</code>{_told(t['message'])}</td>"
        f'<td class="right">{tag(t["was"])} → {tag(t["now"])}</td></tr>'
        for t in found[:_SHOWN]
    )
    more = f"<tr><td colspan=2>and {len(found) - _SHOWN:,} more</td></tr>" if len(found) > _SHOWN else ""
    return (
        f"<h2>{name.capitalize()} <small>{len(found):,}</small></h2>"
        f"<div class='panel'><table class='list'><tbody>{body}{more}</tbody></table></div>"
    )


def _told(message: str) -> str:
    return f"<pre>{linked(message)}</pre>" if message else ""
