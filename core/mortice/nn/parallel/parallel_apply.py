"""parallel_apply: calls of several modules, each with its part of a batch."""

from __future__ import annotations

from typing import Any

import mortice

__all__ = ["parallel_apply"]


def get_a_var(obj: Any) -> Any:
    """Return the first tensor in lists, tuples and dicts, or None."""
    if isinstance(obj, dict):
        obj = list(obj.items())
    if isinstance(obj, (list, tuple)):
        return next((x for x in map(get_a_var, obj) if x is not None), None)
    return obj if isinstance(obj, mortice.Tensor) else None


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """Return what each module gives for its inputs; they are called in turn, and the devices work at the same time."""
    made = []
    for module, row, kwargs in zip(modules, inputs, kwargs_tup or [{}] * len(modules), strict=True):
        row = row if isinstance(row, (list, tuple)) else (row,)
        found = get_a_var(row)
        index = found.get_device() if found is not None and found.is_cuda else -1
        with mortice.cuda.device(index):
            made.append(module(*row, **kwargs))
    return made
