"""GammaKernels: the incomplete gamma functions, regularised, of real numbers.

Where a is 20 or more and x near it, Temme's uniform expansion; elsewhere the power series or Legendre's continued
fraction, each cut where its terms no longer count for any element: nothing is read on the host.
"""

from __future__ import annotations

import math
from typing import Any

from mortice.backends.elementwise_special import LGAMMA_BOTTOM, LGAMMA_TOP, STIRLING
from mortice.backends.kernel_tools import Buffer, Table, horner, in_float32, is_number, like, single

# (u - log(1 + u)) / u**2 as a quotient of polynomials, for |u| <= 0.4: interpolation in 60 digits.
_GAP_TOP: Table = (
    (
        0.5, 1.7460372461641687, 2.411183676970399, 1.666131489761013, 0.5980477057161763, 0.10338664131946787,
        0.006523862018525751, 6.529775480849445e-06, -1.6627794677634642e-07,
    ),
    (0.4999999999, 0.6761199953, 0.2152309942, 0.002562873113, -0.0002170654029),
)  # fmt: skip
_GAP_BOTTOM: Table = (
    (
        1.0, 4.158741158995004, 7.0948614599374675, 6.382800039982836, 3.2340278383835113, 0.9088036382607945,
        0.12828085274597592, 0.006783137685101972,
    ),
    (1.0, 2.018906657, 1.276399727, 0.2466056534),
)  # fmt: skip
# Temme's expansion: a row for each power of 1 / a, of coefficients of the powers of eta.
_TEMME = (
    (
        (-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
         0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
         -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
         1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
         -5.830772132550426e-11, 2.4361948020667415e-11),
        (-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
         0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
         -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
         1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09, 4.162792991842583e-10,
         -8.56390702649298e-11),
        (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
         -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08,
         1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
         -1.409252991086752e-08, 6.228974084922022e-09, -1.3670488396617114e-09),
        (0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
         -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06,
         1.4230900732435883e-06, -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
         -1.9111168485973655e-08),
        (-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
         6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10,
         -1.6954149536558305e-06, 8.907507532205309e-07, -2.292934834000805e-07, 2.956794137544049e-11,
         2.8865829742708783e-08),
        (-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392, -0.00019932570516188847,
         6.797780477937208e-05, 1.419062920643967e-07, -1.3594048189768693e-05, 8.018470256334202e-06,
         -2.291481176508095e-06, -3.252473551298454e-10, 3.4652846491085265e-07, -1.8447187191171344e-07),
        (0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07,
         -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05, -3.0796134506033047e-09,
         3.465155368803609e-06, -2.0291327396058603e-06),
        (0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234, 0.0002812695154763237,
         -0.00010976582244684731, -1.2741009095484485e-07, 2.7744451511563645e-05, -1.8263488805711332e-05),
        (-0.0006526239185953094, 0.0008394987206720873, -0.000438297098541721, -6.969091458420552e-07,
         0.00016644846642067547, -0.00012783517679769218, 4.629953263691304e-05),
        (-0.0005967612901927463, -7.204895416020011e-05, 0.0006782308837667328, -0.0006401475260262758,
         0.00027750107634328704),
        (0.0013324454494800656, -0.0019144384985654776, 0.0011089369134596636),
    ),
    (
        (-0.3333333333, 0.08333333333, -0.01481481481, 0.001157407407, 0.0003527336861, -0.000178755144,
         3.919263179e-05, -2.185448511e-06),
        (-0.001851851852, -0.003472222222, 0.002645502646, -0.0009902263374, 0.0002057613169, -4.01877572e-07,
         -1.809855033e-05),
        (0.004133597884, -0.00268132716, 0.0007716049383, 2.00938786e-06, -0.0001073665323),
        (0.0006494341564, 0.0002294720936, -0.0004691894944),
    ),
)  # fmt: skip
# Terms of the series, and of the continued fraction, after which nothing changes: by precision.
_SERIES = (90, 45)
_FRACTION = (100, 40)


def _gap(k: Any, ratio: Buffer, u: Buffer) -> Buffer:
    """Return u - log(ratio), u = ratio - 1, without cancellation near 0."""
    i = single(k, u)
    inner = k.maximum(k.minimum(u, 0.4), -0.4)
    near = k.divide(horner(k, _GAP_TOP[i], inner), horner(k, _GAP_BOTTOM[i], inner))
    near = k.multiply(k.multiply(inner, inner), near)
    return k.where(k.less(k.abs(u), 0.4), near, k.subtract(u, k.log(ratio)))


def _log_gamma_one_plus(k: Any, a: Buffer) -> Buffer:
    """Return lgamma(1 + a), accurate where a is small, for 0 <= a < 8."""
    i = single(k, a)
    s = k.minimum(a, 1.5)
    ratio = k.divide(horner(k, LGAMMA_TOP[i], s), horner(k, LGAMMA_BOTTOM[i], s))
    return k.where(k.less(a, 1.5), k.multiply(k.multiply(s, k.subtract(s, 1.0)), ratio), k.lgamma(k.add(a, 1.0)))


def _front(k: Any, a: Buffer, x: Buffer, gap: Buffer) -> Buffer:
    """Return x**a * exp(-x) / gamma(a + 1); `gap` is a times that of x / a - 1."""
    inverse = k.divide(1.0, k.maximum(a, 8.0))
    tail = k.multiply(inverse, horner(k, STIRLING[single(k, a)], k.multiply(inverse, inverse)))
    large = k.multiply(k.exp(k.negative(k.add(gap, tail))), k.sqrt(k.multiply(inverse, 0.5 / math.pi)))
    b = k.minimum(a, 8.0)
    # Nothing is left of exp(-x) further out, where the power would overflow.
    y = k.minimum(x, 1000.0 if single(k, a) == 0 else 200.0)
    small = k.divide(k.multiply(k.pow(y, b), k.exp(k.negative(y))), k.exp(_log_gamma_one_plus(k, b)))
    return k.where(k.less(a, 8.0), small, large)


def _series(k: Any, a: Buffer, x: Buffer) -> Buffer:
    """Return P over the front factor, for x not above a by much."""
    term = total = k.ones_like(x)
    for n in range(1, _SERIES[single(k, x)]):
        term = k.multiply(term, k.divide(x, k.add(a, float(n))))
        total = k.add(total, term)
    return total


def _small_upper(k: Any, a: Buffer, x: Buffer) -> Buffer:
    """Return Q for x <= 1.5 and a that may be tiny, when Q is."""
    term, total = k.negative(x), k.divide(k.negative(x), k.add(a, 1.0))
    for n in range(2, 24 if single(k, x) == 0 else 14):
        term = k.multiply(term, k.multiply(x, -1.0 / n))
        total = k.add(total, k.divide(term, k.add(a, float(n))))
    log = k.subtract(k.multiply(a, k.log(x)), _log_gamma_one_plus(k, a))
    return k.negative(k.add(k.expm1(log), k.multiply(k.multiply(k.exp(log), a), total)))


def _fraction(k: Any, a: Buffer, x: Buffer) -> Buffer:
    """Return Q over the front factor and a, for x above 1.5 and not below a."""
    low = k.subtract(x, a)
    count = _FRACTION[single(k, x)]
    total = k.add(low, float(2 * count + 1))
    for n in range(count, 0, -1):
        total = k.subtract(k.add(low, float(2 * n - 1)), k.divide(k.multiply(k.subtract(float(n), a), float(n)), total))
    return k.divide(1.0, total)


def _uniform(k: Any, a: Buffer, u: Buffer, gap: Buffer) -> tuple[Buffer, Buffer]:
    """Return P and Q for a >= 20 and |u| < 0.4, u = x / a - 1; `gap` is a times that of u."""
    eta = k.sqrt(k.multiply(k.divide(gap, a), 2.0))
    eta = k.where(k.less(u, 0.0), k.negative(eta), eta)
    inverse, total = k.divide(1.0, a), k.zeros_like(a)
    for row in reversed(_TEMME[single(k, a)]):
        total = k.add(k.multiply(total, inverse), horner(k, row, eta))
    rest = k.multiply(k.multiply(total, k.exp(k.negative(gap))), k.sqrt(k.multiply(inverse, 0.5 / math.pi)))
    z = k.multiply(eta, k.sqrt(k.multiply(a, 0.5)))
    upper = k.multiply(k.erfc(z), 0.5)
    lower = k.multiply(k.erfc(k.negative(z)), 0.5)
    return k.subtract(lower, rest), k.add(upper, rest)


def _both(k: Any, a: Any, x: Any) -> tuple[Buffer, Buffer]:
    """Return the lower and the upper function, P and Q = 1 - P, whichever is small as accurate as the other."""
    a, x = (like(k, x, a), x) if is_number(a) else (a, like(k, a, x))
    zero = k.zeros_like(k.add(a, x))
    a0, x0 = k.add(a, zero), k.add(x, zero)
    # Where an argument is out of range the answer is put in at the end.
    good = k.bitwise_and(k.bitwise_and(k.less(0.0, a0), k.less(0.0, x0)), k.less(k.maximum(a0, x0), math.inf))
    a, x = k.where(good, a0, 1.0), k.where(good, x0, 1.0)
    u = k.divide(k.subtract(x, a), a)
    gap = k.multiply(a, _gap(k, k.divide(x, a), u))
    front = _front(k, a, x, gap)

    middle = k.bitwise_and(k.less(19.99, a), k.less(k.abs(u), 0.4))
    by_series = k.less(x, k.maximum(a, 1.5))
    lower = k.multiply(front, _series(k, k.where(by_series, a, 1.0), k.where(by_series, x, 0.5)))
    tiny = k.bitwise_and(k.less(x, 1.5), k.less(0.5, lower))
    upper = k.where(tiny, _small_upper(k, k.where(tiny, a, 0.5), k.where(tiny, x, 1.0)), k.subtract(1.0, lower))
    beyond = k.multiply(k.multiply(front, a), _fraction(k, k.where(by_series, 1.0, a), k.where(by_series, 2.0, x)))
    lower, upper = k.where(by_series, lower, k.subtract(1.0, beyond)), k.where(by_series, upper, beyond)
    uniform = _uniform(k, k.where(middle, a, 20.0), k.where(middle, u, 0.0), k.where(middle, gap, 0.0))
    lower, upper = k.where(middle, uniform[0], lower), k.where(middle, uniform[1], upper)

    # All of it lies below x where a is 0 or x infinite; none where x is 0 or a infinite; in the corners nobody knows.
    all_below = k.bitwise_or(k.equal(a0, 0.0), k.equal(x0, math.inf))
    all_above = k.bitwise_or(k.equal(x0, 0.0), k.equal(a0, math.inf))
    lost = k.bitwise_or(k.bitwise_and(all_below, all_above), k.bitwise_or(k.less(a0, 0.0), k.less(x0, 0.0)))
    lost = k.bitwise_or(lost, k.isnan(k.add(k.minimum(a0, 1.0), k.minimum(x0, 1.0))))

    def finish(value: Buffer, below: float) -> Buffer:
        value = k.where(all_below, below, k.where(all_above, 1.0 - below, value))
        return k.where(lost, math.nan, value)

    return finish(lower, 1.0), finish(upper, 0.0)


class GammaKernels:
    """Incomplete gamma functions with default bodies."""

    @in_float32
    def gammainc(k: Any, a: Buffer, x: Buffer) -> Buffer:
        """Return the regularised lower incomplete gamma function P(a, x)."""
        return _both(k, a, x)[0]

    @in_float32
    def gammaincc(k: Any, a: Buffer, x: Buffer) -> Buffer:
        """Return the regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
        return _both(k, a, x)[1]
