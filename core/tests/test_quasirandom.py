"""Points that fill a cube evenly."""

import pytest

import mortice as mt


def test_sobol_points_are_those_of_joe_and_kuo_and_stay_even_when_scrambled():
    engine = mt.quasirandom.SobolEngine(3)
    want = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
    assert engine.draw(2).tolist() == want[:2] and engine.draw(3).tolist() == want[2:]
    assert engine.reset().fast_forward(4).draw(1, dtype=mt.float64).tolist() == want[4:]
    with pytest.raises(ValueError, match="power of 2; got 5"):
        engine.draw_base2(1)
    for dim in (0, 257):
        with pytest.raises(ValueError, match="expected a dimension from 1 to 256"):
            mt.quasirandom.SobolEngine(dim)
    points = mt.quasirandom.SobolEngine(256, scramble=True, seed=3).draw_base2(6, dtype=mt.float64)
    assert all(sorted(column) == list(range(64)) for column in (points * 64).floor().int().T.tolist())
    again = mt.quasirandom.SobolEngine(256, scramble=True, seed=3)
    assert again.draw(64, out=mt.empty(0, dtype=mt.float64), dtype=mt.float64).equal(points)


@pytest.mark.oracle
def test_sobol_points_are_pytorchs():
    torch = pytest.importorskip("torch")
    for dim in (1, 5, 256):
        ours, theirs = (lib.quasirandom.SobolEngine(dim) for lib in (mt, torch))
        assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()
        for n in (1, 9, 40):
            assert ours.draw(n).tolist() == theirs.draw(n).tolist() and ours.quasi.tolist() == theirs.quasi.tolist()
