"""The format of PyTorch before 1.6: pickles one after the other, then the storages. Kept for old files."""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from typing import Any

from mortice.serialize.archive import read_into
from mortice.serialize.machine import Anything, Machine, Owner, UnpicklingError
from mortice.serialize.reading import Names, Reading
from mortice.serialize.writing import Pickler

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_SYSTEM = {
    "protocol_version": _VERSION, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4},
}  # fmt: skip


def begins(head: bytes) -> bool:
    """Tell whether a file that begins so is of this format."""
    return head[:1] == pickle.PROTO and _MAGIC.to_bytes(10, "little") in head


def write(obj: Any, file: Any, protocol: int) -> None:
    """Write an object in the old format."""
    pickled = io.BytesIO()
    pickler = Pickler(pickled, protocol, legacy=True)
    pickler.dump(obj)
    for part in (_MAGIC, _VERSION, _SYSTEM):
        file.write(pickle.dumps(part, 2))
    file.write(pickled.getvalue())
    file.write(pickle.dumps([memory.key for memory in pickler.memories], 2))
    for memory in pickler.memories:
        file.write(struct.pack("<q", memory.numel))
        file.write(memory.content())


def read(file: Any, map_location: Any, weights_only: bool, encoding: str, name: Any) -> Any:
    """Read an object in the old format from where the file stands."""
    if not hasattr(file, "readline"):
        file = io.BytesIO(file.read())
    plain = Owner()
    magic, version, system = (Machine(_next_pickle(file), plain).run() for _ in range(3))
    if magic != _MAGIC or version != _VERSION or not isinstance(system, dict):
        raise UnpicklingError(f"load: {name!r} is no checkpoint, or one of a version that is not read ({version!r:.20}).")
    if system.get("little_endian") is not True:
        raise UnpicklingError(f"load: {name!r} was written on a big-endian machine, which is not supported.")
    data = _next_pickle(file)
    keys = Machine(_next_pickle(file), plain).run()
    sizes = _Sizes()
    Machine(data, sizes, encoding).run()
    start = file.tell()
    file.seek(0, io.SEEK_END)
    left = file.tell() - start
    file.seek(start)
    storages = {}
    for key in keys:
        (numel,) = struct.unpack("<q", read_into(file, 8))
        size = numel * sizes.found[key]
        left -= 8 + size
        if numel < 0 or left < 0:
            raise UnpicklingError(f"load: {name!r} is damaged: storage {key} is larger than the file.")
        storages[key] = read_into(file, size)
    return Machine(data, Reading(storages.__getitem__, map_location, weights_only), encoding).run()


def _next_pickle(file: Any) -> bytes:
    """Read up to the end of a pickle, without running it."""
    start = file.tell()
    for _ in pickletools.genops(file):
        pass
    end = file.tell()
    file.seek(start)
    return file.read(end - start)


class _Sizes(Names):
    """Runs a pickle for its references to storages only, which say how large the elements are."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Any, int] = {}

    def find(self, module: str, name: str) -> Any:
        return Reading.find(self, module, name) if name.endswith("Storage") else Anything()

    def persistent(self, reference: Any) -> Any:
        what, kind, key = reference[:3]
        if what != "storage":
            return Anything()
        self.found[key] = 1 if kind.dtype is None else kind.dtype.itemsize
        return Anything()
