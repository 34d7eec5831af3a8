"""References of Bessel, Airy and incomplete gamma functions and of orthogonal polynomials: integrals and series, slowly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mortice_conformance.references import LONG, each

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(300)


def _integral(fn: Any, low: float, high: float) -> float:
    t = (high - low) / 2 * (_NODES + 1) + low
    return float((high - low) / 2 * np.sum(_WEIGHTS * fn(t)))


def _turn(fn: Any) -> float:
    """Average over half a turn: of a smooth even periodic function equal steps give every digit."""
    t = np.arange(1, 256, dtype=LONG) / LONG(256) * LONG(math.pi)
    return float((fn(LONG(0)) / 2 + np.sum(fn(t)) + fn(LONG(math.pi)) / 2) / 256)


def _first(order: int) -> Any:
    return each(lambda x: _turn(lambda t: np.cos(order * t - LONG(x) * np.sin(t))))


def _second(order: int) -> Any:
    def y(x: float) -> float:
        if x <= 0 or math.isnan(x):
            return -math.inf if x == 0 else math.nan
        wave = _integral(lambda t: np.sin(x * np.sin(t) - order * t), 0.0, math.pi)
        tail = _integral(
            lambda t: (np.exp(order * t) + (-1) ** order * np.exp(-order * t)) * np.exp(-x * np.sinh(t)),
            0.0, math.asinh(750 / x),
        )  # fmt: skip
        return (wave - tail) / math.pi

    return each(y)


def _modified_first(order: int, scaled: bool) -> Any:
    def i(x: float) -> float:
        if math.isinf(x):
            return (0.0 if scaled else math.inf) * math.copysign(1.0, x) ** order
        term = total = (LONG(x) / 2) ** order
        for n in range(1, 100):
            term *= (LONG(x) / 2) ** 2 / (n * (n + order))
            total += term
        return float(total * np.exp(-abs(LONG(x))) if scaled else total)

    return each(i)


def _modified_second(order: int, scaled: bool) -> Any:
    def k(x: float) -> float:
        if x <= 0 or math.isnan(x):
            return math.inf if x == 0 else math.nan
        if math.isinf(x):
            return 0.0
        step = LONG(1) / 64
        t = np.arange(0, math.acosh(1 + 750 / x) + 1, step, dtype=LONG)
        values = np.exp(-LONG(x) * (np.cosh(t) - (1 if scaled else 0))) * np.cosh(order * t)
        return float(step * (np.sum(values) - values[0] / 2))

    return each(k)


bessel_j0, bessel_j1 = _first(0), _first(1)
bessel_y0, bessel_y1 = _second(0), _second(1)
i0, i1, i0e, i1e = (_modified_first(n, scaled) for scaled in (False, True) for n in (0, 1))
k0, k1, k0e, k1e = (_modified_second(n, scaled) for scaled in (False, True) for n in (0, 1))
spherical_j0 = each(lambda x: 1.0 if x == 0 else 0.0 if math.isinf(x) else math.sin(x) / x)


def _airy(x: float) -> float:
    """Add up the two power series; good for |x| up to 4."""
    z = LONG(x) ** 3
    f = g = LONG(1)
    a, b = LONG(1), LONG(1)
    for n in range(1, 60):
        a *= z / ((3 * n - 1) * (3 * n))
        b *= z / ((3 * n) * (3 * n + 1))
        f, g = f + a, g + b
    first = LONG("0.355028053887817239260063186004183177")
    slope = LONG("0.258819403792806798405183560189203963")
    return float(first * f - slope * LONG(x) * g)


airy_ai = each(_airy)


def _gamma(a: float) -> Any:
    """Return gamma(a), a > 0, in more digits than a float has: Stirling's series, far out, and the recurrence back."""
    z, product = LONG(a), LONG(1)
    while z < 30:
        product, z = product * z, z + 1
    w = 1 / (z * z)
    tail = (LONG(1) / 12 - w * (LONG(1) / 360 - w * (LONG(1) / 1260 - w * (LONG(1) / 1680 - w / 1188)))) / z
    turn = LONG("6.283185307179586476925286766559005768")
    return np.exp((z - LONG(0.5)) * np.log(z) - z + np.log(turn) / 2 + tail) / product


def _lower_gamma(a: float, x: float) -> Any:
    """Add up the series, whose terms are all positive; good for a and x of a few units."""
    if a < 0 or x < 0 or math.isnan(a + x) or (a == 0 and x == 0):
        return math.nan
    if x == 0 or a == 0:
        return 0.0 if x == 0 else 1.0
    term = total = LONG(1)
    for n in range(1, 200):
        term *= LONG(x) / (LONG(a) + n)
        total += term
    return total * np.exp(LONG(a) * np.log(LONG(x)) - LONG(x)) / _gamma(a + 1)


gammainc, gammaincc = each(_lower_gamma), each(lambda a, x: 1 - _lower_gamma(a, x))


# ---- orthogonal polynomials: degree 1 as (slope, constant), then a * x + b and c of each step ----

_STEPS: dict[str, tuple[tuple[int, int], Any]] = {
    "chebyshev_t": ((1, 0), lambda j: (2, 0, 1)),
    "chebyshev_u": ((2, 0), lambda j: (2, 0, 1)),
    "chebyshev_v": ((2, -1), lambda j: (2, 0, 1)),
    "chebyshev_w": ((2, 1), lambda j: (2, 0, 1)),
    "hermite_h": ((2, 0), lambda j: (2, 0, 2 * j)),
    "hermite_he": ((1, 0), lambda j: (1, 0, j)),
    "laguerre_l": ((-1, 1), lambda j: (LONG(-1) / (j + 1), LONG(2 * j + 1) / (j + 1), LONG(j) / (j + 1))),
    "legendre_p": ((1, 0), lambda j: (LONG(2 * j + 1) / (j + 1), 0, LONG(j) / (j + 1))),
}


def polynomial(family: str, shifted: bool = False) -> Any:
    """Return a family of polynomials, by their recurrence."""
    (slope, constant), step = _STEPS[family]

    def value(x: float, n: float) -> float:
        at = 2 * LONG(x) - 1 if shifted else LONG(x)
        p, q = LONG(1), slope * at + constant
        if n < 1:
            return 1.0 if n > -1 else 0.0
        for j in range(1, int(n)):
            a, b, c = step(j)
            p, q = q, (a * at + b) * q - c * p
        return float(q)

    return each(value)
