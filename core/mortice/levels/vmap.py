"""MapLevel: a running vmap, and how tensors enter and leave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.levels import ESCAPED, Level, chain, raise_to, record_crossing, stack, watch_memory
from mortice.levels.mapped_rules import Mapped, MappedBackend
from mortice.modes import modes
from mortice.shape import Size
from mortice.strides import layout
from mortice.tensor import make


class _Ended(dict[Any, Any]):
    """The ops of a level that has ended: for backward through what it left, and for nobody else."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __missing__(self, op: Any) -> Any:
        if modes.running is None:
            raise RuntimeError(ESCAPED.format(op.name))
        return self.table[op]


class MapLevel(Level):
    """A running vmap."""

    backend_class = MappedBackend
    name = "vmap"

    def close(self) -> None:
        for device in self.devices.values():
            device.table = _Ended(device.table)

    # A tensor's first dim becomes the batch, and the other way round: each is the other's gradient.

    def enter(self, x: Any) -> Any:
        """Return the tensor whose lanes are the slices of x along its first dim."""
        device = self.above(x._device)
        t = make(Mapped(x._buffer, True), device, x.dtype, Size(tuple(x.shape)[1:]))
        watch_memory(t, x)
        return record_crossing(t, (x,), lambda g: (self.leave(g),), "EnterVmapBackward")

    def leave(self, t: Any) -> Any:
        """Return the lanes of t stacked along a new first dim."""
        if self not in chain(t._device):
            t = raise_to(t, self.above(t._device))
        if t._device.level is not self:
            raise RuntimeError("vmap: a gradient is asked for across the end of another transform, in the wrong order.")
        k, data = t._device.backend, t._buffer
        stacked = k.spread(data, self.size)
        if not data.on or t._storage is not None or t._rg or not k.inner.owns(stacked):
            stacked = k.inner.copy(stacked)  # nobody else may hold memory that can be written from now on
        made = make(stacked, t._device.inner, t.dtype, Size((self.size, *t.shape)))
        return record_crossing(made, (t,), lambda g: (self.enter(g),), "LeaveVmapBackward")

    def strided(self, as_strided: Callable[..., Any], t: Any, size: Any, stride: Any, start: int) -> Any:
        """Return what `as_strided` shows of each lane's memory."""
        below = t._storage and t._storage.below
        if below is None or t._storage.root is not t._storage.first:
            raise self.no_memory("as_strided")
        return self.enter(as_strided(below, (self.size, *size), (layout(below)[0], *stride), start))

    def common(self, t: Any) -> Any:
        """Return a tensor that all lanes share, at the level below."""
        if t._device.level is not self:
            return t
        made = make(t._device.backend.inner.copy(t._buffer.data), t._device.inner, t.dtype, t.shape)
        return record_crossing(made, (t,), lambda g: (raise_to(g, self.above(g._device)),), "LeaveVmapBackward")

    def __init__(self, size: int, randomness: str) -> None:
        super().__init__()
        self.size, self.randomness = size, randomness

    def constant(self, data: Any) -> Mapped:
        return Mapped(data, False)

    def total(self, backend: Any, data: Mapped) -> Any:
        return backend.inner.sum(data.data, axis=0, keepdims=False) if data.on else data.data

    def lowered(self, t: Any) -> Any:
        return None if t._buffer.on else self.common(t)

    def settled(self, data: Any) -> Any:
        return None if data.on else data.data

    def text(self, t: Any) -> str:
        shown = repr(self.inside(t._buffer.data, t))
        if not t._buffer.on:
            return shown
        number = stack.levels.index(self) + 1 if self in stack.levels else -2
        lines = "\n".join("    " + line for line in shown.splitlines())
        return f"BatchedTensor(lvl={number}, bdim=0, value=\n{lines}\n)"

    def over(self, data: Mapped, fn: Callable[[Any], Any]) -> Mapped:
        return Mapped(fn(data.data), data.on)
