"""What libraries name of PyTorch's dispatcher: modes and classes that are told of every operator."""

from importlib import import_module
from typing import Any

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type"]  # noqa: F822


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Tell whether tensors of a class say which tensors they wrap."""
    return all(hasattr(t, f"__{name}__") for name in ("torch_dispatch", "tensor_flatten", "tensor_unflatten"))


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Tell whether a tensor says which tensors it wraps, by `__tensor_flatten__`, and can be made of them again."""
    return is_traceable_wrapper_subclass_type(type(t))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("mortice.subclasses"), name)
