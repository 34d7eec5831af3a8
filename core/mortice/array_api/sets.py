"""Distinct elements and membership."""

from __future__ import annotations

from typing import Any, NamedTuple

import mortice as mt
from mortice.ops.sort import _unique_all, _unique_rows

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """Distinct values, where each is first, each element's place among them, and how often each occurs."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Distinct values and how often each occurs."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Distinct values and each element's place among them."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """Return the distinct elements, sorted, with first positions, places and counts."""
    if not x.dtype.is_complex:
        return UniqueAll(*_unique_all(x))
    pairs, first, inverse, counts = _unique_rows(mt.view_as_real(mt.reshape(x, (-1,))), ordered=False)
    return UniqueAll(mt.view_as_complex(pairs), first, mt.reshape(inverse, x.shape), counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct elements, sorted, and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct elements, sorted, and each element's place among them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Any:
    """Return the distinct elements, sorted."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Tell which elements of x1 are (or, inverted, are not) among those of x2."""
    if isinstance(x2, (list, tuple)):  # as NumPy takes it and xarray gives it
        x2 = mt.asarray(x2, device=x1.device)
    return mt.isin(x1, x2, invert=invert)
