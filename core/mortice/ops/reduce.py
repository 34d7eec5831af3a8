"""Reductions: sums, products, averages, extremes, truth, over all elements or along dims.

Variances, norms, medians and quantiles are in `statistics`, running sums in `scan`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

from mortice import call as _call
from mortice import return_types
from mortice.call import run
from mortice.dtype import CLASS_NAMES, DType, as_dtype, bool_, int64, uint8
from mortice.errors import DimError, DTypeError, switch
from mortice.layout import strided
from mortice.node import TENSOR_KERNELS, named
from mortice.op import Op, op
from mortice.ops.arguments import numpy_names
from mortice.ops.bounds import maximum, minimum
from mortice.ops.movement import cast, reshape
from mortice.ops.unary import nan_to_num
from mortice.rules import accumulate, comparison, promote, reduced, to_scalar
from mortice.rules import indices as index_rule
from mortice.shape import Size, check_dim, check_dims, missing
from mortice.shape import prod as size_of
from mortice.tensor import TensorBase

__all__ = [
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "nanmean",
    "nansum", "prod", "sum",
]  # fmt: skip

# ---- arguments ----


def axes_of(name: str, dim: Any, ndim: int) -> tuple[int, ...] | None:
    """Return dims as wrapped axes, None for all of them."""
    if dim is None:
        return None
    axes = check_dims(name, dim, ndim)
    return None if len(axes) == ndim or ndim == 0 else axes


def spread(k: Any, g: Any, shape: Size, axis: Any, keepdims: bool) -> Any:
    """Give what was reduced the shape before the reduction."""
    if axis is None:
        if keepdims and len(shape) > 0:
            return k.broadcast_to(g, shape)
        return k.broadcast_to(g, shape) if len(shape) else g
    if not keepdims:
        dims = (axis,) if isinstance(axis, int) else axis
        g = k.reshape(g, tuple([1 if i in dims else n for i, n in enumerate(shape)]))
    return k.broadcast_to(g, shape)


def count_along(shape: Size, axis: Any) -> int:
    """Return how many elements make one result."""
    if axis is None:
        return size_of(shape)
    return size_of([shape[a] for a in ((axis,) if isinstance(axis, int) else axis)])


def kernel_of(fn: Any) -> Callable[..., Any]:
    """Return an op over axes as a kernel of Tensors: the axis may be negative or left out."""

    def kernel(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        if axis is not None:
            ndim = len(x.shape)
            axis = tuple([a % ndim for a in ((axis,) if isinstance(axis, int) else axis)])
        return fn(x, axis=axis, keepdims=keepdims)

    return kernel


def reduce_as(fn: Any, x: Any, dtype: DType | None, out: Any, **attrs: Any) -> Any:
    """Reduce, in the dtype that the user asks for, if any."""
    if out is not None:
        dtype = dtype_of_out(fn, x, dtype, out)
    if dtype is None:
        return fn(x, **attrs, out=out)
    dtype = as_dtype(fn.op.name, dtype)
    if x._rg and dtype.kind not in "fc":
        raise RuntimeError(f"{fn.op.name}: Autograd not support dtype: {dtype.name}; detach the tensor first.")
    if dtype.kind in "fc":
        return fn(cast(x, dtype), **attrs, out=out)
    fn.op.rule(dtype)
    x = cast(x, dtype)
    # Kernels add up and multiply numbers alone; the sum of bools is whether any is true, their product whether all are.
    t = cast(fn(x, **attrs), dtype) if dtype is bool_ else run(fn.op, (x,), attrs, dtype)
    return _call.give(fn.op.name, out, t)


def dtype_of_out(fn: Any, x: Any, dtype: DType | None, out: Any) -> DType | None:
    """Return the dtype to reduce in: sums, products and averages are taken in that of `out=`, and in no other."""
    name = fn.op.name
    if name not in ("sum", "nansum", "prod", "mean", "cumsum", "cumprod") or not isinstance(out, TensorBase):
        return dtype
    if name == "mean" and dtype is None and x.dtype.kind not in "fc":
        return None  # for the op to refuse
    if dtype is not None and as_dtype(name, dtype) is not out.dtype:
        raise RuntimeError(f"{name}: expected out to have the dtype {dtype} that is asked for; got {out.dtype}. Leave one out.")
    return out.dtype


def write_all(name: str, out: Any, made: Any) -> Any:
    """Put several results into the tensors given as `out=`."""
    if out is None:
        return made
    if len(out) != len(made):
        raise TypeError(f"{name}: expected out to have {len(made)} Tensors; got {len(out)}.")
    form: Any = getattr(return_types, f"{type(made).__name__}_out", type(made))
    return form(*[_call.WRITE_OUT(name, o, t) for o, t in zip(out, made)])


def flat_axis(x: Any, dim: Any, name: str) -> tuple[Any, int, bool]:
    """Return (x, axis, was 0-d): kernels along one axis need one, so a 0-d tensor becomes one element."""
    axis = check_dim(name, dim, len(x.shape))
    return (x, axis, False) if x.shape else (reshape(x, (1,)), 0, True)


# ---- sums, products and averages ----


def _numbered(name: str) -> Callable[[Any], str]:
    """Return the rule of reductions that are functions 0 and 1 of PyTorch's name: over everything, and along dims."""
    return lambda node: f"{name}Backward{int(node.attrs['axis'] is not None)}"


@op(result=accumulate, shape=reduced, kernel="sum", name="sum", grad_name_of=_numbered("Sum"))
def _sum(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Add up."""


_sum.vjp(x=lambda k, g, x_shape, axis, keepdims: spread(k, g, x_shape, axis, keepdims), jvp="linear")
TENSOR_KERNELS.replace("sum", kernel_of(_sum))


@op(result=accumulate, shape=to_scalar, kernel="sum_all", name="sum_all", grad_name="SumBackward0")
def _total(k: Any, x: Any, /) -> Any:
    """Add up all elements: `sum` without arguments, an op of its own since handling attributes costs half as much again."""


_total.vjp(x=lambda k, g, x_shape: k.broadcast_to(g, x_shape), jvp="linear")


def sum(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None,
    axis: Any = None, keepdims: Any = None,
) -> Any:  # fmt: skip
    """Add up all elements, or those along dims. Bools and integers add up in int64."""
    if keepdims is not None:
        keepdim = switch("sum", "keepdim", keepdims)
    try:
        if dtype is None and out is None and getattr(input, "dtype", None) is bool_:  # counted as they are
            axes = axes_of("sum", axis if dim is None else dim, len(input.shape))
            return _count_nonzero(input, axis=axes, keepdims=keepdim)
        if dim is None and axis is None and dtype is None and out is None:
            return _sum(input, axis=None, keepdims=True) if keepdim else _total(input)
        axes = axes_of("sum", axis if dim is None else dim, len(input.shape))
        t = reduce_as(_sum, input, dtype, out, axis=axes, keepdims=keepdim)
        along_all = axes is None and t._rg and (dim is not None or axis is not None)
        return named(t, "SumBackward1") if along_all else t
    except NotImplementedError:  # what sparse operands raise, of which a sum may be dense: asked only then
        if out is not None or input.layout is strided:
            raise
        if dtype is None and input.dtype.kind in "bui":  # sparse.sum along dims keeps a dtype, this does not
            dtype = int64
        return import_module("mortice.sparse").sum(input, axis if dim is None else dim, dtype, keepdim)


def others_product(k: Any, x: Any, axis: int) -> Any:
    """Return, for each element, the product of the others along the axis.

    No division, so zeros need no care at any order of differentiation: windows of the row, closed to a ring, double.
    """
    n = k.shape_of(x)[axis]

    def turned(a: Any, by: int) -> Any:
        by %= n
        if by == 0:
            return a
        key = (slice(None),) * axis
        return k.concat([k.getitem(a, (*key, slice(by, None))), k.getitem(a, (*key, slice(None, by)))], axis=axis)

    # `window` holds the products of `size` elements from each place on; `made` of the `done` that follow each place.
    window, size, made, done, left = x, 1, None, 0, n - 1
    while left:
        if left & 1:
            part = turned(window, done + 1)
            made, done = (part if made is None else k.multiply(made, part)), done + size
        left >>= 1
        if left:
            window, size = k.multiply(window, turned(window, size)), 2 * size
    return k.ones_like(x) if made is None else made


@op(result=accumulate, shape=reduced, kernel="prod", name="prod", grad_name_of=_numbered("Prod"))
def _prod(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Multiply up."""


def _prod_back(k: Any, g: Any, x: Any, x_shape: Size, axis: Any, keepdims: bool) -> Any:
    if size_of(x_shape) == 0:
        return k.new_full(g, x_shape, 0)
    if axis is None:
        others = k.reshape(others_product(k, k.reshape(x, (size_of(x_shape),)), 0), x_shape)
    else:
        others = others_product(k, x, axis[0])
    return k.multiply(spread(k, g, x_shape, axis, keepdims), others)


_prod.vjp(x=_prod_back)
TENSOR_KERNELS.replace("prod", kernel_of(_prod))


@numpy_names
def prod(
    input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None
) -> Any:
    """Multiply all elements, or those along a dim. Bools and integers multiply in int64."""
    axis = None if dim is None else (check_dim("prod", dim, len(input.shape)),)
    axis = axis if input.shape else None
    return reduce_as(_prod, input, dtype, out, axis=axis, keepdims=keepdim)


def _averages(op: Op, d: DType) -> tuple[DType, DType]:
    if d.kind in "bui":
        raise DTypeError(
            f"{op.name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {CLASS_NAMES[d.name]}. Pass dtype=, or convert with .float()."
        )
    return d, d


@op(result=_averages, shape=reduced, kernel="mean", name="mean", grad_name_of=_numbered("Mean"))
def _mean(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Average."""


def _mean_back(k: Any, g: Any, x_shape: Size, axis: Any, keepdims: bool) -> Any:
    return spread(k, k.divide(g, float(builtins.max(count_along(x_shape, axis), 1))), x_shape, axis, keepdims)


_mean.vjp(x=_mean_back, jvp="linear")
TENSOR_KERNELS.replace("mean", kernel_of(_mean))


def _check_average(name: str, dtype: Any) -> None:
    """Refuse to average in a dtype of no fractions."""
    if as_dtype(name, dtype).kind not in "fc":
        raise DTypeError(
            f"{name}(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {CLASS_NAMES[as_dtype(name, dtype).name]}"
        )


@numpy_names
def mean(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None
) -> Any:
    """Average all elements, or those along dims; integers need `dtype`."""
    axes = axes_of("mean", dim, len(input.shape))
    if dtype is not None:
        _check_average("mean", dtype)
    t = reduce_as(_mean, input, dtype, out, axis=axes, keepdims=keepdim)
    return named(t, "MeanBackward1") if axes is None and dim is not None and t._rg else t


def _no_complex(name: str, x: Any) -> None:
    if x.dtype.is_complex:
        raise DTypeError(f"{name}: does not support complex inputs; got {x.dtype}.")


@op(result=accumulate, shape=reduced, kernel="nansum", name="nansum", dtypes="f", grad_name="NansumBackward0")
def _nansum(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Add up floats, counting nan as 0."""


def _nansum_tangent(k: Any, op: Any, primals: Any, tangents: Any, attrs: Any, out: Any) -> Any:
    return k.sum(k.where(k.isnan(primals[0]), 0, tangents[0]), **attrs)


_nansum.vjp(
    x=lambda k, g, x, x_shape, axis, keepdims: k.where(k.isnan(x), 0, spread(k, g, x_shape, axis, keepdims)),
    jvp=_nansum_tangent,
)


@numpy_names
def nansum(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None
) -> Any:
    """Add up all elements, or those along dims, counting nan as 0."""
    _no_complex("nansum", input)
    if input.dtype.kind != "f":
        return sum(input, dim, keepdim, dtype=dtype, out=out)
    if isinstance(out, TensorBase) and out.dtype.kind != "f":
        raise DTypeError(f"nansum: expected out of a floating point dtype for {input.dtype}; got {out.dtype}. Make it of one.")
    axes = axes_of("nansum", dim, len(input.shape))
    if dtype is not None and as_dtype("nansum", dtype).kind != "f":  # what it becomes there has no nan
        input = nan_to_num(input, 0.0, math.inf, -math.inf)
        return reduce_as(_sum, input, dtype, out, axis=axes, keepdims=keepdim)
    return reduce_as(_nansum, input, dtype, out, axis=axes, keepdims=keepdim)


@numpy_names
def nanmean(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None
) -> Any:
    """Average all elements, or those along dims, without the nan among them."""
    if input.dtype.kind != "f":
        raise DTypeError(f"nanmean(): expected input to have floating point or complex dtype but got {CLASS_NAMES[input.dtype.name]}")
    if dtype is not None:
        _check_average("nanmean", dtype)
    total = nansum(input, dim, keepdim, dtype=dtype_of_out(_mean, input, dtype, out))
    numbers = cast(sum(input.detach() == input.detach(), dim, keepdim), total.dtype)
    result = total / numbers
    return _call.give("nanmean", out, result)


# ---- truth ----


@op(result=comparison, shape=reduced, kernel="any", name="any", float8="read")
def _any(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Tell whether any element is nonzero."""


@op(result=comparison, shape=reduced, kernel="all", name="all", float8="read")
def _all(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Tell whether every element is nonzero."""


@op(result=index_rule, shape=reduced, kernel="count_nonzero", name="count_nonzero")
def _count_nonzero(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Count the elements that are not zero."""


for _fn in (_any, _all, _count_nonzero):
    _fn.no_grad("it counts")
    TENSOR_KERNELS.replace(_fn.op.name, kernel_of(_fn))


def _truth(fn: Any, input: Any, dim: Any, keepdim: bool, out: Any) -> Any:
    # An empty tuple reduces nothing for these two, unlike everywhere else.
    name = fn.op.name
    if dim is not None and not isinstance(dim, int) and len(dim) == 0:
        t = cast(input, bool_)
    else:
        t = fn(input, axis=axes_of(name, dim, len(input.shape)), keepdims=keepdim)
    if input.dtype is uint8:
        t = cast(t, uint8)
    if out is None:
        return t
    if out.dtype is not bool_ and out.dtype is not uint8:
        raise DTypeError(f"{name} only supports bool tensor for result, got: {CLASS_NAMES[out.dtype.name]}")
    return _call.WRITE_OUT(name, out, t)


@numpy_names
def any(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Tell whether any element is nonzero; bool, and uint8 for uint8."""
    try:
        return _truth(_any, input, dim, keepdim, out)
    except NotImplementedError:  # as of a sum
        return _truth(_any, import_module("mortice.sparse.coo").all_values(input, dim, keepdim), None, False, out)


@numpy_names
def all(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Tell whether every element is nonzero; bool, and uint8 for uint8."""
    return _truth(_all, input, dim, keepdim, out)


@numpy_names
def count_nonzero(input: Any, dim: Any = None, *more: int) -> Any:
    """Count the elements that are not zero."""
    dim = (dim, *more) if more else dim
    return _count_nonzero(input, axis=axes_of("count_nonzero", dim, len(input.shape)), keepdims=False)


# ---- extremes ----


def _share_back(k: Any, g: Any, x: Any, out: Any, x_shape: Size, axis: Any, keepdims: bool) -> Any:
    """Share the gradient evenly among the elements that are the extreme."""
    if size_of(x_shape) == 0:
        return k.new_full(g, x_shape, 0)
    best = spread(k, out, x_shape, axis, keepdims)
    hit = k.equal(x, best)
    if axis is None:
        hit = k.logical_or(hit, k.logical_and(k.isnan(x), k.isnan(best)))
    hits = k.astype(hit, k.dtype_of(g))
    shared = k.divide(spread(k, g, x_shape, axis, keepdims), k.sum(hits, axis=axis, keepdims=True))
    return k.multiply(hits, shared)


@op(result=promote, shape=reduced, kernel="max", name="amax", dtypes="buif", grad_name="MaxBackward1")
def _amax(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Return the largest."""


@op(result=promote, shape=reduced, kernel="min", name="amin", dtypes="buif", grad_name="MinBackward1")
def _amin(k: Any, x: Any, /, *, axis: Any, keepdims: bool) -> Any:
    """Return the smallest."""


for _fn in (_amax, _amin):
    _fn.vjp(x=_share_back)
    TENSOR_KERNELS.replace(_fn.op.kernel, kernel_of(_fn))


def _not_empty(name: str, x: Any, axis: Any) -> None:
    """Refuse to look for an extreme among no elements."""
    if axis is None:
        if size_of(x.shape) == 0:
            if name == "aminmax" and x.shape:
                raise DimError(
                    "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity; got "
                    f"{list(x.shape)}."
                )
            kind = DimError if name.startswith(("arg", "am")) else RuntimeError
            raise kind(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0; got {list(x.shape)}. "
                "Specify the reduction dim with the 'dim' argument."
            )
        return
    for a in (axis,) if isinstance(axis, int) else axis:
        if x.shape[a] == 0:
            raise DimError(f"{name}(): Expected reduction dim {a} to have non-zero size; got {list(x.shape)}.")


def _extreme(fn: Any, name: str, input: Any, dim: Any, keepdim: bool, out: Any) -> Any:
    given = None if dim is None else check_dims(name, dim, len(input.shape))
    _not_empty(name, input, given if input.shape else None)
    made = fn(input, axis=axes_of(name, dim, len(input.shape)), keepdims=keepdim, out=out)
    return named(made, f"{name.title()}Backward0") if made._rg else made


@numpy_names
def amax(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the largest element along dims; equal ones share the gradient."""
    return _extreme(_amax, "amax", input, dim, keepdim, out)


@numpy_names
def amin(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the smallest element along dims; equal ones share the gradient."""
    return _extreme(_amin, "amin", input, dim, keepdim, out)


@numpy_names
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """Return the smallest and the largest element, of all or along a dim."""
    if dim is not None:
        check_dim("aminmax", dim, len(input.shape))
    made = return_types.aminmax(
        _extreme(_amin, "aminmax", input, dim, keepdim, None), _extreme(_amax, "aminmax", input, dim, keepdim, None)
    )
    return write_all("aminmax", out, made)


def _reduced_one(name: str, shape: Size, *, axis: Any, keepdims: bool) -> Size:
    return reduced(name, shape, axis=axis, keepdims=keepdims)


@op(result=index_rule, shape=_reduced_one, kernel="argmax", name="argmax", dtypes="buif")
def _argmax(k: Any, x: Any, /, *, axis: int | None, keepdims: bool) -> Any:
    """Find the first largest element, or the first nan."""


@op(result=index_rule, shape=_reduced_one, kernel="argmin", name="argmin", dtypes="buif")
def _argmin(k: Any, x: Any, /, *, axis: int | None, keepdims: bool) -> Any:
    """Find the first smallest element, or the first nan."""


def _position_kernel(fn: Any) -> Callable[..., Any]:
    def kernel(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return fn(x, axis=None if axis is None else axis % len(x.shape), keepdims=keepdims)

    return kernel


for _fn in (_argmax, _argmin):
    _fn.no_grad("its result is a position")
    TENSOR_KERNELS.replace(_fn.op.name, _position_kernel(_fn))


def _position(fn: Any, input: Any, dim: int | None, keepdim: bool, out: Any) -> Any:
    name = fn.op.name
    if input.dtype is bool_:
        raise DTypeError(f"{name}: not implemented for bool; got {input.dtype}. Use .to(mortice.uint8) first.")
    axis = None if dim is None else check_dim(name, dim, len(input.shape))
    if not input.shape:
        axis = None
    _not_empty(name, input, axis)
    return fn(input, axis=axis, keepdims=keepdim, out=out)


@numpy_names
def argmax(input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Find the first largest element, or the first nan: its place among all, or along a dim."""
    return _position(_argmax, input, dim, keepdim, out)


@numpy_names
def argmin(input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Find the first smallest element, or the first nan: its place among all, or along a dim."""
    return _position(_argmin, input, dim, keepdim, out)


def selected(op: Op, d: DType) -> tuple[DType, Any]:
    """The operand's dtype for values, int64 for their positions."""
    return d, (d, index_rule(op, d)[1])


def selected_back(k: Any, g: Any, x_shape: Size, indices: Any, axis: int, keepdims: bool) -> Any:
    """Bring the gradients of selected elements back to where they were."""
    if not keepdims:
        g, indices = k.expand_dims(g, axis), k.expand_dims(indices, axis)
    return k.scatter_add(k.new_full(g, x_shape, 0), indices, g, axis=axis)


PAIR = ("values", "indices")


@op(result=selected, shape=_reduced_one, outputs=PAIR, differentiable=1, kernel="max_dim", name="max_dim", dtypes="buif",
    grad_name="MaxBackward0")  # fmt: skip
def _max_dim(k: Any, x: Any, /, *, axis: int, keepdims: bool) -> Any:
    """Return the largest along an axis and where it is."""


@op(result=selected, shape=_reduced_one, outputs=PAIR, differentiable=1, kernel="min_dim", name="min_dim", dtypes="buif",
    grad_name="MinBackward0")  # fmt: skip
def _min_dim(k: Any, x: Any, /, *, axis: int, keepdims: bool) -> Any:
    """Return the smallest along an axis and where it is."""


for _fn in (_max_dim, _min_dim):
    _fn.vjp(x=selected_back)


def select_along(fn: Any, made: Any, name: str, input: Any, dim: Any, keepdim: bool, out: Any, **attrs: Any) -> Any:
    """Apply an op that picks one element along a dim; 0-d tensors count as one element."""
    x, axis, scalar = flat_axis(input, dim, name)
    if x.shape[axis] == 0:
        raise DimError(f"{name}(): Expected reduction dim {axis} to have non-zero size; got {list(input.shape)}.")
    return write_all(name, out, tuple.__new__(made, fn(x, axis=axis, keepdims=keepdim and not scalar, **attrs)))


def _max_or_min(
    name: str, both: Any, whole: Any, along: Any, input: Any, dim: Any, keepdim: bool, other: Any, out: Any
) -> Any:
    if isinstance(dim, TensorBase):
        other, dim = dim, None
    if other is not None:
        return both(input, other, out=out)
    if dim is None:
        if keepdim:
            missing(name, "dim")
        _not_empty(name, input, None)
        made = whole(input, axis=None, keepdims=False)
        return _call.give(name, out, made, both.op)  # cast as that of two is
    return select_along(along, getattr(return_types, name), name, input, dim, keepdim, out)


@numpy_names
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
    """Return the largest element; along a dim, (values, indices); given another tensor, the larger of the two."""
    return _max_or_min("max", maximum, _amax, _max_dim, input, dim, keepdim, other, out)


@numpy_names
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
    """Return the smallest element; along a dim, (values, indices); given another tensor, the smaller of the two."""
    return _max_or_min("min", minimum, _amin, _min_dim, input, dim, keepdim, other, out)
