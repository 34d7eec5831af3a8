"""Methods that work element by element: arithmetic, functions, comparison, logic, bits."""

from __future__ import annotations

from mortice.lazy import family
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.ops import blend, bounds, compare, elementwise, inplace, parts, special, special_bessel, unary
    from mortice.ops import complex as complex_ops
else:
    blend, compare, elementwise = family("ops.blend"), family("ops.compare"), family("ops.elementwise")
    bounds = family("ops.bounds")
    inplace, parts, special = family("ops.inplace"), family("ops.parts"), family("ops.special")
    special_bessel, unary, complex_ops = family("ops.special_bessel"), family("ops.unary"), family("ops.complex")


def _part(fn: Any) -> property:
    """Make the property of a view, which writes through it when it is assigned to."""

    def write(self: Any, value: Any) -> None:
        fn(self)[...] = value

    return property(fn, write)


class Elementwise(TensorBase):
    """Functions of elements, and their in-place forms."""

    __slots__ = ()

    # ---- elementwise: two operands ----

    add, sub, subtract, mul = elementwise.add, elementwise.sub, elementwise.subtract, elementwise.mul
    multiply, div, divide, true_divide = (
        elementwise.multiply, elementwise.div, elementwise.divide, elementwise.true_divide)  # fmt: skip
    floor_divide, remainder, fmod, pow = (
        elementwise.floor_divide, elementwise.remainder, elementwise.fmod, elementwise.pow)  # fmt: skip
    float_power, ldexp, maximum, minimum = (
        elementwise.float_power, elementwise.ldexp, bounds.maximum, bounds.minimum)  # fmt: skip
    fmax, fmin, clamp, clip = bounds.fmax, bounds.fmin, bounds.clamp, bounds.clip
    clamp_min, clamp_max, addcmul, addcdiv = (
        bounds.clamp_min, bounds.clamp_max, blend.addcmul, blend.addcdiv)  # fmt: skip
    lerp, copysign, heaviside, nextafter = (
        blend.lerp, elementwise.copysign, elementwise.heaviside, elementwise.nextafter)  # fmt: skip
    add_, sub_, subtract_ = inplace.add_, inplace.sub_, inplace.subtract_
    mul_, multiply_, div_ = inplace.mul_, inplace.multiply_, inplace.div_
    divide_, true_divide_ = inplace.divide_, inplace.true_divide_
    floor_divide_, remainder_ = inplace.floor_divide_, inplace.remainder_
    fmod_, pow_, float_power_ = inplace.fmod_, inplace.pow_, inplace.float_power_
    ldexp_, clamp_, clip_ = inplace.ldexp_, inplace.clamp_, inplace.clip_
    clamp_min_, clamp_max_ = inplace.clamp_min_, inplace.clamp_max_
    addcmul_, addcdiv_, lerp_ = inplace.addcmul_, inplace.addcdiv_, inplace.lerp_
    copysign_, heaviside_ = inplace.copysign_, inplace.heaviside_
    nextafter_ = inplace.nextafter_

    def where(self, condition: Any, other: Any) -> Any:
        """Choose own elements where the condition holds, else those of `other`."""
        from mortice.ops import bounds

        return bounds.where(condition, self, other)

    # ---- elementwise: one operand ----

    neg, negative, positive, abs, absolute, sign = (
        unary.neg, unary.negative, unary.positive, unary.abs, unary.absolute, unary.sign)  # fmt: skip
    sgn, sqrt, rsqrt, square, reciprocal, exp, exp2 = (
        unary.sgn, unary.sqrt, unary.rsqrt, unary.square, unary.reciprocal, unary.exp, unary.exp2)  # fmt: skip
    expm1, log, log2, log10, log1p, sigmoid, sin = (
        unary.expm1, unary.log, unary.log2, unary.log10, unary.log1p, unary.sigmoid, unary.sin)  # fmt: skip
    cos, tan, asin, arcsin, acos, arccos, atan = (
        unary.cos, unary.tan, unary.asin, unary.arcsin, unary.acos, unary.arccos, unary.atan)  # fmt: skip
    arctan, atan2, arctan2, sinh, cosh, tanh, asinh = (
        unary.arctan, unary.atan2, unary.arctan2, unary.sinh, unary.cosh, unary.tanh, unary.asinh)  # fmt: skip
    arcsinh, acosh, arccosh, atanh, arctanh, hypot = (
        unary.arcsinh, unary.acosh, unary.arccosh, unary.atanh, unary.arctanh, unary.hypot)  # fmt: skip
    logaddexp, logaddexp2, floor, ceil, trunc, fix = (
        unary.logaddexp, unary.logaddexp2, unary.floor, unary.ceil, unary.trunc, unary.fix)  # fmt: skip
    round, frac, deg2rad, rad2deg, nan_to_num = (
        unary.round, unary.frac, unary.deg2rad, unary.rad2deg, unary.nan_to_num)  # fmt: skip
    neg_, negative_, abs_, absolute_ = inplace.neg_, inplace.negative_, inplace.abs_, inplace.absolute_
    sign_, sgn_, sqrt_, rsqrt_ = inplace.sign_, inplace.sgn_, inplace.sqrt_, inplace.rsqrt_
    square_, reciprocal_, exp_, exp2_ = inplace.square_, inplace.reciprocal_, inplace.exp_, inplace.exp2_
    expm1_, log_, log2_, log10_ = inplace.expm1_, inplace.log_, inplace.log2_, inplace.log10_
    log1p_, sigmoid_, sin_, cos_ = inplace.log1p_, inplace.sigmoid_, inplace.sin_, inplace.cos_
    tan_, asin_, arcsin_, acos_ = inplace.tan_, inplace.asin_, inplace.arcsin_, inplace.acos_
    arccos_, atan_, arctan_, atan2_ = inplace.arccos_, inplace.atan_, inplace.arctan_, inplace.atan2_
    arctan2_, sinh_, cosh_, tanh_ = inplace.arctan2_, inplace.sinh_, inplace.cosh_, inplace.tanh_
    asinh_, arcsinh_, acosh_, arccosh_ = inplace.asinh_, inplace.arcsinh_, inplace.acosh_, inplace.arccosh_
    atanh_, arctanh_, hypot_, floor_ = inplace.atanh_, inplace.arctanh_, inplace.hypot_, inplace.floor_
    ceil_, trunc_, fix_, round_ = inplace.ceil_, inplace.trunc_, inplace.fix_, inplace.round_
    frac_, deg2rad_, rad2deg_ = inplace.frac_, inplace.deg2rad_, inplace.rad2deg_
    nan_to_num_ = inplace.nan_to_num_
    erf, erfc, erfinv, lgamma, digamma = (
        special.erf, special.erfc, special.erfinv, special.lgamma, special.digamma)  # fmt: skip
    igamma, igammac, i0, gcd, lcm, frexp = (
        special.igamma, special.igammac, special_bessel.i0, parts.gcd, parts.lcm, parts.frexp)  # fmt: skip
    polygamma, mvlgamma, logit, sinc, xlogy = (
        special.polygamma_of, special.mvlgamma, special.logit, special.sinc, special.xlogy)  # fmt: skip
    erf_, erfc_, erfinv_ = inplace.erf_, inplace.erfc_, inplace.erfinv_
    lgamma_, digamma_, polygamma_ = inplace.lgamma_, inplace.digamma_, inplace.polygamma_
    mvlgamma_, logit_, sinc_ = inplace.mvlgamma_, inplace.logit_, inplace.sinc_
    xlogy_, igamma_, igammac_, i0_ = inplace.xlogy_, inplace.igamma_, inplace.igammac_, inplace.i0_
    gcd_, lcm_ = inplace.gcd_, inplace.lcm_
    angle, conj, conj_physical, resolve_conj = (
        complex_ops.angle, complex_ops.conj, complex_ops.conj_physical, complex_ops.resolve_conj)  # fmt: skip
    resolve_neg = complex_ops.resolve_neg
    conj_physical_ = inplace.conj_physical_
    real = complex_ops.real.as_property(_part)
    imag = complex_ops.imag.as_property(_part)

    def is_conj(self) -> bool:
        """Tell whether conjugation is pending; it never is."""
        return False

    is_neg = is_conj

    # ---- comparison, logic, bits ----

    eq, ne, lt, le, gt, ge, not_equal = (
        compare.eq, compare.ne, compare.lt, compare.le, compare.gt, compare.ge, compare.not_equal)  # fmt: skip
    less, less_equal, greater, greater_equal = (
        compare.less, compare.less_equal, compare.greater, compare.greater_equal)  # fmt: skip
    logical_and, logical_or, logical_xor, logical_not = (
        compare.logical_and, compare.logical_or, compare.logical_xor, compare.logical_not)  # fmt: skip
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = (
        compare.bitwise_and, compare.bitwise_or, compare.bitwise_xor, compare.bitwise_not)  # fmt: skip
    bitwise_left_shift, bitwise_right_shift, isnan, isinf = (
        compare.bitwise_left_shift, compare.bitwise_right_shift, compare.isnan, compare.isinf)  # fmt: skip
    isfinite, isposinf, isneginf, isreal, isclose = (
        compare.isfinite, compare.isposinf, compare.isneginf, compare.isreal, compare.isclose)  # fmt: skip
    allclose, equal, signbit = compare.allclose, compare.equal, compare.signbit
    eq_, ne_, lt_, le_ = inplace.eq_, inplace.ne_, inplace.lt_, inplace.le_
    gt_, ge_, not_equal_ = inplace.gt_, inplace.ge_, inplace.not_equal_
    less_, less_equal_, greater_ = inplace.less_, inplace.less_equal_, inplace.greater_
    greater_equal_, logical_and_, logical_or_ = inplace.greater_equal_, inplace.logical_and_, inplace.logical_or_
    logical_xor_, logical_not_, bitwise_and_ = inplace.logical_xor_, inplace.logical_not_, inplace.bitwise_and_
    bitwise_or_, bitwise_xor_, bitwise_not_ = inplace.bitwise_or_, inplace.bitwise_xor_, inplace.bitwise_not_
    bitwise_left_shift_, bitwise_right_shift_ = inplace.bitwise_left_shift_, inplace.bitwise_right_shift_
