"""parallel_apply: calls of several modules, each with its part of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Sequence[dict[str, Any]] | None = None, devices: Any = None
) -> list[Any]:
    """Return what each module gives for its inputs; they run one after another."""
    named = kwargs_tup or [{}] * len(modules)
    rows = [row if isinstance(row, (list, tuple)) else (row,) for row in inputs]
    return [module(*row, **kwargs) for module, row, kwargs in zip(modules, rows, named, strict=True)]
