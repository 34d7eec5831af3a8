"""Special functions beside mpmath over wide ranges, in double and on a device that has single precision alone."""

import math
from fractions import Fraction
from math import comb, factorial

import mpmath as mp
import pytest

import mortice as mt
from mortice.autograd import gradcheck, gradgradcheck

S = mt.special


def points(low, high, count=24, both=False):
    """Return points spread evenly in size, and on a line."""
    ratio = (high / low) ** (1 / (count - 1))
    found = [low * ratio**i for i in range(count)] + [low + (high - low) * i / count for i in range(1, count)]
    return found + [-x for x in found] if both else found


def worst(fn, exact, xs, dtype, device, absolute=False):
    """Return the largest error in ulp, of the value or of 1."""
    x = mt.tensor(xs, dtype=dtype, device=device)
    info, found = mt.finfo(dtype), 0.0
    with mp.workdps(40):
        for at, got in zip(x.tolist(), fn(x).tolist()):
            true = exact(mp.mpf(at))
            if info.smallest_normal < abs(true) < info.max:
                error = abs(mp.mpf(got) - true) / (max(abs(true), 1) if absolute else abs(true))
                found = max(found, float(error / info.eps))
    return found


WAVES = {
    S.bessel_j0: lambda x: mp.besselj(0, x),
    S.bessel_j1: lambda x: mp.besselj(1, x),
    S.bessel_y0: lambda x: mp.bessely(0, x),
    S.bessel_y1: lambda x: mp.bessely(1, x),
    S.spherical_bessel_j0: lambda x: mp.sin(x) / x,
}
STEADY = {
    S.i0: lambda x: mp.besseli(0, x),
    S.i0e: lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    S.i1: lambda x: mp.besseli(1, x),
    S.i1e: lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    S.modified_bessel_k0: lambda x: mp.besselk(0, x),
    S.modified_bessel_k1: lambda x: mp.besselk(1, x),
    S.scaled_modified_bessel_k0: lambda x: mp.besselk(0, x) * mp.exp(x),
    S.scaled_modified_bessel_k1: lambda x: mp.besselk(1, x) * mp.exp(x),
}
PLACES = [(mt.float64, "cpu"), (mt.float32, "cpu"), (mt.float32, "strict_f32")]
ids = ["float64", "float32", "no-float64"]
named = lambda fn: getattr(fn, "__name__", str(fn))


@pytest.mark.parametrize(("dtype", "device"), PLACES, ids=ids)
@pytest.mark.parametrize("fn", WAVES, ids=named)
def test_waves_have_a_small_absolute_error(fn, dtype, device):
    signed = "y" not in fn.__name__
    assert worst(fn, WAVES[fn], points(1e-6, 60, both=signed), dtype, device, absolute=True) < 4


@pytest.mark.parametrize(("dtype", "device"), PLACES, ids=ids)
@pytest.mark.parametrize("fn", STEADY, ids=named)
def test_what_does_not_oscillate_has_a_small_relative_error(fn, dtype, device):
    signed = "_k" not in fn.__name__
    assert worst(fn, STEADY[fn], points(1e-6, 60, both=signed), dtype, device) < 4


@pytest.mark.parametrize(("dtype", "device"), PLACES, ids=ids)
def test_airy_on_both_sides(dtype, device):
    assert worst(S.airy_ai, mp.airyai, points(1e-4, 8), dtype, device) < 32  # the exponent of exp is rounded
    assert worst(S.airy_ai, mp.airyai, [-x for x in points(1e-4, 12)], dtype, device, absolute=True) < 16


@pytest.mark.parametrize(("dtype", "device"), PLACES, ids=ids)
def test_incomplete_gammas_in_every_region(dtype, device):
    info, bound = mt.finfo(dtype), 200
    for a in (1e-3, 0.3, 2.5, 7.9, 8.1, 19.9, 20.1, 250.0):
        x = mt.tensor([a * r for r in (0.05, 0.3, 0.59, 0.62, 0.9, 1.0, 1.1, 1.39, 1.42, 2.0, 5.0)] + [0.01, 1.4, 1.6],
                      dtype=dtype, device=device)  # fmt: skip
        order = mt.tensor(a, dtype=dtype, device=device)
        p, q, at = mt.igamma(order, x).tolist(), mt.igammac(order, x).tolist(), mp.mpf(order.item())
        with mp.workdps(40):
            for place, lower, upper in zip(x.tolist(), p, q):
                for got, true in ((lower, mp.gammainc(at, 0, place, regularized=True)),
                                  (upper, mp.gammainc(at, place, mp.inf, regularized=True))):  # fmt: skip
                    if true > 1e-25:
                        # Far out the tail is exp of a large number, which has been rounded.
                        assert abs(got - true) < bound * info.eps * true, (a, place)


def test_incomplete_gammas_at_the_edges():
    nan, inf = math.nan, math.inf
    a = mt.tensor([0.0, 0.0, 0.0, -1.0, 1.0, 1.0, inf, inf, 1.0, nan, 1.0])
    x = mt.tensor([0.0, 1.0, inf, 1.0, -1.0, 0.0, 1.0, inf, inf, 1.0, nan])
    lower = mt.tensor([nan, 1.0, 1.0, nan, nan, 0.0, 0.0, nan, 1.0, nan, nan])
    assert mt.allclose(mt.igamma(a, x), lower, equal_nan=True)
    assert mt.allclose(mt.igammac(a, x), 1 - lower, equal_nan=True)


def test_bessel_functions_at_the_edges():
    inf, nan = math.inf, math.nan
    x = mt.tensor([0.0, inf, -inf, nan, -1.0])
    assert mt.allclose(S.bessel_j0(x)[:3], mt.tensor([1.0, 0.0, 0.0])) and S.i0e(x)[:3].tolist() == [1.0, 0.0, 0.0]
    assert S.i0(x)[:3].tolist() == [1.0, inf, inf] and S.i1(x)[:3].tolist() == [0.0, inf, -inf]
    assert S.bessel_y0(x)[:2].tolist() == [-inf, 0.0] and S.modified_bessel_k1(x)[:2].tolist() == [inf, 0.0]
    assert S.airy_ai(x)[1:3].tolist() == [0.0, 0.0]
    for fn in (S.bessel_y0, S.bessel_y1, S.modified_bessel_k0, S.modified_bessel_k1):
        assert fn(x)[2:].isnan().all()
    for fn in (*WAVES, *STEADY, S.airy_ai):
        assert fn(x)[3].isnan()


def test_wronskians_tie_the_kinds_together():
    x = mt.tensor(points(0.05, 30), dtype=mt.float64)
    j0, j1, y0, y1 = S.bessel_j0(x), S.bessel_j1(x), S.bessel_y0(x), S.bessel_y1(x)
    assert mt.allclose(j1 * y0 - j0 * y1, 2 / (mt.pi * x), rtol=1e-13, atol=1e-15)
    i0, i1, k0, k1 = S.i0e(x), S.i1e(x), S.scaled_modified_bessel_k0(x), S.scaled_modified_bessel_k1(x)
    assert mt.allclose(i0 * k1 + i1 * k0, 1 / x, rtol=1e-14)


SMOOTH = [S.bessel_j0, S.bessel_j1, S.i0, S.i0e, S.i1, S.i1e, S.spherical_bessel_j0]
POSITIVE = [S.bessel_y0, S.bessel_y1, S.modified_bessel_k0, S.modified_bessel_k1, S.scaled_modified_bessel_k0,
            S.scaled_modified_bessel_k1]  # fmt: skip


@pytest.mark.parametrize("fn", SMOOTH + POSITIVE, ids=named)
def test_bessel_gradients_to_second_order(fn):
    x = [0.3, 0.9, 2.1, 5.5, 6.5, 8.4, 11.0]
    x = mt.tensor(x if fn in POSITIVE else x + [-v for v in x], dtype=mt.float64, requires_grad=True)
    assert gradcheck(fn, (x,)) and gradgradcheck(fn, (x,))


@pytest.mark.parametrize("fn", [S.bessel_j1, S.i1, S.i1e, S.spherical_bessel_j0], ids=named)
def test_gradients_at_zero_are_the_limits(fn):
    x = mt.zeros(1, dtype=mt.float64, requires_grad=True)
    fn(x).backward()
    # By ==: where `mortice.overrides` has come in between, others stand for the functions, which equal them.
    assert x.grad.item() == pytest.approx(0.0 if fn == S.spherical_bessel_j0 else 0.5, rel=1e-15)


def test_incomplete_gamma_gradients_reach_the_second_argument_alone():
    a = mt.tensor([0.5, 1.0, 3.0, 30.0], dtype=mt.float64)
    x = mt.tensor([0.7, 2.0, 1.0, 28.0], dtype=mt.float64, requires_grad=True)
    for fn in (mt.igamma, mt.igammac):
        assert gradcheck(lambda y, fn=fn: fn(a, y), (x,)) and gradgradcheck(lambda y, fn=fn: fn(a, y), (x,))
    with pytest.raises(NotImplementedError, match="derivative"):
        mt.igamma(a.requires_grad_(), x.detach()).sum().backward()


# Explicit sums in exact arithmetic.
def chebyshev_t(n, x):
    terms = [Fraction((-1) ** k * factorial(n - k - 1), factorial(k) * factorial(n - 2 * k)) * (2 * x) ** (n - 2 * k)
             for k in range(n // 2 + 1)] if n else [1]  # fmt: skip
    return sum(terms) * Fraction(n, 2) if n else 1


def chebyshev_u(n, x):
    return sum((-1) ** k * comb(n - k, k) * (2 * x) ** (n - 2 * k) for k in range(n // 2 + 1))


def hermite(n, x, scale):
    terms = [Fraction((-1) ** k, factorial(k) * factorial(n - 2 * k) * (1 if scale == 2 else 2**k)) * (scale * x) ** (n - 2 * k)
             for k in range(n // 2 + 1)]  # fmt: skip
    return factorial(n) * sum(terms)


FAMILIES = {
    S.chebyshev_polynomial_t: chebyshev_t,
    S.chebyshev_polynomial_u: chebyshev_u,
    S.shifted_chebyshev_polynomial_t: lambda n, x: chebyshev_t(n, 2 * x - 1),
    S.shifted_chebyshev_polynomial_u: lambda n, x: chebyshev_u(n, 2 * x - 1),
    S.hermite_polynomial_h: lambda n, x: hermite(n, x, 2),
    S.hermite_polynomial_he: lambda n, x: hermite(n, x, 1),
    S.laguerre_polynomial_l: lambda n, x: sum(comb(n, k) * (-x) ** k / factorial(k) for k in range(n + 1)),
    S.legendre_polynomial_p: lambda n, x: sum(
        Fraction((-1) ** k * comb(n, k) * comb(2 * n - 2 * k, n), 2**n) * x ** (n - 2 * k) for k in range(n // 2 + 1)
    ),
}


@pytest.mark.parametrize("fn", FAMILIES, ids=named)
def test_polynomials_by_degree_and_by_tensor_of_degrees(fn):
    xs = [-2.5, -1.0, -0.8, -0.1, 0.0, 0.3, 0.75, 1.0, 1.7]
    x = mt.tensor(xs, dtype=mt.float64)
    degrees = [0, 1, 2, 3, 7, 8, 9, 14]
    table = fn(x.unsqueeze(1), mt.tensor(degrees))
    for column, n in enumerate(degrees):
        exact = mt.tensor([float(FAMILIES[fn](n, Fraction(v))) for v in xs], dtype=mt.float64)
        assert mt.allclose(table[:, column], exact, rtol=1e-11, atol=1e-12)
        assert mt.allclose(fn(x, n), exact, rtol=1e-11, atol=1e-12)
    assert fn(x, -1).tolist() == [0.0] * len(xs) and fn(0.5, mt.tensor([0.0])).tolist() == [1.0]
    assert fn(x, math.nan).tolist() == fn(x, mt.tensor(math.inf)).tolist() == [0.0] * len(xs)  # no degrees, as in PyTorch


def test_the_third_and_fourth_chebyshev_kinds():
    x = mt.tensor([-1.0, -0.6, 0.2, 0.999, 1.0, 1.5, -1.5], dtype=mt.float64)
    for n in (0, 1, 4, 11, 20):
        t = S.chebyshev_polynomial_u(x, n)
        before = S.chebyshev_polynomial_u(x, n - 1)
        assert mt.allclose(S.chebyshev_polynomial_v(x, n), t - before, rtol=1e-9, atol=1e-9)
        assert mt.allclose(S.chebyshev_polynomial_w(x, n), t + before, rtol=1e-9, atol=1e-9)
        twice = 2 * x - 1
        assert mt.allclose(S.shifted_chebyshev_polynomial_v(x, n), S.chebyshev_polynomial_v(twice, n))
        assert mt.allclose(S.shifted_chebyshev_polynomial_w(x, n), S.chebyshev_polynomial_w(twice, n))


@pytest.mark.parametrize("device", ["cpu", "strict_f32"])
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision_rounds_once(dtype, device):
    x = mt.tensor([0.25, 1.5, 3.0, 7.0], dtype=dtype, device=device)
    for fn in (S.i0e, S.i1e, S.modified_bessel_k0, S.bessel_j0):
        assert (fn(x) == fn(x.float()).to(dtype)).all()
    assert (mt.igamma(x, x) == mt.igamma(x.float(), x.float()).to(dtype)).all()
    assert (S.legendre_polynomial_p(x, 5) == S.legendre_polynomial_p(x.float(), 5).to(dtype)).all()


def test_integers_give_the_default_float():
    for fn in (mt.i0, S.i1, S.bessel_j0, S.airy_ai):
        assert fn(mt.tensor([1, 2])).dtype is mt.float32
    assert S.hermite_polynomial_h(mt.tensor([1, 2]), 3).dtype is mt.float32
    assert S.hermite_polynomial_he(mt.ones(2, dtype=mt.float64), 1e15).isnan().all()  # and at once


def test_aliases_are_the_same_functions():
    assert S.gammainc == mt.igamma and S.gammaincc == mt.igammac and S.i0 == mt.i0 == S.modified_bessel_i0


@pytest.mark.parametrize("device", ["cpu", "strict_f32"])
@pytest.mark.parametrize("q", [0.125, 1.0, 40.0, -0.25, -1.5, -9.75, -20.25, -137.5])
def test_zeta_sums_the_terms_below_zero_too(q, device):
    exact, tolerance = [], 3e-6 if device == "strict_f32" else 1e-13
    orders = [2.0, 3.0, 6.0, 7.0]
    for x in orders:
        below = math.ceil(max(-q, 0))
        terms = mp.fsum((mp.mpf(q) + i) ** -x for i in range(below))
        exact.append(float(terms + mp.zeta(x, mp.mpf(q) + below)))
    dtype = mt.float32 if device == "strict_f32" else mt.float64
    found = S.zeta(mt.tensor(orders, dtype=dtype, device=device), q).tolist()
    assert all(abs(a - b) <= tolerance * max(abs(b), 1) for a, b in zip(found, exact)), (found, exact)


@pytest.mark.parametrize(
    ("dtype", "device"), [(mt.float64, "cpu"), (mt.float32, "strict_f32"), (mt.float16, "cpu")], ids=["64", "32", "16"]
)
def test_quantiles_of_the_normal_are_exact_in_both_tails(dtype, device):
    p = [10.0**-n for n in (300, 38, 20, 7, 4)] + [0.02, 0.09, 0.11, 0.3, 0.499, 0.625, 0.875, 0.99]
    p = [x for x in mt.tensor(p).to(dtype).tolist() if x] if dtype is not mt.float64 else p
    with mp.workdps(40):
        exact = [mp.findroot(lambda y, x=x: mp.log(mp.ncdf(y)) - mp.log(x), S.ndtri(mt.tensor(x, dtype=mt.float64)).item()) for x in p]
        found = S.ndtri(mt.tensor(p, dtype=dtype, device=device)).tolist()
        assert all(abs(a - b) <= 4 * mt.finfo(dtype).eps * abs(b) for a, b in zip(found, exact)), list(zip(p, found, exact))


def test_quantiles_of_the_normal_have_their_edges_and_gradients():
    assert S.ndtri(mt.tensor([0.0, 0.5, 1.0])).tolist() == [-math.inf, 0, math.inf]
    assert S.ndtri(mt.tensor([-0.25, 1.25, math.nan])).isnan().all()
    p = mt.tensor([1e-3, 0.3, 0.5, 0.75], dtype=mt.float64, requires_grad=True)
    assert gradcheck(S.ndtri, p, eps=1e-8) and gradgradcheck(S.ndtri, p[1:].detach().requires_grad_())


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16], ids=str)
def test_sinc_of_halves_is_zero_at_integers(dtype):
    x = mt.tensor([1.0, -2.0, 3.0, 0.25], dtype=dtype, requires_grad=True)
    wide = x.detach().float().requires_grad_()
    assert mt.sinc(x).tolist() == mt.sinc(wide).to(dtype).tolist() and abs(mt.sinc(x)[0].item()) < 1e-6
    mt.sinc(x).sum().backward()
    mt.sinc(wide).sum().backward()
    assert x.grad.tolist() == wide.grad.to(dtype).tolist()


@pytest.mark.parametrize("n, x", [(1, 1e22), (1, 1e30), (2, 1e15), (3, 2e10), (3, 1e12), (4, 5e8)])
def test_polygamma_far_out_is_a_power(n, x):
    want = (-1) ** (n + 1) * math.factorial(n - 1) / x**n
    assert mt.polygamma(n, mt.tensor(x)).item() == pytest.approx(want, rel=1e-6)
    assert S.zeta(mt.tensor(n + 1.0), mt.tensor(x)).item() == pytest.approx(abs(want) / math.factorial(n), rel=1e-6)


def test_zeta_at_its_edges():
    def zeta(x, q):
        return S.zeta(mt.tensor(x, dtype=mt.float64), mt.tensor(q, dtype=mt.float64)).item()

    assert zeta(math.inf, 1.0) == 1 and all(map(math.isnan, (zeta(2.0, math.inf), zeta(math.inf, 2.0))))  # as in PyTorch
    assert zeta(math.inf, 0.5) == zeta(math.inf, -1.25) == zeta(2.0, -math.inf) == zeta(1.0, 3.0) == zeta(2.0, 0.0) == math.inf
    assert zeta(3.0, -4.0) == math.inf and math.isnan(zeta(0.5, 2.0)) and math.isnan(zeta(2.5, -0.5)) and math.isnan(zeta(2.0, math.nan))


def test_multiples_that_narrow_integers_do_not_hold_wrap_once_their_sign_is_gone():
    x, y = mt.tensor([100, -128, 127, 12], dtype=mt.int8), mt.tensor([99, 3, 126, -128], dtype=mt.int8)
    assert mt.lcm(x, y).tolist() == [-84, -128, -126, -128]
    assert mt.gcd(x, y).tolist() == [1, 1, 1, 4]
    x, y = mt.tensor([300, -32768, 32767], dtype=mt.int16), mt.tensor([299, 3, 32766], dtype=mt.int16)
    assert mt.lcm(x, y).tolist() == [24164, -32768, -32766]
