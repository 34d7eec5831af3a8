"""Where the elements of a tensor lie in its memory: strides, the offset of the first, what is there several times."""

from __future__ import annotations

from mortice.shape import Size, contiguous_strides
from mortice.tensor import steps_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)


def layout(t: Any) -> tuple[int, ...]:
    """Return the strides in elements: the backend's, or those that the view steps imply."""
    backend = t._device.backend
    found = backend.strides_of(t._buffer)
    if found is not None and (0 not in t.shape or 0 not in found):
        return found
    # Where there are no elements a backend may tell nothing, as NumPy does, whose strides are then 0.
    if found is not None or t._storage is None:
        return contiguous_strides(t.shape)
    if t._steps is None:
        return _origin(t._storage, t.shape)[0]
    # Of a chain of views each is mostly asked after the one before it, whose answer is still there.
    aliases = t._storage.aliases
    known, shape, strides = aliases.laid or (None, None, None)
    start, steps = steps_since(known, t._steps)
    if start is None:
        shape = Size(backend.shape_of(aliases.root))
        strides = _origin(t._storage, shape)[0]
    for step, attrs in steps:
        shape, strides = _after(step, attrs, shape, strides)
    aliases.laid = t._steps, shape, strides
    return strides


def _origin(storage: Any, shape: Any) -> tuple[tuple[int, ...], int]:
    """Return the strides and the offset of what all sharers of a memory are views of."""
    below = storage.below
    n = 0 if below is None else len(below.shape) - len(shape)
    if below is None or below.shape[n:] != shape:
        return contiguous_strides(shape), 0
    return layout(below)[n:], storage_offset(below)


def _after(step: Any, attrs: dict[str, Any], shape: Any, strides: Any) -> Any:
    """Return the shape and the strides that a view step shows."""
    below = step.shape(step.name, shape, **attrs)
    return below, step.strides(shape, strides, **attrs) if step.strides else contiguous_strides(below)


def storage_offset(self: Any) -> int:
    """Return where the first element lies in the memory that the tensor shares, in elements."""
    if self._storage is None:
        return 0
    if self._steps is None:
        return _origin(self._storage, self.shape)[1]
    backend = self._device.backend
    if not backend.rooted:
        return backend.whole(self._buffer)[1]
    shape, dtype = Size(backend.shape_of(self._storage.root)), backend.dtype_of(self._storage.root)
    strides, offset = _origin(self._storage, shape)
    for step, attrs in self.view_steps:
        shown = attrs.get("dtype") or step.rule(dtype)[1]
        # Complex numbers as two real ones, or other bytes: the offset counts elements.
        offset = offset * dtype.itemsize // shown.itemsize + (step.start(shape, strides, **attrs) if step.start else 0)
        dtype = shown
        shape, strides = _after(step, attrs, shape, strides)
    return offset


def span(t: Any) -> Any:
    """Return where the bytes of t begin and end in its memory, and its strides; None if it has none or leaves some out."""
    if t._device.base is not t._device or 0 in t.shape:
        return None
    size, steps = 1, layout(t)
    for step, n in sorted(zip(steps, t.shape)):
        if n > 1 and step != size:
            return None
        size *= n
    start = storage_offset(t) * t.dtype.itemsize
    return start, start + size * t.dtype.itemsize, steps


def overlaps(t: Any) -> bool:
    """Tell whether an expanded dim shows elements of t's memory several times."""
    backend = t._device.backend
    strides = backend.strides_of(t._buffer) if backend.mutable else None
    if strides is None and t._storage is not None and t._steps is not None:
        strides = layout(t)
    return bool(strides) and 0 in strides and 0 not in t.shape and any([s == 0 and n > 1 for s, n in zip(strides, t.shape)])
