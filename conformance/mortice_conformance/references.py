"""References that NumPy lacks: error, gamma and zeta functions in more digits than a result shows, index operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

# Wider than float64 on most machines; the same where it is not, and the tolerance allows for that.
LONG = np.longdouble
_PI = LONG("3.14159265358979323846264338327950288")


def each(fn: Callable[..., float]) -> Callable[..., Any]:
    """Apply a function of Python floats to every element, broadcasting; nan where it has no value."""

    def one(*values: Any) -> float:
        try:
            return float(fn(*[float(v) for v in values]))
        except (ValueError, ZeroDivisionError):
            return math.nan
        except OverflowError:
            return math.inf

    vectorized = np.frompyfunc(one, fn.__code__.co_argcount if hasattr(fn, "__code__") else 1, 1)

    @functools.wraps(fn)
    def whole(*arrays: Any) -> Any:
        return np.asarray(vectorized(*arrays), np.float64)

    return whole


erf, erfc = each(math.erf), each(math.erfc)


def _erfcx(x: float) -> float:
    if x < 25:
        return float(np.exp(LONG(x) * LONG(x)) * LONG(math.erfc(x)))
    z = LONG(1) / (LONG(x) * LONG(x))
    series = LONG(1)
    for n in range(19, 0, -2):
        series = 1 - n * z / 2 * series
    return float(series / (LONG(x) * np.sqrt(_PI)))


def _erfinv(y: float) -> float:
    if abs(y) >= 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    # Newton on the smaller of erf and erfc, from the classic start.
    a = math.log((1 - y) * (1 + y)) if y else 0.0
    b = 2 / (math.pi * 0.147) + a / 2
    x = math.copysign(math.sqrt(max(math.sqrt(b * b - a / 0.147) - b, 0.0)), y)
    for _ in range(4):
        slope = 2 / math.sqrt(math.pi) * math.exp(-x * x)
        error = math.erf(x) - y if abs(y) < 0.5 else ((1 - abs(y)) - math.erfc(abs(x))) * math.copysign(1, y)
        x -= error / slope if slope else 0.0
    return x


def _lgamma(x: float) -> float:
    return math.inf if math.isinf(x) or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


def _digamma(x: float) -> float:
    if math.isinf(x):
        return x if x > 0 else math.nan
    if x <= 0 and x == math.floor(x):
        return math.copysign(math.inf, -math.copysign(1.0, x)) if x == 0 else math.nan
    if x < 0:
        turn = _PI * (LONG(x) - np.floor(LONG(x)))
        return float(LONG(_digamma(1 - x)) - _PI * np.cos(turn) / np.sin(turn))
    y, total = LONG(x), LONG(0)
    while y < 24:
        total -= 1 / y
        y += 1
    z = 1 / (y * y)
    tail = z * (LONG(1) / 12 - z * (LONG(1) / 120 - z * (LONG(1) / 252 - z * (LONG(1) / 240 - z / 132))))
    return float(total + np.log(y) - 1 / (2 * y) - tail)


# B(2k) / (2k)! for the Euler-Maclaurin sum.
_BERNOULLI = [LONG(n) / LONG(d) for n, d in (
    (1, 12), (-1, 720), (1, 30240), (-1, 1209600), (1, 47900160), (-691, 1307674368000), (1, 74724249600),
)]  # fmt: skip


def _zeta(s: float, q: float) -> float:
    if s <= 1:
        return math.inf if s == 1 else math.nan
    if q <= 0 and (q == math.floor(q) or s != math.floor(s)):
        return math.inf if q == math.floor(q) else math.nan
    a, n = LONG(q), 24
    total = LONG(0)
    for k in range(n):
        total += np.abs(a + k) ** LONG(-s) * (-1 if a + k < 0 and int(s) % 2 else 1)
    edge = a + n
    total += edge ** LONG(1 - s) / LONG(s - 1) + edge ** LONG(-s) / 2
    factor = LONG(s) * edge ** LONG(-s - 1)
    for i, b in enumerate(_BERNOULLI):
        total += b * factor
        factor *= LONG(s + 2 * i + 1) * LONG(s + 2 * i + 2) / (edge * edge)
    return float(total)


erfcx, erfinv, lgamma, digamma, zeta = each(_erfcx), each(_erfinv), each(_lgamma), each(_digamma), each(_zeta)


def polygamma(x: Any, n: int) -> Any:
    """Return the nth derivative of digamma."""
    return (-1.0) ** (n + 1) * math.factorial(n) * zeta(float(n + 1), x)


# ---- the standard normal ----


def normal_cdf(x: Any) -> Any:
    """Return the area below each element."""
    return 0.5 * erfc(-np.asarray(x) / math.sqrt(2))


def _log_normal_cdf(x: float) -> float:
    if x > 0:
        return float(np.log1p(-np.exp(-LONG(x) * LONG(x) / 2) * LONG(_erfcx(x / math.sqrt(2))) / 2))
    # Far out the area underflows; its logarithm does not.
    return float(np.log(LONG(_erfcx(-x / math.sqrt(2))) / 2) - LONG(x) * LONG(x) / 2)


log_normal_cdf = each(_log_normal_cdf)


def _normal_quantile(p: float) -> float:
    if not 0 < p < 1:
        return {0: -math.inf, 1: math.inf}.get(p, math.nan)
    # Wichura's AS 241, of 16 digits.
    return NormalDist().inv_cdf(p)


normal_quantile = each(_normal_quantile)


# ---- reductions ----


def over(fn: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    """Call a NumPy reduction with `axis` and `keepdims`."""

    def reduce(x: Any, axis: Any = None, keepdims: bool = False, **attrs: Any) -> Any:
        return fn(x, axis=axis, keepdims=keepdims, **fixed, **attrs)

    return reduce


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials."""
    if np.size(x) == 0:
        return np.log(np.sum(x, axis=axis, keepdims=keepdims))
    top = np.max(np.real(x), axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=keepdims))
    return total + np.reshape(top, np.shape(total))


def picked(positions: Callable[..., Any]) -> Callable[..., Any]:
    """Return (values, indices) where `positions(x, axis)` says, along one axis."""

    def pick(x: Any, axis: int, keepdims: bool = False, **attrs: Any) -> Any:
        at = np.expand_dims(positions(x, axis, **attrs), axis)
        values = np.take_along_axis(x, at, axis)
        return (values, at) if keepdims else (np.squeeze(values, axis), np.squeeze(at, axis))

    return pick


def softmax(x: Any, axis: int) -> Any:
    """Return exponentials that sum to 1."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int) -> Any:
    """Return the logarithm of softmax."""
    return x - logsumexp(x, axis=axis, keepdims=True)


# ---- indexing ----


def scattered(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a scatter along an axis that combines what lands with what is there."""

    def scatter(x: Any, indices: Any, values: Any, axis: int, **attrs: Any) -> Any:
        out = np.array(x)
        for at in np.ndindex(*indices.shape):
            to = list(at)
            to[axis] = int(indices[at])
            out[tuple(to)] = combine(out[tuple(to)], values[at])
        return out

    return scatter


def indexed(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a write of slices at 1-D positions along an axis."""

    def write(x: Any, indices: Any, values: Any, axis: int, **attrs: Any) -> Any:
        out = np.array(x)
        for n, i in enumerate(indices):
            to, source = [slice(None)] * x.ndim, [slice(None)] * x.ndim
            to[axis], source[axis] = int(i), n
            out[tuple(to)] = combine(out[tuple(to)], values[tuple(source)])
        return out

    return write
