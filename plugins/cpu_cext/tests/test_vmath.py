"""Accuracy of the vector functions, in units in the last place, against the C library's double (or exact rationals)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from mortice.backends import HostBuffer
from mortice.dtype import by_name

INF, NAN = math.inf, math.nan
MAX_ULP = 4.0
# The C library's own doubles may be off by an ulp.
SLACK = {"float32": 0.0, "float64": 1.5}
DIGITS, LEAST = {"float32": 24, "float64": 53}, {"float32": -149, "float64": -1074}
LARGEST = {"float32": 2.0**128 - 2.0**104, "float64": 1.7976931348623157e308}


def make(k: Any, values: list[float], dtype: str) -> Any:
    import array

    codes = {"float32": "f", "float64": "d"}
    data = array.array(codes[dtype], values)
    return k.from_host(HostBuffer(memoryview(data), (len(values),), by_name(dtype)), k.device("cpu"))


def read(k: Any, x: Any) -> list[float]:
    return list(k.to_host(x).tolist())


def guarded(f: Callable[..., float]) -> Callable[..., float]:
    """Give C99's results where Python raises."""

    def g(*x: float) -> float:
        try:
            return f(*x)
        except OverflowError:
            return INF
        except ValueError:
            return NAN

    return g


def ulps(got: float, want: float, dtype: str) -> float:
    """Return how far apart two numbers are, in units in the last place of the dtype at the wanted one."""
    if math.isnan(want):
        return 0.0 if math.isnan(got) else INF
    if math.isinf(got) and abs(want) >= LARGEST[dtype]:
        return 0.0 if (got > 0) == (want > 0) else INF
    if math.isinf(want):
        return 0.0 if got == want else INF
    if math.isnan(got) or math.isinf(got):
        return INF
    power = math.frexp(want)[1] - DIGITS[dtype] if want else LEAST[dtype]
    unit = Fraction(2) ** max(power, LEAST[dtype])
    return float(abs(Fraction(got) - Fraction(want)) / unit)


SPECIAL = [
    0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 10.0, 1000.0, 1e-30, -1e-30, 1e-45, -1e-45, 2e-38,
    3e38, -3e38, 88.7, 88.8, -87.4, -103.9, -104.1, 127.9, 128.0, -150.0, 1e5, -1e5, 7e5, 1e10, 3.14159274, 1.57079637,
]  # fmt: skip


def points(lo: float, hi: float, dtype: str, seed: int) -> list[float]:
    """Return special numbers, evenly spread ones, and ones of all sizes."""
    draw = random.Random(seed)
    even = [draw.uniform(lo, hi) for _ in range(1500)]
    small, large = (-120, 120) if dtype == "float32" else (-1000, 1000)
    sizes = [draw.choice((-1, 1)) * 2.0 ** draw.uniform(small, large) for _ in range(400)]
    near = [draw.choice((-1, 1)) * 2.0 ** draw.uniform(-20, 8) for _ in range(600)]
    return [*SPECIAL, *even, *sizes, *near]


def log_like(f: Callable[[float], float], zero: float) -> Callable[[float], float]:
    return lambda x: zero if x == 0 else f(x)


def exp2(x: float) -> float:
    return INF if x >= 1024 else 0.0 if x < -1080 else math.pow(2.0, x)


def softplus(x: float) -> float:
    return x if x > 20 else math.log1p(math.exp(x)) if x < 700 else x


def atanh(x: float) -> float:
    return math.copysign(INF, x) if abs(x) == 1 else math.atanh(x)


def erfinv(x: float) -> float:
    a = abs(x)
    if a == 1:
        return math.copysign(INF, x)
    y = min(a, math.sqrt(-math.log1p(-a)))
    for _ in range(60):  # Halley's steps
        step = (math.erf(y) - a if a < 0.5 else (1 - a) - math.erfc(y)) * math.sqrt(math.pi) / 2 * math.exp(y * y)
        y -= step / (1 + step * y)
    return math.copysign(y, x)


FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "exp": (math.exp, -20, 20),
    "exp2": (exp2, -20, 20),
    "expm1": (math.expm1, -3, 3),
    "log": (log_like(math.log, -INF), 0, 4),
    "log2": (log_like(math.log2, -INF), 0, 4),
    "log10": (log_like(math.log10, -INF), 0, 4),
    "log1p": (lambda x: -INF if x == -1 else math.log1p(x), -1, 4),
    "sin": (math.sin, -100, 100),
    "cos": (math.cos, -100, 100),
    "tan": (math.tan, -100, 100),
    "asin": (math.asin, -1, 1),
    "acos": (math.acos, -1, 1),
    "atan": (math.atan, -10, 10),
    "tanh": (math.tanh, -10, 10),
    "asinh": (math.asinh, -10, 10),
    "acosh": (math.acosh, 1, 10),
    "atanh": (atanh, -1, 1),
    "sqrt": (math.sqrt, 0, 10),
    "erf": (math.erf, -6, 6),
    "erfc": (math.erfc, -6, 9),
    "erfinv": (erfinv, -1, 1),
    "softplus": (softplus, -20, 19),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_within_4_ulp(k: Any, name: str, dtype: str) -> None:
    f, lo, hi = FUNCTIONS[name]
    x = make(k, points(lo, hi, dtype, 7), dtype)
    got = read(k, getattr(k, name)(x))
    worst = max((ulps(g, guarded(f)(v), dtype), v, g) for v, g in zip(read(k, x), got))
    assert worst[0] <= MAX_ULP + SLACK[dtype], worst


@pytest.mark.parametrize("name", ["sinh", "cosh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hyperbolic_functions_overflow_where_they_must(k: Any, name: str, dtype: str) -> None:
    edge = math.acosh(LARGEST["float32"]) if dtype == "float32" else 710.475860073943
    x = make(k, [*SPECIAL, edge * 0.9999, edge * 1.001, -edge * 0.9999, *points(-10, 10, dtype, 3)], dtype)
    values = read(k, x)
    got = read(k, getattr(k, name)(x))

    def want(v: float) -> float:
        try:
            return float(getattr(math, name)(v))
        except OverflowError:
            return INF if name == "cosh" or v > 0 else -INF

    worst = max((ulps(g, want(v), dtype), v, g) for v, g in zip(values, got))
    assert worst[0] <= MAX_ULP + SLACK[dtype], worst


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_is_accurate_on_both_sides(k: Any, dtype: str) -> None:
    x = make(k, [v for v in points(-60, 60, dtype, 5) if not -110 < v < -80], dtype)
    got = read(k, k.sigmoid(x))
    for v, g in zip(read(k, x), got):
        if v < -80:  # a result that would be subnormal may be 0
            assert 0 <= g <= 1e-34
        else:
            assert ulps(g, v if math.isnan(v) else 1 / (1 + math.exp(-v)), dtype) <= MAX_ULP + SLACK[dtype], (v, g)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_keep_their_sign_in_odd_functions(k: Any, dtype: str) -> None:
    for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "erf", "erfinv"):
        got = read(k, getattr(k, name)(make(k, [0.0, -0.0], dtype)))
        assert [math.copysign(1, v) for v in got] == [1, -1] and got == [0, 0], name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_circular_functions_of_huge_angles_are_those_of_the_c_library(k: Any, dtype: str) -> None:
    angles = [1e6, 1e15, 12345678.0, 2.0**80, -(2.0**100), 3e38, 22.0, 355.0, 52174.0 * math.pi]
    x = make(k, angles, dtype)
    for name in ("sin", "cos", "tan"):
        for v, g in zip(read(k, x), read(k, getattr(k, name)(x))):
            assert ulps(g, getattr(math, name)(v), dtype) <= MAX_ULP, (name, v, g)


@pytest.mark.parametrize("name, worst", [("exp", [-5.84630919, 26.7168999, -5.86622286]), ("exp2", [2.55848646])])
def test_exponentials_in_single_are_off_by_less_than_nine_tenths(k: Any, name: str, worst: list[float]) -> None:
    """The numbers are those of which the error is largest, of a sixtieth and more of all there are."""
    x = make(k, worst, "float32")
    for v, g in zip(read(k, x), read(k, getattr(k, name)(x))):
        assert ulps(g, {"exp": math.exp, "exp2": exp2}[name](v), "float32") < 0.9, v


def test_logarithms_are_exact_at_powers(k: Any) -> None:
    for dtype, most in (("float32", 38), ("float64", 308)):
        powers = list(range(0, most + 1))
        tens = make(k, [float(10**p) for p in powers], dtype)
        if dtype == "float64":
            assert read(k, k.log10(tens))[:23] == [float(p) for p in powers][:23]
        else:
            assert read(k, k.log10(tens))[:11] == [float(p) for p in powers][:11]
        twos = [-149, -140, -126, -3, 0, 1, 2, 10, 100, 127]
        assert read(k, k.log2(make(k, [2.0**p for p in twos], dtype))) == [float(p) for p in twos]
        assert read(k, k.exp2(make(k, [float(p) for p in twos], dtype))) == [2.0**p for p in twos]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_length_and_place_gives_the_same_numbers(k: Any, dtype: str) -> None:
    """Vectors overlap or are part full at the end: no element may depend on where it lies."""
    draw = random.Random(1)
    values = [draw.uniform(-3, 3) for _ in range(150)]
    for name in ("exp", "sin", "relu", "gelu", "sqrt", "floor"):
        f = getattr(k, name)
        whole = read(k, f(make(k, values, dtype)))
        for n in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129):
            got = read(k, f(make(k, values[:n], dtype)))
            assert [repr(v) for v in got] == [repr(v) for v in whole[:n]], (name, n)
        reverse = k.getitem(make(k, values, dtype), (slice(None, None, -1),))
        assert [repr(v) for v in read(k, f(reverse))] == [repr(v) for v in whole[::-1]]


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_float32_rounded_once(k: Any, half: str) -> None:
    import array

    bits = array.array("H", range(65536))
    every = k.from_host(HostBuffer(memoryview(bits).cast("B"), (65536,), by_name(half)), k.device("cpu"))
    wide = k.astype(every, by_name("float32"))
    for name in ("exp", "log", "sqrt", "tanh", "sigmoid", "sin", "gelu", "relu", "abs", "negative", "floor", "square"):
        direct = k.astype(getattr(k, name)(every), by_name("float32"))
        way = k.astype(k.astype(getattr(k, name)(wide), by_name(half)), by_name("float32"))
        for v, a, b in zip(read(k, wide), read(k, direct), read(k, way)):
            assert a == b or (math.isnan(a) and math.isnan(b)), (name, v, a, b)
