"""The handle of hooks that live in dictionaries, a module's and an optimizer's among them."""

from __future__ import annotations

import itertools
from typing import Any


class RemovableHandle:
    """Removes a hook again; also a context manager.

    Args:
        hooks_dict: the hooks by `id`; whoever makes the handle puts the hook there.
        extra_dict: a dictionary, or a list of them, whose entries of that id go with the hook.
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(self._ids)
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self._tables = [hooks_dict, *extra]

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        for table in self._tables:
            table.pop(self.id, None)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


__all__ = ["RemovableHandle"]
