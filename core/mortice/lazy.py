"""Names that load what they stand for when they are first used, so that `import mortice` stays light.

In the body of a class, `unary = family("ops.unary")` stands for the module, and `exp = unary.exp` makes a `Lazy`
that gives way to the function at its first use. `catalog` lists which module has what, for those who look a name up.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as `typing` has it, whose import would cost as much as a third of everything else here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Lazy:
    """An attribute of a class that is imported when it is first asked for, and then takes this one's place."""

    __slots__ = ("module", "path", "made_into", "places")

    def __init__(self, module: str, path: str, made_into: Any = None) -> None:
        self.module, self.path, self.made_into = module, path, made_into
        self.places: list[tuple[type, str]] = []

    def then(self, made_into: Any) -> Lazy:
        """Return what stands for `made_into` of the same thing."""
        return Lazy(self.module, self.path, made_into)

    def as_property(self, made_into: Any = property) -> Lazy:
        """Return what stands for the property that `made_into` makes of the same thing."""
        return LazyProperty(self.module, self.path, made_into)

    def __set_name__(self, owner: type, name: str) -> None:
        self.places.append((owner, name))

    def load(self) -> Any:
        """Import and return what this stands for."""
        head, _, member = self.path.partition(".")
        found = getattr(_installed(self.module), head)
        found = vars(found)[member] if member else found
        return _guarded(found) if self.made_into is None else self.made_into(found)

    def settle(self) -> Any:
        """Load what this stands for, put it in its places, and return it; once, since `load` may make it anew."""
        if self.places and vars(self.places[0][0])[self.places[0][1]] is not self:
            return vars(self.places[0][0])[self.places[0][1]]
        found = self.load()
        for place, name in self.places:
            setattr(place, name, found)
        return found

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        found = self.settle()
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, instance, owner)


class LazyProperty(Lazy):
    """A property: it is also loaded when it is first assigned to, which would else give the instance an attribute."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        self.__get__(None, type(instance))
        setattr(instance, self.places[0][1], value)


class StandIn:
    """Stands for a function of a public namespace and does something first; `__wrapped__` is the function."""

    __wrapped__: Any


def behind(value: Any) -> Any:
    """Return the function that a `StandIn` stands for; anything else as it is."""
    return value.__wrapped__ if isinstance(value, StandIn) else value


class family:
    """Stands for a module: in the body of a class its attributes are Lazy."""

    def __init__(self, module: str) -> None:
        self.__name__ = f"mortice.{module}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Lazy(self.__name__, name)


def look_up(listed: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return where each name is, (module, name there), from the names of each module."""
    found = {}
    for module, names in listed.items():
        for name in names.split():
            shown, _, own = name.partition("=")
            found[shown] = f"mortice.{module}", own or shown
    return found


def load(module: str, name: str) -> Any:
    """Import what a module has of that name, a module of its own perhaps."""
    if module.endswith("."):
        return _installed(f"{module}{name}")
    found = import_module(module)
    return _guarded(getattr(found, name)) if hasattr(found, name) else import_module(f"{module}.{name}")


def _installed(module: str) -> Any:
    """Import the module that an attribute is in; what a distribution has that is not installed is no attribute."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("mortice-"):  # see `addresses`
            raise
        raise AttributeError(str(error)) from None


def _guarded(value: Any) -> Any:
    return import_module("mortice.misuse").guarded(value)  # which stands above ops, and they above this


def absent(module: str, error: type[Exception]) -> Callable[[str], Callable[..., Any]]:
    """Return the `__getattr__` of a device's module that no backend offers: functions that are not there raise when called."""

    def get(name: str) -> Callable[..., Any]:
        if name.startswith("_") or not name.islower():
            raise AttributeError(f"module 'mortice.{module}' has no attribute {name!r}")

        def call(*args: Any, **kwargs: Any) -> Any:
            raise error(f"{module}.{name}: no backend offers this device. Ask {module}.is_available() first.")

        return call

    return get
