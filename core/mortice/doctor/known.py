"""Every rule that there is: mortice's own and those of plugins."""

from __future__ import annotations

from collections.abc import Iterator

from mortice.doctor import mistakes, plugins  # noqa: F401 - importing mistakes registers mortice's own
from mortice.doctor.rule import Rule, known


def rules() -> Iterator[type[Rule]]:
    """Yield every known rule in the order of ids, those of plugins after mortice's own."""
    plugins.discover()
    yield from sorted(known.values(), key=lambda r: (not r.__module__.startswith("mortice."), r.id))
