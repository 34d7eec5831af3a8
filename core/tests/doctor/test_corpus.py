"""The doctor names the mistake of every broken program, at its line, and says nothing about correct ones."""

import doctor_corpus
import pytest

PROGRAMS = list(doctor_corpus.programs())


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_program(program):
    outcome = doctor_corpus.run(program)
    assert outcome.good, outcome.problem
