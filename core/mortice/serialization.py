"""mortice.serialization: saving, loading, and what files may name besides tensors and plain values."""

from importlib import import_module
from typing import Any

from mortice.serialize import get_unsafe_globals_in_checkpoint, load, save
from mortice.serialize.archive import Writer
from mortice.serialize.machine import UnpicklingError
from mortice.serialize.reading import MAP_LOCATION, LoadEndianness, Reading, default_restore_location
from mortice.serialize.registry import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

# The pickle protocol of `save`, which some libraries take as their default too.
DEFAULT_PROTOCOL = 2


class SourceChangeWarning(Warning):
    """What PyTorch warns of where a module's source is not what a file has; here files have none."""


__all__ = [
    "DEFAULT_PROTOCOL", "LoadEndianness", "MAP_LOCATION", "SourceChangeWarning", "UnpicklingError", "add_safe_globals",
    "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_default_load_endianness", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "location_tag", "normalize_storage_type", "safe_globals", "save",
    "set_crc32_options", "set_default_load_endianness",
]  # fmt: skip


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `save` computes checksums, as at first."""
    Writer.checksums = compute_crc32


def get_crc32_options() -> bool:
    """Tell whether `save` computes checksums."""
    return Writer.checksums


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose the order of bytes in files that do not tell theirs; None is the machine's."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(f"set_default_load_endianness: expected a LoadEndianness; got {endianness!r}.")
    Reading.default = endianness


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the order of bytes in files that do not tell theirs."""
    return Reading.default


def location_tag(storage: Any) -> str:
    """Return the name by which a file says where a storage lies."""
    return str(storage.device)


def normalize_storage_type(storage_type: type) -> Any:
    """Return the class that files name for a class of storages: that of this name at the root."""
    return getattr(import_module("mortice"), storage_type.__name__)
