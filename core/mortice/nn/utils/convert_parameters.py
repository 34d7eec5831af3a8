"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mortice


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
        raise TypeError(f"expected mortice.Tensor, but got: {type(vec).__name__}")
    given = list(parameters)
    _one_device(given)
    start = 0
    for p in given:
        count = p.numel()
        p.data = vec[start : start + count].reshape(p.shape).data
        start += count


def _flatten_dense_tensors(tensors: Iterable[Any]) -> Any:
    """Join tensors of one dtype into a vector, as programs do that reduce gradients over processes themselves."""
    return mortice.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Return views of a vector in the shapes of tensors: what `_flatten_dense_tensors` joined."""
    given = list(tensors)
    return tuple(part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in given]), given, strict=True))


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Gather tensors of one type into lists of at most so many bytes."""
    lists: dict[str, tuple[list[Any], int]] = {}
    for t in tensors:
        held, size = lists.get(t.type(), ([], 0))
        if held and size + t.nbytes > size_limit:
            yield held
            held, size = [], 0
        lists[t.type()] = [*held, t], size + t.nbytes
    yield from (held for held, _ in lists.values())
