"""What libraries name of PyTorch's dispatcher, which has no like here: the type of its modes, and whether a tensor wraps some."""

from typing import Any

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """The type of a mode that is told of every operator; entering one is refused."""

    def __enter__(self) -> Any:
        raise NotImplementedError("TorchDispatchMode: calls are not dispatched by operators here. Use overrides.TorchFunctionMode.")

    def __exit__(self, *error: object) -> None:
        """Do nothing."""


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Return False."""
    return False
