# ruff: noqa: E402 - torch is optional
"""Every op of the surface beside PyTorch: one id an op and check, `test_values[add]`.

MORTICE_ORACLE_SUBJECT=torch compares PyTorch with itself, which must be all green.
"""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec

import pytest

for needed in ("torch", "numpy", "expecttest", "hypothesis"):
    if find_spec(needed) is None:
        pytest.skip(f"the comparison with PyTorch needs {needed}", allow_module_level=True)

from . import differences, samples
from .checks import CHECKS, check
from .subject import Subject

pytestmark = pytest.mark.oracle
SUBJECT = os.environ.get("MORTICE_ORACLE_SUBJECT", "mortice")
SHOWN = 3


@pytest.fixture(scope="module")
def subject() -> Subject:
    """The module under comparison."""
    return Subject(importlib.import_module(SUBJECT))


def having(kind: str) -> pytest.MarkDecorator:
    """Return the ops that a check applies to, as parameters."""
    return pytest.mark.parametrize("name", [name for name, (_, kinds) in samples.surface().items() if kind in kinds])


def verify(subject: Subject, name: str, kind: str) -> None:
    """Run one check; fail on a difference that is not deliberate, and on a deliberate one that is gone."""
    entries = differences.load()
    run = check(subject, name, kind)
    found = differences.unexpected(run.failures, entries)
    if samples.surface()[name][0] == "wider" and [failure.kind for failure in found] == ["missing"]:
        pytest.skip(f"wider surface, not there yet: {found[0].detail}")
    if found:
        shown = "\n".join(str(failure) for failure in found[:SHOWN])
        pytest.fail(f"{len(found)} differences in {run.calls} calls\n{shown}", pytrace=False)
    if not run.calls:
        pytest.skip(f"nothing to compare: {dict(run.skipped)}")
    old = [] if subject.module.__name__ == "torch" else differences.stale(entries, name, kind)
    if old:
        pytest.fail(f"differences.toml: matches nothing here any more, take it out: {old[0].reason}", pytrace=False)


@having("values")
def test_values(subject: Subject, name: str) -> None:
    verify(subject, name, "values")


@having("gradients")
def test_gradients(subject: Subject, name: str) -> None:
    verify(subject, name, "gradients")


@having("second_gradients")
def test_second_gradients(subject: Subject, name: str) -> None:
    verify(subject, name, "second_gradients")


@having("methods")
def test_methods(subject: Subject, name: str) -> None:
    verify(subject, name, "methods")


@having("inplace")
def test_inplace(subject: Subject, name: str) -> None:
    verify(subject, name, "inplace")


@having("out")
def test_out(subject: Subject, name: str) -> None:
    verify(subject, name, "out")


@having("errors")
def test_errors(subject: Subject, name: str) -> None:
    verify(subject, name, "errors")


@pytest.mark.parametrize("level", ["everyday", "wider"])
def test_every_name_of_the_surface_is_there(subject: Subject, level: str) -> None:
    assert samples.missing(subject, level) == []


def test_differences_name_ops_and_checks() -> None:
    for entry in differences.load():
        known = set(samples.surface()) | {"*"}, set(CHECKS) | {"*"}
        assert entry.reason and set(entry.ops) <= known[0] and set(entry.checks) <= known[1], entry
