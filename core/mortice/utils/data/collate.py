"""Putting items together into a batch."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import mortice
from mortice import Tensor

default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
np_str_obj_array_pattern = re.compile(r"[SaUO]")  # arrays of these dtypes are no tensors; programs that collate ask too


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") and hasattr(value, "dtype")


def _rebuilt(kind: Any, items: Any) -> Any:
    """Return items in a container of the given object's kind, as far as it can be made."""
    try:
        if isinstance(kind, MutableMapping):
            clone = copy.copy(kind)
            clone.update(items)
            return clone
        if isinstance(kind, MutableSequence):
            row = copy.copy(kind)
            for i, item in enumerate(items):
                row[i] = item
            return row
        return type(kind)(items)
    except TypeError:
        return items


def _mapped(fn: Callable[[Any], Any], data: Any, tuples: Any) -> Any:
    """Apply `fn` to the parts of a container, None for what is no container; `tuples` makes plain tuples."""
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: fn(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(fn, data))
    if isinstance(data, tuple):
        return tuples(map(fn, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, list(map(fn, data)))
    return None


def default_convert(data: Any) -> Any:
    """Turn NumPy arrays inside an item into tensors; leave the rest."""
    if isinstance(data, Tensor):
        return data
    if _is_array(data):
        return data if np_str_obj_array_pattern.match(data.dtype.kind) else mortice.as_tensor(data)
    made = _mapped(default_convert, data, list)
    return data if made is None else made


def pin_memory(data: Any, device: Any = None) -> Any:
    """Put the tensors inside a batch into pinned memory; whatever has `pin_memory` does so itself. `device` says nothing."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    made = _mapped(pin_memory, data, type(data))
    return data if made is None else made


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Stack tensors of one size."""
    try:
        return mortice.stack(list(batch), 0)
    except RuntimeError as error:
        error.add_note("Resize and crop images to one size, pad sequences (pad_sequence) in a collate_fn.")
        raise


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Make a tensor of NumPy's arrays of one size, or of its numbers."""
    first = batch[0]
    if np_str_obj_array_pattern.match(first.dtype.kind):
        raise TypeError(default_collate_err_msg_format.format(first.dtype))
    if first.shape == ():
        return mortice.as_tensor([item.item() for item in batch], dtype=mortice.as_tensor(first.reshape(1)).dtype)
    return mortice.stack([mortice.as_tensor(item) for item in batch], 0)


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Make a tensor of floats."""
    return mortice.tensor(batch, dtype=mortice.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Make a tensor of integers."""
    return mortice.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Leave texts as they are."""
    return batch


# What makes a batch of items of a type; `default_collate` uses it, and others may add to it.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn, str: collate_str_fn, bytes: collate_str_fn,
}  # fmt: skip


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Make a batch of items by a table of functions by type, and of containers part by part."""
    first = batch[0]
    table = collate_fn_map or {}
    found = table.get(type(first))
    # Before the rest: NumPy's float64 is a float as well. Its texts are texts.
    if found is None and _is_array(first) and not isinstance(first, (str, bytes)):
        found = collate_numpy_array_fn
    if found is None:
        found = next((fn for kind, fn in table.items() if isinstance(first, kind)), None)
    if found is not None:
        return found(batch, collate_fn_map=table)

    def one(items: Sequence[Any]) -> Any:
        return collate(items, collate_fn_map=table)

    if isinstance(first, Mapping):
        return _rebuilt(first, {key: one([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(one, zip(*batch)))
    if isinstance(first, Sequence):
        if not all(len(item) == len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = []
        for field, items in enumerate(zip(*batch)):
            try:
                parts.append(one(items))
            except (TypeError, RuntimeError) as error:
                error.add_note(f"This was field {field} of each item.")
                raise
        return parts if isinstance(first, tuple) else _rebuilt(first, parts)
    raise TypeError(default_collate_err_msg_format.format(type(first)) + _remedy(first))


def _remedy(item: Any) -> str:
    if item is None:
        return ". A dataset that cannot load an item should raise; a collate_fn may leave items out."
    if type(item).__module__.startswith("PIL."):
        return ". Add transforms.ToTensor() as the last step of the transform."
    return ""


def default_collate(batch: Any) -> Any:
    """Stack items along a new first dim: tensors, arrays and numbers; dicts, tuples and lists part by part.

    Raises:
        TypeError: for items of another type, which a `collate_fn` of one's own would have to handle.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
