"""Reductions and running sums: statistics, truth, differences."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import mortice as mt
from mortice.shape import check_dims

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum",
    "var",
]  # fmt: skip

Axis = int | tuple[int, ...] | None


def along(reduce: Callable[..., Any], x: Any, axis: Axis, keepdims: builtins.bool, **options: Any) -> Any:
    """Reduce along axes; along none of them for an empty tuple, which for PyTorch means all."""
    if axis == ():
        return reduce(x[None], 0, False, **options)
    return reduce(x, axis, keepdims, **options)


def _sum_dtype(x: Any, dtype: mt.dtype | None) -> mt.dtype | None:
    """Return the dtype that sums and products are in: unsigned integers add up in unsigned ones."""
    return mt.uint64 if dtype is None and x.dtype.kind == "u" else dtype


def sum(x: Any, /, *, axis: Axis = None, dtype: mt.dtype | None = None, keepdims: builtins.bool = False) -> Any:
    """Add up."""
    return along(mt.sum, x, axis, keepdims, dtype=_sum_dtype(x, dtype))


def prod(x: Any, /, *, axis: Axis = None, dtype: mt.dtype | None = None, keepdims: builtins.bool = False) -> Any:
    """Multiply up."""
    return along(_prod, x, axis, keepdims, dtype=_sum_dtype(x, dtype))


def _prod(x: Any, axis: Axis, keepdims: builtins.bool, dtype: mt.dtype | None) -> Any:
    axes = check_dims("prod", axis, x.ndim)
    if not axes:
        return mt.prod(x, dtype=dtype)
    for a in sorted(axes, reverse=True):
        x = mt.prod(x, a, keepdims, dtype=dtype)
    return x


def mean(x: Any, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """Average."""
    return along(mt.mean, x, axis, keepdims)


def var(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False, ddof: float | None = None
) -> Any:
    """Return the variance, divided by the number of elements less `correction`, which NumPy calls `ddof`."""
    return along(_var, x, axis, keepdims, correction=correction if ddof is None else ddof)


def _var(x: Any, axis: Axis, keepdims: builtins.bool, correction: float) -> Any:
    return mt.var(x, axis, keepdim=keepdims, correction=correction)


def std(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False, ddof: float | None = None
) -> Any:
    """Return the standard deviation, the root of `var`."""
    return along(_std, x, axis, keepdims, correction=correction if ddof is None else ddof)


def _std(x: Any, axis: Axis, keepdims: builtins.bool, correction: float) -> Any:
    return mt.std(x, axis, keepdim=keepdims, correction=correction)


def max(x: Any, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """Return the largest."""
    return along(mt.amax, x, axis, keepdims)


def min(x: Any, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """Return the smallest."""
    return along(mt.amin, x, axis, keepdims)


def all(x: Any, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """Tell whether every element is nonzero; always bool."""
    return along(mt.all, x, axis, keepdims).to(mt.bool)


def any(x: Any, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """Tell whether any element is nonzero; always bool."""
    return along(mt.any, x, axis, keepdims).to(mt.bool)


def count_nonzero(x: Any, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """Count the elements that are not zero."""
    return along(mt.sum, x.to(mt.bool), axis, keepdims)


def _running(
    name: str,
    scan: Callable[..., Any],
    first: int,
    x: Any,
    axis: int | None,
    dtype: Any,
    include_initial: builtins.bool,
) -> Any:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: expected an axis for more than one dimension; got shape {tuple(x.shape)}.")
        axis = 0
    made = scan(x, axis, dtype=_sum_dtype(x, dtype))
    if not include_initial:
        return made
    shape = [1 if i == axis % made.ndim else n for i, n in enumerate(made.shape)]
    return mt.concat([mt.full(shape, first, dtype=made.dtype, device=made.device), made], axis)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: mt.dtype | None = None, include_initial: builtins.bool = False
) -> Any:
    """Add up so far, along an axis that may be left out of 1-D arrays; `include_initial` puts a 0 in front."""
    return _running("cumulative_sum", mt.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: mt.dtype | None = None, include_initial: builtins.bool = False
) -> Any:
    """Multiply up so far, along an axis that may be left out of 1-D arrays; `include_initial` puts a 1 in front."""
    return _running("cumulative_prod", mt.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Subtract neighbours along an axis, n times over; by position too, as NumPy has it and scikit-learn calls it."""
    return mt.diff(x, n, axis, prepend, append)
