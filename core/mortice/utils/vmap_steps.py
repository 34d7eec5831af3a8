"""The steps of vmap by PyTorch's names in torch._functorch.vmap, for libraries whose containers take part in them.

Such a library sets steps of its own on that module; vmap then goes by what it set. A level is its number in the running ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.func.levels import k
from mortice.func.levels import name_of as _get_name
from mortice.levels import here, stack
from mortice.levels.vmap import MapLevel
from mortice.methods import Tensor
from mortice.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

__all__ = ["Tensor", "_broadcast_to_and_flatten", "_get_name", "tree_flatten", "tree_unflatten"]


def _add_batch_dim(tensor: Any, in_dim: int, level: int) -> Any:
    """Return the tensor whose lanes are the slices of another one along a dim."""
    running: Any = stack.levels[level - 1]
    x = here(tensor, running)
    return running.enter(k.moveaxis(x, in_dim, 0) if in_dim else x)


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """Return the lanes of a tensor stacked along a dim."""
    running: Any = stack.levels[level - 1]
    whole = running.leave(tensor)
    return k.moveaxis(whole, 0, out_dim) if out_dim else whole


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """Return an output with its lanes along a dim, or one without lanes as it is."""
    running: Any = stack.levels[vmap_level - 1]
    if out_dim is None:
        return running.common(batched_output) if isinstance(batched_output, Tensor) else batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}.")
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def get_unwrapped(tensor: Any) -> Any:
    """Return a tensor with its lanes along the first dim."""
    return tensor._device.level.leave(tensor)


def call(
    steps: Any, func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str, args: Any, kwargs: Any
) -> Any:
    """Map a function by a library's steps."""
    size, dims, flat, spec = steps._process_batched_inputs(in_dims, args, func)
    with MapLevel(size, randomness):
        number = len(stack.levels)
        out = func(*steps._create_batched_inputs(dims, flat, number, spec), **kwargs)
        return steps._unwrap_batched(out, out_dims, number, size, func)
