"""What libraries of optimisation import of torch._vmap_internals: the map over a batch before it was public."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mortice

__all__ = ["_vmap"]


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Any:
    """Return a function that maps `func` over dims of its arguments; None among its results stays None where allowed."""
    return mortice.vmap(func, in_dims, out_dims)
