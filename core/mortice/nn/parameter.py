"""Parameter and Buffer, tensors that a Module registers when they are assigned to it, and their forms without a shape."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

import mortice
from mortice import Tensor, _disabled_torch_function_impl
from mortice.printing import parameter_repr

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


def _from_tensor(cls: Any, data: Any) -> Any:
    if data is None:
        return Tensor.__new__(cls)
    if not isinstance(data, Tensor):
        raise AttributeError(f"{cls.__name__}: expected a Tensor; got {type(data).__name__}. Use mortice.tensor(...) first.")
    return Tensor.__new__(cls, data)


class _ParameterMeta(type(Tensor)):
    """Tensors of other classes are parameters too once they are marked: they keep their class, and what it does."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a weight: it requires grad, and assigning it to a Module registers it there.

    Of a tensor of another class it makes one of that class, which `isinstance` takes for a Parameter.
    """

    __slots__ = ()
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, Tensor) and type(data) is not Tensor and not type.__instancecheck__(Parameter, data):
            t = data.detach().requires_grad_(requires_grad)
            if type(t) is type(data):
                t._is_param = True
                return t
            if data._device.is_outline:
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an instance "
                    f"of the same type, but return type {type(t).__name__} was found instead. Have its __torch_dispatch__ do so."
                )
        t = _from_tensor(cls, data)
        t.requires_grad = requires_grad
        return t

    def __deepcopy__(self, memo: Any) -> Any:
        # Unlike other tensors, a copied parameter starts without the gradient.
        if id(self) not in memo:
            memo[id(self)] = made = type(self)(self.data.clone(), self.requires_grad)
            made.__dict__.update(deepcopy(self.__dict__, memo))
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return parameter_repr(self, Tensor.__repr__(self))


class Buffer(Tensor):
    """A tensor that is state but no weight: assigning it to a Module registers it as a buffer."""

    __slots__ = ()
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        t = _from_tensor(cls, data)
        if isinstance(data, Tensor):
            t.requires_grad = data.requires_grad
        t.persistent = persistent
        return t


# ---- without a shape yet ----


class UninitializedError(RuntimeError, ValueError):
    """A parameter or buffer was used before its shape is known."""


class UninitializedTensorMixin:
    """A tensor that has a dtype and a device and no shape; `materialize` gives it one.

    It can be moved and converted; whatever else asks for its shape or values is told what to do.
    """

    __slots__ = ()
    cls_to_become: ClassVar[Any]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or tensor of that shape, with uninitialised values."""
        own: Any = self
        own.data = mortice.empty(shape, device=device or own.device, dtype=dtype or own.dtype)
        own.__class__ = self.cls_to_become

    def _refuse(self, what: str) -> Any:
        raise UninitializedError(
            f"Can't {what} an uninitialized parameter or buffer: its shape is not known yet. When using lazy modules, call "
            "`forward` with a dummy batch first. When loading into an initialized module, initialize the module that was saved."
        )

    @property
    def shape(self) -> Any:
        return self._refuse("access the shape of")

    @property
    def data(self) -> Any:
        """An empty tensor of its dtype, on its device."""
        own: Any = self
        return mortice.empty(0, device=own.device, dtype=own.dtype)

    @data.setter
    def data(self, value: Any) -> None:
        Tensor.data.__set__(self, value)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Return what `materialize` would start from, converted or moved."""
        return self.data.to(*args, **kwargs)

    def type(self, dtype: Any = None) -> Any:
        """Convert to a dtype."""
        return self.data.type(dtype)

    def cpu(self) -> Any:
        """Return it on the CPU."""
        return self.data.cpu()

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Return it on a CUDA device."""
        return self.data.cuda(device, non_blocking)

    def _host(self) -> Any:
        return self._refuse("access the values of")

    def share_memory_(self) -> Any:
        """Refuse."""
        return self._refuse("share memory on")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            cls, settings, attributes = self.__reduce_ex__(4)
            memo[id(self)] = made = cls(*settings)
            made.__dict__.update(attributes)
        return memo[id(self)]

    def __copy__(self) -> Any:
        return self.__deepcopy__({})  # there are no values to share

    def __reduce_ex__(self, protocol: Any) -> Any:
        own: Any = self
        return type(self), (own.requires_grad, str(own.device), own.dtype), dict(own.__dict__)


def _without_shape(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    t = Tensor.__new__(cls, mortice.empty(0, device=device, dtype=dtype))
    t.requires_grad = requires_grad
    return t


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return _without_shape(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        t = _without_shape(cls, requires_grad, device, dtype)
        t.persistent = persistent
        return t


def is_lazy(param: Any) -> bool:
    """Tell whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
