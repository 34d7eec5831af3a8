"""save and load: PyTorch's files, written and read without PyTorch, and read without executing pickled code."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import pickle
import stat
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from typing import Any

from mortice.notice import warn
from mortice.serialize import legacy
from mortice.serialize.archive import Reader, Writer
from mortice.serialize.machine import Empty, Machine, UnpicklingError
from mortice.serialize.reading import LoadEndianness, Names, Passing, Reading
from mortice.serialize.writing import Pickler

__all__ = ["get_unsafe_globals_in_checkpoint", "load", "save"]


def save(
    obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Write an object to a path or a file, in PyTorch's format. A path is replaced as a whole or not at all.

    Tensors that share memory share it when they are loaded again; of memory that living tensors share, all is written.
    """
    if pickle_module is not pickle:
        raise ValueError(f"save: expected pickle_module to be Python's pickle; got {pickle_module!r}.")
    if pickle_protocol not in range(2, 6):
        raise ValueError(f"save: expected pickle_protocol from 2 to 5; got {pickle_protocol!r}.")

    def write(file: Any, name: str) -> None:
        if not _use_new_zipfile_serialization:
            legacy.write(obj, file, pickle_protocol)
        else:
            _write(obj, file, name, pickle_protocol, not _disable_byteorder_record)

    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        with replacing("save", path) as file:
            write(file, os.path.splitext(os.path.basename(path))[0] or "archive")
    elif hasattr(f, "write"):
        write(f, "archive")
        if hasattr(f, "flush"):  # who opens the file by its name finds all of it
            f.flush()
    else:
        raise AttributeError(f"save: expected a path or a file opened for writing; got {type(f).__name__}.")


@contextlib.contextmanager
def replacing(op: str, path: str) -> Iterator[Any]:
    """Open a file that takes the place of `path` when the block ends well; until then what is there stays."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"{op}: Parent directory {os.path.dirname(path) or folder} does not exist.")
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):  # a device or a pipe cannot be replaced, only written
        with open(target, "wb") as file:
            yield file
        return
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".saving-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is None:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        with contextlib.suppress(OSError):
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError, AttributeError):  # so that the new name outlives a power cut, where that is known
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _write(obj: Any, file: Any, name: str, protocol: int, byteorder: bool) -> None:
    pickled = io.BytesIO()
    pickler = Pickler(pickled, protocol)
    pickler.dump(obj)
    archive = Writer(file, name)
    archive.record("data.pkl", pickled.getvalue())
    archive.record(".format_version", b"1")
    archive.record(".storage_alignment", b"64")
    if byteorder:
        archive.record("byteorder", b"little")
    for memory in pickler.memories:
        archive.record(f"data/{memory.key}", memory.content())
    archive.record("version", b"3\n")
    archive.record(".data/serialization_id", b"0" * 40)
    archive.close()


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what `save`, or PyTorch, has written. Code in the file is never executed, whatever `weights_only` says.

    Args:
        map_location: a device, a dictionary of device names, or a function `(storage, location)`; by default tensors go
            to the device they were saved from, and those of the CPU to the default backend.
        weights_only: False reads more: modules, optimisers, schedules and datasets, PyTorch's as mortice's own; objects of
            plain classes and enums, of those already imported; arrays of NumPy; values of Python's library.
        mmap: map the storages of a file from the disk instead of reading them.
        pickle_load_args: `encoding=` says how text of Python 2 was coded.

    Raises:
        UnpicklingError: for a damaged or foreign file, and for objects other than tensors, containers, plain values
            and what `mortice.serialization.add_safe_globals` allows.
    """
    if pickle_module not in (None, pickle):
        raise RuntimeError(f"load: files are read without pickle; got pickle_module={pickle_module!r}.")
    if pickle_module is not None:  # who names it asks for all that it reads
        if weights_only:
            raise RuntimeError("load: Can not safely load weights when explicit pickle_module is specified. Leave one of them out.")
        weights_only = False
    always, never = (os.environ.get(f"TORCH_FORCE_{no}WEIGHTS_ONLY_LOAD") in ("1", "y", "yes", "true") for no in ("", "NO_"))
    if always and never:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set.")
    if always:
        weights_only = True
    elif never and weights_only is None:
        warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, forcing weights_only=False.")
        weights_only = False
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        raise TypeError(f"load: unexpected arguments {', '.join(pickle_load_args)}.")
    how = map_location, weights_only, mmap, encoding
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _explained(file, os.fspath(f), *how)
    if mmap:
        raise ValueError(f"load: f must be a string or os.PathLike object in order to use mmap; got {type(f).__name__}.")
    if not all(hasattr(f, name) for name in ("read", "seek", "tell")):
        raise AttributeError(
            f"load: expected a path or a file opened for reading, that can seek; got {type(f).__name__}. You can only torch.load "
            "from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    return _explained(f, getattr(f, "name", type(f).__name__), *how)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the names that a file asks for and that are not read by default: what `add_safe_globals` would have to be told."""
    with contextlib.ExitStack() as opened:
        file = opened.enter_context(open(f, "rb")) if isinstance(f, (str, os.PathLike)) else f
        start = file.tell()
        if file.read(4) != b"PK\3\4":
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        file.seek(start)
        archive, names = Reader(file, f), Names()
        if "constants.pkl" in archive:
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
        Machine(archive.record("data.pkl"), names).run()
        return list(dict.fromkeys(names.refused))


def _explained(file: Any, name: Any, *how: Any) -> Any:
    """Read; what goes wrong because of the file becomes one kind of error."""
    try:
        return _read(file, name, *how)
    except UnpicklingError as error:
        if how[1] is not False:  # in PyTorch's words, which programs look for
            error.args = (str(error).replace("load: ", "load: Weights only load failed. ", 1),)
        raise
    except Passing as passing:
        raise passing.args[0] from None
    except (zipfile.BadZipFile, pickle.UnpicklingError, struct.error, ArithmeticError, AttributeError, EOFError, LookupError,
            MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # what is read from failed, not what was read
            raise
        raise UnpicklingError(f"load: {name!r} is damaged ({type(error).__name__}: {error}).") from error


def _read(
    file: Any, name: Any, map_location: Any, weights_only: bool | None, mapped: bool | None, encoding: str
) -> Any:
    weights_only = weights_only is not False
    start = file.tell()
    head = file.read(32)
    file.seek(start)
    if legacy.begins(head):
        if mapped:
            raise Passing(RuntimeError(f"load: mmap can only be used with files in the zip format; {name!r} is older."))
        return legacy.read(file, map_location, weights_only, encoding, name)
    if head[:4] != b"PK\3\4":
        text = f"load: expected a checkpoint of PyTorch or mortice; {name!r} is none, or is damaged."
        if not head:
            raise Empty(f"{text} It has no bytes from where it stands: call .seek(0) first?")
        raise UnpicklingError(text + " Open it with open(path, 'rb')." * isinstance(head, str))
    archive = Reader(file, name, bool(mapped))
    if "constants.pkl" in archive:
        raise UnpicklingError(f"load: {name!r} holds a TorchScript program, which has code; save a state_dict instead.")
    reading = Reading(lambda key: archive.record(f"data/{key}"), map_location, weights_only)
    reading.order = reading.default
    if "byteorder" in archive:
        order = bytes(archive.record("byteorder"))
        if order not in (b"little", b"big"):
            raise UnpicklingError(f"load: expected bytes in the order little or big; got {order!r:.20} in {name!r}.")
        reading.order = LoadEndianness[order.decode().upper()]
    return Machine(archive.record("data.pkl"), reading, encoding).run()
