"""Scans of the C extension against Python's own numbers."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from mortice.backends import DTYPES

pytest.importorskip("mortice_cpu_cext._cext", reason="the extension module is not built")
import lists

from mortice_cpu_cext.backend import CextBackend

BY_NAME = {d.name: d for d in DTYPES}
K = CextBackend()
DEVICE = K.device("cpu")
REAL = [d for d in DTYPES if d.kind in "uif"]
TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 1e-6}
SHAPES = [((40,), 0), ((4, 33), 1), ((33, 4), 0), ((33, 2), 0), ((2, 9, 70), 1), ((2, 9, 3), 1), ((3, 1, 5), 1)]


def array(values, shape, dtype=BY_NAME["float64"]):
    return lists.array(K, values, tuple(shape), dtype.name)


def numbers(x):
    return lists.flat(K, x)


def scanned(values, shape, axis, scan):
    """Apply `scan`, of a list to a list, along an axis of a flat row-major list."""
    lines, places = {}, {}
    for at, index in enumerate(itertools.product(*map(range, shape))):
        key = index[:axis] + index[axis + 1 :]
        lines.setdefault(key, []).append(values[at])
        places.setdefault(key, []).append(at)
    out = [None] * len(values)
    for key, line in lines.items():
        for at, value in zip(places[key], scan(line)):
            out[at] = value
    return out


def close(x, wanted, dtype):
    tolerance = TOLERANCE.get(dtype.name, 1e-12)
    for a, b in zip(numbers(x), wanted, strict=True):
        assert a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(1, abs(b)), (a, b)


def last_extremes(line, reaches):
    best, place, out = line[0], 0, []
    for i, value in enumerate(line):
        if reaches(value, best) or value != value:
            best, place = value, i
        out.append((best, place))
    return out


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_sums_products_and_extremes_run_along_an_axis(dtype, shape, axis):
    n = math.prod(shape)
    small = [(i * 5 + i // 3) % 3 + (dtype.kind != "u") * -1 for i in range(n)]
    x = array(small, shape, dtype)
    wrap = (1 << 8 * dtype.itemsize) if dtype.kind == "u" else None
    sums = scanned(small, shape, axis, lambda line: list(itertools.accumulate(line)))
    close(K.cumulative_sum(x, axis=axis), [s % wrap if wrap else s for s in sums], dtype)
    signs = array([1 - 2 * (i % 3 == 0) if dtype.kind != "u" else 1 + (i % 9 == 0) for i in range(n)], shape, dtype)
    products = scanned(numbers(signs), shape, axis, lambda line: list(itertools.accumulate(line, lambda a, b: a * b)))
    close(K.cumulative_prod(signs, axis=axis), [p % wrap if wrap else p for p in products], dtype)
    for kernel, reaches in [(K.cumulative_max, lambda a, b: a >= b), (K.cumulative_min, lambda a, b: a <= b)]:
        values, places = kernel(x, axis=axis)
        wanted = scanned(small, shape, axis, lambda line, reaches=reaches: last_extremes(line, reaches))
        assert list(zip(numbers(values), numbers(places))) == wanted


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min", "logcumsumexp"])
def test_any_strides_give_what_a_copy_gives(name):
    x = array([((i * 7) % 11 - 5) / 4 for i in range(6 * 8 * 10)], (6, 8, 10))
    views = [K.permute_dims(x, (2, 0, 1)), K.getitem(x, (slice(None), slice(None, None, -1), slice(1, None, 2))),
             K.getitem(x, (slice(None), slice(None), slice(None, None, -1)))]  # fmt: skip
    for view, axis in itertools.product(views, range(3)):
        got, wanted = getattr(K, name)(view, axis=axis), getattr(K, name)(K.copy(view), axis=axis)
        for a, b in zip(*((got, wanted) if isinstance(got, tuple) else ((got,), (wanted,)))):
            assert numbers(a) == numbers(b)


def test_a_nan_stays_once_met():
    x = array([1.0, math.nan, 3.0, math.nan, 0.0], (5,))
    for kernel in (K.cumulative_max, K.cumulative_min):
        values, places = kernel(x, axis=0)
        assert [v != v for v in numbers(values)] == [False, True, True, True, True]
        assert numbers(places) == [0, 1, 1, 3, 3]
    for kernel in (K.cumulative_sum, K.cumulative_prod, K.logcumsumexp):
        assert [v != v for v in numbers(kernel(x, axis=0))] == [False, True, True, True, True]


@pytest.mark.parametrize("shape, axis", [((40_003,), 0), ((3, 1001), 1), ((20_000, 2), 0), ((30, 5), 0)])
def test_doubles_are_added_one_by_one(shape, axis):
    rng = random.Random(3)
    values = [rng.gauss(0, 1) for _ in range(math.prod(shape))]
    x = array(values, shape)
    assert numbers(K.cumulative_sum(x, axis=axis)) == scanned(values, shape, axis, lambda line: list(itertools.accumulate(line)))
    back = K.cumulative_sum(K.getitem(x, tuple(slice(None, None, -1) for _ in shape)), axis=axis)
    assert numbers(back) == scanned(values[::-1], shape, axis, lambda line: list(itertools.accumulate(line)))


@pytest.mark.parametrize("shape", [(150_000,), (150_000, 2), (2, 150_000)])
def test_long_sums_of_float32_stay_near_the_exact_ones(shape):
    rng = random.Random(2)
    values = [rng.random() for _ in range(math.prod(shape))]
    x = array(values, shape, BY_NAME["float32"])
    axis = 0 if shape[0] > 2 else 1
    got = K.cumulative_sum(x, axis=axis)
    exact = K.cumulative_sum(K.astype(x, BY_NAME["float64"]), axis=axis)
    apart = K.max(K.abs(K.divide(K.subtract(K.astype(got, BY_NAME["float64"]), exact), exact)))
    assert numbers(apart)[0] < 4e-7


def test_logcumsumexp_neither_overflows_nor_loses_infinities():
    inf = math.inf
    got = numbers(K.logcumsumexp(array([-inf, 1000.0, 1000.0, inf, 5.0], (5,)), axis=0))
    assert got[0] == -inf and got[1] == 1000 and abs(got[2] - 1000 - math.log(2)) < 1e-12 and got[3:] == [inf, inf]


def test_empty_and_zero_dimensional_arrays():
    for shape in ((0,), (2, 0), (0, 3)):
        assert K.shape_of(K.cumulative_sum(array([], shape), axis=0)) == shape
        values, places = K.cumulative_max(array([], shape), axis=0)
        assert K.shape_of(values) == K.shape_of(places) == shape
    assert numbers(K.cumulative_sum(array([3.0], ()), axis=0)) == [3.0]


def test_axes_outside_are_refused():
    with pytest.raises(IndexError):
        K.cumulative_sum(array([1.0], (1,)), axis=1)
