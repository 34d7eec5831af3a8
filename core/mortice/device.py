"""Devices: where a tensor lives, as (type, index, backend); and what a thread has chosen for its new tensors."""

from __future__ import annotations

import threading

from mortice.dtype import DType, float32, float64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_INTERNED: dict[tuple[str, int | None], Device] = {}
# The types that PyTorch knows, which programs name and compare with whether or not anything serves them.
TYPES = (
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia privateuseone".split()
)


LOCALS: list[Local] = []


class Local(threading.local):
    """A thread's own state, as `threading.local` keeps it, which `threads.elsewhere` hands on."""

    def __new__(cls) -> Local:
        made: Local = super().__new__(cls)
        LOCALS.append(made)
        return made


class Chosen(Local):
    """What this thread has chosen, innermost last: backends and devices of blocks, and the current index of a type."""

    backends: tuple[str, ...] = ()
    devices: tuple[Any, ...] = ()
    current: dict[str, int] = {}  # replaced, never written


chosen = Chosen()


class Device:
    """A place for tensors: `device("cpu")`, `device("cuda:0")`, `device("cuda", 1)`.

    A device made by a user names no backend until a tensor is put there; a tensor's own device does.
    Two devices are equal when type and index are, and the backends too if both name one.
    """

    __slots__ = ("type", "index", "backend", "table", "base", "inner", "level")
    type: str
    index: int | None
    backend: Any
    table: Any
    base: Device  # where the memory is: itself, unless a level of vmap, forward mode or sparse tensors (see `levels`) stands above it
    inner: Device | None  # of a device of a level, the one below it
    level: Any
    # Filled in by `backends.plugins`: the error about a type that is none of TYPES, None where a plugin claims it.
    unclaimed: Callable[[str], Exception | None] = staticmethod(lambda type: None)

    def __new__(cls, type: str | Device, index: int | None = None) -> Device:
        if isinstance(type, Device):
            return type
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device: expected a string such as 'cpu' or 'cuda:0'; got {type!r}.")
        name, colon, number = type.partition(":")
        if colon:
            if index is not None:
                raise RuntimeError(f"device: the index must not be given twice; got {type!r} and {index}.")
            if not number.isdecimal() or number != str(int(number)):
                raise RuntimeError(f"device: Invalid device string: {type!r}; expected an index after the colon.")
            index = int(number)
        if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
            raise TypeError(f"device: expected the index as an int; got {index!r}.")
        if index is not None and index < 0:
            raise RuntimeError(f"device: Device index must not be negative; got {index}.")
        if not name.isidentifier():
            raise RuntimeError(f"device: expected a string such as 'cpu' or 'cuda:0'; got {type!r}.")
        if name not in TYPES and (name, index) not in _INTERNED and (error := cls.unclaimed(name)) is not None:
            raise error
        return intern(name, index, None)

    @property
    def is_outline(self) -> bool:
        """Whether its tensors are wrappers, whose elements are the affair of their class; see `subclasses`."""
        return self.inner is None and self.base is not self

    @property
    def of_values(self) -> Device:
        """Where values are made for tensors there: elsewhere than their outlines."""
        return self.base if self.is_outline else self

    @property
    def widest_float(self) -> DType:
        """The widest real floating dtype there: float64, or float32 where that is missing."""
        return float64 if float64 in self.backend.dtypes(self) else float32

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Device):
            return NotImplemented
        same = self.type == other.type and self.index == other.index
        mine, its = self.base.backend, other.base.backend
        return same and (mine is its or mine is None or its is None)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __enter__(self) -> Device:
        """Make new tensors on this device while the block runs, in this thread."""
        chosen.devices = (*chosen.devices, self if self.backend is not None else str(self))
        return self

    def __exit__(self, *exc: object) -> None:
        chosen.devices = chosen.devices[:-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_named, (str(self),))  # by a function, which stays here when the class is shown as PyTorch's

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: Any) -> Device:
        return self


def _named(text: str) -> Device:
    return Device(text)


# What watches calls of kernels while anybody wants to know: see `tracing`.
watching: list[Any] = []


def intern(type: str, index: int | None, backend: Any) -> Device:
    """Return the one Device of that type, index and backend."""
    # A backend keeps its own: it may be renamed when it is loaded, and its devices stay the same ones.
    known = _INTERNED if backend is None else backend.interned
    found = known.get((type, index))
    if found is None:
        made = object.__new__(Device)
        made.type, made.index, made.backend = type, index, backend
        made.table = None if backend is None else backend.table
        made.base, made.inner, made.level = made, None, None
        found = known.setdefault((type, index), made)
    return found


def stand_above(inner: Device, level: Any, backend: Any) -> Device:
    """Return the device of a level above another one: the same place, served by the level's backend."""
    made = object.__new__(Device)
    made.type, made.index, made.backend = inner.type, inner.index, backend
    made.table = watching[-1].table_of(backend) if watching else backend.table
    made.base, made.inner, made.level = inner.base, inner, level
    return made
