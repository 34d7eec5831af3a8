"""Arguments that PyTorch refuses: switches that are no bools, numbers with gradients, weights of nothing, bags that begin late."""

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
    "arange, an end with a gradient": lambda t: t.arange(t.tensor(3.0, requires_grad=True)),
    "arange, a start with a gradient": lambda t: t.arange(t.tensor(0.0, requires_grad=True), 3.0),
    "arange, an end with dims": lambda t: t.arange(t.ones(1)),
    "threshold with a gradient": lambda t: t.nn.functional.threshold(t.ones(3), t.tensor(0.5, requires_grad=True), 1.0),
    "threshold, a value with a gradient": lambda t: t.threshold(t.ones(3), 0.5, t.tensor(1.0, requires_grad=True)),
    "hardtanh": lambda t: t.nn.functional.hardtanh(t.ones(3), t.tensor(-0.5, requires_grad=True)),
    "hardshrink": lambda t: t.hardshrink(t.ones(3), t.tensor(0.5, requires_grad=True)),
    "softshrink": lambda t: t.nn.functional.softshrink(t.ones(3), t.tensor(0.5, requires_grad=True)),
    "pad": lambda t: t.nn.functional.pad(t.ones(3), (1, 1), value=t.tensor(0.5, requires_grad=True)),
    "huber_loss": lambda t: t.nn.functional.huber_loss(t.ones(3), t.ones(3), delta=t.tensor(0.5, requires_grad=True)),
    "unfold": lambda t: t.nn.functional.unfold(t.ones(3, 3), 2),
}


TEXTS = {
    "indices into nothing": lambda t: t.empty(10, 0)[:, [0, 1]],
    "unravel_index, a tensor for the shape": lambda t: t.unravel_index(t.tensor(1), t.tensor([1, 2])),
    "unravel_index, a word in the shape": lambda t: t.unravel_index(t.tensor(1), (2, "a")),
    "unravel_index, a float for the shape": lambda t: t.unravel_index(t.tensor(1), 2.0),
}


@pytest.mark.oracle
@pytest.mark.parametrize("call", TEXTS.values(), ids=TEXTS)
def test_what_pytorch_refuses_is_refused_in_its_words(call):
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, IndexError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type, match=str(theirs.value).replace("torch.Tensor", "mortice.Tensor")):
        call(mt)


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_pytorch_refuses_is_refused_by_the_same_error(call):
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, RuntimeError, IndexError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type):
        call(mt)
