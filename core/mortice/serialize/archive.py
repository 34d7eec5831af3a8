"""The zip files of checkpoints: records stored as they are, written without seeking and read without unpacking.

Compressed records are refused, and records together are never larger than the file, so reading one takes no more
memory than the file has bytes.
"""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
import zlib
from typing import Any

from mortice import fast
from mortice.serialize.machine import UnpicklingError

_LOCAL, _CENTRAL, _END, _END64, _LOCATOR = 0x04034B50, 0x02014B50, 0x06054B50, 0x06064B50, 0x07064B50
_ALIGNMENT = 64  # PyTorch maps records from the file and wants them so
_PADDING = 0x4246  # the tag of PyTorch's padding field
_MIDNIGHT = 0x21  # the first of January 1980, so that equal content gives equal files
_MARK = 0xFFFFFFFF  # stands for a number that is in the zip64 field
_LIMIT = _MARK  # from here on numbers are

_crc32: Any = getattr(fast._engine, "crc32", zlib.crc32)


class Writer:
    """Writes records to anything that has `write`."""

    checksums = True

    def __init__(self, file: Any, root: str) -> None:
        self.file, self.root = file, root
        self.position = 0
        self.entries: list[bytes] = []

    def _write(self, data: Any) -> None:
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self.position += len(view)
        while len(view):
            done = self.file.write(view)
            # Unbuffered files may write a part; some objects return nothing.
            view = view[done:] if isinstance(done, int) and done < len(view) else view[:0]

    def record(self, name: str, data: Any) -> None:
        """Write one record: bytes, or a contiguous buffer."""
        path = f"{self.root}/{name}".encode()
        size, crc, offset = memoryview(data).nbytes, self.checksums and _crc32(data), self.position
        large = size >= _LIMIT
        extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        pad = -(offset + 30 + len(path) + len(extra) + 4) % _ALIGNMENT
        extra += struct.pack("<HH", _PADDING, pad) + b"Z" * pad
        shown = _MARK if large else size
        # Both headers hold: version, flags (names in UTF-8), method, time, date, crc, two sizes, length of the name.
        common = struct.pack("<HHHHHIIIH", 45 if large else 20, 0x800, 0, 0, _MIDNIGHT, crc, shown, shown, len(path))
        self._write(struct.pack("<I", _LOCAL) + common + struct.pack("<H", len(extra)) + path + extra)
        self._write(data)
        far = offset >= _LIMIT
        fields = (struct.pack("<QQ", size, size) if large else b"") + (struct.pack("<Q", offset) if far else b"")
        extra = struct.pack("<HH", 1, len(fields)) + fields if fields else b""
        tail = struct.pack("<HHHHII", len(extra), 0, 0, 0, 0, _MARK if far else offset)
        self.entries.append(struct.pack("<IH", _CENTRAL, 45) + common + tail + path + extra)

    def close(self) -> None:
        """Write the directory; the file itself stays open."""
        start, count = self.position, len(self.entries)
        for entry in self.entries:
            self._write(entry)
        size = self.position - start
        if self.position >= _LIMIT or count >= 0xFFFF:
            end64 = self.position
            self._write(struct.pack("<IQHHIIQQQQ", _END64, 44, 45, 45, 0, 0, count, count, size, start))
            self._write(struct.pack("<IIQI", _LOCATOR, 0, end64, 1))
            count, size, start = 0xFFFF, _MARK, _MARK
        self._write(struct.pack("<IHHHHIIH", _END, 0, 0, count, count, size, start, 0))


class Reader:
    """Reads records, each as memory of its own, or as a part of the mapped file."""

    def __init__(self, file: Any, name: Any, mapped: bool = False) -> None:
        self.file, self.name = file, name
        archive = zipfile.ZipFile(file)
        self.entries = {info.filename: info for info in archive.infolist()}
        file.seek(0, os.SEEK_END)
        self.size = file.tell()
        self.left = self.size
        roots = [n.removesuffix("data.pkl") for n in self.entries if n.endswith("data.pkl")]
        if not roots:
            raise UnpicklingError(f"load: {name!r} is a zip file without data.pkl, so it is no checkpoint.")
        self.root = min(roots, key=len)
        self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else None

    def __contains__(self, name: str) -> bool:
        return self.root + name in self.entries

    def record(self, name: str) -> Any:
        """Return the bytes of a record, writable."""
        info = self.entries.get(self.root + name)
        if info is None:
            raise UnpicklingError(f"load: {self.name!r} lacks the record {name!r}.")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise UnpicklingError(
                f"load: the record {name!r} of {self.name!r} is compressed or encrypted; a checkpoint's are stored as "
                "they are. Unpack the file and zip it with compression off."
            )
        size = info.file_size
        self.left -= size
        if self.left < 0:
            raise UnpicklingError(f"load: the records of {self.name!r} overlap: together they are larger than the file.")
        start = self._start(info, name)
        if self.map is not None and start % _ALIGNMENT == 0:
            return memoryview(self.map)[start : start + size]
        self.file.seek(start)
        data = read_into(self.file, size)
        # 0 is what PyTorch writes when it is told not to compute them.
        if info.CRC and _crc32(data) != info.CRC:
            raise UnpicklingError(f"load: {self.name!r} is damaged: the record {name!r} does not have its checksum.")
        return data

    def _start(self, info: zipfile.ZipInfo, name: str) -> int:
        """Return where the record's bytes begin, after a header of their own."""
        self.file.seek(info.header_offset)
        header = self.file.read(30)
        if len(header) == 30 and struct.unpack_from("<I", header)[0] == _LOCAL:
            lengths = struct.unpack_from("<HH", header, 26)
            start = info.header_offset + 30 + sum(lengths)
            path = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")
            if start + info.file_size <= self.size and self.file.read(lengths[0]) == path:
                return start
        raise UnpicklingError(f"load: {self.name!r} is damaged: the record {name!r} is not where the directory says.")


def _room(size: int) -> Any:
    """Return memory to write into. So much that the allocator would ask the system too comes without being filled with zeros."""
    if size < 1 << 25 or not hasattr(mmap, "MAP_ANONYMOUS"):
        return bytearray(size)
    return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def read_into(file: Any, size: int) -> Any:
    """Read exactly so many bytes, which the file was found to have, into memory of their own."""
    if not hasattr(file, "readinto"):
        data = bytearray(file.read(size))
        if len(data) != size:
            raise EOFError(f"the file ends before {size} bytes")
        return data
    data, done = _room(size), 0
    with memoryview(data) as view:
        while done < size:
            n = file.readinto(view[done:])
            if not n:
                raise EOFError(f"the file ends before {size} bytes")
            done += n
    return data
