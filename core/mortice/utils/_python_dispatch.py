"""What libraries name of PyTorch's dispatcher: modes that are told of every operator, and whether a tensor wraps some."""

from mortice.dispatching import TorchDispatchMode
from mortice.dispatching import _told as _disable_current_modes  # noqa: F401

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Return False: classes of tensors are asked by `__torch_function__`, not by operators."""
    return False
