"""The one way to watch what runs: while anybody watches, each op, kernel and gradient node is told as a `Frame`.

Kernels are named and reached through their backend, so a watched backend has stand-ins for them: attributes of the
instance, which its other kernels, the bodies of ops and the gradient formulas find as well, and a table of compiled ops for
its devices. They go when the last watcher goes. Nothing is asked for while nobody watches.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from mortice import backward
from mortice.backends import plugins
from mortice.backends.backend import REQUIRED_COMPLEX, REQUIRED_NAMES, Backend
from mortice.backends.kernels import FreeKernels
from mortice.device import Local, watching
from mortice.levels import stack
from mortice.modes import modes

# Where values cross between the host and a device.
TRANSFERS = frozenset(
    "from_host share_host to_host item copy_to from_dlpack to_dlpack index_range flat_index flat_nonzero".split()
)
# Kernels that the core calls straight from the public function of another name.
_PUBLIC = {"reshape_view": "view", "getitem": "slice", "flat_nonzero": "nonzero"}
# What a backend is asked about its buffers, which is no work.
_QUESTIONS = frozenset("device_names dtypes synchronize shape_of dtype_of device_of numel_of".split())


class Frame:
    """One call while it runs, and what is known of it afterwards.

    Attributes:
        op: the op's name, None for a kernel that another call makes.
        kernel: the kernel's name, None for an op that has a body of its own, a gradient node or a label.
        node: the gradient node that pulls. Neither op, kernel nor node: a label that `record_function` gives.
        own: whether the kernel is the backend's own rather than a default body.
        stood_in: whether the kernel's own code left the call to the default body.
        args, attrs, out: what the kernel was given and gives; dropped when the watchers have seen them.
        parent: the frame around it, in its thread.
        calls: how many kernels it has called itself.
        outer: the outermost call of an op or kernel that it is part of, which core made for the user.
        notes: what each watcher keeps about it.
    """

    __slots__ = (
        "name", "op", "kernel", "node", "backend", "own", "stood_in", "args", "attrs", "out", "parent", "outer", "python",
        "backward", "failed", "calls", "start", "end", "notes",
    )  # fmt: skip

    def __init__(self, name: str, parent: Frame | None, backend: Any = None) -> None:
        self.name, self.parent, self.backend = name, parent, backend
        self.op: str | None = None
        self.kernel: str | None = None
        self.node: Any = None
        self.args: tuple[Any, ...] = ()
        self.attrs: dict[str, Any] = {}
        self.own = self.stood_in = self.failed = False
        self.out: Any = None
        self.outer: Frame | None = None
        self.python: Any = None  # of an outermost one, the interpreter's frame
        self.backward = modes.running is not None
        self.calls = self.start = self.end = 0
        self.notes: dict[Any, Any] = {}

    @property
    def public(self) -> str:
        """The op's name, or a kernel's under which it is public; empty for what another call or a node makes."""
        if self.op is not None and self.outer is self:
            return self.op
        alone = self.kernel is not None and self.outer is self and (self.parent is None or self.parent.node is None)
        return _PUBLIC.get(self.name, self.name) if alone else ""

    @property
    def results(self) -> tuple[Any, ...]:
        """The buffers that a call gave."""
        out = self.out
        return () if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)


class Watcher:
    """What is told of frames; both calls are made in the thread that the frame belongs to."""

    waits = False  # whether a device's work is to be done before a frame ends

    def began(self, frame: Frame) -> None:
        """See a frame that is about to run."""

    def ended(self, frame: Frame) -> None:
        """See a frame that has run, or failed."""

    def unwatched(self) -> None:
        """See the end of it in a process that was forked off, where the rest is not ours to watch."""


class _State(Local):
    top: Frame | None = None


_local = _State()
_watchers: tuple[Watcher, ...] = ()
_waiting = False
_lock = threading.RLock()
_watched: dict[int, _Watched] = {}  # by the identity of the backend
_levels: list[tuple[Any, Any, Any]] = []  # devices of levels that were entered before: (device, backend, table)


# ---- calls ----


def _open(frame: Frame) -> tuple[Watcher, ...]:
    _local.top = frame
    told = _watchers
    for watcher in told:
        watcher.began(frame)
    frame.start = perf_counter_ns()
    return told


def _close(frame: Frame, told: tuple[Watcher, ...]) -> None:
    frame.end = perf_counter_ns()
    if _local.top is frame:
        top = frame.parent
        while top is not None and top.end:  # a label that ended out of turn
            top = top.parent
        _local.top = top
    for watcher in reversed(told):
        watcher.ended(frame)
    # A buffer must not live on, and frames of the interpreter hold whatever their functions held.
    frame.args, frame.attrs, frame.out, frame.python, frame.notes = (), {}, None, None, {}


def _call(frame: Frame, fn: Callable[..., Any], args: Any, attrs: Any) -> Any:
    parent = frame.parent
    if parent is not None and (parent.op or parent.kernel):
        frame.outer = parent.outer
        parent.calls += 1
    else:
        frame.outer, frame.python = frame, _python_frame()
    frame.args, frame.attrs = args, attrs
    told = _open(frame)
    try:
        frame.out = fn(*args, **attrs)
        if _waiting:
            _wait(frame)
        return frame.out
    except BaseException:
        frame.failed = True
        raise
    finally:
        _close(frame, told)


def _wait(frame: Frame) -> None:
    backend = frame.backend
    if isinstance(backend, Backend) and frame.kernel not in TRANSFERS:
        for x in frame.results[:1]:
            if not isinstance(x, (tuple, list)):
                backend.synchronize(backend.device_of(x))


def open_label(name: str) -> Any:
    """Begin a block of the user's; returns what `close_label` takes, None while nobody watches."""
    if not _watchers:
        return None
    frame = Frame(name, _local.top)
    return frame, _open(frame)


def close_label(opened: Any) -> None:
    """End a block of the user's."""
    if opened is not None:
        _close(*opened)


def _pull(node: Any, puller: Any, g: Any, graph: bool) -> Any:
    frame = Frame(node.name(), _local.top, node.device.backend)
    frame.node, frame.args, frame.backward = node, (g,), True
    told = _open(frame)
    try:
        frame.out = puller.pull(g, graph)
        return frame.out
    except BaseException:
        frame.failed = True
        raise
    finally:
        _close(frame, told)


def _python_frame() -> Any:
    import sys

    return sys._getframe(2)


# ---- stand-ins ----


class _Table(dict[Any, Callable[..., Any]]):
    """A backend's compiled ops while it is watched."""

    def __init__(self, table: Any, watched: _Watched | None) -> None:
        self.table, self.watched, self.backend = table, watched, table.backend

    def __missing__(self, op: Any) -> Callable[..., Any]:
        # Not from the table below, which would keep a stand-in among the backend's own compiled ops.
        watched, backend, kernel = self.watched, self.backend, op.kernel
        if watched is None or kernel is None:
            run = self.table[op]
        else:
            run = watched.original(kernel)
        own = watched is not None and kernel is not None and watched.owns(kernel)

        def stand_in(*args: Any, **attrs: Any) -> Any:
            top = _local.top
            if not _watchers or (top is not None and top.op == op.name and kernel is None):
                return run(*args, **attrs)  # in the second case a level above has told of it
            frame = Frame(op.name, top, backend)
            if top is None or top.op != op.name:
                frame.op = op.name
            if watched is not None:
                frame.kernel, frame.own = kernel, own
                frame.name = frame.op or kernel or op.name
            return _call(frame, run, args, attrs)

        self[op] = stand_in
        return stand_in


class _Watched:
    """A backend with stand-ins in place of its kernels."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        own = backend.__dict__
        self.before = {name: own[name] for name in self._names() if name in own}
        self.table = backend.table
        # Levels above it have compiled the kernels as they were: while it is watched they compile them anew.
        self.levels = own.pop("_levels", None)
        own.update({name: self._stand_in(name) for name in self._names()})
        backend.table = _Table(self.table, self)
        for device in list(backend.interned.values()):
            device.table = backend.table

    def _names(self) -> list[str]:
        found = {*_kernel_names(), *TRANSFERS}
        if self.backend.reshape_view is not None:
            found.add("reshape_view")
        if self.backend.flat_index is None:
            found.remove("flat_index")
        return [name for name in found if name in self.backend.__dict__ or _holder(self.backend, name) is not None]

    def original(self, name: str) -> Callable[..., Any]:
        """Return a kernel as the backend has it."""
        if name in self.before:
            return self.before[name]
        found = _holder(self.backend, name).__dict__[name]
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, self.backend, type(self.backend))

    def owns(self, name: str) -> bool:
        """Tell whether the backend does a kernel itself."""
        holder = _holder(self.backend, name)
        return name in self.before or holder is None or not (issubclass(FreeKernels, holder) or holder is Backend)

    def _stand_in(self, name: str) -> Callable[..., Any]:
        run: Any = None
        backend, own = self.backend, self.owns(name)

        def stand_in(*args: Any, **attrs: Any) -> Any:
            nonlocal run
            if run is None:
                run = self.original(name)
            if not _watchers:
                return run(*args, **attrs)
            top = _local.top
            frame = Frame(name, top, backend)
            frame.kernel, frame.own = name, own
            if top is not None and top.own and top.kernel is not None and not top.stood_in:
                top.stood_in = _is_default_body(top)
            return _call(frame, run, args, attrs)

        stand_in.own = own
        return stand_in

    def restore(self) -> None:
        """Take the stand-ins away."""
        own = self.backend.__dict__
        self.backend.table = self.table
        for device in list(self.backend.interned.values()):
            device.table = self.table
        for name in self._names():
            if name in self.before:
                own[name] = self.before[name]
            else:
                own.pop(name, None)
        own.pop("_levels", None)
        if self.levels is not None:
            own["_levels"] = self.levels


_names: list[str] = []


def _kernel_names() -> list[str]:
    if not _names:
        free = [n for n in dir(FreeKernels) if not n.startswith("_") and callable(getattr(FreeKernels, n))]
        every = {*REQUIRED_NAMES, *REQUIRED_COMPLEX, *free}
        _names.extend(sorted(every - _QUESTIONS))
    return _names


def _holder(backend: Any, name: str) -> type | None:
    """Return the class that a backend has a kernel from."""
    for cls in type(backend).__mro__:
        if name in cls.__dict__:
            return cls
    return None


def _is_default_body(frame: Frame) -> bool:
    """Tell whether the default body of a backend's own kernel is what calls the kernel that is about to be told."""
    import sys

    default = getattr(getattr(FreeKernels, frame.kernel or "", None), "__code__", None)
    at: Any = sys._getframe(2)
    while default is not None and at is not None and at.f_code is not _call.__code__:
        if at.f_code is default:
            return True
        at = at.f_back
    return False


# ---- who watches ----


class _Host:
    """What `device.watching` asks while anybody watches."""

    def table_of(self, backend: Any) -> Any:
        """Return the compiled ops that a new device of a level calls."""
        table = backend.table
        return table if isinstance(table, _Table) or isinstance(backend, Backend) else _Table(table, None)

    def adopt(self, backend: Any) -> None:
        """Watch a backend that was loaded just now."""
        with _lock:
            if id(backend) not in _watched:
                _watched[id(backend)] = _Watched(backend)


_host = _Host()


def watch(watcher: Watcher) -> None:
    """Tell a watcher of all that runs from now on, in every thread."""
    global _watchers, _waiting
    entries = plugins.entries()  # not under our lock: a backend that loads elsewhere takes theirs first
    with _lock:
        if not _watchers:
            _begin([entry.backend for entry in list(entries.values()) if entry.backend is not None])
        _watchers = (*_watchers, watcher)
        _waiting = any(w.waits for w in _watchers)


def unwatch(watcher: Watcher) -> None:
    """Tell a watcher no more."""
    global _watchers, _waiting
    with _lock:
        before = _watchers
        _watchers = tuple([w for w in _watchers if w is not watcher])
        _waiting = any(w.waits for w in _watchers)
        if before and not _watchers:
            _end()


def _begin(backends: list[Any]) -> None:
    watching.append(_host)
    backward.watchers.append(_pull)
    for backend in backends:
        _host.adopt(backend)
    for level in stack.levels:  # the lowest first
        for device in level.devices.values():
            _levels.append((device, device.backend, device.table))
            kinds = device.inner.backend.__dict__.setdefault("_levels", {})
            fresh = kinds.get(level.backend_class) or kinds.setdefault(
                level.backend_class, level.backend_class(device.inner.backend)
            )
            device.backend, device.table = fresh, _host.table_of(fresh)


def _end() -> None:
    watching.remove(_host)
    backward.watchers.remove(_pull)
    for device, backend, table in _levels:
        device.backend, device.table = backend, table
    _levels.clear()
    for watched in _watched.values():
        watched.restore()
    _watched.clear()


def watchers() -> tuple[Watcher, ...]:
    """Return who watches."""
    return _watchers


def _forget() -> None:
    global _lock, _watchers
    _lock = threading.RLock()
    gone, _watchers = _watchers, ()
    for watcher in gone:
        watcher.unwatched()
    if gone:
        _end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
