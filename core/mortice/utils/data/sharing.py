"""Handing batches from one process to another: pickles whose large buffers lie in shared memory instead of in a pipe.

The memory is an anonymous file that has no name and goes with its last user, however that ends. A worker writes a
batch into a slab of it; the slab comes back for another batch when nothing refers to this one any more.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import pickle
import socket
import weakref
from collections import deque
from multiprocessing.connection import Connection
from typing import Any

import mortice
from mortice import Tensor
from mortice.shared import REFUSED, anonymous_file

SHARES = hasattr(socket, "send_fds")  # where an open file can be passed on; elsewhere everything goes through the pipe
_SMALL = 1 << 14  # bytes; less than this is copied through the pipe faster than it is shared
_ALIGNMENT = 64
_LENT = 8  # batches of a worker that may be held before further ones are copied, which bounds open files and mappings


def _rebuild(data: Any, dtype: Any, shape: tuple[int, ...], device: str, requires_grad: bool) -> Any:
    """Make the tensor over memory that was handed over."""
    if math.prod(shape):
        data = bytearray(data) if memoryview(data).readonly else data
        t = mortice.frombuffer(data, dtype=dtype).reshape(shape).detach()
    else:
        t = mortice.empty(shape, dtype=dtype)
    if str(t.device) != device:
        t = t.to(device)
    return t.requires_grad_() if requires_grad else t


class _Pickler(pickle.Pickler):
    """Pickles tensors as out-of-band buffers, as NumPy pickles its arrays."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not Tensor:
            return NotImplemented
        if not obj.is_leaf:
            raise RuntimeError(REFUSED)
        if obj.layout is not mortice.strided:  # its parts come here again
            return NotImplemented
        host = obj.detach()._host()
        data = host.view if host.view.c_contiguous else host.tobytes()
        state = (pickle.PickleBuffer(data), obj.dtype, tuple(obj.shape), str(obj.device), obj.requires_grad)
        return _rebuild, state


class _Sink:
    """A file that keeps what is written, in pieces."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.write = self.pieces.append


def _encode(data: Any) -> tuple[bytes, list[memoryview]]:
    """Return the pickle of data, and the large buffers that it refers to."""
    large: list[memoryview] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if not SHARES or view.nbytes < _SMALL:
            return True
        large.append(view)
        return False

    sink = _Sink()
    _Pickler(sink, protocol=5, buffer_callback=keep_inside).dump(data)
    return b"".join(map(bytes, sink.pieces)), large


def _files_of(connection: Connection) -> Any:
    """Return the connection's socket as an object that can pass open files, None where there is no such thing."""
    if not SHARES:
        return None
    channel = socket.socket(fileno=os.dup(connection.fileno()))
    channel.settimeout(None)  # a default timeout would have made the connection, which is the same socket, non-blocking
    return channel


class _Slab:
    """Shared memory on the worker's side."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = 1 << max(size - 1, mmap.PAGESIZE).bit_length()  # pages that nobody touches cost nothing
        self.fd = anonymous_file("mortice-batch", self.size)
        self.memory = mmap.mmap(self.fd, self.size)

    def close(self) -> None:
        self.memory.close()
        os.close(self.fd)


class Sender:
    """The worker's end: writes results into slabs and says where they are."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.files = _files_of(connection)
        self.slabs: dict[int, _Slab] = {}
        self.free: list[int] = []
        self.made = 0

    def send(self, label: Any, data: Any) -> None:
        """Send data under a label; when it cannot be pickled nothing has been sent."""
        body, large = _encode(data)
        places, size = [], 0
        for view in large:
            places.append((size, view.nbytes))
            size += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
        number, fd, dropped = None, None, None
        if large:
            slab, fd, dropped = self._slab(size)
            number = slab.number
            for (start, length), view in zip(places, large):
                slab.memory[start : start + length] = view
        self.connection.send_bytes(pickle.dumps((label, body, number, fd is not None, dropped, places), 5))
        if fd is not None:
            socket.send_fds(self.files, [b"\0"], [fd])

    def close(self) -> None:
        """Close what is this end's own; the connection is the caller's."""
        if self.files is not None:
            self.files.close()

    def _slab(self, size: int) -> tuple[_Slab, int | None, int | None]:
        """Return a slab of at least that size, its file if it is new, and the slab that it replaces."""
        fitting = [n for n in self.free if self.slabs[n].size >= size]
        if fitting:
            number = min(fitting, key=lambda n: self.slabs[n].size)
            self.free.remove(number)
            return self.slabs[number], None, None
        dropped = self.free.pop() if self.free else None
        if dropped is not None:
            self.slabs.pop(dropped).close()
        slab = self.slabs[self.made] = _Slab(self.made, size)
        self.made += 1
        return slab, slab.fd, dropped


class Receiver:
    """The parent's end for one worker."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.files = _files_of(connection)
        self.slabs: dict[int, mmap.mmap] = {}
        self.lent = 0
        self.ended: deque[int] = deque()  # appended to by finalizers, which may run anywhere

    def receive(self) -> tuple[Any, Any]:
        """Return a label and what `load` makes the data of."""
        label, body, number, is_new, dropped, places = pickle.loads(self.connection.recv_bytes())
        self.slabs.pop(dropped, None)
        if number is None:
            return label, (body, [])
        if is_new:
            _, fds, _, _ = socket.recv_fds(self.files, 1, 1)
            if not fds:
                raise EOFError
            try:
                self.slabs[number] = mmap.mmap(fds[0], 0)
            finally:
                os.close(fds[0])
        memory = self.slabs[number]
        # What is made of the views keeps the lease alive, and its end says that the slab is free.
        lease = (ctypes.c_char * len(memory)).from_buffer(memory)
        weakref.finalize(lease, self.ended.append, number).atexit = False
        self.lent += 1
        whole = memoryview(lease).cast("B")
        views = [whole[start : start + length] for start, length in places]
        return label, (body, list(map(bytearray, views)) if self.lent > _LENT else views)

    def close(self) -> None:
        """Close the connection, which ends the worker; data already handed over stays valid."""
        self.connection.close()
        if self.files is not None:
            self.files.close()

    def returned(self) -> list[int]:
        """Return the slabs that the worker may write again."""
        numbers = []
        while self.ended:
            numbers.append(self.ended.popleft())
        self.lent -= len(numbers)
        return numbers


def load(received: tuple[bytes, list[Any]]) -> Any:
    """Make the data of what was received."""
    body, buffers = received
    return pickle.loads(body, buffers=buffers)
