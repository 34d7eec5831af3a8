"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

from mortice import Tensor
from mortice.printing import parameter_repr


class Parameter(Tensor):
    """A tensor that is a weight: it requires grad, and assigning it to a Module registers it there."""

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        t = Tensor.__new__(cls) if data is None else Tensor.__new__(cls, data)
        t.requires_grad = requires_grad
        return t

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return parameter_repr(self)


class Buffer(Tensor):
    """A tensor that is state but no weight: assigning it to a Module registers it as a buffer."""

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        t = Tensor.__new__(cls) if data is None else Tensor.__new__(cls, data)
        t.persistent = persistent
        return t
