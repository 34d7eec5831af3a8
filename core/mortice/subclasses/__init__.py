"""Classes of tensors, and modes, that are told of every operator below autograd: PyTorch's `__torch_dispatch__`."""

from importlib import import_module
from typing import Any

from mortice.subclasses.dispatching import TorchDispatchMode
from mortice.subclasses.dispatching import _told as _disable_current_modes  # noqa: F401

__all__ = ["TorchDispatchMode"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("mortice.subclasses.classes"), name)  # for which all calls are looked at from then on
