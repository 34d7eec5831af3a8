"""parallel_apply: calls of several modules, each with its part of a batch."""

from __future__ import annotations

from typing import Any

import mortice

__all__ = ["parallel_apply"]


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """Return what each module gives for its inputs; they are called in turn, and the devices work at the same time."""
    made = []
    for module, row, kwargs in zip(modules, inputs, kwargs_tup or [{}] * len(modules), strict=True):
        row = row if isinstance(row, (list, tuple)) else (row,)
        index = next((x.get_device() if x.is_cuda else -1 for x in row if isinstance(x, mortice.Tensor)), -1)
        with mortice.cuda.device(index):
            made.append(module(*row, **kwargs))
    return made
