"""What a tool gives: a text for the terminal, and findings, which a session that is on is told as well."""

from __future__ import annotations

from typing import Any, Self

from mortice.doctor import events, probes
from mortice.doctor.finding import Finding, Site
from mortice.doctor.rule import Rule
from mortice.doctor.session import Session
from mortice.doctor.table import ordered, summary

SHOWN = 6  # how many names a message lists


class Result:
    """The base of all results; it prints as what the tool has to say.

    Attributes:
        tool: the name of the tool.
        findings: what is wrong; empty where nothing is.
        site: the line that called the tool.
    """

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.findings: list[Finding] = []
        self.site: Site = events.here()

    @property
    def ok(self) -> bool:
        """Whether nothing was found that is more than worth knowing."""
        return all(f.level == "info" for f in self.findings)

    def find(
        self, rule: type[Rule], message: str, *, level: str | None = None, remedy: str | None = None, **values: Any
    ) -> None:
        """Add a finding, or what there is to add to one of the same rule and level, unless the rule is silenced."""
        session = probes.current() or Session(only=(), quiet=True)
        if session.ignores(rule.id, self.site):
            return
        remedy = rule.remedy if remedy is None else remedy
        level = level or rule.level
        for known in self.findings:
            if (known.rule, known.level) == (rule.id, level):
                known.message += f" {message}"
                known.remedy += "" if remedy in known.remedy else f" {remedy}"
                return
        self.findings.append(
            Finding(rule.id, level, rule.title, message, rule.why, remedy, self.site, session.steps, values)
        )

    def told(self) -> Self:
        """Tell the session that is on of the findings; returns the result."""
        current = probes.current()
        rules = {} if current is None else {rule.id: rule for rule in current.rules}
        for f in self.findings:
            if current is not None and f.rule in rules:
                current.add(rules[f.rule], f.message, site=f.site, level=f.level, remedy=f.remedy, values=f.values)
        return self

    def lines(self) -> list[str]:
        """Return what was seen, a line each."""
        return []

    def __str__(self) -> str:
        said = [f"{self.tool}: {'ok' if not self.findings else summary(self.findings)}"]
        said += [f"  {line}" for line in self.lines()]
        for f in ordered(self.findings):
            said += [f"  {f.rule} {f.level}: {f.message}", *([f"    -> {f.remedy}"] if f.remedy else [])]
        return "\n".join(said)

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {"tool": self.tool, "ok": self.ok, "findings": [f.as_dict() for f in self.findings]}


def listed(names: Any, shown: int = SHOWN) -> str:
    """Return names as a list of words, the first few of many: "a, b and 3 more"."""
    names = list(names)
    if len(names) <= shown:
        return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"


def count(n: int, what: str) -> str:
    """Return a number of things: "1 layer", "3 layers", "2 classes"."""
    if n == 1:
        return f"{n} {what}"
    plural = what[:-1] + "ies" if what.endswith("y") else what + "es" if what.endswith(("s", "ch")) else what + "s"
    return f"{n} {plural}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return columns of text, the first to the left and figures to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip()
        for row in (head, *rows)
    ]
