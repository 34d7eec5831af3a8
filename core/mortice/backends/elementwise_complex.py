"""Complex bodies of the elementwise kernels, written on real and imaginary parts.

Branch cuts and signs follow C99 Annex G as Kahan laid them out; they rest on `sqrt`, `log`, `sin`, `cos` and `tanh` of
the backend doing the same. Each part is accurate by itself where the formulas do not cancel.
"""

from __future__ import annotations

import math
from typing import Any

from mortice.backends.kernel_tools import Buffer, is_minus, single

_LN2 = math.log(2.0)
# Beyond these z**2 + 1 is z**2 to the last bit, and it is still far from overflow.
_HUGE = (2.0**55, 2.0**26)


def join(k: Any, re: Buffer, im: Buffer) -> Buffer:
    """Make a complex number of two real ones, exactly.

    Multiplying by 1j would turn an infinite part into nan and lose signs of zeros, so this joins magnitudes, with
    constants for what is not finite, and sets the signs by conjugation and negation, which only flip bits.
    """
    d = k.dtype_of(re).to_complex()
    size, finite = k.abs(im), k.isfinite(im)
    upper = k.multiply(k.astype(k.where(finite, size, 0.0), d), 1j)
    infinite = k.where(k.isnan(im), complex(0.0, math.nan), k.new_full(im, (), complex(0.0, math.inf), d))
    z = k.add(k.astype(k.abs(re), d), k.where(finite, upper, infinite))
    minus_re, minus_im = is_minus(k, re), is_minus(k, im)
    z = k.where(k.not_equal(minus_re, minus_im), k.conj(z), z)
    return k.where(minus_re, k.negative(z), z)


def _parts(k: Any, z: Buffer) -> tuple[Buffer, Buffer]:
    return k.real(z), k.imag(z)


def _rotate(k: Any, z: Buffer) -> Buffer:
    """Multiply by 1j exactly."""
    return join(k, k.negative(k.imag(z)), k.real(z))


def _unrotate(k: Any, z: Buffer) -> Buffer:
    """Multiply by -1j exactly."""
    return join(k, k.imag(z), k.negative(k.real(z)))


def _is_huge(k: Any, x: Buffer, y: Buffer) -> Buffer:
    limit = _HUGE[single(k, x)]
    return k.bitwise_or(k.less(limit, k.abs(x)), k.less(limit, k.abs(y)))


def _log_twice_abs(k: Any, x: Buffer, y: Buffer) -> Buffer:
    """Return log(2 * hypot(x, y)) of large parts."""
    # Halved, the hypotenuse of the largest finite parts does not overflow.
    length = k.log(k.hypot(k.multiply(x, 0.5), k.multiply(y, 0.5)))
    return k.add(length, 2 * _LN2)


def sgn(k: Any, z: Buffer) -> Buffer:
    """Return z / abs(z), 0 at 0."""
    x, y = _parts(k, z)
    # Scaling by the larger part keeps subnormal and huge numbers away from the ends of the range.
    most = k.maximum(k.abs(x), k.abs(y))
    zero = k.equal(most, 0.0)
    safe = k.where(zero, 1.0, most)
    x, y = k.divide(x, safe), k.divide(y, safe)
    length = k.where(zero, 1.0, k.hypot(x, y))
    return join(k, k.where(zero, 0.0, k.divide(x, length)), k.where(zero, 0.0, k.divide(y, length)))


def expm1(k: Any, z: Buffer) -> Buffer:
    """Return exp(z) - 1, accurate near 0."""
    x, y = _parts(k, z)
    half = k.sin(k.multiply(y, 0.5))
    re = k.subtract(k.multiply(k.expm1(x), k.cos(y)), k.multiply(k.multiply(half, half), 2.0))
    # Adding 0 makes a real part of -0 one of +0, which the exponential of no -0 lies below.
    near = join(k, k.add(re, 0.0), k.multiply(k.exp(x), k.sin(y)))
    return k.where(k.less(k.abs(x), 1.0), near, k.subtract(k.exp(z), 1.0))


def exp2(k: Any, z: Buffer) -> Buffer:
    """Raise 2 to z."""
    x, y = _parts(k, z)
    size, turn = k.exp2(x), k.multiply(y, _LN2)
    # Nothing times what an infinite turn leaves is nothing.
    lost = k.bitwise_and(k.equal(size, 0.0), k.logical_not(k.isfinite(turn)))
    cosine = k.where(lost, 0.0, k.multiply(size, k.cos(turn)))
    sine = k.where(lost, 0.0, k.multiply(size, k.sin(turn)))
    return join(k, cosine, k.where(k.equal(turn, 0.0), turn, sine))


def log1p(k: Any, z: Buffer) -> Buffer:
    """Return log(1 + z), accurate near 0."""
    x, y = _parts(k, z)
    up = k.add(x, 1.0)
    near = k.multiply(k.log1p(k.add(k.multiply(x, k.add(x, 2.0)), k.multiply(y, y))), 0.5)
    far = k.log(k.hypot(up, y))
    small = k.less(k.maximum(k.abs(x), k.abs(y)), 0.5)
    return join(k, k.where(small, near, far), k.atan2(y, up))


def logaddexp(k: Any, x: Buffer, y: Buffer) -> Buffer:
    """Return log(exp(x) + exp(y)), shifted by the larger real part; one of two where both are infinite alike."""
    a, b = k.real(x), k.real(y)
    first = k.less(b, a)
    large, small = k.where(first, x, y), k.where(first, y, x)
    apart = k.where(k.equal(x, y), 0.0, k.subtract(small, large))
    endless = k.bitwise_and(k.equal(a, b), k.equal(k.abs(a), math.inf))
    endless = k.bitwise_and(endless, k.bitwise_and(k.equal(x, x), k.equal(y, y)))
    return k.where(endless, large, k.add(large, log1p(k, k.exp(apart))))


def tan(k: Any, z: Buffer) -> Buffer:
    """Return the tangent, as the hyperbolic one turned."""
    return _unrotate(k, k.tanh(_rotate(k, z)))


def sinh(k: Any, z: Buffer) -> Buffer:
    """Return the hyperbolic sine, as the sine turned."""
    return _unrotate(k, k.sin(_rotate(k, z)))


def cosh(k: Any, z: Buffer) -> Buffer:
    """Return the hyperbolic cosine, as the cosine turned."""
    return k.cos(_rotate(k, z))


def _roots(k: Any, x: Buffer, y: Buffer) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Return the parts of sqrt(1 - z) and sqrt(1 + z); their imaginary parts have opposite signs."""
    below = k.sqrt(join(k, k.subtract(1.0, x), k.negative(y)))
    above = k.sqrt(join(k, k.add(x, 1.0), y))
    return k.real(below), k.imag(below), k.real(above), k.imag(above)


def asin(k: Any, z: Buffer) -> Buffer:
    """Invert the sine; cut along the real axis beyond -1 and 1."""
    x, y = _parts(k, z)
    a, b, c, d = _roots(k, x, y)
    # No sum below cancels, since b and d have opposite signs.
    re = k.atan2(x, k.subtract(k.multiply(a, c), k.multiply(b, d)))
    im = k.asinh(k.subtract(k.multiply(a, d), k.multiply(b, c)))
    huge = _is_huge(k, x, y)
    re = k.where(huge, k.atan2(x, k.abs(y)), re)
    im = k.where(huge, k.copysign(_log_twice_abs(k, x, y), y), im)
    # An exact zero stays one, whatever the other part.
    return join(k, k.where(k.equal(x, 0.0), x, re), im)


def acos(k: Any, z: Buffer) -> Buffer:
    """Invert the cosine; cut along the real axis beyond -1 and 1."""
    x, y = _parts(k, z)
    a, b, c, d = _roots(k, x, y)
    re = k.multiply(k.atan2(a, c), 2.0)
    im = k.asinh(k.subtract(k.multiply(b, c), k.multiply(a, d)))
    huge = _is_huge(k, x, y)
    re = k.where(huge, k.atan2(k.abs(y), x), re)
    im = k.where(huge, k.copysign(_log_twice_abs(k, x, y), k.negative(y)), im)
    return join(k, k.where(k.equal(x, 0.0), math.pi / 2, re), im)


def atan(k: Any, z: Buffer) -> Buffer:
    """Invert the tangent; cut along the imaginary axis beyond -1j and 1j."""
    return _unrotate(k, atanh(k, _rotate(k, z)))


def asinh(k: Any, z: Buffer) -> Buffer:
    """Invert the hyperbolic sine; cut along the imaginary axis beyond -1j and 1j."""
    return _unrotate(k, asin(k, _rotate(k, z)))


def acosh(k: Any, z: Buffer) -> Buffer:
    """Invert the hyperbolic cosine; cut along the real axis below 1."""
    w = acos(k, z)
    re, im = _parts(k, w)
    return join(k, k.abs(im), k.copysign(re, k.imag(z)))


def atanh(k: Any, z: Buffer) -> Buffer:
    """Invert the hyperbolic tangent; cut along the real axis beyond -1 and 1."""
    x, y = _parts(k, z)
    a, b = k.abs(x), k.abs(y)
    down = k.subtract(1.0, a)
    square = k.multiply(b, b)
    apart = k.add(k.multiply(down, down), square)
    near = k.multiply(k.log1p(k.divide(k.multiply(a, 4.0), apart)), 0.25)
    # Beside the pole the square of b underflows, but its logarithm does not.
    beside = k.multiply(k.subtract(k.log(k.hypot(b, 2.0)), k.log(b)), 0.5)
    re = k.where(k.equal(a, 1.0), beside, near)
    im = k.multiply(k.atan2(k.multiply(b, 2.0), k.subtract(k.multiply(down, k.add(a, 1.0)), square)), 0.5)
    huge = _is_huge(k, x, y)
    length = k.hypot(k.multiply(a, 0.5), k.multiply(b, 0.5))
    inverse = k.multiply(k.divide(k.divide(k.multiply(a, 0.5), length), length), 0.5)
    inverse = k.where(k.equal(length, math.inf), 0.0, inverse)
    re = k.where(huge, inverse, re)
    # Beside nan only an infinite part tells the angle.
    known = k.bitwise_or(k.equal(b, math.inf), k.bitwise_and(k.equal(x, x), k.equal(y, y)))
    im = k.where(k.bitwise_and(huge, known), math.pi / 2, im)
    return join(k, k.where(k.equal(x, 0.0), x, k.copysign(re, x)), k.copysign(im, y))
