"""from_namespace: a backend from an array-API namespace, in one line."""

from __future__ import annotations

from mortice.backends import plugins
from mortice.backends.backend import REQUIRED_COMPLEX, REQUIRED_NAMES, Backend, check_backend
from mortice.backends.inspection import title
from mortice.backends.namespace import NamespaceBackend
from mortice.errors import PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def from_namespace(
    xp: Any,
    name: str | None = None,
    *,
    devices: Mapping[str, Any] | None = None,
    mutable: bool | None = None,
    kernels: Mapping[str, Callable[..., Any]] | None = None,
    priority: int = 0,
    register: bool = True,
) -> NamespaceBackend:
    """Make a backend of an array-API namespace, ready for `use_backend`, `set_backend` and `.to(backend=...)`.

    Args:
        xp: the namespace, such as `array_api_strict` or `jax.numpy`. A library whose main module is not one, such as
            `torch`, is taken through array-api-compat.
        name: what it is selected by; the library's name by default.
        devices: mortice's device names -> the namespace's devices; asked of its inspection API by default.
        mutable: whether arrays are written in place; tried by default.
        kernels: functions of the library's own arrays that replace kernels, required or free, by name.
        priority: among backends of one device type the highest serves by default.
        register: whether it can be selected by name; a plugin's `load` says False, since discovery registers it.

    Returns:
        The backend. A second call with the same arguments gives the one that is there.
    """
    name = name or title(xp).partition(".")[0]
    made_of = (xp, name, dict(devices or {}), mutable, dict(kernels or {}), priority)
    known = plugins.entries().get(name) if register else None
    if known is not None and getattr(known.backend, "made_of", None) == made_of:
        return known.backend  # type: ignore[return-value]
    _check_names(kernels or {})
    backend = NamespaceBackend(smoothed(xp), None if devices is None else dict(devices), mutable, kernels or {})
    backend.name = name
    backend.made_of = made_of  # type: ignore[attr-defined]
    check_backend(backend, name)
    if register:
        _register(backend, priority)
    return backend


def smoothed(xp: Any) -> Any:
    """Return array-api-compat's namespace for a library that it knows, else the one that was given."""
    import importlib
    from types import ModuleType

    if not isinstance(xp, ModuleType):
        return xp  # somebody has put it together already
    try:
        return importlib.import_module(f"array_api_compat.{title(xp)}")
    except ImportError:
        return xp


def _check_names(kernels: Mapping[str, Any]) -> None:
    for name, function in kernels.items():
        if not callable(function):
            raise PluginError(f"from_namespace: kernels[{name!r}] must be a function; got {function!r}.")
        if name not in REQUIRED_NAMES + REQUIRED_COMPLEX and (name.startswith("_") or not hasattr(Backend, name)):
            from difflib import get_close_matches

            near = get_close_matches(name, [*REQUIRED_NAMES, *(n for n in dir(Backend) if not n.startswith("_"))], 1)
            raise PluginError(
                f"from_namespace: no kernel is called {name!r}"
                + (f"; did you mean {near[0]!r}?" if near else ". mortice.backends.Backend has them all.")
            )


def _register(backend: NamespaceBackend, priority: int) -> None:
    types = tuple(dict.fromkeys(d.partition(":")[0] for d in backend.device_names()))
    info = plugins.BackendInfo(backend.name, types, lambda: backend, priority)
    plugins.register(info)
    entry = plugins.entries().get(backend.name)
    if entry is None or entry.info is not info:
        problem = plugins.broken().pop().problem
        raise PluginError(f"from_namespace: {problem} Or choose another: from_namespace(xp, 'other_name').")
    plugins.load(backend.name)
