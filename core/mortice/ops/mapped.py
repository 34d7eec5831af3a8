"""Python functions applied to each element on the host, and a diagonal filled in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice import call as _call
from mortice.mutation import check_writable, inplace
from mortice.node import TENSOR_KERNELS
from mortice.ops.data import tensor
from mortice.ops.movement import reshape


def _on_host(name: str, self: Any, others: tuple[Any, ...], callable: Callable[..., Any]) -> Any:
    """Return what a Python function gives for the elements of tensors, one after the other."""
    for x in others:
        _call.check_device(TENSOR_KERNELS.add.op, self, x)
        if x.dtype is not self.dtype:
            raise TypeError(f"{name}: expected tensors of one dtype; got {self.dtype} and {x.dtype}.")
    if any(x._rg for x in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    columns = [reshape(x.expand(self.shape), -1).tolist() for x in (self, *others)]
    values = [callable(*row) for row in zip(*columns)]
    for value in values:
        if not hasattr(value, "__index__") and not hasattr(value, "__float__") and not hasattr(value, "__complex__"):
            raise TypeError(f"{name}: expected a function that returns numbers; got {type(value).__name__} from it.")
    return reshape(tensor(values, dtype=self.dtype, device=self._device), self.shape)


def _apply(self: Any, callable: Callable[[Any], Any]) -> Any:
    """Replace each element with what a Python function makes of it; slow, one element after the other on the host."""
    return _on_host("apply_", self, (), callable)


def _map(self: Any, tensor: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Replace each element with what a Python function makes of it and that of another tensor; slow, on the host."""
    return _on_host("map_", self, (tensor,), callable)


def _map2(self: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Replace each element with what a Python function makes of it and those of two more tensors; slow, on the host."""
    return _on_host("map2_", self, (x, y), callable)


def fill_diagonal_(input: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Write a number on the main diagonal; of a tall matrix again below, a row apart, where `wrap` is set."""
    ndim, shape = len(input.shape), tuple(input.shape)
    if ndim < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must larger than 1; got {ndim}.")
    if ndim > 2 and len(set(shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: all dimensions of input must be of equal length; got {list(shape)}.")
    check_writable("fill_diagonal_", input)
    for start in range(0, shape[0] if wrap and ndim == 2 else 1, shape[1] + 1):
        view = input[start:] if start else input
        while len(view.shape) > 1:
            view = view.diagonal(dim1=0, dim2=1)
        view.fill_(fill_value)
    return input


apply_, map_, map2_ = inplace(_apply, "apply_"), inplace(_map, "map_"), inplace(_map2, "map2_")
