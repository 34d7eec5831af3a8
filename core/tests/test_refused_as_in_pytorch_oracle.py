"""Arguments that PyTorch refuses: switches that are no bools, numbers with gradients, weights of nothing, bags that begin late."""

import re

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
    "logspace": lambda t: t.logspace(0, 1, -1),
    "addcmul, bools": lambda t: t.addcmul(*[t.ones(3, dtype=t.bool)] * 3),
    "addcdiv, integers": lambda t: t.addcdiv(t.ones(3), t.ones(3, dtype=t.int64), t.ones(3, dtype=t.bool)),
    "addcdiv_, integers": lambda t: t.ones(3).addcdiv_(*[t.ones(3, dtype=t.int64)] * 2),
    "alpha_dropout, integers": lambda t: t.nn.functional.alpha_dropout(t.ones(3, dtype=t.int64), 0.5, True),
    "clamp, bools": lambda t: t.clamp(t.ones(3, dtype=t.bool), False, True),
    "clamp_max, bools": lambda t: t.ones(3, dtype=t.bool).clamp_max(True),
    "clamp_, bools": lambda t: t.ones(3, dtype=t.bool).clamp_(False),
    "col2im, integers": lambda t: t.nn.functional.fold(t.ones(1, 4, 4, dtype=t.int64), (3, 3), 2),
    "cosine_similarity, complex": lambda t: t.nn.functional.cosine_similarity(*[t.ones(3, 3, dtype=t.complex64)] * 2),
    "cross, bools": lambda t: t.linalg.cross(t.ones(3, dtype=t.bool), t.ones(3)),
    "cross, two dtypes": lambda t: t.linalg.cross(t.ones(3), t.ones(3, dtype=t.int64)),
    "gaussian_nll_loss, integers": lambda t: t.nn.functional.gaussian_nll_loss(t.ones(3), t.ones(3), t.ones(3, dtype=t.int64)),
    "gradient, bools": lambda t: t.gradient(t.ones(3, dtype=t.bool)),
    "hinge_embedding_loss, integers": lambda t: t.nn.functional.hinge_embedding_loss(*[t.ones(3, dtype=t.int64)] * 2),
    "im2col, integers": lambda t: t.nn.functional.unfold(t.ones(1, 1, 3, 3, dtype=t.int64), 2),
    "isin, bools": lambda t: t.isin(t.ones(3, dtype=t.bool), t.ones(3)),
    "isin, a bool": lambda t: t.isin(t.ones(3), True),
    "lerp, integers": lambda t: t.lerp(*[t.ones(3, dtype=t.int64)] * 2, 0.5),
    "linalg.vander, bools": lambda t: t.linalg.vander(t.ones(3, dtype=t.bool)),
    "linalg.vander of one": lambda t: t.linalg.vander(t.ones(1)),
    "linalg.vecdot, integers": lambda t: t.linalg.vecdot(*[t.ones(3, dtype=t.int64)] * 2),
    "max_unpool2d, integers": lambda t: t.nn.functional.max_unpool2d(*[t.ones(1, 2, 2, dtype=t.int64)] * 2, 2),
    "multi_margin_loss, integers": lambda t: t.nn.functional.multi_margin_loss(t.ones(2, 3, dtype=t.int64), t.tensor([0, 1])),
    "multilabel_margin_loss, integers": lambda t: t.nn.functional.multilabel_margin_loss(*[t.ones(2, 3, dtype=t.int64)] * 2),
    "pad, bools": lambda t: t.nn.functional.pad(t.ones(1, 3, dtype=t.bool), (1, 1), mode="reflect"),
    "polygamma, in the order of the method": lambda t: t.polygamma(t.ones(3), 1),
    "trace, bools": lambda t: t.trace(t.ones(3, 3, dtype=t.bool)),
}


TEXTS = {
    "indices into nothing": lambda t: t.empty(10, 0)[:, [0, 1]],
    "unravel_index, a tensor for the shape": lambda t: t.unravel_index(t.tensor(1), t.tensor([1, 2])),
    "unravel_index, a word in the shape": lambda t: t.unravel_index(t.tensor(1), (2, "a")),
    "unravel_index, a float for the shape": lambda t: t.unravel_index(t.tensor(1), 2.0),
    "elu_": lambda t: _overwritten(t, t.nn.functional.elu_, -0.5),
    "celu_": lambda t: _overwritten(t, t.nn.functional.celu_, -0.5),
    "leaky_relu_": lambda t: _overwritten(t, t.nn.functional.leaky_relu_, -0.5),
    "rrelu": lambda t: _overwritten(t, t.nn.functional.rrelu_, -0.5, -0.1),
    "adaptive_avg_pool1d to nothing": lambda t: _pooled(t, 1, "avg"),
    "adaptive_avg_pool3d to nothing": lambda t: _pooled(t, 3, "avg"),
    "adaptive_max_pool1d to nothing": lambda t: _pooled(t, 1, "max"),
    "adaptive_max_pool2d to nothing": lambda t: _pooled(t, 2, "max"),
    "max_pool2d of a matrix": lambda t: t.nn.functional.max_pool2d(t.ones(3, 4), 2),
    "einsum, an ellipsis twice": lambda t: t.einsum("...i...", t.ones(2, 2)),
    "einsum, an ellipsis twice in the output": lambda t: t.einsum("...i->...i...", t.ones(2, 2)),
    "chain_matmul of nothing": lambda t: t.chain_matmul(),
    "addr, a float for beta": lambda t: t.addr(*[t.ones(2, dtype=t.int64)] * 3, beta=1.5, alpha=2),
    "addr, a float for alpha": lambda t: t.addr(*[t.ones(2, dtype=t.int64)] * 3, beta=1, alpha=2.5),
    "randint, no number": lambda t: t.randint(0, 0, (2,)),
    "randint_like, no number": lambda t: t.randint_like(t.ones(2), 3, 3),
    "heaviside, complex values": lambda t: t.heaviside(t.ones(2), t.ones(2, dtype=t.complex64)),
    "resize_, strides": lambda t: t.ones(2).resize_(0, 4, 2305843009213693952),
    "empty, strides": lambda t: t.empty(0, 4, 1 << 61),
}


def _overwritten(t, fn, *slopes):
    fn(t.ones(3, requires_grad=True) * 1, *slopes).sum().backward()


def _pooled(t, nd, kind):
    x = t.ones((2, 3) + (4,) * nd, requires_grad=True)
    getattr(t.nn.functional, f"adaptive_{kind}_pool{nd}d")(x, 0).sum().backward()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
@pytest.mark.parametrize("call", [*CALLS.values(), *TEXTS.values()], ids=[*CALLS, *TEXTS])
def test_what_pytorch_refuses_is_refused_by_the_same_error_or_in_its_words(call):
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, IndexError, RuntimeError)) as theirs:
        call(torch)
    words = str(theirs.value).split(" File an issue")[0].replace("torch.Tensor", "mortice.Tensor")
    with pytest.raises(theirs.type, match=re.escape(words) if call in TEXTS.values() else None):
        call(mt)


@pytest.mark.parametrize("call", ["elu_", "celu_", "leaky_relu_"])
def test_what_is_written_over_with_a_negative_slope_has_values_and_no_gradient(call):
    x = mt.tensor([-1.0, 2.0], requires_grad=True)
    fn = getattr(mt.nn.functional, call)
    y = fn(x * 1, -0.5)
    assert y.tolist() == getattr(mt.nn.functional, call[:-1])(x, -0.5).tolist()
    with pytest.raises(RuntimeError, match="with a negative slope"):
        y.sum().backward()
    fn(x * 1, 0.5).sum().backward()
    assert x.grad[1] == 1
