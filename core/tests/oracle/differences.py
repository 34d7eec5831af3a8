"""Deliberate differences from PyTorch, as data in differences.toml: each with its reason, each still true."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .compare import Failure

FILE = Path(__file__).with_name("differences.toml")


@dataclass
class Difference:
    """One entry: which failures are meant; `["*"]` stands for all checks."""

    reason: str
    ops: list[str]
    checks: list[str]
    what: list[str]
    dtypes: list[str] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def covers(self, failure: Failure) -> bool:
        """Whether a failure is this difference; remembers where it showed."""
        covered = (
            failure.op in self.ops
            and failure.kind in self.what
            and ("*" in self.checks or failure.check in self.checks)
            and (not self.dtypes or failure.dtype in self.dtypes)
        )
        if covered:
            self.seen.add((failure.op, failure.check))
        return covered


def load(path: Path = FILE) -> list[Difference]:
    """Read the entries; an unknown key or an entry that lacks one is a TypeError."""
    return [Difference(**entry) for entry in tomllib.loads(path.read_text()).get("difference", [])]


def unexpected(failures: Iterable[Failure], entries: list[Difference]) -> list[Failure]:
    """Return the failures that no entry covers, marking the entries that covered one."""
    return [failure for failure in failures if not [entry for entry in entries if entry.covers(failure)]]


def stale(entries: list[Difference], op: str, check: str) -> list[Difference]:
    """Return the entries that name this op and check, and match nothing there any more: they are to be deleted."""
    named = [entry for entry in entries if op in entry.ops and check in entry.checks]
    return [entry for entry in named if (op, check) not in entry.seen]
