"""The planted bugs: each replaces kernels of a backend by wrong ones, written in kernels so that any backend can have them.

A bug is a function of (k, right, *args, **attrs), where `right` is the backend's own kernel. What it stands for is its name.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from mortice.backends import DTYPES
from mortice.shape import prod

BY_NAME = {d.name: d for d in DTYPES}


class Bug(NamedTuple):
    """A wrong kernel, or several, on a backend."""

    name: str
    backend: str
    kernels: tuple[str, ...]
    wrong: Callable[..., Any]


BUGS: list[Bug] = []


def bug(kernels: str, name: str, backend: str = "cpu_numpy") -> Any:
    """Register a wrong kernel."""

    def register(wrong: Any) -> Any:
        BUGS.append(Bug(name, backend, tuple(kernels.split()), wrong))
        return wrong

    return register


def _is_float(k: Any, x: Any) -> bool:
    return not isinstance(x, (bool, int, float, complex)) and k.dtype_of(x).kind in "fc"


def size_of(k: Any, x: Any) -> int:
    """Return how many elements an operand has."""
    return prod(k.shape_of(x)) if not isinstance(x, (bool, int, float, complex)) else 1


def _scaled(factor: float) -> Any:
    """Return a bug that is off by a factor, in every float output."""

    def wrong(k: Any, right: Any, *args: Any, **attrs: Any) -> Any:
        out = right(*args, **attrs)
        if isinstance(out, tuple):
            return tuple(k.multiply(o, factor) if o is not None and _is_float(k, o) else o for o in out)
        return k.multiply(out, factor) if _is_float(k, out) else out

    return wrong


def _last(k: Any, out: Any, value: Any) -> Any:
    """Return out with the last place along its last axis replaced."""
    shape = k.shape_of(out)
    return k.setitem(k.copy(out), (Ellipsis, slice(-1, None)), value) if shape and 0 not in shape else out


# ---- a little too large or small ----
for _names in (
    "exp", "log", "sin", "cos", "tanh", "erf", "expm1", "log1p", "sigmoid", "atan", "lgamma", "digamma", "logaddexp", "divide",
    "sqrt", "prod", "mean", "var", "logsumexp", "softmax", "log_softmax", "gelu", "conv", "attention", "layer_norm", "batch_norm",
    "avg_pool", "interpolate", "linear",
):  # fmt: skip
    bug(_names, f"{_names} is off by 1e-4")(_scaled(1.0001))

# ---- gradients ----
for _names in (
    "relu_grad", "softmax_grad", "log_softmax_grad", "gelu_grad", "silu_grad", "layer_norm_grad", "layer_norm_weight_grad",
    "batch_norm_grad", "batch_norm_weight_grad", "group_norm_grad", "conv_input_grad", "conv_weight_grad", "attention_grad",
    "max_pool_grad", "avg_pool_grad", "embedding_grad", "nll_loss_grad", "cross_entropy_grad",
    "linear_weight_grad", "pad_border_grad", "interpolate_grad",
):  # fmt: skip
    bug(_names, f"{_names} is off by 1e-3")(_scaled(1.001))


# ---- elementwise ----
@bug("negative", "minus zero is lost")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.add(right(x), 0) if k.dtype_of(x).kind != "b" else right(x)


@bug("floor", "floor rounds towards zero")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.where(k.less(x, 0), k.negative(right(k.negative(x))), right(x)) if k.dtype_of(x).kind == "f" else right(x)


@bug("sign", "the sign of 0 is 1")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.where(k.equal(x, 0), k.ones_like(x), right(x)) if k.dtype_of(x).kind in "if" else right(x)


@bug("sqrt", "the root of a negative number is 0")
def _(k: Any, right: Any, x: Any) -> Any:
    return right(k.maximum(x, 0)) if k.dtype_of(x).kind == "f" else right(x)


@bug("isnan", "nan is not seen")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.logical_not(k.equal(k.full_like(x, 0), k.full_like(x, 0)))


@bug("isnan", "nan is not seen, without free overrides", "strict")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.less(k.abs(k.full_like(x, 0)), k.full_like(x, 0)) if k.dtype_of(x).kind == "f" else right(x)


@bug("subtract", "operands are swapped")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return right(y, x)


@bug("multiply", "subnormal results are flushed to zero")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if k.dtype_of(out).name != "float32":
        return out
    return k.where(k.less(k.abs(out), 1.1754943508222875e-38), 0.0, out)


@bug("add", "the last element is not added")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if (
        isinstance(x, (int, float, complex))
        or k.shape_of(x) != k.shape_of(out)
        or not k.shape_of(out)
        or 0 in k.shape_of(out)
    ):
        return out
    return _last(k, out, k.getitem(x, (Ellipsis, slice(-1, None))))


@bug("divide", "division by zero gives 0")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    if isinstance(y, (int, float, complex)):
        return right(x, y)
    return k.where(k.equal(y, 0), k.multiply(right(k.full_like(y, 0), k.full_like(y, 1)), 1), right(x, y))


@bug("floor_divide", "integers divide towards zero")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if k.dtype_of(out).kind != "i":
        return out
    exact = k.equal(k.multiply(out, y), x)
    return k.where(k.logical_and(k.less(out, 0), k.logical_not(exact)), k.add(out, 1), out)


@bug("remainder", "the remainder has the sign of the dividend")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if k.dtype_of(out).kind == "u":
        return out
    other = k.logical_and(k.less(k.multiply(out, x), 0), k.logical_not(k.equal(out, 0)))
    return k.where(other, k.subtract(out, y), out)


@bug("pow", "anything to the power of 0 is 0")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    return k.where(k.equal(y, 0), 0, out) if not isinstance(y, (int, float, complex)) else out


@bug("maximum", "the maximum ignores nan")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    return k.where(k.isnan(out), 0.0, out) if k.dtype_of(out).kind == "f" else out


@bug("minimum", "the minimum ignores nan", "strict")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    return k.where(k.isnan(out), 0.0, out) if k.dtype_of(out).kind == "f" else out


@bug("equal", "nan equals nan", "strict")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if any(isinstance(a, (int, float, complex)) or k.dtype_of(a).kind != "f" for a in (x, y)):
        return out
    return k.bitwise_or(out, k.bitwise_and(k.isnan(x), k.isnan(y)))


@bug("less", "less also holds for equal numbers", "strict")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return k.bitwise_or(right(x, y), k.equal(x, y))


@bug("where", "the branches are swapped")
def _(k: Any, right: Any, c: Any, x: Any, y: Any) -> Any:
    return right(c, y, x)


@bug("bitwise_xor", "exclusive or is or", "strict")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return k.bitwise_or(x, y)


@bug("bitwise_left_shift", "it shifts one place too far")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return right(right(x, y), 1)


@bug("bitwise_right_shift", "negative numbers shift to zero")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    return k.where(k.less(x, 0), 0, out) if not isinstance(x, int) and k.dtype_of(x).kind == "i" else out


@bug("logical_not", "not nan is true", "strict")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.bitwise_or(right(x), k.isnan(x)) if k.dtype_of(x).kind == "f" else right(x)


@bug("conj", "conjugation does nothing")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.copy(x)


@bug("imag", "the imaginary part has the wrong sign", "strict")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.negative(right(x))


@bug("exp", "a 0-d operand gives one dimension")
def _(k: Any, right: Any, x: Any) -> Any:
    out = right(x)
    return k.reshape(out, (1,)) if not k.shape_of(x) else out


@bug("sin", "float64 is computed in float32")
def _(k: Any, right: Any, x: Any) -> Any:
    d = k.dtype_of(x)
    return k.astype(right(k.astype(x, BY_NAME["float32"])), d) if d.name == "float64" else right(x)


@bug("log", "the result is float32 whatever goes in")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.astype(right(x), BY_NAME["float32"]) if k.dtype_of(x).kind == "f" else right(x)


# ---- reductions ----
@bug("sum", "the last element is left out")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(_last(k, x, 0), **attrs)


@bug("sum", "of several axes the first alone is summed")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    out = right(x, axis=axis, keepdims=keepdims)
    if not isinstance(axis, tuple) or len(axis) < 2:
        return out
    rest = tuple(
        slice(0, 1) if i in [a % len(k.shape_of(x)) for a in axis[1:]] else slice(None)
        for i in range(len(k.shape_of(x)))
    )
    return k.reshape(right(k.getitem(x, rest), axis=axis, keepdims=keepdims), k.shape_of(out))


@bug("sum", "of all elements it is a number, no buffer")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    out = right(x, **attrs)
    return out if k.shape_of(out) else out[()]


@bug("sum", "the sum of nothing is nan", "strict")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    out = right(x, **attrs)
    return k.full_like(out, math.nan) if size_of(k, x) == 0 and _is_float(k, out) else out


@bug("sum", "nothing to sum is an error")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    if size_of(k, x) == 0:
        raise ValueError("zero-size array to reduction operation")
    return right(x, **attrs)


@bug("prod", "the product of nothing is 0")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    out = right(x, **attrs)
    return k.full_like(out, 0) if size_of(k, x) == 0 else out


@bug("sum", "keepdims is ignored when all axes are summed")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return right(x, axis=axis, keepdims=keepdims and axis is not None)


@bug("max", "nan is not propagated")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), -math.inf, x) if k.dtype_of(x).kind == "f" else x, **attrs)


@bug("min", "it starts from 0")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return k.minimum(right(x, **attrs), 0) if k.dtype_of(x).kind in "if" else right(x, **attrs)


@bug("argmax", "of equal elements the last is found")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    out = right(x, axis=axis, keepdims=keepdims)
    if axis is None:
        n = size_of(k, x)
        return (
            k.subtract(n - 1, right(k.flip(k.reshape(x, (n,)), 0), axis=0, keepdims=False))
            if not keepdims and n
            else out
        )
    return k.subtract(k.shape_of(x)[axis] - 1, right(k.flip(x, axis), axis=axis, keepdims=keepdims))


@bug("argmax", "positions are int32", "strict")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return k.astype(right(x, **attrs), BY_NAME["int32"])


@bug("cumulative_sum", "each element is left out of its own sum")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    return k.subtract(right(x, axis=axis), x)


@bug("cumulative_sum", "it runs along the last axis, whichever was asked", "strict")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    return right(x, axis=-1)


@bug("var", "the correction is ignored")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
    return right(x, axis=axis, correction=0, keepdims=keepdims)


@bug("logaddexp", "it overflows")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return k.log(k.add(k.exp(x), k.exp(y)))


@bug("softmax", "it works along the last axis, whichever was asked")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    return right(x, axis=-1)


# ---- linear algebra and indexing ----
@bug("matmul", "the last term of each product is left out")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return right(_last(k, x, 0), y)


@bug("matmul", "float32 is multiplied in float16")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    d = k.dtype_of(x)
    if d.name != "float32":
        return right(x, y)
    return k.astype(right(k.astype(x, BY_NAME["float16"]), k.astype(y, BY_NAME["float16"])), d)


@bug("matmul", "the result differs from call to call by an ulp")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    return k.multiply(out, 1 + random.choice((0, 1)) * 2.0**-22) if k.dtype_of(out).name == "float32" else out


@bug("take", "the last index reads one place before")
def _(k: Any, right: Any, x: Any, indices: Any, *, axis: int) -> Any:
    n = k.shape_of(x)[axis]
    return right(x, k.where(k.equal(indices, max(n - 1, 0)), max(n - 2, 0), indices), axis=axis)


@bug("take_along_axis", "it works along the last axis", "strict")
def _(k: Any, right: Any, x: Any, indices: Any, *, axis: int) -> Any:
    a, b = k.shape_of(x), k.shape_of(indices)
    fits = a[:-1] == b[:-1] and max(b) <= a[-1]
    return right(x, k.remainder(indices, max(a[-1], 1)), axis=-1) if fits else right(x, indices, axis=axis)


@bug("scatter_add", "of repeated positions one counts")
def _(k: Any, right: Any, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
    ones = right(k.full_like(x, 0), indices, k.full_like(values, 1), axis=axis)
    added = right(k.full_like(x, 0), indices, values, axis=axis)
    if k.dtype_of(x).kind not in "f":
        return right(x, indices, values, axis=axis)
    return k.add(x, k.divide(added, k.maximum(ones, 1)))


@bug("scatter_add", "it writes into its operand")
def _(k: Any, right: Any, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
    return k.setitem(x, (Ellipsis,), right(x, indices, values, axis=axis))


@bug("index_add", "it writes into its operand")
def _(k: Any, right: Any, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
    return k.setitem(x, (Ellipsis,), right(x, indices, values, axis=axis))


@bug("argsort", "equal elements are turned round")
def _(k: Any, right: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    n = k.shape_of(x)[axis]
    return k.subtract(n - 1, right(k.flip(x, axis), axis=axis, descending=descending))


@bug("argsort", "descending order is not stable", "strict")
def _(k: Any, right: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    return k.flip(right(x, axis=axis), axis) if descending else right(x, axis=axis)


@bug("argsort", "downwards is upwards of the negative", "strict")
def _(k: Any, right: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    return right(k.negative(x) if descending and k.dtype_of(x).kind != "b" else x, axis=axis)


@bug("argsort", "nan comes first", "strict")
def _(k: Any, right: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    return right(
        k.where(k.isnan(x), -math.inf, x) if k.dtype_of(x).kind == "f" else x, axis=axis, descending=descending
    )


@bug("flat_nonzero", "the last one is missed")
def _(k: Any, right: Any, x: Any) -> Any:
    out = right(x)
    return k.getitem(out, (slice(0, -1),))
