"""mortice.overrides: `__torch_function__` is not imitated, so nothing is ever overridden; the questions say so."""

from __future__ import annotations

import warnings
from typing import Any

from mortice import Tensor

__all__ = [
    "TorchFunctionMode", "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like",
]  # fmt: skip


def has_torch_function(relevant_args: Any) -> bool:
    """Return False: no argument takes calls over."""
    return False


def has_torch_function_unary(obj: Any) -> bool:
    """Return False: no argument takes calls over."""
    return False


def has_torch_function_variadic(*args: Any) -> bool:
    """Return False: no argument takes calls over."""
    return False


def is_tensor_like(inp: Any) -> bool:
    """Tell whether an object is a Tensor; having `__torch_function__` does not make it one."""
    return isinstance(inp, Tensor)


class TorchFunctionMode:
    """A mode whose `__torch_function__` PyTorch would give every call; here it has no effect, and says so when entered."""

    def __enter__(self) -> Any:
        warnings.warn(
            f"{type(self).__name__}: calls are not handed to a TorchFunctionMode here, so it has no effect.", stacklevel=2
        )
        return self

    def __exit__(self, *exc: Any) -> None:
        pass


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuse: calls are not handed over."""
    name = getattr(public_api, "__name__", public_api)
    raise TypeError(
        f"{name}: __torch_function__ is not imitated here. Give the class a method of its own, or call the function on "
        "its tensors."
    )
