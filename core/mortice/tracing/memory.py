"""How much memory buffers occupy while frames run: asked of a backend that counts, else added up from what kernels give."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

from mortice.backends import plugins
from mortice.backends.backend import Backend
from mortice.tracing import TRANSFERS, Frame
from mortice.tracing.buffers import buffers, shares, size_of

# What gives a view from the first element on where it can.
VIEWS = frozenset(
    "reshape reshape_view permute_dims broadcast_to expand_dims squeeze matrix_transpose moveaxis contiguous".split()
)
# What may give other memory than its own; anything else that a backend does itself makes what it gives.
_LENT = VIEWS | frozenset(
    "getitem setitem flip diagonal diagonal_write strided real imag conj view_as_real view_as_complex reinterpret "
    "share_host from_dlpack".split()
)
_NO_BUFFERS = TRANSFERS - {"from_host", "share_host", "copy_to", "from_dlpack", "flat_index", "flat_nonzero"}


def fresh(frame: Frame) -> list[tuple[Any, int]]:
    """Return the buffers in memory of their own that a kernel has made, with their bytes."""
    backend, kernel = frame.backend, frame.kernel
    if kernel is None or kernel in _NO_BUFFERS or frame.failed:
        return []
    found = []
    alone = frame.own and not frame.calls and kernel not in _LENT
    given: set[int] | None = None
    for x in buffers(frame.results):
        try:
            new = alone or backend.owns(x)
            if not new and kernel in VIEWS and backend.mutable and not frame.calls:
                new = not shares(backend, frame.args[0], x)
            size = size_of(backend, x) if new else 0
        except Exception:  # not a buffer: each backend refuses one in its own way
            continue
        if new:
            given = {id(a) for a in buffers((*frame.args, *frame.attrs.values()))} if given is None else given
            if id(x) not in given:
                found.append((x, size))
    return found


def counts(backend: Any) -> bool:
    """Tell whether a backend counts the memory of its buffers."""
    return type(backend).memory_allocated is not Backend.memory_allocated


class Place:
    """The memory of one device: of a backend that counts, or as results add up."""

    def __init__(self, backend: Any, device: Any) -> None:
        self.backend, self.device = backend, device
        self.counted = counts(backend)
        self.start = self.now = self.peak = self._asked()
        self.allocated = 0

    def _asked(self) -> int:
        return int(self.backend.memory_allocated(self.device)) if self.counted else 0

    def ask(self) -> int:
        """Return the bytes that are in use now."""
        if self.counted:
            self.now = self._asked()
        self.peak = max(self.peak, self.now)
        return self.now

    def fold(self) -> None:
        """Learn the peak that the backend has kept, before somebody starts it anew."""
        if self.counted:
            self.peak = max(self.peak, self.backend.memory_stats(self.device).get("peak_allocated", 0))


_open: list[Meter] = []


class Meter:
    """Watches the memory of all devices, from `begin` to `end`.

    Where a backend counts, `peaks` starts its peak anew, and what it has kept until then is learned by the meters around.
    Else a result counts from when a kernel gives it until it is freed; what a kernel needs for itself is not seen.
    """

    def __init__(self, peaks: bool) -> None:
        self.peaks = peaks
        self.places: dict[tuple[str, str], Place] = {}
        self.lasting = 0  # results that cannot tell when they are freed
        self._alive: dict[int, weakref.ref[Any]] = {}

    def begin(self) -> None:
        """Begin with what is in use now."""
        for meter in _open:
            meter.fold()
        _open.append(self)
        for entry in list(plugins.entries().values()):
            if entry.backend is not None and counts(entry.backend):
                for device in list(entry.backend.interned.values()):
                    if self.peaks:
                        entry.backend.reset_peak_memory(device)
                    self.place(entry.backend, device)

    def end(self) -> None:
        """Take the last figures."""
        for place in self.places.values():
            place.ask()
        self.fold()
        if self in _open:
            _open.remove(self)

    def fold(self) -> None:
        """Learn the peaks that backends have kept."""
        if self.peaks:
            for place in self.places.values():
                place.fold()

    def place(self, backend: Any, device: Any) -> Place:
        """Return the memory of a device."""
        key = backend.name, str(device)
        return self.places.get(key) or self.places.setdefault(key, Place(backend, device))

    def note(self, frame: Frame) -> int:
        """Learn what a kernel has made; return its bytes."""
        total, backend = 0, frame.backend
        for x, size in fresh(frame):
            if id(x) in self._alive:
                continue  # a kernel within gave it
            place = self.place(backend, backend.device_of(x))
            try:
                self._alive[id(x)] = weakref.ref(x, partial(self._gone, id(x), size, place))
            except TypeError:
                if frame.calls:
                    continue  # the same, as far as one can tell
                self.lasting += 1
            total += size
            place.allocated += size
            if not place.counted:
                place.now += size
            place.ask()
        return total

    def _gone(self, key: int, size: int, place: Place, ref: Any) -> None:
        if self._alive.get(key) is ref:
            del self._alive[key]
        if not place.counted:
            place.now -= size
