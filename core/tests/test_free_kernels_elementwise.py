"""The default bodies of the elementwise kernels: exact ones against NumPy, the others in ulp against mpmath."""

from __future__ import annotations

import inspect
import math
from math import inf, nan, pi

import ml_dtypes
import mpmath
import numpy as np
import pytest
from numpy_shim import buffer, native, run, shim

from mortice.backends.elementwise import ElementwiseKernels
from mortice.dtype import FLOATS, bfloat16, bool_, float16

pytestmark = pytest.mark.any_backend
FLOAT_TYPES = [np.float32, np.float64]
COMPLEX_TYPES = [np.complex64, np.complex128]
INTEGER_TYPES = [np.int8, np.uint8, np.int32, np.int64, np.uint64]
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, 1e-40, -1e-40, 1e30, -1e30, np.inf, -np.inf, np.nan]


# ---- how far off ----


def random_generator():
    return np.random.default_rng(20240607)


def both_signs(x):
    return x * random_generator().choice([-1.0, 1.0], len(x))


def decades(low, high, n=150):
    return 10.0 ** random_generator().uniform(low, high, n)


def between(low, high, n=150):
    return random_generator().uniform(low, high, n)


def wide(high):
    return np.concatenate([both_signs(decades(-300, high)), both_signs(decades(-3, min(high, 2))), between(-5, 5)])


def inside_one():
    near = both_signs(1 - decades(-16, 0))
    return np.concatenate([between(-1, 1), near, both_signs(decades(-300, 0)), [1 - 2.0**-53, 1 - 2.0**-24]])


def around(centre):
    return np.concatenate([centre + both_signs(decades(-15, -1)), [np.nextafter(centre, 0), np.nextafter(centre, 9)]])


def log_gamma(x):
    return mpmath.log(abs(mpmath.gamma(x))) if x < 1e5 else mpmath.loggamma(x)


def erfcx(x):
    far = x > 1e5
    return 1 / (x * mpmath.sqrt(mpmath.pi)) * (1 - 1 / (2 * x * x)) if far else mpmath.exp(x * x) * mpmath.erfc(x)


# kernel: (exact function, arguments, largest error in ulp for float64, for float32). NumPy's exp and log, which are
# inside, are off by up to 1 ulp themselves.
ACCURACY = {
    "expm1": (mpmath.expm1, [wide(2), between(-40, 88), between(88, 709)], 3, 4),
    "log1p": (mpmath.log1p, [decades(-300, 300), -decades(-300, 0), between(-1, 5)], 3, 4),
    "log2": (lambda x: mpmath.log(x, 2), [decades(-300, 300), between(0.5, 2)], 3, 5),
    "log10": (mpmath.log10, [decades(-300, 300), between(0.5, 2)], 3, 4),
    "exp2": (lambda x: mpmath.mpf(2) ** x, [between(-1070, 1023), between(-140, 127), wide(1)], 2, 3),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), [decades(-300, 300), decades(-40, 38)], 2, 2),
    "tan": (mpmath.tan, [wide(2), both_signs(decades(0, 5))], 3, 4),
    "asin": (mpmath.asin, [inside_one()], 3, 3),
    "acos": (mpmath.acos, [inside_one()], 3, 3),
    "atan": (mpmath.atan, [wide(300), wide(30)], 2, 2),
    "sinh": (mpmath.sinh, [wide(2), between(-710.4, 710.4), between(88.7, 89.4), between(709.7, 710.4)], 4, 4),
    "cosh": (mpmath.cosh, [wide(2), between(-710.4, 710.4), between(88.7, 89.4), between(709.7, 710.4)], 3, 4),
    "asinh": (mpmath.asinh, [wide(300), wide(30)], 4, 4),
    "acosh": (mpmath.acosh, [1 + decades(-16, 2), decades(0, 300), decades(0, 30)], 4, 4),
    "atanh": (mpmath.atanh, [inside_one()], 4, 4),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), [wide(2), between(-740, 40), between(-100, 20)], 3, 4),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), [between(-740, 20), between(-100, 20)], 3, 5),
    "erf": (mpmath.erf, [both_signs(decades(-300, 1)), between(-6, 6), between(0.4, 0.6)], 2, 3),
    "erfc": (mpmath.erfc, [both_signs(decades(-300, 1)), between(-6, 27), between(0.4, 10)], 4, 6),
    "erfcx": (erfcx, [between(-9, 28), decades(-3, 300), decades(-3, 30), between(0.4, 0.6)], 4, 6),
    "erfinv": (mpmath.erfinv, [inside_one(), around(0.5)], 5, 5),
    "lgamma": (log_gamma, [decades(-300, 300), decades(-30, 30), between(0, 12), around(1.0), around(2.0)], 6, 6),
    "digamma": (mpmath.digamma, [decades(-300, 300), between(0, 12), around(1.4616321449683622)], 5, 6),
}  # fmt: skip


def worst_ulp(got, arguments, exact, dtype):
    """Return the largest error in units of the last place, and where it is."""
    worst, where = 0.0, None
    for value, x in zip(got.tolist(), arguments.tolist()):
        expected = exact(mpmath.mpf(x))
        if abs(expected) > float(np.finfo(dtype).max):
            assert abs(value) == math.inf, (x, value)
            continue
        unit = float(np.spacing(dtype(abs(float(expected)))))
        error = float(abs(mpmath.mpf(value) - expected) / unit) if math.isfinite(value) else math.inf
        if error > worst:
            worst, where = error, x
    return worst, where


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("kernel", ACCURACY)
def test_error_in_ulp_stays_within_its_bound(kernel, dtype):
    exact, arguments, bound64, bound32 = ACCURACY[kernel]
    with np.errstate(all="ignore"), mpmath.workdps(40):
        x = np.concatenate(arguments).astype(dtype)
        x = x[np.isfinite(x) & (x != 0) & (np.abs(x) != 1)]
        worst, where = worst_ulp(run(kernel, x), x, exact, dtype)
    assert worst <= (bound64 if dtype is np.float64 else bound32), where


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_atan2_and_hypot_are_accurate_over_the_whole_range(dtype):
    top = 300 if dtype is np.float64 else 37
    y, x = (both_signs(decades(-top, top, 300)).astype(dtype) for _ in range(2))
    x = np.roll(x, 7)
    x[::3] = (y[::3] * random_generator().uniform(-4, 4, len(y[::3]))).astype(dtype)
    for kernel, exact, bound in (("atan2", mpmath.atan2, 3), ("hypot", mpmath.hypot, 3)):
        got = run(kernel, y, x)
        with mpmath.workdps(40):
            for value, a, b in zip(got.tolist(), y.tolist(), x.tolist()):
                expected = exact(mpmath.mpf(a), mpmath.mpf(b))
                unit = float(np.spacing(dtype(abs(float(expected)))))
                assert abs(mpmath.mpf(value) - expected) / unit <= bound, (kernel, a, b)


@pytest.mark.parametrize("kernel", ["lgamma", "digamma"])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_gamma_functions_of_negative_numbers_have_a_small_absolute_error(kernel, dtype):
    x = np.concatenate([between(-20, 0), between(-2.6, -2.3), -decades(-30, 1)]).astype(dtype)
    x = x[x != np.floor(x)]
    got = run(kernel, x)
    with mpmath.workdps(40):
        for value, v in zip(got.tolist(), x.tolist()):
            expected = ACCURACY[kernel][0](mpmath.mpf(v))
            # Near the poles the slope multiplies what a rounded argument is off.
            size = max(1.0, abs(float(expected)), 30 if kernel == "lgamma" else 0)
            nearness = 1 + (abs(v) / abs(v - round(v)) if round(v) else 0)
            assert abs(value - float(expected)) <= 8 * np.finfo(dtype).eps * size * nearness, v


def test_half_precision_rounds_the_float32_result_once():
    grid = np.linspace(-3, 3, 301, dtype=np.float32)
    for d in (float16, bfloat16):
        x = grid.astype(native(d))
        for kernel in ("expm1", "tan", "sinh", "erf", "sigmoid", "lgamma"):
            wide_result = run(kernel, x.astype(np.float32))
            with np.errstate(all="ignore"):
                expected = wide_result.astype(native(d))
            got = run(kernel, x)
            assert got.dtype == native(d)
            np.testing.assert_array_equal(got, expected)


# ---- edges ----


def assert_same(got, expected):
    """Compare exactly, with the signs of zeros and one nan like another."""
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    zero = (got == 0) & ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


def numpy_reference(fn, *x):
    with np.errstate(all="ignore"):
        return fn(*x)


EXACT = {
    "ceil": np.ceil, "trunc": np.trunc, "round": np.round, "positive": np.positive, "square": np.square,
    "isfinite": np.isfinite, "isinf": np.isinf, "reciprocal": lambda x: np.divide(x.dtype.type(1), x),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("kernel", EXACT)
def test_exact_kernels_equal_numpy(kernel, dtype):
    awkward = [2.0**52 + 1, -(2.0**53) - 2, 0.49999999999999994, 4503599627370495.5]
    steps = np.concatenate([np.arange(-6, 6, 0.25), awkward])
    with np.errstate(all="ignore"):
        x = np.concatenate([SPECIAL, steps]).astype(dtype)
    assert_same(run(kernel, x), numpy_reference(EXACT[kernel], x))


EDGES = {
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0), (1000.0, inf), (-1000.0, -1.0)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-1.0, -inf), (-2.0, nan), (-inf, nan)],
    "log2": [(0.0, -inf), (-0.0, -inf), (1.0, 0.0), (8.0, 3.0), (2.0**-100, -100.0), (inf, inf), (-1.0, nan)],
    "log10": [(0.0, -inf), (1.0, 0.0), (1000.0, 3.0), (inf, inf), (-1.0, nan)],
    "exp2": [(0.0, 1.0), (3.0, 8.0), (-inf, 0.0), (inf, inf), (5000.0, inf), (-5000.0, 0.0)],
    "rsqrt": [(0.0, inf), (-0.0, -inf), (inf, 0.0), (-1.0, nan), (4.0, 0.5)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (inf, nan)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, pi / 2), (-1.0, -pi / 2), (1.5, nan), (inf, nan)],
    "acos": [(1.0, 0.0), (-1.0, pi), (0.0, pi / 2), (1.5, nan), (-1.5, nan), (-inf, nan)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (inf, pi / 2), (-inf, -pi / 2), (1.0, pi / 4)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (2000.0, inf)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, inf), (-2000.0, inf)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "acosh": [(1.0, 0.0), (0.5, nan), (-5.0, nan), (-inf, nan), (inf, inf), (-1e30, nan)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, inf), (-1.0, -inf), (1.5, nan), (inf, nan)],
    "sigmoid": [(0.0, 0.5), (inf, 1.0), (-inf, 0.0), (-5000.0, 0.0)],
    "softplus": [(inf, inf), (-inf, 0.0), (20.5, 20.5)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (30.0, 1.0)],
    "erfc": [(0.0, 1.0), (inf, 0.0), (-inf, 2.0), (30.0, 0.0)],
    "erfcx": [(0.0, 1.0), (inf, 0.0), (-inf, inf), (-40.0, inf)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, inf), (-1.0, -inf), (1.5, nan), (-inf, nan)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, inf), (-0.0, inf), (-3.0, inf), (inf, inf), (-inf, inf)],
    "digamma": [(0.0, -inf), (-0.0, inf), (-2.0, nan), (inf, inf), (-inf, nan)],
    "angle": [(0.0, 0.0), (2.0, 0.0), (-2.0, pi), (-inf, pi), (inf, 0.0)],
    "nan_to_num": [(nan, 0.0), (1.0, 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("kernel", EDGES)
def test_edge_values(kernel, dtype):
    cases = EDGES[kernel] + ([] if kernel == "nan_to_num" else [(math.nan, math.nan)])
    x, expected = (np.array(v, dtype=dtype) for v in zip(*cases))
    assert_same(run(kernel, x), expected)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(
    ("kernel", "reference"),
    [("atan2", np.arctan2), ("hypot", np.hypot), ("fmod", np.fmod), ("copysign", np.copysign),
     ("not_equal", np.not_equal), ("greater", np.greater), ("less_equal", np.less_equal),
     ("greater_equal", np.greater_equal), ("logaddexp", np.logaddexp)],
)  # fmt: skip
def test_binary_kernels_at_edge_values_equal_numpy(kernel, reference, dtype):
    # The sign of a nan cannot be seen through the required kernels, so no nan gives its sign here.
    values = np.array([v for v in SPECIAL if not (kernel == "copysign" and math.isnan(v))], dtype=dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    got, expected = run(kernel, x, y), numpy_reference(reference, x, y)
    if kernel in ("atan2", "hypot", "logaddexp"):
        np.testing.assert_array_max_ulp(got, expected, maxulp=4)
        expected = np.where(np.isfinite(expected) & (expected != 0), got, expected)
    assert_same(got, expected)


def test_powers_of_two_and_ten_have_exact_logarithms():
    powers = np.arange(-1074, 1024)
    np.testing.assert_array_equal(run("log2", 2.0**powers), powers)
    powers = np.arange(-307, 309)
    np.testing.assert_array_equal(run("log10", np.array([float(f"1e{p}") for p in powers])), powers)
    np.testing.assert_array_equal(run("log10", np.array([1e-45], np.float32)), np.log10(np.array([1e-45], np.float32)))


def test_round_with_decimals_scales():
    x = np.array([0.125, 1.255, -2.5, 125.0, 1350.0, np.nan])
    np.testing.assert_array_equal(run("round", x, decimals=2), np.round(x, 2))
    np.testing.assert_array_equal(run("round", x, -2), np.round(x, -2))


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_integers_come_through_exactly(dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, 0, 1, 2, 7, 100, limits.min // 2], dtype)
    y = np.array([3, 4, 5, limits.max, 3, 2, 7, 3], dtype)
    np.testing.assert_array_equal(run("bitwise_invert", x), np.invert(x))
    np.testing.assert_array_equal(run("fmod", x, y), np.fmod(x, y))
    np.testing.assert_array_equal(run("signbit", x), x < 0)
    np.testing.assert_array_equal(run("isfinite", x), np.ones(8, bool))
    for kernel in ("ceil", "trunc", "round", "positive", "nan_to_num"):
        np.testing.assert_array_equal(run(kernel, x), x)
    np.testing.assert_array_equal(run("clip", x, 1, 5), np.clip(x, 1, 5))
    for kernel in ("logical_and", "logical_or", "logical_xor"):
        np.testing.assert_array_equal(run(kernel, x, y), getattr(np, kernel)(x, y))


def test_fmod_has_the_sign_of_the_dividend():
    x, y = np.array([5, -5, 5, -5, -128, 6], np.int8), np.array([3, 3, -3, -3, -1, -3], np.int8)
    np.testing.assert_array_equal(run("fmod", x, y), np.array([2, -2, 2, -2, 0, 0], np.int8))
    np.testing.assert_array_equal(run("fmod", 7, y), np.fmod(np.int8(7), y))


def test_clip_takes_numbers_buffers_and_none():
    x = np.array([-2.0, 0.5, 3.0, np.nan])
    np.testing.assert_array_equal(run("clip", x, None, 1.0), [-2.0, 0.5, 1.0, np.nan])
    np.testing.assert_array_equal(run("clip", x, np.full(4, -1.0)), [-1.0, 0.5, 3.0, np.nan])
    np.testing.assert_array_equal(run("clip", x), x)
    # As in PyTorch, the upper limit has the last word.
    np.testing.assert_array_equal(run("clip", x, 2.0, 1.0)[:3], [1.0, 1.0, 1.0])


def test_lerp_meets_both_ends_exactly():
    start, end = np.array([0.1, 1e16, -3.0]), np.array([0.7, 1.0, 5.0])
    np.testing.assert_array_equal(run("lerp", start, end, 0.0), start)
    np.testing.assert_array_equal(run("lerp", start, end, 1.0), end)
    np.testing.assert_allclose(run("lerp", start, end, np.array([0.25, 0.5, 0.75])), [0.25, 5e15, 3.0], rtol=1e-15)


def test_nan_to_num_replaces_infinities_by_the_limits():
    for d in FLOATS:
        x = np.array([np.inf, -np.inf, np.nan, 1.0]).astype(native(d))
        got = run("nan_to_num", x)
        assert np.isfinite(got.astype(float)).all() and got[0] == -got[1]
        assert got[0] == ml_dtypes.finfo(native(d)).max
    x = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(run("nan_to_num", x, 2.0, 3.0, 4.0), [3.0, 4.0, 2.0])


def test_softplus_takes_beta_and_threshold():
    x = np.linspace(-8, 8, 33)
    expected = np.where(2 * x > 5, x, np.log1p(np.exp(2 * x)) / 2)
    np.testing.assert_allclose(run("softplus", x, 2.0, 5.0), expected, rtol=1e-14)


# ---- complex numbers ----


def grid(dtype):
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan, 1e30], np.finfo(dtype).dtype)
    z = np.empty((len(values), len(values)), dtype)
    z.real, z.imag = values[:, None], values
    return z.ravel()


@pytest.mark.parametrize("dtype", COMPLEX_TYPES)
def test_joining_parts_keeps_every_bit(dtype):
    z = grid(dtype)
    got = run("complex", z.real.copy(), z.imag.copy())
    assert_same(got.real, np.where(np.isnan(z.real), np.nan, z.real).astype(z.real.dtype))
    assert_same(got.imag, z.imag)


def complex_points(dtype, bounded):
    top = 1.0 if bounded else 12.0
    rng = random_generator()
    parts = [np.concatenate([both_signs(10.0 ** rng.uniform(-12, top, 60)), rng.uniform(-2, 2, 60)]) for _ in range(2)]
    z = parts[0] + 1j * rng.permutation(parts[1])
    beside = both_signs(decades(-16, -1, 30)) + 1j * np.roll(both_signs(decades(-16, -1, 30)), 3)
    return np.concatenate([z, 1 + beside, -1 + beside, 1j + beside]).astype(dtype)


# kernel: (exact function, bound on the whole number in eps, bound on each part in eps or None, arguments are bounded)
COMPLEX = {
    "asin": (mpmath.asin, 3, 4, False),
    "acos": (mpmath.acos, 3, 4, False),
    "atan": (mpmath.atan, 3, 4, False),
    "asinh": (mpmath.asinh, 3, 4, False),
    "acosh": (mpmath.acosh, 3, 4, False),
    "atanh": (mpmath.atanh, 3, 4, False),
    "tan": (mpmath.tan, 4, 5, True),
    "sinh": (mpmath.sinh, 3, 4, True),
    "cosh": (mpmath.cosh, 3, 4, True),
    "expm1": (mpmath.expm1, 4, None, True),
    "log1p": (mpmath.log1p, 4, None, False),
    "exp2": (lambda z: mpmath.mpf(2) ** z, 4, None, True),
    "log2": (lambda z: mpmath.log(z) / mpmath.log(2), 3, 4, False),
    "log10": (lambda z: mpmath.log(z) / mpmath.log(10), 3, 4, False),
    "rsqrt": (lambda z: 1 / mpmath.sqrt(z), 3, 6, False),
    "reciprocal": (lambda z: 1 / z, 3, 4, False),
    "sgn": (lambda z: z / abs(z), 3, 3, False),
}


@pytest.mark.parametrize("dtype", COMPLEX_TYPES)
@pytest.mark.parametrize("kernel", COMPLEX)
def test_complex_error_stays_within_its_bound(kernel, dtype):
    exact, bound, part_bound, bounded = COMPLEX[kernel]
    z = complex_points(dtype, bounded)
    got, limits = run(kernel, z), np.finfo(dtype)
    with mpmath.workdps(50):
        for value, x in zip(got.tolist(), z.tolist()):
            expected = mpmath.mpc(exact(mpmath.mpc(x)))
            if not float(limits.tiny) < abs(expected) < float(limits.max):
                continue
            assert abs(mpmath.mpc(value) - expected) <= bound * float(limits.eps) * abs(expected), x
            for g, e in ((value.real, expected.real), (value.imag, expected.imag)):
                if part_bound and abs(e) > float(limits.tiny):
                    assert abs(g - e) <= part_bound * float(limits.eps) * abs(e), x


@pytest.mark.parametrize("dtype", COMPLEX_TYPES)
@pytest.mark.parametrize(
    ("kernel", "reference"),
    [("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan), ("asinh", np.arcsinh), ("acosh", np.arccosh),
     ("atanh", np.arctanh), ("tan", np.tan), ("sinh", np.sinh), ("cosh", np.cosh), ("log2", np.log2)],
)  # fmt: skip
def test_branch_cuts_zeros_and_infinities_are_those_of_c99(kernel, reference, dtype):
    z = grid(dtype)
    z = z[~np.isnan(z)]
    got, expected = run(kernel, z), numpy_reference(reference, z)
    for a, b in ((got.real, expected.real), (got.imag, expected.imag)):
        np.testing.assert_allclose(a, b, rtol=8 * np.finfo(dtype).eps, atol=0)
        unsigned = np.isnan(b) | (kernel in ("sinh", "cosh", "tan")) & ~np.isfinite(z)
        np.testing.assert_array_equal(np.signbit(a)[~unsigned], np.signbit(b)[~unsigned])


@pytest.mark.parametrize("kernel", ["asin", "acos", "atan", "asinh", "acosh", "atanh", "sinh", "tan", "expm1", "log1p"])
def test_nan_parts_do_not_give_finite_numbers(kernel):
    z = np.array([complex(math.nan, 1.0), complex(2.0, math.nan), complex(math.nan, math.nan)])
    assert np.isnan(run(kernel, z)).all()


def test_complex_sigmoid_does_not_overflow():
    z = np.array([-1000 + 1j, 1000 + 1j, 0.3 - 0.2j])
    got = run("sigmoid", z)
    np.testing.assert_allclose(got, [0.0, 1.0, 1 / (1 + np.exp(-z[2]))], rtol=1e-15)


def test_complex_logaddexp_and_angle_and_nan_to_num():
    z, w = np.array([1 + 2j, 900 + 1j, -3 - 1j]), np.array([0.5 - 1j, 900 - 1j, 2j])
    with mpmath.workdps(30):
        expected = [complex(mpmath.log(mpmath.exp(a) + mpmath.exp(b))) for a, b in zip(z.tolist(), w.tolist())]
    np.testing.assert_allclose(run("logaddexp", z, w), expected, rtol=1e-14)
    np.testing.assert_allclose(run("angle", z), np.angle(z), rtol=1e-15)
    broken = np.array([complex(math.nan, math.inf), 1 + 2j])
    np.testing.assert_array_equal(run("nan_to_num", broken), np.nan_to_num(broken))
    np.testing.assert_array_equal(run("isfinite", broken), [False, True])
    np.testing.assert_array_equal(run("isinf", broken), [True, False])


# ---- what holds for all ----


def test_bools_are_answered():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    np.testing.assert_array_equal(run("bitwise_invert", x), ~x)
    np.testing.assert_array_equal(run("logical_xor", x, y), x ^ y)
    np.testing.assert_array_equal(run("logical_and", x, True), x)
    np.testing.assert_array_equal(run("less_equal", x, y), x <= y)
    np.testing.assert_array_equal(run("not_equal", x, y), x != y)
    np.testing.assert_array_equal(run("isinf", x), np.zeros(4, bool))
    np.testing.assert_array_equal(run("signbit", x), np.zeros(4, bool))


UNARY = """expm1 log1p log2 log10 exp2 rsqrt tan asin acos atan sinh cosh asinh acosh atanh sigmoid softplus
erf erfc erfcx erfinv lgamma digamma ceil trunc round square reciprocal positive sgn nan_to_num""".split()


@pytest.mark.parametrize("kernel", UNARY)
def test_shape_and_dtype_are_kept(kernel):
    for shape in ((), (0,), (2, 0, 3), (2, 1, 3)):
        for d in FLOATS:
            x = np.full(shape, 0.5).astype(native(d))
            got = run(kernel, x)
            assert got.shape == shape and got.dtype == x.dtype


def test_bool_results_are_bools():
    x = buffer(np.array([1.0, np.nan]))
    for kernel in ("isfinite", "isinf", "signbit"):
        assert shim.dtype_of(getattr(shim, kernel)(x)) is bool_
    for kernel in "not_equal greater less_equal greater_equal logical_and logical_or logical_xor".split():
        assert shim.dtype_of(getattr(shim, kernel)(x, x)) is bool_


def test_binary_kernels_broadcast_and_take_numbers():
    x, y = np.array([[1.0], [-2.0]]), np.array([0.5, 3.0, -4.0])
    references = {"hypot": np.hypot, "atan2": np.arctan2, "copysign": np.copysign, "fmod": np.fmod}
    for kernel, reference in references.items():
        np.testing.assert_allclose(run(kernel, x, y), reference(x, y), rtol=1e-15)
        np.testing.assert_allclose(run(kernel, x, 2.0), reference(x, 2.0), rtol=1e-15)
        np.testing.assert_allclose(run(kernel, -2.0, y), reference(-2.0, y), rtol=1e-15)


def test_every_kernel_has_a_docstring_of_one_sentence_first():
    for name, method in inspect.getmembers(ElementwiseKernels, inspect.isfunction):
        if not name.startswith("_"):
            first = inspect.getdoc(method).split("\n\n")[0]
            assert first.endswith(".") and first[0].isupper(), name
