"""mortice.serialization: saving, loading, and what files may name besides tensors and plain values."""

from mortice.serialize import get_unsafe_globals_in_checkpoint, load, save
from mortice.serialize.archive import Writer
from mortice.serialize.machine import UnpicklingError
from mortice.serialize.reading import MAP_LOCATION, default_restore_location
from mortice.serialize.registry import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

# The pickle protocol of `save`, which some libraries take as their default too.
DEFAULT_PROTOCOL = 2

__all__ = [
    "DEFAULT_PROTOCOL", "MAP_LOCATION", "UnpicklingError", "add_safe_globals", "clear_safe_globals",
    "default_restore_location", "get_crc32_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
    "safe_globals", "save", "set_crc32_options",
]  # fmt: skip


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `save` computes checksums, as at first."""
    Writer.checksums = compute_crc32


def get_crc32_options() -> bool:
    """Tell whether `save` computes checksums."""
    return Writer.checksums
