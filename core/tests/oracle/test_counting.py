"""arange, linspace and logspace have PyTorch's numbers to the bit: where steps cancel, roundings are all that is left to print."""

import pytest

import mortice as mt

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
pytestmark = pytest.mark.oracle
RANGES = [(-3, 3, 0.1), (-1, 1, 0.01), (0, 100, 0.7), (-6.28, 6.28, 0.3), (0.5, -12.3, -0.1), (1e3, 1.1e3, 0.05), (0, 3e7, 1e6 / 3)]


@pytest.mark.parametrize(("start", "end", "step"), RANGES)
def test_a_range_counts_in_vectors(start, end, step):
    assert mt.arange(start, end, step).tolist() == torch.arange(start, end, step).tolist()
    with pytest.warns(UserWarning, match="range is deprecated"):
        assert mt.range(start, end, step).tolist() == torch.range(start, end, step).tolist()


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("steps", [1, 2, 13, 100])
@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 1), (-2, 1.3), (-6.28, 6.28)])
def test_spaced_numbers(name, start, end, steps):
    made, expected = (getattr(T, name)(start, end, steps) for T in (mt, torch))
    if name == "linspace":
        assert made.tolist() == expected.tolist()
    else:  # pow is not every library's the same
        torch.testing.assert_close(torch.tensor(made.tolist()), expected, rtol=1.2e-7, atol=0)


@pytest.mark.parametrize(("start", "end", "step"), RANGES)
def test_doubles_in_the_c_extension(start, end, step):
    pytest.importorskip("mortice_cpu_cext")
    with mt.use_backend("cpu_cext"):
        for make in (lambda T: T.arange(start, end, step, dtype=T.float64), lambda T: T.linspace(start, end, 57, dtype=T.float64)):
            assert make(mt).tolist() == make(torch).tolist()
