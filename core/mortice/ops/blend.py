"""Sums with products and quotients (addcmul, addcdiv) and interpolation: operations of three operands."""

from __future__ import annotations

from typing import Any

from mortice import call as _call
from mortice.backends.kernel_tools import is_number
from mortice.dtype import DType, check_kind, promote_scalar, promote_types, raised
from mortice.errors import DTypeError
from mortice.op import op
from mortice.ops.elementwise import check_alpha, common_dtype, deprecated, same_dtypes
from mortice.rules import fit_number, in_full, promote
from mortice.shape import broadcast
from mortice.tensor import TensorBase

__all__ = ["addcdiv", "addcmul", "lerp"]

_VALUE = in_full(fit_number, 2, 3)  # what multiplies


@op(result=promote, shape=broadcast, kernel="addcmul", name="addcmul", dtypes="uifc", number=_VALUE)
def _addcmul(k: Any, x: Any, a: Any, b: Any, value: Any, /) -> Any:
    """Add a * b * value."""


def _times(k: Any, x: Any, value: Any) -> Any:
    return x * value if is_number(x) else k.multiply(x, value)


_addcmul.vjp(
    x=lambda k, g: g,
    a=lambda k, g, b, value: k.multiply(g, _times(k, b, value)),
    b=lambda k, g, a, value: k.multiply(g, _times(k, a, value)),
    jvp="elementwise",
)


_FORMS = (
    "Tensor input, Number value, Tensor tensor1, Tensor tensor2", "Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1"
)  # fmt: skip


def addcmul(
    input: Any, tensor1: Any, tensor2: Any, tensor: Any = None, *, value: Any = 1, out: Any = None
) -> Any:
    """Add tensor1 * tensor2 * value to input, broadcasting."""
    if tensor is not None:
        deprecated("addcmul", *_FORMS)
        tensor1, tensor2, value = tensor2, tensor, tensor1
    d = common_dtype(input, tensor1, tensor2)
    check_kind("addcmul", d, "uifc")  # before the value, which makes integers of bools
    value = check_value("addcmul", value, d)
    return _addcmul(input, tensor1, tensor2, value, out=out)


addcmul.op = _addcmul.op


def check_value(name: str, value: Any, d: DType) -> Any:
    """Return a multiplier as a number; refuse one of a higher kind than the result's. Bools count as integers."""
    return check_alpha(name, d, int(value) if isinstance(value, bool) else value, "value")


@op(shape=broadcast, kernel="addcdiv", name="addcdiv", number=_VALUE)
def _addcdiv(k: Any, x: Any, a: Any, b: Any, value: Any, /) -> Any:
    """Add a / b * value."""


_addcdiv.vjp(
    x=lambda k, g: g,
    a=lambda k, g, b, value: k.multiply(g, k.divide(value, b)),
    b=lambda k, g, a, b, value: k.negative(k.multiply(g, k.divide(_times(k, a, value), k.multiply(b, b)))),
    jvp="elementwise",
)


def addcdiv(
    input: Any, tensor1: Any, tensor2: Any, tensor: Any = None, *, value: Any = 1, out: Any = None
) -> Any:
    """Add tensor1 / tensor2 * value to input, broadcasting."""
    if tensor is not None:
        deprecated("addcdiv", *_FORMS)
        tensor1, tensor2, value = tensor2, tensor, tensor1
    if tensor1.dtype.kind in "bui" and tensor2.dtype.kind in "bui":
        raise DTypeError(
            f"Integer division with addcdiv is no longer supported; got {tensor1.dtype} and {tensor2.dtype}. Write (input + value * "
            "mortice.trunc(tensor1 / tensor2)) to round as it used to."
        )
    value = check_value("addcdiv", value, promote_scalar(common_dtype(input, tensor1, tensor2), 0.0))
    return _addcdiv(input, tensor1, tensor2, value, out=out)


addcdiv.op = _addcdiv.op


@op(
    result=promote, shape=broadcast, kernel="lerp", name="lerp", dtypes="fc", scalars=True, number=in_full(fit_number, 2),
    grad_name_of=lambda node: f"LerpBackward{int(node.edges[2] is not None)}",
)  # fmt: skip
def _lerp(k: Any, x: Any, end: Any, weight: Any, /) -> Any:
    """Interpolate between x and end."""


_lerp.vjp(
    x=lambda k, g, weight: k.multiply(g, 1.0 - weight if is_number(weight) else k.subtract(1.0, weight)),
    end=lambda k, g, weight: k.multiply(g, weight),
    weight=lambda k, g, x, end: k.multiply(g, k.subtract(end, x)),
    jvp="elementwise",
)


def lerp(input: Any, end: Any, weight: Any, *, out: Any = None) -> Any:
    """Interpolate from `input` (weight 0) to `end` (weight 1)."""
    same_dtypes("lerp", ("input", input), ("end", end))
    d = input.dtype
    if isinstance(weight, TensorBase) and weight.dtype is not d:
        if weight.shape:
            same_dtypes("lerp", ("input", input), ("weight", weight))
        d = raised(d, weight.dtype) if input.shape else promote_types(d, weight.dtype)
        input, end, weight = [_call.CAST(x, d) for x in (input, end, weight)]
    check_kind("lerp", d, "fc")
    return _lerp(input, end, weight, out=out)


lerp.op = _lerp.op
