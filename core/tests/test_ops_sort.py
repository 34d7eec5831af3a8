"""Sorting, searching, distinct elements: order of ties and nan, shapes, gradients, error texts."""

import math
import warnings

import pytest

import mortice as mt

NAN = math.nan


def test_sort_is_stable_both_ways_and_nan_counts_as_largest():
    x = mt.tensor([2, 1, 2, 1])
    assert x.sort().indices.tolist() == [1, 3, 0, 2]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]
    for d in (mt.float32, mt.float16, mt.bfloat16):
        y = mt.tensor([1.0, NAN, 3.0], dtype=d)
        assert y.argsort().tolist() == [0, 2, 1]
        assert y.argsort(descending=True).tolist() == [1, 2, 0]
    assert [t.item() for t in mt.sort(mt.tensor(4.0))] == [4.0, 0]
    assert mt.msort(mt.tensor([[3, 1], [2, 4]])).tolist() == [[2, 1], [3, 4]]


def test_topk():
    x = mt.tensor([[1.0, 5.0, 3.0], [9.0, 7.0, 8.0]])
    values, indices = x.topk(2)
    assert (values.tolist(), indices.tolist()) == ([[5.0, 3.0], [9.0, 8.0]], [[1, 2], [0, 2]])
    assert x.topk(1, 0, largest=False).values.tolist() == [[1.0, 5.0, 3.0]]
    assert x.topk(0).values.shape == (2, 0)


@pytest.mark.parametrize("x", [[1.0, 3, 2, 3], [3.0, NAN, NAN, 4], [-0.0, 0.0], [0.0, -0.0], [-math.inf] * 2, [7]])
def test_topk_of_one_is_the_first_of_more(x):
    for t in (mt.tensor(x), mt.tensor([x, x[::-1]]).mT):
        one, all_ = t.topk(1, 0), t.topk(len(x), 0)
        assert repr((one.values, one.indices)) == repr((all_.values[:1], all_.indices[:1]))


def test_gradients_go_back_to_their_places():
    x = mt.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (x.sort().values * mt.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]
    x.grad = None
    x.topk(1).values.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]


def test_distinct_elements_and_rows():
    x = mt.tensor([3, 1, 3])
    values, inverse, counts = mt.unique(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0, 1], [1, 2])
    rows, places = mt.unique(mt.tensor([[3, 1], [2, 2], [3, 0], [2, 2]]), dim=0, return_inverse=True)
    assert (rows.tolist(), places.tolist()) == ([[2, 2], [3, 0], [3, 1]], [2, 0, 1, 0])
    runs, lengths = mt.unique_consecutive(mt.tensor([1, 1, 2, 2, 1]), return_counts=True)
    assert (runs.tolist(), lengths.tolist()) == ([1, 2, 1], [2, 2, 1])
    assert mt.unique(mt.zeros(0, 3), dim=0).shape == (0, 3)


@pytest.mark.parametrize("distinct", [mt.unique, mt.unique_consecutive, lambda x: mt.unique(x, dim=0)])
def test_backward_through_distinct_elements_fails_rather_than_giving_no_gradient(distinct):
    x = mt.tensor([1.0, 2.0, 2.0], requires_grad=True)
    values = distinct(x)
    assert values.requires_grad
    assert [t.requires_grad for t in mt.unique(x, return_inverse=True, return_counts=True)] == [True, False, False]
    with pytest.raises(NotImplementedError, match="the derivative for '.*' is not implemented"):
        (values.sum() + x.sum()).backward()


def test_searching():
    row = mt.tensor([1, 3, 3, 5])
    assert mt.searchsorted(row, mt.tensor([[0, 3], [5, 9]])).tolist() == [[0, 1], [3, 4]]
    assert mt.searchsorted(row, 3, right=True).item() == 3
    assert mt.bucketize(mt.tensor([2.5]), row, out_int32=True).dtype is mt.int32
    numpy = pytest.importorskip("numpy")
    assert mt.bucketize(numpy.float32(2.5), row).item() == 1
    assert mt.isin(row, numpy.int64(3)).tolist() == [False, True, True, False]
    assert mt.isin(numpy.int64(4), row).item() is False
    rows = mt.tensor([[1, 3], [2, 8]])
    assert mt.searchsorted(rows, mt.tensor([[2], [2]])).tolist() == [[1], [0]]
    assert mt.isin(mt.tensor([[1, 2], [3, 4]]), mt.tensor([2, 3])).tolist() == [[False, True], [True, False]]
    assert mt.isin(mt.tensor([1, 2]), 2, invert=True).tolist() == [True, False]
    x, nan = mt.arange(-50.0, 50), mt.full((1,), math.nan)
    for n in (0, 1, 3, 90):  # the most are sorted, few are compared
        assert mt.isin(mt.cat([x, nan]), mt.cat([x[:n], nan])).tolist() == [i < n for i in range(101)]


MISUSE = [
    (lambda: mt.ones(2).topk(3), RuntimeError, "topk: selected index k out of range; got k = 3 for size 2."),
    (lambda: mt.bucketize(mt.ones(1), mt.ones(1, 2)), RuntimeError,
     "bucketize: boundaries tensor must be 1 dimension, but got dim(2)"),
    (lambda: mt.searchsorted(mt.ones(2), 1.0, right=True, side="left"), RuntimeError,
     "searchsorted(): side and right can't be set to opposites, got side of left while right was True"),
    (lambda: mt.unique(mt.zeros(0, 3), dim=1), RuntimeError,
     "unique: There are 0 sized dimensions, and they aren't selected, so unique cannot be applied; got [0, 3]."),
    (lambda: mt.ones(2, dtype=mt.complex64).sort(), TypeError,
     "sort: not implemented for 'ComplexFloat'; got mortice.complex64. Convert to one of: bool, unsigned integer, integer, "
     "floating point."),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [mt.bfloat16, mt.float16, mt.float32])
def test_a_running_extreme_keeps_nan_in_silence(dtype):
    x = mt.tensor([1.0, math.nan, 0.5, 3.0], dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scan in (mt.cummax, mt.cummin):
            values, places = scan(x, 0)
            assert values.dtype is dtype and values.isnan().tolist() == [False, True, True, True]
            assert places.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(("call", "error", "text"), MISUSE, ids=[text.split(":")[0] for _, _, text in MISUSE])
def test_misuse_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text
