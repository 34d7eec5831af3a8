"""Elementwise kernels of two and three operands: against Python's own numbers, and every way of lying in memory."""

from __future__ import annotations

import cmath
import itertools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from mortice.backends import DTYPES, Backend
from mortice.dtype import by_name

INTS = [d.name for d in DTYPES if d.kind in "ui"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
EPS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2.5e-7, "float64": 5e-16, "complex64": 5e-7, "complex128": 1e-15}


def array(k: Any, numbers: Any, dtype: str, shape: Any = None) -> Any:
    d, numbers = by_name(dtype), list(numbers)
    x = k.full((len(numbers),), 0, dtype=d, device=k.device("cpu"))
    for i, v in enumerate(numbers):
        x = k.setitem(x, (i,), v)
    return x if shape is None else k.reshape(x, shape)


def values(k: Any, x: Any) -> Any:
    return k.to_host(x).tolist()


def flat(k: Any, x: Any) -> Any:
    return values(k, k.reshape(k.copy(x), (-1,)))


def limits(dtype: str) -> tuple[int, int]:
    d = by_name(dtype)
    bits = 8 * d.itemsize
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if d.is_signed else (0, 2**bits - 1)


def wrapped(n: int, dtype: str) -> int:
    low, high = limits(dtype)
    return (n - low) % (high - low + 1) + low


def integers(dtype: str) -> list[int]:
    low, high = limits(dtype)
    few = [low, low + 1, high, high - 1, high // 3, 0, 1, 2, 3, 7]
    return few + ([-1, -2, -7] if low else [])


def agree(got: Any, want: Any, tolerance: float) -> bool:
    if got != got or want != want:
        return bool(got != got and want != want)
    return bool(got == want or abs(got - want) <= tolerance * abs(want))


def power(x: int, y: int) -> int:
    return x**y if y >= 0 else {1: 1, -1: 1 - 2 * (y % 2)}.get(x, 0)


def shift_right(x: int, y: int) -> int:
    return x >> y if 0 <= y < 100 else -1 if x < 0 else 0


WHOLE: dict[str, Callable[[int, int], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "maximum": max, "minimum": min, "gcd": math.gcd,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "logical_and": lambda x, y: bool(x and y),
    "logical_or": lambda x, y: bool(x or y), "logical_xor": lambda x, y: bool(x) != bool(y),
    "floor_divide": lambda x, y: x // y if y else 0, "remainder": lambda x, y: x % y if y else 0,
    "fmod": lambda x, y: x - y * (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) if y else 0,
    "bitwise_left_shift": lambda x, y: x << y if 0 <= y < 64 else 0, "bitwise_right_shift": shift_right,
}  # fmt: skip


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", WHOLE)
def test_integers(k: Any, name: str, dtype: str) -> None:
    pairs = list(itertools.product(integers(dtype), repeat=2))
    x, y = (array(k, numbers, dtype) for numbers in zip(*pairs))
    got = values(k, getattr(k, name)(x, y))
    want = [WHOLE[name](a, b) for a, b in pairs]
    assert got == [w if isinstance(w, bool) else wrapped(w, dtype) for w in want]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_every_quotient_of_bytes(k: Any, name: str, dtype: str) -> None:
    pairs = list(itertools.product(range(256) if dtype == "uint8" else range(-128, 128), repeat=2))
    x, y = (array(k, numbers, dtype) for numbers in zip(*pairs))
    assert values(k, getattr(k, name)(x, y)) == [wrapped(WHOLE[name](a, b), dtype) for a, b in pairs]


@pytest.mark.parametrize("dtype", ["uint16", "int16"])
def test_quotients_of_16_bits_next_to_whole_numbers(k: Any, dtype: str) -> None:
    most = 2**16 - 1 if dtype == "uint16" else 2**15 - 1
    divisors = (1, 2, 3, 7, 181, 255, 256, 257, most - 1, most)
    pairs = [(b * q + e, b) for b in divisors for q in {1, 2, most // b} for e in (-1, 0, 1) if 0 <= b * q + e <= most]
    x, y = (array(k, numbers, dtype) for numbers in zip(*pairs))
    assert values(k, k.floor_divide(x, y)) == [a // b for a, b in pairs]


@pytest.mark.parametrize("dtype", INTS)
def test_integer_powers_wrap(k: Any, dtype: str) -> None:
    pairs = list(
        itertools.product(integers(dtype), [0, 1, 2, 3, 7, 20] + ([-1, -2] if by_name(dtype).is_signed else []))
    )
    x, y = (array(k, numbers, dtype) for numbers in zip(*pairs))
    assert values(k, k.pow(x, y)) == [wrapped(power(a, b), dtype) for a, b in pairs]


def floor_divide(x: float, y: float) -> float:
    try:
        return float(x // y)
    except ZeroDivisionError:
        return math.copysign(math.inf, x) * math.copysign(1, y) if x == x and x else math.nan


def remainder(x: float, y: float) -> float:
    return x % y if y and not math.isinf(x) else math.nan


def fmod(x: float, y: float) -> float:
    return math.fmod(x, y) if y and not math.isinf(x) else math.nan


def divide(x: float, y: float) -> float:
    if y:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)


def either(pick: Callable[..., float]) -> Callable[[float, float], float]:
    return lambda x, y: math.nan if x != x or y != y else pick(x, y)


def add_logs(x: float, y: float) -> float:
    if x == y or x != x or y != y:
        return x + y if x != y else x + math.log(2.0)
    return max(x, y) + (math.log1p(math.exp(-abs(x - y))))


REAL: dict[str, Callable[[float, float], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": divide,
    "maximum": either(max), "minimum": either(min), "equal": operator.eq, "not_equal": operator.ne,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "logical_and": lambda x, y: bool(x and y), "logical_or": lambda x, y: bool(x or y),
    "logical_xor": lambda x, y: bool(x) != bool(y), "copysign": math.copysign, "hypot": math.hypot, "atan2": math.atan2,
    "floor_divide": floor_divide, "remainder": remainder, "fmod": fmod, "logaddexp": add_logs,
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 3.5, 7.25, 100.0, -0.0625, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", REAL)
def test_floats(k: Any, name: str, dtype: str) -> None:
    pairs = [(a, b) for a, b in itertools.product(SPECIAL, repeat=2)]
    x, y = (array(k, numbers, dtype) for numbers in zip(*pairs))
    got = values(k, getattr(k, name)(x, y))
    tolerance = 0 if name in ("copysign", "maximum", "fmod") else 8 * EPS[dtype]
    wrong = [(a, b, g) for (a, b), g in zip(pairs, got) if not agree(g, REAL[name](a, b), tolerance)]
    assert not wrong


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers(k: Any, dtype: str) -> None:
    pairs = [(a, b) for a, b in itertools.product([*SPECIAL, 1.001, 1e-5, 10.0], [*SPECIAL, 1e-3, 11.0])]
    x, y = (array(k, numbers, dtype) for numbers in zip(*pairs))
    wide = [values(k, k.astype(v, by_name("float64"))) for v in (x, y)]
    got = values(k, k.astype(k.pow(x, y), by_name("float64")))
    for a, b, g in zip(*wide, got):
        try:
            want = math.pow(a, b)
        except OverflowError:
            want = math.inf if a > 0 or b % 2 == 0 else -math.inf
        except ValueError:
            want = math.inf if a == 0 else math.nan
            want = -want if a == 0 and math.copysign(1, a) < 0 and b % 2 == 1 else want
        low = abs(want) < 1e-4 and dtype == "float16" or abs(want) < 1e-37 and dtype != "float64"
        high = {"float16": 65504, "float64": 1.7e308}.get(dtype, 3e38)
        assert low or (abs(want) > high and abs(g) > 0.99 * high) or agree(g, want, 4 * EPS[dtype]), (a, b)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers(k: Any, dtype: str) -> None:
    some = [0j, 1 + 0j, 1j, -1.5 + 2j, 3 - 4j, 0.25 - 0.125j]
    pairs = list(itertools.product(some, repeat=2))
    x, y = (array(k, numbers, dtype) for numbers in zip(*pairs))
    tolerance = 4 * EPS[dtype]
    for name, of in (("add", operator.add), ("subtract", operator.sub), ("multiply", operator.mul), ("equal", operator.eq),
                     ("not_equal", operator.ne), ("logical_and", lambda a, b: bool(a and b))):  # fmt: skip
        assert all(agree(g, of(*p), tolerance) for p, g in zip(pairs, values(k, getattr(k, name)(x, y)))), name
    for (a, b), g in zip(pairs, values(k, k.divide(x, y))):
        assert agree(g, a / b, tolerance) if b else not cmath.isfinite(g)
    for (a, b), g in zip(pairs, values(k, k.pow(x, y))):
        if a:
            assert abs(g - a**b) <= 8 * tolerance * abs(a**b)
    joined = k.complex(array(k, [1.0, -0.0], "float64"), array(k, [math.inf, -0.0], "float64"))
    assert values(k, joined)[0] == complex(1, math.inf) and math.copysign(1, values(k, joined)[1].imag) == -1


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours(k: Any, dtype: str) -> None:
    one = array(k, [1.0, 1.0, 0.0, -0.0, math.nan, 1.0, 2.0], dtype)
    to = array(k, [2.0, 0.0, -1.0, 0.0, 1.0, 1.0, math.inf], dtype)
    got = values(k, k.nextafter(one, to))
    up, down = got[0] - 1.0, 1.0 - got[1]
    assert up == 2 * down and up == {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}[dtype]
    assert -1e-7 < got[2] < 0 and got[3] == 0 and got[4] != got[4] and got[5] == 1.0 and got[6] == 2.0 + 2 * up


@pytest.mark.parametrize("dtype", ["bool", *INTS, *FLOATS, *COMPLEX])
@pytest.mark.parametrize("n", [0, 1, 3, 16, 67, 5000])
def test_choices(k: Any, dtype: str, n: int) -> None:
    a, b = (
        ([i % m for i in range(n)] for m in (2, 2)) if dtype == "bool" else ([i % m for i in range(n)] for m in (5, 7))
    )
    truth = [i % 3 == 0 for i in range(n)]
    cond, x, y = array(k, truth, "bool"), array(k, a, dtype), array(k, b, dtype)
    assert values(k, k.where(cond, x, y)) == [v if c else w for c, v, w in zip(truth, a, b)]
    number = True if dtype == "bool" else 3
    assert values(k, k.where(cond, number, y)) == [number if c else w for c, w in zip(truth, b)]
    assert values(k, k.where(cond, x, number)) == [v if c else number for c, v in zip(truth, a)]
    if dtype not in ("bool", *COMPLEX):
        assert values(k, k.clip(x, 1, 3)) == [min(max(v, 1), 3) for v in a]
        assert values(k, k.clip(x, y, 3)) == [min(max(v, w), 3) for v, w in zip(a, b)]
        assert values(k, k.clip(x, None, 3)) == [min(v, 3) for v in a]
        assert values(k, k.clip(x, 3)) == [max(v, 3) for v in a]


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_interpolation_is_the_default_body(k: Any, dtype: str) -> None:
    x, y = array(k, range(40), dtype), array(k, range(60, 20, -1), dtype)
    w = k.divide(array(k, range(40), dtype), 39)
    for weight in (w, 0.25, 0.75):
        got, want = values(k, k.lerp(x, y, weight)), values(k, Backend.lerp(k, x, y, weight))
        assert all(abs(g - v) <= 60 * EPS[dtype] for g, v in zip(got, want))
    assert values(k, k.lerp(x, y, 1.0)) == values(k, y) and values(k, k.lerp(x, y, 0.0)) == values(k, x)


@pytest.mark.parametrize("n", [1, 3, 8, 33])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_limits_and_weights_that_are_numbers_give_what_arrays_do(k: Any, dtype: str, n: int) -> None:
    nan, inf = math.nan, math.inf
    some = [-0.0, 0.0, nan, 1.5, -inf, 2.5, inf, -2.5]
    a, b = [some[i % 8] for i in range(n)], [some[(3 * i + 1) % 8] for i in range(n)]
    x, y = array(k, a, dtype), array(k, b, dtype)
    spelled = lambda out: [repr(v) for v in values(k, out)]
    for number in (-0.0, 0.0, 0.3, 0.5, 0.75, 1.0, -2.0, nan):
        same = array(k, [number] * n, dtype)
        assert spelled(k.lerp(x, y, number)) == spelled(k.lerp(x, y, same))
        assert spelled(k.clip(x, number, 2.0)) == spelled(k.clip(x, same, array(k, [2.0] * n, dtype)))
        assert spelled(k.clip(x, number, y)) == spelled(k.clip(x, same, y))


def test_numbers_beside_halves_are_rounded_once(k: Any) -> None:
    x = array(k, [3.0] * 5, "bfloat16")
    want = values(k, k.astype(k.multiply(array(k, [3.0], "float32"), 0.1), by_name("bfloat16")))
    assert values(k, k.multiply(x, 0.1)) == want * 5 and values(k, k.multiply(0.1, x)) == want * 5
    assert values(k, k.subtract(1.0, x)) == [-2.0] * 5
    wide = k.broadcast_to(array(k, [3.0], "bfloat16"), (2, 3))
    assert flat(k, k.multiply(wide, 0.1)) == want * 6


LAYOUTS: list[Callable[[Any, Any], Any]] = [
    lambda k, x: x,
    lambda k, x: k.permute_dims(k.copy(k.permute_dims(x, (2, 0, 1))), (1, 2, 0)),
    lambda k, x: k.permute_dims(k.copy(k.permute_dims(x, (0, 2, 1))), (0, 2, 1)),
    lambda k, x: k.getitem(k.reshape(k.stack([x, x], -1), (*k.shape_of(x)[:2], -1)), (..., slice(None, None, 2))),
    lambda k, x: k.flip(k.copy(k.flip(x, 2)), 2),
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bfloat16", "float32", "int64", "complex128"])
def test_every_layout_and_broadcast(k: Any, dtype: str) -> None:
    draw = random.Random(dtype)
    for _ in range(150):
        shape = [draw.choice([1, 2, 3, 8, 9, 20]) for _ in range(3)]
        sides = [[n if draw.random() < 0.6 else 1 for n in shape] for _ in range(2)]
        counts = [list(range(1, math.prod(s) + 1)) for s in sides]
        x, y = (k.reshape(k.astype(k.arange(1, len(c) + 1, 1, dtype=by_name("int64"), device=k.device("cpu")), by_name(dtype)), s)
                for c, s in zip(counts, sides))  # fmt: skip
        out = [max(a, b) for a, b in zip(*sides)]
        plain = [flat(k, k.broadcast_to(v, tuple(out))) for v in (x, y)]
        x, y = draw.choice(LAYOUTS)(k, x), draw.choice(LAYOUTS)(k, y)
        got = k.less(k.real(x), k.real(y)) if dtype in COMPLEX else k.less(x, y)
        assert k.shape_of(got) == tuple(out)
        assert flat(k, got) == [a.real < b.real for a, b in zip(*plain)]
        assert flat(k, k.subtract(k.add(x, y), y)) == plain[0] or dtype == "bfloat16"
        assert flat(k, k.where(got, y, x)) == [b if a.real < b.real else a for a, b in zip(*plain)]


@pytest.mark.parametrize("n", [1, 3, 15, 16, 31, 32, 33, 64, 65, 127, 300, 1100])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "int64"])
def test_a_number_stands_beside_each_row(k: Any, dtype: str, n: int) -> None:
    rows = 17
    counted = [(7 * i) % 101 for i in range(rows * n)]
    x, c, d = array(k, counted, dtype, (rows, n)), *(array(k, [(i * f) % 53 for i in range(rows)], dtype, (rows, 1)) for f in (5, 11))
    truth = k.less(c, d)
    beside = [[v for v in flat(k, each) for _ in range(n)] for each in (c, d, truth)]
    spread = [k.broadcast_to(each, (rows, n)) for each in (c, d)]
    for first, second, a, b in (
        (x, c, counted, beside[0]), (c, x, beside[0], counted), (*spread, *beside[:2]), (spread[0], x, beside[0], counted),
    ):  # fmt: skip
        wide = [i + j for i, j in zip(a, b)]
        assert flat(k, k.add(first, second)) == wide
        assert flat(k, k.maximum(first, second)) == [max(i, j) for i, j in zip(a, b)]
        assert flat(k, k.less(first, second)) == [i < j for i, j in zip(a, b)]
        assert flat(k, k.equal(first, second)) == [i == j for i, j in zip(a, b)]
        for cond, chosen in ((truth, beside[2]), (k.less(x, c), [i < j for i, j in zip(counted, beside[0])])):
            assert flat(k, k.where(cond, first, second)) == [i if w else j for w, i, j in zip(chosen, a, b)]
    low, high = k.minimum(c, d), k.maximum(c, d)
    ends = [(min(i, j), max(i, j)) for i, j in zip(*beside[:2])]
    assert flat(k, k.clip(x, low, high)) == [min(max(v, i), j) for v, (i, j) in zip(counted, ends)]
    if dtype in FLOATS:
        assert flat(k, k.lerp(x, c, k.full((), 1.0, dtype=by_name(dtype), device=k.device("cpu")))) == beside[0]


def test_large_arrays_on_threads(k: Any) -> None:
    n = 300_001
    x = k.arange(0, n, 1, dtype=by_name("int64"), device=k.device("cpu"))
    y = k.subtract(k.multiply(x, 3), x)
    assert flat(k, y)[:: n // 7] == [2 * i for i in range(n)][:: n // 7]
    column = k.reshape(k.getitem(x, (slice(0, 100_000),)), (100_000, 1))
    row = k.getitem(x, (slice(0, 3),))
    assert flat(k, k.add(column, row))[-3:] == [99_999, 100_000, 100_001]


def test_what_does_not_fit_is_refused(k: Any) -> None:
    x, y = array(k, [1.0], "float32"), array(k, [1.0], "float64")
    with pytest.raises(TypeError, match="one dtype"):
        k.add(x, y)
    with pytest.raises(TypeError, match="array of this backend"):
        k.add(1, 2)
    with pytest.raises(ValueError, match="broadcast"):
        k.add(array(k, [1.0, 2.0], "float32"), array(k, [1.0, 2.0, 3.0], "float32"))
    with pytest.raises(TypeError, match="not supported"):
        k.bitwise_and(x, x)
    assert values(k, k.logical_and(x, array(k, [0], "int8"))) == [False]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_operands_that_stand_still_along_a_line(k: Any, dtype: str) -> None:
    """Whichever of them moves: nothing is read beside a number."""
    column, row = list(range(1, 5)), [i % 7 for i in range(70)]
    x, y = array(k, column, dtype, (4, 1)), array(k, row, dtype, (1, 70))
    assert flat(k, k.clip(x, y, None)) == [max(a, b) for a in column for b in row]
    assert flat(k, k.clip(y, x, None)) == [max(a, b) for a in column for b in row]
    assert flat(k, k.clip(x, x, y)) == [min(a, b) for a in column for b in row]
    if dtype != "int64":
        assert flat(k, k.addcmul(x, x, y, 2)) == [a + 2 * a * b for a in column for b in row]
        assert flat(k, k.addcmul(x, y, x, 2)) == [a + 2 * a * b for a in column for b in row]
        assert flat(k, k.addcmul(y, x, x, 2)) == [b + 2 * a * a for a in column for b in row]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bfloat16"])
@pytest.mark.parametrize("few", [1, 2, 3, 7, 8])
def test_lines_of_a_few_elements(k: Any, dtype: str, few: int) -> None:
    """What is short within and long without goes along the longer axis: corners of boxes, colours of pixels."""
    many, much = 40, 3
    a, b = [i % 11 for i in range(much * few)], [i % 7 for i in range(many * few)]
    x, y = array(k, a, dtype, (much, 1, few)), array(k, b, dtype, (many, few))
    places = list(itertools.product(range(much), range(many), range(few)))
    assert flat(k, k.add(x, y)) == [a[i * few + c] + b[j * few + c] for i, j, c in places]
    assert flat(k, k.less(x, y)) == [a[i * few + c] < b[j * few + c] for i, j, c in places]
    assert flat(k, k.where(k.less(x, y), x, y)) == [min(a[i * few + c], b[j * few + c]) for i, j, c in places]
    wide = array(k, range(many * (few + 2)), "float32" if dtype in ("uint8", "bfloat16") else dtype, (many, few + 2))
    part = k.getitem(wide, (slice(None), slice(1, few + 1)))
    inside = [j * (few + 2) + 1 + c for j in range(many) for c in range(few)]
    assert flat(k, k.negative(part)) == [-n for n in inside]
    assert flat(k, k.multiply(part, part)) == [n * n for n in inside]
    assert flat(k, k.astype(part, by_name("float64"))) == inside
    k.setitem(part, (...,), k.add(part, 1))
    rest = [n + (0 < n % (few + 2) <= few) for n in range(many * (few + 2))]
    assert flat(k, wide) == rest


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 17, 24, 33])
def test_short_rows_and_what_was_expanded_beforehand(k: Any, dtype: str, n: int) -> None:
    rows, full = 40, (5, 40, n)
    x = array(k, [i % 7 for i in range(5 * n)], dtype, (5, 1, n))
    y = array(k, [i % 5 for i in range(rows * n)], dtype, (rows, n))
    column = array(k, [i % 3 for i in range(rows)], dtype, (rows, 1))
    for a, b in itertools.product((x, y, column), (column, k.broadcast_to(column, (rows, n)), k.broadcast_to(column, full), y)):
        want = [i * j for i, j in zip(flat(k, k.broadcast_to(a, full)), flat(k, k.broadcast_to(b, full)))]
        assert flat(k, k.broadcast_to(k.multiply(a, b), full)) == want
