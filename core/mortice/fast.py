"""The fast cases of the call path in C, where the optional extension module `mortice._engine` was built.

`core/accelerator/engine.c` repeats what `call.unary`, `call.binary` and their like, `call.as_view`, `node.record`,
`record_one` and `record_two`, `OpNode.pull` and `owns`, `graph.give_slots`, `ops.index.getitem`, `tensor.make`,
`TensorBase.own_storage`, `_share`, `size`, `data` and `_accumulate`, `Size.__getitem__`, `ops.random._draw` and `_moved`,
`ops.random_fill._fill`, `ops.arguments.numpy_names`, `modes.autocasting`, and `mutation.quickly`, `directly`, `write` and
`plain` do in the usual case.
The Python functions decide everything else, and serve alone where there is no compiler, or with MORTICE_PURE=1 in the
environment. tests/test_fast*.py compare the two.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from mortice import graph, node, tensor
from mortice.device import Device
from mortice.dtype import DType
from mortice.graph import Slot, next_seq
from mortice.modes import beneath, modes, special
from mortice.node import _NOTHING, Const, Meta, OpNode, raw_algebra, record, record_one, record_two, unbroadcast
from mortice.rules import same
from mortice.shape import MEMBERS, SIZES, Size, broadcast, remembered
from mortice.tensor import Aliases, LeafState, Storage, TensorBase, _nobody

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VERSION = 17  # of what the module does: raised with engine.c's when the functions that it repeats change
ONE, ATTRIBUTES, VIEW, TWO, ANY, GETITEM, INTO = range(7)  # which function it stands before

_engine: Any = None  # the module while it serves
replaced: dict[str, Any] = {}  # methods and properties in Python whose place it has taken
# It counts on the interpreter's lock, and would bring it back to a build that runs without.
if not os.environ.get("MORTICE_PURE") and getattr(sys, "_is_gil_enabled", lambda: True)():
    try:
        _engine = import_module("mortice._engine")
    except ImportError:  # not built
        pass


def _slots(cls: type) -> set[str]:
    return {name for c in cls.__mro__ for name in c.__dict__.get("__slots__", ()) if not name.startswith("__")}


def _install(op: type, as_view: Any) -> None:
    """Tell the module the classes and objects that it shares with the Python functions.

    Raises:
        TypeError: when it was built for others.
    """
    if _engine.VERSION != VERSION:
        raise TypeError(f"it is version {_engine.VERSION}, and this needs {VERSION}")
    classes = (TensorBase, Storage, Aliases, LeafState, Device, DType, OpNode, Const, op, Size, Slot)
    for cls, known in zip(classes, _engine.known_slots()):
        if cls in (TensorBase, Storage, Aliases, OpNode, Const, Slot) and known != _slots(cls):  # those of which it makes objects
            raise TypeError(f"{cls.__name__} has other slots: {', '.join(sorted(known ^ _slots(cls)))}")
    objects = (
        special, _NOTHING, SIZES, remembered, next_seq, record, record_one, record_two, as_view, broadcast,
        TensorBase.own_storage, TensorBase._share, _nobody, modes, Meta, same,
        OpNode.pull, OpNode.owns, TensorBase._accumulate, unbroadcast, raw_algebra, tensor._adding, MEMBERS, _own_names,
    )  # fmt: skip
    for made in _engine.install(classes, objects):
        replaced[made.__name__] = getattr(made.__objclass__, made.__name__)
        setattr(made.__objclass__, made.__name__, made)
    TensorBase._grad = TensorBase.grad
    for module in (tensor, node, sys.modules[as_view.__module__]):  # the others import it after this
        vars(module)["make"] = _engine.make
        if module is not tensor:
            vars(module)["record"] = _engine.record
    replaced["give_slots"] = graph.give_slots
    for module in (graph, node):
        vars(module)["give_slots"] = _engine.give_slots


def _own_names(fn: Any, names: tuple[str, ...]) -> tuple[str, ...] | None:
    if fn.__module__.startswith("mortice.nn."):  # which PyTorch has in Python
        return None
    found: tuple[str, ...] | None = import_module("mortice.misuse").own_names(fn, names)
    return found


def install(op: type, as_view: Any) -> Any:
    """Make the module serve ops of that class; return its `as_view`, or the one given where it does not serve."""
    global _engine
    if _engine is not None:
        try:
            _install(op, as_view)
            return _engine.as_view
        except (TypeError, AttributeError) as error:
            _engine = None
            import warnings

            warnings.warn(
                f"mortice._engine does not fit this mortice and is not used: {error}. Install mortice anew.",
                RuntimeWarning,
                stacklevel=2,
            )
    return as_view


def serves() -> bool:
    """Tell whether the module was built, fits, and is not left out."""
    return _engine is not None


def stand_before(kind: int, op: Any, fn: Callable[..., Any], shape: Any = None, operands: Any = None) -> Callable[..., Any]:
    """Return a callable that does the fast case of `fn` in C and calls it for every other; `fn` itself without C.

    `shape` is the result's, or the rule for it; None stands for the operand's own. Of INTO it is `mutation.landed`, and
    `operands` may find an op and its operands for the arguments.
    """
    found: Callable[..., Any] = fn if _engine is None else _engine.fast(kind, op, fn, shape, operands)
    return found


def writes(write: Callable[..., Any], plain: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what does as these of `mutation`, the usual case in C."""
    if _engine is None:
        return write, plain
    replaced["write"], replaced["plain"] = write, plain
    _engine.write_in_python(write, plain)
    return _engine.write, _engine.plain


def guard(fn: Callable[..., Any], explain: Callable[..., Any], ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable that lets `ask` answer for classes that are no tensors, and asks `explain` for a better error.

    `fn` itself without C.

    In Python that would be a frame more, of time and in tracebacks, and where warnings say that they come from.
    """
    found: Callable[..., Any] = fn if _engine is None else _engine.guard(fn, explain, ask, *beneath.get(fn, ()))
    return found


def asking(fn: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable that is `method` where an argument is of a class that takes calls over, else `fn`; `method` without C."""
    return method if _engine is None else _engine.asking(fn, method)
