"""`_check` and its kin: conditions that raise when they do not hold, with a message that is made only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.dtype import bool_
from mortice.tensor import TensorBase

_UNNAMED = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement "
    "request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None) -> None:
    """Raise an error of a type unless the condition holds."""
    if not isinstance(cond, bool):
        if isinstance(cond, TensorBase):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that "
                "all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(_UNNAMED if message is None else str(message()))


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise a RuntimeError unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """Raise a RuntimeError unless a number is one of a size's, and not above `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise an IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise a ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise a TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise a NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise a RuntimeError unless all elements of a bool tensor are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of a type unless all elements of a bool tensor are true."""
    if not isinstance(cond, TensorBase):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)
