"""Reductions that leave out NaN, in NumPy's names: not in the standard, and what xarray reduces with by default."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice.array_api import reductions
from mortice.array_api.reductions import Axis
from mortice.array_api.searching import argmax, argmin

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar",
]  # fmt: skip


def _filled(x: Any, value: float) -> Any:
    """Replace NaN, which only floating and complex numbers can be."""
    return mt.where(mt.isnan(x), value, x) if x.dtype.kind in "fc" else x


def _count(x: Any, axis: Axis, keepdims: bool = False) -> Any:
    return reductions.sum(~mt.isnan(x), axis=axis, keepdims=keepdims)


def _extreme(reduce: Any, x: Any, axis: Axis, worst: float, keepdims: bool) -> Any:
    found = reduce(_filled(x, worst), axis=axis, keepdims=keepdims)
    if x.dtype.kind != "f":
        return found
    return mt.where(_count(x, axis, keepdims) == 0, mt.nan, found)


def nanmax(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the largest; NaN where there is nothing else."""
    return _extreme(reductions.max, x, axis, -mt.inf, keepdims)


def nanmin(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the smallest; NaN where there is nothing else."""
    return _extreme(reductions.min, x, axis, mt.inf, keepdims)


def nanargmax(x: Any, /, axis: int | None = None) -> Any:
    """Return where the largest is."""
    return argmax(_filled(x, -mt.inf), axis=axis)


def nanargmin(x: Any, /, axis: int | None = None) -> Any:
    """Return where the smallest is."""
    return argmin(_filled(x, mt.inf), axis=axis)


def nansum(x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Add up."""
    return reductions.sum(_filled(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Multiply up."""
    return reductions.prod(_filled(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """Add up so far."""
    return reductions.cumulative_sum(_filled(x, 0), axis=axis, dtype=dtype)


def nancumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """Multiply up so far."""
    return reductions.cumulative_prod(_filled(x, 1), axis=axis, dtype=dtype)


def nanmean(x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Average; NaN where there is nothing."""
    return nansum(x, axis, dtype, keepdims) / _count(x, axis, keepdims)


def nanmedian(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the value in the middle, of an even number the mean of the two."""
    if isinstance(axis, tuple) and len(axis) == 1:
        (axis,) = axis
    return mt.nanquantile(x if x.dtype.is_floating_point else x.to(mt.get_default_dtype()), 0.5, axis, keepdims)


def nanvar(x: Any, /, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """Return the variance, divided by the number of elements less `ddof`; NaN where that is not positive."""
    x = x if dtype is None else x.to(dtype)
    away = mt.where(mt.isnan(x), 0, x - nanmean(x, axis, keepdims=True))
    left = _count(x, axis, keepdims) - ddof
    return reductions.sum(mt.abs(away) ** 2, axis=axis, keepdims=keepdims) / mt.where(left > 0, left, mt.nan)


def nanstd(x: Any, /, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """Return the standard deviation, the root of `nanvar`."""
    return mt.sqrt(nanvar(x, axis, dtype, ddof, keepdims))
