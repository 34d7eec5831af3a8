"""Methods that read values on the host, and those by which Python asks for them."""

from __future__ import annotations

import functools
from importlib import import_module

from mortice.backends.host import unpack
from mortice.lazy import family
from mortice.shape import prod
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.backends.host import HostBuffer
    from mortice.ops import mapped
else:
    mapped = family("ops.mapped")


_GRADIENT = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)


@functools.cache
def _notice() -> Any:
    from mortice import notice  # not before somebody is warned

    return notice


class HostValues(TensorBase):
    """Values as Python has them."""

    __slots__ = ()

    def _host(self) -> HostBuffer:
        if self._device.is_outline:
            return import_module("mortice.subclasses")._values(self)._host()
        host = self._device.backend.to_host(self._buffer)
        if (d := self.dtype).stored is not d:
            host.dtype = d
        return host

    def tolist(self) -> Any:
        """Return nested lists of Python numbers, or one number when 0-d."""
        return self._host().tolist()

    def item(self) -> Any:
        """Return the Python number of a one-element tensor."""
        if prod(self.shape) != 1:
            raise RuntimeError(f"item: a Tensor with {self.numel()} elements cannot be converted to Scalar. Use .tolist().")
        value, d = self._device.backend.item(self._buffer), self._dtype
        return value if d.stored is d else unpack(bytes((value,)), d)[0]

    def __bool__(self) -> bool:
        n = prod(self.shape)
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        if n > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all().")
        return bool(self.item())

    def _scalar(self) -> Any:
        if prod(self.shape) != 1:
            raise ValueError(f"only one element tensors can be converted to Python scalars; got shape {list(self.shape)}.")
        return self.item()

    def _real(self, name: str) -> Any:
        value = self._scalar()
        if isinstance(value, complex):
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {name} without overflow; got {value}.")
            return value.real
        return value

    def __int__(self) -> int:
        return int(self._real("int"))

    def __float__(self) -> float:
        if self._rg:
            _notice().warn(_GRADIENT, once=True)
        return float(self._real("float"))

    def __complex__(self) -> complex:
        if self._rg:
            _notice().warn(_GRADIENT, once=True)
        return complex(self._scalar())

    def __index__(self) -> int:
        if self.dtype.kind not in "iub" or prod(self.shape) != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        # As in PyTorch, a 0-d tensor is formatted as its number; what has more elements, or no values, takes no format.
        number = not self.shape and type(self) is TensorBase.cls and not self.is_meta
        return format(self.item(), spec) if number else object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from mortice.printing import tensor_repr

        level = self._device.level
        if level is not None:
            return level.text(self)
        return tensor_repr(self, tensor_contents)

    def __contains__(self, item: Any) -> bool:
        from numbers import Number

        if not isinstance(item, (TensorBase, Number)):
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(item)}.")
        return bool((self == item).any().item())

    def __reversed__(self) -> Any:
        return self.flip(0) if self.shape else self

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    apply_, map_, map2_ = mapped.apply_, mapped.map_, mapped.map2_
