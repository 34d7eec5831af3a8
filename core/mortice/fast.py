"""The fast cases of the call path in C, where the optional extension module `mortice._engine` was built.

`core/accelerator/engine.c` says which these are. The Python functions stay what they were, decide everything else, and
serve alone where there is no compiler, or with MORTICE_PURE=1 in the environment.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from mortice.device import Device
from mortice.graph import next_seq
from mortice.modes import special
from mortice.node import _NOTHING, OpNode, record_one, record_two
from mortice.shape import SCALAR, SIZES
from mortice.tensor import Aliases, LeafState, Storage, TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_engine: Any = None
# The module counts on the interpreter's lock, and would bring it back to a build that runs without.
if not os.environ.get("MORTICE_PURE") and getattr(sys, "_is_gil_enabled", lambda: True)():
    try:
        _engine = import_module("mortice._engine")
    except ImportError:
        pass

SAME, TO_SCALAR, TWO, GETITEM = range(4)


def stand_before(kind: int, op: Any, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable that does the fast case of `fn` in C and calls it for every other; `fn` itself without C."""
    found: Callable[..., Any] = fn if _engine is None else _engine.fast(kind, op, fn, op.same_dtype)
    return found


def install(as_view: Any) -> Any:
    """Tell the module the classes whose slots it reads, and return `as_view` in C."""
    if _engine is None:
        return as_view
    _engine.install(
        TensorBase, Storage, Aliases, LeafState, Device, OpNode, special, SCALAR, next_seq, record_one, record_two, as_view,
        _NOTHING, SIZES,
    )  # fmt: skip
    return _engine.as_view
