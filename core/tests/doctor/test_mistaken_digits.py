"""Each of ten mistakes planted in the digits demo is named within one epoch, at a line of the program; without one nothing is."""

import importlib.util
import sys
from pathlib import Path

import pytest

from mortice import doctor

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "doctor" / "digits_mistakes.py"
_spec = importlib.util.spec_from_file_location("digits_mistakes", PROGRAM)
digits_mistakes = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = digits_mistakes
_spec.loader.exec_module(digits_mistakes)


@pytest.mark.parametrize("mistake", digits_mistakes.MISTAKES)
def test_it_is_named(mistake):
    with doctor.watch(strict=True, quiet=True) as session:
        digits_mistakes.train(mistake)
    found = [f for f in session.findings if f.rule == mistake]
    assert found and all(f.site.file == str(PROGRAM) for f in found)


def test_without_a_mistake_nothing_is_said():
    with doctor.watch(strict=True, quiet=True) as session:
        assert digits_mistakes.train() > 0.5
    assert not [f for f in session.findings if f.level != "info"]
