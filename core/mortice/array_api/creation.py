"""Making arrays, in the standard's names."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import mortice as mt
from mortice import asarray as _asarray
from mortice import empty_like, from_dlpack, full_like, ones_like, zeros_like
from mortice.array_api.dtypes import result_type

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones",
    "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def asarray(
    obj: Any, /, *, dtype: mt.dtype | None = None, device: Any = None, copy: builtins.bool | None = None
) -> Any:
    """Convert to an array, sharing memory where that is possible unless `copy` says otherwise.

    Arrays inside lists stay in the graph, unlike those that `mortice.tensor` is given.
    """
    if isinstance(obj, (list, tuple)) and copy is not False:
        arrays = [leaf for leaf in _leaves(obj) if isinstance(leaf, mt.Tensor)]
        if arrays:
            dtype = result_type(*_leaves(obj)) if dtype is None else dtype
            return _joined(obj, dtype, arrays[0].device if device is None else device)
    return _asarray(obj, dtype=dtype, device=device, copy=copy)


def _leaves(obj: Any) -> Iterator[Any]:
    """Yield what is in nested lists."""
    for item in obj:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _joined(obj: Any, dtype: mt.dtype, device: Any) -> Any:
    """Stack what is in nested lists, arrays and numbers."""
    if isinstance(obj, (list, tuple)):
        return mt.stack([_joined(item, dtype, device) for item in obj])
    return _asarray(obj, dtype=dtype, device=device)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: mt.dtype | None = None, device: Any = None
) -> Any:
    """Count from start to stop, which is excluded; nothing where the step leads away from stop."""
    if stop is None:
        start, stop = 0, start
    if (step > 0) != (stop > start):
        start = stop = start + 0 * stop  # a float where one of them is; both, since a large int is rounded by that
    return mt.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: mt.dtype | None = None, device: Any = None,
    endpoint: builtins.bool = True,
) -> Any:  # fmt: skip
    """Return `num` values evenly spaced from start to stop, which is left out unless `endpoint`."""
    made = mt.linspace(start, stop, num + (not endpoint), dtype=dtype, device=device)
    return made if endpoint else made[:num]


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: mt.dtype | None = None, device: Any = None
) -> Any:
    """Make a matrix with ones on the k-th diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    if not -n_rows < k < n_cols:  # nothing but zeros
        return mt.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if k == 0:
        return mt.eye(n_rows, n_cols, dtype=dtype, device=device)
    rows, columns = mt.arange(n_rows, device=device), mt.arange(n_cols, device=device)
    return (columns == rows[:, None] + k).to(dtype or mt.get_default_dtype())


def full(shape: Any, fill_value: complex, *, dtype: mt.dtype | None = None, device: Any = None) -> Any:
    """Make an array of one number; its dtype is the number's unless given."""
    return mt.full(shape, fill_value, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: mt.dtype | None = None, device: Any = None) -> Any:
    """Make zeros."""
    return mt.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: mt.dtype | None = None, device: Any = None) -> Any:
    """Make ones."""
    return mt.ones(shape, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: mt.dtype | None = None, device: Any = None) -> Any:
    """Make an array of unspecified contents."""
    return mt.empty(shape, dtype=dtype, device=device)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Spread vectors into grids of coordinates, Cartesian ("xy") or as a matrix counts ("ij")."""
    return mt.meshgrid(*arrays, indexing=indexing) if arrays else ()


def tril(x: Any, /, *, k: int = 0) -> Any:
    """Keep what is on and below the k-th diagonal of each matrix."""
    return mt.tril(x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """Keep what is on and above the k-th diagonal of each matrix."""
    return mt.triu(x, k)
