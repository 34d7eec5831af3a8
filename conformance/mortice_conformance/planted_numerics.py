"""More planted bugs: formulas that hold for usual numbers alone, integers by way of floats, forgotten attributes."""

from __future__ import annotations

from typing import Any

from mortice_conformance.planted_bugs import BY_NAME, bug, size_of

_FLOATS = ("float32", "float64")


def _is(k: Any, x: Any, *names: str) -> bool:
    """Tell whether an operand is a buffer of one of the dtypes."""
    return not isinstance(x, (bool, int, float, complex)) and k.dtype_of(x).name in names


def _through(wide: str, *narrow: str) -> Any:
    """Return a bug that computes some dtypes in another."""

    def wrong(k: Any, right: Any, *args: Any, **attrs: Any) -> Any:
        first = next((a for a in args if _is(k, a, *narrow)), None)
        if first is None:
            return right(*args, **attrs)
        own = k.dtype_of(first)
        out = right(*[k.astype(a, BY_NAME[wide]) if _is(k, a, own.name) else a for a in args], **attrs)
        return k.astype(out, own) if _is(k, out, wide) else out

    return wrong


def _without(**fixed: Any) -> Any:
    """Return a bug that takes attributes for what they mostly are."""

    def wrong(k: Any, right: Any, *args: Any, **attrs: Any) -> Any:
        return right(*args, **{**attrs, **fixed})

    return wrong


# ---- naive formulas ----
@bug("softmax", "the maximum is not subtracted")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    if not _is(k, x, *_FLOATS) or 0 in k.shape_of(x):
        return right(x, axis=axis)
    raised = k.exp(x)
    return k.divide(raised, k.sum(raised, axis=axis, keepdims=True))


@bug("softmax", "a row's maximum of -inf is subtracted from -inf elsewhere")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    if not _is(k, x, *_FLOATS) or 0 in k.shape_of(x):
        return right(x, axis=axis)
    # The maximum of the absolute values: -inf - inf.
    raised = k.exp(k.subtract(x, k.max(k.abs(x), axis=axis, keepdims=True)))
    return k.divide(raised, k.sum(raised, axis=axis, keepdims=True))


@bug("log_softmax", "it is the logarithm of softmax")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    return k.log(k.softmax(x, axis=axis)) if _is(k, x, *_FLOATS) else right(x, axis=axis)


@bug("log_softmax", "the maximum is not subtracted")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    if not _is(k, x, *_FLOATS) or 0 in k.shape_of(x):
        return right(x, axis=axis)
    return k.subtract(x, k.log(k.sum(k.exp(x), axis=axis, keepdims=True)))


@bug("logsumexp", "the maximum is not subtracted")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return k.log(k.sum(k.exp(x), **attrs)) if _is(k, x, *_FLOATS) else right(x, **attrs)


@bug("logsumexp", "a maximum of inf is subtracted too")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    if not _is(k, x, *_FLOATS) or 0 in k.shape_of(x):
        return right(x, axis=axis, keepdims=keepdims)
    top = k.max(x, axis=axis, keepdims=True)
    total = k.add(k.log(k.sum(k.exp(k.subtract(x, top)), axis=axis, keepdims=True)), top)
    return total if keepdims else k.reshape(total, k.shape_of(k.sum(x, axis=axis)))


@bug("logcumsumexp", "it overflows")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    return k.log(k.cumulative_sum(k.exp(x), axis=axis)) if _is(k, x, *_FLOATS) else right(x, axis=axis)


@bug("softplus", "it overflows")
def _(k: Any, right: Any, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    if not _is(k, x, *_FLOATS):
        return right(x, beta, threshold)
    return k.divide(k.log1p(k.exp(k.multiply(x, beta))), beta)


@bug("softplus", "small results are cut off by 1 + x")
def _(k: Any, right: Any, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    if not _is(k, x, *_FLOATS):
        return right(x, beta, threshold)
    scaled = k.multiply(x, beta)
    return k.where(k.less(threshold, scaled), x, k.divide(k.log(k.add(k.exp(scaled), 1)), beta))


@bug("logsigmoid", "it is the logarithm of a sigmoid")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.log(k.sigmoid(x)) if _is(k, x, *_FLOATS) else right(x)


@bug("sigmoid", "it is exp(x) / (1 + exp(x))")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.divide(k.exp(x), k.add(k.exp(x), 1)) if _is(k, x, *_FLOATS) else right(x)


@bug("tanh", "it is made of exp(2 x)")
def _(k: Any, right: Any, x: Any) -> Any:
    e = k.exp(k.multiply(x, 2)) if _is(k, x, *_FLOATS) else None
    return right(x) if e is None else k.divide(k.subtract(e, 1), k.add(e, 1))


@bug("mish", "the softplus in it overflows")
def _(k: Any, right: Any, x: Any) -> Any:
    if not _is(k, x, *_FLOATS):
        return right(x)
    square = k.square(k.add(k.exp(x), 1))
    return k.divide(k.multiply(x, k.subtract(square, 1)), k.add(square, 1))


@bug("silu", "it is x exp(x) / (1 + exp(x))")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.divide(k.multiply(x, k.exp(x)), k.add(k.exp(x), 1)) if _is(k, x, *_FLOATS) else right(x)


@bug("elu", "it takes exp(x) - 1")
def _(k: Any, right: Any, x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    if not _is(k, x, *_FLOATS):
        return right(x, alpha=alpha, scale=scale, input_scale=input_scale)
    below = k.multiply(k.subtract(k.exp(k.multiply(x, input_scale)), 1), alpha * scale)
    return k.where(k.less(0, x), k.multiply(x, scale), below)


@bug("elu", "exp of the side that is not taken overflows into it")
def _(k: Any, right: Any, x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    if not _is(k, x, *_FLOATS):
        return right(x, alpha=alpha, scale=scale, input_scale=input_scale)
    up = k.astype(k.less(0, x), k.dtype_of(x))
    below = k.multiply(k.expm1(k.multiply(x, input_scale)), alpha * scale)
    return k.add(k.multiply(up, k.multiply(x, scale)), k.multiply(k.subtract(1, up), below))


@bug("expm1", "it is exp(x) - 1")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.subtract(k.exp(x), 1) if _is(k, x, *_FLOATS) else right(x)


@bug("log1p", "it is log(1 + x)")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.log(k.add(x, 1)) if _is(k, x, *_FLOATS) else right(x)


@bug("sinh", "it cancels near zero")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.multiply(k.subtract(k.exp(x), k.exp(k.negative(x))), 0.5) if _is(k, x, *_FLOATS) else right(x)


@bug("asinh", "it cancels for large negative numbers")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.log(k.add(x, k.sqrt(k.add(k.multiply(x, x), 1)))) if _is(k, x, *_FLOATS) else right(x)


@bug("acosh", "its square overflows")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.log(k.add(x, k.sqrt(k.subtract(k.multiply(x, x), 1)))) if _is(k, x, *_FLOATS) else right(x)


@bug("hypot", "its squares overflow")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return k.sqrt(k.add(k.multiply(x, x), k.multiply(y, y))) if _is(k, x, *_FLOATS) else right(x, y)


@bug("abs", "of complex numbers the squares overflow")
def _(k: Any, right: Any, x: Any) -> Any:
    if not _is(k, x, "complex64", "complex128"):
        return right(x)
    re, im = k.real(x), k.imag(x)
    return k.sqrt(k.add(k.multiply(re, re), k.multiply(im, im)))


@bug("erfc", "it is 1 - erf(x)")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.subtract(1, k.erf(x)) if _is(k, x, *_FLOATS) else right(x)


@bug("var", "it is the mean square less the squared mean")
def _mean_square_less(k: Any, right: Any, x: Any, *, axis: Any = None, correction: float = 1, keepdims: bool = False) -> Any:
    out = right(x, axis=axis, correction=correction, keepdims=keepdims)
    if not _is(k, x, *_FLOATS) or size_of(k, x) == 0:
        return out
    n = size_of(k, x) // max(size_of(k, out), 1)
    mean = lambda a: k.divide(k.sum(a, axis=axis, keepdims=keepdims), n)
    return k.multiply(k.subtract(mean(k.multiply(x, x)), k.square(mean(x))), n / max(n - correction, 1e-9))


@bug("std", "it is made of the mean square less the squared mean")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    if not _is(k, x, *_FLOATS) or size_of(k, x) == 0:
        return right(x, **attrs)
    return k.sqrt(_mean_square_less(k, right, x, **attrs))


@bug("layer_norm", "the variance is the mean square less the squared mean")
def _(k: Any, right: Any, x: Any, weight: Any = None, bias: Any = None, *, ndim: int, eps: float) -> Any:
    out = right(x, weight, bias, ndim=ndim, eps=eps)
    if not _is(k, x, "float32") or ndim != 1:
        return out
    mean = k.mean(x, axis=(-1,), keepdims=True)
    var = k.subtract(k.mean(k.multiply(x, x), axis=(-1,), keepdims=True), k.multiply(mean, mean))
    y = k.divide(k.subtract(x, mean), k.sqrt(k.add(k.maximum(var, 0), eps)))
    y = y if weight is None else k.multiply(y, weight)
    return (y if bias is None else k.add(y, bias), *out[1:])


def _square_less_square(k: Any, x: Any, axes: tuple[int, ...]) -> Any:
    mean = k.mean(x, axis=axes, keepdims=True)
    return mean, k.maximum(k.subtract(k.mean(k.multiply(x, x), axis=axes, keepdims=True), k.multiply(mean, mean)), 0)


@bug("batch_norm", "the variance is the mean square less the squared mean")
def _(k: Any, right: Any, x: Any, weight: Any = None, bias: Any = None, *, eps: float) -> Any:
    out = right(x, weight, bias, eps=eps)
    shape = k.shape_of(x)
    if not _is(k, x, "float32") or len(shape) < 2 or weight is not None:
        return out
    mean, var = _square_less_square(k, x, (0, *range(2, len(shape))))
    return (k.divide(k.subtract(x, mean), k.sqrt(k.add(var, eps))), *out[1:])


@bug("group_norm", "the variance is the mean square less the squared mean")
def _(k: Any, right: Any, x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float) -> Any:
    out = right(x, weight, bias, groups=groups, eps=eps)
    shape = k.shape_of(x)
    if not _is(k, x, "float32") or weight is not None:
        return out
    flat = k.reshape(x, (shape[0], groups, -1 if 0 in shape else size_of(k, x) // (shape[0] * groups)))
    mean, var = _square_less_square(k, flat, (2,))
    return (k.reshape(k.divide(k.subtract(flat, mean), k.sqrt(k.add(var, eps))), shape), *out[1:])


@bug("attention", "the largest score is not subtracted")
def _(k: Any, right: Any, q: Any, key: Any, v: Any, mask: Any = None, keep: Any = None, *, causal: bool, scale: Any, **rest: Any) -> Any:
    out = right(q, key, v, mask, keep, causal=causal, scale=scale, **rest)
    if not _is(k, q, *_FLOATS) or mask is not None or keep is not None or causal:
        return out
    raised = k.exp(k.multiply(k.matmul(q, k.matrix_transpose(key)), k.shape_of(q)[-1] ** -0.5 if scale is None else scale))
    total = k.sum(raised, axis=-1, keepdims=True)
    return (k.matmul(k.divide(raised, total), v), *out[1:])


@bug("cross_entropy", "the largest logit is not subtracted")
def _(k: Any, right: Any, x: Any, *args: Any, **attrs: Any) -> Any:
    out = right(x, *args, **attrs)
    if not _is(k, x, *_FLOATS):
        return out
    fits = k.less(k.max(k.abs(x)), 88.0 if _is(k, x, "float32") else 709.0)
    return (k.where(fits, out[0], float("inf")), *out[1:])


@bug("pow", "a negative base gives nan")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if not _is(k, out, *_FLOATS) or isinstance(x, (int, float)):
        return out
    return k.where(k.less(x, 0), float("nan"), out)


@bug("pow", "integers are raised in float64")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return _through("float64", "int64", "uint64")(k, right, x, y)


@bug("sqrt", "of complex numbers the root is on the wrong side below the real axis")
def _(k: Any, right: Any, x: Any) -> Any:
    out = right(x)
    if not _is(k, x, "complex64", "complex128"):
        return out
    return k.where(k.less(k.imag(x), 0), k.negative(out), out)


@bug("log", "of complex numbers the angle is cut at a right angle")
def _(k: Any, right: Any, x: Any) -> Any:
    out = right(x)
    if not _is(k, x, "complex64", "complex128"):
        return out
    return k.complex(k.real(out), k.atan(k.divide(k.imag(x), k.real(x))))


@bug("equal", "of complex numbers the real parts are compared")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    real = lambda a: k.real(a) if _is(k, a, "complex64", "complex128") else a.real if isinstance(a, complex) else a
    return right(real(x), real(y))


@bug("logical_not", "of complex numbers the real part is looked at")
def _(k: Any, right: Any, x: Any) -> Any:
    return right(k.real(x)) if _is(k, x, "complex64", "complex128") else right(x)


@bug("remainder", "it is x - y floor(x / y)")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    if not (_is(k, x, *_FLOATS) or _is(k, y, *_FLOATS)):
        return right(x, y)
    return k.subtract(x, k.multiply(k.floor(k.divide(x, y)), y))


@bug("remainder", "divided by infinity it is nan")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if not _is(k, y, *_FLOATS):
        return out
    return k.where(k.equal(k.abs(y), float("inf")), float("nan"), out)


@bug("fmod", "divided by infinity it is nan")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    return k.where(k.equal(k.abs(y), float("inf")), float("nan"), out) if _is(k, y, *_FLOATS) else out


@bug("floor_divide", "of floats it is the floor of the rounded quotient")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return k.floor(k.divide(x, y)) if _is(k, x, *_FLOATS) or _is(k, y, *_FLOATS) else right(x, y)


@bug("floor_divide", "the least integer by -1 is cut to the largest")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    out = right(x, y)
    if k.dtype_of(out).kind != "i":
        return out
    return k.where(k.logical_and(k.equal(y, -1), k.logical_and(k.equal(out, x), k.less(x, 0))), k.subtract(out, 1), out)


@bug("where", "nan in the branch that is not taken comes through")
def _(k: Any, right: Any, c: Any, x: Any, y: Any) -> Any:
    if not (_is(k, x, *_FLOATS) and _is(k, y, *_FLOATS)):
        return right(c, x, y)
    taken = k.astype(c, k.dtype_of(x))
    return k.add(k.multiply(taken, x), k.multiply(k.subtract(1, taken), y))


@bug("maximum", "integers are compared as floats")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return _through("float64", "int64", "uint64")(k, right, x, y)


# ---- integers by way of floats or of narrower ones ----
for _names, _text in (
    ("sum", "of int64 the sum is made in float64"),
    ("prod", "of int64 the product is made in float64"),
    ("max", "int64 is compared as float64"),
    ("argmax", "int64 is compared as float64"),
    ("argsort", "int64 is ordered as float64"),
    ("less", "int64 is compared as float64"),
    ("equal", "int64 is compared as float64"),
    ("cumulative_sum", "of int64 the sums are made in float64"),
    ("matmul", "int64 is multiplied in float64"),
    ("floor_divide", "int64 is divided in float64"),
    ("remainder", "int64 is divided in float64"),
    ("abs", "int64 goes through float64"),
    ("bitwise_left_shift", "int64 is shifted as int32"),
):
    bug(_names, _text)(_through("int32" if "int32" in _text else "float64", "int64", "uint64"))

bug("scatter_add", "uint64 is added in float64")(_through("float64", "uint64"))
bug("take", "uint64 goes through float64")(_through("float64", "uint64"))
bug("floor_divide", "uint64 is divided as int64")(_through("int64", "uint64"))
bug("less", "uint64 is compared as int64")(_through("int64", "uint64"))
bug("max", "uint64 is compared as int64")(_through("int64", "uint64"))
@bug("sort_pairs", "int64 is ordered as float64")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    values, at = _through("float64", "int64")(k, right, x, **attrs)
    return k.astype(values, k.dtype_of(x)), at


bug("searchsorted", "int64 is compared as float64")(_through("float64", "int64"))


@bug("astype", "int64 goes through float64")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if _is(k, x, "int64", "uint64") and dtype.name in ("uint64", "int64"):
        return right(right(x, BY_NAME["float64"]), dtype)
    return right(x, dtype)


@bug("astype", "integers that do not fit stop at the ends")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if k.dtype_of(x).name == "int64" and dtype.name == "int8":
        return right(k.maximum(k.minimum(x, 127), -128), dtype)
    return right(x, dtype)


@bug("astype", "a negative number becomes 0 where there is no sign")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if k.dtype_of(x).kind == "i" and dtype.kind == "u":
        return right(k.maximum(x, 0), dtype)
    return right(x, dtype)


@bug("astype", "a bool is made by way of uint8")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if dtype.name == "bool" and k.dtype_of(x).kind in "ui":
        return right(right(x, BY_NAME["uint8"]), dtype)
    return right(x, dtype)


@bug("astype", "a bool is made by way of integers")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if dtype.name == "bool" and k.dtype_of(x).kind == "f":
        return right(k.floor(k.abs(x)), dtype)
    return right(x, dtype)


@bug("astype", "nan becomes False")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if dtype.name == "bool" and k.dtype_of(x).kind == "f":
        return k.less(0, k.abs(x))
    return right(x, dtype)


@bug("astype", "an imaginary number becomes False")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    return right(k.real(x) if dtype.name == "bool" and k.dtype_of(x).is_complex else x, dtype)


@bug("astype", "int64 is cut, where it should be rounded to float32")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if dtype.name == "float32" and k.dtype_of(x).name == "int64":
        return right(k.bitwise_and(x, -256), dtype)
    return right(x, dtype)


# ---- low precision ----
def _one_by_one(k: Any, x: Any, axis: int) -> Any:
    """Return the sum along an axis, each step rounded to the dtype."""
    shape = k.shape_of(x)
    at = lambda i: (*[slice(None)] * (axis % len(shape)), slice(i, i + 1))
    total = k.copy(k.getitem(x, at(0)))
    for i in range(1, shape[axis]):
        total = k.add(total, k.getitem(x, at(i)))
    return total


@bug("sum", "16-bit floats are added one by one, each sum rounded")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    shape = k.shape_of(x)
    if not _is(k, x, "float16", "bfloat16") or len(shape) != 1 or not shape[0]:
        return right(x, axis=axis, keepdims=keepdims)
    out = _one_by_one(k, x, 0)
    return out if keepdims else k.reshape(out, ())


@bug("mean", "the sum of 16-bit floats overflows")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    out = right(x, axis=axis, keepdims=keepdims)
    if not _is(k, x, "float16") or size_of(k, x) == 0:
        return out
    total = k.astype(k.sum(k.astype(x, BY_NAME["float32"]), axis=axis, keepdims=keepdims), BY_NAME["float16"])
    return k.divide(total, size_of(k, x) // max(size_of(k, out), 1))


@bug("mean", "16-bit floats are added one by one, each sum rounded")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    shape = k.shape_of(x)
    if not _is(k, x, "float16", "bfloat16") or len(shape) != 1 or not shape[0]:
        return right(x, axis=axis, keepdims=keepdims)
    out = k.divide(_one_by_one(k, x, 0), shape[0])
    return out if keepdims else k.reshape(out, ())


@bug("matmul", "the products of 16-bit floats are added one by one, each sum rounded")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    if not _is(k, x, "float16", "bfloat16") or len(k.shape_of(x)) != 2 or len(k.shape_of(y)) != 2:
        return right(x, y)
    if 0 in (*k.shape_of(x), *k.shape_of(y)):
        return right(x, y)
    (m, n), p = k.shape_of(x), k.shape_of(y)[1]
    return k.reshape(_one_by_one(k, k.multiply(k.reshape(x, (m, n, 1)), k.reshape(y, (1, n, p))), 1), (m, p))


bug("sum", "float64 is added in float32")(_through("float32", "float64"))
bug("matmul", "float64 is multiplied in float32")(_through("float32", "float64"))
bug("matmul", "float32 is multiplied in bfloat16")(_through("bfloat16", "float32"))


# ---- dtypes and devices of results ----
@bug("sum", "of small integers it is int64")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    out = right(x, **attrs)
    return k.astype(out, BY_NAME["int64"]) if k.dtype_of(x).kind in "ui" else out


@bug("less", "it gives 0 and 1 as uint8")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return k.astype(right(x, y), BY_NAME["uint8"])


@bug("exp", "its result is on the first device", "strict")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.copy_to(right(x), k.device(k.device_names()[0]))


# ---- order ----
@bug("topk", "nan counts as the smallest")
def _(k: Any, right: Any, x: Any, *args: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), float("-inf"), x) if _is(k, x, *_FLOATS) else x, *args, **attrs)


@bug("sort_pairs", "equal elements are turned round")
def _(k: Any, right: Any, x: Any, *, axis: int, descending: bool = False) -> Any:
    values, at = right(k.flip(x, axis), axis=axis, descending=descending)
    return values, k.subtract(k.shape_of(x)[axis] - 1, at)


@bug("argmin", "nan is passed over")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), float("inf"), x) if _is(k, x, *_FLOATS) else x, **attrs)


@bug("median", "nan is passed over")
def _(k: Any, right: Any, x: Any, *args: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), float("-inf"), x) if _is(k, x, *_FLOATS) else x, *args, **attrs)


@bug("cumulative_max", "nan is passed over")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), float("-inf"), x) if _is(k, x, *_FLOATS) else x, **attrs)


@bug("cumulative_min", "of equal elements the first is found")
def _(k: Any, right: Any, x: Any, *, axis: int) -> Any:
    values, at = right(x, axis=axis)
    shape = k.shape_of(x)
    if 0 in shape or shape[axis] < 2:
        return values, at
    key = lambda s: (*[slice(None)] * (axis % len(shape)), s)
    same = k.equal(k.getitem(values, key(slice(1, None))), k.getitem(values, key(slice(None, -1))))
    later = k.where(same, k.getitem(at, key(slice(None, -1))), k.getitem(at, key(slice(1, None))))
    return values, k.concat([k.getitem(at, key(slice(0, 1))), later], axis=axis)


@bug("any", "nan is not true")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), 0, x) if _is(k, x, *_FLOATS) else x, **attrs)


@bug("all", "nan is not true")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), 0, x) if _is(k, x, *_FLOATS) else x, **attrs)


@bug("count_nonzero", "nan does not count")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), 0, x) if _is(k, x, *_FLOATS) else x, **attrs)


@bug("round", "halves are rounded away from zero")
def _(k: Any, right: Any, x: Any, decimals: int = 0) -> Any:
    if not _is(k, x, *_FLOATS) or decimals:
        return right(x, decimals)
    return k.multiply(k.sign(x), k.floor(k.add(k.abs(x), 0.5)))


# ---- movement and indexing ----
@bug("roll", "a negative shift goes the other way")
def _(k: Any, right: Any, x: Any, *, shifts: Any, axes: Any) -> Any:
    return right(x, shifts=tuple(abs(s) for s in shifts), axes=axes)


@bug("tril", "the number of the diagonal is ignored")
def _(k: Any, right: Any, x: Any, *, diagonal: int = 0) -> Any:
    return right(x, diagonal=0)


@bug("triu", "a diagonal below the middle is taken for one above")
def _(k: Any, right: Any, x: Any, *, diagonal: int = 0) -> Any:
    return right(x, diagonal=abs(diagonal))


@bug("diagonal", "a diagonal below the middle is taken for one above")
def _(k: Any, right: Any, x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
    return right(x, offset=abs(offset), axis1=axis1, axis2=axis2)


@bug("getitem", "a slice that ends beyond the end is an error", "strict")
def _(k: Any, right: Any, x: Any, key: Any) -> Any:
    for p, n in zip(key, k.shape_of(x)):
        if isinstance(p, slice) and p.stop is not None and p.stop > n:
            raise IndexError("slice beyond the end")
    return right(x, key)


@bug("scatter_combine", "of repeated positions one counts")
def _(k: Any, right: Any, x: Any, indices: Any, values: Any, *, axis: int, how: str) -> Any:
    return k.scatter_write(x, indices, values, axis=axis) if how == "prod" else right(x, indices, values, axis=axis, how=how)


@bug("index_add", "of repeated positions one counts")
def _(k: Any, right: Any, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
    return k.index_write(x, indices, k.add(k.take(x, indices, axis=axis), values), axis=axis)


@bug("exp", "of a broadcast operand the memory is read as if it lay in one piece")
def _(k: Any, right: Any, x: Any) -> Any:
    shape, strides = k.shape_of(x), k.strides_of(x)
    if not any(s == 0 and n > 1 for n, s in zip(shape, strides)):
        return right(x)
    return right(k.full_like(x, 1.0))


@bug("exp", "the result of the last operand at that address is kept", "cpu_numpy")
def _(k: Any, right: Any, x: Any, kept: dict[Any, Any] = {}) -> Any:  # noqa: B006 - that is the bug
    place = (k.address(x), k.shape_of(x), k.dtype_of(x))
    if place not in kept:
        kept.clear()
        kept[place] = right(x)
    return kept[place]


# ---- windows ----
bug("conv", "dilation is ignored where there are groups")(
    lambda k, right, *args, **attrs: (
        right(*args, **attrs) if attrs["groups"] == 1 or set(attrs["dilation"]) == {1} else _undilated(k, right, args, attrs)
    )
)


def _undilated(k: Any, right: Any, args: Any, attrs: Any) -> Any:
    out = right(*args, **attrs)
    return k.multiply(out, 0)


@bug("conv", "the filter is turned round")
def _(k: Any, right: Any, x: Any, w: Any, *args: Any, **attrs: Any) -> Any:
    return right(x, k.flip(w, tuple(range(2, len(k.shape_of(w))))), *args, **attrs)


@bug("conv", "the two strides are exchanged")
def _(k: Any, right: Any, *args: Any, **attrs: Any) -> Any:
    return right(*args, **{**attrs, "stride": tuple(attrs["stride"])[::-1]})


@bug("conv_weight_grad", "dilation is ignored")
def _(k: Any, right: Any, *args: Any, **attrs: Any) -> Any:
    out = right(*args, **attrs)
    return out if set(attrs["dilation"]) == {1} else k.multiply(out, 0)


@bug("conv_input_grad", "rows that no window reaches are not zero")
def _(k: Any, right: Any, g: Any, w: Any, *args: Any, **attrs: Any) -> Any:
    out = right(g, w, *args, **attrs)
    axis = len(attrs["x_shape"]) - 1
    n, m = attrs["x_shape"][-1], k.shape_of(w)[-1]
    s, p, d = attrs["stride"][-1], attrs["padding"][-1], attrs["dilation"][-1]
    rest = (n + 2 * p - d * (m - 1) - 1) % s - p
    if rest < 1:
        return out
    key = (*[slice(None)] * axis, slice(n - rest, None))
    return k.setitem(k.copy(out), key, 1)


@bug("max_pool max_pool_values", "the border counts as 0")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    out = right(x, **attrs)
    if not any(attrs["padding"]):
        return out
    lift = lambda a: k.maximum(a, 0)
    return (lift(out[0]), *out[1:]) if isinstance(out, tuple) else lift(out)


@bug("max_pool max_pool_values", "dilation is ignored")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    out = right(x, **attrs)
    first = out[0] if isinstance(out, tuple) else out
    if set(attrs["dilation"]) == {1}:
        return out
    return (k.multiply(first, 0), *out[1:]) if isinstance(out, tuple) else k.multiply(first, 0)


@bug("max_pool max_pool_values avg_pool", "windows that reach beyond the end are left out whatever was asked")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(x, **{**attrs, "ceil_mode": False})


@bug("max_pool max_pool_values", "nan is passed over")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    return right(k.where(k.isnan(x), float("-inf"), x) if _is(k, x, *_FLOATS) else x, **attrs)


@bug("max_pool", "of equal elements the last is found")
def _(k: Any, right: Any, x: Any, **attrs: Any) -> Any:
    nd = len(attrs["kernel"])
    axes = tuple(range(-nd, 0))
    shape = k.shape_of(x)
    out = right(x, **attrs)
    if any(attrs["padding"]) or any(s != 1 for s in attrs["stride"]):
        return out
    values, at = right(k.flip(x, axes), **attrs)
    total = 1
    for n in shape[len(shape) - nd :]:
        total *= n
    return k.flip(values, axes), k.flip(k.subtract(total - 1, at), axes)


bug("avg_pool", "the border counts whatever was asked")(_without(count_include_pad=True))


@bug("adaptive_avg_pool", "the parts do not overlap")
def _(k: Any, right: Any, x: Any, *, output_size: Any) -> Any:
    out = right(x, output_size=output_size)
    n, m = k.shape_of(x)[-1], output_size[-1]
    return out if n % m == 0 else k.multiply(out, 1.01)


bug("interpolate", "align_corners is ignored")(_without(align_corners=False))


@bug("dropout", "what is kept is not scaled")
def _(k: Any, right: Any, x: Any, keep: Any, *args: Any, **attrs: Any) -> Any:
    return k.multiply(right(x, keep, *args, **attrs), 0.75)


@bug("matmul", "of complex numbers the first is conjugated")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    return right(k.conj(x), y) if _is(k, x, "complex64", "complex128") else right(x, y)


# ---- operands ----
def _written(*names: str) -> Any:
    """Return a bug that writes the result over the first operand, where shape and dtype let it."""

    def wrong(k: Any, right: Any, *args: Any, **attrs: Any) -> Any:
        out = right(*args, **attrs)
        x = next((a for a in args if not isinstance(a, (bool, int, float, complex, list, tuple))), None)
        if x is None or k.shape_of(x) != k.shape_of(out) or k.dtype_of(x) is not k.dtype_of(out):
            return out
        return out if names and k.dtype_of(x).name not in names else k.setitem(x, (Ellipsis,), out)

    return wrong


bug("add", "a number is added in place")(
    lambda k, right, x, y: k.setitem(x, (Ellipsis,), right(x, y)) if isinstance(y, (int, float)) and not isinstance(x, (int, float))
    and k.dtype_of(x) is k.dtype_of(right(x, y)) else right(x, y)
)  # fmt: skip
bug("exp", "float64 is computed in place")(_written("float64"))
bug("multiply", "int64 is computed in place")(_written("int64"))
bug("cumulative_sum", "it is computed in place")(_written())
bug("matmul", "square matrices are computed in place")(_written())
bug("softmax", "it is computed in place")(_written())


@bug("sum", "over no elements but one it returns a part of the operand")
def _(k: Any, right: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    out = right(x, axis=axis, keepdims=keepdims)
    return k.reshape(x, k.shape_of(out)) if size_of(k, x) == size_of(k, out) else out


@bug("concat", "of one array it is that array")
def _(k: Any, right: Any, arrays: Any, *, axis: int) -> Any:
    arrays = list(arrays)
    whole = [a for a in arrays if size_of(k, a)]
    return whole[0] if len(whole) == 1 else right(arrays, axis=axis)
