"""Tests of the tests: wrong kernels must turn a quick run of the kit red."""

from __future__ import annotations

import pytest

from mortice_conformance.planted import BUGS, report


def test_there_are_bugs_of_every_kind() -> None:
    assert len(BUGS) >= 60
    assert len({(b.name, b.backend, b.kernels) for b in BUGS}) == len(BUGS)
    assert {b.backend for b in BUGS} == {"cpu_numpy", "strict"}


@pytest.mark.slow
def test_at_least_95_per_cent_of_planted_bugs_are_caught() -> None:
    card, _ = report()
    missed = [f"{r['kernel']}: {r['bug']} ({r['backend']})" for r in card["bugs"] if not r["caught_by"]]
    assert card["share"] >= 0.95, f"missed: {'; '.join(missed)}"
