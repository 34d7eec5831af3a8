"""The handle that hooks return, under PyTorch's module name."""

from mortice.handles import RemovableHandle

__all__ = ["RemovableHandle"]
