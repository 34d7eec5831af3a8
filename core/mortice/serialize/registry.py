"""What files may name besides tensors and plain values: classes and functions that the user vouches for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mortice.lazy import behind

_allowed: dict[str, Any] = {}


class Known:
    """A name that a file may call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def _named(item: Any) -> tuple[str, Any]:
    item = behind(item)
    if isinstance(item, tuple):
        if len(item) != 2 or not isinstance(item[1], str):
            raise ValueError(
                f"add_safe_globals: expected a class, a function, or a pair (object, 'module.name'); got {item!r}."
            )
        return item[1], behind(item[0])
    module, name = getattr(item, "__module__", None), getattr(item, "__qualname__", None)
    if not module or not name:
        raise ValueError(
            f"add_safe_globals: expected a class or a function, which has a name; got {item!r}. Pass a pair "
            "(object, 'module.name')."
        )
    return f"{module}.{name}", item


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Let `load` make objects of these classes, and call these functions, where a file asks for them.

    Each is a class or a function, or a pair of it and the full name that files use for it.
    """
    _allowed.update(map(_named, safe_globals))


def get_safe_globals() -> list[Any]:
    """Return what `add_safe_globals` has been given."""
    return [item if _same(name, item) else (item, name) for name, item in _allowed.items()]


def _same(name: str, item: Any) -> bool:
    return name == f"{getattr(item, '__module__', None)}.{getattr(item, '__qualname__', None)}"


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` has been given."""
    _allowed.clear()


class safe_globals:
    """Vouch for classes and functions while a block runs."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self._items = list(safe_globals)

    def __enter__(self) -> None:
        self._before = dict(_allowed)
        add_safe_globals(self._items)

    def __exit__(self, *exc: object) -> None:
        clear_safe_globals()
        _allowed.update(self._before)


def find_allowed(name: str) -> Any:
    """Return what the user vouched for under that full name, None if nothing."""
    return _allowed.get(name)


def is_allowed(item: Any) -> bool:
    """Tell whether the user vouched for it."""
    return any(behind(item) is a for a in _allowed.values())
