"""The text of a report: a table a section, its columns aligned and cut to the width at hand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from mortice.autograd.profiler_report import in_bytes
from mortice.autograd.profiler_report import written as in_time


class Column(NamedTuple):
    """A column: its title, what it shows of a row, and whether it gives way where there is little room."""

    title: str
    cell: Callable[[dict[str, Any]], str]
    number: bool = False
    gives_way: bool = False


def _text(name: str, title: str = "", gives_way: bool = False) -> Column:
    return Column(title or name, lambda row: str(row[name]), gives_way=gives_way)


def _number(name: str, title: str = "") -> Column:
    return Column(title or name, lambda row: str(row[name]), True)


def _where(row: dict[str, Any]) -> str:
    """Return the line that asks, its file as seen from where the program runs."""
    file, _, number = row["where"].rpartition(":")
    try:
        shown = os.path.relpath(file) if os.path.isabs(file) else file
    except ValueError:  # on another drive
        shown = file
    return f"{file if shown.startswith('..') else shown}:{number}" if number else ""


def _operands(row: dict[str, Any]) -> str:
    shown = [
        f"{o['operands'] or '-'}" + (f" x{o['count']}" if len(row["operands"]) > 1 else "") for o in row["operands"]
    ]
    return "; ".join(shown)


def _beneath(row: dict[str, Any]) -> str:
    return ", ".join([f"{name} x{n}" if n > 1 else name for name, n in row["beneath"].items()])


_BYTES = Column("bytes", lambda row: in_bytes(row["bytes"]), True)
_TIME = Column("time", lambda row: in_time(row["seconds"] * 1e6), True)
_OWN_TIME = Column("own time", lambda row: in_time(row["own_seconds"] * 1e6), True)
_WHERE = Column("where", _where, gives_way=True)
_COUNT = _number("count")

SECTIONS: dict[str, tuple[str, list[Column]]] = {
    "ops": ("ops", [_text("name"), _text("phase"), _COUNT, _BYTES, Column("operands", _operands, gives_way=True)]),
    "kernels": (
        "kernels",
        [_text("name"), _text("backend"), _text("body"), _COUNT, _BYTES, Column("beneath", _beneath, gives_way=True)],
    ),
    "transfers": (
        "transfers",
        [_text("direction"), _text("via", "by"), _text("dtype"), _text("shape"), _COUNT, _BYTES, _text("phase"), _WHERE],
    ),
    "copies": (
        "copies",
        [_text("kind"), _text("via", "by"), _text("within"), _text("dtype"), _text("shape"), _COUNT, _BYTES, _WHERE],
    ),
    "casts": (
        "casts",
        [_text("from"), _text("to"), _text("kind"), _text("via", "by"), _text("within"), _COUNT, _BYTES, _WHERE],
    ),
    "fallbacks": (
        "fallbacks that cost",
        [_text("name"), _text("backend"), _COUNT, _number("calls", "kernels"), _BYTES, _text("reason"),
         Column("beneath", _beneath, gives_way=True)],
    ),
    "memory": (
        "memory",
        [_text("device"), _text("backend"), Column("allocated", lambda row: in_bytes(row["allocated"]), True),
         Column("at the start", lambda row: in_bytes(row["start"]), True),
         Column("at the end", lambda row: in_bytes(row["end"]), True),
         Column("peak", lambda row: in_bytes(row["peak"]), True), _text("counted_by", "counted by")],
    ),
}  # fmt: skip
_LEAST, _BARE = 16, 8  # what a column that gives way keeps, and any column of text


def _section(title: str, columns: list[Column], rows: list[dict[str, Any]], most: int, width: int) -> list[str]:
    cells = [[column.cell(row) for column in columns] for row in rows[:most]]
    widths = [max([len(column.title), *[len(line[i]) for line in cells]]) for i, column in enumerate(columns)]
    # A column in which there is nothing is left out.
    shown = [i for i in range(len(columns)) if any(line[i] for line in cells)]
    over = sum([widths[i] + 2 for i in shown]) - width
    # First the columns that give way, the widest first, then whatever is text.
    for least, gives in ((_LEAST, lambda c: c.gives_way), (_BARE, lambda c: not c.number)):
        for i in sorted(shown, key=lambda i: -widths[i]):
            if over > 0 and gives(columns[i]):
                cut = min(over, max(widths[i] - least, 0))
                widths[i], over = widths[i] - cut, over - cut
    lines = [title]
    for line in [[column.title for column in columns], *cells]:
        parts = [_fit(line[i], widths[i], columns[i]) for i in shown]
        lines.append(("  " + "  ".join(parts)).rstrip())
    if len(rows) > most:
        lines.append(f"  ... and {len(rows) - most} more")
    return lines


def _fit(text: str, width: int, column: Column) -> str:
    if len(text) > width:
        # Of a path the end tells most.
        text = "..." + text[len(text) - width + 3 :] if column is _WHERE else text[: width - 3] + "..."
    return text.rjust(width) if column.number else text.ljust(width)


def written(report: dict[str, Any], most: int, width: int | None) -> str:
    """Write a report as text."""
    width = width or shutil.get_terminal_size((120, 24)).columns
    t = report["totals"]
    lines = [
        f"{t['ops']} ops, {t['kernels']} kernels ({t['default_bodies']} default bodies), {in_bytes(t['allocated'])} allocated",
        f"{t['to_host']} transfers to the host, {t['to_device']} to a device, {t['between_devices']} between devices",
        f"{t['copies']} copies, {t['casts']} casts, {t['fallbacks']} fallbacks that cost",
    ]
    for name, (title, columns) in SECTIONS.items():
        rows = report[name]
        if not rows:
            continue
        if report["times"] and "seconds" in rows[0]:
            own = [_OWN_TIME] if "own_seconds" in rows[0] else []
            columns = [*columns[:-1], _TIME, *own, columns[-1]]
        lines += ["", *_section(title, columns, rows, most, width)]
    return "\n".join(lines)
