"""Functions of one operand: signs, roots, exponentials, logarithms, circular and hyperbolic functions, rounding."""

from __future__ import annotations

import math
from typing import Any

from mortice.dtype import DType, bool_
from mortice.errors import DTypeError
from mortice.node import TENSOR_KERNELS, named
from mortice.op import Op, op
from mortice.ops.elementwise import pow, zeros
from mortice.rules import floating, promote, real_part, same
from mortice.shape import broadcast

__all__ = [
    "abs", "absolute", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh",
    "atan", "atan2", "arctan2", "atanh", "ceil", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "fix", "floor",
    "frac", "hypot", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "nan_to_num", "neg", "negative",
    "positive", "rad2deg", "reciprocal", "round", "rsqrt", "sgn", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "tan", "tanh", "trunc",
]  # fmt: skip

LN2, LN10 = math.log(2.0), math.log(10.0)

# ---- signs ----


def _no_bool(op: Op, d: DType) -> tuple[DType, DType]:
    if d is bool_:
        raise DTypeError(
            f"{op.name}: Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
            "mask, use the `~` or `logical_not()` operator instead."
        )
    return d, d


@op(result=_no_bool, shape=same, kernel="negative")
def neg(k: Any, x: Any, /) -> Any:
    """Change the sign. Bools are refused: use `~`."""


neg.vjp(x=lambda k, g: k.negative(g), jvp="linear")
negative = neg


def positive(input: Any) -> Any:
    """Return the tensor itself. Bools are refused."""
    if input.dtype is bool_:
        raise DTypeError("positive: The `+` operator, on a bool tensor is not supported.")
    return input


@op(result=real_part, shape=same, kernel="abs", dtypes="uifc", holomorphic=False)
def abs(k: Any, x: Any, /) -> Any:
    """Take the absolute value; real for complex numbers. Its gradient at 0 is 0."""


def slope_of_abs(k: Any, x: Any) -> Any:
    """Return the sign, 0 of nan: where values are missing, programs leave their losses out after abs, and 0 * nan would come back."""
    return k.sgn(x) if k.dtype_of(x).is_complex else k.sign(k.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0))


def _abs_back(k: Any, g: Any, x: Any) -> Any:
    d = k.dtype_of(x)
    return k.multiply(k.astype(g, d) if d.is_complex else g, slope_of_abs(k, x))


abs.vjp(x=_abs_back, jvp="elementwise")
absolute = abs


def abs_into(input: Any) -> Any:
    """Do what `abs_` writes; the absolute values of complex numbers would not be complex."""
    if input.dtype.is_complex:
        raise DTypeError(f"abs_: In-place abs is not supported for complex tensors; got {input.dtype}. Use abs.")
    return abs(input)


@op(result=promote, shape=same, kernel="sign", dtypes="buif")
def sign(k: Any, x: Any, /) -> Any:
    """Return -1, 0 or 1; complex numbers are refused, see `sgn`.

    Differs from torch: the sign of nan is nan, as the array API standard has it, not 0; that of `sgn` too.
    """


sign.vjp(x=zeros, jvp="elementwise")


@op(result=promote, shape=same, kernel="sgn", holomorphic=False)
def sgn(k: Any, x: Any, /) -> Any:
    """Return the sign, of a complex number x / abs(x), and 0 of zero."""


def _sgn_back(k: Any, g: Any, x: Any, out: Any) -> Any:
    d = k.dtype_of(x)
    if not d.is_complex:
        return k.zeros_like(g)
    size = k.abs(x)
    zero = k.equal(size, 0.0)
    # What points along x only changes the size, which is 1 afterwards.
    along = k.multiply(k.astype(k.real(k.multiply(g, k.conj(out))), d), out)
    return k.where(zero, 0.0, k.divide(k.subtract(g, along), k.astype(k.where(zero, 1.0, size), d)))


sgn.vjp(x=_sgn_back, jvp="elementwise")

# ---- roots and powers ----


@op(result=floating, shape=same, kernel="sqrt")
def sqrt(k: Any, x: Any, /) -> Any:
    """Take the square root; nan below 0."""


sqrt.vjp(x=lambda k, g, out: k.divide(g, k.multiply(out, 2.0)), jvp="elementwise")


@op(result=floating, shape=same, kernel="rsqrt")
def rsqrt(k: Any, x: Any, /) -> Any:
    """Divide 1 by the square root."""


rsqrt.vjp(
    x=lambda k, g, out: k.multiply(k.multiply(g, -0.5), k.multiply(out, k.multiply(out, out))), jvp="elementwise"
)


@op(result=promote, shape=same, kernel="square", name="square", grad_name="PowBackward0")
def _square(k: Any, x: Any, /) -> Any:
    """Multiply by itself."""


_square.vjp(x=lambda k, g, x: k.multiply(g, k.multiply(x, 2.0)), jvp="elementwise")


def square(input: Any, *, out: Any = None) -> Any:
    """Multiply by itself; bools count as integers."""
    return pow(input, 2, out=out) if input.dtype is bool_ else _square(input, out=out)


@op(result=floating, shape=same, kernel="reciprocal")
def reciprocal(k: Any, x: Any, /) -> Any:
    """Divide 1 by each element."""


reciprocal.vjp(x=lambda k, g, out: k.negative(k.multiply(g, k.multiply(out, out))), jvp="elementwise")

# ---- exponentials and logarithms ----


@op(result=floating, shape=same, kernel="exp")
def exp(k: Any, x: Any, /) -> Any:
    """Raise e to each element. Integers and bools give the default float dtype."""


exp.vjp(x=lambda k, g, out: k.multiply(g, out), jvp="elementwise")


@op(result=floating, shape=same, kernel="exp2")
def exp2(k: Any, x: Any, /) -> Any:
    """Raise 2 to each element."""


exp2.vjp(x=lambda k, g, out: k.multiply(g, k.multiply(out, LN2)), jvp="elementwise")


@op(result=floating, shape=same, kernel="expm1")
def expm1(k: Any, x: Any, /) -> Any:
    """Return exp(x) - 1, accurate near 0."""


expm1.vjp(x=lambda k, g, out: k.multiply(g, k.add(out, 1.0)), jvp="elementwise")


@op(result=floating, shape=same, kernel="log")
def log(k: Any, x: Any, /) -> Any:
    """Take the natural logarithm."""


log.vjp(x=lambda k, g, x: k.divide(g, x), jvp="elementwise")


@op(result=floating, shape=same, kernel="log2")
def log2(k: Any, x: Any, /) -> Any:
    """Take the logarithm to base 2."""


log2.vjp(x=lambda k, g, x: k.divide(g, k.multiply(x, LN2)), jvp="elementwise")


@op(result=floating, shape=same, kernel="log10")
def log10(k: Any, x: Any, /) -> Any:
    """Take the logarithm to base 10."""


log10.vjp(x=lambda k, g, x: k.divide(g, k.multiply(x, LN10)), jvp="elementwise")


@op(result=floating, shape=same, kernel="log1p", grad_name="Log1PBackward0")
def log1p(k: Any, x: Any, /) -> Any:
    """Return log(1 + x), accurate near 0."""


log1p.vjp(x=lambda k, g, x: k.divide(g, k.add(x, 1.0)), jvp="elementwise")


@op(result=floating, shape=same, kernel="sigmoid")
def sigmoid(k: Any, x: Any, /) -> Any:
    """Return 1 / (1 + exp(-x))."""


sigmoid.vjp(x=lambda k, g, out: k.multiply(g, k.multiply(k.subtract(1.0, out), out)), jvp="elementwise")

# ---- circular functions ----


@op(result=floating, shape=same, kernel="sin")
def sin(k: Any, x: Any, /) -> Any:
    """Return the sine."""


sin.vjp(x=lambda k, g, x: k.multiply(g, k.cos(x)), jvp="elementwise")


@op(result=floating, shape=same, kernel="cos")
def cos(k: Any, x: Any, /) -> Any:
    """Return the cosine."""


cos.vjp(x=lambda k, g, x: k.negative(k.multiply(g, k.sin(x))), jvp="elementwise")


@op(result=floating, shape=same, kernel="tan")
def tan(k: Any, x: Any, /) -> Any:
    """Return the tangent."""


tan.vjp(x=lambda k, g, out: k.multiply(g, k.add(k.multiply(out, out), 1.0)), jvp="elementwise")


def _one_less_square(k: Any, x: Any) -> Any:
    return k.subtract(1.0, k.multiply(x, x))


@op(result=floating, shape=same, kernel="asin")
def asin(k: Any, x: Any, /) -> Any:
    """Invert the sine; nan beyond -1 and 1."""


asin.vjp(x=lambda k, g, x: k.divide(g, k.sqrt(_one_less_square(k, x))), jvp="elementwise")


@op(result=floating, shape=same, kernel="acos")
def acos(k: Any, x: Any, /) -> Any:
    """Invert the cosine; nan beyond -1 and 1."""


acos.vjp(x=lambda k, g, x: k.negative(k.divide(g, k.sqrt(_one_less_square(k, x)))), jvp="elementwise")


@op(result=floating, shape=same, kernel="atan")
def atan(k: Any, x: Any, /) -> Any:
    """Invert the tangent."""


atan.vjp(x=lambda k, g, x: k.divide(g, k.add(k.multiply(x, x), 1.0)), jvp="elementwise")


def _square_length(k: Any, x: Any, y: Any) -> Any:
    square = k.add(k.multiply(x, x), k.multiply(y, y))
    return k.where(k.equal(square, 0), 1, square)  # so that the gradient at the origin is 0


@op(result=floating, shape=broadcast, kernel="atan2", dtypes="f")
def atan2(k: Any, x: Any, y: Any, /) -> Any:
    """Return the angle of the point (other, input), signed zeros and infinities as in C99."""


atan2.vjp(
    x=lambda k, g, x, y: k.divide(k.multiply(g, y), _square_length(k, x, y)),
    y=lambda k, g, x, y: k.negative(k.divide(k.multiply(g, x), _square_length(k, x, y))),
    jvp="elementwise",
)

# ---- hyperbolic functions ----


@op(result=floating, shape=same, kernel="sinh")
def sinh(k: Any, x: Any, /) -> Any:
    """Return the hyperbolic sine."""


sinh.vjp(x=lambda k, g, x: k.multiply(g, k.cosh(x)), jvp="elementwise")


@op(result=floating, shape=same, kernel="cosh")
def cosh(k: Any, x: Any, /) -> Any:
    """Return the hyperbolic cosine."""


cosh.vjp(x=lambda k, g, x: k.multiply(g, k.sinh(x)), jvp="elementwise")


@op(result=floating, shape=same, kernel="tanh")
def tanh(k: Any, x: Any, /) -> Any:
    """Return the hyperbolic tangent."""


tanh.vjp(x=lambda k, g, out: k.tanh_grad(g, out), jvp="elementwise")


@op(result=floating, shape=same, kernel="asinh")
def asinh(k: Any, x: Any, /) -> Any:
    """Invert the hyperbolic sine."""


asinh.vjp(x=lambda k, g, x: k.divide(g, k.sqrt(k.add(k.multiply(x, x), 1.0))), jvp="elementwise")


@op(result=floating, shape=same, kernel="acosh")
def acosh(k: Any, x: Any, /) -> Any:
    """Invert the hyperbolic cosine; nan below 1."""


def _acosh_grad(k: Any, g: Any, x: Any) -> Any:
    if not k.dtype_of(x).is_complex:
        x = k.abs(x)  # a number below -1 too, as in PyTorch
    # Two roots, since that of the product lies on the wrong side for some complex numbers.
    return k.divide(g, k.multiply(k.sqrt(k.subtract(x, 1.0)), k.sqrt(k.add(x, 1.0))))


acosh.vjp(x=_acosh_grad, jvp="elementwise")


@op(result=floating, shape=same, kernel="atanh")
def atanh(k: Any, x: Any, /) -> Any:
    """Invert the hyperbolic tangent; nan beyond -1 and 1."""


atanh.vjp(x=lambda k, g, x: k.divide(g, _one_less_square(k, x)), jvp="elementwise")

arccos, arcsin, arctan, arccosh, arcsinh, arctanh, arctan2 = acos, asin, atan, acosh, asinh, atanh, atan2

# ---- lengths and sums of logarithms ----


@op(result=promote, shape=broadcast, kernel="hypot", dtypes="f")
def hypot(k: Any, x: Any, y: Any, /) -> Any:
    """Return the length of the hypotenuse, without overflow on the way."""


hypot.vjp(
    x=lambda k, g, x, out: k.divide(k.multiply(g, x), out),
    y=lambda k, g, y, out: k.divide(k.multiply(g, y), out),
    jvp="elementwise",
)


@op(result=promote, shape=broadcast, kernel="logaddexp", dtypes="fc")
def logaddexp(k: Any, x: Any, y: Any, /) -> Any:
    """Return log(exp(x) + exp(y)) without overflow."""


logaddexp.vjp(
    x=lambda k, g, x, y: k.divide(g, k.add(k.exp(k.subtract(y, x)), 1.0)),
    y=lambda k, g, x, y: k.divide(g, k.add(k.exp(k.subtract(x, y)), 1.0)),
    jvp="elementwise",
)


@op(result=promote, shape=broadcast, kernel="logaddexp2", dtypes="f")
def logaddexp2(k: Any, x: Any, y: Any, /) -> Any:
    """Return log2(2**x + 2**y) without overflow."""


logaddexp2.vjp(
    x=lambda k, g, x, y: k.divide(g, k.add(k.exp2(k.subtract(y, x)), 1.0)),
    y=lambda k, g, x, y: k.divide(g, k.add(k.exp2(k.subtract(x, y)), 1.0)),
    jvp="elementwise",
)

# ---- rounding ----


def _rounds(k: Any, x: Any) -> bool:
    return k.dtype_of(x).kind == "f"


@op(result=promote, shape=same, dtypes="uif")
def floor(k: Any, x: Any, /) -> Any:
    """Round down."""
    return k.floor(x) if _rounds(k, x) else k.copy(x)


floor.vjp(x=zeros, jvp="elementwise")


@op(result=promote, shape=same, dtypes="uif")
def ceil(k: Any, x: Any, /) -> Any:
    """Round up."""
    return k.ceil(x) if _rounds(k, x) else k.copy(x)


ceil.vjp(x=zeros, jvp="elementwise")


@op(result=promote, shape=same, dtypes="uif")
def trunc(k: Any, x: Any, /) -> Any:
    """Round towards zero."""
    return k.trunc(x) if _rounds(k, x) else k.copy(x)


trunc.vjp(x=zeros, jvp="elementwise")
fix = trunc


@op(result=promote, shape=same, dtypes="uif", name="round")
def _round(k: Any, x: Any, /, *, decimals: int) -> Any:
    """Round to the nearest, ties to even."""
    return k.round(x, decimals) if _rounds(k, x) else k.copy(x)


_round.vjp(x=zeros, jvp="elementwise")
TENSOR_KERNELS.replace("round", lambda x, decimals=0: _round(x, decimals=decimals))


def round(input: Any, *, decimals: int = 0, out: Any = None) -> Any:
    """Round to the nearest, ties to even; negative decimals round left of the point."""
    if decimals and input.dtype.kind in "ui":
        raise DTypeError(f"round: not implemented for {input.dtype} with decimals; got {decimals}. Convert to float.")
    made = _round(input, decimals=decimals, out=out)
    return named(made, "RoundBackward1") if decimals else made


@op(result=promote, shape=same, dtypes="f")
def frac(k: Any, x: Any, /) -> Any:
    """Return what is after the point, with the sign of x."""
    return k.subtract(x, k.trunc(x))


frac.vjp(x=lambda k, g: g, jvp="elementwise")


def _scaled_by(factor: float) -> Any:
    return lambda k, g: k.multiply(g, factor)


@op(result=floating, shape=same, dtypes="f")
def deg2rad(k: Any, x: Any, /) -> Any:
    """Convert degrees to radians."""
    return k.multiply(x, math.pi / 180)


deg2rad.vjp(x=_scaled_by(math.pi / 180), jvp="linear")


@op(result=floating, shape=same, dtypes="f")
def rad2deg(k: Any, x: Any, /) -> Any:
    """Convert radians to degrees."""
    return k.multiply(x, 180 / math.pi)


rad2deg.vjp(x=_scaled_by(180 / math.pi), jvp="linear")


@op(result=promote, shape=same, name="nan_to_num")
def _nan_to_num(k: Any, x: Any, /, *, nan: float, posinf: Any, neginf: Any) -> Any:
    """Replace nan and infinities."""
    return k.nan_to_num(x, nan, posinf, neginf)


_nan_to_num.vjp(x=lambda k, g, x: k.where(k.isfinite(x), g, 0), jvp="elementwise")


def nan_to_num(
    input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *, out: Any = None
) -> Any:
    """Replace nan, by 0, and infinities, by the largest finite values, unless told otherwise."""
    return _nan_to_num(input, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf, out=out)
