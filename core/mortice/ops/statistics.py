"""Variances, norms, sums of exponentials, medians, modes, quantiles; histograms are in `histogram`."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from mortice import call as _call
from mortice import return_types
from mortice.backends.kernel_tools import is_number
from mortice.dtype import DType, bfloat16, float16, float32, int64
from mortice.errors import DTypeError, ShapeError, switch
from mortice.modes import autocasting
from mortice.node import named
from mortice.notice import warn
from mortice.op import Op, op
from mortice.ops.arguments import numpy_names
from mortice.ops.blend import lerp
from mortice.ops.bounds import where
from mortice.ops.data import range_of
from mortice.ops.elementwise import mul, sub
from mortice.ops.gather import gather
from mortice.ops.movement import cast, contiguous, expand, reshape, squeeze, transpose, unsqueeze
from mortice.ops.norms import matrix_norm, norm_back
from mortice.ops.reduce import (
    PAIR,
    _reduced_one,
    _share_back,
    axes_of,
    count_along,
    flat_axis,
    mean,
    select_along,
    selected,
    selected_back,
    spread,
)  # fmt: skip
from mortice.ops.sort import sort
from mortice.ops.unary import ceil, floor, round
from mortice.ops.views import movedim
from mortice.rules import floating, promote, reduced
from mortice.shape import SCALAR, Size, check_dim, missing
from mortice.shape import prod as size_of
from mortice.tensor import TensorBase, make

__all__ = [
    "dist", "kthvalue", "logsumexp", "median", "mode", "nanmedian", "nanquantile", "norm",
    "quantile", "renorm", "std", "std_mean", "var", "var_mean",
]  # fmt: skip

# ---- variances ----


def _spread_rule(op: Op, d: DType) -> tuple[DType, DType]:
    if d.kind in "bui":
        raise DTypeError(
            f"{op.name}: std and var only support floating point and complex dtypes; got {d}. Use .float()."
        )
    return d, d.to_real()


@op(result=_spread_rule, shape=reduced, kernel="var", name="var", holomorphic=False)
def _var(k: Any, x: Any, /, *, axis: Any, correction: float, keepdims: bool) -> Any:
    """Return the variance."""


def _var_back(k: Any, g: Any, x: Any, x_shape: Size, axis: Any, correction: float, keepdims: bool) -> Any:
    freedom = count_along(x_shape, axis) - correction
    g = spread(k, k.multiply(g, 2.0 / freedom if freedom else math.inf), x_shape, axis, keepdims)
    d = k.dtype_of(x)
    return k.multiply(k.astype(g, d) if d.is_complex else g, k.subtract(x, k.mean(x, axis=axis, keepdims=True)))


_var.vjp(x=_var_back)


@op(result=_spread_rule, shape=reduced, kernel="std", name="std", holomorphic=False)
def _std(k: Any, x: Any, /, *, axis: Any, correction: float, keepdims: bool) -> Any:
    """Return the standard deviation."""


def _std_back(k: Any, g: Any, x: Any, out: Any, x_shape: Size, axis: Any, correction: float, keepdims: bool) -> Any:
    flat = k.equal(out, 0.0)
    g = k.where(flat, 0.0, k.divide(g, k.multiply(k.where(flat, 1.0, out), 2.0)))
    return _var_back(k, g, x, x_shape, axis, correction, keepdims)


_std.vjp(x=_std_back)


def _variance_arguments(
    name: str, input: Any, dim: Any, unbiased: Any, correction: Any
) -> tuple[Any, float]:
    """Sort out the overloads: std(x, unbiased), std(x, dim, unbiased), std(x, dim, correction=)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(f"{name}: expected either unbiased or correction; got both.")
        correction = int(switch(name, "unbiased", unbiased))
    correction = 1 if correction is None else correction
    axis = axes_of(name, dim, len(input.shape))
    n = count_along(input.shape, axis)
    if n - correction <= 0 and input.dtype.kind in "fc" and not (axis is not None and size_of(input.shape) == 0 and n):
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )
    return axis, correction


@numpy_names
def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None, out: Any = None,
) -> Any:  # fmt: skip
    """Return the standard deviation, of all elements or along dims, dividing by n - correction (1)."""
    axis, correction = _variance_arguments("std", input, dim, unbiased, correction)
    return _std(input, axis=axis, correction=correction, keepdims=keepdim, out=out)


@numpy_names
def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None, out: Any = None,
) -> Any:  # fmt: skip
    """Return the variance, of all elements or along dims, dividing by n - correction (1)."""
    axis, correction = _variance_arguments("var", input, dim, unbiased, correction)
    return _var(input, axis=axis, correction=correction, keepdims=keepdim, out=out)


@numpy_names
def std_mean(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Any, Any]:
    """Return the standard deviation and the mean."""
    axis, correction = _variance_arguments("std_mean", input, dim, unbiased, correction)
    std = _std(input, axis=axis, correction=correction, keepdims=keepdim)
    return named(std, "StdMeanBackward0"), named(mean(input, axis, keepdim), "StdMeanBackward0")


@numpy_names
def var_mean(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Any, Any]:
    """Return the variance and the mean."""
    axis, correction = _variance_arguments("var_mean", input, dim, unbiased, correction)
    var = _var(input, axis=axis, correction=correction, keepdims=keepdim)
    return named(var, "VarMeanBackward0"), named(mean(input, axis, keepdim), "VarMeanBackward0")


# ---- norms ----


def _norm_rule(op: Op, d: DType) -> tuple[DType, DType]:
    if d.kind in "bui":
        raise DTypeError(f"{op.name}: Expected a floating point or complex tensor as input; got {d}. Use .float().")
    return d, d.to_real()


@op(result=_norm_rule, shape=reduced, name="norm", holomorphic=False, grad_name="LinalgVectorNormBackward0")
def _norm(k: Any, x: Any, /, *, p: float, axis: Any, keepdims: bool) -> Any:
    """Return the vector norm of order p."""
    return k.vector_norm(x, p=p, axis=axis, keepdims=keepdims)


_norm.vjp(x=norm_back)


def vector_norm(
    name: str, x: Any, p: float, dim: Any, keepdim: bool, dtype: DType | None = None, out: Any = None
) -> Any:
    """Return the vector norm of order p over dims (None is all), computed in `dtype` where it is given."""
    if dtype is not None:
        if dtype.kind not in "fc":
            raise DTypeError(f"{name}: dtype should be floating point or complex, but got {dtype}.")
        _norm_rule(_norm.op, x.dtype)
        x = cast(x, dtype)
    axis = axes_of(name, dim, len(x.shape))
    if (math.isinf(p) or p < 0) and size_of(x.shape) == 0 and (axis is None or any(x.shape[a] == 0 for a in axis)):
        raise RuntimeError(
            f"{name}: cannot compute the {p} norm on an empty tensor because the operation does not have an identity; "
            f"got shape {list(x.shape)}."
        )
    return _norm(x, p=float(p), axis=axis, keepdims=keepdim, out=out)


@numpy_names
@autocasting
def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: DType | None = None
) -> Any:
    """Return the vector norm of order p over all elements or dims, or the nuclear norm ("nuc") of matrices."""
    if isinstance(p, str) and p != "fro":
        dims = tuple(range(len(input.shape))) if dim is None else dim
        return matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    p = 2.0 if p is None or p == "fro" else p
    p = p.item() if isinstance(p, TensorBase) else p
    try:
        return vector_norm("norm", input, p, dim, keepdim, dtype, out)
    except NotImplementedError:  # as of a sum
        return norm(import_module("mortice.sparse.coo").all_values(input, dim, keepdim), p, None, False, out, dtype)


@autocasting
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Return the norm of order p of the difference."""
    return named(_norm(sub(input, other), p=float(p), axis=None, keepdims=False), "DistBackward0")


@numpy_names
@autocasting
def renorm(input: Any, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Any:
    """Scale down each slice along a dim whose norm of order p is above `maxnorm`."""
    ndim = len(input.shape)
    if ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions.")
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported; got p = {p}.")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}.")
    axis = check_dim("renorm", dim, ndim)
    wide = float32 if input.dtype in (float16, bfloat16) else None
    size = vector_norm("renorm", input, p, [d for d in range(ndim) if d != axis], True, wide)
    factor = where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)
    made = named(mul(contiguous(input), cast(factor, input.dtype)), "RenormBackward0")
    return _call.give("renorm", out, made)


@op(result=floating, shape=reduced, kernel="logsumexp", name="logsumexp")
def _logsumexp(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Return the logarithm of the sum of exponentials."""


def _logsumexp_back(k: Any, g: Any, x: Any, out: Any, x_shape: Size, axis: Any, keepdims: bool) -> Any:
    whole = spread(k, out, x_shape, axis, keepdims)
    return k.multiply(spread(k, g, x_shape, axis, keepdims), k.exp(k.subtract(x, whole)))


_logsumexp.vjp(x=_logsumexp_back)


@numpy_names
def logsumexp(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the logarithm of the sum of exponentials along dims, without overflow."""
    return _logsumexp(input, axis=axes_of("logsumexp", dim, len(input.shape)), keepdims=keepdim, out=out)


# ---- medians and modes ----


def _whole(name: str, shape: Size, *, ignore_nan: bool) -> Size:
    return SCALAR


@op(result=promote, shape=_whole, name="median", dtypes="uif")
def _median_all(k: Any, x: Any, /, *, ignore_nan: bool) -> Any:
    """Return the lower median of all elements."""
    flat = k.reshape(x, (size_of(k.shape_of(x)),))
    return k.median(flat, axis=0, ignore_nan=ignore_nan)[0]


_median_all.vjp(
    x=lambda k, g, x, out, x_shape: _share_back(k, g, x, out, x_shape, None, False)
)


@op(result=selected, shape=reduced, outputs=PAIR, differentiable=1, name="median_dim", dtypes="uif",
    grad_name="MedianBackward1")  # fmt: skip
def _median_dim(k: Any, x: Any, /, *, axis: int, keepdims: bool, ignore_nan: bool) -> Any:
    """Return the lower median along an axis and where it is."""
    return k.median(x, axis=axis, keepdims=keepdims, ignore_nan=ignore_nan)


_median_dim.vjp(x=selected_back)


def _median(name: str, input: Any, dim: int | None, keepdim: bool, ignore_nan: bool, out: Any) -> Any:
    if dim is not None:
        made = getattr(return_types, name)
        found = select_along(_median_dim, made, name, input, dim, keepdim, out, ignore_nan=ignore_nan)
        named(found[0], f"{name.title()}Backward1")
        return found
    if keepdim:
        missing(name, "dim")
    if size_of(input.shape) == 0:
        if input.dtype.kind != "f":
            raise RuntimeError(f"{name}: expected at least one element of {input.dtype}; got {list(input.shape)}.")
        nan = input._device.backend.full((), math.nan, dtype=input.dtype, device=input._device)
        return make(nan, input._device, input.dtype, SCALAR)
    return named(_median_all(input, ignore_nan=ignore_nan), f"{name.title()}Backward0")


@numpy_names
def median(input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the lower median of all elements; along a dim, (values, indices). A nan is the median."""
    return _median("median", input, dim, keepdim, False, out)


@numpy_names
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the lower median of all elements but nan; along a dim, (values, indices)."""
    return _median("nanmedian", input, dim, keepdim, True, out)


@op(result=selected, shape=_reduced_one, outputs=PAIR, differentiable=1, name="mode", dtypes="buif")
def _mode(k: Any, x: Any, /, *, axis: int, keepdims: bool) -> Any:
    """Return the commonest value along an axis and where it last is; of several the smallest."""
    n = k.shape_of(x)[axis]
    order = k.argsort(x, axis=axis)
    ordered = k.take_along_axis(x, order, axis=axis)
    key = (slice(None),) * axis
    later, earlier = k.getitem(ordered, (*key, slice(1, None))), k.getitem(ordered, (*key, slice(None, -1)))
    shape = tuple([n if i == axis else 1 for i in range(len(k.shape_of(x)))])
    places = k.broadcast_to(k.reshape(k.new_arange(x, 0, n), shape), k.shape_of(x))
    first = k.getitem(places, (*key, slice(0, 1)))
    starts = k.where(k.not_equal(later, earlier), k.getitem(places, (*key, slice(1, None))), 0)
    runs = k.subtract(places, k.cumulative_max(k.concat([first, starts], axis=axis), axis=axis)[0])
    # The run grows up to its end, so the first longest ends where the first maximum is.
    index = k.take_along_axis(order, k.argmax(runs, axis=axis, keepdims=True), axis=axis)
    value = k.take_along_axis(x, index, axis=axis)
    return (value, index) if keepdims else (k.squeeze(value, axis), k.squeeze(index, axis))


_mode.vjp(x=selected_back)


@numpy_names
def mode(input: Any, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the commonest value along a dim and where it last is; of several the smallest."""
    return select_along(_mode, return_types.mode, "mode", input, dim, keepdim, out)


@op(result=selected, shape=reduced, outputs=PAIR, differentiable=1, name="kthvalue", dtypes="uif")
def _kthvalue(k: Any, x: Any, /, *, axis: int, keepdims: bool, nth: int) -> Any:
    """Return the nth smallest along an axis and where it is."""
    return k.kthvalue(x, nth, axis=axis, keepdims=keepdims)


_kthvalue.vjp(x=selected_back)


@numpy_names
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the k-th smallest element along a dim, counted from 1, and where it is."""
    x, axis, _ = flat_axis(input, dim, "kthvalue")
    if not x.shape[axis]:
        raise IndexError(f"kthvalue(): Expected reduction dim {axis} to have non-zero size; got {list(x.shape)}.")
    if not 1 <= k <= x.shape[axis]:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {axis}; got k = {k} for size {x.shape[axis]}."
        )
    return select_along(_kthvalue, return_types.kthvalue, "kthvalue", input, dim, keepdim, out, nth=k)


# ---- quantiles ----

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile_arguments(name: str, input: Any, q: Any, interpolation: str) -> Any:
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if size_of(input.shape) == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty; got shape {list(input.shape)}.")
    if input.dtype.kind != "f" or input.dtype.itemsize < 4:
        raise DTypeError(f"{name}() input tensor must be either float or double dtype; got {input.dtype}.")
    q = q.item() if hasattr(q, "item") and not isinstance(q, TensorBase) else q
    if is_number(q):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        device = input._device.of_values
        return make(device.backend.full((), q, dtype=input.dtype, device=device), device, input.dtype, SCALAR)
    if len(q.shape) > 1:
        raise ShapeError(f"{name}() q must be a scalar or 1D tensor; got shape {list(q.shape)}.")
    if q.dtype is not input.dtype:
        raise DTypeError(f"{name}() q tensor must be same dtype as the input tensor; got {q.dtype} and {input.dtype}.")
    _call.check_device(_norm.op, input, q)
    ends = range_of(q) if size_of(q.shape) else None
    if ends is not None and not 0 <= ends[0] <= ends[1] <= 1:
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(
    name: str, input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool, out: Any
) -> Any:
    q = _quantile_arguments(name, input, q, interpolation)
    ndim = len(input.shape)
    axis = 0 if dim is None else check_dim(name, dim, ndim)
    x = reshape(input, -1) if dim is None or not ndim else input
    x, _ = sort(transpose(unsqueeze(x, -1), axis, -1), -1)
    n = x.shape[-1]
    unknown = x.detach() != x.detach()
    if ignore_nan:
        ranks = q * cast((~unknown).sum(-1, True) - 1, x.dtype)
        ranks = where(ranks < 0, 0.0, ranks)
    else:
        ranks = where(unknown.any(-1, True), float(n - 1), q * (n - 1))
    ranks = {"lower": floor, "higher": ceil, "nearest": round}.get(interpolation, lambda r: r)(ranks)
    ranks = expand(ranks, (*x.shape[:-1], ranks.shape[-1]))
    below = cast(ranks.detach(), int64)
    values = gather(x, -1, below)
    if interpolation in ("linear", "midpoint"):
        above = gather(x, -1, cast(ceil(ranks.detach()), int64))
        weights = 0.5 if interpolation == "midpoint" else ranks - cast(below, x.dtype)
        values = lerp(values, above, weights)
    if q.shape:
        values = movedim(values, -1, 0)
        axis += 1
    else:
        values = squeeze(values, -1)
    if dim is None and keepdim:
        values = reshape(values, (*q.shape, *[1] * ndim))
    elif not keepdim or not ndim:
        values = squeeze(values, axis)
    return _call.give(name, out, values)


@numpy_names
@autocasting
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out: Any = None
) -> Any:
    """Return the q-th quantiles (q in [0, 1], a number or 1-D), of all elements or along a dim."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False, out)


@numpy_names
@autocasting
def nanquantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out: Any = None
) -> Any:
    """Return the q-th quantiles of all elements but nan."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True, out)
