"""Tensor: the public class. Its methods are the functions of `mortice.ops`, listed family by family in the modules here."""

from __future__ import annotations

from importlib import import_module

from mortice import call
from mortice.dtype import get_default_dtype
from mortice.layout import sparse_coo, sparse_csr
from mortice.layout import strided as strided_layout
from mortice.lazy import family
from mortice.methods.arrangement import Arrangement
from mortice.methods.conversion import Conversion, _to_arguments
from mortice.methods.elementwise import Elementwise
from mortice.methods.exchange import Exchange
from mortice.methods.host import HostValues
from mortice.methods.making import Making
from mortice.methods.operators import Operators
from mortice.methods.reduction import Reductions
from mortice.modes import modes
from mortice.shape import check_dim, prod
from mortice.strides import layout
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mortice.ops import queries
else:
    queries = family("ops.queries")


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Compute a call: the `__torch_function__` of a class that takes none over, and whose results are plain tensors."""
    with import_module("mortice.overrides").DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _let_operands_ask(ask: Any) -> None:
    """Let `ask(name, operands, attributes)` answer a method's call in which an operand is no tensor but takes calls over."""
    vars(call)["ASK"] = ask


def _check_derived(name: str, cls: Any) -> None:
    if not (isinstance(cls, type) and issubclass(cls, TensorBase)):
        raise TypeError(f"{name}: Creating a Tensor subclass from a class that does not inherit from Tensor is not possible; got {cls}.")


class _TensorMeta(type):
    """The type of Tensor and of the classes derived from it; `asking` has Tensor's methods, by its name, ask too."""

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> None:
        super().__init__(name, bases, body)
        if not any([isinstance(base, _TensorMeta) for base in bases]):
            return
        told = getattr(cls, "__torch_dispatch__", None) not in (None, _disabled_torch_function_impl)
        if told:
            import_module("mortice.subclasses").tell(cls)
        elif cls.__torch_function__ is not _disabled_torch_function_impl:
            import_module("mortice.overrides").follow(cls)


class Tensor(
    Operators, Elementwise, Reductions, Arrangement, Making, HostValues, Exchange, Conversion, TensorBase, metaclass=_TensorMeta
):
    """A multi-dimensional array of one dtype on one device, that can record what is computed with it.

    `Tensor(2, 3)` is uninitialised floats of that size and `Tensor([2, 3])` is data, as in PyTorch; prefer
    `mortice.tensor` and `mortice.empty`.
    """

    __slots__ = ()
    __module__ = "mortice"  # where users find it, and what printing its class shows
    # NumPy must leave `ndarray + tensor` to the tensor.
    __array_priority__ = 1000

    def __new__(cls, *data: Any, device: Any = None, **named: Any) -> Any:
        alike = len(data) == 1 and isinstance(data[0], TensorBase) and not named
        if alike and device is not None:
            raise RuntimeError("Tensor: expected a tensor or a device, not both. Use .to(device).")
        if alike and (data[0]._device.level is None or not data[0]._device.level.transforms):
            made = data[0]
            own = made.own_storage()
            t = object.__new__(cls)
            t._buffer, t._device, t._dtype, t._shape = made._buffer, made._device, made.dtype, made.shape
            t._rg = False
            t._node = t._leaf = None
            t.set_storage(own, made._steps)
            return t
        from mortice.ops import storage

        made = storage.old_style(data, data[0].dtype if alike else get_default_dtype(), device, named)
        t = object.__new__(cls)
        t._buffer, t._device, t._dtype, t._shape = made._buffer, made._device, made.dtype, made.shape
        t._rg = False
        t._node = t._storage = t._leaf = None
        if made._storage is not None:
            t.set_storage(made._storage, made._steps)
        return t

    @staticmethod
    def _make_subclass(cls: Any, data: Any, require_grad: bool = False) -> Any:
        """Return a tensor of a class on the storage of another, outside its graph: what classes of weights are made with."""
        _check_derived("_make_subclass", cls)
        made = Tensor.__new__(cls, data)
        Tensor.requires_grad.__set__(made, require_grad)  # the class is not asked: its tensor is not finished
        return made

    @staticmethod
    def _make_wrapper_subclass(*args: Any, **kwargs: Any) -> Any:
        """Return a tensor of a class with `__torch_dispatch__`, without elements; see `subclasses`."""
        return import_module("mortice.subclasses").wrapper(*args, **kwargs)

    def as_subclass(self, cls: Any) -> Any:
        """Return a view of all of it as a tensor of a class, in the same graph."""
        _check_derived("as_subclass", cls)
        seen: Any = Operators.__getitem__(self, ...)  # a class may have an index of its own
        try:
            seen.__class__ = cls
        except TypeError:  # one with slots, whose tensors have another layout
            made = object.__new__(cls)
            for name in TensorBase.__slots__:
                if name[1] != "_" and hasattr(seen, name):
                    setattr(made, name, getattr(seen, name))
            if made._storage is not None:
                made._storage.add(made)
            return made
        return seen

    # Of a class derived from Tensor it is asked about every call of a public function or method; see `mortice.overrides`.
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute a call in which a tensor of a derived class takes part; what comes out is of that class too."""
        return import_module("mortice.overrides")._computed(cls, func, types, args, kwargs)

    # ---- what it is ----

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    nelement = numel

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
        if self._device.level is not None and self.layout is not strided_layout:
            raise self._device.level.no_memory("stride")
        strides = layout(self)
        return tuple(strides) if dim is None else strides[check_dim("stride", dim, len(self.shape))]

    @property
    def layout(self) -> Any:
        """The kind of storage: strided, sparse_coo, or a compressed one such as sparse_csr."""
        level = self._device.level
        return strided_layout if level is None else level.layout(self._buffer)

    @property
    def is_sparse(self) -> bool:
        """Whether its layout is sparse_coo."""
        level = self._device.level  # `layout` spelled out, since optimisers ask it of every gradient
        return level is not None and level.layout(self._buffer) is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether its layout is sparse_csr."""
        return self.layout is sparse_csr

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

    @property
    def is_meta(self) -> bool:
        """Whether it has a shape and a dtype, and no elements."""
        return self._device.type == "meta"

    # What no tensor here is.
    is_quantized, is_mkldnn, is_nested, is_ipu, is_maia, is_mps, is_mtia, is_vulkan, is_xla, is_xpu = (
        property(lambda self: False) for _ in range(10)
    )
    name = None
    is_nonzero, is_same_size, is_set_to = queries.is_nonzero, queries.is_same_size, queries.is_set_to

    def get_device(self) -> int:
        """Return the index of the device, -1 for the CPU."""
        return -1 if self._device.index is None else self._device.index

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return tuple.__getitem__(self.shape, 0)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor; only with a dim do max() and min() give values and indices")
        if not self._rg and type(self) is Tensor:  # a class is told of unbind, once
            return map(self.__getitem__, range(len(self)))  # who only asks whether it can be iterated makes no rows
        rows = self.unbind(0)  # one node for all of them
        if modes.grad:
            for row in rows:
                row._note = getattr(self, "_note", "")  # PyTorch refuses writes into these; SciPy makes them, and autograd follows
        return iter(rows)


TensorBase.cls = call.Tensor = Tensor
