"""Communication that gradients pass through, in the group of one process: what is given comes back."""

from __future__ import annotations

from typing import Any

from mortice.distributed import ReduceOp, _of_group

__all__ = ["all_gather", "all_reduce", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]


@_of_group
def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the tensor, which is the sum, mean or extremum of one."""
    return tensor.clone()


@_of_group
def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the tensor, which is the sum, mean or extremum of one."""
    return tensor.clone()


@_of_group
def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor, which this process has."""
    return tensor.clone()


@_of_group
def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return a tuple of the tensor alone."""
    return (tensor.clone(),)


@_of_group
def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return a tuple of the tensor alone."""
    return (tensor.clone(),)


@_of_group
def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """Return the one of the list."""
    return tensors[0].clone()


@_of_group
def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the one of the list."""
    return input_list[0].clone()
