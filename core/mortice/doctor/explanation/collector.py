"""What `explain` counts while frames run: calls of one kind are added up, and keep the line of the user's that asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from mortice.catalog import FREE_KERNELS
from mortice.dtype import DTYPES
from mortice.tracing import TRANSFERS, Frame, Watcher
from mortice.tracing.buffers import are_buffers, described, shares, size_of
from mortice.tracing.memory import VIEWS, Meter
from mortice.tracing.places import line

_TO_HOST = frozenset(("to_host", "item", "to_dlpack", "index_range", "flat_index", "flat_nonzero"))
# What is read where it is not the buffer: a least and a greatest index, a number of elements.
_READ = {"index_range": 16, "flat_index": 16, "flat_nonzero": 8}
_COPYING = frozenset(("copy", "contiguous"))
_LAYOUT = VIEWS - _COPYING  # these copy where the layout does not allow a view
_DTYPES = frozenset([d.name for d in DTYPES])
_OPTIMIZER = frozenset(
    name for place, names in FREE_KERNELS.items() if place.startswith("backends.optim:") for name in names.split()
)


class Row:
    """Calls of one kind, added up."""

    __slots__ = ("count", "bytes", "ns", "own_ns", "phases", "calls", "beneath", "shapes")

    def __init__(self) -> None:
        self.count = self.bytes = self.ns = self.own_ns = self.calls = 0
        self.phases: dict[str, int] = {}
        self.beneath: dict[str, int] = {}
        self.shapes: dict[str, int] = {}

    def add(self, phase: str, size: int, ns: int = 0) -> Row:
        """Count a call."""
        self.count += 1
        self.bytes += size
        self.ns += ns
        self.phases[phase] = self.phases.get(phase, 0) + 1
        return self


class _Note:
    """What is known of a frame from those within: bytes, time, kernels called by itself and in all."""

    __slots__ = ("bytes", "ns", "beneath", "calls")

    def __init__(self) -> None:
        self.bytes = self.ns = self.calls = 0
        self.beneath: dict[str, int] = {}


Rows = dict[tuple[str, ...], Row]


class Collector(Watcher):
    """Counts what one thread runs, or every thread (None)."""

    def __init__(self, thread: int | None, meter: Meter, waits: bool) -> None:
        self.thread, self.meter, self.waits = thread, meter, waits
        self.ops: Rows = {}
        self.kernels: Rows = {}
        self.transfers: Rows = {}
        self.copies: Rows = {}
        self.casts: Rows = {}
        self.fallbacks: Rows = {}
        self._lock = threading.RLock()  # a finaliser may run ops within

    def began(self, frame: Frame) -> None:
        if self.thread is None or threading.get_ident() == self.thread:
            frame.notes[self] = _Note()

    def ended(self, frame: Frame) -> None:
        note = frame.notes.get(self)
        if note is not None and not frame.failed:
            with self._lock:
                self._add(frame, note, None if frame.parent is None else frame.parent.notes.get(self))

    def _add(self, frame: Frame, note: _Note, above: _Note | None) -> None:
        kernel, phase, ns = frame.kernel, _phase(frame), frame.end - frame.start
        if kernel is not None:
            note.bytes += self.meter.note(frame)
            if kernel not in TRANSFERS:
                self._kernel(frame, note, phase, ns)
            if not any([f.kernel in TRANSFERS for f in _around(frame)]):
                self._cost(frame, phase)
            if (
                note.calls > 1
                and _body(frame) == "default"
                and not any([_body(f) == "default" for f in _around(frame)])
            ):
                self._fallback(frame, note, phase, ns)
        name = frame.public if frame.node is None else frame.name
        if name and (kernel not in TRANSFERS or kernel == "flat_nonzero"):
            shapes, dtypes = described(frame.backend, frame.args)
            row = _at(self.ops, name, phase).add(phase, note.bytes, ns)
            _count(row.shapes, _signature(shapes, dtypes))
        if above is not None:
            above.bytes += note.bytes
            above.calls += note.calls
            if kernel is not None:
                above.ns += ns
                above.calls += 1
                _count(above.beneath, kernel)
            else:
                above.ns += note.ns
                _merge(above.beneath, note.beneath)

    def _kernel(self, frame: Frame, note: _Note, phase: str, ns: int) -> None:
        row = _at(self.kernels, frame.kernel or "", frame.backend.name, _body(frame)).add(phase, note.bytes, ns)
        row.own_ns += ns - note.ns
        row.calls += note.calls
        _merge(row.beneath, note.beneath)

    def _fallback(self, frame: Frame, note: _Note, phase: str, ns: int) -> None:
        reason = "its kernel left it to the default body" if frame.stood_in else "no kernel of its own"
        row = _at(self.fallbacks, frame.kernel or "", frame.backend.name, reason).add(phase, note.bytes, ns)
        row.calls += note.calls
        _merge(row.beneath, note.beneath)

    def _cost(self, frame: Frame, phase: str) -> None:
        """Count a transfer, a copy or a cast, if it is one."""
        kernel, backend, args = frame.kernel or "", frame.backend, frame.args
        if kernel in TRANSFERS:
            host = args[0] if kernel in ("from_host", "share_host") else None
            x = frame.out if kernel == "from_dlpack" else args[0]
            shape, dtype = (host.shape, host.dtype) if host is not None else (backend.shape_of(x), backend.dtype_of(x))
            size = _READ[kernel] if kernel in _READ else _size(shape, dtype)
            way = "to host" if kernel in _TO_HOST else "between devices" if kernel == "copy_to" else "to device"
            device = str(
                args[1] if kernel in ("from_host", "share_host", "copy_to", "from_dlpack") else backend.device_of(x)
            )
            at = line(frame)
            _at(
                self.transfers, way, kernel, at.via, device, backend.name, dtype.name, str(list(shape)), phase, at.where
            ).add(phase, size)
        elif kernel == "astype":
            source, target = backend.dtype_of(args[0]), backend.dtype_of(frame.out)
            at = line(frame)
            if source is target:
                self._copied(frame, phase, "asked for", size_of(backend, frame.out))
            else:
                kind = "promotion" if at.promoted else "within a kernel" if _is_inside(frame) else "asked for"
                size = size_of(backend, frame.out)
                _at(self.casts, source.name, target.name, kind, _within(frame), at.via, phase, at.where).add(
                    phase, size
                )
        elif kernel in _COPYING or kernel in _LAYOUT:
            # Where buffers cannot be written, nobody can tell a copy from a view.
            copied = kernel in _COPYING or (
                backend.mutable and not frame.calls and not shares(backend, args[0], frame.out)
            )
            if copied and frame.out is not args[0]:
                self._copied(frame, phase, _why(frame), size_of(backend, frame.out))
        elif (
            kernel == "setitem"
            and are_buffers(backend, list(args[2:3]))
            and not isinstance(args[2], (int, float, complex))
        ):
            self._copied(frame, phase, "within a kernel" if _is_inside(frame) else "write", size_of(backend, args[2]))

    def _copied(self, frame: Frame, phase: str, kind: str, size: int) -> None:
        if size and not any([f.kernel in _COPYING for f in _around(frame)]):
            at = line(frame)
            x = frame.args[2] if frame.kernel == "setitem" else frame.out
            shape, dtype = str(list(frame.backend.shape_of(x))), frame.backend.dtype_of(x).name
            _at(self.copies, kind, frame.kernel or "", _within(frame), at.via, dtype, shape, phase, at.where).add(
                phase, size
            )


# ---- what frames are ----


def _around(frame: Frame) -> Iterator[Frame]:
    """Yield the calls of ops and kernels that a frame is part of."""
    at = frame.parent
    while at is not None and (at.op or at.kernel):
        yield at
        at = at.parent


def _body(frame: Frame) -> str:
    if frame.kernel is None:
        return ""
    return "own" if frame.own and not frame.stood_in else "default"


def _phase(frame: Frame) -> str:
    if frame.backward:
        return "backward"
    return "optimizer" if frame.outer is not None and frame.outer.kernel in _OPTIMIZER else "forward"


def _is_inside(frame: Frame) -> bool:
    """Tell whether another kernel, or a gradient formula, makes the call."""
    above = frame.outer.parent if frame.outer is not None else None
    return (above is not None and above.node is not None and frame.op is None) or any(
        [f.kernel for f in _around(frame)]
    )


def _why(frame: Frame) -> str:
    """Return what a copy is made for."""
    if _is_inside(frame):
        return "within a kernel"
    if frame.kernel in _LAYOUT:
        return "layout"
    return "gradient" if frame.backward else "asked for" if frame.outer is not None and frame.outer.op else "write"


def _within(frame: Frame) -> str:
    """Return the op, kernel or node that makes the call, or nothing."""
    above = frame.parent
    if above is None or not (above.op or above.kernel or above.node):
        return frame.op or ""
    return above.op or above.kernel or above.name


def _size(shape: Any, dtype: Any) -> int:
    n: int = dtype.itemsize
    for size in shape:
        n *= size
    return n


def _signature(shapes: list[Any], dtypes: list[str]) -> str:
    """Return operands as text: `float32[3, 4] float32[4] 2 tensors`, numbers and what is no operand left out."""
    found = []
    for shape, dtype in zip(shapes, dtypes):
        if dtype == "TensorList":
            found.append(f"{len(shape)} tensors")
        elif dtype in _DTYPES:
            found.append(f"{dtype}{shape}")
    return " ".join(found)


def _at(rows: Rows, *key: str) -> Row:
    return rows.get(key) or rows.setdefault(key, Row())


def _count(found: dict[str, int], name: str) -> None:
    found[name] = found.get(name, 0) + 1


def _merge(into: dict[str, int], found: dict[str, int]) -> None:
    for name, n in found.items():
        into[name] = into.get(name, 0) + n
