"""Names that load what they stand for when they are first used, so that `import mortice` stays light.

In the body of a class, `unary = family("ops.unary")` stands for the module, and `exp = unary.exp` makes a `Lazy`
that gives way to the function at its first use. `catalog` lists which module has what, for those who look a name up.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as `typing` has it, whose import would cost as much as a third of everything else here
if TYPE_CHECKING:
    from typing import Any


class Lazy:
    """An attribute of a class that is imported when it is first asked for, and then takes this one's place."""

    __slots__ = ("module", "path", "made_into", "places")

    def __init__(self, module: str, path: str, made_into: Any = None) -> None:
        self.module, self.path, self.made_into = module, path, made_into
        self.places: list[tuple[type, str]] = []

    def then(self, made_into: Any) -> Lazy:
        """Return what stands for `made_into` of the same thing, such as `property`."""
        return Lazy(self.module, self.path, made_into)

    def __set_name__(self, owner: type, name: str) -> None:
        self.places.append((owner, name))

    def load(self) -> Any:
        """Import and return what this stands for."""
        head, _, member = self.path.partition(".")
        found = getattr(import_module(self.module), head)
        found = vars(found)[member] if member else found
        return found if self.made_into is None else self.made_into(found)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        found = self.load()
        for place, name in self.places:
            setattr(place, name, found)
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, instance, owner)


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
    if module == "mortice.":
        try:
            return import_module(f"mortice.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"mortice.{name}":
                raise
            raise AttributeError(
                f"mortice.{name} is a distribution of its own, and not installed. Run: pip install 'mortice[{name}]'"
            ) from None
    found = import_module(module)
    return getattr(found, name) if hasattr(found, name) else import_module(f"{module}.{name}")
