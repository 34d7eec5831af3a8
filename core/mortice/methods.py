"""Tensor: the public class. Its methods are the functions of `mortice.ops`, listed here so that an editor finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mortice import mutation
from mortice.backends.host import HostBuffer
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import DType, bool_, float16, float32, float64, int64
from mortice.mutation import assign, check_writable, inplace, layout
from mortice.ops import creation, elementwise, index, movement
from mortice.printing import tensor_repr
from mortice.shape import Size, SizeMember, check_dim, contiguous_strides, prod
from mortice.tensor import TensorBase, make


def _operator(fn: Any) -> Any:
    """Make the operator of a function of two operands: other types may answer with their own."""

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, (TensorBase, int, float, complex)):
            return fn(self, other)
        return _foreign_operand(fn, self, other, False)

    return method


def _reflected(fn: Any) -> Any:
    """Make the operator with the tensor on the right."""

    def method(self: Any, other: Any) -> Any:
        return fn(other, self) if isinstance(other, (int, float, complex)) else _foreign_operand(fn, self, other, True)

    return method


def _foreign_operand(fn: Any, self: Any, other: Any, swapped: bool) -> Any:
    if creation.is_array(other) and not isinstance(other, (memoryview, bytearray)):
        other = other.item() if getattr(other, "shape", None) == () else creation.as_tensor(other, device=self._device)
        return fn(other, self) if swapped else fn(self, other)
    return NotImplemented


class Tensor(TensorBase):
    """A multi-dimensional array of one dtype on one device, that can record what is computed with it.

    `Tensor(2, 3)` is uninitialised floats of that size and `Tensor([2, 3])` is data, as in PyTorch; prefer
    `mortice.tensor` and `mortice.empty`.
    """

    __slots__ = ()
    # NumPy must leave `ndarray + tensor` to the tensor.
    __array_priority__ = 1000

    def __new__(cls, *data: Any, device: Any = None) -> Any:
        if len(data) == 1 and not isinstance(data[0], int):
            made = data[0].detach() if isinstance(data[0], TensorBase) else creation.tensor(
                data[0], dtype=creation.get_default_dtype(), device=device
            )  # fmt: skip
        else:
            made = creation.empty(*data, device=device) if data else creation.empty(0, device=device)
        t = object.__new__(cls)
        t._data, t._device, t.dtype, t.shape = made._data, made._device, made.dtype, made.shape
        t._rg, t._node, t._alias, t._leaf = False, None, made._alias, None
        if t._alias is not None:
            t._alias.storage.add(t)
        return t

    # ---- what it is ----

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    nelement = numel

    @property
    def size(self) -> SizeMember:
        """The number of elements; called, `size()` is the shape and `size(dim)` one size."""
        return SizeMember(self.shape)

    ndimension = TensorBase.dim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides in elements, or that of one dim."""
        strides = layout(self)
        return tuple(strides) if dim is None else strides[check_dim("stride", dim, len(self.shape))]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Tell whether the elements lie in row-major order."""
        return movement._is_row_major(self)

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is a float."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Tell whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Tell whether the dtype has negative numbers."""
        return self.dtype.is_signed

    @property
    def is_cuda(self) -> bool:
        """Whether it lives on a CUDA device."""
        return self._device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether it lives on the CPU."""
        return self._device.type == "cpu"

    def get_device(self) -> int:
        """Return the index of the device, -1 for the CPU."""
        return -1 if self._device.index is None else self._device.index

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return tuple.__getitem__(self.shape, 0)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(len(self))])

    # ---- values on the host ----

    def _host(self) -> HostBuffer:
        return self._device.backend.to_host(self._data)  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """Return nested lists of Python numbers, or one number when 0-d."""
        return self._host().tolist()

    def item(self) -> Any:
        """Return the Python number of a one-element tensor."""
        if prod(self.shape) != 1:
            raise RuntimeError(f"item: a Tensor with {self.numel()} elements cannot be converted to Scalar.")
        return self._device.backend.item(self._data)

    def __bool__(self) -> bool:
        n = prod(self.shape)
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        if n > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all().")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iub" or prod(self.shape) != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.shape and spec else str(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return tensor_repr(self)

    def __contains__(self, item: Any) -> bool:
        if not isinstance(item, (TensorBase, int, float, complex)):
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar; got {type(item).__name__}.")
        return bool((self == item).any().item())

    def numpy(self, *, force: bool = False) -> Any:
        """Return a NumPy array over the same memory; needs a CPU tensor outside the graph, or `force=True`."""
        x = self
        if force:
            x = x.detach().cpu()
        if x._rg:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        if not x.is_cpu:
            raise TypeError(
                f"can't convert {x.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        from mortice.interop import to_numpy

        x._storage().pinned = True
        return to_numpy(x)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self.numpy()
        if dtype is not None and found.dtype != dtype:
            return found.astype(dtype)
        return found.copy() if copy else found

    def data_ptr(self) -> int:
        """Return the address of the first element, where the backend has one."""
        self._storage().pinned = True
        return self._device.backend.address(self._data)  # type: ignore[no-any-return]

    # ---- conversion and moving ----

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`, `to(backend=...)`; self if unchanged."""
        device, dtype, copy, backend = _to_arguments(args, kwargs)
        t = self
        if device is not None or backend is not None:
            if backend is None and Device(device) == self._device:
                target = self._device
            else:
                target = resolve(device if device is not None else None, backend) if (
                    device is not None or backend is not None) else self._device  # fmt: skip
            t = movement.transfer(t, target)
        if dtype is not None:
            t = movement.cast(t, dtype)
        return movement.clone(t) if copy and t is self else t

    def type(self, dtype: Any = None) -> Any:
        """Convert to a dtype; without one, return the name of PyTorch's class for this dtype."""
        if dtype is not None:
            return self.to(dtype)
        return f"mortice.{_CLASS_NAMES[self.dtype.name]}Tensor"

    def type_as(self, other: Any) -> Any:
        """Convert to the dtype of another tensor."""
        return self.to(other.dtype)

    def cpu(self, memory_format: Any = None) -> Any:
        """Return it on the CPU; self if it is there."""
        return self if self.is_cpu else self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Return it on a CUDA device."""
        return self.to("cuda" if device is None else Device(device))

    def contiguous(self, memory_format: Any = None) -> Any:
        """Return it in row-major order; self if it is."""
        return self if movement._is_row_major(self) else movement.clone(self)

    # fmt: off
    def float(self) -> Any: return self.to(float32)
    def double(self) -> Any: return self.to(float64)
    def half(self) -> Any: return self.to(float16)
    def bfloat16(self) -> Any: return self.to(creation_dtype("bfloat16"))
    def long(self) -> Any: return self.to(int64)
    def int(self) -> Any: return self.to(creation_dtype("int32"))
    def short(self) -> Any: return self.to(creation_dtype("int16"))
    def char(self) -> Any: return self.to(creation_dtype("int8"))
    def byte(self) -> Any: return self.to(creation_dtype("uint8"))
    def bool(self) -> Any: return self.to(bool_)
    def cfloat(self) -> Any: return self.to(creation_dtype("complex64"))
    def cdouble(self) -> Any: return self.to(creation_dtype("complex128"))
    # fmt: on

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
    ) -> None:
        """Compute the gradients of this tensor with respect to the leaves and add them to their `.grad`."""
        from mortice.autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach_(self) -> Any:
        """Leave the graph in place."""
        if self._base is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._node, self._rg = None, False
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        if self._node is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        if id(self) in memo:
            return memo[id(self)]
        import copy

        made = movement.clone(self.detach())
        t = object.__new__(type(self))
        for name in ("_data", "_device", "dtype", "shape"):
            setattr(t, name, getattr(made, name))
        t._rg, t._node, t._alias, t._leaf = self._rg, None, None, None
        memo[id(self)] = t
        t.__dict__.update(copy.deepcopy(self.__dict__, memo))
        if self._leaf is not None and self._leaf.grad is not None:
            t._state().grad = copy.deepcopy(self._leaf.grad, memo)
        return t

    def __reduce_ex__(self, protocol: Any) -> Any:
        host = self.detach()._host()
        state = (host.tobytes(), tuple(self.shape), self.dtype, str(self._device), self._rg, dict(self.__dict__))
        return (_rebuild, (type(self), state))

    # ---- operators ----

    __hash__ = TensorBase.__hash__
    __add__ = __radd__ = _operator(elementwise._add)
    __sub__, __rsub__ = _operator(elementwise._sub), _reflected(elementwise._sub)
    __mul__ = __rmul__ = _operator(elementwise.mul)
    __truediv__, __rtruediv__ = _operator(elementwise._div), _reflected(elementwise._div)
    __floordiv__, __rfloordiv__ = _operator(elementwise.floor_divide), _reflected(elementwise.floor_divide)
    __lt__ = _operator(elementwise.lt)
    __getitem__ = index.getitem
    __setitem__ = index.setitem

    # ---- elementwise ----

    mul = elementwise.mul

    # ---- movement ----

    view, reshape, permute, transpose, t = (
        movement.view, movement.reshape, movement.permute, movement.transpose, movement.t)  # fmt: skip
    expand, broadcast_to, squeeze, unsqueeze = (
        movement.expand, movement.broadcast_to, movement.squeeze, movement.unsqueeze)  # fmt: skip
    clone = movement.clone

    # ---- indexing ----

    index_put, index_put_, copy_ = index.index_put, index.index_put_, index.copy_

    # ---- creation ----

    new_zeros, new_ones, new_empty = creation.new_zeros, creation.new_ones, creation.new_empty
    new_full, new_tensor = creation.new_full, creation.new_tensor


_CLASS_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip


def creation_dtype(name: str) -> DType:
    """Return a dtype by name, inside the class whose methods are called like dtypes."""
    from mortice.dtype import by_name

    return by_name(name)


def _to_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Sort the arguments of `to`."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    backend, copy = kwargs.pop("backend", None), kwargs.pop("copy", False)
    other = kwargs.pop("other", None)
    kwargs.pop("non_blocking", None), kwargs.pop("memory_format", None)
    if kwargs:
        raise TypeError(f"to: unexpected arguments {', '.join(kwargs)}.")
    flags = 0
    for a in args:
        if isinstance(a, DType):
            dtype = a
        elif isinstance(a, TensorBase):
            other = a
        elif isinstance(a, (str, Device)) or (isinstance(a, int) and not isinstance(a, bool)):
            device = a
        elif isinstance(a, bool):
            copy = a if flags else copy
            flags += 1
        elif a is not None:
            raise TypeError(f"to: expected a dtype, a device or a Tensor; got {a!r}.")
    if other is not None:
        device, dtype = other._device, other.dtype
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"to: expected dtype to be a mortice dtype; got {dtype!r}.")
    return device, dtype, copy, backend


def _rebuild(cls: Any, state: Any) -> Any:
    """Rebuild a pickled tensor, on its device where it exists, else on the default one."""
    data, shape, dtype, device, requires_grad, extra = state
    try:
        where = resolve(device)
    except RuntimeError:
        where = resolve()
    t = object.__new__(cls)
    t._data = where.backend.from_host(HostBuffer(bytearray(data), shape, dtype), where)
    t._device, t.dtype, t.shape = where, dtype, Size(shape)
    t._rg, t._node, t._alias, t._leaf = requires_grad, None, None, None
    t.__dict__.update(extra)
    return t


TensorBase.cls = Tensor
