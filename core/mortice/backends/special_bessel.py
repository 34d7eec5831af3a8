"""BesselKernels: Bessel functions of order 0 and 1, plain, modified and scaled, and the Airy function, of real numbers.

Every function is an interpolated polynomial near 0 and its asymptotic form further out; the numbers are in
`bessel_tables`. Oscillating functions have a small absolute error near their zeros.
"""

from __future__ import annotations

import math
from typing import Any

import mortice.backends.bessel_tables as tables
from mortice.backends.kernel_tools import Buffer, Table, horner, in_float32, single


def _quotient(k: Any, top: Table, bottom: Table, x: Buffer) -> Buffer:
    i = single(k, x)
    return k.divide(horner(k, top[i], x), horner(k, bottom[i], x))


def _odd(k: Any, order: int, value: Buffer, x: Buffer) -> Buffer:
    """Give a function of |x| the sign of x where its order is odd."""
    return k.where(k.less(x, 0.0), k.negative(value), value) if order else value


# ---- J and Y ----


def _j_near(k: Any, order: int, x: Buffer) -> Buffer:
    """Return J where 0 <= x <= 6."""
    i = single(k, x)
    total = horner(k, tables.J_NEAR[order][i], k.subtract(k.multiply(k.multiply(x, x), 1 / 18), 1.0))
    for root, rest in tables.J_ZEROS[order][i]:
        total = k.multiply(total, k.multiply(k.subtract(k.subtract(x, root), rest), k.add(x, root)))
    return k.multiply(total, x) if order else total


def _waves(k: Any, order: int, x: Buffer) -> tuple[Buffer, Buffer]:
    """Return J and Y where x >= 6."""
    t = k.divide(6.0, x)
    z = k.multiply(t, t)
    p = _quotient(k, tables.P_TOP[order], tables.P_BOTTOM[order], z)
    q = k.multiply(t, _quotient(k, tables.Q_TOP[order], tables.Q_BOTTOM[order], z))
    sin, cos = k.sin(x), k.cos(x)
    # Times sqrt(2) the cosine and the sine of x less an odd multiple of pi / 4, which is not subtracted: x may be large.
    across, up = k.add(cos, sin), k.subtract(sin, cos)
    if order:
        across, up = up, k.negative(across)
    scale = k.divide(1.0, k.sqrt(k.multiply(x, math.pi)))
    j = k.multiply(scale, k.subtract(k.multiply(p, across), k.multiply(q, up)))
    y = k.multiply(scale, k.add(k.multiply(p, up), k.multiply(q, across)))
    far = k.equal(x, math.inf)
    return k.where(far, 0.0, j), k.where(far, 0.0, y)


def _first_kind(k: Any, order: int, x: Buffer) -> Buffer:
    a = k.abs(x)
    far = _waves(k, order, k.maximum(a, 6.0))[0]
    return _odd(k, order, k.where(k.less(a, 6.0), _j_near(k, order, k.minimum(a, 6.0)), far), x)


def _second_kind(k: Any, order: int, x: Buffer) -> Buffer:
    near = k.minimum(x, 6.0)
    log = k.multiply(k.log(near), _j_near(k, order, near))
    rest = horner(k, tables.Y_NEAR[order][single(k, x)], k.subtract(k.multiply(k.multiply(near, near), 1 / 18), 1.0))
    if order:
        log, rest = k.subtract(log, k.divide(1.0, near)), k.multiply(rest, near)
    near = k.where(k.equal(x, 0.0), -math.inf, k.add(k.multiply(log, 2 / math.pi), rest))
    value = k.where(k.less(x, 6.0), near, _waves(k, order, k.maximum(x, 6.0))[1])
    return k.where(k.less(x, 0.0), math.nan, value)


# ---- I and K ----


def _i_near(k: Any, order: int, x: Buffer) -> Buffer:
    """Return I where 0 <= x <= 8."""
    total = horner(k, tables.I_NEAR[order][single(k, x)], k.multiply(x, x))
    return k.multiply(total, x) if order else total


def _i_tail(k: Any, order: int, x: Buffer) -> Buffer:
    """Return exp(-x) * I where x >= 8."""
    tail = horner(k, tables.I_FAR[order][single(k, x)], k.subtract(k.divide(16.0, x), 1.0))
    return k.divide(tail, k.sqrt(x))


def _modified_first(k: Any, order: int, x: Buffer, scaled: bool) -> Buffer:
    a = k.abs(x)
    near, far = _i_near(k, order, k.minimum(a, 8.0)), _i_tail(k, order, k.maximum(a, 8.0))
    if scaled:
        near = k.multiply(near, k.exp(k.negative(a)))
    else:
        # Where exp overflows, the product may not.
        half = k.exp(k.multiply(a, 0.5))
        far = k.where(k.equal(a, math.inf), math.inf, k.multiply(k.multiply(far, half), half))
    return _odd(k, order, k.where(k.less(a, 8.0), near, far), x)


def _modified_second(k: Any, order: int, x: Buffer, scaled: bool) -> Buffer:
    near = k.minimum(x, 1.0)
    log = k.multiply(k.log(near), _i_near(k, order, near))
    total = horner(k, tables.K_NEAR[order][single(k, x)], k.multiply(near, near))
    if order:
        total = k.add(k.add(k.multiply(total, near), log), k.divide(1.0, near))
    else:
        total = k.subtract(total, log)
    total = k.where(k.equal(x, 0.0), math.inf, total)
    far = k.maximum(x, 1.0)
    tail = _quotient(k, tables.K_FAR_TOP[order], tables.K_FAR_BOTTOM[order], k.divide(1.0, far))
    tail = k.divide(tail, k.sqrt(far))
    if scaled:
        total = k.multiply(total, k.exp(near))
    else:
        tail = k.multiply(tail, k.exp(k.negative(far)))
    return k.where(k.less(x, 0.0), math.nan, k.where(k.less(x, 1.0), total, tail))


# ---- Airy ----


def _airy_right(k: Any, x: Buffer) -> Buffer:
    """Return Ai where x >= 2."""
    root = k.sqrt(x)
    s = k.multiply(k.multiply(x, root), 2 / 3)
    tail = _quotient(k, tables.AIRY_RIGHT_TOP, tables.AIRY_RIGHT_BOTTOM, k.divide(1.0, s))
    return k.divide(k.multiply(tail, k.exp(k.negative(s))), k.sqrt(root))


def _airy_left(k: Any, x: Buffer) -> Buffer:
    """Return Ai(-x) where x >= 3."""
    root = k.sqrt(x)
    s = k.multiply(k.multiply(x, root), 2 / 3)
    z = k.divide(1.0, k.multiply(s, s))
    p = _quotient(k, tables.AIRY_P_TOP, tables.AIRY_P_BOTTOM, z)
    q = k.divide(_quotient(k, tables.AIRY_Q_TOP, tables.AIRY_Q_BOTTOM, z), s)
    sin, cos = k.sin(s), k.cos(s)
    wave = k.add(k.multiply(p, k.add(cos, sin)), k.multiply(q, k.subtract(sin, cos)))
    wave = k.divide(k.multiply(wave, math.sqrt(0.5)), k.sqrt(root))
    return k.where(k.equal(x, math.inf), 0.0, wave)


class BesselKernels:
    """Bessel and Airy functions with default bodies."""

    @in_float32
    def bessel_j0(k: Any, x: Buffer) -> Buffer:
        """Return the Bessel function of the first kind, order 0."""
        return _first_kind(k, 0, x)

    @in_float32
    def bessel_j1(k: Any, x: Buffer) -> Buffer:
        """Return the Bessel function of the first kind, order 1."""
        return _first_kind(k, 1, x)

    @in_float32
    def bessel_y0(k: Any, x: Buffer) -> Buffer:
        """Return the Bessel function of the second kind, order 0; nan below 0."""
        return _second_kind(k, 0, x)

    @in_float32
    def bessel_y1(k: Any, x: Buffer) -> Buffer:
        """Return the Bessel function of the second kind, order 1; nan below 0."""
        return _second_kind(k, 1, x)

    @in_float32
    def bessel_i0(k: Any, x: Buffer) -> Buffer:
        """Return the modified Bessel function of the first kind, order 0."""
        return _modified_first(k, 0, x, False)

    @in_float32
    def bessel_i0e(k: Any, x: Buffer) -> Buffer:
        """Return exp(-|x|) * I0(x), which does not overflow."""
        return _modified_first(k, 0, x, True)

    @in_float32
    def bessel_i1(k: Any, x: Buffer) -> Buffer:
        """Return the modified Bessel function of the first kind, order 1."""
        return _modified_first(k, 1, x, False)

    @in_float32
    def bessel_i1e(k: Any, x: Buffer) -> Buffer:
        """Return exp(-|x|) * I1(x), which does not overflow."""
        return _modified_first(k, 1, x, True)

    @in_float32
    def bessel_k0(k: Any, x: Buffer) -> Buffer:
        """Return the modified Bessel function of the second kind, order 0; nan below 0."""
        return _modified_second(k, 0, x, False)

    @in_float32
    def bessel_k0e(k: Any, x: Buffer) -> Buffer:
        """Return exp(x) * K0(x), which does not underflow."""
        return _modified_second(k, 0, x, True)

    @in_float32
    def bessel_k1(k: Any, x: Buffer) -> Buffer:
        """Return the modified Bessel function of the second kind, order 1; nan below 0."""
        return _modified_second(k, 1, x, False)

    @in_float32
    def bessel_k1e(k: Any, x: Buffer) -> Buffer:
        """Return exp(x) * K1(x), which does not underflow."""
        return _modified_second(k, 1, x, True)

    @in_float32
    def spherical_bessel_j0(k: Any, x: Buffer) -> Buffer:
        """Return sin(x) / x, 1 at 0 and 0 at infinity."""
        ratio = k.divide(k.sin(x), k.where(k.equal(x, 0.0), 1.0, x))
        return k.where(k.equal(x, 0.0), 1.0, k.where(k.equal(k.abs(x), math.inf), 0.0, ratio))

    @in_float32
    def airy_ai(k: Any, x: Buffer) -> Buffer:
        """Return the Airy function that falls on the right."""
        i = single(k, x)
        inner = k.maximum(k.minimum(x, 0.0), -3.0)
        left = horner(k, tables.AIRY_LEFT[i], k.add(k.divide(inner, 1.5), 1.0))
        inner = k.minimum(k.maximum(x, 0.0), 2.0)
        middle = k.multiply(horner(k, tables.AIRY_MIDDLE[i], inner), k.exp(k.negative(inner)))
        near = k.where(k.less(x, 0.0), left, middle)
        right = _airy_right(k, k.maximum(x, 2.0))
        waves = _airy_left(k, k.maximum(k.negative(x), 3.0))
        return k.where(k.less(2.0, x), right, k.where(k.less(x, -3.0), waves, near))
