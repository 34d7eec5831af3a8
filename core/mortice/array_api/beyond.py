"""Functions that are not in the standard and that libraries ask of a namespace all the same, as NumPy has them.

Each is here because a client in `core/tests/clients` calls it.
"""

from __future__ import annotations

from typing import Any

import mortice as mt

__all__ = ["bincount", "diag", "median"]


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Count each whole number from 0, or add up the weights where it stands."""
    return mt.bincount(x, weights, minlength)


def diag(v: Any, k: int = 0) -> Any:
    """Make a matrix with a vector on its k-th diagonal, or return that diagonal of a matrix."""
    return mt.diag(v, k)


def median(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the value in the middle, of an even number the mean of the two."""
    return mt.quantile(x if x.dtype.is_floating_point else x.to(mt.get_default_dtype()), 0.5, axis, keepdims)
