"""Reading and writing at positions, against loops in Python; bounds; one result for every number of threads."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lists import array, at, flat, places, shuffled, some  # noqa: E402

import mortice as mt
from mortice.backends import DTYPES
from mortice.dtype import by_name
from mortice.shape import prod

NAMES = [d.name for d in DTYPES]
SHAPES = [(7,), (3, 5), (4, 1, 6), (2, 3, 2, 4)]


def put(place: tuple[int, ...], axis: int, i: int) -> tuple[int, ...]:
    return (*place[:axis], i, *place[axis + 1 :])


def cases(seed: int) -> Any:
    draw = random.Random(seed)
    for shape in SHAPES:
        for axis in range(len(shape)):
            yield draw, shape, axis, draw.choice((0, 1, 5))


@pytest.mark.parametrize("dtype", NAMES)
def test_reading_takes_the_elements_that_the_indices_name(k: Any, dtype: str) -> None:
    for draw, shape, axis, m in cases(1):
        values = some(by_name(dtype), prod(shape), draw)
        x = shuffled(k, values, shape, dtype, draw)
        plain = flat(k, array(k, values, shape, dtype))
        vector = [draw.randrange(shape[axis]) for _ in range(m)]
        out = put(shape, axis, m)
        taken = k.take(x, array(k, vector, (m,)), axis=axis)
        assert k.shape_of(taken) == out
        assert flat(k, taken) == [plain[at(shape, put(p, axis, vector[p[axis]]))] for p in places(out)]
        smaller = tuple(m if i == axis else draw.randint(1, n) for i, n in enumerate(shape))
        for kernel, size in (("take_along_axis", out), ("gather", out), ("gather", smaller)):
            index = [draw.randrange(shape[axis]) for _ in range(prod(size))]
            found = getattr(k, kernel)(x, shuffled(k, index, size, "int64", draw), axis=axis)
            assert k.shape_of(found) == size
            assert flat(k, found) == [plain[at(shape, put(p, axis, i))] for p, i in zip(places(size), index)]


@pytest.mark.parametrize("dtype", NAMES)
def test_writing_goes_in_the_order_of_the_indices(k: Any, dtype: str) -> None:
    d = by_name(dtype)
    combine = {"max": max, "min": min, "prod": lambda a, b: a * b}
    for draw, shape, axis, m in cases(2):
        start = some(d, prod(shape), draw)
        size = tuple(m if i == axis else draw.randint(1, n) for i, n in enumerate(shape))
        values = some(d, prod(size), draw)
        index = [draw.randrange(shape[axis]) for _ in range(prod(size))]
        x, v = shuffled(k, start, shape, dtype, draw), shuffled(k, values, size, dtype, draw)
        i = shuffled(k, index, size, "int64", draw)
        where = [at(shape, put(p, axis, j)) for p, j in zip(places(size), index)]
        added, written = list(start), list(start)
        for place, value in zip(where, values):
            added[place] = max(added[place], value) if dtype == "bool" else added[place] + value
            written[place] = value
        same = lambda found, expected, shape=shape: flat(k, found) == flat(k, array(k, expected, shape, dtype))
        assert same(k.scatter_add(x, i, v, axis=axis), added)
        assert same(k.scatter_write(x, i, v, axis=axis), written)
        assert same(x, start)  # left as it was
        if d.kind not in "fc" and d.kind != "b":
            for how, f in combine.items():
                combined = list(start)
                for place, value in zip(where, values):
                    combined[place] = f(combined[place], value)
                if how != "prod":
                    assert same(k.scatter_combine(x, i, v, axis=axis, how=how), combined)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "bfloat16"])
def test_rows_are_added_and_replaced(k: Any, dtype: str) -> None:
    for draw, shape, axis, m in cases(3):
        size = put(shape, axis, m)
        start, values = some(by_name(dtype), prod(shape), draw), some(by_name(dtype), prod(size), draw)
        index = [draw.randrange(shape[axis]) for _ in range(m)]
        added, written = list(start), list(start)
        for p, value in zip(places(size), values):
            place = at(shape, put(p, axis, index[p[axis]]))
            added[place] += value
            written[place] = value
        x, v = shuffled(k, start, shape, dtype, draw), shuffled(k, values, size, dtype, draw)
        i = array(k, index, (m,))
        assert flat(k, k.index_add(x, i, v, axis=axis)) == flat(k, array(k, added, shape, dtype))
        assert flat(k, k.index_write(x, i, v, axis=axis)) == flat(k, array(k, written, shape, dtype))


def test_extremes_keep_a_nan(k: Any) -> None:
    nan = float("nan")
    x, v = array(k, [1, nan, 2], (3,), "float32"), array(k, [nan, 5, 3, 1], (4,), "float32")
    i = array(k, [0, 1, 2, 2], (4,))
    for how, last in (("max", 3.0), ("min", 1.0)):
        found = flat(k, k.scatter_combine(x, i, v, axis=0, how=how))
        assert [v != v for v in found] == [True, True, False] and found[2] == last


@pytest.mark.parametrize(
    "dtype, top", [("uint8", 2**8), ("uint16", 2**16), ("uint32", 2**32), ("uint64", 2**63), ("int16", 2**15)]
)
def test_extremes_of_integers_reach_their_ends(k: Any, dtype: str, top: int) -> None:
    x, v = array(k, [1, 1], (2,), dtype), array(k, [top - 1, 0, 0, top - 2], (4,), dtype)
    i = array(k, [0, 0, 1, 1], (4,))
    assert flat(k, k.scatter_combine(x, i, v, axis=0, how="max")) == [top - 1, top - 2]
    assert flat(k, k.scatter_combine(x, i, v, axis=0, how="min")) == [0, 0]


def test_sums_of_halves_are_rounded_once(k: Any) -> None:
    n = 1000
    x = array(k, [1.0], (1,), "float16")
    total = k.index_add(x, array(k, [0] * n, (n,)), array(k, [2.0**-12] * n, (n,), "float16"), axis=0)
    assert abs(flat(k, total)[0] - (1 + n * 2.0**-12)) < 2.0**-10


@pytest.mark.parametrize("bad", [-1, 4, 2**62, -(2**62)])
def test_positions_outside_are_refused(k: Any, bad: int) -> None:
    x = array(k, list(range(12)), (4, 3), "float32")
    one = array(k, [0, bad], (2,))
    many = array(k, [0, 1, 2, 0, bad, 1], (2, 3))
    two = k.getitem(x, (slice(0, 2),))
    for call in (
        lambda: k.take(x, one, axis=0), lambda: k.take_along_axis(x, many, axis=0), lambda: k.gather(x, many, axis=0),
        lambda: k.embedding(x, many), lambda: k.scatter_add(x, many, two, axis=0),
        lambda: k.scatter_write(x, many, two, axis=0), lambda: k.index_add(x, one, two, axis=0),
        lambda: k.index_write(x, one, two, axis=0), lambda: k.embedding_grad(two, one, num_weights=4),
        lambda: k.scatter_combine(x, many, two, axis=0, how="max"),
    ):  # fmt: skip
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for an axis of size 4"):
            call()


def test_embedding_gradients_leave_out_the_padding_and_count(k: Any) -> None:
    index, g = [2, 0, 2, 1], [1.0, 2, 3, 4, 5, 6, 7, 8]
    i, rows = array(k, index, (2, 2)), array(k, g, (2, 2, 2), "float32")
    assert flat(k, k.embedding_grad(rows, i, num_weights=4)) == [3, 4, 7, 8, 6, 8, 0, 0]
    assert flat(k, k.embedding_grad(rows, i, num_weights=4, padding_idx=2)) == [3, 4, 7, 8, 0, 0, 0, 0]
    assert flat(k, k.embedding_grad(rows, i, num_weights=4, scale_grad_by_freq=True)) == [3, 4, 7, 8, 3, 4, 0, 0]


@pytest.mark.parametrize("dtype", NAMES)
def test_positions_of_what_is_not_zero(k: Any, dtype: str) -> None:
    draw = random.Random(4)
    for n in (0, 1, 63, 64, 65, 1000, 70001):
        values = [draw.choice((0, 0, 1)) for _ in range(n)]
        x = array(k, values, (n,), dtype)
        assert flat(k, k.flat_nonzero(x)) == [i for i, v in enumerate(values) if v]
    if by_name(dtype).is_floating_point:
        assert flat(k, k.flat_nonzero(array(k, [-0.0, float("nan"), 0.0], (3,), dtype))) == [1]


def test_the_range_of_values(k: Any) -> None:
    assert k.index_range(array(k, list(range(-5, 100)), (105,))) == (-5, 99)
    assert k.index_range(k.broadcast_to(array(k, [3, 1], (2, 1)), (2, 5))) == (1, 3)
    low, high = k.index_range(array(k, [1.0, float("nan"), 2.0], (3,), "float32"))
    assert low != low and high != high
    assert k.index_range(array(k, [0, 1], (2,), "bool")) == (False, True)
    with pytest.raises(RuntimeError):
        k.index_range(array(k, [], (0,)))


def test_any_number_of_threads_gives_one_result(k: Any) -> None:
    draw = random.Random(5)
    n, rows = 60000, 300
    values = array(k, [draw.random() for _ in range(n)], (n,), "float32")
    wide = k.reshape(values, (n // rows, rows))
    where = array(k, [draw.randrange(50) for _ in range(n)], (n,))
    own = mt.get_num_threads()
    seen = []
    for threads in (1, 2, 5):
        mt.set_num_threads(threads)
        try:
            zero = k.full((50,), 0, dtype=by_name("float32"), device=k.device("cpu"))
            table = k.full((50, rows), 0, dtype=by_name("float32"), device=k.device("cpu"))
            index = k.reshape(where, (n // rows, rows))
            seen.append((
                flat(k, k.scatter_add(zero, where, values, axis=0)),
                flat(k, k.scatter_add(table, index, wide, axis=0)),
                flat(k, k.index_add(table, k.getitem(where, (slice(0, n // rows),)), wide, axis=0)),
            ))  # fmt: skip
        finally:
            mt.set_num_threads(own)
    assert seen[0] == seen[1] == seen[2]
