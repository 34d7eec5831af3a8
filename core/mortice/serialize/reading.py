"""Reading checkpoints: what the names in PyTorch's pickles stand for, and storages made into tensors.

Whatever a file asks for is looked up in tables of functions written for it here; nothing is imported or called because
a file says so. `add_safe_globals` widens that, and so does `weights_only=False`, for mortice's own classes (homes.py) and
those of modules and of plain objects (objects.py).
"""

from __future__ import annotations

import importlib
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from enum import Enum
from types import MemberDescriptorType
from typing import Any

from mortice.backends.host import HostBuffer
from mortice.backends.plugins import default_backend, resolve
from mortice.device import Device
from mortice.dtype import DTYPES, FLOAT8, DType, by_name, uint8
from mortice.errors import DTypeError
from mortice.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from mortice.ops.data import check_dtype
from mortice.ops.storage import TypedStorage
from mortice.ops.strided import _shares as shares
from mortice.ops.strided import as_strided
from mortice.serialize import homes, registry
from mortice.serialize.machine import Anything, Owner, UnpicklingError, check_key
from mortice.serialize.registry import Known
from mortice.shape import Size, contiguous_strides, prod
from mortice.tensor import TensorBase, make
from mortice.torch_version import TorchVersion

# What `load(map_location=)` takes, for annotations.
MAP_LOCATION = Callable[[Any, str], Any] | Device | str | dict[str, str] | None


class LoadEndianness(Enum):
    """The order of bytes in numbers."""

    NATIVE, LITTLE, BIG = 1, 2, 3


STORAGES = {
    "float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage",
    "bool": "BoolStorage", "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip
_TRUTH = bytes([0] + [1] * 255)


class Passing(Exception):
    """Carries an error that is not the file's, past what explains those."""


class StorageKind:
    """Stands for a class of storages in a pickle; without a dtype for PyTorch's UntypedStorage."""

    def __init__(self, dtype: DType | None) -> None:
        self.dtype = dtype


class Storage:
    """Memory read from a file, and the device to which it goes: what a `map_location` function is given."""

    def __init__(self, data: Any, device: Device | None = None) -> None:
        self._buffer, self._size = data, len(data)
        self._device = device
        self._first: dict[DType, Any] = {}  # the first tensor of each dtype, which holds the whole of the memory

    @property
    def device(self) -> Device:
        """Where its tensors will be; unless moved, where the backend that serves has them."""
        return resolve(backend=default_backend()) if self._device is None else self._device

    def __len__(self) -> int:
        return self._size

    nbytes = size = __len__

    def to(self, device: Any, non_blocking: bool = False) -> Storage:
        """Send its tensors to a device."""
        return Storage(self._bytes(), resolve(device))

    def cpu(self) -> Storage:
        """Send its tensors to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Storage:
        """Send its tensors to a CUDA device."""
        return self.to("cuda" if device is None else Device(device))

    def tensor(self, dtype: DType, offset: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Return the tensor at a place; it shares memory with the others."""
        numbers = (offset, *shape, *strides)
        if len(shape) != len(strides) or not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
            raise UnpicklingError(
                f"load: a tensor has impossible sizes {shape}, strides {strides} or offset {offset!r}."
            )
        have, count = self._size // dtype.itemsize, prod(shape)
        reach = offset + (sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if count else 0)
        if reach > have:
            raise UnpicklingError(
                f"load: a tensor of {shape} with strides {strides} at {offset} reaches outside its storage of {have} {dtype.name}."
            )
        in_row = count <= 1 or all(n == 1 or s == t for n, s, t in zip(shape, strides, contiguous_strides(shape)))
        if not count:
            return self._made(memoryview(b""), dtype, shape)
        whole = self._first.get(dtype)
        if whole is None:
            exact = in_row and count == have
            whole = self._first[dtype] = self._made(self._bytes(), dtype, shape if exact else (have,))
            backend = whole._device.backend
            if have * dtype.itemsize == self._size and backend.copies_host and backend.has_values:
                self._buffer = None  # it is on the device now: not both for as long as the rest of the file takes
            if exact:
                return whole
        flat = whole.detach().view(have)
        if in_row:
            return flat[offset : offset + count].view(shape).detach()
        if count > have and not shares(flat, "strided"):
            raise UnpicklingError(f"load: {self.device} cannot show {have} elements as {count}; load it elsewhere.")
        return as_strided(flat, shape, strides, offset).detach()

    def _bytes(self) -> Any:
        return next(iter(self._first.values()))._host().tobytes() if self._buffer is None else self._buffer

    def _made(self, data: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
        device = self.device
        try:
            check_dtype("load", dtype, device)
        except DTypeError as error:
            raise Passing(error) from None
        data = memoryview(data)[: prod(shape) * dtype.itemsize]
        if dtype.name == "bool":
            data = bytearray(bytes(data).translate(_TRUTH))  # other bytes would be neither true nor false
        return make(device.backend.share_host(HostBuffer(data, shape, dtype), device), device, dtype, Size(shape))


class Reference(TypedStorage):
    """What a pickle refers to: memory and the dtype to see it in. Its tensor is made when something else than tensors asks."""

    __slots__ = ("source", "numel")

    def __init__(self, source: Storage, dtype: DType, numel: int) -> None:
        self.source, self.dtype, self.numel = source, dtype, numel

    def __getattr__(self, name: str) -> Any:
        if name != "_memory":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._memory = self.source.tensor(self.dtype, 0, (self.numel,), (1,))
        return self._memory


def place(storage: Storage, location: Any, map_location: Any) -> Storage:
    """Send a storage where the caller wants it."""
    if not isinstance(location, str):
        raise UnpicklingError(f"load: expected the name of a device; got {location!r}.")
    try:
        if callable(map_location):
            chosen = map_location(storage, location)
            if isinstance(chosen, Storage):
                return chosen
            location = location if chosen is None else chosen
        elif isinstance(map_location, dict):
            location = map_location.get(location, location)
        elif map_location is not None:
            location = map_location
        if location == "cpu" and map_location is None:
            return storage
        return storage.to(location)
    except Exception as error:
        if map_location is not None:
            raise Passing(error) from None
        kind = location.partition(":")[0].upper()
        explained = RuntimeError(
            f"load: Attempting to deserialize object on a {kind} device, and the file's tensors were on {location!r}, which is not "
            f"here ({error}) Pass map_location='cpu'."
        )
        raise Passing(explained) from None


def default_restore_location(storage: Storage, location: str) -> Storage:
    """Send a storage to the device of that name: what `load` does by itself, for a `map_location` function to call."""
    return storage.to(location)


# ---- what PyTorch's names stand for ----


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, dtype: DType | None = None) -> Any:
    if type(storage) is not Reference:
        raise UnpicklingError("load: a tensor refers to something that is no storage.")
    return storage.source.tensor(dtype or storage.dtype, offset, tuple(size), tuple(stride))


def _rebuild_tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
    metadata: Any = None, *, dtype: DType | None = None,
) -> Any:  # fmt: skip
    t = _tensor(storage, offset, size, stride, dtype)
    for mark, wanted in (metadata or {}).items():
        if mark not in ("conj", "neg"):
            raise UnpicklingError(f"load: a tensor is marked {mark!r}, which is not known.")
        if wanted:
            t = t.conj() if mark == "conj" else t.neg()
    return t.requires_grad_() if requires_grad else t


def _rebuild_tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Any:
    if not isinstance(dtype, DType):
        raise UnpicklingError(f"load: expected the dtype of a tensor; got {dtype!r}.")
    return _rebuild_tensor(storage, offset, size, stride, requires_grad, hooks, metadata, dtype=dtype)


_LAYOUTS = {
    "sparse_coo": sparse_coo, "sparse_csr": sparse_csr, "sparse_csc": sparse_csc, "sparse_bsr": sparse_bsr, "sparse_bsc": sparse_bsc,
}  # fmt: skip


def _layout(name: Any) -> Any:
    library, _, kind = str(name).partition(".")
    if kind == "strided":  # of a wrapper
        return strided
    if library not in ("torch", "mortice") or kind not in _LAYOUTS:
        raise UnpicklingError(f"load: expected a layout of sparse tensors; got {name!r}.")
    return _LAYOUTS[kind]


def _sparse(layout: Any, parts: Any) -> Any:
    made = importlib.import_module("mortice.sparse")
    places, rest = (parts[:2], parts[2:]) if layout is sparse_coo else (parts[:3], parts[3:])
    if layout not in _LAYOUTS.values() or not all([isinstance(x, TensorBase) for x in places]):
        raise UnpicklingError(f"load: expected the tensors inside a sparse tensor, and its layout; got {layout!r}.")
    if layout is not sparse_coo:
        return made.sparse_compressed_tensor(*places, rest[0], layout=layout)
    return made.sparse_coo_tensor(*places, rest[0], is_coalesced=bool(rest[1:] and rest[1]))


def _rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any = False) -> Any:
    """Make a tensor that has no elements, on "meta" whatever `map_location` says."""
    if not isinstance(dtype, DType) or not all(type(n) is int and n >= 0 for n in (*size, *stride)):
        raise UnpicklingError(f"load: expected a dtype, sizes and strides; got {dtype!r}, {size!r} and {stride!r}.")
    device = resolve("meta")
    none = device.backend.full(size, 0, dtype=dtype, device=device)
    t = make(device.backend.strided(none, shape=tuple(size), strides=tuple(stride), offset=0), device, dtype, Size(size))
    return t.requires_grad_() if requires_grad else t


def _parameter(data: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Any:
    if not isinstance(data, TensorBase):
        raise UnpicklingError(f"load: expected the tensor of a Parameter; got {type(data).__name__}.")
    # By name, since parameters belong to the layer above; a file with one in it is a reason to load that.
    made = importlib.import_module("mortice.nn.parameter").Parameter(data, bool(requires_grad))
    return _with_state(made, state)


def _hooks() -> Any:
    return importlib.import_module("mortice.nn.hooks").HookDict()


def _rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    if isinstance(function, Known) and function.function is _wrapper:
        return _wrapper(kind, args, state)
    if not isinstance(function, Known) or function.function not in (_rebuild_tensor, _rebuild_tensor_v3, _rebuild_meta):
        raise UnpicklingError("load: expected a way to make a tensor.")
    made = function.function(*args)
    if kind is not TensorBase.cls:
        if not (isinstance(kind, type) and issubclass(kind, TensorBase)):  # objects.py, or the user, let the file name it
            raise UnpicklingError(f"load: the file makes a tensor of the class {kind!r}; nothing was executed.")
        made = made._make_subclass(kind, made, made._rg)
    return _takes(made, state) if _takes_its_own(kind) else _with_state(made, state)


def _wrapper(kind: Any, args: Any, state: Any) -> Any:
    own, made = _takes_its_own(kind), None
    if isinstance(kind, type):
        made = importlib.import_module("mortice.subclasses").loaded(kind, args, None if own else state)
    if made is None:
        raise UnpicklingError(f"load: the file makes a tensor of the class {kind!r}, or sets what is no attribute; nothing was executed.")
    return _takes(made, state) if own else made


def _takes_its_own(kind: Any) -> bool:
    """Tell whether a class of tensors, which is called only where it was allowed, says how to take over a state."""
    return kind.__setstate__ is not TensorBase.cls.__setstate__


def _takes(made: Any, state: Any) -> Any:
    made.__setstate__(state)
    return made


def _with_state(obj: Any, state: Any) -> Any:
    """Set the attributes that a user gave to a tensor or an OrderedDict; none may hide one of the class but its slots."""
    state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for name, value in {**(state or {}), **(slots or {})}.items():
        of_class = getattr(type(obj), name, None) if isinstance(name, str) else None
        is_slot = isinstance(of_class, MemberDescriptorType) and not hasattr(TensorBase, name)
        hides = not isinstance(name, str) or (name.startswith("__") and name != "__orig_class__")  # (OrderedDict[str, int]() has that)
        if hides or (hasattr(type(obj), name) and not is_slot):
            raise UnpicklingError(f"load: the file sets the attribute {name!r} of a {type(obj).__name__}.")
        if is_slot:
            setattr(obj, name, value)
        else:
            obj.__dict__[name] = value
    return obj


def _set_of(items: Any = (), kind: Any = set) -> Any:
    for item in items:
        check_key(item, Reading.plain)
    return kind(items)


def _ordered(items: Any = ()) -> Any:
    for key, _ in items:
        check_key(key, Reading.plain)
    return OrderedDict(items)


def _counter(items: Any = ()) -> Any:
    return Counter(dict(items))


def _complex(*parts: Any) -> complex:
    if not all(isinstance(p, (int, float)) for p in parts):
        raise TypeError("the parts of a complex number are numbers")
    return complex(*parts)


def _encode(text: Any, coding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or coding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise UnpicklingError(f"load: the file asks for the coding {coding!r}.")
    return text.encode(coding)


def _bytearray(data: Any = b"", coding: Any = "latin1") -> bytearray:
    if not isinstance(data, (bytes, bytearray, str)):
        raise TypeError("a bytearray is made of bytes")  # of a number it would be that long
    return bytearray(_encode(data, coding) if isinstance(data, str) else data)


def _sizes(sizes: Any = ()) -> Size:
    if not all(type(n) is int for n in sizes):
        raise TypeError("sizes are integers")
    return Size(sizes)


def _version(text: Any = "") -> TorchVersion:
    if type(text) is not str:
        raise TypeError("a version is text")
    return TorchVersion(text)


_KNOWN: dict[str, Any] = {
    "torch._utils._rebuild_tensor": Known(_rebuild_tensor),
    "torch._utils._rebuild_tensor_v2": Known(_rebuild_tensor),
    "torch._utils._rebuild_tensor_v3": Known(_rebuild_tensor_v3),
    "torch._utils._rebuild_meta_tensor_no_storage": Known(_rebuild_meta),
    "torch._utils._rebuild_parameter": Known(_parameter),
    "torch._utils._rebuild_parameter_with_state": Known(_parameter),
    "torch._utils._rebuild_sparse_tensor": Known(_sparse),
    "torch.serialization._get_layout": Known(_layout),
    "torch._tensor._rebuild_from_type_v2": Known(_rebuild_from_type),
    "torch._utils._rebuild_wrapper_subclass": Known(_wrapper),
    "torch.Tensor": TensorBase.cls,
    "torch.nn.parameter.Parameter": Known(_parameter),
    "mortice.nn.hooks.HookDict": Known(_hooks),
    "torch.Size": Known(_sizes),
    "torch.torch_version.TorchVersion": Known(_version),
    "mortice.torch_version.TorchVersion": Known(_version),
    "torch.device": Known(Device),
    "torch.storage.UntypedStorage": StorageKind(None),
    "collections.OrderedDict": Known(_ordered),
    "collections.Counter": Known(_counter),
    "builtins.set": Known(_set_of),
    "builtins.frozenset": Known(lambda items=(): _set_of(items, frozenset)),
    "builtins.complex": Known(_complex),
    "builtins.bytearray": Known(_bytearray),
    "builtins.bytes": Known(lambda: b""),  # how old protocols write what is empty
    "builtins.slice": Known(slice),
    "builtins.range": Known(range),
    "_codecs.encode": Known(_encode),
    **{f"torch.{kind}": StorageKind(by_name(name)) for name, kind in STORAGES.items()},
    **{f"torch.cuda.{kind}": StorageKind(by_name(name)) for name, kind in STORAGES.items()},
    **{f"torch.{d.name}": d for d in (*DTYPES, *FLOAT8)},
}


def _here(module: str, name: str) -> tuple[str, str]:
    """Return a name as Python 3 has it."""
    return NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))


class Undefined(UnpicklingError, AttributeError):
    """A file names what its module does not have, such as a class of the script that wrote it."""


def _turned(data: Any, width: int) -> Any:
    """Return bytes with those of each number turned round."""
    whole = bytes(data)
    out, end = bytearray(whole), len(whole) // width * width
    for i in range(width):
        out[i:end:width] = whole[width - 1 - i : end : width]
    return out


_BLOCKED = ("nt", "os", "posix", "sys")  # of these nothing is read as weights, whatever a program has vouched for


class Reading(Owner):
    """Answers the machine for one file: `storage(key)` gives the bytes behind a reference."""

    plain: Owner
    objects: Any
    default: LoadEndianness | None = None  # of files that do not say
    order: LoadEndianness | None = None

    def __init__(self, storage: Callable[[str], Any], map_location: Any, weights_only: bool) -> None:
        self.read, self.map_location, self.weights_only = storage, map_location, weights_only
        self.storages: dict[str, Storage] = {}
        if not weights_only:
            importlib.import_module("mortice.nn")
            self.objects = importlib.import_module("mortice.serialize.objects")  # not before a file needs it

    def find(self, module: str, name: str) -> Any:
        module, name = _here(module, name)
        full = f"{module}.{name}"
        if self.weights_only and module in _BLOCKED:
            raise UnpicklingError(f"load: the file asks for {full}: unsupported GLOBAL {full} whose module {module} is blocked.")
        found = registry.find_allowed(full)
        if found is None:
            found = _KNOWN.get(full)
        if found is None and not self.weights_only:
            found = self.objects.find(module, name)
        if found is None and registry.is_allowed(here := homes.look_up(module, name)):
            found = here  # PyTorch's name for a class that the user vouched for
        if found is None:
            there = None if self.weights_only else sys.modules.get(module)
            if there is not None and name.partition(".")[0] not in vars(there):
                raise Undefined(
                    f"load: the file asks for {full}. Can't get attribute {name!r} on <module {module!r}>: define it there first."
                )
            raise UnpicklingError(
                f"load: the file asks for {full}, which is no tensor, container or plain value (Unsupported "
                f"global: GLOBAL {full} was not an allowed global by default); nothing of it was executed. Save a state_dict() "
                f"instead of whole objects, tensors and lists instead of arrays{self._hint(module)}, or, if you trust the file, allow the "
                "name with mortice.serialization.add_safe_globals."
            )
        return found

    def _hint(self, module: str) -> str:
        if self.weights_only:
            return ", or read modules and plain objects with weights_only=False"
        return "" if module in sys.modules else f", or import {module} first"

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        if isinstance(function, Known):
            return function.function(*args)
        if registry.is_allowed(function):
            return function(*args)
        if not self.weights_only and (made := self.objects.call(self, function, args)) is not NotImplemented:
            return made
        raise UnpicklingError(f"load: the file calls {getattr(function, '__name__', function)!r}; nothing was executed.")

    def new(self, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(kind, Known):
            return kind.function(*args, **kwargs)
        if isinstance(kind, type) and self._is_plain(kind) and not registry.is_allowed(kind):
            return self.objects.new(kind, args)
        if isinstance(kind, type) and self.may_make(kind):
            return kind.__new__(kind, *args, **kwargs)
        raise UnpicklingError(f"load: the file makes a {getattr(kind, '__name__', kind)!r}; nothing was executed.")

    def build(self, obj: Any, state: Any) -> None:
        if type(obj) is OrderedDict or isinstance(obj, TensorBase):
            _with_state(obj, state)
        elif self._is_known(type(obj)):
            _set_state(obj, state)
        elif self.weights_only or not self.objects.build(obj, state):
            super().build(obj, state)

    def vouches(self, obj: Any) -> bool:
        return isinstance(obj, (DType, Device, Enum, defaultdict, TensorBase)) or self.may_make(type(obj))

    def may_make(self, kind: type) -> bool:
        """Tell whether objects of a class may be made and given a state."""
        return self._is_known(kind) or self._is_plain(kind)

    def _is_known(self, kind: type) -> bool:
        return registry.is_allowed(kind) or (not self.weights_only and self.objects.takes_state(kind))

    def _is_plain(self, kind: type) -> bool:
        return not self.weights_only and self.objects.is_plain(kind)

    def persistent(self, reference: Any) -> Any:
        if isinstance(reference, tuple) and reference[:1] == ("module",) and len(reference) == 4:
            return reference[1]  # how the format before 1.6 writes a class of modules, with its source
        if not isinstance(reference, tuple) or len(reference) < 5 or reference[0] != "storage":
            raise UnpicklingError(f"load: expected a reference to a storage; got {reference!r:.100}.")
        _, kind, key, location, numel, *view = reference
        if not isinstance(kind, StorageKind) or not isinstance(key, str) or type(numel) is not int or any(view):
            raise UnpicklingError(f"load: expected a reference to a storage; got {reference!r:.100}.")
        dtype = kind.dtype or uint8
        if key not in self.storages:
            data = self.read(key)
            if self.order is LoadEndianness.BIG:
                data = _turned(data, dtype.itemsize >> dtype.is_complex)
            self.storages[key] = place(Storage(data), location, self.map_location)
        storage = self.storages[key]
        if numel < 0 or numel * dtype.itemsize > len(storage):
            raise UnpicklingError(f"load: storage {key} has {len(storage)} bytes; {numel} of {dtype.name} were promised.")
        return Reference(storage, dtype, numel)


class Names(Reading):
    """Runs a pickle for the names that it asks for only: those that are not read by default."""

    def __init__(self) -> None:
        super().__init__(lambda key: None, None, True)
        self.refused: list[str] = []

    def find(self, module: str, name: str) -> Any:
        try:
            super().find(module, name)
        except UnpicklingError:
            module, name = _here(module, name)
            self.refused.append(f"{module}.{name}")
        return Anything()

    def call(self, *rest: Any) -> Any:
        return Anything()

    new = persistent = call

    def build(self, obj: Any, state: Any) -> None:
        pass

    def vouches(self, obj: Any) -> bool:
        return isinstance(obj, Anything)


class _Plain(Owner):
    def vouches(self, obj: Any) -> bool:
        return isinstance(obj, (DType, Device))


Reading.plain = _Plain()


def _set_state(obj: Any, state: Any) -> None:
    """Give an object that the user vouched for its state, as pickle does."""
    if hasattr(obj, "__setstate__"):
        obj.__setstate__(state)
        if hasattr(obj, "_complete"):
            obj._complete()
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        obj.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
