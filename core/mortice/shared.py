"""Memory that processes share: files without a name, mapped, which go with their last user however that ends."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import Any

REFUSED = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
    "boundaries. If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on "
    "the queue)."
)


def anonymous_file(name: str, size: int) -> int:
    """Return the descriptor of a new file of that many zero bytes that no other process can find; the name is for lists of open files."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


class Block(mmap.mmap):
    """A mapping of such a file, and the file, so that other processes can map it too."""

    fd: int
    _here: weakref.WeakValueDictionary[tuple[int, int], Block] = weakref.WeakValueDictionary()  # by file

    def __new__(cls, size: int, fd: int | None = None) -> Any:
        """Map a new file, or one that another process passed on; a file that is mapped here already is not mapped twice."""
        fd = anonymous_file("mortice", size) if fd is None else fd
        status = os.fstat(fd)
        block = cls._here.get((status.st_dev, status.st_ino))
        try:
            if block is None:
                block = super().__new__(cls, fd, size)
                block.fd = os.dup(fd)
                cls._here[status.st_dev, status.st_ino] = block
        finally:
            os.close(fd)
        return block

    def __del__(self) -> None:
        if os is not None:  # at the interpreter's end modules go first
            os.close(self.fd)
