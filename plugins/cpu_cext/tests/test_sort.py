"""Sorting, selecting, searching and distinct elements, against Python's sorted: stable, nan as the largest."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from lists import array, at, flat, places, shuffled  # noqa: E402

from mortice.backends import DTYPES
from mortice.dtype import DType, by_name
from mortice.shape import prod

REAL = [d.name for d in DTYPES if d.kind != "c"]
SHAPES = [(1,), (40,), (300,), (5, 30), (3, 7, 4), (5000,)]


def drawn(d: DType, n: int, draw: random.Random) -> list[Any]:
    """Draw with repetitions, and for floats with all that is special."""
    if d.kind == "f":
        special = [math.nan, math.inf, -math.inf, -0.0, 0.0]
        return [draw.choice(special) if draw.random() < 0.2 else float(draw.randint(-40, 40)) / 4 for _ in range(n)]
    if d.itemsize == 8:
        return [draw.randint(0, 2**62) if draw.random() < 0.5 else draw.randint(0, 5) for _ in range(n)]
    return [draw.randint(-100 if d.kind == "i" else 0, 1 if d.kind == "b" else 100) for _ in range(n)]


def rank(v: Any) -> tuple[bool, Any]:
    return (True, 0) if v != v else (False, v)


def order(row: list[Any], descending: bool) -> list[int]:
    found = sorted(range(len(row)), key=lambda i: rank(row[i]), reverse=descending)
    if descending:  # Python's reverse keeps the order of equal elements too
        assert all(rank(row[a]) >= rank(row[b]) for a, b in zip(found, found[1:]))
    return found


def rows_of(values: list[Any], shape: tuple[int, ...], axis: int) -> Any:
    """Return each row along an axis with the positions of its elements."""
    for p in places((*shape[:axis], 1, *shape[axis + 1 :])):
        where = [at(shape, (*p[:axis], i, *p[axis + 1 :])) for i in range(shape[axis])]
        yield where, [values[w] for w in where]


def spelled(values: list[Any]) -> list[str]:
    return ["nan" if v != v else repr(v) for v in values]


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable_and_puts_nan_at_the_large_end(k: Any, dtype: str, descending: bool) -> None:
    draw = random.Random(1)
    for shape in SHAPES:
        raw = drawn(by_name(dtype), prod(shape), draw)
        x = shuffled(k, raw, shape, dtype, draw)
        values = flat(k, array(k, raw, shape, dtype))
        for axis in range(len(shape)):
            expected = [0] * len(values)
            for where, row in rows_of(values, shape, axis):
                for w, i in zip(where, order(row, descending)):
                    expected[w] = i
            result = k.argsort(x, axis=axis, descending=descending)
            assert flat(k, result) == expected
            sorted_ = flat(k, k.take_along_axis(x, result, axis=axis))
            assert spelled(flat(k, k.sort(x, axis=axis, descending=descending))) == spelled(sorted_)
            pairs = k.sort_pairs(x, axis=axis, descending=descending)
            assert spelled(flat(k, pairs[0])) == spelled(sorted_) and flat(k, pairs[1]) == expected
            for count in {0, 1, shape[axis] // 9, shape[axis]}:
                first = (*(slice(None),) * axis, slice(0, count))
                best, places_ = k.topk(x, count, axis=axis, largest=descending)
                assert flat(k, places_) == flat(k, k.getitem(result, first))
                assert spelled(flat(k, best)) == spelled(flat(k, k.getitem(pairs[0], first)))


def test_the_best_of_short_rows_are_those_of_sorting_them(k: Any) -> None:
    draw = random.Random(4)
    for n in (31, 48, 63, 64, 100, 191, 255, 256, 400):
        for some in ([-1.0, 0.0, 1.0, 2.0], [draw.gauss(0, 1) for _ in range(1000)], [math.nan, math.inf, 1.0, 3.0]):
            raw = [draw.choice(some) for _ in range(4 * n)]
            x = array(k, raw, (4, n), "float32")
            for count in (1, 2, 5, 8, 10, 20):
                for largest in (True, False):
                    order_ = k.getitem(k.argsort(x, axis=1, descending=largest), (slice(None), slice(0, count)))
                    best, places_ = k.topk(x, count, axis=1, largest=largest)
                    assert flat(k, places_) == flat(k, order_)
                    assert spelled(flat(k, best)) == spelled(flat(k, k.take_along_axis(x, order_, axis=1)))


@pytest.mark.parametrize("dtype", [name for name in REAL if name != "bool"])
def test_selecting_finds_what_sorting_would(k: Any, dtype: str) -> None:
    draw = random.Random(2)
    for shape in [*SHAPES, (70001,)]:
        raw = drawn(by_name(dtype), prod(shape), draw)
        x = shuffled(k, raw, shape, dtype, draw)
        values = flat(k, array(k, raw, shape, dtype))
        axis = draw.randrange(len(shape))
        n = shape[axis]
        rows = [row for _, row in rows_of(values, shape, axis)]
        for nth in {1, (n + 1) // 2, n}:
            value, place = k.kthvalue(x, nth, axis=axis)
            assert flat(k, place) == [order(row, False)[nth - 1] for row in rows]
            assert spelled(flat(k, value)) == spelled([row[i] for row, i in zip(rows, flat(k, place))])
        for ignore in (False, True):
            expected = []
            for row in rows:
                numbers = sum(v == v for v in row)
                middle = (max(numbers, 1) - 1) // 2 if ignore else numbers if numbers < n else (n - 1) // 2
                expected.append(order(row, False)[middle])
            value, place = k.median(x, axis=axis, keepdims=True, ignore_nan=ignore)
            assert k.shape_of(value) == (*shape[:axis], 1, *shape[axis + 1 :])
            assert flat(k, place) == expected


@pytest.mark.parametrize("spread", ["narrow", "wide", "ties"])
def test_long_rows_of_wide_numbers(k: Any, spread: str) -> None:
    draw = random.Random(3)
    n = 70001
    if spread == "narrow":
        values = [2**60 + draw.randint(0, 1000) for _ in range(n)]
    elif spread == "wide":
        values = [draw.randint(-(2**63), 2**63 - 1) for _ in range(n)]
    else:  # the upper bits are the same for nearly all
        values = [draw.randint(0, 50) for _ in range(n - 1)] + [2**62]
    assert flat(k, k.argsort(array(k, values, (n,)), axis=0)) == sorted(range(n), key=lambda i: values[i])


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "bfloat16", "uint8"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searching_goes_before_or_after_what_is_equal(k: Any, dtype: str, side: str) -> None:
    draw = random.Random(4)
    d = by_name(dtype)
    for n in (0, 1, 2, 9, 33):
        rows = [sorted(flat(k, array(k, drawn(d, n, draw), (n,), dtype)), key=rank) for _ in range(3)]
        wanted = [flat(k, array(k, drawn(d, 13, draw), (13,), dtype)) for _ in range(3)]
        passed = (lambda x, v: rank(x) < rank(v)) if side == "left" else (lambda x, v: rank(x) <= rank(v))
        values = array(k, sum(wanted, []), (3, 13), dtype)
        own = k.searchsorted(array(k, sum(rows, []), (3, n), dtype), values, side=side)
        assert flat(k, own) == [sum(passed(x, v) for x in row) for row, many in zip(rows, wanted) for v in many]
        one = k.searchsorted(array(k, rows[0], (n,), dtype), values, side=side)
        assert flat(k, one) == [sum(passed(x, v) for x in rows[0]) for many in wanted for v in many]


@pytest.mark.parametrize("dtype", REAL)
def test_distinct_elements_with_places_and_counts(k: Any, dtype: str) -> None:
    draw = random.Random(5)
    for shape in ((0,), (1,), (6, 7), (20000,)):
        values = flat(k, array(k, drawn(by_name(dtype), prod(shape), draw), shape, dtype))
        sorted_ = order(values, False)
        starts = [j for j, i in enumerate(sorted_) if j == 0 or values[sorted_[j - 1]] != values[i]]
        found, first, inverse, counts = k.unique_all(shuffled(k, values, shape, dtype, draw))
        assert flat(k, first) == [sorted_[j] for j in starts]
        assert spelled(flat(k, found)) == spelled([values[sorted_[j]] for j in starts])
        assert flat(k, counts) == [b - a for a, b in zip(starts, [*starts[1:], len(values)])]
        assert k.shape_of(inverse) == shape
        back = [0] * len(values)
        for i, (a, b) in enumerate(zip(starts, [*starts[1:], len(values)])):
            for j in range(a, b):
                back[sorted_[j]] = i
        assert flat(k, inverse) == back


def test_what_has_no_order_is_refused(k: Any) -> None:
    z = array(k, [1j, 2], (2,), "complex64")
    for call in (lambda: k.argsort(z, axis=0), lambda: k.topk(z, 1, axis=0), lambda: k.unique_all(z)):
        with pytest.raises(TypeError, match="complex numbers have no order"):
            call()
    with pytest.raises(RuntimeError, match="from 0 to 2; got 3"):
        k.topk(array(k, [1, 2], (2,)), 3, axis=0)
