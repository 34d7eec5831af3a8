"""Notes about objects that must not be kept alive by them: tensors, modules, optimisers, loaders."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any


class Notes:
    """A note for each object, by its identity, that goes when the object goes.

    Unlike WeakKeyDictionary it asks no object whether it equals another: of tensors that is a tensor.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, thing: Any, note: Any) -> None:
        key = id(thing)
        kept = self._kept
        self._kept[key] = weakref.ref(thing, lambda _: kept.pop(key, None)), note

    def get(self, thing: Any, default: Any = None) -> Any:
        """Return the note of an object."""
        found = self._kept.get(id(thing))
        return default if found is None or found[0]() is not thing else found[1]

    def setdefault(self, thing: Any, default: Any) -> Any:
        """Return the note of an object, which is from now on `default` if it had none."""
        found = self.get(thing, self)
        if found is self:
            self[thing] = found = default
        return found

    def pop(self, thing: Any, default: Any = None) -> Any:
        """Take the note of an object away and return it."""
        found = self.get(thing, default)
        self._kept.pop(id(thing), None)
        return found

    def __contains__(self, thing: Any) -> bool:
        return self.get(thing, self) is not self

    def __len__(self) -> int:
        return len(self._kept)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yield (object, note) of what is still there."""
        for ref, note in list(self._kept.values()):
            thing = ref()
            if thing is not None:
                yield thing, note

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
