"""Where the names of whole objects in files live here, PyTorch's too, and of which of mortice's classes `load` makes objects.

One rule: what PyTorch keeps in `torch.a.b.Name` is `Name` in mortice.a.b or in the nearest package above it that has it.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from mortice.lazy import behind
from mortice.serialize.machine import UnpicklingError
from mortice.serialize.registry import Known
from mortice.tensor import TensorBase

ROOTS = {"torch": "mortice", "mortice": "mortice", "torchvision": "mortice.vision"}
# What is defined there is imported for a file, and objects of its classes are made: it runs nothing of the file's.
_MADE = (
    "nn", "optim", "utils.data.dataset", "utils.data.sampler", "utils.data.distributed", "utils.hooks", "distributions",
    "return_types", "vision",
)  # fmt: skip
# Whose functions may be values; they are not called, and none of them reaches beyond tensors when somebody does.
_HELD = ("nn", "optim", "utils.data.collate", "distributions", "ops", "linalg", "fft", "special", "signal", "vision.ops")
# PyTorch's compiled functions name the part of it that holds them.
_COMPILED = {"_C._nn": "nn.functional", "_C._linalg": "linalg", "_C._special": "special", "_C._fft": "fft"}


def _is_in(module: str, places: tuple[str, ...]) -> bool:
    return any(module == f"mortice.{place}" or module.startswith(f"mortice.{place}.") for place in places)


def _imported(module: str) -> Any:
    """Return a module, imported if it is of those that a file may ask for; None if there is none."""
    if module not in sys.modules and _is_in(module, _MADE):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            return None
    return sys.modules.get(module)


def look_up(module: str, name: str) -> Any:
    """Return what PyTorch's or mortice's name stands for, None if there is nothing that a file may ask for."""
    root, _, path = module.partition(".")
    if root not in ROOTS or name.startswith("__") or not all(p.isidentifier() for p in (*module.split("."), name)):
        return None
    if f"{path}.{name}" in _CALLED:
        return _CALLED[f"{path}.{name}"]
    if path in _COMPILED:
        path, name = _COMPILED[path], name.removeprefix(path.removeprefix("_C._") + "_")
    parts = [ROOTS[root], *(path.split(".") if path else ())]
    while parts:
        found = getattr(_imported(".".join(parts)), name, None)
        if found is not None:
            found = behind(found)
            return found if _may_be_asked_for(found) else None
        parts.pop()
    return None


def _may_be_asked_for(found: Any) -> bool:
    if isinstance(found, type):
        return is_ours(found) or found is TensorBase.cls
    return is_function(found)


def is_function(found: Any) -> bool:
    """Tell whether it is a function of mortice's that a file may hold."""
    return found is _absent or (callable(found) and _is_in(getattr(found, "__module__", None) or "", _HELD))


def is_ours(kind: type) -> bool:
    """Tell whether it is a class of mortice's of which a file may have objects."""
    place = kind.__module__
    if sys.modules["mortice"].__name__ == "torch":  # it stands for PyTorch, and its layers have PyTorch's names
        place = place.replace("torch", "mortice", 1)
    return _is_in(place, _MADE) and not issubclass(kind, TensorBase)


def in_torch(value: Any) -> tuple[str, str] | None:
    """Return where PyTorch keeps a class or function of mortice's, while mortice stands for it; None if that is not asked."""
    place, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    if not place.startswith("mortice.") or sys.modules["mortice"].__name__ != "torch":
        return None
    parts = place.split(".")[1:]
    if not isinstance(value, type):  # a package that it is in shows it, or one of those that show what is in mortice.ops
        packages = [p for p in (*(".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)), "", *_COMPILED.values()) if p != "ops"]
        for package in packages:
            if behind(getattr(_imported(f"mortice.{package}".rstrip(".")), name, None)) is value:
                parts = package.split(".") if package else []
                break
    return ".".join(["torch", *parts]), name


# ---- what is called ----


def _absent(*args: Any) -> Any:
    raise NotImplementedError("this function of PyTorch's own is not here.")


class _Functions:
    """Stands for the class whose attributes PyTorch's compiled functions, or its methods, are."""

    def __init__(self, *place: str) -> None:
        self.place = place

    def get(self, name: str) -> Any:
        owner = TensorBase.cls if self.place else sys.modules["mortice"]
        found = behind(getattr(owner, name, None))
        return found if is_function(found) else None


def attribute(owner: Any, name: Any, may_make: Any) -> Any:
    """Return a method of an object that was made, or what is defined inside a class: how pickles write those.

    It is taken from where it lies, since to ask an object for an attribute may run code.
    """
    if isinstance(name, str) and isinstance(owner, _Functions):
        found = owner.get(name)
        if found is not None:
            return found
    elif isinstance(name, str) and isinstance(owner, TensorBase):
        found = _Functions("Tensor").get(name)
        if found is not None:
            return types.MethodType(found, owner)
    elif isinstance(name, str) and may_make(owner if isinstance(owner, type) else type(owner)):
        kinds = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
        found = next((c.__dict__[name] for c in kinds if name in c.__dict__), None)
        if isinstance(found, staticmethod):
            return found.__func__
        if isinstance(found, classmethod):
            return types.MethodType(found.__func__, kinds[0])
        if isinstance(found, types.FunctionType):
            return found if isinstance(owner, type) else types.MethodType(found, owner)
        if isinstance(found, type) and may_make(found):
            return found
        if found is None and name.startswith("_") and is_ours(kinds[0]):
            return _absent  # PyTorch's schedules keep private functions of theirs as attributes
    raise UnpicklingError(f"load: the file asks for {name!r:.100} of a {type(owner).__name__}; nothing was executed.")


def _without_shape(name: str) -> Known:
    def made(requires_grad: Any = True, device: Any = None, dtype: Any = None) -> Any:
        kind = getattr(importlib.import_module("mortice.nn.parameter"), name)
        return kind(bool(requires_grad), device, dtype)

    return Known(made)


_CALLED: dict[str, Any] = {
    "nn.parameter.UninitializedParameter": _without_shape("UninitializedParameter"),
    "nn.parameter.UninitializedBuffer": _without_shape("UninitializedBuffer"),
    "_C._VariableFunctionsClass": _Functions(),
    "_C.TensorBase": _Functions("Tensor"),
}
