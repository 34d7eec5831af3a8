# ruff: noqa: E402 - torch is optional
"""Every public name of PyTorch's namespaces is here, or in omitted.toml with its reason.

python -m tests.oracle.test_omitted, run from core/, prints what is missing and in no group.
"""

from __future__ import annotations

import fnmatch
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("torch") is None:
    pytest.skip("the comparison of names needs torch", allow_module_level=True)

from tests.oracle.places import NAMES, PLACES, place, public, written

pytestmark = pytest.mark.oracle


def missing(name: str) -> list[str]:
    """Return the names of a namespace that mortice lacks."""
    here = place("mortice", name)
    return [n for n in public(name) if not hasattr(here, n)]


def groups() -> list[dict[str, Any]]:
    """Read omitted.toml."""
    return tomllib.loads(Path(__file__).with_name("omitted.toml").read_text())["omitted"]


def unexplained(name: str) -> list[str]:
    """Return the names of a namespace that mortice lacks and that no group covers."""
    patterns = [pattern for group in groups() for pattern in group.get(name, ())]
    return [n for n in missing(name) if not any(fnmatch.fnmatchcase(n, p) for p in patterns)]


@pytest.mark.parametrize("name", PLACES)
def test_every_name_is_there_or_has_a_reason_not_to_be(name: str) -> None:
    assert unexplained(name) == []


@pytest.mark.parametrize("name", PLACES)
def test_omitted_names_are_missing_indeed(name: str) -> None:
    lacking = missing(name)
    old = [p for group in groups() for p in group.get(name, ()) if not fnmatch.filter(lacking, p)]
    assert old == [], "mortice has these, or PyTorch has not: take them out of omitted.toml"


def test_groups_have_a_reason_and_names_of_known_places() -> None:
    for group in groups():
        assert group["reason"].endswith(".") and set(group) <= {"reason", *PLACES}, group


def test_the_names_that_the_compatibility_page_is_made_from_are_those_of_this_torch() -> None:
    assert NAMES.read_text(encoding="utf-8") == written(), "run `python -m tests.oracle.places` from core/"


if __name__ == "__main__":
    for name in PLACES:
        print(f"{name}: {len(public(name))} names, {len(missing(name))} left out; in no group: {unexplained(name)}")
