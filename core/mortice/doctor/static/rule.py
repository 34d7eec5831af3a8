"""The base of the static rules, and those that are known."""

from __future__ import annotations

import ast
from typing import Any, ClassVar

from mortice.doctor.finding import Finding, Site
from mortice.doctor.static.meaning import Meaning
from mortice.doctor.static.program import Program
from mortice.doctor.static.sources import Source


class StaticRule:
    """What one mistake looks like in the text of a program: methods named `visit_Call` and so on see the nodes of a type.

    Attributes:
        id: "D39"; that of the rule that watches for the same mistake while a program runs, where there is one.
        level: of its findings, where `report` does not say another.
        title: the mistake in a few words.
        why: why it hurts.
        remedy: what to do, in one line.
        style: a matter of taste: quiet unless it is asked for.
    """

    id: ClassVar[str] = ""
    level: ClassVar[str] = "warning"
    title: ClassVar[str] = ""
    why: ClassVar[str] = ""
    remedy: ClassVar[str] = ""
    style: ClassVar[bool] = False

    def __init__(self, program: Program, meaning: Meaning, source: Source) -> None:
        self.program, self.meaning, self.source = program, meaning, source
        self.findings: list[tuple[Finding, ast.AST]] = []

    def finish(self) -> None:
        """Look at the whole program, after all nodes were seen."""

    def line(self, node: Any) -> str:
        """Say in which line a node is."""
        cell, number = self.source.place(node.lineno)
        return f"line {number} of cell {cell}" if cell else f"line {number}"

    def report(
        self, node: Any, message: str, *, level: str | None = None, remedy: str | None = None, **values: Any
    ) -> None:
        """Say that the mistake is made at a node."""
        function = self.program.function(node)
        site = Site(self.source.filename, node.lineno, function.name if function is not None else "<module>")
        values = {"column": node.col_offset + 1, **values}
        finding = Finding(
            self.id, level or self.level, self.title, message, self.why, self.remedy if remedy is None else remedy, site,
            values=values,
        )  # fmt: skip
        self.findings.append((finding, node))


known: list[type[StaticRule]] = []


def register(rule: type[StaticRule]) -> type[StaticRule]:
    """Make a static rule known; a class decorator."""
    known.append(rule)
    return rule


def text(node: ast.AST, limit: int = 60) -> str:
    """Return a node as it is written, shortened."""
    written = ast.unparse(node)
    return written if len(written) <= limit else written[: limit - 3] + "..."
