"""Arithmetic of two or more operands: sums, products, quotients, powers, signs, broadcasting.

Functions of one operand are in `unary`, comparisons in `compare`, the larger of two in `bounds`, gamma and its like in `special`.
"""

from __future__ import annotations

import cmath
import math
from typing import Any, NoReturn

from mortice import call as _call
from mortice.backends.kernel_tools import in_float32, is_number, like
from mortice.call import no_tensor
from mortice.dtype import (
    C_NAMES,
    CLASS_NAMES,
    DType,
    bool_,
    complex128,
    dtype_of_all,
    float16,
    float32,
    float64,
    int64,
    scalar_dtype,
)
from mortice.errors import DTypeError
from mortice.graph import RELEASED
from mortice.node import TENSOR_KERNELS, Const, named, numbered
from mortice.notice import warn
from mortice.op import Op, op
from mortice.rules import fit_number, floating, held, hold, in_full, number_of, promote, wrap_operand
from mortice.shape import broadcast
from mortice.tensor import TensorBase

__all__ = [
    "add", "copysign", "div", "divide", "float_power", "floor_divide", "fmod", "heaviside", "ldexp", "mul", "multiply",
    "nextafter", "pow", "remainder", "rsub", "sub", "subtract", "true_divide",
]  # fmt: skip

# `alpha` left alone; True and 1.0 are looked at.
_ONE: Any = 1
# Arguments as they were, and as they are.
_ALPHA = ("Tensor input, Number alpha, Tensor other", "Tensor input, Tensor other, *, Number alpha = 1")


def zeros(k: Any, g: Any) -> Any:
    """Return the gradient of a function that is flat between its jumps."""
    return k.zeros_like(g)


def common_dtype(*operands: Any) -> DType:
    """Return the dtype in which tensors and Python numbers meet."""
    tensors, numbers = [], []
    for x in operands:
        if isinstance(x, TensorBase):
            tensors.append(x)
        elif is_number(x):
            numbers.append(x)
    return dtype_of_all(tensors, numbers)


def same_dtypes(
    name: str, *named: tuple[str, Any], words: str = "expected dtype {want} for `{argument}` but got dtype {have}"
) -> None:
    """Refuse numbers, and tensors of different dtypes where the operation does not promote."""
    for argument, x in named:
        if not isinstance(x, TensorBase):
            raise no_tensor(name, argument, x)
    d = named[0][1].dtype
    for argument, x in named[1:]:
        if x.dtype is not d:
            table = C_NAMES if "{argument}" in words else CLASS_NAMES
            told = words.format(want=table[d.name], have=table[x.dtype.name], argument=argument)
            raise DTypeError(f"{name}: {told}. Convert one.")


def check_alpha(name: str, d: DType, alpha: Any, argument: str = "alpha") -> Any:
    """Return a multiplier as a number; refuse one of a higher kind than the result's."""
    alpha = number_of(name, argument, alpha)
    if isinstance(alpha, bool) and d is not bool_:
        raise DTypeError(f"{name}: Boolean alpha only supported for Boolean results. Got {d}.")
    if isinstance(alpha, float) and d.kind in "bui":
        raise DTypeError(
            f"{name}: For integral input tensors, argument alpha must not be a floating point number. Got {alpha}."
        )
    if isinstance(alpha, complex) and d.kind != "c":
        raise DTypeError(
            f"{name}: For non-complex input tensors, argument alpha must not be a complex number. Got {alpha}."
        )
    hold(name, alpha, float32 if argument == "value" and d.itemsize == 2 and d.kind == "f" else d)  # what halves compute in
    return alpha


def deprecated(name: str, old: str, new: str) -> None:
    """Warn about positional numbers, which PyTorch gave up."""
    warn(
        f"This overload of {name} is deprecated:\n\t{name}({old})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({new})",
        once=True,
    )


# ---- sums, products, quotients ----


@op(result=promote, shape=broadcast, kernel="add", name="add", number=wrap_operand, scalars="alone")
def _add(k: Any, x: Any, y: Any, /) -> Any:
    """Add elementwise, broadcasting."""


_add.vjp(x=lambda k, g: g, y=lambda k, g: g, jvp="linear")


def _scaled(fn: Any, input: Any, other: Any, alpha: Any) -> Any:
    # NumPy's numbers are numbers, and what is no operand is refused here as without alpha
    input, other = [x if isinstance(x, TensorBase) or is_number(x) else _call.as_operand(fn.op, x, i) for i, x in enumerate((input, other))]
    name, d = fn.op.name, common_dtype(input, other)
    for x in (input, other) if fn.op.operand is not None else ():
        fn.op.operand(fn.op, scalar_dtype(x) if is_number(x) else x.dtype)
    alpha = check_alpha(name, d, alpha)
    if d.kind == "f":
        alpha = fit_number(_add.op, alpha, d)
    if d is bool_:  # numbers raise a mask to integers, but alpha takes no part in promotion
        return bool(other * alpha) if is_number(other) else _call.CAST(other * alpha, d)
    return other * alpha if is_number(other) else mul(_call.CAST(other, d), alpha)


def _add_scaled(name: str, input: Any, other: Any, alpha: Any, sign: int, out: Any) -> Any:
    """Return input + sign * alpha * other in one pass; None where that takes a conversion, or an error.

    Alpha, and what gives way to 16-bit floats, is rounded to them first; the sum is then rounded once.
    """
    d = common_dtype(input, other)
    if d.kind == "f" and d.itemsize == 2:
        device = (input if isinstance(input, TensorBase) else other)._device
        input, other = [_call.MOVE(_call.FROM_NUMBER(v), device) if is_number(v) else v for v in (input, other)]
        input, other = [_call.CAST(v, d) if isinstance(v, TensorBase) else v for v in (input, other)]
    if not (isinstance(input, TensorBase) and isinstance(other, TensorBase) and input.dtype is other.dtype):
        return None
    if input.dtype.kind not in "fc" or not (input._device is other._device is input._device.base):
        return None
    alpha = fit_number(_add.op, check_alpha(name, d, alpha), d)
    if input.shape != other.shape:
        broadcast(name, input.shape, other.shape)  # for its error, which names the function that was called
    return TENSOR_KERNELS.addcmul(input, other, sign * alpha, 1, out=out)


def add(input: Any, other: Any, tensor: Any = None, *, alpha: Any = 1, out: Any = None) -> Any:
    """Add `other`, multiplied by alpha, to `input`, broadcasting."""
    if tensor is not None:
        deprecated("add", *_ALPHA)
        other, alpha = tensor, other
    if alpha is not _ONE:
        made = _add_scaled("add", input, other, alpha, 1, out)
        if made is not None:
            return named(made, "AddBackward0")
        other = _scaled(_add, input, other, alpha)
    return _add(input, other) if out is None else _add(input, other, out=out)


add.op = _add.op


def _no_bool(op: Op, d: DType) -> tuple[DType, DType]:
    if d is bool_:
        raise DTypeError(
            f"{op.name}: Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead, and between masks `^` or `logical_xor()`."
        )
    return d, d


@op(
    result=_no_bool, shape=broadcast, kernel="subtract", name="sub", number=wrap_operand, operand=_no_bool, scalars="alone",
)  # fmt: skip
def _sub(k: Any, x: Any, y: Any, /) -> Any:
    """Subtract elementwise, broadcasting. Bools are refused: use `^`."""


_sub.vjp(x=lambda k, g: g, y=lambda k, g: k.negative(g), jvp="linear")


def sub(input: Any, other: Any, tensor: Any = None, *, alpha: Any = 1, out: Any = None) -> Any:
    """Subtract `other`, multiplied by alpha, from `input`, broadcasting. Bools are refused: use `^`."""
    if tensor is not None:
        deprecated("sub", *_ALPHA)
        other, alpha = tensor, other
    if alpha is not _ONE:
        made = _add_scaled("sub", input, other, alpha, -1, out)
        if made is not None:
            return named(made, "SubBackward0")
        other = _scaled(_sub, input, other, alpha)
    return _sub(input, other) if out is None else _sub(input, other, out=out)


sub.op = _sub.op

subtract = sub


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Subtract `input`, multiplied by alpha, from `other`."""
    made = sub(other, input, alpha=alpha)
    return named(made, f"RsubBackward{int(not isinstance(other, TensorBase))}")


@op(result=promote, shape=broadcast, kernel="multiply", number=in_full(wrap_operand, 0, 1), scalars="alone")
def mul(k: Any, x: Any, y: Any, /) -> Any:
    """Multiply elementwise, broadcasting."""


mul.vjp(x=lambda k, g, y: k.multiply(g, y), y=lambda k, g, x: k.multiply(g, x), jvp="bilinear")
multiply = mul


@op(result=floating, shape=broadcast, kernel="divide", name="div", number=in_full(fit_number, 0, 1), scalars="alone")
def _div(k: Any, x: Any, y: Any, /) -> Any:
    """Divide elementwise, broadcasting. Integers give the default float dtype."""


_div.vjp(
    x=lambda k, g, y: k.divide(g, y),
    # Not in terms of the result, which users overwrite: x = a / b; x += 1.
    y=lambda k, g, x, y: k.negative(k.multiply(g, k.divide(k.divide(x, y), y))),
    jvp="elementwise",
)


@op(
    result=floating, shape=broadcast, kernel="rdivide", name="rdiv", grad_name="MulBackward0", number=in_full(fit_number, 0, 1),
    scalars="alone",
)  # fmt: skip
def _rdiv(k: Any, x: Any, y: Any, /) -> Any:
    """Multiply the reciprocal of y by x: what `x / y` is where x is no tensor, rounded twice as in PyTorch."""


def _rdiv_y(k: Any, g: Any, x: Any, y: Any) -> Any:
    inverse = k.reciprocal(y)
    return k.multiply(k.multiply(g, -x if is_number(x) else k.negative(x)), k.multiply(inverse, inverse))


_rdiv.vjp(x=lambda k, g, y: k.multiply(g, k.reciprocal(y)), y=_rdiv_y, jvp="elementwise")


def _refuse_zero(k: Any, name: str, y: Any) -> None:
    """Refuse integers to divide by that are zero; reads one value, where they are in a tensor."""
    if y == 0 if is_number(y) else k.has_values and k.item(k.any(k.equal(y, 0))):
        raise RuntimeError(f"{name}: ZeroDivisionError: expected integers other than 0 to divide by; got 0.")


def _is_float(k: Any, x: Any, y: Any) -> bool:
    return k.dtype_of(y if is_number(x) else x).kind == "f"


def undefined(what: str) -> NoReturn:
    """Stand for a gradient that PyTorch does not define either, and so names: backward through it fails rather than giving 0."""
    text = f"derivative for {what} is not implemented" if "::" in what else f"the derivative for '{what}' is not implemented."
    error = NotImplementedError(text)
    error.add_note("Use .detach() on what enters it.")
    raise error


@op(result=promote, shape=broadcast, dtypes="uif", number=in_full(wrap_operand, 1), scalars="alone")
def floor_divide(k: Any, x: Any, y: Any, /) -> Any:
    """Divide and round towards minus infinity."""
    if not _is_float(k, x, y):
        _refuse_zero(k, "floor_divide", y)
    return k.floor_divide(x, y)


floor_divide.vjp(lambda k, g: undefined("aten::floor_divide"))


@op(result=promote, shape=broadcast, dtypes="uif", name="floordiv", number=in_full(wrap_operand, 1))
def floordiv(k: Any, x: Any, y: Any, /) -> Any:
    """Divide and round down, as `//` and `mortice.array_api.floor_divide` do.

    Differs from torch: `//` of infinite operands gives what the array API standard says, `inf // 2 == inf` and
    `1 // -inf == -0`, not nan and -1; `floor_divide` and `div(rounding_mode="floor")` give PyTorch's.
    """
    if not _is_float(k, x, y):
        _refuse_zero(k, "floor_divide", y)
    return k.floordiv(x, y)


floordiv.vjp(lambda k, g: undefined("aten::floor_divide"))


@op(
    result=promote, shape=broadcast, dtypes="uif", name="div_trunc", grad_name="DivBackward2", number=in_full(wrap_operand, 1),
    scalars="alone",
)  # fmt: skip
@in_float32
def _div_trunc(k: Any, x: Any, y: Any, /) -> Any:
    """Divide and round towards zero."""
    if _is_float(k, x, y):
        return k.trunc(k.divide(x, y))
    _refuse_zero(k, "div", y)
    return k.floor_divide(k.subtract(x, k.fmod(x, y)), y)


_div_trunc.vjp(x=zeros, y=zeros, jvp="elementwise")


@op(
    result=promote, shape=broadcast, dtypes="uif", name="div_floor", grad_name="DivBackward2", number=in_full(wrap_operand, 1),
    scalars="alone",
)  # fmt: skip
def _div_floor(k: Any, x: Any, y: Any, /) -> Any:
    """Divide and round towards minus infinity; differentiable, with gradient 0."""
    if not _is_float(k, x, y):
        _refuse_zero(k, "div", y)
    return k.floor_divide(x, y)


_div_floor.vjp(x=zeros, y=zeros, jvp="elementwise")
# In formulas the quotient is flat, not undefined.
TENSOR_KERNELS.replace("floor_divide", _div_floor)


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Divide elementwise, broadcasting; the quotient may be rounded towards zero ("trunc") or down ("floor").

    Without rounding integers give the default float dtype.
    """
    if rounding_mode is None:
        return _div(input, other, out=out)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            f"div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'."
        )
    return (_div_trunc if rounding_mode == "trunc" else _div_floor)(input, other, out=out)


divide = div


def true_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Divide elementwise, broadcasting. Integers give the default float dtype."""
    return _div(input, other, out=out)


@op(result=promote, shape=broadcast, dtypes="uif", number=wrap_operand, grad_name_of=numbered("Remainder", 1))
def remainder(k: Any, x: Any, y: Any, /) -> Any:
    """Return what division rounded down leaves: it has the sign of the divisor.

    Differs from torch: a rest of 0 has that sign too, as the array API standard has it: `-2.0 % 1.0` is 0.0, not -0.0.
    """
    if not _is_float(k, x, y):
        _refuse_zero(k, "remainder", y)
    return k.remainder(x, y)


remainder.vjp(
    x=lambda k, g: g,
    y=lambda k, g, x, y: k.negative(k.multiply(g, k.floor_divide(x, y))),
    jvp="elementwise",
)


@op(result=promote, shape=broadcast, dtypes="uif", number=wrap_operand, grad_name_of=numbered("Fmod", 1))
def fmod(k: Any, x: Any, y: Any, /) -> Any:
    """Return what division rounded towards zero leaves: it has the sign of the dividend."""
    if not _is_float(k, x, y):
        _refuse_zero(k, "fmod", y)
    return k.fmod(x, y)


fmod.vjp(
    x=lambda k, g: g,
    y=lambda k, g, x, y: k.negative(k.multiply(g, k.trunc(k.divide(x, y)))),
    jvp="elementwise",
)


# ---- powers ----


def _no_wrapped_exponent(op: Op, value: Any, d: DType, position: int) -> Any:
    # Below zero it is refused, and not taken for a large one, which is what it would be in unsigned dtypes.
    if position == 0:
        return wrap_operand(op, value, d)
    return value if d.kind == "u" and value < 0 else (held if d.itemsize == 2 else fit_number)(op, value, d)


def _pow_of_numbers(node: Any) -> str:
    """Return PyTorch's name, which has a function each for a number as the exponent, for none, and for one as the base."""
    if node.saved is RELEASED:
        return f"PowBackward{int(node.edges[1] is not None)}"
    return "PowBackward2" if type(node.saved[0]) is Const else f"PowBackward{int(type(node.saved[1]) is not Const)}"


@op(result=promote, shape=broadcast, dtypes="uifc", name="pow", number=_no_wrapped_exponent, grad_name_of=_pow_of_numbers)
def _pow(k: Any, x: Any, y: Any, /) -> Any:
    """Raise `input` to the power of the exponent, broadcasting. Bools are refused."""
    if is_number(y):
        d = k.dtype_of(x)
        integer = d.kind not in "fc"
        if y == 2:
            return k.multiply(x, x)
        if integer:
            if y < 0:
                raise RuntimeError(f"pow: Integers to negative integer powers are not allowed. The exponent is {y}.")
        elif y == 0.5:
            return k.sqrt(x)
        elif y == 3 and d is not float16:  # rounded once, while bfloat16 is between the products
            square = k.multiply(x, x)
            return k.into(square, k.multiply, square, x)
        elif y == -1:
            return k.divide(1.0, x)
        elif y in (-2, -0.5) and d.kind == "f" and d is not float16:
            return k.rsqrt(x) if y == -0.5 else k.divide(1.0, k.multiply(x, x))
        return k.pow(x, y)
    if is_number(x):
        y = k.contiguous(y)
    if k.dtype_of(y).kind != "i":
        return k.pow(x, y)
    # Reciprocals of integers round towards zero; backends disagree about negative exponents.
    x = like(k, y, x)
    sign = k.subtract(1, k.multiply(k.remainder(y, 2), 2))
    reciprocal = k.where(k.equal(x, 1), k.ones_like(y), k.where(k.equal(x, -1), sign, 0))
    return k.where(k.less(y, 0), reciprocal, k.pow(x, k.maximum(y, 0)))


def _pow_to_base(k: Any, g: Any, x: Any, y: Any) -> Any:
    if is_number(y):
        if y == 0:
            return k.zeros_like(g)
        return k.multiply(g, k.multiply(x if y == 2 else _pow.op.body(k, x, y - 1), y))
    slope = k.multiply(y, k.pow(x, k.subtract(y, 1.0)))
    return k.where(k.equal(y, 0.0), 0.0, k.multiply(g, slope))


def _pow_to_exponent(k: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    grown = k.multiply(g, out)
    real = k.real(y) if k.dtype_of(y).is_complex else y
    flat = k.less_equal(0.0, real)
    if is_number(x):
        if x == 0:
            return k.where(flat, 0.0, k.multiply(grown, -math.inf))
        if isinstance(x, complex):
            return k.multiply(grown, cmath.log(x))
        return k.multiply(grown, math.log(x) if x > 0 else math.nan)
    flat = k.logical_and(k.equal(x, 0.0), flat)
    return k.where(flat, 0.0, k.multiply(grown, k.log(k.where(flat, 1.0, x))))


_pow.vjp(x=_pow_to_base, y=_pow_to_exponent, jvp="elementwise")


def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise `input` to the power of the exponent, broadcasting. Bools are refused."""
    return _pow(input, exponent, out=out)


pow.op = _pow.op


def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise to a power in float64, or complex128."""
    if not (isinstance(input, TensorBase) or isinstance(exponent, TensorBase)):
        raise no_tensor("float_power", "input", input)
    each = input, exponent
    if any([v.dtype.is_complex if isinstance(v, TensorBase) else isinstance(v, complex) for v in each]):
        d, number = complex128, complex
    else:
        d, number = float64, float
    x, y = (_call.CAST(v, d) if isinstance(v, TensorBase) else number(v) for v in each)
    if out is not None and out.dtype is not d:
        raise DTypeError(f"the output given to float_power has dtype {out.dtype} but the operation's result requires dtype {d}.")
    return _pow(x, y, out=out)


def float_power_into(input: Any, exponent: Any) -> Any:
    """Do what `float_power_` writes: the tensor must be float64, or complex128, already."""
    result = float_power(input, exponent)
    if result.dtype is not input.dtype:
        raise DTypeError(
            f"float_power_: the base given to float_power_ has dtype {input.dtype} but the operation's result requires "
            f"dtype {result.dtype}. Use float_power."
        )
    return result


def ldexp(input: Any, other: Any, *, out: Any = None) -> Any:
    """Multiply by 2 to the power of `other`; whole powers keep the dtype, and may lie beyond what it holds."""
    two = isinstance(input, TensorBase) and isinstance(other, TensorBase)
    if not two or input.dtype.kind != "f" or other.dtype.kind not in "iu":
        return named(mul(input, _pow(2.0, other), out=out), "LdexpBackward0")
    wide, limit = (input.dtype, 1022) if input.dtype.itemsize == 8 else (float32, 126)
    made, left, parts = _call.CAST(input, wide), _call.CAST(other, int64), []
    for _ in range(3):  # what no dtype of floats goes beyond
        parts.append(TENSOR_KERNELS.clip(left, -limit, limit))
        left = sub(left, parts[-1])
    for part in reversed(parts):  # the small ones first, so that only the last product rounds
        made = mul(made, _pow(2.0, _call.CAST(part, wide)))
    made = _call.CAST(made, input.dtype)
    if out is not None:
        return _call.WRITE_OUT("ldexp", out, made)
    return named(made, "LdexpBackward0") if made._rg else made


# ---- signs and neighbours ----


@op(result=floating, shape=broadcast, kernel="copysign", dtypes="f")
def copysign(k: Any, x: Any, y: Any, /) -> Any:
    """Give x the sign of y, that of a zero included."""


copysign.vjp(
    x=lambda k, g, x, out: k.where(k.equal(x, 0.0), 0.0, k.multiply(g, k.multiply(k.sign(x), k.sign(out)))),
    y=zeros,
    jvp="elementwise",
)


@op(result=promote, shape=broadcast, name="heaviside", dtypes="buif")
def _heaviside(k: Any, x: Any, values: Any, /) -> Any:
    """Step from 0 to 1, with `values` where x is 0."""
    d = k.dtype_of(x)
    zero = False if d is bool_ else 0
    return k.where(k.equal(x, zero), values, k.astype(k.less(zero, x), d))


_heaviside.vjp(lambda k, g: undefined("aten::heaviside"))


def heaviside(input: Any, values: Any, *, out: Any = None) -> Any:
    """Step from 0 to 1, with `values` where `input` is 0."""
    if any(getattr(t, "is_complex", bool)() for t in (input, values)):
        raise DTypeError("heaviside is not yet implemented for complex tensors.")
    words = "heaviside is not yet implemented for tensors with different dtypes; got {want} and {have}"
    same_dtypes("heaviside", ("input", input), ("values", values), words=words)
    return _heaviside(input, values, out=out)


@op(result=promote, shape=broadcast, kernel="nextafter", dtypes="f")
def nextafter(k: Any, x: Any, y: Any, /) -> Any:
    """Return the next representable number after x in the direction of y."""


nextafter.vjp(x=lambda k, g, x, y: k.where(k.equal(x, y), 0.0, g), y=zeros, jvp="elementwise")
