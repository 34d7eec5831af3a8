"""Suites: checks that are not about one op. `@suite` registers a function of the subject under a suite's name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A check of a suite; `run` takes the subject, and the parameter where there is one."""

    suite: str
    name: str
    level: int
    run: Callable[..., None]


ENTRIES: list[Entry] = []


def suite(name: str, level: int, each: Any = None, to: Callable[[Any], str] = str) -> Callable[[Any], Any]:
    """Register a check, or one for each parameter; `to` names a parameter in the id."""

    def register(fn: Any) -> Any:
        own = fn.__name__.removeprefix("check_")
        if each is None:
            ENTRIES.append(Entry(name, own, level, fn))
        else:
            for value in each:
                ENTRIES.append(Entry(name, f"{own}-{to(value)}", level, lambda subject, v=value: fn(subject, v)))
        return fn

    return register


def load_suites() -> list[Entry]:
    """Import every suite and return the checks."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return ENTRIES
