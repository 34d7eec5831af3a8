"""save and load: PyTorch's zip format, written and read without PyTorch, and read without executing pickled code."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import struct
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mortice.backends.host import HostBuffer
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import DType, by_name
from mortice.op import TensorBase
from mortice.ops.movement import _is_row_major
from mortice.shape import Size, contiguous_strides, prod
from mortice.tensor import make

__all__ = ["load", "save"]

_STORAGES = {
    "float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage",
    "bool": "BoolStorage", "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip
_STORAGE_DTYPES = {name: by_name(d) for d, name in _STORAGES.items()}
_TORCH_DTYPES = {**{d: d for d in _STORAGES}, "uint16": "uint16", "uint32": "uint32", "uint64": "uint64"}


class UnpicklingError(pickle.UnpicklingError, RuntimeError):
    """A file that is no checkpoint, is damaged, or holds what this reader does not build."""


# ---- writing ----


class _Global:
    """Stands for a name of PyTorch in the written pickle, without importing it."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _StorageReference:
    """A storage as the pickle refers to it: by its key among the archive's records."""

    def __init__(self, key: str, kind: str, numel: int) -> None:
        self.key, self.kind, self.numel = key, kind, numel


class _Pickler(pickle._Pickler):
    """Pickles tensors the way PyTorch does. Python's own Pickler class, since it writes names that cannot be imported."""

    def __init__(self, file: Any, records: dict[str, bytes]) -> None:
        super().__init__(file, protocol=2)
        self.records = records
        self.keys: dict[Any, str] = {}
        self.alive: list[Any] = []

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _StorageReference):
            return ("storage", _Global("torch", obj.kind), obj.key, "cpu", obj.numel)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        if isinstance(obj, _Global):
            return self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode("ascii"))
        if isinstance(obj, TensorBase):
            return self.save_reduce(*self._tensor(obj), obj=obj)
        if isinstance(obj, (DType, Device, Size)):
            if isinstance(obj, DType):
                return self.save(_Global("torch", obj.name))
            if isinstance(obj, Device):
                parts = (obj.type,) if obj.index is None else (obj.type, obj.index)
                return self.save_reduce(_Global("torch", "device"), parts, obj=obj)
            return self.save_reduce(_Global("torch", "Size"), (tuple(obj),), obj=obj)
        return super().save(obj, save_persistent_id)

    def save_reduce(self, func: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        if not isinstance(func, _Global):
            return super().save_reduce(func, args, *rest, **kwargs)
        # What the base class does for importable callables, which it insists on.
        obj = kwargs.get("obj")
        self.save(func)
        self.save(args)
        self.write(pickle.REDUCE)
        if obj is not None and id(obj) not in self.memo:
            self.memoize(obj)
        return None

    def _tensor(self, t: Any) -> tuple[Any, Any]:
        data = t.detach()
        if t.dtype.name not in _STORAGES:
            raise NotImplementedError(
                f"save: PyTorch's format has no storage of {t.dtype.name}; convert the tensor first, e.g. .to(int64)."
            )
        base = data._storage if data._storage is not None and _is_row_major(t) and t._steps is None else None
        identity = id(base) if base is not None else id(t)
        key = self.keys.get(identity)
        if key is None:
            key = self.keys[identity] = str(len(self.keys))
            self.alive.append(base if base is not None else t)  # an id must not be used again while this runs
            self.records[key] = data._device.backend.to_host(data._data).tobytes()
        storage = _StorageReference(key, _STORAGES[t.dtype.name], prod(t.shape))
        args = (storage, 0, tuple(t.shape), contiguous_strides(t.shape), t._rg, OrderedDict())
        if type(t).__name__ == "Parameter":
            inner = (storage, 0, tuple(t.shape), contiguous_strides(t.shape), False, OrderedDict())
            return _Global("torch._utils", "_rebuild_parameter"), (_Rebuilt(inner), t._rg, OrderedDict())
        return _Global("torch._utils", "_rebuild_tensor_v2"), args


class _Rebuilt:
    """A tensor inside the arguments of a rebuilt Parameter."""

    def __init__(self, args: Any) -> None:
        self.args = args


def _save_rebuilt(pickler: Any, obj: _Rebuilt) -> None:
    pickler.save_reduce(_Global("torch._utils", "_rebuild_tensor_v2"), obj.args)


_Pickler.dispatch = {**pickle._Pickler.dispatch, _Rebuilt: _save_rebuilt}  # type: ignore[misc]


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True
) -> None:
    """Write an object to a file, a path or a buffer, in PyTorch's zip format. A path is replaced as a whole or not at all.

    Raises:
        NotImplementedError: for dtypes that PyTorch's format lacks.
    """
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise RuntimeError(f"save: Parent directory {os.path.dirname(path) or folder} does not exist.")
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".saving-", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                _write(obj, file, os.path.splitext(os.path.basename(path))[0] or "archive")
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(OSError):
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(temporary, os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    elif hasattr(f, "write"):
        _write(obj, f, "archive")
    else:
        raise AttributeError(f"save: expected a path or a file opened for writing; got {type(f).__name__}.")


def _write(obj: Any, file: Any, name: str) -> None:
    records: dict[str, bytes] = {}
    pickled = io.BytesIO()
    _Pickler(pickled, records).dump(obj)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for key, data in {
            "data.pkl": pickled.getvalue(), ".format_version": b"1", ".storage_alignment": b"64", "byteorder": b"little",
            **{f"data/{key}": data for key, data in records.items()}, "version": b"3\n",
            ".data/serialization_id": b"0" * 40,
        }.items():  # fmt: skip
            info = zipfile.ZipInfo(f"{name}/{key}", (1980, 1, 1, 0, 0, 0))
            # PyTorch maps records from the file and wants them aligned: the header's extra field pads up to that.
            start = buffer.tell() + 30 + len(info.filename.encode()) + 4
            pad = -start % 64
            info.extra = struct.pack("<HH", 0x4246, pad) + b"Z" * pad
            archive.writestr(info, data)
    file.write(buffer.getvalue())


# ---- reading ----


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what `save`, or PyTorch, has written. Code in the file is never executed, whatever `weights_only` says.

    Args:
        map_location: a device, a dictionary of device names, or a function `(storage, location)`; by default tensors go
            to the default device.

    Raises:
        UnpicklingError: for a damaged or foreign file, and for objects other than tensors, containers and plain values.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _read(file, map_location, os.fspath(f))
    if not hasattr(f, "read") or not hasattr(f, "seek"):
        raise AttributeError(f"load: expected a path or a file opened for reading, that can seek; got {type(f).__name__}.")
    return _read(f, map_location, getattr(f, "name", type(f).__name__))


def _read(file: Any, map_location: Any, name: Any) -> Any:
    try:
        archive = zipfile.ZipFile(file)
        names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
        raise UnpicklingError(
            f"load: expected a checkpoint in PyTorch's zip format; {name!r} is none, or is damaged ({error})."
        ) from None
    root = next((n.removesuffix("data.pkl") for n in names if n.endswith("data.pkl")), None)
    if root is None:
        raise UnpicklingError(f"load: {name!r} is a zip file without data.pkl, so it is no checkpoint.")
    if f"{root}constants.pkl" in names:
        raise UnpicklingError(f"load: {name!r} holds a TorchScript program, which has code; save a state_dict instead.")
    try:
        if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
            raise UnpicklingError(f"load: {name!r} was written on a big-endian machine, which is not supported.")
        return _Unpickler(archive, root, map_location).load()
    except UnpicklingError:
        raise
    except (zipfile.BadZipFile, pickle.UnpicklingError, EOFError, KeyError, IndexError, ValueError, TypeError,
            AttributeError, struct.error, OverflowError, UnicodeDecodeError, MemoryError, NotImplementedError) as error:  # fmt: skip
        raise UnpicklingError(f"load: {name!r} is damaged ({type(error).__name__}: {error}).") from error


class _Storage:
    """A storage read from the archive."""

    def __init__(self, data: bytes, dtype: DType, device: Device) -> None:
        self.data, self.dtype, self.device = data, dtype, device


class _Unpickler(pickle.Unpickler):
    """Builds tensors, containers and plain values; refuses every other name by saying which."""

    def __init__(self, archive: zipfile.ZipFile, root: str, map_location: Any) -> None:
        super().__init__(io.BytesIO(archive.read(f"{root}data.pkl")), encoding="utf-8")
        self.archive, self.root, self.map_location = archive, root, map_location
        self.storages: dict[str, _Storage] = {}
        self.shared: dict[tuple[str, str], Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        builder = _KNOWN.get((module, name))
        if builder is not None:
            return builder
        if module == "torch" and name in _STORAGE_DTYPES:
            return _STORAGE_DTYPES[name]
        if module == "torch" and name in _TORCH_DTYPES:
            return by_name(name)
        raise UnpicklingError(
            f"load: the file asks for {module}.{name}, which is not a tensor, container or plain value. Nothing was "
            "executed. Save a state_dict() instead of whole objects."
        )

    def persistent_load(self, pid: Any) -> Any:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], DType):
            raise UnpicklingError(f"load: expected a reference to a storage; got {pid!r}.")
        _, dtype, key, location, numel = pid[:5]
        found = self.storages.get(key)
        if found is None:
            record = f"{self.root}data/{key}"
            size = self.archive.getinfo(record).file_size
            if size < numel * dtype.itemsize:
                raise UnpicklingError(f"load: storage {key} has {size} bytes, {numel} of {dtype.name} were promised.")
            data = self.archive.read(record)
            found = self.storages[key] = _Storage(data, dtype, _place(location, self.map_location))
        return found


def _place(location: str, map_location: Any) -> Device:
    """Return the device on which a storage is put."""
    if callable(map_location):
        chosen = map_location(None, location)
        return resolve(chosen) if isinstance(chosen, (str, Device)) else resolve()
    if isinstance(map_location, dict):
        location = map_location.get(location, location)
    elif map_location is not None:
        return resolve(map_location)
    if location == "cpu":
        return resolve()
    try:
        return resolve(location)
    except RuntimeError as error:
        raise RuntimeError(
            f"load: the file's tensors were on {location!r}, which is not here ({error}) Pass map_location='cpu'."
        ) from None


def _rebuild_tensor(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, *rest: Any) -> Any:
    if not isinstance(storage, _Storage):
        raise UnpicklingError("load: a tensor refers to something that is no storage.")
    shape, strides, d = tuple(size), tuple(stride), storage.dtype
    if len(shape) != len(strides) or offset < 0 or any(n < 0 for n in shape) or any(s < 0 for s in strides):
        raise UnpicklingError(f"load: a tensor has impossible sizes {shape}, strides {strides} or offset {offset}.")
    count = prod(shape)
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if count else offset
    if last * d.itemsize > len(storage.data):
        raise UnpicklingError(
            f"load: a tensor of {shape} with strides {strides} at {offset} reaches outside its storage of "
            f"{len(storage.data)} bytes."
        )
    k = storage.device.backend
    if strides == contiguous_strides(shape) or count <= 1:
        part = storage.data[offset * d.itemsize : (offset + count) * d.itemsize]
        data = k.from_host(HostBuffer(bytearray(part), shape, d), storage.device)
    else:
        flat = make(
            k.from_host(HostBuffer(bytearray(storage.data[: last * d.itemsize]), (last,), d), storage.device),
            storage.device, d, Size((last,)),
        )  # fmt: skip
        data = flat.as_strided(shape, strides, offset).contiguous()._data
    t = make(data, storage.device, d, Size(shape))
    if requires_grad:
        t.requires_grad = True
    return t


def _rebuild_parameter(data: Any, requires_grad: bool, *rest: Any) -> Any:
    # By name, since parameters belong to the layer above; a file with one in it is a reason to load that.
    return importlib.import_module("mortice.nn.parameter").Parameter(data, bool(requires_grad))


def _device(*parts: Any) -> Device:
    return Device(*parts)


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch", "Size"): Size,
    ("torch", "device"): _device,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): dict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "complex"): complex,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "slice"): slice,
    ("builtins", "range"): range,
    ("__builtin__", "set"): set,
    ("__builtin__", "complex"): complex,
    ("_codecs", "encode"): lambda text, coding="latin1": text.encode(coding),
}
