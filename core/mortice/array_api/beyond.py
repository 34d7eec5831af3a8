"""Functions that are not in the standard and that libraries ask of a namespace all the same, as NumPy has them.

Each is here because a client in `core/tests/clients` calls it.
"""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice.array_api.reductions import cumulative_prod, cumulative_sum

__all__ = ["bincount", "cross", "cumprod", "cumsum", "diag", "einsum", "median", "pad", "transpose"]


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Count each whole number from 0, or add up the weights where it stands."""
    return mt.bincount(x, weights, minlength)


def cross(x1: Any, x2: Any, /, axis: int = -1) -> Any:
    """Return the vector perpendicular to two vectors of 3 elements along an axis."""
    return mt.linalg.cross(x1, x2, dim=axis)


def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """Multiply up so far, under NumPy's older name."""
    return cumulative_prod(x, axis=axis, dtype=dtype)


def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """Add up so far, under NumPy's older name."""
    return cumulative_sum(x, axis=axis, dtype=dtype)


def diag(v: Any, k: int = 0) -> Any:
    """Make a matrix with a vector on its k-th diagonal, or return that diagonal of a matrix."""
    return mt.diag(v, k)


def einsum(equation: str, /, *operands: Any) -> Any:
    """Sum products of operands' elements as an equation says."""
    return mt.einsum(equation, *operands)


def median(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the value in the middle, of an even number the mean of the two."""
    return mt.quantile(x if x.dtype.is_floating_point else x.to(mt.get_default_dtype()), 0.5, axis, keepdims)


def pad(x: Any, /, pad_width: Any, mode: str = "constant", *, constant_values: complex = 0) -> Any:
    """Put so many copies of a number before and after each axis: pairs, one for each axis, or one for all of them."""
    if mode != "constant" or isinstance(constant_values, (tuple, list)):
        raise NotImplementedError(
            f'pad: expected mode="constant" and one number; got mode={mode!r}, constant_values={constant_values!r}.'
        )
    if isinstance(pad_width, int):
        pad_width = (pad_width, pad_width)
    if isinstance(pad_width[0], int):
        pad_width = (pad_width,) * x.ndim
    widths = [n for before, after in reversed(pad_width) for n in (before, after)]
    return mt.nn.functional.pad(x, widths, value=constant_values)


def transpose(x: Any, /, axes: tuple[int, ...] | None = None) -> Any:
    """Reorder the axes; reverse them by default."""
    return mt.permute(x, tuple(reversed(range(x.ndim))) if axes is None else axes)
