"""Running sums, products, extremes along a dim, and differences of neighbours."""

from __future__ import annotations

from typing import Any

from mortice import call as _call
from mortice import return_types
from mortice.dtype import DType, as_dtype, bool_, check_kind
from mortice.errors import ShapeError
from mortice.node import TENSOR_KERNELS
from mortice.op import op
from mortice.ops.arguments import numpy_names
from mortice.ops.compare import logical_xor
from mortice.ops.elementwise import sub
from mortice.ops.gather import gather_back
from mortice.ops.joining import cat
from mortice.ops.movement import clone, reshape
from mortice.ops.reduce import PAIR, dtype_of_out, flat_axis, reduce_as, selected, write_all
from mortice.ops.views import narrow
from mortice.rules import accumulate, promote, same
from mortice.shape import check_dim

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp"]


def _cut(k: Any, x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return k.getitem(x, (*(slice(None),) * axis, slice(start, stop)))


def backwards_recurrence(k: Any, a: Any, b: Any, axis: int) -> Any:
    """Return s with s[i] = b[i] + a[i] * s[i + 1], the last s being the last b; windows that double do it."""
    n = k.shape_of(b)[axis]
    reach = 1
    while reach < n:
        late_a, late_b = _cut(k, a, axis, reach, None), _cut(k, b, axis, reach, None)
        early_a, early_b = _cut(k, a, axis, None, n - reach), _cut(k, b, axis, None, n - reach)
        joined_b = k.add(early_b, k.multiply(early_a, late_b))
        b = k.concat([joined_b, _cut(k, b, axis, n - reach, None)], axis=axis)
        reach *= 2
        if reach < n:
            a = k.concat([k.multiply(early_a, late_a), _cut(k, a, axis, n - reach // 2, None)], axis=axis)
    return b


def _followed(k: Any, x: Any, axis: int) -> Any:
    """Shift towards the front; what then stands last is never used."""
    return k.concat([_cut(k, x, axis, 1, None), _cut(k, x, axis, None, 1)], axis=axis)


def _scan_kernel(fn: Any) -> Any:
    return lambda x, *, axis: fn(x, axis=axis % len(x.shape))


def _along(fn: Any, name: str, input: Any, dim: int, dtype: DType | None, out: Any) -> Any:
    x, axis, scalar = flat_axis(input, dim, name)
    dtype = dtype_of_out(fn, x, dtype, out)
    if dtype is not None:
        check_kind(name, as_dtype(name, dtype), "uifc")
    if scalar:
        made = reshape(reduce_as(fn, x, dtype, None, axis=0), ())
        return _call.give(name, out, made)
    return reduce_as(fn, x, dtype, out, axis=axis)


@op(result=accumulate, shape=same, kernel="cumulative_sum", name="cumsum")
def _cumsum(k: Any, x: Any, /, *, axis: int) -> Any:
    """Add up along an axis."""


_cumsum.vjp(x=lambda k, g, axis: k.flip(k.cumulative_sum(k.flip(g, axis), axis=axis), axis), jvp="linear")
TENSOR_KERNELS.replace("cumulative_sum", _scan_kernel(_cumsum))


@numpy_names
def cumsum(input: Any, dim: int, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Add up along a dim. Bools and integers add up in int64."""
    return _along(_cumsum, "cumsum", input, dim, dtype, out)


@op(result=accumulate, shape=same, kernel="cumulative_prod", name="cumprod")
def _cumprod(k: Any, x: Any, /, *, axis: int) -> Any:
    """Multiply up along an axis."""


def _cumprod_back(k: Any, g: Any, x: Any, out: Any, axis: int) -> Any:
    # What precedes an element times what follows it, by a recurrence: no division, so zeros need no care.
    before = k.concat([k.ones_like(_cut(k, out, axis, None, 1)), _cut(k, out, axis, None, -1)], axis=axis)
    return k.multiply(before, backwards_recurrence(k, _followed(k, x, axis), g, axis))


_cumprod.vjp(x=_cumprod_back)
TENSOR_KERNELS.replace("cumulative_prod", _scan_kernel(_cumprod))


@numpy_names
def cumprod(input: Any, dim: int, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Multiply up along a dim. Bools and integers multiply in int64."""
    return _along(_cumprod, "cumprod", input, dim, dtype, out)


@op(result=promote, shape=same, kernel="logcumsumexp", name="logcumsumexp", dtypes="fc")
def _logcumsumexp(k: Any, x: Any, /, *, axis: int) -> Any:
    """Take the logarithm of running sums of exponentials."""


def _ratio(k: Any, x: Any, y: Any) -> Any:
    """Return exp(x - y), 1 of equal infinities."""
    return k.exp(k.where(k.equal(x, y), 0.0, k.subtract(x, y)))


def _logcumsumexp_back(k: Any, g: Any, x: Any, out: Any, axis: int) -> Any:
    # An element's share of the sum at its own place, and the share of that sum in each later one.
    shrink = _ratio(k, out, _followed(k, out, axis))
    return k.multiply(_ratio(k, x, out), backwards_recurrence(k, shrink, g, axis))


_logcumsumexp.vjp(x=_logcumsumexp_back)
TENSOR_KERNELS.replace("logcumsumexp", _scan_kernel(_logcumsumexp))


@numpy_names
def logcumsumexp(input: Any, dim: int, *, out: Any = None) -> Any:
    """Take the logarithm of running sums of exponentials along a dim."""
    return _along(_logcumsumexp, "logcumsumexp", input, dim, input.dtype, out)


@op(result=selected, shape=same, outputs=PAIR, differentiable=1, kernel="cumulative_max", name="cummax", dtypes="buif")
def _cummax(k: Any, x: Any, /, *, axis: int) -> Any:
    """Return the largest so far and where it was."""


@op(result=selected, shape=same, outputs=PAIR, differentiable=1, kernel="cumulative_min", name="cummin", dtypes="buif")
def _cummin(k: Any, x: Any, /, *, axis: int) -> Any:
    """Return the smallest so far and where it was."""


for _fn in (_cummax, _cummin):
    _fn.vjp(x=gather_back)


def _extremes(fn: Any, made: Any, input: Any, dim: int, out: Any) -> Any:
    name = fn.op.name
    x, axis, scalar = flat_axis(input, dim, name)
    values, indices = fn(x, axis=axis)
    if scalar:
        values, indices = reshape(values, ()), reshape(indices, ())
    return write_all(name, out, made(values, indices))


@numpy_names
def cummax(input: Any, dim: int, *, out: Any = None) -> Any:
    """Return the largest so far along a dim, and where it last was."""
    return _extremes(_cummax, return_types.cummax, input, dim, out)


@numpy_names
def cummin(input: Any, dim: int, *, out: Any = None) -> Any:
    """Return the smallest so far along a dim, and where it last was."""
    return _extremes(_cummin, return_types.cummin, input, dim, out)


@numpy_names
def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None
) -> Any:
    """Subtract neighbours along a dim, n times, with tensors joined in front or behind first."""
    if not input.shape:
        raise ShapeError("diff expects input to be at least one-dimensional; got a 0-d tensor.")
    axis = check_dim("diff", dim, len(input.shape))
    if n < 0:
        raise RuntimeError(f"diff: order must be non-negative but got {n}.")
    for t in (prepend, append):
        if t is not None and len(t.shape) != len(input.shape):
            raise ShapeError(
                f"diff expects prepend or append to be the same dimension as input; got {len(t.shape)} and {len(input.shape)}."
            )
        for i, (size, other) in enumerate(zip(input.shape, () if t is None else t.shape)):
            if i != axis and size != other:
                raise ShapeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({i}) = {size}, but got tensor.size({i}) = {other}"
                )
    x = input
    if n and (prepend is not None or append is not None):
        x = cat([t for t in (prepend, x, append) if t is not None], axis)
    for _ in range(min(n, x.shape[axis])):
        size = x.shape[axis]
        late, early = narrow(x, axis, 1, size - 1), narrow(x, axis, 0, size - 1)
        x = logical_xor(late, early) if x.dtype is bool_ else sub(late, early)
    x = clone(x) if n == 0 else x
    return _call.give("diff", out, x)
