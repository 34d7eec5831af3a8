"""What PyTorch keeps in torch._utils: tensors joined for sending, and the functions that its plain pickles name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mortice
from mortice.accelerator import get_device_module as _get_device_module  # noqa: F401
from mortice.serialize.reading import _parameter as _rebuild_parameter
from mortice.serialize.reading import _rebuild_tensor as _rebuild_tensor_v2
from mortice.serialize.reading import _rebuild_tensor_v3
from mortice.utils.data.worker import ExceptionWrapper

__all__ = ["ExceptionWrapper", "_rebuild_parameter", "_rebuild_tensor_v2", "_rebuild_tensor_v3"]


def _element_size(dtype: Any) -> int:
    """Return how many bytes an element of a dtype takes."""
    return dtype.itemsize


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Give an object the attributes that a pickle has of it: a dict, or one and one of its slots; return the object."""
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            setattr(obj, name, value)
    return obj


def _get_available_device_type() -> str | None:
    """Return the type of the device beside the CPU, None without one."""
    return "cuda" if mortice.cuda.is_available() else None


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
