"""Suites: checks that are not about one op. `@suite` registers a function of the subject under a suite's name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mortice_conformance.new import must
from mortice_conformance.subject import Skip


class Entry(NamedTuple):
    """A check of a suite; `run` takes the subject, and the parameter where there is one."""

    suite: str
    name: str
    level: int
    run: Callable[..., None]


ENTRIES: list[Entry] = []


def suite(
    name: str, level: int, each: Any = None, to: Callable[[Any], str] = str, due: Callable[..., Iterable[str]] | None = None
) -> Callable[[Any], Any]:
    """Register a check, or one for each parameter.

    `to` names a parameter in the id; `due` names the required kernels that it asks, which a failure then explains.
    """

    def register(fn: Any) -> Any:
        own = fn.__name__.removeprefix("check_")

        def run(subject: Any, *value: Any) -> None:
            try:
                fn(subject, *value)
            except Skip:
                raise
            except BaseException as error:
                for rule in filter(None, map(must, due(*value) if due else ())):
                    error.add_note(rule)
                raise

        if each is None:
            ENTRIES.append(Entry(name, own, level, run))
        else:
            for value in each:
                ENTRIES.append(Entry(name, f"{own}-{to(value)}", level, lambda subject, v=value: run(subject, v)))
        return fn

    return register


def load_suites() -> list[Entry]:
    """Import every suite and return the checks."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return ENTRIES
