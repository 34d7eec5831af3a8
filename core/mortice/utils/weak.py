"""Dictionaries that do not keep their keys alive, which are told apart by identity: `==` of two tensors is a tensor."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that hashes as the identity of what it refers to, and equals another to the same living object."""

    __slots__ = ("_id",)

    def __new__(cls, key: Any, callback: Callable[[Any], Any] | None = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        # An object made later may have the same id, so that the ids do not say it.
        mine = self()
        return self is other or (mine is not None and isinstance(other, weakref.ref) and mine is other())


class WeakIdKeyDictionary(weakref.WeakKeyDictionary[Any, Any]):
    """Python's WeakKeyDictionary with keys told apart by identity, or as another `ref_type` tells them apart."""

    data: dict[Any, Any]

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        super().__init__(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        self._dirty_len = True
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what no weak reference can be made to
            return False

    def get(self, key: Any, default: Any = None) -> Any:
        return self.data.get(self.ref_type(key), default)

    def pop(self, key: Any, *default: Any) -> Any:
        self._dirty_len = True
        return self.data.pop(self.ref_type(key), *default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def update(self, other: Any = None, /, **kwargs: Any) -> None:
        for given in ({} if other is None else other, kwargs):
            for key, value in (given if hasattr(given, "items") else dict(given)).items():
                self[key] = value

    def copy(self) -> WeakIdKeyDictionary:
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        return type(self)({key: deepcopy(value, memo) for key, value in self.items()}, self.ref_type)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None


WeakTensorKeyDictionary = WeakIdKeyDictionary
TensorWeakRef = WeakIdRef
