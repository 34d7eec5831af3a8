"""What the doctor says: findings, each with its rule, its place in the user's program and the values seen."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

LEVELS = ("error", "warning", "info")
IGNORE = re.compile(r"#\s*doctor:\s*ignore(?:\[([^\]]*)\])?")


def silences(line: str, rule: str) -> bool:
    """Tell whether a line of a program has a comment that silences a rule: `# doctor: ignore`, or `ignore[D06, D12]`."""
    comment = IGNORE.search(line)
    return comment is not None and (comment[1] is None or rule in re.split(r"[,\s]+", comment[1]))


class Site(NamedTuple):
    """A line of the user's program; line 0 of no file where nobody's line is known."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "(unknown place)"


NOWHERE = Site("", 0)


@dataclass
class Finding:
    """One mistake at one place.

    Attributes:
        rule: the rule's id, such as "D04".
        level: "error", "warning" or "info".
        title: the rule's name.
        message: what happened, with the values seen.
        why: why it hurts.
        remedy: what to do, in one line.
        site: the line of the user's program that the finding is about.
        step: how many steps the optimisers had taken by then.
        values: the figures in the message, for programs.
        count: how often it was seen at this place.
    """

    rule: str
    level: str
    title: str
    message: str
    why: str
    remedy: str
    site: Site = NOWHERE
    step: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        found = asdict(self)
        found["site"] = self.site._asdict()
        found["values"] = {
            k: v if isinstance(v, (int, float, str, bool, type(None))) else str(v) for k, v in self.values.items()
        }
        return found

    def __str__(self) -> str:
        return f"{self.site}: {self.level} {self.rule} {self.message} {self.remedy}".rstrip()
