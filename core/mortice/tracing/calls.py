"""Watching chosen ops at the level of tensors: what each call was given, as its caller gave it, and what came of it.

Unlike `watch`, which tells of kernels and buffers, it costs something for the ops that are named and nothing for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mortice.modes import modes
from mortice.op import OPS

Observer = Callable[[str, tuple[Any, ...], dict[str, Any], Any], None]
_observers: dict[str, tuple[Observer, ...]] = {}


def _tell(op: Any, operands: Any, attributes: dict[str, Any], result: Any) -> None:
    if modes.running is not None:  # a gradient formula of the running backward
        return
    for observer in _observers.get(op.name, ()):
        observer(op.name, tuple(operands), attributes, result)


def observe(names: Iterable[str], observer: Observer) -> Callable[[], None]:
    """Call `observer(name, operands, attributes, result)` after each call of those ops; return what ends it.

    Raises:
        ValueError: when there is no op of such a name, or it is a view.
    """
    names = tuple(dict.fromkeys(names))
    for name in names:
        if name not in OPS or OPS[name].view:
            raise ValueError(f"observe: expected names of ops that are no views; got {name!r}.")
    for name in names:
        _observers[name] = (*_observers.get(name, ()), observer)
        OPS[name].observe(_tell)

    def end() -> None:
        for name in names:
            left = tuple(o for o in _observers.get(name, ()) if o is not observer)
            if left:
                _observers[name] = left
            elif _observers.pop(name, None) is not None:
                OPS[name].observe(None)

    return end
