"""mortice.serialization: saving, loading, and what files may name besides tensors and plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.device import Device
from mortice.serialize import load, save
from mortice.serialize.machine import UnpicklingError
from mortice.serialize.registry import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

# The pickle protocol of `save`, which some libraries take as their default too.
DEFAULT_PROTOCOL = 2

# What `load(map_location=)` takes, for annotations.
MAP_LOCATION = Callable[[Any, str], Any] | Device | str | dict[str, str] | None

__all__ = [
    "DEFAULT_PROTOCOL", "MAP_LOCATION", "UnpicklingError", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load",
    "safe_globals", "save",
]  # fmt: skip
