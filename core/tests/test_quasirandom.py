"""Points that fill a cube evenly."""

from importlib.util import find_spec

import pytest

import mortice as mt


def test_sobol_points_are_those_of_joe_and_kuo_and_stay_even_when_scrambled():
    engine = mt.quasirandom.SobolEngine(3)
    want = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
    assert engine.draw(2).tolist() == want[:2] and engine.draw(3).tolist() == want[2:]
    assert engine.reset().fast_forward(4).draw(1, dtype=mt.float64).tolist() == want[4:]
    with pytest.raises(ValueError, match="power of 2; got 5"):
        engine.draw_base2(1)
    for dim in (0, 21202):
        with pytest.raises(ValueError, match="expected a dimension from 1 to 21201"):
            mt.quasirandom.SobolEngine(dim)
    points = mt.quasirandom.SobolEngine(256, scramble=True, seed=3).draw_base2(6, dtype=mt.float64)
    assert all(sorted(column) == list(range(64)) for column in (points * 64).floor().int().T.tolist())
    again = mt.quasirandom.SobolEngine(256, scramble=True, seed=3)
    assert again.draw(64, out=mt.empty(0, dtype=mt.float64), dtype=mt.float64).equal(points)


def test_many_dims_are_read_from_scipy(monkeypatch):
    pytest.importorskip("scipy")
    few, many = mt.quasirandom.SobolEngine(256), mt.quasirandom.SobolEngine(1111)
    assert many.sobolstate[:256].equal(few.sobolstate)
    assert all(sorted(column) == list(range(16)) for column in (many.draw(16) * 16).int().T.tolist())
    monkeypatch.setattr(mt.quasirandom, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="from 1 to 256, or SciPy, which has the table for more; got 257. Install SciPy"):
        mt.quasirandom.SobolEngine(257)


@pytest.mark.oracle
@pytest.mark.needs("cpu")
def test_sobol_points_are_scrambled_as_pytorchs_with_its_random_numbers():
    torch = pytest.importorskip("torch")
    before = mt.random.get_engine()
    mt.random.set_engine("mt19937")
    try:
        ours, theirs = (lib.quasirandom.SobolEngine(7, scramble=True, seed=3) for lib in (mt, torch))
    finally:
        mt.random.set_engine(before)
    assert ours.shift.tolist() == theirs.shift.tolist() and ours.sobolstate.tolist() == theirs.sobolstate.tolist()
    assert ours.draw(9).tolist() == theirs.draw(9).tolist()


@pytest.mark.oracle
def test_sobol_points_are_pytorchs():
    torch = pytest.importorskip("torch")
    for dim in (1, 5, 256, *([257, 2000] if find_spec("scipy") else [])):
        ours, theirs = (lib.quasirandom.SobolEngine(dim) for lib in (mt, torch))
        assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()
        for n in (1, 9, 40):
            assert ours.draw(n).tolist() == theirs.draw(n).tolist() and ours.quasi.tolist() == theirs.quasi.tolist()
