"""Writing checkpoints: objects pickled under PyTorch's names, and tensors that share memory put into one storage."""

from __future__ import annotations

import copyreg
import importlib
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from mortice.autograd.graph import warn_if_has_hooks
from mortice.backends.backend import Backend
from mortice.backends.host import HostBuffer
from mortice.device import Device
from mortice.dtype import DType, int64
from mortice.lazy import behind
from mortice.methods.conversion import is_parameter, state_of
from mortice.mutation import replay
from mortice.ops.creation import arange
from mortice.ops.movement import permute
from mortice.ops.storage import TypedStorage, UntypedStorage
from mortice.ops.strided import as_strided
from mortice.serialize import homes
from mortice.serialize.reading import STORAGES
from mortice.shape import Size, contiguous_strides, prod
from mortice.strides import layout
from mortice.tensor import TensorBase, make


class Global:
    """Stands for a name in the written pickle, which need not exist here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


_RETYPING = ("real", "imag", "view_as_real", "view_as_complex")  # views whose elements are others than the root's
_REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_UNTYPED = Global("torch._utils", "_rebuild_tensor_v3")
_REBUILD_SPARSE = Global("torch._utils", "_rebuild_sparse_tensor")
_LAYOUT = Global("torch.serialization", "_get_layout")
_REBUILD_META = Global("torch._utils", "_rebuild_meta_tensor_no_storage")


class Call:
    """Stands for a call in the written pickle."""

    def __init__(self, function: Global, args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args


class Memory:
    """Memory of one dtype that becomes one storage: a tensor's own, or from an address on what several tensors share."""

    def __init__(self, key: str, tensors: list[Any], start: int | None, size: int) -> None:
        self.key, self.tensors, self.start, self.size = key, tensors, start, size
        self.dtype, self.device = tensors[0].dtype, tensors[0]._device

    @property
    def numel(self) -> int:
        """The number of elements, as the storage's class counts them."""
        return self.size // self.dtype.itemsize if self.dtype.name in STORAGES else self.size

    def reference(self, legacy: bool) -> tuple[Any, ...]:
        """Return how the pickle refers to it."""
        # The old format knows no storage without a dtype, but PyTorch takes one of bytes for it.
        name = STORAGES.get(self.dtype.name, "ByteStorage" if legacy else None)
        kind = Global("torch", name) if name else Global("torch.storage", "UntypedStorage")
        return ("storage", kind, self.key, str(self.device), self.numel, *((None,) if legacy else ()))

    def content(self) -> Any:
        """Return the bytes; places that no living tensor shows are zero."""
        if self.start is None:
            return _bytes(self.tensors[0])
        dense = [(t, _in_memory_order(t)) for t in self.tensors]
        for t, ordered in dense:
            if ordered is not None and _start(t) == self.start and ordered.nbytes == self.size:
                return _bytes(ordered)
        data = bytearray(self.size)
        for t, ordered in dense:
            if ordered is not None:
                place = _start(t) - self.start
                data[place : place + ordered.nbytes] = _bytes(ordered)
        return self._with_gaps(data, [t for t, ordered in dense if ordered is None])

    def _with_gaps(self, data: bytearray, tensors: list[Any]) -> Any:
        """Write tensors with gaps between their elements."""
        n = self.size // self.dtype.itemsize
        buffer = self.device.backend.from_host(HostBuffer(data, (n,), self.dtype), self.device)
        flat = make(buffer, self.device, self.dtype, Size((n,)))
        numbers = arange(n, dtype=int64, device=self.device)
        for t in tensors:
            offset = (_start(t) - self.start) // self.dtype.itemsize
            flat[as_strided(numbers, t.shape, layout(t), offset).reshape(-1)] = t.detach().reshape(-1)
        return _bytes(flat)


def _start(t: Any) -> int:
    return t._device.backend.address(t._buffer)


def _has_addresses(backend: Any) -> bool:
    return type(backend).address is not Backend.address


def _place_in_root(t: Any) -> tuple[int, tuple[int, ...]] | None:
    """Return offset and strides of a tensor in the root of its storage, found by showing the same view of numbers."""
    backend, root, steps = t._device.backend, t._storage.root, t.view_steps
    if backend.dtype_of(root) is not t.dtype or any(step.name in _RETYPING for step, _ in steps):
        return None
    shape = Size(backend.shape_of(root))
    numbers = arange(prod(shape), dtype=int64, device=t._device).reshape(shape)
    seen = make(replay(backend, numbers._buffer, steps), t._device, int64, t.shape)
    first = [0] * len(t.shape)
    offset = seen[tuple(first)].item()
    return offset, tuple(
        seen[(*first[:d], 1, *first[d + 1 :])].item() - offset if n > 1 else 1 for d, n in enumerate(t.shape)
    )


def _span(t: Any) -> Any:
    """Return the addresses from a tensor's lowest element to the end of its highest; from where its memory begins without."""
    if _has_addresses(t._device.backend):
        start, strides = _start(t), layout(t)
    else:
        place = _place_in_root(t) if t._device.backend.rooted else None
        if place is None:
            return None
        start, strides = place[0] * t.dtype.itemsize, place[1]
    ends = [(n - 1) * s * t.dtype.itemsize for n, s in zip(t.shape, strides)]
    return start + sum(e for e in ends if e < 0), start + sum(e for e in ends if e > 0) + t.dtype.itemsize


def _in_memory_order(t: Any) -> Any:
    """Return the tensor with its dims in the order of memory, None if there are gaps or repeats."""
    strides = layout(t)
    order = sorted(range(len(strides)), key=lambda d: (-strides[d], -t.shape[d]))
    ordered = permute(t.detach(), order) if order else t
    return ordered if ordered.is_contiguous() else None


def _bytes(t: Any) -> Any:
    """Return the elements in order, as bytes or a flat view of them."""
    view = t._host().view
    return pickle.PickleBuffer(view).raw() if view.c_contiguous else view.tobytes()


def joint_memories(tensors: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield names of tensors that share elements, two or more at a time."""
    groups: dict[int, list[str]] = {}
    for name, t in tensors.items():
        if t._storage is not None and prod(t.shape):
            groups.setdefault(id(t._storage.aliases), []).append(name)
    for names in groups.values():
        spans = [_span(tensors[name]) for name in names]
        if None in spans:  # that they share is all one knows
            spans = [(0, 1)] * len(names)
        places = sorted((*span, name) for span, name in zip(spans, names))
        for (_, end, name), (start, _, other) in zip(places, places[1:]):
            if start < end:
                yield [name, other]


class Pickler(pickle._Pickler):
    """Pickles as PyTorch does. Python's own Pickler in Python, since it writes names that cannot be imported."""

    def __init__(self, file: Any, protocol: int = 2, legacy: bool = False) -> None:
        super().__init__(file, protocol=protocol)
        # Layers and data sets by the names that they have, where others write how they are made.
        by_name = "mortice.utils.as_torch"
        self.dispatch_table = {k: f for k, f in copyreg.dispatch_table.items() if getattr(f, "__module__", "") != by_name}
        self.legacy = legacy
        self.memories: list[Memory] = []
        self.shared: dict[Any, Memory] = {}

    def persistent_id(self, obj: Any) -> Any:
        return obj.reference(self.legacy) if type(obj) is Memory else None

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        obj = behind(obj)
        if type(obj) is Global:
            return self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode("ascii"))
        if type(obj) is Call:
            return self._call(obj, obj)
        if isinstance(obj, DType):
            return self.save(Global("torch", obj.name))
        if isinstance(obj, (TypedStorage, UntypedStorage)):
            return self.save(self._storage(obj))
        if not isinstance(obj, (TensorBase, Device, Size)):
            return super().save(obj, save_persistent_id)
        known = self.memo.get(id(obj))
        if known is not None:
            return self.write(self.get(known[0]))
        if isinstance(obj, Device):
            parts = (obj.type,) if obj.index is None else (obj.type, obj.index)
            return self._call(Call(Global("torch", "device"), parts), obj)
        if isinstance(obj, Size):
            return self._call(Call(Global("torch", "Size"), (tuple(obj),)), obj)
        return self._call(self._tensor(obj), obj)

    def save_global(self, obj: Any, name: str | None = None) -> Any:
        kept = homes.in_torch(obj)
        other = getattr(obj, "_written_as", Global(*kept) if kept else None)
        return super().save_global(obj, name) if other is None else self.save(other)

    # Without what dill puts there when it is imported, which PyTorch's, Python's in C, does not see either.
    dispatch = {kind: save for kind, save in pickle._Pickler.dispatch.items() if save.__module__ == "pickle"}
    dispatch |= {dict: pickle._Pickler.save_dict, type: pickle._Pickler.save_type, FunctionType: save_global}

    def _call(self, call: Call, obj: Any) -> None:
        """Write a call that makes `obj`: what the base class does for functions that can be imported."""
        self.save(call.function)
        self.save(call.args)
        self.write(pickle.REDUCE)
        if id(obj) not in self.memo:
            self.memoize(obj)

    def _tensor(self, t: Any) -> Call:
        if hasattr(type(t), "materialize"):  # without a shape yet
            return Call(Global("torch.nn.parameter", type(t).__name__), (t._rg, t._device, t.dtype))
        parameter = is_parameter(t)
        requires_grad = t._rg and not parameter
        if requires_grad:
            warn_if_has_hooks(t)
        if t._device.level is not None:
            rebuild, args = _REBUILD_SPARSE, self._sparse(t)
        elif t._device.is_outline:
            (kind, *args), state = importlib.import_module("mortice.subclasses").saved(t)
            kind, args[4] = Global(kind.__module__, kind.__qualname__), Call(_LAYOUT, ("torch.strided",))
            rebuild = Global("torch._utils", "_rebuild_wrapper_subclass"), kind, (kind, *args), state
            return Call(Global("torch._tensor", "_rebuild_from_type_v2"), rebuild)
        elif t._device.backend.has_values:
            memory, offset, strides = self._place(t)
            place = (memory, offset, tuple(t.shape), tuple(strides), requires_grad, OrderedDict())
            typed = t.dtype.name in STORAGES
            rebuild = _REBUILD if typed else _REBUILD_UNTYPED
            args = place if typed else (*place, t.dtype)
        else:
            rebuild, args = _REBUILD_META, (t.dtype, tuple(t.shape), tuple(t.stride()), requires_grad)
        state = state_of(t)
        if parameter:
            name = "_rebuild_parameter" + ("_with_state" if state else "")
            rest = (t._rg, OrderedDict(), *((state,) if state else ()))
            return Call(Global("torch._utils", name), (Call(rebuild, args), *rest))
        ours = type(t).__module__.partition(".")[0] in ("mortice", "torch")
        if not state and ours:
            return Call(rebuild, args)
        kind = Global("torch", "Tensor") if ours else Global(type(t).__module__, type(t).__qualname__)
        return Call(Global("torch._tensor", "_rebuild_from_type_v2"), (rebuild, kind, args, state))

    def _sparse(self, t: Any) -> tuple[Any, ...]:
        """Return what a sparse tensor is rebuilt from."""
        if t._device.level.transforms:
            raise t._device.level.no_memory("save")
        more = (t.is_coalesced(),) if t.is_sparse else ()
        *places, values = t._buffer.parts.values()
        return Call(_LAYOUT, (f"torch.{str(t.layout).rpartition('.')[2]}",)), (*places, values, t.shape, *more)

    def _storage(self, storage: Any) -> Memory:
        """Return the memory of a storage; as other elements than the tensors have that share it, it is one of its own."""
        elements = storage._elements()
        memory, offset, _ = self._place(elements)
        return memory if (offset, memory.size) == (0, elements.nbytes) else self._memory([elements], None, elements.nbytes)

    def _place(self, t: Any) -> tuple[Memory, int, Any]:
        """Return the memory that a tensor is in, and its offset and strides there in elements."""
        storage, backend = t._storage, t._device.backend
        group = None if storage is None else (id(storage.aliases), t.dtype.name, t._device)
        place: Any = None
        if storage is not None and prod(t.shape):
            place = _place_in_root(t) if backend.rooted else (_start(t), layout(t)) if _has_addresses(backend) else None
        if place is not None and min(place[1], default=0) >= 0:
            memory = self.shared.get(group)
            if memory is None:
                memory = self.shared[group] = self._root(t) if backend.rooted else self._joint(t, storage)
            if memory.start is None:
                return memory, *place
            offset, rest = divmod(place[0] - memory.start, t.dtype.itemsize)
            if not rest and offset >= 0 and _span(t)[1] <= memory.start + memory.size:
                return memory, offset, place[1]
        # It has its memory to itself, or PyTorch has no such strides, or there is no telling where it lies.
        whole = ("whole", group if group is not None and t._steps is None else id(t))
        if whole not in self.shared:
            own = make(t._buffer, t._device, t.dtype, t.shape)
            own = own if own.is_contiguous() else t.detach().contiguous()
            self.shared[whole] = self._memory([own], None, own.nbytes)
        return self.shared[whole], 0, contiguous_strides(t.shape)

    def _root(self, t: Any) -> Memory:
        """Return the memory of a root of which all tensors that share it are views."""
        root = t._storage.root
        own = make(root, t._device, t.dtype, Size(t._device.backend.shape_of(root)))
        return self._memory([own], None, own.nbytes)

    def _joint(self, t: Any, storage: Any) -> Memory:
        """Return the memory from the first to the last element of all living tensors that share it with `t`."""
        alike = [a for a in storage.live() if a.dtype is t.dtype and a._device is t._device and prod(a.shape)]
        alike = [a for a in alike if min(layout(a), default=0) >= 0 and (_start(a) - _start(t)) % t.dtype.itemsize == 0]
        starts, ends = zip(*map(_span, alike))
        return self._memory(alike, min(starts), max(ends) - min(starts))

    def _memory(self, tensors: list[Any], start: int | None, size: int) -> Memory:
        self.memories.append(Memory(str(len(self.memories)), tensors, start, size))
        return self.memories[-1]
