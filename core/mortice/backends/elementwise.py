"""ElementwiseKernels: the FREE kernels that work element by element, real and complex.

Complex bodies are in `elementwise_complex`, the error and gamma functions in `elementwise_special`. Signed zeros,
infinities and nan come out as in C99; half precision is computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import mortice.backends.elementwise_complex as on_complex
from mortice.backends.elementwise_special import SpecialKernels
from mortice.backends.kernel_tools import Buffer, as_buffers, horner, in_float32, is_minus, is_number, single
from mortice.dtype import bool_, by_name, finfo

# (atan(t) / t - 1) / t**2 as a polynomial in t**2, for |t| <= tan(pi / 8): Chebyshev interpolation in 50 digits.
_ATAN = (
    (
        -0.3333333333333333, 0.19999999999999804, -0.14285714285659779, 0.11111111105150588, -0.09090908753259112,
        0.07692296368042296, -0.0666642476020052, 0.05878927554473807, -0.05230443640686948, 0.045515447340221615,
        -0.03456931506332609, 0.016284375050043393,
    ),
    (-0.3333333176, 0.1999954031, -0.1426394975, 0.1074366832, -0.06451718869),
)  # fmt: skip
# What the nearest float64 and float32 lack of pi; of pi / 2 and pi / 4 it is a half and a quarter.
_PI_REST = (1.2246467991473532e-16, -8.742278000372485e-08)
_LN2 = math.log(2.0)
# Beyond these 1 / x**2 is less than half an ulp of 1.
_LARGE = (2.0**28, 2.0**13)


def _atan_positive(k: Any, r: Buffer) -> Buffer:
    """Invert the tangent for r >= 0, infinity included."""
    high = k.less(2.414213562373095, r)
    middle = k.less(0.41421356237309503, r)
    reduced = k.divide(k.subtract(r, 1.0), k.add(r, 1.0))
    t = k.where(high, k.divide(-1.0, r), k.where(middle, reduced, r))
    zero = k.zeros_like(r)
    base = k.where(high, math.pi / 2, k.where(middle, math.pi / 4, zero))
    rest = _PI_REST[single(k, r)]
    base_rest = k.where(high, rest / 2, k.where(middle, rest / 4, zero))
    z = k.multiply(t, t)
    curved = k.multiply(k.multiply(t, z), horner(k, _ATAN[single(k, r)], z))
    return k.add(base, k.add(t, k.add(curved, base_rest)))


def _with_sign(k: Any, magnitude: Buffer, x: Buffer) -> Buffer:
    """Give a result that is not negative the sign of x, zeros included."""
    return k.where(is_minus(k, x), k.negative(magnitude), magnitude)


def _truth(k: Any, x: Any) -> Any:
    if is_number(x):
        return bool(x)
    return x if k.dtype_of(x) is bool_ else k.not_equal(x, 0)


def _scaled(k: Any, a: Any, value: Any) -> Any:
    """Multiply what may be two numbers, and what may be by 1."""
    if is_number(value) and (value == 1 or is_number(a)):
        return a * value if is_number(a) else a
    return k.multiply(a, value)


class ElementwiseKernels(SpecialKernels):
    """Elementwise kernels with default bodies."""

    # ---- comparison and logic ----

    def not_equal(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Tell where x differs from y; nan differs from everything."""
        return k.logical_not(k.equal(x, y))

    def greater(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Tell where x is above y."""
        return k.less(y, x)

    def less_equal(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Tell where x is not above y; false with nan."""
        return k.bitwise_or(k.less(x, y), k.equal(x, y))

    def greater_equal(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Tell where x is not below y; false with nan."""
        return k.bitwise_or(k.less(y, x), k.equal(x, y))

    def logical_and(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Tell where both are nonzero."""
        return k.bitwise_and(_truth(k, x), _truth(k, y))

    def logical_or(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Tell where at least one is nonzero."""
        return k.bitwise_or(_truth(k, x), _truth(k, y))

    def logical_xor(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Tell where exactly one is nonzero."""
        return k.bitwise_xor(_truth(k, x), _truth(k, y))

    def bitwise_invert(k: Any, x: Buffer) -> Buffer:
        """Flip every bit; bools are negated."""
        d = k.dtype_of(x)
        if d is bool_:
            return k.logical_not(x)
        return k.bitwise_xor(x, -1 if d.is_signed else 2 ** (8 * d.itemsize) - 1)

    def isfinite(k: Any, x: Buffer) -> Buffer:
        """Tell where x is neither infinite nor nan."""
        d = k.dtype_of(x)
        if d.is_complex:
            return k.bitwise_and(k.isfinite(k.real(x)), k.isfinite(k.imag(x)))
        if not d.is_floating_point:
            return k.new_full(x, k.shape_of(x), True, bool_)
        return k.equal(k.subtract(x, x), 0.0)

    def isinf(k: Any, x: Buffer) -> Buffer:
        """Tell where x, or a part of it, is infinite."""
        d = k.dtype_of(x)
        if d.is_complex:
            return k.bitwise_or(k.isinf(k.real(x)), k.isinf(k.imag(x)))
        if not d.is_floating_point:
            return k.new_full(x, k.shape_of(x), False, bool_)
        return k.equal(k.abs(x), math.inf)

    def signbit(k: Any, x: Buffer) -> Buffer:
        """Tell where the sign is set, that of -0.0 and of nan included."""
        d = k.dtype_of(x)
        if not d.is_signed:
            return k.new_full(x, k.shape_of(x), False, bool_)
        if not d.is_floating_point:
            return k.less(x, 0)
        return k.less(k.reinterpret(x, by_name(f"int{8 * d.itemsize}")), 0)

    # ---- signs and rounding ----

    def positive(k: Any, x: Buffer) -> Buffer:
        """Return x itself, in memory of its own."""
        return k.copy(x)

    def sgn(k: Any, x: Buffer) -> Buffer:
        """Return the sign, of a complex number x / abs(x), and 0 of zero."""
        return on_complex.sgn(k, x) if k.dtype_of(x).is_complex else k.sign(x)

    def floordiv(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Divide and round down; of infinite operands give the quotient itself, and not the nan and -1 of `floor_divide`."""
        if k.dtype_of(y if is_number(x) else x).kind != "f":
            return k.floor_divide(x, y)
        quotient, infinite = k.divide(x, y), [k.isinf(v) for v in (x, y) if not is_number(v)]
        if any(abs(v) == math.inf for v in (x, y) if is_number(v)):
            return quotient
        either = k.bitwise_or(*infinite) if len(infinite) == 2 else infinite[0]
        return k.where(either, quotient, k.floor_divide(x, y))

    def copysign(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Give x the sign of y; the sign of a nan in y reads as clear."""
        x, y = as_buffers(k, x, y)
        return k.where(k.logical_xor(is_minus(k, x), is_minus(k, y)), k.negative(x), x)

    def ceil(k: Any, x: Buffer) -> Buffer:
        """Round towards positive infinity."""
        return k.negative(k.floor(k.negative(x))) if k.dtype_of(x).is_floating_point else k.copy(x)

    def trunc(k: Any, x: Buffer) -> Buffer:
        """Round towards zero."""
        if not k.dtype_of(x).is_floating_point:
            return k.copy(x)
        return k.where(k.less(x, 0.0), k.ceil(x), k.floor(x))

    @in_float32
    def round(k: Any, x: Buffer, decimals: int = 0) -> Buffer:
        """Round to the nearest, ties to even; negative decimals round left of the point."""
        if not k.dtype_of(x).is_floating_point:
            return k.copy(x)
        if decimals:
            scale = 10.0 ** abs(decimals)
            up, down = (k.multiply, k.divide) if decimals > 0 else (k.divide, k.multiply)
            return down(k.round(up(x, scale)), scale)
        a = k.abs(x)
        below = k.floor(a)
        rest = k.subtract(a, below)
        odd = k.not_equal(k.multiply(k.floor(k.multiply(below, 0.5)), 2.0), below)
        up = k.bitwise_or(k.less(0.5, rest), k.bitwise_and(k.equal(rest, 0.5), odd))
        return _with_sign(k, k.where(up, k.add(below, 1.0), below), x)

    # ---- arithmetic ----

    def square(k: Any, x: Buffer) -> Buffer:
        """Multiply x by itself."""
        return k.multiply(x, x)

    def reciprocal(k: Any, x: Buffer) -> Buffer:
        """Divide 1 by x."""
        return k.divide(1.0, x)

    def rdivide(k: Any, x: Any, y: Buffer) -> Buffer:
        """Multiply the reciprocal of y by x, rounded after each."""
        inverse = k.reciprocal(y)
        return inverse if is_number(x) and x == 1 else k.multiply(inverse, x)

    @in_float32
    def rsqrt(k: Any, x: Buffer) -> Buffer:
        """Divide 1 by the square root."""
        return k.divide(1.0, k.sqrt(x))

    @in_float32
    def hypot(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Return sqrt(x*x + y*y) without overflow on the way; infinite beside any infinity, even with nan."""
        x, y = as_buffers(k, x, y)
        x, y = k.abs(x), k.abs(y)
        large, small = k.maximum(x, y), k.minimum(x, y)
        ratio = k.divide(small, k.where(k.equal(large, 0.0), 1.0, large))
        length = k.multiply(large, k.sqrt(k.add(k.multiply(ratio, ratio), 1.0)))
        infinite = k.bitwise_or(k.equal(x, math.inf), k.equal(y, math.inf))
        return k.where(infinite, math.inf, length)

    def fmod(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Return the remainder of division towards zero: its sign is that of x."""
        x, y = as_buffers(k, x, y)
        if k.dtype_of(x).is_floating_point:
            return _with_sign(k, k.remainder(k.abs(x), k.abs(y)), x)
        rest = k.remainder(x, y)
        if not k.dtype_of(x).is_signed:
            return rest
        crossed = k.bitwise_and(k.not_equal(rest, 0), k.bitwise_xor(k.less(x, 0), k.less(y, 0)))
        return k.where(crossed, k.subtract(rest, y), rest)

    def clip(k: Any, x: Buffer, lo: Any = None, hi: Any = None) -> Buffer:
        """Limit x to lo from below, then to hi from above; either may be None, a number or a buffer."""
        if lo is None and hi is None:
            return k.copy(x)
        if lo is not None:
            x = k.maximum(x, lo)
        return x if hi is None else k.minimum(x, hi)

    def nan_to_num(k: Any, x: Buffer, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Buffer:
        """Replace nan and infinities, these by the largest finite values unless told otherwise."""
        d = k.dtype_of(x)
        if d.is_complex:
            parts = (k.nan_to_num(part, nan, posinf, neginf) for part in (k.real(x), k.imag(x)))
            return k.complex(*parts)
        if not d.is_floating_point:
            return k.copy(x)
        most = finfo(d).max
        x = k.where(k.isnan(x), nan, k.where(k.equal(x, math.inf), most if posinf is None else posinf, x))
        return k.where(k.equal(x, -math.inf), -most if neginf is None else neginf, x)

    @in_float32
    def lerp(k: Any, start: Buffer, end: Buffer, weight: Any) -> Buffer:
        """Interpolate between start and end, exactly at both."""
        span = k.subtract(end, start)
        if is_number(weight) and abs(weight) < 0.5:
            return k.add(start, k.multiply(span, weight))
        if is_number(weight):
            return k.subtract(end, k.multiply(span, 1.0 - weight))
        from_start = k.add(start, k.multiply(span, weight))
        from_end = k.subtract(end, k.multiply(span, k.subtract(1.0, weight)))
        return k.where(k.less(k.abs(weight), 0.5), from_start, from_end)

    @in_float32
    def addcmul(k: Any, x: Buffer, a: Any, b: Any, value: Any = 1) -> Buffer:
        """Add a * b * value to x."""
        return k.add(x, k.multiply(_scaled(k, a, value), b))

    @in_float32
    def addcdiv(k: Any, x: Buffer, a: Any, b: Any, value: Any = 1) -> Buffer:
        """Add a / b * value to x."""
        return k.add(x, k.divide(_scaled(k, a, value), b))

    # ---- complex numbers from parts ----

    def complex(k: Any, re: Buffer, im: Buffer) -> Buffer:
        """Join real and imaginary parts, of one dtype, exactly: zeros keep their signs, infinities stay apart."""
        return on_complex.join(k, re, im)

    def angle(k: Any, x: Buffer) -> Buffer:
        """Return the argument: of a real number 0, pi when negative, or nan."""
        if k.dtype_of(x).is_complex:
            return k.atan2(k.imag(x), k.real(x))
        return k.where(k.isnan(x), x, k.where(k.less(x, 0.0), math.pi, k.zeros_like(x)))

    # ---- exponentials and logarithms ----

    @in_float32
    def expm1(k: Any, x: Buffer) -> Buffer:
        """Return exp(x) - 1, accurate near 0."""
        if k.dtype_of(x).is_complex:
            return on_complex.expm1(k, x)
        # The rounding error of exp cancels in (u - 1) / log(u), which changes slowly (Kahan).
        u = k.exp(x)
        less_one = k.subtract(u, 1.0)
        near = k.where(k.equal(u, 1.0), x, k.multiply(less_one, k.divide(x, k.log(u))))
        return k.where(k.less(k.abs(x), 1.0), near, less_one)

    @in_float32
    def exp2(k: Any, x: Buffer) -> Buffer:
        """Raise 2 to x."""
        return on_complex.exp2(k, x) if k.dtype_of(x).is_complex else k.pow(2.0, x)

    @in_float32
    def log1p(k: Any, x: Buffer) -> Buffer:
        """Return log(1 + x), accurate near 0."""
        if k.dtype_of(x).is_complex:
            return on_complex.log1p(k, x)
        # As in expm1: log(u) / (u - 1) changes slowly, so the rounding of 1 + x does not show.
        u = k.add(x, 1.0)
        corrected = k.multiply(k.log(u), k.divide(x, k.subtract(u, 1.0)))
        return k.where(k.equal(u, 1.0), x, k.where(k.equal(u, math.inf), u, corrected))

    @in_float32
    def log2(k: Any, x: Buffer) -> Buffer:
        """Return the logarithm to base 2, exact at powers of 2."""
        return _log_base(k, x, 2.0)

    @in_float32
    def log10(k: Any, x: Buffer) -> Buffer:
        """Return the logarithm to base 10, exact at powers of 10."""
        return _log_base(k, x, 10.0)

    @in_float32
    def logaddexp(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Return log(exp(x) + exp(y)) without overflow."""
        x, y = as_buffers(k, x, y)
        if k.dtype_of(x).is_complex:
            return on_complex.logaddexp(k, x, y)
        apart = k.abs(k.subtract(x, y))
        # Equal infinities have no difference.
        apart = k.where(k.equal(x, y), 0.0, apart)
        return k.add(k.maximum(x, y), k.log1p(k.exp(k.negative(apart))))

    @in_float32
    def sigmoid(k: Any, x: Buffer) -> Buffer:
        """Return 1 / (1 + exp(-x)), accurate on both sides."""
        if k.dtype_of(x).is_complex:
            left = k.less(k.real(x), 0.0)
            e = k.exp(k.where(left, x, k.negative(x)))
            return k.divide(k.where(left, e, 1.0), k.add(e, 1.0))
        e = k.exp(k.negative(k.abs(x)))
        return k.divide(k.where(k.less(x, 0.0), e, 1.0), k.add(e, 1.0))

    @in_float32
    def softplus(k: Any, x: Buffer, beta: float = 1.0, threshold: float = 20.0) -> Buffer:
        """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds the threshold."""
        scaled = k.multiply(x, beta)
        bent = k.add(k.maximum(scaled, 0.0), k.log1p(k.exp(k.negative(k.abs(scaled)))))
        return k.where(k.less(threshold, scaled), x, k.divide(bent, beta))

    # ---- trigonometric functions ----

    @in_float32
    def tan(k: Any, x: Buffer) -> Buffer:
        """Return the tangent."""
        return on_complex.tan(k, x) if k.dtype_of(x).is_complex else k.divide(k.sin(x), k.cos(x))

    @in_float32
    def asin(k: Any, x: Buffer) -> Buffer:
        """Invert the sine."""
        if k.dtype_of(x).is_complex:
            return on_complex.asin(k, x)
        a = k.abs(x)
        ratio = k.divide(a, k.sqrt(k.multiply(k.subtract(1.0, a), k.add(a, 1.0))))
        return _with_sign(k, _atan_positive(k, ratio), x)

    @in_float32
    def acos(k: Any, x: Buffer) -> Buffer:
        """Invert the cosine."""
        if k.dtype_of(x).is_complex:
            return on_complex.acos(k, x)
        return k.multiply(_atan_positive(k, k.sqrt(k.divide(k.subtract(1.0, x), k.add(x, 1.0)))), 2.0)

    @in_float32
    def atan(k: Any, x: Buffer) -> Buffer:
        """Invert the tangent."""
        if k.dtype_of(x).is_complex:
            return on_complex.atan(k, x)
        return _with_sign(k, _atan_positive(k, k.abs(x)), x)

    @in_float32
    def atan2(k: Any, y: Buffer, x: Buffer) -> Buffer:
        """Return the angle of the point (x, y), signed zeros and infinities as in C99."""
        x, y = as_buffers(k, x, y)
        a, b = k.abs(y), k.abs(x)
        ratio = k.divide(a, b)
        ratio = k.where(k.bitwise_and(k.equal(a, 0.0), k.equal(b, 0.0)), 0.0, ratio)
        ratio = k.where(k.bitwise_and(k.equal(a, math.inf), k.equal(b, math.inf)), 1.0, ratio)
        near = _atan_positive(k, ratio)
        far = k.subtract(math.pi, k.subtract(near, _PI_REST[single(k, x)]))
        return _with_sign(k, k.where(is_minus(k, x), far, near), y)

    # ---- hyperbolic functions ----

    @in_float32
    def sinh(k: Any, x: Buffer) -> Buffer:
        """Return the hyperbolic sine."""
        if k.dtype_of(x).is_complex:
            return on_complex.sinh(k, x)
        a = k.abs(x)
        e = k.expm1(a)
        half = k.exp(k.multiply(a, 0.5))
        # Where exp overflows, the half of it need not.
        far = k.multiply(k.multiply(half, 0.5), half)
        near = k.multiply(k.add(e, k.divide(e, k.add(e, 1.0))), 0.5)
        return _with_sign(k, k.where(k.equal(e, math.inf), far, near), x)

    @in_float32
    def cosh(k: Any, x: Buffer) -> Buffer:
        """Return the hyperbolic cosine."""
        if k.dtype_of(x).is_complex:
            return on_complex.cosh(k, x)
        a = k.abs(x)
        e = k.exp(a)
        half = k.exp(k.multiply(a, 0.5))
        far = k.multiply(k.multiply(half, 0.5), half)
        return k.where(k.equal(e, math.inf), far, k.add(k.multiply(e, 0.5), k.divide(0.5, e)))

    @in_float32
    def asinh(k: Any, x: Buffer) -> Buffer:
        """Invert the hyperbolic sine."""
        if k.dtype_of(x).is_complex:
            return on_complex.asinh(k, x)
        a = k.abs(x)
        square = k.multiply(a, a)
        near = k.log1p(k.add(a, k.divide(square, k.add(k.sqrt(k.add(square, 1.0)), 1.0))))
        far = k.add(k.log(a), _LN2)
        return _with_sign(k, k.where(k.less(_LARGE[single(k, x)], a), far, near), x)

    @in_float32
    def acosh(k: Any, x: Buffer) -> Buffer:
        """Invert the hyperbolic cosine; nan below 1."""
        if k.dtype_of(x).is_complex:
            return on_complex.acosh(k, x)
        t = k.subtract(x, 1.0)
        near = k.log1p(k.add(t, k.sqrt(k.multiply(t, k.add(t, 2.0)))))
        far = k.add(k.log(x), _LN2)
        result = k.where(k.less(_LARGE[single(k, x)], x), far, near)
        return k.where(k.less(x, 1.0), math.nan, result)

    @in_float32
    def atanh(k: Any, x: Buffer) -> Buffer:
        """Invert the hyperbolic tangent; nan beyond 1."""
        if k.dtype_of(x).is_complex:
            return on_complex.atanh(k, x)
        a = k.abs(x)
        twice = k.add(a, a)
        # Near 0 as twice + small, so that the large part is exact.
        small = k.multiply(twice, k.divide(a, k.subtract(1.0, a)))
        t = k.where(k.less(a, 0.5), k.add(twice, small), k.divide(twice, k.subtract(1.0, a)))
        return _with_sign(k, k.multiply(k.log1p(t), 0.5), x)


def _log_base(k: Any, x: Buffer, base: float) -> Buffer:
    if k.dtype_of(x).is_complex:
        z = k.log(x)
        scale = math.log(base)
        return k.complex(k.divide(k.real(z), scale), k.divide(k.imag(z), scale))
    y = k.divide(k.log(x), math.log(base))
    whole = k.round(y)
    eps = finfo(k.dtype_of(x)).eps
    # Powers of 2 are exact; those of 10 are off by an ulp, which the logarithm does not show.
    off = k.abs(k.subtract(k.pow(base, whole), x))
    power = k.equal(off, 0.0) if base == 2 else k.less_equal(off, k.multiply(x, 2 * eps))
    # Among subnormal numbers a power may equal x and yet be far from it: so it must also be near.
    near = k.less_equal(k.abs(k.subtract(y, whole)), k.multiply(k.abs(whole), 4 * eps))
    return k.where(k.bitwise_and(power, near), whole, y)
