"""The report for a terminal: by rich where it is installed, plain text elsewhere."""

from __future__ import annotations

import io
import os
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

from mortice.doctor.finding import LEVELS, Finding, Site

if TYPE_CHECKING:
    from mortice.doctor.session import Session


def ordered(findings: list[Finding]) -> list[Finding]:
    """Return findings with the gravest first."""
    return sorted(findings, key=lambda f: (LEVELS.index(f.level), f.rule, f.site))


def summary(findings: list[Finding]) -> str:
    """Count findings by level: "1 error, 2 warnings"."""
    if not findings:
        return "no findings"
    counts = [(sum(f.level == level for f in findings), level) for level in LEVELS]
    return ", ".join(f"{n} {level}{'s' if n > 1 and level != 'info' else ''}" for n, level in counts if n)


def text(session: Session) -> str:
    """Return the report: a line with the place of each finding, whole so that terminals make it a link, and what was found."""
    steps, rules = (
        f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in ((session.steps, "step"), (len(session.rules), "rule"))
    )
    head = f"mortice.doctor: {summary(session.findings)} in {steps}, {rules}"
    if not session.findings:
        return head
    found = ordered(session.findings)
    width = max(40, min(shutil.get_terminal_size((110, 40)).columns, 120))
    try:
        return f"{head}\n{_framed(found, width)}"
    except ImportError:
        return f"{head}\n{_plain(found, width)}\n"


def near(site: Site) -> str:
    """Return a place with the shorter of the file's path from here and its whole path."""
    if not site.file:
        return str(site)
    try:
        path = min(os.path.relpath(site.file), site.file, key=len)
    except (OSError, ValueError):  # on another drive, or in a folder that is gone
        path = site.file
    return f"{path}:{site.line}"


def _framed(found: list[Finding], width: int) -> str:
    """Return findings in frames.

    Raises:
        ImportError: when rich is not installed.
    """
    from rich.console import Console, Group
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.text import Text

    out = io.StringIO()
    console = Console(file=out, width=width)
    for f in found:
        # Texts, since sizes in brackets are no markup.
        console.print(Text(f"\n{near(f.site)}"), soft_wrap=True)
        said: list[Any] = [Text(f.title), *(Padding(Text(part), (0, 0, 0, 2)) for part in _said(f))]
        frame = Panel(Group(*said), title=Text(f" {f.rule} {f.level} "), title_align="left",
                      subtitle=Text(f" {_seen(f)} "), subtitle_align="right")  # fmt: skip
        console.print(frame)
    return out.getvalue()


def _plain(found: list[Finding], width: int) -> str:
    lines = []
    for f in found:
        lines += ["", near(f.site), f"  {f.rule} {f.level}: {f.title} ({_seen(f)})"]
        for part in _said(f):
            lines += textwrap.wrap(part, width, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return "\n".join(lines)


def _said(f: Finding) -> list[str]:
    return [part for part in (f.message, f.why, f"-> {f.remedy}" if f.remedy else "") if part]


def _seen(f: Finding) -> str:
    return f"step {f.step:,}" + (f", seen {f.count:,} times" if f.count > 1 else "")
