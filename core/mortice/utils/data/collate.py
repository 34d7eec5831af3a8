"""Putting items together into a batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import mortice
from mortice import Tensor

ITEMS = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") and hasattr(value, "dtype")


def _rebuilt(kind: Any, items: Any) -> Any:
    """Return items in a container of the given object's kind, as far as it can be made."""
    try:
        if isinstance(kind, Mapping):
            if isinstance(kind, MutableMapping):
                clone = copy.copy(kind)
                clone.update(items)
                return clone
            return type(kind)(items)  # type: ignore[call-arg]
        if isinstance(kind, MutableSequence):
            clone = copy.copy(kind)  # type: ignore[assignment]
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(kind)(items)
    except TypeError:
        return items


def default_convert(data: Any) -> Any:
    """Turn NumPy arrays inside an item into tensors; leave the rest."""
    if isinstance(data, Tensor):
        return data
    if _is_array(data):
        return data if data.dtype.kind in "SUO" else mortice.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(v) for v in data])
    return data


def default_collate(batch: Any) -> Any:
    """Stack items along a new first dim: tensors, arrays and numbers; dicts, tuples and lists part by part.

    Raises:
        TypeError: for items of another type.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return mortice.stack(list(batch), 0)
    if _is_array(first):
        if first.dtype.kind in "SUO":
            raise TypeError(ITEMS.format(first.dtype))
        if first.shape == ():
            return mortice.as_tensor([item.item() for item in batch], dtype=mortice.as_tensor(first.reshape(1)).dtype)
        return mortice.stack([mortice.as_tensor(item) for item in batch], 0)
    if isinstance(first, float):
        return mortice.tensor(batch, dtype=mortice.float64)
    if isinstance(first, int):
        return mortice.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _rebuilt(first, {k: default_collate([item[k] for item in batch]) for k in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(items) for items in zip(*batch)))
    if isinstance(first, Sequence):
        if not all(len(item) == len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = list(zip(*batch))
        if isinstance(first, tuple):
            return [default_collate(items) for items in columns]
        return _rebuilt(first, [default_collate(items) for items in columns])
    raise TypeError(ITEMS.format(type(first)))


def pin_memory(data: Any) -> Any:
    """Move tensors inside a batch to pinned memory, where their device has such a thing."""
    if isinstance(data, Tensor):
        return data.pin_memory() if hasattr(data, "pin_memory") else data
    if isinstance(data, Mapping):
        return _rebuilt(data, {k: pin_memory(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(v) for v in data))
    if isinstance(data, (list, tuple)):
        return type(data)([pin_memory(v) for v in data])
    return data
