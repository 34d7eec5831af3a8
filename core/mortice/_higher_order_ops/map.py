"""`map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice._higher_order_ops.scan import _length, _stacked
from mortice.utils._pytree import tree_map

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return the tree of what `f(slice, *args)` returns for each slice of a tree of tensors along dim 0, stacked there.

    Raises:
        RuntimeError: for what are no tensors, or slices of several numbers or none.
    """
    n = _length("map", xs, 0)
    return _stacked("map", [f(tree_map(lambda x, i=i: x[i], xs), *args) for i in range(n)])
