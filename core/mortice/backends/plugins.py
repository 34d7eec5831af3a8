"""Finding backends: the hook, isolated discovery of entry points, and who serves new tensors.

pluggy isolates nothing by itself, so each entry point is loaded, registered and asked on its own; what goes wrong with
one is kept as its reason and shown by `python -m mortice backends`. Nothing here runs at `import mortice`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from mortice.backends.backend import Backend, check_backend
from mortice.device import Device
from mortice.errors import BackendNotFound, DeviceError, PluginError

API = 1
GROUP = "mortice"
hookspec = pluggy.HookspecMarker("mortice")
hookimpl = pluggy.HookimplMarker("mortice")


@dataclass(frozen=True)
class BackendInfo:
    """What a plugin offers; cheap to make, the array library is imported by `load`.

    Attributes:
        name: the name for `set_backend`.
        device_types: such as ("cpu",) or ("cuda",); a type of its own is welcome.
        load: returns the Backend; called once, at the first need.
        priority: among backends of one device type the highest serves by default.
        needs: what to install when `load` fails, as a pip requirement.
        api: the version of the boundary that the plugin was written for.
    """

    name: str
    device_types: tuple[str, ...]
    load: Callable[[], Backend]
    priority: int = 0
    needs: str = ""
    api: int = API


class Spec:
    """The one hook."""

    @hookspec
    def mortice_backends(self) -> list[BackendInfo]:  # type: ignore[empty-body]
        """Return the backends of this plugin, as a list of BackendInfo or one BackendInfo."""


@dataclass
class Entry:
    """A discovered plugin or backend and what became of it."""

    name: str
    distribution: str = ""
    version: str = ""
    info: BackendInfo | None = None
    backend: Backend | None = None
    problem: str = ""
    problem_kind: str = ""  # "plugin" when discovery failed, "load" when load() did
    lock: Any = field(default_factory=threading.RLock, repr=False)


class _State:
    entries: dict[str, Entry] | None = None
    broken: list[Entry]
    chosen: str | None = None
    default_device: str | None = None


_state = _State()
_state.broken = []
_lock = threading.RLock()


class _Local(threading.local):
    chosen: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


_local = _Local()


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def entries() -> dict[str, Entry]:
    """Return the working plugins' backends by name, discovering them at the first call."""
    with _lock:
        if _state.entries is None:
            _state.entries = {}
            _state.broken = []
            for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
                _discover(point)
        return _state.entries


def broken() -> list[Entry]:
    """Return the plugins that could not be used, each with its reason."""
    entries()
    return _state.broken


def rediscover() -> None:
    """Forget what was found; the next need discovers again."""
    with _lock:
        _state.entries, _state.broken = None, []


def _discover(point: EntryPoint) -> None:
    dist = point.dist
    entry = Entry(point.name, dist.name if dist else "", dist.version if dist else "")
    try:
        infos = _ask(point)
    except Exception as error:  # whatever a plugin does wrong stays its own problem
        entry.problem, entry.problem_kind = _describe(error), "plugin"
        _state.broken.append(entry)
        return
    for info in infos:
        register(info, entry.distribution, entry.version)


def _ask(point: EntryPoint) -> list[BackendInfo]:
    """Load one entry point and return what its hook offers, with a manager of its own so that nothing leaks."""
    manager = pluggy.PluginManager("mortice")
    manager.add_hookspecs(Spec)
    plugin = point.load()
    manager.register(plugin, name=point.name)
    manager.check_pending()
    if not manager.hook.mortice_backends.get_hookimpls():
        near = [n for n in dir(plugin) if n.startswith("mortice_")]
        hint = f" It defines {', '.join(near)}." if near else ""
        raise PluginError(f"no @hookimpl function is called mortice_backends.{hint} See mortice.backends.hookimpl.")
    found: list[BackendInfo] = []
    for offered in manager.hook.mortice_backends():
        for info in offered if isinstance(offered, (list, tuple)) else [offered]:
            if not isinstance(info, BackendInfo):
                raise PluginError(f"mortice_backends must return BackendInfo; got {type(info).__name__}.")
            found.append(info)
    if not found:
        raise PluginError("mortice_backends returned nothing; expected a list of BackendInfo.")
    return found


def register(info: BackendInfo, distribution: str = "", version: str = "") -> None:
    """Add a backend; one that cannot be taken is listed as broken with the reason."""
    known = entries()
    entry = Entry(info.name, distribution, version, info)
    if info.name in known:
        first = known[info.name].distribution or "this program"
        entry.problem = f"the name {info.name!r} is already taken by {first}; the first one is kept."
    elif info.api != API:
        entry.problem = (
            f"written for api {info.api!r}, this mortice speaks api {API}. "
            f"Install a version of {distribution or info.name} made for it."
        )
    elif not info.device_types or not all(isinstance(t, str) and t.isidentifier() for t in info.device_types):
        entry.problem = f"device_types must be names such as ('cpu',); got {info.device_types!r}."
    if entry.problem:
        entry.problem_kind = "plugin"
        _state.broken.append(entry)
    else:
        known[info.name] = entry


def load(name: str) -> Backend:
    """Return the backend of that name, importing its array library at the first call.

    Raises:
        BackendNotFound: for an unknown name, or one that cannot be loaded; the text says why and what to install.
    """
    entry = entries().get(name)
    if entry is None:
        reason = "; ".join(f"{e.name}: {e.problem}" for e in broken() if e.name == name)
        raise BackendNotFound(
            f"backend {name!r}: expected one of {', '.join(sorted(entries())) or '(none installed)'}."
            + (f" It is installed but broken: {reason}" if reason else " Install one, e.g. pip install mortice[numpy].")
        )
    with entry.lock:
        if entry.backend is None and not entry.problem:
            assert entry.info is not None
            try:
                backend = entry.info.load()
                check_backend(backend, name)
                backend.name = name
                entry.backend = backend
            except Exception as error:
                entry.problem, entry.problem_kind = _describe(error), "load"
                entry.__dict__["cause"] = error
        if entry.backend is None:
            needs = entry.info.needs if entry.info else ""
            hint = f" (pip install {needs})" if needs else ""
            raise BackendNotFound(f"backend {name!r} failed to load: {entry.problem}{hint}.") from entry.__dict__.get(
                "cause"
            )
        return entry.backend


def list_backends() -> list[str]:
    """Return the names of the backends that plugins offer, best first."""
    return [e.name for e in _by_priority()]


def _by_priority() -> list[Entry]:
    return sorted(entries().values(), key=lambda e: (-(e.info.priority if e.info else 0), e.name))


# ---- choosing ----


def set_backend(name: str) -> None:
    """Choose the backend that serves new tensors in this process."""
    load(name)
    _state.chosen = name
    _CACHE.clear()


@contextlib.contextmanager
def use_backend(name: str) -> Iterator[Backend]:
    """Choose the backend of new tensors for a block, in this thread."""
    backend = load(name)
    before = _local.chosen
    _local.chosen = (*before, name)
    try:
        yield backend
    finally:
        _local.chosen = before


def default_backend() -> str:
    """Return the name of the backend that serves new tensors."""
    if _local.chosen:
        return _local.chosen[-1]
    if _state.chosen is None:
        wanted = os.environ.get("MORTICE_BACKEND")
        if wanted:
            load(wanted)
            _state.chosen = wanted
        else:
            _state.chosen = _best("cpu") or _best(None)
            if _state.chosen is None:
                raise BackendNotFound(
                    "mortice: no backend is installed that can be loaded"
                    + "".join(f"; {e.name}: {e.problem}" for e in [*entries().values(), *broken()] if e.problem)
                    + ". Install one, e.g. pip install mortice[numpy]."
                )
    return _state.chosen


def _best(device_type: str | None) -> str | None:
    """Return the loadable backend of the highest priority that claims the device type."""
    for entry in _by_priority():
        assert entry.info is not None
        # A negative priority is never chosen unasked: it marks backends for testing.
        if entry.info.priority < 0 or (device_type is not None and device_type not in entry.info.device_types):
            continue
        try:
            load(entry.name)
        except BackendNotFound as error:
            warnings.warn(f"{error} Trying the next backend.", RuntimeWarning, stacklevel=4)
            continue
        return entry.name
    return None


_CACHE: dict[Any, Device] = {}


def resolve(device: Any = None, backend: str | None = None) -> Device:
    """Return the Device, with a backend behind it, for what a user passed as `device=` or `backend=`."""
    if device is None and backend is None:
        if _local.devices:
            device = _local.devices[-1]
        elif _state.default_device is not None:
            device = _state.default_device
    if isinstance(device, Device) and device.backend is not None and backend in (None, device.backend.name):
        return device
    chosen = backend or default_backend()
    key = (str(device) if device is not None else None, chosen)
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = _resolve(device, chosen, backend is not None)
    return found


def _resolve(device: Any, chosen: str, explicit: bool) -> Device:
    if device is None:
        kernels = load(chosen)
        names = kernels.device_names()
        if not names:
            raise DeviceError(f"backend {chosen!r}: it offers no device here.")
        return kernels.device(names[0])
    wanted = Device(device)
    for name in [chosen] if explicit else [chosen, *(n for n in list_backends() if n != chosen)]:
        info = entries()[name].info
        if info is None or wanted.type not in info.device_types:
            continue
        try:
            kernels = load(name)
        except BackendNotFound:
            continue
        for offered in kernels.device_names():
            found = kernels.device(offered)
            if found.type == wanted.type and (wanted.index in (None, found.index) or (found.index, wanted.index) == (None, 0)):
                return found
    raise DeviceError(f"device '{wanted}': no backend offers it; {_available()}")


def _available() -> str:
    offered, failed = [], []
    for entry in _by_priority():
        try:
            offered += [f"{d} ({entry.name})" for d in load(entry.name).device_names()]
        except BackendNotFound:
            needs = f" (pip install {entry.info.needs})" if entry.info and entry.info.needs else ""
            failed.append(f"{entry.name} failed to load: {entry.problem}{needs}")
    failed += [f"{e.name}: {e.problem}" for e in broken()]
    return "; ".join([f"available: {', '.join(offered) or 'none'}", *failed]) + "."


def set_default_device(device: Any) -> None:
    """Choose the device of new tensors; None goes back to the backend's own default."""
    if device is not None:
        resolve(device)
    _state.default_device = None if device is None else str(device)


def get_default_device() -> Device:
    """Return the device of new tensors."""
    return resolve()


@contextlib.contextmanager
def use_device(device: Any) -> Iterator[None]:
    """Choose the device of new tensors for a block, in this thread."""
    resolve(device)
    before = _local.devices
    _local.devices = (*before, str(device))
    try:
        yield
    finally:
        _local.devices = before
