"""SpecialKernels: the error function and its relatives, the logarithm of gamma and its derivative, for real numbers.

The coefficients were made for this file: Chebyshev interpolation, of rational functions where two rows are given, in 50
digits, one set for double and one for single precision.
"""

from __future__ import annotations

import math
from typing import Any

from mortice.backends.kernel_tools import Buffer, horner, in_float32, single

# erf(x) / x - 1 as a polynomial in x**2, for |x| <= 1/2.
_ERF = (
    (
        0.12837916709551256, -0.37612638903183476, 0.11283791670925353, -0.026866170632887928,
        0.00522397737302147, -0.0008548297753674966, 0.00012053335124353741, -1.4845849259707869e-05,
        1.4725865480556744e-06,
    ),
    (0.1283791656, -0.3761260901, 0.1128283143, -0.02675773274, 0.004719082567),
)  # fmt: skip
# (1 + 2 * x) * erfcx(x) as a polynomial in (x - c) / (x + c), c = 4 or 2, for x >= 0.46.
_ERFCX = (
    (
        1.2329951186255526, -0.13962111684056253, 0.015379652102620467, 0.0680970542546924,
        -0.10103906603636317, 0.0937328349984149, -0.06633036581050444, 0.03716751553546256,
        -0.016197734082227373, 0.005031970005850649, -0.0007577730909745659, -0.00019925690860485306,
        0.00015062069780480338, -2.4398210172972927e-05, -1.1218964505710102e-05, 5.706733362701008e-06,
        2.877025857665674e-07, -8.19700634763782e-07, 8.213761803087083e-08, 1.033047793704518e-07,
        -2.3111228570602045e-08, -9.636754390628351e-09, 3.389301783205648e-09,
    ),
    (
        1.276978381, -0.09276382612, -0.1660303025, 0.1640510307, -0.0542228031, -0.008028798606,
        0.008745703776, 0.001232727885, -0.001527158747, -0.0003319293854, 0.0002761485399,
    ),
)  # fmt: skip
# lgamma(x) / ((x - 1) * (x - 2)) as a quotient of polynomials in x - 1, for 1 <= x <= 2.5.
LGAMMA_TOP = (
    (
        0.5772156649015329, 1.86098081549575, 2.3635332465382795, 1.5039306323240016, 0.5046254359063024,
        0.08615496862055282, 0.006587735783867843, 0.00016347778605451383, 2.825921424862604e-07,
    ),
    (0.5772156633, 0.6780612819, 0.1842236081, 0.005245316188, -0.000135785751),
)  # fmt: skip
LGAMMA_BOTTOM = (
    (
        1.0, 3.6489518772461453, 5.375823303013315, 4.106494651490621, 1.7395350918804513, 0.4058072147401558,
        0.04870926129451927, 0.002566612704336833, 4.0169597554256417e-05,
    ),
    (1.0, 1.599597113, 0.7295278723, 0.08777096692),
)  # fmt: skip
# digamma(x) / (x - root) as a quotient of polynomials in x - 1, for 1 <= x <= 2.
_DIGAMMA_TOP = (
    (
        1.2503801375034054, 1.8675925104074453, 0.9711327526262392, 0.21631407251432455, 0.01996408274151926,
        0.0005811135063985677, 1.0894678528383955e-06,
    ),
    (1.250380136, 1.126160753, 0.207897002, 0.002426444255),
)  # fmt: skip
_DIGAMMA_BOTTOM = (
    (
        1.0, 2.1771665986671342, 1.6630736963665909, 0.5710455727133128, 0.09111902253303285,
        0.006100975692434821, 0.00012043151172286901,
    ),
    (1.0, 1.584201418, 0.647353047, 0.06252359773),
)  # fmt: skip
# x * (lgamma(x) minus the leading terms) as a polynomial in 1 / x**2, for x >= 8.
STIRLING = (
    (
        0.0833333333333333, -0.002777777777606244, 0.0007936506649487538, -0.0005952025951698658,
        0.000837283450542408, -0.0016526004301122236,
    ),
    (0.08333330939, -0.002765501802),
)  # fmt: skip
# x**2 * (leading terms minus digamma(x)) as a polynomial in 1 / x**2, for x >= 8.
_PSI_TAIL = (
    (
        0.08333333333333287, -0.008333333331168556, 0.0039682523428407205, -0.004166217650565792,
        0.0075190882223774924, -0.017711160221389632,
    ),
    (0.08333321417, -0.008272198549),
)  # fmt: skip
_ERFCX_CENTRE = (4.0, 2.0)
# The positive root of digamma, and what the nearest float lacks of it.
_ROOT = ((1.4616321449683622, 9.549995429965697e-17), (1.4616321325302124, 1.2438149938918909e-08))
# A multiple of 1 / grain has few enough digits, below 2**5, that its square is exact.
_GRAIN = (2.0**16, 2.0**6)
_SQRT_PI = math.sqrt(math.pi)


def _erf_near(k: Any, x: Buffer) -> Buffer:
    """Return erf where |x| <= 1/2."""
    return k.add(x, k.multiply(x, horner(k, _ERF[single(k, x)], k.multiply(x, x))))


def _erfcx_far(k: Any, x: Buffer) -> Buffer:
    """Return exp(x**2) * erfc(x) where x >= 0.46."""
    i = single(k, x)
    t = k.divide(k.subtract(x, _ERFCX_CENTRE[i]), k.add(x, _ERFCX_CENTRE[i]))
    t = k.where(k.equal(x, math.inf), 1.0, t)
    return k.divide(k.multiply(horner(k, _ERFCX[i], t), 0.5), k.add(x, 0.5))  # twice x may be infinite


def _exp_square(k: Any, x: Buffer, sign: float) -> Buffer:
    """Return exp(sign * x**2), x >= 0, as accurate as exp although the square is rounded."""
    grain = _GRAIN[single(k, x)]
    # exp of more than 32**2 is infinite and of less than its negative 0, in both precisions.
    x = k.minimum(x, 31.0)
    coarse = k.divide(k.floor(k.multiply(x, grain)), grain)
    rest = k.multiply(k.subtract(x, coarse), k.add(x, coarse))
    return k.multiply(k.exp(k.multiply(k.multiply(coarse, coarse), sign)), k.exp(k.multiply(rest, sign)))


def _erfc_far(k: Any, x: Buffer) -> Buffer:
    """Return erfc where x >= 0.46."""
    return k.multiply(_exp_square(k, x, -1.0), _erfcx_far(k, x))


def _sin_pi(k: Any, x: Buffer) -> Buffer:
    """Return |sin(pi * x)|; the reduction is exact."""
    return k.abs(k.sin(k.multiply(k.subtract(x, k.round(x)), math.pi)))


def _down_to(k: Any, x: Buffer, low: float) -> tuple[Buffer, list[Buffer]]:
    """Step x < 8 down by ones until it is at most `low`; return it and, for each step, the smaller number (or 1)."""
    steps = []
    for _ in range(math.ceil(8 - low)):
        above = k.less(low, x)
        x = k.where(above, k.subtract(x, 1.0), x)
        steps.append(k.where(above, x, 1.0))
    return x, steps


def _lgamma_positive(k: Any, x: Buffer) -> Buffer:
    i = single(k, x)
    small, large = k.less(x, 1.0), k.logical_not(k.less(x, 8.0))
    y = k.where(small, k.add(x, 1.0), k.where(large, 1.0, x))
    y, steps = _down_to(k, y, 2.5)
    product = steps[0]
    for step in steps[1:]:
        product = k.multiply(product, step)
    product = k.where(small, x, product)
    log = k.log(k.where(large, x, product))
    # x + 1 may have been rounded, and near 1 its distance from 2 matters.
    s = k.where(small, x, k.subtract(y, 1.0))
    ratio = k.divide(horner(k, LGAMMA_TOP[i], s), horner(k, LGAMMA_BOTTOM[i], s))
    centre = k.multiply(k.multiply(s, k.subtract(s, 1.0)), ratio)
    near = k.where(small, k.subtract(centre, log), k.add(centre, log))
    inverse = k.divide(1.0, x)
    tail = k.multiply(inverse, horner(k, STIRLING[i], k.multiply(inverse, inverse)))
    far = k.multiply(k.subtract(x, 0.5), k.subtract(log, 1.0))
    far = k.add(far, k.add(tail, 0.5 * math.log(2 * math.pi) - 0.5))
    return k.where(large, far, near)


def _digamma_positive(k: Any, x: Buffer) -> Buffer:
    i = single(k, x)
    small, large = k.less(x, 1.0), k.logical_not(k.less(x, 8.0))
    y = k.where(small, k.add(x, 1.0), k.where(large, 1.0, x))
    y, steps = _down_to(k, y, 2.0)
    total = k.where(small, k.divide(-1.0, x), 0.0)
    for step in reversed(steps):
        total = k.add(total, k.where(k.equal(step, 1.0), 0.0, k.divide(1.0, step)))
    s = k.subtract(y, 1.0)
    root, rest = _ROOT[i]
    slope = k.divide(horner(k, _DIGAMMA_TOP[i], s), horner(k, _DIGAMMA_BOTTOM[i], s))
    near = k.add(k.multiply(k.subtract(k.subtract(y, root), rest), slope), total)
    inverse = k.divide(1.0, x)
    z = k.multiply(inverse, inverse)
    correction = k.add(k.multiply(inverse, 0.5), k.multiply(z, horner(k, _PSI_TAIL[i], z)))
    return k.where(large, k.subtract(k.log(x), correction), near)


class SpecialKernels:
    """Error and gamma functions with default bodies."""

    @in_float32
    def erf(k: Any, x: Buffer) -> Buffer:
        """Return the error function."""
        a = k.abs(x)
        far = k.subtract(1.0, _erfc_far(k, k.maximum(a, 0.5)))
        far = k.where(k.less(x, 0.0), k.negative(far), far)
        return k.where(k.less(a, 0.5), _erf_near(k, x), far)

    @in_float32
    def erfc(k: Any, x: Buffer) -> Buffer:
        """Return 1 - erf(x), accurate where it is small."""
        a = k.abs(x)
        far = _erfc_far(k, k.maximum(a, 0.5))
        far = k.where(k.less(x, 0.0), k.subtract(2.0, far), far)
        return k.where(k.less(a, 0.5), k.subtract(1.0, _erf_near(k, x)), far)

    @in_float32
    def erfcx(k: Any, x: Buffer) -> Buffer:
        """Return exp(x**2) * erfc(x), which does not underflow."""
        a = k.abs(x)
        square = _exp_square(k, a, 1.0)
        far = _erfcx_far(k, k.maximum(a, 0.5))
        far = k.where(k.less(x, 0.0), k.subtract(k.multiply(square, 2.0), far), far)
        return k.where(k.less(a, 0.5), k.multiply(square, k.subtract(1.0, _erf_near(k, x))), far)

    @in_float32
    def erfinv(k: Any, x: Buffer) -> Buffer:
        """Invert the error function; infinite at -1 and 1, nan beyond."""
        a = k.abs(x)
        left = k.subtract(1.0, a)
        # Starts with two or three digits, which each of Halley's steps triples.
        z = k.multiply(a, a)
        near = k.multiply(k.multiply(a, horner(k, (1.0, 0.2617993878, 0.1439317311), z)), _SQRT_PI / 2)
        log = k.log(k.multiply(left, k.add(a, 1.0)))
        b = k.add(k.multiply(log, 0.5), 2 / (math.pi * 0.147))
        inner = k.subtract(k.multiply(b, b), k.divide(log, 0.147))
        far = k.sqrt(k.subtract(k.sqrt(inner), b))
        central = k.less(a, 0.5)
        y = k.where(central, near, far)
        for _ in range(3 - single(k, x)):
            miss = k.subtract(left, _erfc_far(k, k.maximum(y, 0.46)))
            miss = k.where(central, k.subtract(_erf_near(k, y), a), miss)
            step = k.divide(k.multiply(miss, _SQRT_PI / 2), k.exp(k.negative(k.multiply(y, y))))
            y = k.subtract(y, k.divide(step, k.add(k.multiply(step, y), 1.0)))
        y = k.where(k.equal(a, 1.0), math.inf, k.where(k.less(1.0, a), math.nan, y))
        return k.where(k.equal(x, 0.0), x, k.where(k.less(x, 0.0), k.negative(y), y))

    @in_float32
    def lgamma(k: Any, x: Buffer) -> Buffer:
        """Return the logarithm of |gamma(x)|; infinite at 0, -1, -2, ...

        Near the zeros between negative integers only the absolute error is small.
        """
        negative = k.less(x, 0.0)
        positive = _lgamma_positive(k, k.where(negative, k.subtract(1.0, x), x))
        mirrored = k.subtract(k.log(k.divide(math.pi, _sin_pi(k, x))), positive)
        result = k.where(negative, mirrored, positive)
        pole = k.bitwise_and(k.equal(x, k.floor(x)), k.logical_not(k.less(0.0, x)))
        return k.where(k.bitwise_or(pole, k.equal(k.abs(x), math.inf)), math.inf, result)

    @in_float32
    def digamma(k: Any, x: Buffer) -> Buffer:
        """Return the derivative of lgamma; nan at -1, -2, ..., infinite against the sign of a zero."""
        negative = k.less(x, 0.0)
        positive = _digamma_positive(k, k.where(negative, k.subtract(1.0, x), x))
        turn = k.multiply(k.subtract(x, k.round(x)), math.pi)
        mirrored = k.subtract(positive, k.divide(math.pi, k.divide(k.sin(turn), k.cos(turn))))
        result = k.where(negative, mirrored, positive)
        pole = k.bitwise_and(k.equal(x, k.floor(x)), negative)
        result = k.where(pole, math.nan, result)
        return k.where(k.equal(x, 0.0), k.divide(-1.0, x), result)
