"""mortice.overrides: `__torch_function__` is not imitated, so nothing is ever overridden; the questions say so."""

from __future__ import annotations

from typing import Any

from mortice import Tensor

__all__ = [
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
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


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuse: calls are not handed over."""
    name = getattr(public_api, "__name__", public_api)
    raise TypeError(
        f"{name}: __torch_function__ is not imitated here. Give the class a method of its own, or call the function on "
        "its tensors."
    )
