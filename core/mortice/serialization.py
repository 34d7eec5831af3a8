"""mortice.serialization: saving, loading, and what files may name besides tensors and plain values."""

from mortice.serialize import get_unsafe_globals_in_checkpoint, load, save
from mortice.serialize.machine import UnpicklingError
from mortice.serialize.reading import MAP_LOCATION, default_restore_location
from mortice.serialize.registry import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

# The pickle protocol of `save`, which some libraries take as their default too.
DEFAULT_PROTOCOL = 2

__all__ = [
    "DEFAULT_PROTOCOL", "MAP_LOCATION", "UnpicklingError", "add_safe_globals", "clear_safe_globals",
    "default_restore_location", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save",
]  # fmt: skip
