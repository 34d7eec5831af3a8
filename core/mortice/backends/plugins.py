"""Finding backends: the hook, isolated discovery of entry points, and who serves new tensors.

pluggy isolates nothing by itself, so each entry point is loaded, registered and asked on its own; what goes wrong with
one is kept as its reason and shown by `python -m mortice backends`. Nothing here runs at `import mortice`, and pluggy
is imported at the first need.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import namedtuple
from types import FunctionType

from mortice.backends import installed
from mortice.backends.backend import Backend, check_backend
from mortice.device import TYPES, Device, watching
from mortice.device import chosen as _local
from mortice.dtype import CLASS_NAMES
from mortice.errors import BackendNotFound, DeviceError, PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mortice.backends.installed import Point

API = 1
GROUP = "mortice"
HOOK = "mortice_backends"
MARK = "mortice_hook"


class BackendInfo(namedtuple("BackendInfo", "name device_types load priority needs api", defaults=(0, "", API))):
    """What a plugin offers; cheap to make, the array library is imported by `load`.

    Attributes:
        name: the name for `set_backend`.
        device_types: such as ("cpu",) or ("cuda",); a type of its own is welcome.
        load: returns the Backend; called once, at the first need.
        priority: among backends of one device type the highest serves by default; one below 0 only when asked for.
        needs: what to install when `load` fails, as a pip requirement.
        api: the version of the boundary that the plugin was written for.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        name: str
        device_types: tuple[str, ...]
        load: Callable[[], Backend]
        priority: int
        needs: str
        api: int


def hookimpl(function: Any = None, **options: Any) -> Any:
    """Mark a plugin's function `mortice_backends` as the hook's implementation."""
    if function is not None and not options:
        setattr(function, MARK, True)  # pluggy's own mark follows if pluggy is needed: see `_ask`
        return function
    import pluggy

    return pluggy.HookimplMarker("mortice")(function, **options)


class Entry:
    """A discovered backend, or a plugin that could not be used, and what became of it."""

    def __init__(self, name: str, distribution: str = "", version: str = "", info: BackendInfo | None = None) -> None:
        self.name, self.distribution, self.version, self.info = name, distribution, version, info
        self.backend: Backend | None = None
        self.loading = False
        self.problem = ""
        self.problem_kind = ""  # "plugin" when discovery failed, "load" when load() did

    @property
    def priority(self) -> int:
        """The priority that the plugin asks for."""
        return self.info.priority if self.info else 0

    @property
    def hint(self) -> str:
        """What to install, in brackets; empty when the plugin does not say."""
        return f" (pip install {self.info.needs})" if self.info and self.info.needs else ""


class _State:
    """What is known of the process's plugins; `entries` is None until they have been looked for."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] | None = None
        self.broken: list[Entry] = []
        self.discovering = False
        self.chosen: str | None = None
        self.default_device: str | None = None


_state = _State()
# One lock for discovery and loading: a plugin may ask for another backend while it loads its own.
_lock = threading.RLock()


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # an exception of a plugin may fail to print itself
        text = "(no text)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _load_meta() -> Backend:
    from mortice.backends.meta import MetaBackend

    return MetaBackend()


# The device without elements comes with the core. It is no place to compute, so it is listed nowhere and must be named.
_META = Entry("meta", "mortice", info=BackendInfo("meta", ("meta",), _load_meta, priority=-1))


# ---- discovery ----


def entries() -> dict[str, Entry]:
    """Return the working plugins' backends by name, discovering them at the first call."""
    found = _state.entries
    if found is None or _state.discovering:
        with _lock:
            if _state.entries is None:
                _state.entries, _state.broken, _state.discovering = {}, [], True
                try:
                    _discover()
                except BaseException:  # only an interrupt comes this far; the next need starts afresh
                    _state.entries = None
                    raise
                finally:
                    _state.discovering = False
            found = _state.entries
    return found


def broken() -> list[Entry]:
    """Return the plugins that could not be used, each with its reason."""
    entries()
    return _state.broken


def _discover() -> None:
    """Ask every plugin, in the order of their names so that who comes first does not depend on the disk."""
    for point, distribution, version in sorted(_points(), key=lambda p: (p[0].name, p[0].value)):
        try:
            offers = _ask(point)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: whatever a plugin does wrong stays its own problem
            _reject(Entry(point.name, distribution, version), _describe(error))
            continue
        for offer in offers:
            if isinstance(offer, BackendInfo):
                register(offer, distribution, version)
            else:
                got = "None" if offer is None else "[]" if offer == () else type(offer).__name__
                _reject(
                    Entry(point.name, distribution, version),
                    f"{HOOK} must return a list of BackendInfo; got {got}.",
                )


def _points() -> list[tuple[Point, str, str]]:
    """Return the entry points of the group with their distributions' names and versions, each distribution on its own."""
    found: list[tuple[Point, str, str]] = []
    seen: set[str] = set()
    for dist in installed.distributions():
        try:
            if f"[{GROUP}]" not in dist.read("entry_points.txt").replace(" ", ""):
                continue
        except Exception:  # unreadable metadata of a package that need not be a plugin at all
            continue
        name, version = dist.identity()
        if name and name in seen:  # the same distribution further down the path is shadowed
            continue
        seen.add(name)
        try:
            found += [(point, name, version) for point in dist.points(GROUP)]
        except Exception as error:
            _reject(Entry(name or "(unnamed)", name, version), f"entry_points.txt cannot be read: {_describe(error)}.")
    return found


def _ask(point: Point) -> list[Any]:
    """Load one entry point and return what its hook offers.

    A module with nothing but the hook, as `hookimpl` marks it, is called here: to import pluggy would take longer than
    all the rest. Everything else is pluggy's to judge.
    """
    plugin = point.load()
    members = [v for holder in (plugin, *type(plugin).__mro__) for v in getattr(holder, "__dict__", {}).values()]
    marked = [v for v in members if type(v) is FunctionType and not v.__dict__.keys().isdisjoint(("mortice_impl", MARK))]
    given: Any
    if [(v.__name__, v.__dict__, v.__code__.co_argcount) for v in marked] == [(HOOK, {MARK: True}, 0)]:
        given = [marked[0]()]
    else:
        given = _ask_by_pluggy(plugin, point.name, marked)
    offers: list[Any] = []
    for offer in given or [None]:  # pluggy drops None
        # A BackendInfo is a tuple itself.
        single = isinstance(offer, BackendInfo) or not isinstance(offer, (list, tuple))
        offers += [offer] if single else offer or [()]
    return offers


def _ask_by_pluggy(plugin: Any, name: str, marked: list[Any]) -> Any:
    """Call a plugin's hook through a manager of its own, so that nothing leaks."""
    import pluggy

    for function in marked:
        if function.__dict__.pop(MARK, False):
            pluggy.HookimplMarker("mortice")(function)

    class Spec:
        """The one hook."""

        @pluggy.HookspecMarker("mortice")
        def mortice_backends(self) -> Any:
            """Return the backends of this plugin, as a list of BackendInfo or one BackendInfo."""

    manager = pluggy.PluginManager("mortice")
    manager.add_hookspecs(Spec)
    manager.register(plugin, name=name)
    hook = getattr(manager.hook, HOOK)
    if not hook.get_hookimpls():
        raise PluginError(_no_hook(plugin, manager))
    manager.check_pending()
    return hook()


def _no_hook(plugin: Any, manager: Any) -> str:
    """Say what is wrong with a plugin in which no hook was found."""
    recipe = f"Write `@hookimpl def {HOOK}()`, with `from mortice.backends import hookimpl`."
    if callable(getattr(plugin, HOOK, None)):
        return f"{HOOK} is there, but not marked as a hook. {recipe}"
    marked = sorted(name for name in vars(manager.hook) if name != HOOK and not name.startswith("_"))
    near = marked or sorted(n for n in dir(plugin) if n.startswith("mortice"))
    return f"no hook is called {HOOK}" + (f"; it has {', '.join(near)}" if near else "") + f". {recipe}"


def _reject(entry: Entry, problem: str) -> None:
    entry.problem, entry.problem_kind = problem, "plugin"
    _state.broken.append(entry)


def register(info: BackendInfo, distribution: str = "", version: str = "") -> None:
    """Add a backend; one that cannot be taken is listed as broken with the reason."""
    with _lock:
        known = entries()
        entry = Entry(str(info.name), distribution, version, info)
        problem = _fault(info, known, distribution)
        if problem:
            _reject(entry, problem)
        else:
            known[info.name] = entry
            _CACHE.clear()


def _fault(info: BackendInfo, known: dict[str, Entry], distribution: str) -> str:
    """Return what is wrong with an offer, empty when it can be taken."""
    if not isinstance(info.name, str) or not info.name:
        return f"BackendInfo.name must be a name such as 'my_backend'; got {info.name!r}."
    # The version first: another one may mean other fields.
    if info.api != API:
        return (
            f"written for api {info.api!r}; this mortice speaks api {API}. "
            f"Install a version of {distribution or info.name} made for it."
        )
    if info.name in known:
        first = known[info.name].distribution or "this program"
        return f"the name {info.name!r} is already taken by {first}; the first one is kept. Uninstall one of them."
    types = info.device_types
    if not isinstance(types, (tuple, list)) or not types or not all(isinstance(t, str) and t.isidentifier() for t in types):
        return f"BackendInfo.device_types must be names such as ('cpu',); got {types!r}."
    if not callable(info.load):
        return f"BackendInfo.load must be a function that returns the backend; got {info.load!r}."
    if not isinstance(info.priority, (int, float)):
        return f"BackendInfo.priority must be a number; got {info.priority!r}."
    return ""


# ---- loading ----


def load(name: str) -> Backend:
    """Return the backend of that name, importing its array library at the first call.

    Raises:
        BackendNotFound: for an unknown name, or one that cannot be loaded; the text says why and what to install.
    """
    entry = entries().get(name) or (_META if name == "meta" else None)
    if entry is None:
        raise BackendNotFound(_unknown(name))
    if entry.backend is not None:
        return entry.backend
    with _lock:
        cause = None if entry.backend is not None or entry.problem else _load(entry)
        if entry.backend is None:
            try:
                raise BackendNotFound(f"backend {name!r} failed to load: {_because(entry)}.") from cause
            finally:
                del cause  # its traceback leads to this frame: a circle, that only the collector would open
        return entry.backend


def _load(entry: Entry) -> BaseException | None:
    """Load a backend; return what went wrong.

    The entry keeps the words alone: an error's traceback keeps every frame that was active, and so what the caller's
    variables hold.
    """
    if entry.loading:
        raise PluginError(f"backend {entry.name!r}: it was asked for by its own load(). Make no tensors there.")
    assert entry.info is not None
    entry.loading = True
    try:
        backend = entry.info.load()
        check_backend(backend, entry.name, entry.info.device_types)
        if any(other.backend is backend for other in entries().values()):
            raise PluginError(f"backend {entry.name}: load() returned a backend that another name has. Make one for each.")
        backend.name = entry.name
        from mortice.settings import follow_threads  # not before a backend is needed

        follow_threads(backend.set_num_threads)
        entry.backend = backend
        for watcher in watching:
            watcher.adopt(backend)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        entry.problem, entry.problem_kind = _describe(error), "load"
        return error
    finally:
        entry.loading = False
    return None


def _because(entry: Entry) -> str:
    return entry.problem.rstrip(".") + entry.hint


def _unknown(name: Any) -> str:
    """Say that no backend has that name, and what can be done about it."""
    names = sorted(entries())
    text = f"backend {name!r}: expected one of {', '.join(names) or '(none installed)'}."
    reasons = [f"{e.name}: {_because(e)}" for e in broken() if e.name == name]
    if reasons:
        return f"{text} It is installed but broken: {'; '.join(reasons)}."
    from difflib import get_close_matches

    near = get_close_matches(str(name), names, 1)
    if near:
        return f"{text} Did you mean {near[0]!r}?"
    return f"{text} Install the plugin that brings it" + ("." if names else ", e.g. pip install mortice[numpy].")


def list_backends() -> list[str]:
    """Return the names of the backends that plugins offer, best first; importing no array library."""
    return [e.name for e in _by_priority()]


def _by_priority() -> list[Entry]:
    return sorted(entries().values(), key=lambda e: (-e.priority, e.name))


# ---- choosing ----


def set_backend(name: str) -> None:
    """Choose the backend that serves new tensors in this process."""
    load(name)
    _state.chosen = name


@contextlib.contextmanager
def use_backend(name: str) -> Iterator[Backend]:
    """Choose the backend of new tensors for a block, in this thread."""
    backend = load(name)
    before = _local.backends
    _local.backends = (*before, name)
    try:
        yield backend
    finally:
        _local.backends = before


def default_backend() -> str:
    """Return the name of the backend that serves new tensors."""
    if _local.backends:
        return _local.backends[-1]
    found = _state.chosen
    if found is None:
        with _lock:
            if _state.chosen is None:
                _state.chosen = _choose()
            found = _state.chosen
    return found


def _choose() -> str:
    """Find who serves new tensors when the program has not said: the environment, else the best for the CPU."""
    wanted = os.environ.get("MORTICE_BACKEND")
    if wanted:
        try:
            load(wanted)
        except BackendNotFound as error:
            raise BackendNotFound(f"{error} It was chosen by MORTICE_BACKEND={wanted}.") from error.__cause__
        return wanted
    found = _best("cpu") or _best(None)
    if found is None:
        reasons = [f"{e.name}: {_because(e)}" for e in [*entries().values(), *broken()] if e.problem]
        raise BackendNotFound(
            "mortice: no backend can serve new tensors"
            + "".join(f"; {reason}" for reason in reasons)
            + ". Install one, e.g. pip install mortice[numpy]."
        )
    return found


def _best(device_type: str | None) -> str | None:
    """Return the loadable backend of the highest priority that claims the device type."""
    for entry in _by_priority():
        assert entry.info is not None
        # A negative priority is never chosen unasked: it marks backends for testing.
        if entry.priority < 0 or (device_type is not None and device_type not in entry.info.device_types):
            continue
        try:
            if load(entry.name).device_names():
                return entry.name
        except BackendNotFound as error:
            from mortice.notice import warn

            warn(f"{error} Trying the next backend.", RuntimeWarning)
    return None


_CACHE: dict[Any, Device] = {}


def resolve(device: Any = None, backend: str | None = None) -> Device:
    """Return the Device, with a backend behind it, for what a user passed as `device=` or `backend=`."""
    if device is None and backend is None:
        if not _local.devices and _state.default_device is None and not _local.backends:
            found = _CACHE.get(_state.chosen)  # the usual case
            if found is not None:
                return found
        if _local.devices:
            device = _local.devices[-1]
        elif _state.default_device is not None:
            device = _state.default_device
        else:
            name = default_backend()
            found = _CACHE.get(name)
            if found is None:
                found = _CACHE[name] = _resolve(None, name, False)
            return found
    if device is None and (found := _CACHE.get(backend)) is not None:
        return found
    if isinstance(device, Device) and device.backend is not None and backend in (None, device.backend.name):
        return device if device.base is device else device.of_values
    name = backend or default_backend()
    key = (None if device is None else str(device), name, backend is not None)
    if _local.current and device is not None:
        wanted = Device(device)
        if wanted.index is None and wanted.type in _local.current:
            device = Device(wanted.type, _local.current[wanted.type])
            key = (str(device), *key[1:])
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = _resolve(device, name, backend is not None)
    return found


def _resolve(device: Any, name: str, explicit: bool) -> Device:
    kernels = load(name)
    if device is None:
        names = kernels.device_names()
        if not names:
            raise DeviceError(f"backend {name!r}: it offers no device here.")
        return kernels.device(names[0])
    wanted = Device(device)
    if explicit:
        found = _offered(kernels, wanted)
        if found is None:
            raise DeviceError(
                f"device '{wanted}': backend {name!r} does not offer it; available: {', '.join(kernels.device_names()) or 'none'}."
            )
        return found
    for entry in (*sorted(_by_priority(), key=lambda e: e.name != name), _META):
        assert entry.info is not None
        if wanted.type in entry.info.device_types:
            try:
                found = _offered(load(entry.name), wanted)
            except BackendNotFound:  # told below, with everything else that is broken
                continue
            if found is not None:
                return found
    advice = "" if wanted.type in _claimed() else f" Use one of these, or install the plugin that offers {wanted.type!r}."
    raise DeviceError(f"device '{wanted}': no backend offers it; {_available()}.{advice}")


def _offered(kernels: Backend, wanted: Device) -> Device | None:
    """Return the backend's device that is meant; index 0 and no index mean the same where only one is offered."""
    for name in kernels.device_names():
        found = kernels.device(name)
        if found.type == wanted.type and (wanted.index in (None, found.index) or (found.index, wanted.index) == (None, 0)):
            return found
    return None


def _available() -> str:
    """List the devices that exist, then what is broken and what to install."""
    offered: dict[str, None] = {}
    failed = []
    for entry in _by_priority():
        try:
            # What is kept for testing does not count as available until somebody has asked for it.
            if entry.priority >= 0 or entry.backend is not None:
                offered.update(dict.fromkeys(load(entry.name).device_names()))
        except BackendNotFound:
            failed.append(f"{entry.name} failed to load: {_because(entry)}")
    failed += [f"{e.name} is broken: {_because(e)}" for e in broken()]
    return "; ".join([f"available: {', '.join(offered) or 'none'}", *failed])


def _claimed(least: float = float("-inf")) -> list[str]:
    """Return the types of devices that plugins of at least this priority claim."""
    return [t for entry in _by_priority() if entry.info and entry.priority >= least for t in entry.info.device_types]


def _unclaimed(device_type: str) -> DeviceError | None:
    if _state.discovering or device_type in _claimed():
        return None
    names = ", ".join(dict.fromkeys((*TYPES, *_claimed(0))))  # without what is kept for testing
    text = f"device: Expected one of {names} device type at start of device string: {device_type}"
    if device_type in CLASS_NAMES:
        return DeviceError(f"{text}. That names a dtype: use mortice.{device_type}.")
    return DeviceError(f"{text}; {_available()}. Use one of these, or install the plugin that offers {device_type!r}.")


Device.unclaimed = staticmethod(_unclaimed)


def devices_of(device_type: str) -> list[Device]:
    """Return the devices of a type that the best backend which has any offers; empty when there is none."""
    for entry in sorted(_by_priority(), key=lambda e: e.name not in _local.backends and e.name != _state.chosen):
        assert entry.info is not None
        if device_type in entry.info.device_types:
            try:
                kernels = load(entry.name)
            except BackendNotFound:
                continue
            found = [d for d in map(kernels.device, kernels.device_names()) if d.type == device_type]
            if found:
                return found
    return []


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
