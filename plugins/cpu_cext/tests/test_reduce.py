"""Reductions of the C extension against closed forms, Python's own numbers and the default bodies."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from mortice.backends import DTYPES, Backend

pytest.importorskip("mortice_cpu_cext._cext", reason="the extension module is not built")
import lists

from mortice_cpu_cext.backend import CextBackend

BY_NAME = {d.name: d for d in DTYPES}
K = CextBackend()
DEVICE = K.device("cpu")
REAL = [d for d in DTYPES if d.kind in "uif"]
FLOATS = [d for d in DTYPES if d.kind == "f"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6, "complex64": 1e-6}


def array(values, shape, dtype=BY_NAME["float64"]):
    return lists.array(K, values, tuple(shape), dtype.name)


def numbers(x):
    return lists.flat(K, x)


def ramp(shape, dtype=BY_NAME["float64"], modulus=11):
    n = math.prod(shape)
    return array([(i * 7 + i // 5) % modulus - (modulus // 2 if dtype.kind in "if" else 0) for i in range(n)], shape, dtype)


def along(values, shape, axes):
    """Group a flat row-major list by the axes that stay."""
    groups = {}
    for index, value in zip(itertools.product(*map(range, shape)), values):
        groups.setdefault(tuple(i for d, i in enumerate(index) if d not in axes), []).append(value)
    return list(groups.values())


def close(x, wanted, dtype):
    tolerance = TOLERANCE.get(dtype.name, 1e-12)
    got = numbers(x)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(1, abs(b)), (a, b)


SHAPES = [((24,), (0,)), ((4, 6), (0,)), ((4, 6), (1,)), ((3, 5, 4), (1,)), ((3, 5, 4), (0, 2)), ((3, 5, 4), (1, 2)),
          ((2, 1, 40), (2,)), ((70, 3), (0,)), ((3, 70), (0,)), ((5, 2, 3, 4), (1, 3))]  # fmt: skip


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("shape, axes", SHAPES)
def test_sum_max_min_and_counts_over_axes_are_those_of_the_groups(dtype, shape, axes):
    x = ramp(shape, dtype)
    groups = along(numbers(x), shape, axes)
    wrap = 1 << 8 * dtype.itemsize if dtype.kind == "u" else 0
    close(K.sum(x, axis=axes), [sum(g) % wrap if wrap else sum(g) for g in groups], dtype)
    assert numbers(K.max(x, axis=axes)) == [max(g) for g in groups]
    assert numbers(K.min(x, axis=axes)) == [min(g) for g in groups]
    assert numbers(K.count_nonzero(x, axis=axes)) == [sum(v != 0 for v in g) for g in groups]
    assert numbers(K.any(x, axis=axes)) == [any(g) for g in groups]
    assert numbers(K.all(x, axis=axes)) == [all(g) for g in groups]
    kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
    assert K.shape_of(K.sum(x, axis=axes, keepdims=True)) == kept
    if len(axes) == 1:
        assert numbers(K.argmax(x, axis=axes[0])) == [g.index(max(g)) for g in groups]
        assert numbers(K.argmin(x, axis=axes[0])) == [g.index(min(g)) for g in groups]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape, axes", SHAPES)
def test_averages_agree_with_the_default_bodies(dtype, shape, axes):
    x = ramp(shape, dtype)
    for name, attributes in [("mean", {}), ("var", {"correction": 0}), ("std", {"correction": 1}), ("logsumexp", {})]:
        wanted = getattr(Backend, name)(K, K.astype(x, BY_NAME["float64"]), axis=axes, **attributes)
        close(getattr(K, name)(x, axis=axes, **attributes), numbers(wanted), dtype)


@pytest.mark.parametrize("shape", [(6, 8, 10), (40, 3, 30)])
def test_any_strides_give_what_a_copy_gives(shape):
    x = ramp(shape)
    views = [K.permute_dims(x, (2, 0, 1)), K.getitem(x, (slice(None), slice(None, None, -1), slice(1, None, 2))),
             K.getitem(K.permute_dims(x, (1, 2, 0)), (slice(None, None, 2), slice(None, None, -3))),
             K.broadcast_to(K.getitem(x, (slice(0, 1),)), (4, *shape[1:]))]  # fmt: skip
    for view, name in itertools.product(views, ["sum", "max", "min", "var", "any", "prod", "argmax", "argmin"]):
        for axis in [None, 0, 1, 2] + ([] if name.startswith("arg") else [(0, 2), (1, 2)]):
            got = getattr(K, name)(view, axis=axis)
            close(got, numbers(getattr(K, name)(K.copy(view), axis=axis)), BY_NAME["float64"])


@pytest.mark.parametrize("shape", [(5000,), (9, 700), (700, 9), (3, 70, 40)])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "sum", "var", "logsumexp"])
def test_a_nan_anywhere_is_the_result(shape, name):
    n = math.prod(shape)
    for place in {0, 1, n // 2, n - 2, n - 1}:
        values = [float(i % 13) for i in range(n)]
        values[place] = math.nan
        for dtype in FLOATS:
            x = array(values, shape, dtype)
            (got,) = numbers(getattr(K, name)(x))
            assert got == place if name.startswith("arg") else got != got
            groups = along(values, shape, (0,))
            for a, g in zip(numbers(getattr(K, name)(x, axis=0)), groups):
                has = any(v != v for v in g)
                if name.startswith("arg"):
                    best = max if name == "argmax" else min
                    assert a == (next(i for i, v in enumerate(g) if v != v) if has else g.index(best(g)))
                else:
                    assert (a != a) == has


def test_the_first_of_equals_is_found():
    for n in (3, 17, 100, 9000):
        values = [1.0] * n
        values[n // 3] = values[n - 1] = 5.0
        for shape in ((n,), (n, 2)):
            x = array([v for v in values for _ in range(n and len(shape))], shape)
            assert set(numbers(K.argmax(x, axis=0))) == {n // 3}


def test_empty_arrays_give_the_neutral_element_or_an_error():
    x = array([], (0, 3))
    assert numbers(K.sum(x, axis=0)) == [0, 0, 0]
    assert numbers(K.prod(x, axis=0)) == [1, 1, 1]
    assert numbers(K.any(x, axis=0)) == [False] * 3
    assert numbers(K.all(x, axis=0)) == [True] * 3
    assert numbers(K.logsumexp(x, axis=0)) == [-math.inf] * 3
    assert all(v != v for v in numbers(K.mean(x, axis=0)) + numbers(K.var(x, axis=0)))
    assert K.shape_of(K.max(x, axis=1)) == (0,)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(RuntimeError, match="got none"):
            getattr(K, name)(x, axis=0)


def test_integers_wrap():
    x = array([200, 100], (2,), BY_NAME["uint8"])
    assert numbers(K.sum(x)) == [44]
    assert numbers(K.prod(x)) == [20000 % 256]
    big = array([2**62] * 4, (4,), BY_NAME["int64"])
    assert numbers(K.sum(big)) == [0]


def test_complex_numbers_are_reduced_by_their_parts():
    re, im = ramp((6, 5)), ramp((6, 5), modulus=7)
    x = K.complex(re, im)
    for axis in (None, 0, 1):
        got = numbers(K.sum(x, axis=axis))
        assert got == [complex(a, b) for a, b in zip(numbers(K.sum(re, axis=axis)), numbers(K.sum(im, axis=axis)))]
        wanted = [a + b for a, b in zip(numbers(K.var(re, axis=axis)), numbers(K.var(im, axis=axis)))]
        close(K.var(x, axis=axis), wanted, BY_NAME["float64"])


def test_float32_sums_stay_near_the_exact_one():
    rng = random.Random(1)
    values = [rng.random() for _ in range(200_000)]
    for shape, axis in [((200_000,), None), ((2, 100_000), 1), ((100_000, 2), 0), ((200, 1000), 0)]:
        x = array(values, shape, BY_NAME["float32"])
        groups = along(numbers(x), shape, range(len(shape)) if axis is None else (axis,))
        for got, g in zip(numbers(K.sum(x, axis=axis)), groups):
            assert abs(got - math.fsum(g)) <= 4e-7 * math.fsum(g)


def test_variance_does_not_suffer_from_a_far_mean():
    values = [1e4 + (i % 10) for i in range(10_000)]
    exact = 8.25
    for shape, axis in [((10_000,), None), ((10_000, 1), 0), ((100, 100), None)]:
        x = array(values, shape, BY_NAME["float32"])
        (got,) = numbers(K.var(x, axis=axis, correction=0))
        assert abs(got - exact) < 1e-4


def test_logsumexp_neither_overflows_nor_loses_infinities():
    inf = math.inf
    x = array([1000.0, 1000.0, -inf, -inf, inf, 1.0], (3, 2))
    got = numbers(K.logsumexp(x, axis=1))
    assert abs(got[0] - (1000 + math.log(2))) < 1e-12
    assert got[1:] == [-inf, inf]


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_what_has_no_order_is_refused(name):
    with pytest.raises(RuntimeError, match="real numbers"):
        getattr(K, name)(K.complex(ramp((3,)), ramp((3,))))


def test_axes_outside_are_refused():
    with pytest.raises(IndexError):
        K.sum(ramp((2, 3)), axis=2)
    with pytest.raises(IndexError):
        K.argmax(ramp((2, 3)), axis=-3)
