"""The in-place forms: `add_` writes what `add` gives into its first argument. PyTorch has few of them as functions too.

Those that need more than the function itself are beside it, in `gather`, `index_rows`, `fill`, `matmul`, `arrange`, `nn_activation`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mortice.dtype import C_NAMES, as_dtype, bool_, check_kind
from mortice.mutation import REAL, inplace
from mortice.ops import (
    arrange,
    blend,
    bounds,
    compare,
    elementwise,
    parts,
    scan,
    special,
    special_bessel,
    statistics,
    unary,
)
from mortice.ops import complex as complex_ops
from mortice.tensor import TensorBase

__all__ = [
    "abs_", "acos_", "acosh_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "asin_",
    "asinh_", "atan_", "atanh_", "ceil_", "clamp_", "clamp_max_", "clamp_min_", "clip_", "conj_physical_", "cos_",
    "cosh_", "deg2rad_", "erf_", "erfc_", "exp2_", "exp_", "expm1_", "fix_", "floor_", "frac_", "gcd_", "i0_",
    "lcm_", "ldexp_", "log10_", "log1p_", "log2_", "log_", "logit_", "nan_to_num_", "neg_", "negative_", "rad2deg_",
    "reciprocal_", "round_", "rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_",
    "trunc_", "xlogy_",
]  # fmt: skip


def _fits(x: Any, number: Any) -> bool:
    """Tell whether it is a number that float32 holds, and x has at least that and is at no level."""
    return type(number) in REAL and -3e38 < number < 3e38 and x.dtype.itemsize > 2 and x._device.base is x._device


# What commonly comes as arguments, as operands; None asks the function.


def _added(input: Any, other: Any, tensor: Any = None, *, alpha: Any = 1) -> Any:
    plain = tensor is None and isinstance(other, TensorBase) and _fits(input, alpha)
    return (blend.addcmul.op, (input, other, alpha, 1)) if plain else None


def _subtracted(input: Any, other: Any, tensor: Any = None, *, alpha: Any = 1) -> Any:
    return _added(input, other, tensor, alpha=-alpha) if type(alpha) in REAL else None


def _with_product(input: Any, tensor1: Any, tensor2: Any, tensor: Any = None, *, value: Any = 1) -> Any:
    plain = tensor is None and isinstance(tensor1, TensorBase) and isinstance(tensor2, TensorBase) and _fits(input, value)
    return (blend.addcmul.op, (input, tensor1, tensor2, value)) if plain else None


def _running(op: Any, input: Any, dim: Any = None, *, axis: Any = None, dtype: Any = None) -> Any:
    if dtype is not None and dtype is not input.dtype:
        own, wanted = (C_NAMES.get(d.name, d.name) for d in (input.dtype, as_dtype("dtype", dtype)))
        raise RuntimeError(f"Bad in-place call: input tensor dtype {own} and output tensor dtype {wanted} should match")
    check_kind("cumsum_, cumprod_", input.dtype, "uifc")
    ndim = len(input.shape)
    return (op, (input,), {"axis": dim % ndim}) if dim.__class__ is int and -ndim <= dim < ndim and axis is None else None


def _divided(input: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    op = {"trunc": elementwise._div_trunc, "floor": elementwise._div_floor}.get(str(rounding_mode), elementwise._div)
    return (op.op, (input, other)) if rounding_mode in (None, "trunc", "floor") else None


def _stepped(input: Any, values: Any) -> Any:
    return (elementwise._heaviside.op, (input, values)) if isinstance(values, TensorBase) else None


def _rounded(input: Any, *, decimals: int = 0) -> Any:
    whole = decimals and input.dtype.kind in "ui"
    return None if whole else (unary._round.op, (input,), {"decimals": decimals})


def _without_nan(input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    attrs = {"nan": 0.0 if nan is None else nan, "posinf": posinf, "neginf": neginf}
    return unary._nan_to_num.op, (input,), attrs


def _log_odds(input: Any, eps: Any = None) -> Any:
    return (special._logit.op, (input,), {"eps": eps}) if eps is None or eps.__class__ in REAL else None


def _triangle(op: Any, input: Any, diagonal: Any = 0) -> Any:
    return (op, (input,), {"diagonal": diagonal}) if diagonal.__class__ is int and len(input.shape) > 1 else None


def _with_quotient(input: Any, tensor1: Any, tensor2: Any, tensor: Any = None, *, value: Any = 1) -> Any:
    found = _with_product(input, tensor1, tensor2, tensor, value=value)
    return found and (tensor1.dtype.kind in "fc" or tensor2.dtype.kind in "fc" or None) and (blend.addcdiv.op, found[1])


def _towards(input: Any, end: Any, weight: Any) -> Any:
    return (blend.lerp.op, (input, end, weight)) if isinstance(end, TensorBase) else None


def _limited(input: Any, min: Any = None, max: Any = None) -> Any:
    return None if (min is None and max is None) or input.dtype is bool_ else (bounds.clamp.op, (input, min, max))


def _limited_above(input: Any, max: Any) -> Any:
    return _limited(input, None, max)


# ---- two operands ----

add_ = inplace(elementwise.add, short=_added)
sub_ = inplace(elementwise.sub, short=_subtracted)
subtract_ = inplace(elementwise.subtract, short=_subtracted)
mul_ = inplace(elementwise.mul)
multiply_ = inplace(elementwise.multiply)
div_ = inplace(elementwise.div, short=_divided)
divide_ = inplace(elementwise.divide, short=_divided)
true_divide_ = inplace(elementwise.true_divide, short=lambda input, other: _divided(input, other))
floor_divide_ = inplace(elementwise.floor_divide)
remainder_ = inplace(elementwise.remainder)
fmod_ = inplace(elementwise.fmod)
pow_ = inplace(elementwise.pow)
float_power_ = inplace(elementwise.float_power_into, "float_power_")
ldexp_ = inplace(elementwise.ldexp, itself=None)
clamp_ = inplace(bounds.clamp, short=_limited)
clip_ = inplace(bounds.clip, short=_limited)
clamp_min_ = inplace(bounds.clamp_min, short=_limited)
clamp_max_ = inplace(bounds.clamp_max, short=_limited_above)
copysign_ = inplace(elementwise.copysign)
heaviside_ = inplace(elementwise.heaviside, short=_stepped)
nextafter_ = inplace(elementwise.nextafter)

# ---- three operands ----

addcmul_ = inplace(blend.addcmul, short=_with_product)
addcdiv_ = inplace(blend.addcdiv, short=_with_quotient)
lerp_ = inplace(blend.lerp, short=_towards)

# ---- one operand ----

neg_ = inplace(unary.neg)
negative_ = inplace(unary.negative)
abs_ = absolute_ = inplace(unary.abs_into, "abs_", short=lambda input: (unary.abs.op, (input,)))
sign_ = inplace(unary.sign)
sgn_ = inplace(unary.sgn)
sqrt_ = inplace(unary.sqrt)
rsqrt_ = inplace(unary.rsqrt)
square_ = inplace(unary.square, short=lambda input: None if input.dtype.kind == "b" else (unary._square.op, (input,)))
reciprocal_ = inplace(unary.reciprocal)
exp_ = inplace(unary.exp)
exp2_ = inplace(unary.exp2)
expm1_ = inplace(unary.expm1)
log_ = inplace(unary.log)
log2_ = inplace(unary.log2)
log10_ = inplace(unary.log10)
log1p_ = inplace(unary.log1p)
sigmoid_ = inplace(unary.sigmoid)
sin_ = inplace(unary.sin)
cos_ = inplace(unary.cos)
tan_ = inplace(unary.tan)
asin_ = inplace(unary.asin)
arcsin_ = inplace(unary.arcsin)
acos_ = inplace(unary.acos)
arccos_ = inplace(unary.arccos)
atan_ = inplace(unary.atan)
arctan_ = inplace(unary.arctan)
atan2_ = inplace(unary.atan2)
arctan2_ = inplace(unary.arctan2)
sinh_ = inplace(unary.sinh)
cosh_ = inplace(unary.cosh)
tanh_ = inplace(unary.tanh)
asinh_ = inplace(unary.asinh)
arcsinh_ = inplace(unary.arcsinh)
acosh_ = inplace(unary.acosh)
arccosh_ = inplace(unary.arccosh)
atanh_ = inplace(unary.atanh)
arctanh_ = inplace(unary.arctanh)
hypot_ = inplace(unary.hypot)
floor_ = inplace(unary.floor)
ceil_ = inplace(unary.ceil)
trunc_ = inplace(unary.trunc)
fix_ = inplace(unary.fix)
round_ = inplace(unary.round, short=_rounded)
frac_ = inplace(unary.frac)
deg2rad_ = inplace(unary.deg2rad)
rad2deg_ = inplace(unary.rad2deg)
nan_to_num_ = inplace(unary.nan_to_num, short=_without_nan)

# ---- special functions ----

erf_ = inplace(special.erf)
erfc_ = inplace(special.erfc)
erfinv_ = inplace(special.erfinv)
lgamma_ = inplace(special.lgamma)
digamma_ = inplace(special.digamma)
polygamma_ = inplace(special.polygamma_of, "polygamma_")
mvlgamma_ = inplace(special.mvlgamma)
logit_ = inplace(special.logit, short=_log_odds)
sinc_ = inplace(special.sinc)
xlogy_ = inplace(special.xlogy)
igamma_ = inplace(special.igamma)
igammac_ = inplace(special.igammac)

# ---- complex numbers ----

conj_physical_ = inplace(complex_ops.conj_physical)

# ---- comparison, logic, bits ----

eq_ = inplace(compare.eq)
ne_ = inplace(compare.ne)
lt_ = inplace(compare.lt)
le_ = inplace(compare.le)
gt_ = inplace(compare.gt)
ge_ = inplace(compare.ge)
not_equal_ = inplace(compare.not_equal)
less_ = inplace(compare.less)
less_equal_ = inplace(compare.less_equal)
greater_ = inplace(compare.greater)
greater_equal_ = inplace(compare.greater_equal)
logical_and_ = inplace(compare.logical_and)
logical_or_ = inplace(compare.logical_or)
logical_xor_ = inplace(compare.logical_xor)
logical_not_ = inplace(compare.logical_not)
bitwise_and_ = inplace(compare.bitwise_and)
bitwise_or_ = inplace(compare.bitwise_or)
bitwise_xor_ = inplace(compare.bitwise_xor)
bitwise_not_ = inplace(compare.bitwise_not)
bitwise_left_shift_ = inplace(compare.bitwise_left_shift)
bitwise_right_shift_ = inplace(compare.bitwise_right_shift)

# ---- running sums ----

cumsum_ = inplace(scan.cumsum, short=partial(_running, scan._cumsum.op))
cumprod_ = inplace(scan.cumprod, short=partial(_running, scan._cumprod.op))

# ---- triangles ----

tril_ = inplace(arrange.tril, short=partial(_triangle, arrange._tril.op))
triu_ = inplace(arrange.triu, short=partial(_triangle, arrange._triu.op))

# ---- divisors ----

gcd_ = inplace(parts.gcd)
lcm_ = inplace(parts.lcm)

# ---- Bessel ----

i0_ = inplace(special_bessel.i0)

# ---- norms ----

renorm_ = inplace(statistics.renorm)
