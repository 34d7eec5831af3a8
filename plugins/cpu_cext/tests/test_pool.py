"""Pooling against the default bodies on the same backend, and facts about ties, nan and borders."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")

import mortice  # noqa: E402
from mortice.backends import Backend  # noqa: E402
from mortice_cpu_cext.backend import CextBackend  # noqa: E402

K = CextBackend()

CASES = [
    # sizes, kernel, stride, padding, dilation, ceil_mode
    ((11,), (2,), (2,), (0,), (1,), False),
    ((300,), (3,), (1,), (1,), (2,), True),
    ((8, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((13, 37), (3, 3), (2, 2), (1, 1), (1, 1), True),
    ((9, 6), (4, 3), (3, 5), (2, 1), (1, 2), False),
    ((5, 6, 7), (2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 1), True),
    ((6, 6), (6, 6), (6, 6), (0, 0), (1, 1), False),
]


def _input(sizes, dtype, seed=0):
    rng = random.Random(seed)
    size = 6
    for n in sizes:
        size *= n
    values = [rng.randint(-4, 4) for _ in range(size)]  # with ties
    return mortice.tensor(values).reshape((2, 3, *sizes)).to(dtype)._buffer


def _same(got, want):
    assert tuple(K.shape_of(got)) == tuple(K.shape_of(want)) and K.dtype_of(got) is K.dtype_of(want)
    if 0 not in K.shape_of(got):
        assert bytes(K.to_host(K.all(K.equal(got, want))).view.cast("B"))[0] == 1


def _near(got, want, tolerance=1e-6):
    assert tuple(K.shape_of(got)) == tuple(K.shape_of(want)) and K.dtype_of(got) is K.dtype_of(want)
    if 0 not in K.shape_of(got):
        gap = K.abs(K.subtract(K.astype(got, mortice.float64), K.astype(want, mortice.float64)))
        assert bytes(K.to_host(K.all(K.less(gap, tolerance))).view.cast("B"))[0] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_maxima_and_places_are_those_of_the_default_body(case, dtype):
    sizes, kernel, stride, padding, dilation, ceil = case
    x = K.abs(_input(sizes, mortice.int64))
    x = K.astype(x, getattr(mortice, dtype))
    settings = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil}
    values, at = K.max_pool(x, **settings)
    wanted, places = Backend.max_pool(K, x, **settings)
    _same(values, wanted)
    _same(at, places)
    _same(K.max_pool_values(x, **settings), wanted)
    _same(K.max_pool_take(x, at, ndim=len(sizes)), values)
    if dtype.startswith("float"):
        got = K.max_pool_grad(values, at, x_shape=K.shape_of(x), ndim=len(sizes))
        _near(got, Backend.max_pool_grad(K, values, at, x_shape=K.shape_of(x), ndim=len(sizes)))


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("divisor", [None, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_averages_are_those_of_the_default_body(case, include, divisor):
    sizes, kernel, stride, padding, _, ceil = case
    x = _input(sizes, mortice.float32)
    settings = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil, "count_include_pad": include,
                "divisor_override": divisor}  # fmt: skip
    out = K.avg_pool(x, **settings)
    _near(out, Backend.avg_pool(K, x, **settings))
    shape = K.shape_of(x)
    _near(K.avg_pool_grad(out, x_shape=shape, **settings), Backend.avg_pool_grad(K, out, x_shape=shape, **settings), 1e-5)


@pytest.mark.parametrize("sizes, out", [((9,), (4,)), ((7, 7), (1, 1)), ((10, 13), (7, 3)), ((3, 5), (7, 7)), ((4, 5, 6), (2, 5, 4))])
def test_fitted_windows_are_those_of_the_default_body(sizes, out):
    x = _input(sizes, mortice.float64)
    means = K.adaptive_avg_pool(x, output_size=out)
    _near(means, Backend.adaptive_avg_pool(K, x, output_size=out))
    grad = K.adaptive_avg_pool_grad(means, x_shape=K.shape_of(x), output_size=out)
    _near(grad, Backend.adaptive_avg_pool_grad(K, means, x_shape=K.shape_of(x), output_size=out))
    for got, want in zip(K.adaptive_max_pool(x, output_size=out), Backend.adaptive_max_pool(K, x, output_size=out)):
        _same(got, want)


def test_the_last_nan_and_the_first_maximum_win():
    nan = float("nan")
    x = mortice.tensor([[[1.0, 2.0, 2.0, nan, 3.0, nan]]])
    values, at = mortice.nn.functional.max_pool1d(x, 3, return_indices=True)
    assert values[0, 0, 0] == 2 and bool(values[0, 0, 1].isnan()) and at.tolist() == [[[1, 5]]]


def test_windows_of_nothing_but_minus_infinity_point_into_the_input():
    x = mortice.full((1, 1, 4, 4), float("-inf"))
    _, at = mortice.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert at.tolist() == [[[[0, 1], [4, 5]]]]


def test_places_outside_are_refused():
    g, at = mortice.ones(1, 1, 2)._buffer, mortice.tensor([[[0, 9]]])._buffer
    with pytest.raises(IndexError):
        K.max_pool_grad(g, at, x_shape=(1, 1, 4), ndim=1)
    with pytest.raises(IndexError):
        K.max_pool_take(g, at, ndim=1)


def test_more_windows_than_a_list_holds_are_an_error():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        mortice.nn.functional.adaptive_avg_pool1d(mortice.ones(8, 8), 2**63 - 1)
