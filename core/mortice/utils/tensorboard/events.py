"""Event files: what writes records to them in the background, and how events and summaries are put into bytes."""

from __future__ import annotations

import atexit
import itertools
import os
import queue
import socket
import sys
import threading
import time
import weakref
from typing import Any

from mortice.utils.tensorboard.wire import Single, message, packed, record

_FLOAT, _DOUBLE, _STRING = 1, 2, 7  # TensorFlow's numbers of dtypes
_numbers = itertools.count()
_open: weakref.WeakSet[EventFile] = weakref.WeakSet()
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


class EventFile:
    """Writes events to a file of its own in a folder, from a thread, at least every `flush_secs` seconds.

    A process that is forked off writes to another file, once it writes; what was waiting is the parent's to write.
    """

    def __init__(self, folder: str, max_queue: int = 10, flush_secs: float = 120, suffix: str = "") -> None:
        self.folder, self.max_queue, self.flush_secs, self.suffix = folder, max_queue, flush_secs, suffix
        os.makedirs(folder, exist_ok=True)
        self._begin()
        _open.add(self)

    def _begin(self) -> None:
        self._process = os.getpid()
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{self.suffix}"
        self.path = os.path.join(self.folder, name)
        self._file = open(self.path, "ab", buffering=0)  # a buffer would be written by forked processes too
        self._waiting: queue.Queue[Any] = queue.Queue(max(self.max_queue, 1))
        self._errors: list[OSError] = []
        self._closed = False
        self._thread = threading.Thread(
            target=_write, args=(self._file, self._waiting, self.flush_secs, self._errors), daemon=True
        )
        self._thread.start()
        _threads.add(self._thread)
        weakref.finalize(self, _let_go, self._waiting, self._process).atexit = False
        self.add(message(f1=time.time(), f3="brain.Event:2"))

    def _here(self) -> bool:
        return self._process == os.getpid()

    def add(self, event: bytes) -> None:
        """Leave an event to the thread; waits while `max_queue` of them are waiting."""
        if not self._here() or self._closed:
            self._begin()
        self._put(event)

    def _put(self, thing: Any) -> None:
        self._check()
        self._waiting.put(thing)

    def _check(self) -> None:
        if self._errors:
            raise OSError(f"tensorboard: cannot write {self.path}: {self._errors[0]}") from self._errors[0]

    def flush(self) -> None:
        """Return when what was added is in the file."""
        if self._here() and not self._closed:
            done = threading.Event()
            self._put(done)
            done.wait()
            self._check()

    def close(self) -> None:
        """Write what is waiting and close the file; an event that is added later goes into a new one."""
        if self._here() and not self._closed:
            try:
                self.flush()
            finally:
                self._closed = True
                self._waiting.put(None)
                self._thread.join()


def _let_go(waiting: queue.Queue[Any], process: int) -> None:
    if process == os.getpid():
        waiting.put(None)


def _write(file: Any, waiting: queue.Queue[Any], every: float, errors: list[OSError]) -> None:
    """Write records until None comes, and close; an Event among them says when those before it are written."""
    kept: list[bytes] = []
    due = time.monotonic() + every
    while True:
        try:
            thing = waiting.get(timeout=max(due - time.monotonic(), 0.0)) if kept else waiting.get()
        except queue.Empty:
            thing = b""
        if thing:
            if not kept:
                due = time.monotonic() + every
            if isinstance(thing, bytes):
                kept.append(record(thing))
        if kept and (not isinstance(thing, bytes) or time.monotonic() >= due):
            data, kept = memoryview(b"".join(kept)), []
            try:
                while data:
                    data = data[file.write(data) :]
            except OSError as error:
                errors.append(error)
        if isinstance(thing, threading.Event):
            thing.set()
        if thing is None:
            file.close()
            return


@atexit.register
def _close_all() -> None:
    for file in list(_open):
        try:
            file.close()
        except OSError as error:
            print(error, file=sys.stderr)
    for thread in list(_threads):  # of files that nobody had any more
        thread.join()


# ---- messages; the numbers of fields are those of TensorFlow's event.proto, summary.proto and tensor.proto ----


def event(summary: bytes | None = None, step: Any = None, walltime: float | None = None, **more: Any) -> bytes:
    """Return an event: when it was, at which step, and its summary."""
    return message(
        f1=float(time.time() if walltime is None else walltime),
        f2=None if step is None else int(step),
        f5=summary,
        **more,
    )


def value(tag: str, *, plugin: str = "", content: bytes = b"", **more: Any) -> bytes:
    """Return a summary of one value, and for which of TensorBoard's plugins it is."""
    metadata = message(f1=message(f1=plugin, f2=content)) if plugin else None
    return message(f1=message(f1=tag, f9=metadata, **more))


def floats(values: list[float], *shape: int, double: bool = False) -> bytes:
    """Return numbers as a TensorProto."""
    sizes = message(f2=[message(f1=n) for n in shape]) or None
    if double:
        return message(f1=_DOUBLE, f2=sizes, f6=packed(values))
    return message(f1=_FLOAT, f2=sizes, f5=packed(values, "f"))


def text(string: str | bytes) -> bytes:
    """Return a string as a TensorProto."""
    return message(f1=_STRING, f2=message(f2=[message(f1=1)]), f8=[string])


def scalar(tag: str, x: float) -> bytes:
    """Return the summary of a number."""
    return value(tag, f2=Single(x))
