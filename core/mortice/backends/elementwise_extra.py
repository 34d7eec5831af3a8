"""ExtraKernels: FREE elementwise kernels beyond the array API: polygamma, divisors, neighbours, complex numbers in pairs."""

from __future__ import annotations

import math
from typing import Any

from mortice.backends.kernel_tools import Buffer, as_buffers, horner, in_float32, like, single
from mortice.dtype import bfloat16, finfo, float16, float32, int32

# B_2j / (2j)!, j = 1, 2, ...: Euler and Maclaurin's correction of a sum by an integral.
_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000,
)  # fmt: skip


def _cot_derivative(n: int) -> list[float]:
    """Return the nth derivative of cot(u) as a polynomial in cot(u), lowest coefficient first."""
    poly = [0.0, 1.0]
    for _ in range(n):
        slope = [i * c for i, c in enumerate(poly)][1:]
        poly = [-(a + b) for a, b in zip(slope + [0.0, 0.0], [0.0, 0.0] + slope)]
    return poly


def _zeta_above(k: Any, x: Buffer, q: Buffer) -> Buffer:
    """Return the sum of (q + i)**-x for q of 0 and more: ten terms, and Euler and Maclaurin's for the rest."""
    minus = k.negative(x)
    total = k.pow(q, minus)
    for i in range(1, 10):
        total = k.add(total, k.pow(k.add(q, float(i)), minus))
    w = k.add(q, 10.0)
    edge = k.pow(w, minus)
    # A power of its own: far out it is in range where `edge` is not.
    total = k.add(total, k.divide(k.pow(w, k.subtract(1.0, x)), k.subtract(x, 1.0)))
    total = k.add(total, k.multiply(edge, 0.5))
    term = k.multiply(k.divide(edge, w), x)  # step by step, so that powers of w and of x do not leave the range apart
    for j, c in enumerate(_MACLAURIN):
        total = k.add(total, k.multiply(term, c))
        for n in (2.0 * j + 1, 2.0 * j + 2):
            term = k.multiply(term, k.divide(k.add(x, n), w))
    first = k.where(k.greater(q, 1.0), math.nan, k.pow(q, minus))
    total = k.where(k.equal(q, math.inf), math.nan, total)
    return k.where(k.equal(x, math.inf), first, total)  # the first term is the whole, and as in PyTorch no 0


def _trigamma(k: Any, q: Buffer) -> Buffer:
    """Return the sum of (q + i)**-2 for q above 0, as above but without powers: a few terms do where precision is single."""
    count = 5 if single(k, q) else 10
    total = k.divide(k.divide(1.0, q), q)
    for i in range(1, count):
        w = k.add(q, float(i))
        total = k.add(total, k.divide(1.0, k.multiply(w, w)))
    r = k.divide(1.0, k.add(q, float(count)))
    square = k.multiply(r, r)
    bernoulli = [c * math.factorial(2 * j + 2) for j, c in enumerate(_MACLAURIN[:count])]
    rest = k.add(k.multiply(square, 0.5), k.multiply(k.multiply(square, r), horner(k, bernoulli, square)))
    return k.add(total, k.add(rest, r))


class ExtraKernels:
    """More elementwise kernels with default bodies."""

    @in_float32
    def zeta(k: Any, x: Buffer, q: Buffer) -> Buffer:
        """Return the Hurwitz zeta function, the sum of (q + i)**-x."""
        x, q = as_buffers(k, x, q)
        # The terms below 0 are, but for their sign, those of `part` that end at -q; what follows them starts at 1 - part.
        below = k.less(q, 0.0)
        part = k.subtract(k.ceil(q), q)
        total = _zeta_above(k, x, k.where(below, k.subtract(1.0, part), q))
        terms = k.subtract(
            _zeta_above(k, x, k.where(below, part, 1.0)), _zeta_above(k, x, k.where(below, k.subtract(1.0, q), 1.0))
        )
        # Of two sums beyond the range that with the term nearest to 0 is by far the larger.
        terms = k.where(k.bitwise_and(k.equal(total, math.inf), k.greater(part, 0.5)), 0.0, terms)
        total = k.where(k.bitwise_and(k.equal(terms, math.inf), k.less(part, 0.5)), 0.0, total)
        total = k.add(total, k.where(k.equal(k.remainder(x, 2.0), 1.0), k.negative(terms), terms))
        pole = k.bitwise_and(k.bitwise_or(k.equal(q, k.ceil(q)), k.equal(x, math.inf)), k.less_equal(q, 0.0))
        rough = k.bitwise_and(k.not_equal(x, k.floor(x)), below)
        total = k.where(pole, math.inf, k.where(rough, math.nan, total))
        return k.where(k.equal(x, 1.0), math.inf, k.where(k.less(x, 1.0), math.nan, total))

    @in_float32
    def polygamma(k: Any, n: int, x: Buffer) -> Buffer:
        """Return the nth derivative of digamma, n >= 1; infinite at 0, -1, -2, ..."""
        negative = k.less_equal(x, 0.0)
        sign = -1.0 if n % 2 == 0 else 1.0
        y = k.where(negative, k.subtract(1.0, x), x)
        beyond = n > 170  # the last whose factorial is a float64
        if n == 1:
            positive = _trigamma(k, y)
        else:
            positive = k.multiply(_zeta_above(k, like(k, y, float(n + 1)), y), sign * (math.inf if beyond else math.factorial(n)))
        turn = k.subtract(x, k.round(x))
        # The cosine as a sine, which is exactly 0 halfway between the poles: the terms there cancel.
        cot = k.divide(k.sin(k.multiply(k.subtract(0.5, k.abs(turn)), math.pi)), k.sin(k.multiply(turn, math.pi)))
        curve = horner(k, [math.nan, 0.0] if beyond else _cot_derivative(n), cot)
        mirrored = k.subtract(k.multiply(positive, -sign), k.multiply(curve, math.nan if beyond else math.pi ** (n + 1)))
        pole = k.bitwise_and(negative, k.equal(x, k.floor(x)))
        return k.where(pole, sign * math.inf, k.where(negative, mirrored, positive))

    @in_float32
    def logaddexp2(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Return log2(2**x + 2**y) without overflow."""
        x, y = as_buffers(k, x, y)
        # Equal infinities have no difference.
        apart = k.where(k.equal(x, y), 0.0, k.abs(k.subtract(x, y)))
        return k.add(k.maximum(x, y), k.divide(k.log1p(k.exp2(k.negative(apart))), math.log(2.0)))

    def frexp(k: Any, x: Buffer) -> tuple[Buffer, Buffer]:
        """Return the mantissa, of size in [1/2, 1), and the int32 exponent of 2; what has none is its own mantissa."""
        d = k.dtype_of(x)
        if d is float16 or d is bfloat16:
            mantissa, exponent = k.frexp(k.astype(x, float32))
            return k.astype(mantissa, d), exponent
        limits = finfo(d)
        size = k.abs(x)
        plain = k.bitwise_and(k.less(0.0, size), k.less_equal(size, limits.max))
        size = k.where(plain, size, 1.0)
        # Subnormal numbers are lifted first, and scaled in two halves: neither power leaves the range.
        lift = 1 - math.frexp(limits.eps)[1]
        low = k.less(size, limits.smallest_normal)
        size = k.where(low, k.multiply(size, 2.0**lift), size)
        power = k.add(k.floor(k.log2(size)), 1.0)
        half = k.floor(k.multiply(power, 0.5))
        size = k.multiply(k.multiply(size, k.pow(2.0, k.negative(half))), k.pow(2.0, k.subtract(half, power)))
        # The logarithm may be off by one beside a power of 2.
        over, under = k.less_equal(1.0, size), k.less(size, 0.5)
        size = k.where(over, k.multiply(size, 0.5), k.where(under, k.multiply(size, 2.0), size))
        power = k.where(over, k.add(power, 1.0), k.where(under, k.subtract(power, 1.0), power))
        power = k.where(low, k.subtract(power, float(lift)), power)
        mantissa = k.where(plain, k.where(k.less(x, 0.0), k.negative(size), size), x)
        return mantissa, k.astype(k.where(plain, power, 0.0), int32)

    def gcd(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Return the greatest common divisor, not negative; of zeros 0."""
        x, y = as_buffers(k, x, y)
        d = k.dtype_of(x)
        # Euclid's algorithm takes longest for neighbours in Fibonacci's sequence, which grows by 0.694 bits a step.
        for _ in range(math.ceil(8 * d.itemsize / 0.694)):
            done = k.equal(y, 0)
            x, y = k.where(done, x, y), k.where(done, 0, k.remainder(x, k.where(done, 1, y)))
        return k.abs(x) if d.is_signed else x  # at the end: the least number has no absolute value

    def lcm(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Return the least common multiple, not negative; 0 beside a zero."""
        x, y = as_buffers(k, x, y)
        divisor = k.gcd(x, y)
        whole, d = k.floor_divide(x, k.where(k.equal(divisor, 0), 1, divisor)), k.dtype_of(x)
        if not d.is_signed:
            return k.multiply(whole, y)
        wide = d if d.itemsize > 2 else int32  # narrow ones overflow after the sign has gone, as C's arithmetic does
        return k.astype(k.abs(k.multiply(k.astype(whole, wide), k.astype(y, wide))), d)

    def nextafter(k: Any, x: Buffer, y: Buffer) -> Buffer:
        """Return the representable number beside x in the direction of y."""
        x, y = as_buffers(k, x, y)
        limits = finfo(k.dtype_of(x))
        size = k.abs(x)
        finite = k.where(k.less_equal(size, limits.max), size, 1.0)
        # The power of 2 at or below: the logarithm may be off by one beside one.
        highest = float(math.frexp(limits.max)[1] - 1)
        power = k.pow(2.0, k.minimum(k.floor(k.log2(k.maximum(finite, limits.tiny))), highest))
        power = k.where(k.less(finite, power), k.multiply(power, 0.5), power)
        power = k.where(k.less_equal(power, k.multiply(finite, 0.5)), k.multiply(power, 2.0), power)
        power = k.maximum(power, limits.tiny)
        rising = k.less(x, y)
        outward = k.equal(rising, k.less(0.0, x))
        # Inward from a power of 2 the neighbours are closer.
        inward = k.bitwise_and(k.logical_not(outward), k.less(limits.tiny, power))
        closer = k.bitwise_and(k.equal(power, finite), inward)
        step = k.multiply(k.where(closer, k.multiply(power, 0.5), power), limits.eps)
        size = k.where(k.less_equal(size, limits.max), k.where(outward, k.add(size, step), k.subtract(size, step)),
                       k.where(outward, size, limits.max))  # fmt: skip
        moved = k.where(k.less(x, 0.0), k.negative(size), size)
        least = k.full_like(x, limits.tiny * limits.eps)
        moved = k.where(k.equal(x, 0.0), k.where(rising, least, k.negative(least)), moved)
        moved = k.where(k.equal(x, y), y, moved)
        return k.where(k.isnan(x), x, k.where(k.isnan(y), y, moved))

    def view_as_real(k: Any, x: Buffer) -> Buffer:
        """Return complex numbers as pairs along a new last axis; the same memory where the backend can."""
        return k.stack([k.real(x), k.imag(x)], -1)

    def view_as_complex(k: Any, x: Buffer) -> Buffer:
        """Return pairs along the last axis as complex numbers; the same memory where the backend can."""
        return k.complex(k.getitem(x, (..., 0)), k.getitem(x, (..., 1)))
