"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mortice

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _one_device(parameters: list[Any]) -> None:
    devices = {str(p.device) for p in parameters}
    if len(devices) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Join parameters into one vector."""
    given = list(parameters)
    _one_device(given)
    return mortice.cat([p.reshape(-1) for p in given])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Let parameters have the values of slices of a vector."""
    if not isinstance(vec, mortice.Tensor):
        raise TypeError(f"expected {mortice.__name__}.Tensor, but got: {type(vec).__name__}")
    given = list(parameters)
    _one_device(given)
    start = 0
    for p in given:
        count = p.numel()
        p.data = vec[start : start + count].reshape(p.shape).data
        start += count
