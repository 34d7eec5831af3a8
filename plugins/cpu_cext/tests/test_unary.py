"""Kernels of one array against their default bodies, over dtypes and layouts; views of complex parts, and refusals."""

from __future__ import annotations

import cmath
import math
from typing import Any

import pytest

from mortice.backends import Backend
from mortice.dtype import by_name

INF, NAN = math.inf, math.nan
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52,
       "complex64": 2**-23, "complex128": 2**-52}  # fmt: skip


def full(k: Any, shape: tuple[int, ...], value: Any, dtype: str) -> Any:
    return k.full(shape, value, dtype=by_name(dtype), device=k.device("cpu"))


def row(k: Any, values: list[Any], dtype: str) -> Any:
    return k.concat([full(k, (1,), v, dtype) for v in values], axis=0)


def read(k: Any, x: Any) -> Any:
    if k.dtype_of(x).is_complex:
        re, im = read(k, k.astype(k.real(x), by_name("float64"))), read(k, k.astype(k.imag(x), by_name("float64")))
        return [complex(a, b) for a, b in zip(re, im)]
    return list(k.to_host(k.astype(x, by_name("float64")) if k.dtype_of(x).is_floating_point else x).tolist())


def close(a: Any, b: Any, tolerance: float, floor: float = 0.0) -> bool:
    if isinstance(a, complex):
        scale = abs(b) if cmath.isfinite(b) else 0.0
        return close(a.real, b.real, tolerance) and close(a.imag, b.imag, tolerance) or abs(a - b) <= tolerance * scale
    if math.isnan(b):
        return math.isnan(a)
    return a == b or abs(a - b) <= max(tolerance * abs(b), floor)


def agree(k: Any, got: Any, want: Any, tolerance: float, floor: float = 0.0) -> None:
    assert k.dtype_of(got) is k.dtype_of(want) and k.shape_of(got) == k.shape_of(want)
    for a, b in zip(read(k, got), read(k, want)):
        assert close(a, b, tolerance, floor), (a, b)


NUMBERS = [0.0, -0.0, 0.25, -0.75, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -7.25, 12.0, INF, -INF, NAN]

DEFAULTS = ["ceil", "trunc", "square", "reciprocal", "rsqrt", "expm1", "exp2", "log1p", "log2", "log10", "sigmoid", "tan",
            "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "erfcx", "erfinv", "lgamma",
            "digamma", "relu", "isfinite", "isinf", "angle", "sgn", "round", "nan_to_num", "softplus", "silu", "gelu"]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DEFAULTS)
def test_floats_agree_with_the_default_bodies(k: Any, name: str, dtype: str) -> None:
    x = row(k, NUMBERS, dtype)
    # Near lgamma's zeros, and where gelu's default body loses a small result, only the absolute error is small.
    floor = 2 * EPS[dtype] if name in ("gelu", "lgamma") else 0.0
    agree(k, getattr(k, name)(x), getattr(Backend, name)(k, x), 16 * EPS[dtype], floor)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("decimals", [-1, 1, 2])
def test_round_takes_decimals(k: Any, dtype: str, decimals: int) -> None:
    x = row(k, [12.345, -0.05, 2.5, 15.0, 25.0, INF, NAN], dtype)
    agree(k, k.round(x, decimals), Backend.round(k, x, decimals), EPS[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
def test_attributes_are_heeded(k: Any, dtype: str) -> None:
    x = row(k, NUMBERS, dtype)
    for beta, threshold in ((1.0, 20.0), (2.0, 5.0), (0.5, 1.0)):
        agree(k, k.softplus(x, beta, threshold), Backend.softplus(k, x, beta, threshold), 16 * EPS[dtype])
    agree(k, k.nan_to_num(x, 3.0, posinf=4.0, neginf=5.0), Backend.nan_to_num(k, x, 3.0, 4.0, 5.0), 0)
    agree(k, k.gelu(x, approximate="tanh"), Backend.gelu(k, x, approximate="tanh"), 16 * EPS[dtype], 1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_activations_agree_with_the_default_bodies(k: Any, dtype: str) -> None:
    x, g = row(k, [-6.0, -2.0, -0.5, 0.0, 0.5, 1.0, 3.0, 9.0], dtype), row(k, [1.0, -2.0] * 4, dtype)
    for name in ("relu_grad", "sigmoid_grad", "tanh_grad", "silu_grad", "gelu_grad"):
        got, want = getattr(k, name)(g, x), getattr(Backend, name)(k, g, x)
        for a, b in zip(read(k, got), read(k, want)):
            assert abs(a - b) <= max(1e-6, 16 * EPS[dtype]) * (1 + abs(b)), (name, a, b)
    for a, b in zip(read(k, k.gelu_grad(g, x, approximate="tanh")), read(k, Backend.gelu_grad(k, g, x, approximate="tanh"))):
        assert abs(a - b) <= max(1e-6, 16 * EPS[dtype]) * (1 + abs(b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_that_stand_still_or_lie_apart_give_the_bits_of_those_in_a_row(k: Any, dtype: str) -> None:
    x = k.reshape(row(k, [i / 512 - 3 for i in range(3000)], dtype), (2, 1500))  # more than a block
    turned = k.permute_dims(k.contiguous(k.permute_dims(x, (1, 0))), (1, 0))
    for g in (full(k, (), 1.5, dtype), full(k, (2, 1), -0.5, dtype), k.getitem(x, (slice(1), slice(None)))):
        whole = k.broadcast_to(g, (2, 1500))
        for name in ("relu_grad", "tanh_grad"):
            kernel = getattr(k, name)
            want = read(k, kernel(k.contiguous(whole), x))
            assert read(k, kernel(whole, x)) == read(k, kernel(whole, turned)) == want
            assert read(k, kernel(x, whole)) == read(k, kernel(x, k.contiguous(whole)))


@pytest.mark.usefixtures("modern")
def test_gelu_of_float32_is_as_accurate_as_its_formula(k: Any) -> None:
    values = [i / 64 for i in range(-640, 641)]
    for v, got in zip(values, read(k, k.gelu(row(k, values, "float32")))):
        want = v * math.erfc(-v / math.sqrt(2)) / 2
        assert abs(got - want) <= 6e-8 * max(abs(v), 1), (v, got, want)


Z = [0j, complex(-0.0, -0.0), 1 + 0j, -1 + 0j, 1j, -1j, 0.5 - 0.25j, -2 + 3j, 3 - 4j, 1e-3 + 2j, complex(-1, -0.0)]


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["exp", "sqrt", "sin", "cos", "tan", "asin", "acos", "sinh", "cosh", "tanh", "asinh", "acosh"])
def test_complex_functions_agree_with_cmath(k: Any, name: str, dtype: str) -> None:
    for got, z in zip(read(k, getattr(k, name)(row(k, Z, dtype))), Z):
        want = getattr(cmath, name)(z)
        assert abs(got - want) <= 8 * EPS[dtype] * (abs(want) + 1e-3), (z, got, want)
        assert math.copysign(1, got.imag) == math.copysign(1, want.imag) or want.imag != 0


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["expm1", "exp2", "log1p", "log2", "log10", "sigmoid", "silu", "square", "sgn", "angle", "isinf",
                                  "isfinite", "rsqrt", "nan_to_num"])  # fmt: skip
def test_complex_functions_agree_with_the_default_bodies(k: Any, name: str, dtype: str) -> None:
    z = [v for v in Z if v not in (0, -1)] + [complex(INF, 1), complex(2, NAN)] * (name in ("isinf", "isfinite", "nan_to_num"))
    x = row(k, z, dtype)
    agree(k, getattr(k, name)(x), getattr(Backend, name)(k, x), 64 * EPS[dtype])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_parts_of_complex_numbers_are_views(k: Any, dtype: str) -> None:
    x = k.reshape(row(k, [1 + 2j, 3 - 4j, 5 + 6j, 7j, -8 + 0j, 9 - 1j], dtype), (2, 3))
    turned = k.permute_dims(x, (1, 0))
    re, im = k.real(turned), k.imag(turned)
    assert read(k, k.reshape(re, (6,))) == [1, 0, 3, -8, 5, 9] and read(k, k.reshape(im, (6,))) == [2, 7, -4, 0, 6, -1]
    k.setitem(re, (0, 1), 100)
    assert read(k, k.reshape(x, (6,)))[3] == 100 + 7j
    assert k.shape_of(im) == (3, 2) and k.address(k.imag(x)) - k.address(x) == k.dtype_of(x).itemsize // 2
    assert read(k, k.reshape(k.conj(x), (6,)))[1] == 3 + 4j
    assert [round(v) for v in read(k, k.reshape(k.abs(x), (6,)))][1] == 5
    real = full(k, (2,), 3.0, "float32")
    assert read(k, k.real(real)) == [3, 3] and read(k, k.imag(real)) == [0, 0]


def test_tests_look_at_bits(k: Any) -> None:
    values = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
    for dtype in FLOATS:
        x = row(k, values, dtype)
        assert read(k, k.isnan(x)) == [math.isnan(v) for v in values]
        assert read(k, k.isinf(x)) == [math.isinf(v) for v in values]
        assert read(k, k.isfinite(x)) == [math.isfinite(v) for v in values]
        assert read(k, k.logical_not(x)) == [not v for v in values]
        assert read(k, k.signbit(x))[:6] == [False, True, False, True, False, True]
        assert [math.copysign(1, v) for v in read(k, k.negative(x))][:6] == [-1, 1, -1, 1, -1, 1]
    for dtype in SIGNED + UNSIGNED + ["bool"]:
        x = row(k, [0, 1], dtype)
        assert read(k, k.isnan(x)) == [False] * 2 and read(k, k.isfinite(x)) == [True] * 2
        assert read(k, k.logical_not(x)) == [True, False]


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers_wrap_around(k: Any, dtype: str) -> None:
    d = by_name(dtype)
    bits = 8 * d.itemsize
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if d.is_signed else (0, 2**bits - 1)
    values = [0, 1, 7, most, least, least + 1]
    x = row(k, values, dtype)

    def wrap(v: int) -> int:
        return (v - least) % 2**bits + least

    assert read(k, k.negative(x)) == [wrap(-v) for v in values]
    assert read(k, k.abs(x)) == [wrap(abs(v)) for v in values]
    assert read(k, k.square(x)) == [wrap(v * v) for v in values]
    assert read(k, k.sign(x)) == [(v > 0) - (v < 0) for v in values]
    assert read(k, k.bitwise_invert(x)) == [wrap(~v) for v in values]
    assert read(k, k.relu(x)) == [max(v, 0) for v in values]
    for name in ("floor", "ceil", "trunc", "round", "positive"):
        assert read(k, getattr(k, name)(x)) == values


def test_layouts_do_not_matter(k: Any) -> None:
    x = k.reshape(k.astype(k.arange(0, 2 * 3 * 40, 1, dtype=by_name("int64"), device=k.device("cpu")), by_name("float32")),
                  (2, 3, 40))  # fmt: skip
    whole = read(k, k.reshape(k.sin(x), (240,)))
    turned = k.permute_dims(x, (2, 0, 1))
    assert read(k, k.reshape(k.permute_dims(k.sin(turned), (1, 2, 0)), (240,))) == whole
    every_third = k.getitem(x, (slice(None), slice(None), slice(None, None, -3)))
    assert read(k, k.reshape(k.sin(every_third), (84,)))[:14] == whole[39::-3]
    assert read(k, k.sin(k.broadcast_to(full(k, (), 1.0, "float64"), (3,)))) == [math.sin(1.0)] * 3
    assert k.shape_of(k.exp(full(k, (0, 3), 1.0, "float32"))) == (0, 3)
    assert k.shape_of(k.exp(full(k, (), 1.0, "float32"))) == ()


def test_large_arrays_are_shared_among_threads(k: Any) -> None:
    x = k.astype(k.arange(0, 300_007, 1, dtype=by_name("int64"), device=k.device("cpu")), by_name("float64"))
    got = read(k, k.sqrt(x))
    assert got[::1000] == [math.sqrt(i) for i in range(0, 300_007, 1000)] and got[-1] == math.sqrt(300_006)


def test_what_is_no_operand_is_refused(k: Any) -> None:
    x = full(k, (2,), 1.0, "float32")
    with pytest.raises(TypeError):
        k.exp(1.0)
    with pytest.raises(TypeError):
        k.exp(x, x)
    with pytest.raises(TypeError):
        k.exp()
    with pytest.raises(TypeError):
        k.bitwise_invert(x)
    with pytest.raises(TypeError):
        k.erf(full(k, (2,), 1j, "complex64"))
    assert read(k, k.exp(x=x)) == read(k, k.exp(x))


@pytest.mark.usefixtures("modern")
def test_activations_refuse_what_they_do_not_know(k: Any) -> None:
    x = full(k, (2,), 1.0, "float32")
    with pytest.raises(TypeError):
        k.relu_grad(x, full(k, (2,), 1.0, "float64"))
    with pytest.raises(RuntimeError, match="approximate"):
        k.gelu(x, approximate="sine")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("weight", [0.25, 1.5, -2.0, 0.0, INF, NAN])
def test_one_slope_for_all_gives_the_bits_of_the_default_body(k: Any, dtype: str, weight: float) -> None:
    numbers = [-3.0, -0.3, -0.0, 0.0, 0.7, 65.0, INF, -INF, NAN]
    x, slope = row(k, numbers, dtype), full(k, (1,), weight, dtype)
    got, want = k.prelu(x, slope), Backend.prelu(k, x, slope)
    assert k.dtype_of(got) is k.dtype_of(want)
    assert [str(v) for v in read(k, got)] == [str(v) for v in read(k, want)]
    assert k.shape_of(k.prelu(x, full(k, (2, 1), weight, dtype))) == (2, 9)
    assert k.shape_of(k.prelu(full(k, (), 1.0, dtype), full(k, (1, 1), weight, dtype))) == (1, 1)
