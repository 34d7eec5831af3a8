"""Methods that convert and move: dtypes, devices, copies, pickles."""

from __future__ import annotations

import copyreg
import sys
from importlib import import_module

from mortice.backends.host import HostBuffer
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import (
    CLASS_NAMES,
    DType,
    as_dtype,
    bool_,
    by_name,
    float16,
    float32,
    float64,
    get_default_dtype,
    int64,
)
from mortice.errors import DeviceError
from mortice.layout import strided
from mortice.ops import movement
from mortice.shape import Size
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Conversion(TensorBase):
    """To another dtype, device or object."""

    __slots__ = ()

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`, `to(backend=...)`; self if unchanged.

        Differs from torch: float8 is stored and converted; the little that PyTorch computes in it (abs, mul, matmul) is refused,
        gradients of such tensors are float32, and forward mode sees constants.
        """
        if not kwargs and len(args) == 1:  # the commonest calls
            kind = type(args[0])
            if kind is DType:
                return movement.cast(self, args[0])
            if kind is str and args[0] == self._device.type and self._device.index is None:
                return self
            if kind is Device and (args[0] is self._device.base or args[0] == self._device):
                return self
            if isinstance(args[0], TensorBase) and args[0]._device is self._device:
                return movement.cast(self, args[0].dtype)
        device, dtype, copy, backend, memory_format, later = _to_arguments(args, kwargs)
        t: Any = self
        if device is not None or backend is not None:
            if backend is None and Device(device) == self._device:
                target = self._device
            else:
                target = resolve(device if device is not None else None, backend) if (
                    device is not None or backend is not None) else self._device  # fmt: skip
            if dtype is not None and t.dtype.stored not in target.backend.dtypes(target):
                t = movement.cast(t, dtype)  # what the target lacks is converted before the move
            t = movement.transfer(t, target, later)
        if dtype is not None:
            t = movement.cast(t, dtype)
        return movement.clone(t, memory_format=memory_format) if copy and t is self else movement.in_format(t, memory_format, t is not self)

    def type(self, dtype: Any = None, non_blocking: bool = False, *, memory_format: Any = None) -> Any:
        """Convert to a dtype; without one, return the name of PyTorch's class for this dtype."""
        device = getattr(dtype, "device_type", None)
        if isinstance(dtype, str):
            device = "cuda" if ".cuda." in dtype else "cpu"
            name = dtype.rpartition(".")[2].removesuffix("Tensor")
            found = next((d for d, class_name in CLASS_NAMES.items() if class_name == name), None)
            if found is None or not dtype.endswith("Tensor"):
                raise ValueError(
                    f"type: invalid type: {dtype!r}; expected a dtype or a name such as 'mortice.FloatTensor'."
                )
            dtype = by_name(found)
        if isinstance(dtype, type) and issubclass(dtype, TensorBase):  # Tensor itself stands for the default dtype
            dtype = get_default_dtype()
        if dtype is not None:
            dtype = getattr(dtype, "dtype", dtype)
            return self.to(device, dtype) if device and (device == "cuda") != self.is_cuda else self.to(dtype)
        library = repr(self.dtype).partition(".")[0]
        return f"{library}.{'cuda.' if self.is_cuda else ''}{'sparse.' if self.is_sparse else ''}{CLASS_NAMES[self.dtype.name]}Tensor"

    def type_as(self, other: Any) -> Any:
        """Convert to the dtype of another tensor, on its device."""
        if not isinstance(other, TensorBase):
            raise TypeError(f"type_as: expected other to be a Tensor; got {type(other).__name__}.")
        return self.to(other.dtype) if self._device is other._device else self.to(other._device, other.dtype)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
        """Return all elements of a sparse tensor as a dense one; a dense one itself, or a conversion to a dtype."""
        if self._device.level is not None and self.layout is not strided:
            return import_module("mortice.sparse.coo").to_dense(self, dtype)
        return self if dtype is None else movement.cast(self, as_dtype("to_dense", dtype))

    def cpu(self, *, memory_format: Any = None) -> Any:
        """Return it on the CPU; self if it is there."""
        return movement.in_format(self if self.is_cpu else self.to("cpu"), memory_format)

    def cuda(self, device: Any = None, non_blocking: bool = False, *, memory_format: Any = None) -> Any:
        """Return it on a CUDA device."""
        there = Device("cuda" if device is None else device)
        if there.type != "cuda":
            raise DeviceError(f"cuda: Invalid device, must be cuda device; got {there}. Use .to(device).")
        return self.to(there, non_blocking=non_blocking, memory_format=memory_format)

    contiguous, is_contiguous = movement.contiguous, movement.is_contiguous

    # fmt: off
    def float(self, *, memory_format: Any = None) -> Any: return _as(self, float32, memory_format)
    def double(self, *, memory_format: Any = None) -> Any: return _as(self, float64, memory_format)
    def half(self, *, memory_format: Any = None) -> Any: return _as(self, float16, memory_format)
    def bfloat16(self, *, memory_format: Any = None) -> Any: return _as(self, by_name("bfloat16"), memory_format)
    def long(self, *, memory_format: Any = None) -> Any: return _as(self, int64, memory_format)
    def int(self, *, memory_format: Any = None) -> Any: return _as(self, by_name("int32"), memory_format)
    def short(self, *, memory_format: Any = None) -> Any: return _as(self, by_name("int16"), memory_format)
    def char(self, *, memory_format: Any = None) -> Any: return _as(self, by_name("int8"), memory_format)
    def byte(self, *, memory_format: Any = None) -> Any: return _as(self, by_name("uint8"), memory_format)
    def bool(self, *, memory_format: Any = None) -> Any: return _as(self, bool_, memory_format)
    def cfloat(self, *, memory_format: Any = None) -> Any: return _as(self, by_name("complex64"), memory_format)
    def cdouble(self, *, memory_format: Any = None) -> Any: return _as(self, by_name("complex128"), memory_format)
    # fmt: on

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
    ) -> None:
        """Compute the gradients of this tensor with respect to the leaves and add them to their `.grad`."""
        import mortice.autograd as autograd  # `from` a package takes a microsecond each time

        autograd.backward(self, gradient, retain_graph, create_graph, None, inputs)

    def detach_(self) -> Any:
        """Leave the graph in place."""
        if self._base is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._node, self._rg = None, False
        if self._device.level is not None and self._device.level.transforms:  # leaves forward mode too
            self._buffer = self.own_storage().root = self._device.backend.detached(self._buffer)
        return self

    def __copy__(self) -> Any:
        # The same memory, so that a shallow copy of a module trains the module's own parameters.
        t = _over(self, self.detach())
        _take_over(t, self.__dict__, slots_of(self))
        return t

    def __deepcopy__(self, memo: Any) -> Any:
        if self._node is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        if id(self) in memo:
            return memo[id(self)]
        import copy

        from mortice.ops.storage import copied

        t = _over(self, copied(self.detach(), memo))
        memo[id(self)] = t
        _take_over(t, *copy.deepcopy((self.__dict__, slots_of(self)), memo))
        if self._leaf is not None and self._leaf.grad is not None:
            t._state().grad = copy.deepcopy(self._leaf.grad, memo)
        return t

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._device.level is not None:
            return self._device.level.pickled(self)
        if self._device.is_outline:
            return import_module("mortice.subclasses").pickled(self)
        data = self.detach()._host().tobytes() if self._device.backend.has_values else b""
        if not is_parameter(self):
            import_module("mortice.autograd.graph").warn_if_has_hooks(self)
        state = (data, tuple(self.shape), self.dtype, str(self._device), self._rg)
        kept = state_of(self)
        kind, (head, _, rest) = type(self), type(self).__module__.partition(".")
        # A program in which mortice stands for PyTorch writes what others can read too.
        named: Any = (f"mortice.{rest}".rstrip("."), kind.__name__) if head == "torch" else kind
        return (_rebuild, (named, state), kept or None)

    def __setstate__(self, state: Any) -> None:
        """Take over the attributes that a pickle has kept."""
        _take_over(self, *(state if isinstance(state, tuple) else (state, {})))


def is_parameter(x: Any) -> bool:
    """Tell whether a tensor is of the class Parameter, and not called one by its `_is_param` alone."""
    layers = sys.modules.get("mortice.nn.parameter")
    return layers is not None and layers.Parameter in type(x).__mro__


def slots_of(x: Any) -> dict[str, Any]:
    """Return what is in the slots of a tensor's class, which are no part of `__dict__`."""
    names = copyreg._slotnames(type(x))
    return {name: getattr(x, name) for name in names if not hasattr(TensorBase, name) and hasattr(x, name)}


def state_of(x: Any) -> Any:
    """Return what a file keeps of the attributes that a tensor was given: what its class says, or all."""
    kind: Any = type(x)
    if kind.__getstate__ is not object.__getstate__:
        return x.__getstate__()
    slots = slots_of(x)
    return (dict(x.__dict__), slots) if slots else dict(x.__dict__)


def _take_over(t: Any, attributes: dict[str, Any], slots: dict[str, Any]) -> None:
    t.__dict__.update(attributes)
    for name, value in slots.items():
        setattr(t, name, value)


def _over(x: Any, seen: Any) -> Any:
    """Make a leaf of x's class over the memory of another tensor."""
    t = object.__new__(type(x))
    for name in ("_buffer", "_device", "_dtype", "_shape"):
        setattr(t, name, getattr(seen, name))
    t._rg, t._node, t._storage, t._leaf = x._rg, None, None, None
    if seen._storage is not None:
        t.set_storage(seen._storage, seen._steps)
    return t


def _as(x: Any, dtype: DType, memory_format: Any) -> Any:
    made = movement.cast(x, dtype)
    return movement.in_format(made, memory_format, made is not x)


def _to_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any, Any, bool]:
    """Sort the arguments of `to`: device, dtype, whether to copy, backend, memory format, whether later."""
    given, rest = dict(kwargs), list(args)
    if rest and _is_dtype(rest[0]):
        given["dtype"] = rest.pop(0)
    elif rest and isinstance(rest[0], TensorBase):
        given["other"] = rest.pop(0)
    elif rest and not isinstance(rest[0], bool):
        given["device"] = rest.pop(0)
        if rest:
            given["dtype"] = rest.pop(0)
    given.update(zip(("non_blocking", "copy"), rest))
    other, device = given.pop("other", None), given.pop("device", None)
    dtype, copy, backend, memory_format = (given.pop(name, None) for name in ("dtype", "copy", "backend", "memory_format"))
    later = bool(given.pop("non_blocking", None))
    if given or len(rest) > 2 or not all(isinstance(flag, bool) for flag in rest):
        wrong = ", ".join([*given, *map(repr, rest)])
        raise TypeError(f"to: expected (dtype), (device, dtype) or (other), then non_blocking and copy; got {wrong} as well.")
    if device is not None and not isinstance(device, (str, int, Device)):
        raise TypeError(f"to: expected a dtype, a device or a Tensor; got {device!r}.")
    if other is not None:
        device, dtype = other._device, other.dtype
    return device, None if dtype is None else as_dtype("to", dtype), bool(copy), backend, memory_format, later


def _is_dtype(value: Any) -> bool:
    return isinstance(value, (DType, type))


def _rebuild(cls: Any, state: Any) -> Any:
    """Rebuild a pickled tensor, on its device where it exists, else on the default one."""
    data, shape, dtype, device, requires_grad = state
    if isinstance(cls, tuple):
        cls = getattr(import_module(cls[0]), cls[1])
    try:
        where = resolve(device)
    except RuntimeError:
        where = resolve()
    t = object.__new__(cls)
    t._buffer = where.backend.from_host(HostBuffer(bytearray(data), shape, dtype), where)
    t._device, t._dtype, t._shape = where, dtype, Size(shape)
    t._rg, t._node, t._storage, t._leaf = requires_grad, None, None, None
    return t
