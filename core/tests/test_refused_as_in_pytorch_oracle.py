"""Arguments that PyTorch refuses, and these were taken: switches that are no bools, weights of nothing, bags that begin late."""

import pytest

import mortice as mt

CALLS = {
    "unique, inverse": lambda t: t.unique(t.tensor([1, 1]), return_inverse=1),
    "unique, counts": lambda t: t.unique(t.tensor([1, 1]), return_counts=1, dim=0),
    "unique_consecutive, counts": lambda t: t.unique_consecutive(t.tensor([1, 1]), return_counts=None),
    "sort, positional stable": lambda t: t.tensor([1, 1]).sort(0, False, True),
    "sort, stable": lambda t: t.tensor([1, 1]).sort(stable=1),
    "argsort, positional stable": lambda t: t.tensor([1, 1]).argsort(0, False, True),
    "cov, aweights": lambda t: t.cov(t.ones(2, 3), aweights=t.zeros(3)),
    "cov, fweights": lambda t: t.cov(t.ones(2, 3), fweights=t.zeros(3, dtype=t.int64), aweights=t.ones(3)),
    "embedding_bag": lambda t: t.nn.functional.embedding_bag(
        t.tensor([0, 1, 2]), t.ones(4, 2), t.tensor([1]), include_last_offset=True
    ),
    "index_put": lambda t: t.zeros(2).index_put((t.tensor([1]),), t.ones(1), accumulate=t.ones(2)),
    "index_put_": lambda t: t.zeros(2).index_put_((t.tensor([1]),), t.ones(1), accumulate="yes"),
    "randint without a size": lambda t: t.randint(3, 5),
    "randint, a float": lambda t: t.randint(0, 5.5, (2,)),
    "unfold": lambda t: t.nn.functional.unfold(t.ones(3, 3), 2),
}


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_pytorch_refuses_is_refused_by_the_same_error(call):
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, RuntimeError, IndexError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type):
        call(mt)
