"""Storages: the memory that tensors share, as bytes or as elements; tensors set onto it; memory that processes share."""

from __future__ import annotations

import mmap
import os
import weakref
from contextlib import suppress
from operator import index
from typing import Any

from mortice.backends.host import HostBuffer
from mortice.backends.plugins import devices_of, resolve
from mortice.device import Device
from mortice.dtype import CLASS_NAMES, DType, get_default_dtype, int64, uint8
from mortice.layout import contiguous_format, preserve_format, sparse_coo
from mortice.modes import modes
from mortice.mutation import check_writable
from mortice.notice import warn
from mortice.ops.creation import empty, sized
from mortice.ops.data import PINNING, as_tensor, check_dtype, is_array, is_sequence, share, tensor
from mortice.ops.joining import cat
from mortice.ops.movement import clone, format_of, format_strides
from mortice.ops.reinterpret import view_dtype
from mortice.ops.strided import as_strided, whole
from mortice.shape import Size, contiguous_strides, overflowed, prod
from mortice.shared import Block
from mortice.strides import layout, storage_offset
from mortice.tensor import TensorBase

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage", "from_file", "resize_as_"]


class _Storage:
    """What both kinds have: a 1-D tensor of all the memory, in the dtype that it was made in."""

    __slots__ = ("_memory", "dtype", "__weakref__")
    _memory: Any
    dtype: DType

    def _elements(self) -> Any:
        """Return the memory as a tensor of the storage's dtype."""
        return view_dtype(self._memory, self.dtype)

    def _writable(self) -> Any:
        """Return the elements, refusing what would be a copy of them."""
        elements = self._elements()
        if elements.own_storage().aliases is not self._memory.own_storage().aliases:
            name = self._memory._device.backend.name
            raise RuntimeError(f"storage: backend '{name}' cannot write its memory as {self.dtype}. Write to the tensor instead.")
        return elements

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._memory.nbytes

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    @property
    def device(self) -> Any:
        """The device that the memory is on."""
        return self._memory.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is that of a CUDA device."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """Return the index of the device, -1 for the CPU."""
        return self._memory.get_device()

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self._memory.data_ptr()

    def tolist(self) -> list[Any]:
        """Return the elements as a list."""
        return self._elements().tolist()

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return self._elements()[index].item()
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        return type(self)._over(self._elements()[index], self.dtype)  # of the same memory

    def __setitem__(self, index: Any, value: Any) -> None:
        self._writable()[index] = tensor(value.tolist() if isinstance(value, _Storage) else value, dtype=self.dtype)

    def fill_(self, value: Any) -> Any:
        """Write one number everywhere."""
        self._writable().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        """Write the elements of another storage."""
        if len(source) != len(self):
            raise RuntimeError(f"copy_: expected a storage of {len(self)} elements; got {len(source)}.")
        self._writable().copy_(source._elements())
        return self

    def clone(self) -> Any:
        """Copy into memory of its own."""
        return type(self)._over(clone(self._memory), self.dtype)

    def cpu(self) -> Any:
        """Return it on the CPU; itself if it is there."""
        return self if self.device.type == "cpu" else type(self)._over(self._memory.cpu(), self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Return it on a CUDA device."""
        return type(self)._over(self._memory.cuda(device), self.dtype)

    def is_shared(self) -> bool:
        """Tell whether other processes can see the same memory."""
        return is_shared(self._memory)

    def share_memory_(self) -> Any:
        """Move to memory that other processes can see; return self."""
        share_memory_(self._memory)
        return self

    def _new_shared(self, size: int, *, device: Any = None) -> Any:
        """Return a storage of the same dtype, in memory that other processes can see: what collate functions write into."""
        memory = empty(size, dtype=self.dtype, device=device or self.device)
        return type(self)._over(share_memory_(memory), self.dtype)

    def is_pinned(self, device: Any = None) -> bool:
        """Tell whether the memory is locked for an accelerator's transfers."""
        return is_pinned(self._memory, device)

    def pin_memory(self, device: Any = None) -> Any:
        """Copy into memory that an accelerator reads and writes by itself."""
        return self._over(pin_memory(self._memory, device), self.dtype)

    @classmethod
    def _over(cls, memory: Any, dtype: DType) -> Any:
        made = object.__new__(cls)
        made._memory, made.dtype = memory, dtype
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Storage):
            return NotImplemented
        return self._memory.own_storage().aliases is other._memory.own_storage().aliases

    def __hash__(self) -> int:
        return id(self._memory.own_storage().aliases)

    _cdata = property(__hash__)  # by which programs tell storages apart

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _again, (type(self), self._memory, self.dtype)

    def __copy__(self) -> Any:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)._over(_copied_memory(self._memory, memo), self.dtype)
        return memo[id(self)]

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()


def _again(cls: Any, memory: Any, dtype: DType) -> Any:
    return cls._over(memory, dtype)


class UntypedStorage(_Storage):
    """The memory that tensors share, as bytes: `UntypedStorage(size)` is new memory, `tensor.untyped_storage()` a tensor's."""

    __slots__ = ()
    filename: str | None = None  # of memory that is a file; which one that is, is not kept here

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        values = size if hasattr(size, "__iter__") else [0] * size
        self._memory, self.dtype = tensor(list(values), dtype=uint8, device=device), uint8

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Make one of a file's first bytes: with `shared` writes go to the file."""
        return from_file(filename, shared, nbytes, dtype=uint8).untyped_storage()

    def elements_as(self, dtype: DType | None) -> Any:
        """Return a tensor of the elements of a dtype that the bytes are, int64 unless given; bytes at the end that make none are left."""
        kind = dtype or int64
        return view_dtype(self._elements()[: self.nbytes() // kind.itemsize * kind.itemsize], kind)

    def byteswap(self, dtype: DType) -> None:
        """Turn round the bytes of each element of a dtype, in place; of a complex one those of each part."""
        width = dtype.itemsize >> dtype.is_complex
        numbers = self._writable().view(len(self) // width, width)
        numbers.copy_(numbers.flip(1))

    def untyped(self) -> UntypedStorage:
        """Return itself."""
        return self

    def __repr__(self) -> str:
        lines = "".join(f" {n}\n" for n in self)
        return f"{lines}[mortice.UntypedStorage(device={self.device}) of size {len(self)}]"


StorageBase = UntypedStorage  # what PyTorch derives it from, which programs ask for


class TypedStorage(_Storage):
    """The memory that tensors share, as elements of a dtype: `tensor.storage()`."""

    __slots__ = ()

    def __init__(self, size: Any = 0, *, wrap_storage: Any = None, dtype: Any = None, device: Any = None) -> None:
        if wrap_storage is None and hasattr(size, "__iter__"):
            self._memory = tensor(list(size), dtype=dtype, device=device)
            self.dtype = self._memory.dtype
            return
        source = UntypedStorage(size * dtype.itemsize, device=device) if wrap_storage is None else wrap_storage
        self._memory, self.dtype = source._memory, check_dtype("TypedStorage", dtype, source._memory._device)

    def elements_as(self, dtype: DType | None) -> Any:
        """Return a tensor of the elements; the dtype may only be their own."""
        if dtype not in (None, self.dtype):
            raise RuntimeError(f"tensor: Expected a Storage of type {dtype} or an UntypedStorage, but got {self.dtype}.")
        return self._elements()

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return UntypedStorage._over(self._memory, uint8)

    _untyped_storage = property(untyped)

    def type(self) -> str:
        """Return the name of PyTorch's class for this dtype, such as "torch.FloatStorage"."""
        return str(self._memory[:0].to(self.dtype).type()).removesuffix("Tensor") + "Storage"

    def __repr__(self) -> str:
        lines = "".join(f" {n}\n" for n in self)
        return f"{lines}[mortice.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _conversion(name: str, method: str) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return typed_storage(getattr(clone(self._elements()), method)())

    convert.__name__, convert.__doc__ = name, "Return a copy of the elements as another dtype."
    return convert


for _name in "double float half bfloat16 long int short char byte bool complex_double complex_float".split():
    setattr(TypedStorage, _name, _conversion(_name, _name.replace("complex_", "c")))


def untyped_storage(self: Any) -> UntypedStorage:
    """Return the memory that the tensor sees all or a part of, as bytes."""
    return UntypedStorage._over(whole(self), uint8)


def _copied_memory(x: Any, memo: Any) -> Any:
    """Return a flat copy of all the memory that a tensor sees a part of: one for each memory that a deepcopy meets."""
    storage = x.own_storage()
    if id(storage.aliases) not in memo:  # which is kept too: another object could get the number of one that is gone
        pinned = storage.pinned
        memo[id(storage.aliases)] = storage.aliases, clone(whole(x))
        storage.pinned = pinned
    return memo[id(storage.aliases)][1]


def copied(x: Any, memo: Any) -> Any:
    """Copy a tensor for a deepcopy, in which the copies share memory as the tensors do."""
    if x._storage is None or x._device.level is not None or x._storage.lonely():
        return clone(x)
    memory = view_dtype(_copied_memory(x, memo), x.dtype)
    return as_strided(memory, x.shape, layout(x), storage_offset(x))


def typed_storage(self: Any) -> TypedStorage:
    """Return the memory that the tensor sees all or a part of, as elements of its dtype."""
    return TypedStorage._over(whole(self), self.dtype)


def storage(self: Any) -> TypedStorage:
    """Return the memory that the tensor sees all or a part of, as elements of its dtype: the old form."""
    warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
        "should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        once=True,
    )
    return typed_storage(self)


def set_(self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Any:
    """See other memory from now on, that of a tensor or a storage, with the sizes and strides given; return self.

    Differs from torch: the memory does not grow when the sizes reach beyond it.
    """
    check_writable("set_", self)
    if source is None:
        source, size = tensor([], dtype=self.dtype, device=self._device), (0,)
    memory = source
    if isinstance(source, _Storage):  # bytes are of any dtype
        memory = view_dtype(source._memory, self.dtype if isinstance(source, UntypedStorage) else source.dtype)
    if memory.dtype is not self.dtype:
        if memory is not source:
            wanted, got = [CLASS_NAMES[t.dtype.name] for t in (self, memory)]
            raise RuntimeError(
                f"Expected a Storage of type {wanted.lower()} or an UntypedStorage, but got type {got} for argument 1 'storage'"
            )
        raise RuntimeError(f"set_: Could not set tensor of type {memory.dtype} to a tensor of type {self.dtype}")
    if memory._device is not self._device:
        raise RuntimeError(f"set_: expected memory on {self.device}; got {memory.device}.")
    if storage_offset < 0:
        raise RuntimeError(f"set_: Tensor: invalid storage offset {storage_offset}")
    if size is None:
        seen = memory if not storage_offset else memory[storage_offset:]
    else:
        size = Size((size,) if isinstance(size, int) else size)
        stride = contiguous_strides(size) if stride is None else stride
        around = whole(memory.detach())
        start = memory.storage_offset() if isinstance(source, _Storage) else 0  # of a part of one
        seen = as_strided(around, size, stride, start + storage_offset)
        if seen._storage is not around._storage:  # writes to a copy would be lost
            raise RuntimeError(
                f"set_: expected a backend with views by strides; backend '{self._device.backend.name}' copies. "
                "Use set_(source) without sizes, or write a kernel `strided` for it."
            )
    seen = seen.detach()
    self._buffer, self._shape = seen._buffer, seen.shape
    self.set_storage(seen._storage, seen._steps)
    self._storage.version += 1
    return self


def resize_(self: Any, *sizes: Any, size: Any = None, memory_format: Any = None) -> Any:
    """Change the shape in place: the memory shows the elements in its own order, and grows by zeros where it is too small.

    Differs from torch: memory that grows is new memory, which other tensors over the old do not see.
    """
    if self._rg and not modes.inference:
        raise RuntimeError("cannot resize variables that require grad")
    size = sized("resize_", sizes, size)
    if memory_format is preserve_format:
        raise RuntimeError("resize_: expected a memory format of its own; got preserve_format.")
    if size == self.shape and memory_format is None:
        return self
    if prod(max(n, 1) for n in size) * self.dtype.itemsize >> 63:
        raise overflowed("resize_", size)
    steps = format_strides("resize_", size, memory_format)
    memory, offset = whole(self.detach()), storage_offset(self)
    missing = offset + prod(size) - memory.shape[0] if prod(size) else 0
    if missing > 0:
        memory = cat([memory, empty(missing, dtype=self.dtype, device=self._device)])
    seen, version = as_strided(memory, size, steps, offset if prod(size) else 0).detach(), self._version + 1
    self._buffer, self._shape = seen._buffer, seen.shape
    self.set_storage(seen._storage, seen._steps)
    self.own_storage().version = version  # nodes that kept this tensor notice, as they do of a write
    return self


def resize_as_(input: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Change the shape in place to that of another tensor; preserve_format takes its order in memory too."""
    if memory_format is preserve_format:
        memory_format = contiguous_format if the_template.is_contiguous() else format_of(the_template)
    if input.layout is sparse_coo:
        return input.resize_as_sparse_(the_template)
    return resize_(input, the_template.shape, memory_format=memory_format)


def old_style(args: tuple[Any, ...], dtype: DType, device: Any, named: dict[str, Any] | None = None) -> Any:
    """Make a tensor as the old constructors do: of sizes, from a sequence, or of an array's, a tensor's or a storage's memory."""
    if named:
        args = _by_name(args, named)
    if not args or len(args) > 1:
        return empty(*(args or (0,)), dtype=dtype, device=device)
    (data,) = args
    if isinstance(data, TensorBase):
        if data.dtype is not dtype:
            raise TypeError(f"new(): expected a Tensor of {dtype}; got one of {data.dtype}. Use .to(dtype) to convert it.")
        return data.detach()
    if isinstance(data, _Storage):
        return set_(empty(0, dtype=dtype, device=data.device), data)
    with suppress(TypeError):
        data = index(data)
    if isinstance(data, (Size, int)):
        return empty(data, dtype=dtype, device=device)
    if not is_sequence(data) and not is_array(data):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return as_tensor(data, dtype=dtype, device=device)


def _by_name(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any]:
    """Return the argument that was given by name: sizes as a Size, since a tuple would be data."""
    ((name, value), *more) = named.items()
    if args or more or name not in ("size", "data", "other", "storage") or (name == "size" and not is_sequence(value)):
        got = ", ".join([*(type(a).__name__ for a in args), *(f"{n}={type(v).__name__}" for n, v in named.items())])
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({got}). Give one of size, data, other and storage."
        )
    return (Size(value) if name == "size" else value,)


# ---- memory that processes share ----

_SHARED: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()  # by address


def is_shared(self: Any) -> bool:
    """Tell whether other processes can see the same memory, as after `share_memory_`; CUDA memory counts."""
    if self._device.type != "cpu":
        return self._device.type == "cuda"
    return block_of(self) is not None


def block_of(self: Any) -> Block | None:
    """Return the shared memory that a tensor lies in, None where it lies in other memory."""
    return _SHARED.get(whole(self).data_ptr()) if _SHARED else None


def in_block(block: Block, shape: Any, dtype: DType, device: Device) -> Any:
    """Make the tensor of all of a block's memory."""
    made = share(HostBuffer(memoryview(block), shape, dtype), device)
    _SHARED[made.data_ptr()] = block
    return made


def share_memory_(self: Any) -> Any:
    """Move to memory that other processes can see; return self. On a CUDA device, do nothing.

    Processes that are forked from now on have it; `mortice.multiprocessing` hands it to others.
    """
    if is_shared(self) or not self.numel():
        return self
    memory, backend = whole(self), self._device.backend
    if backend.copies_host:
        raise RuntimeError(f"share_memory_: backend '{backend.name}' cannot use memory that processes share.")
    block = Block(memory.nbytes)
    block[:] = backend.to_host(memory._buffer).tobytes()
    data = in_block(block, memory.shape, memory.dtype, self._device)._buffer
    for t in list(memory._storage.live()):
        start = storage_offset(t)
        t._buffer = data if t is memory else backend.strided(data, shape=t.shape, strides=layout(t), offset=start)
    return self


def from_file(
    filename: Any, shared: bool | None = None, size: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make a 1-D tensor of a file's first elements: with `shared` writes go to the file, which is made or grows as needed."""
    where = resolve(device)
    kind = check_dtype("from_file", dtype or get_default_dtype(), where)
    length = size * kind.itemsize
    if shared and where.backend.copies_host:
        raise RuntimeError(f"from_file: backend '{where.backend.name}' would copy the file. Pass shared=False, or device='cpu'.")
    if not length:
        return empty(0, dtype=kind, device=where, requires_grad=requires_grad)
    with open(filename, "a+b" if shared else "rb") as file:
        have = file.seek(0, os.SEEK_END)
        if have < length and not shared:
            raise RuntimeError(f"from_file: {filename} has {have} bytes; expected {length} for {size} elements of {kind.name}.")
        if have < length:
            file.truncate(length)
        block = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return share(HostBuffer(block, (size,), kind), where).requires_grad_(requires_grad)


def pin_memory(self: Any, device: Any = None) -> Any:
    """Copy into memory that an accelerator reads and writes by itself; the tensor itself when it is there."""
    places = pinning(device, "pin_memory")
    if not places:
        raise RuntimeError("pin_memory: Cannot access accelerator device when none is available.")
    if self._device.type != "cpu":
        raise RuntimeError(f"cannot pin '{self.type()}': only dense CPU tensors can be pinned; this is on {self._device}.")
    if is_pinned(self) or not prod(self.shape):
        return self
    host = self._host()
    view = places[0].backend.pinned_memory(prod(self.shape) * self.dtype.itemsize)
    view[:] = host.tobytes()
    return share(HostBuffer(view, self.shape, self.dtype), self._device)


def is_pinned(self: Any, device: Any = None) -> bool:
    """Tell whether the memory is locked for an accelerator's transfers."""
    places = pinning(device, "is_pinned")
    if self._device.type != "cpu" or not prod(self.shape):
        return False
    return bool(places) and bool(places[0].backend.is_pinned(self._device.backend.address(self._buffer)))


def pinning(device: Any = None, name: str = "") -> list[Device]:
    """Return the devices that may lock memory of the host for themselves."""
    if device is not None:
        warn(
            f"The argument 'device' of Tensor.{name}() is deprecated. Please do not pass this argument.",
            DeprecationWarning,
        )
    return devices_of(PINNING if device is None else Device(device).type)


def record_stream(self: Any, stream: Any) -> None:
    """Keep the memory, once it is let go, until the work that is then in another stream of its device is done."""
    queue = getattr(stream, "_queue", None)
    if queue is None:
        raise RuntimeError(f"record_stream: expected a mortice.cuda.Stream; got {type(stream).__name__}.")
    if queue.device.type != self._device.type:
        raise NotImplementedError(
            f"record_stream: expected a tensor on a device of the stream's type, {queue.device.type}; got one on {self._device}."
        )
    self._device.backend.keep_for(self._buffer, queue)
