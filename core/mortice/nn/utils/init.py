"""skip_init: a module whose parameters are not initialised."""

from __future__ import annotations

import inspect
from typing import Any

from mortice.nn.init import skipping
from mortice.nn.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a module without initialising its parameters; no random numbers are drawn."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init: expected a Module class; got {module_cls}.")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: {module_cls.__name__} must take a 'device' argument.")
    with skipping():
        return module_cls(*args, **kwargs)
