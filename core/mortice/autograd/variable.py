"""Variable: PyTorch's name, before 0.4, for a tensor that takes part in a graph. Every Tensor is one."""

from __future__ import annotations

from typing import Any

from mortice.modes import modes
from mortice.notice import warn
from mortice.tensor import TensorBase


class _Engine:
    """The backward that is running."""

    @staticmethod
    def is_running() -> bool:
        """Tell whether there is one."""
        return modes.running is not None

    @staticmethod
    def queue_callback(fn: Any) -> None:
        """Call `fn()` at its end."""
        if modes.running is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        modes.running.after.append(fn)


class _VariableMeta(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, TensorBase)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, TensorBase)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile:
            warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        if data is None:
            data = TensorBase.cls()
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable: expected data to be a Tensor; got {type(data).__name__}.")
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_VariableMeta):
    """The old name of Tensor: `Variable(t, requires_grad=True)` returns a Tensor over the same memory."""

    _execution_engine = _Engine
