"""What libraries name of PyTorch's dispatcher: modes and classes that are told of every operator, and what these are made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice import Tensor
from mortice.dispatching import TorchDispatchMode, modes
from mortice.dispatching import _told as _disable_current_modes  # noqa: F401

__all__ = [
    "TorchDispatchMode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type", "return_and_correct_aliasing",
    "transform_subclass",
]  # fmt: skip


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Tell whether tensors of a class say which tensors they wrap."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Tell whether a tensor says which tensors it wraps, by `__tensor_flatten__`."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None) -> Any:
    """Return a wrapper of what `callback(name, tensor)` makes of each tensor that one wraps."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size, stride = t.size() if outer_size is None else outer_size, t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return what an operator's result is to its caller: of one that writes the tensor written, of others `out`."""
    if func._schema.is_mutable and isinstance(args[0], Tensor):
        return args[0]
    return (kwargs or {}).get("out", out)


def _get_current_dispatch_mode() -> Any:
    return modes.dispatch[-1] if modes.dispatch else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return list(modes.dispatch)
