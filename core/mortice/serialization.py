"""mortice.serialization: saving, loading, and what files may name besides tensors and plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.serialize import get_unsafe_globals_in_checkpoint, load, save
from mortice.serialize.machine import UnpicklingError
from mortice.serialize.reading import default_restore_location
from mortice.serialize.registry import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

# The pickle protocol of `save`, which some libraries take as their default too.
DEFAULT_PROTOCOL = 2
# What `load(map_location=)` takes, a device among it, for annotations.
MAP_LOCATION = Callable[[Any, str], Any] | Any | str | dict[str, str] | None

__all__ = [
    "DEFAULT_PROTOCOL", "MAP_LOCATION", "UnpicklingError", "add_safe_globals", "clear_safe_globals",
    "default_restore_location", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save",
]  # fmt: skip
