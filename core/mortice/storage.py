"""mortice.storage: the memory that tensors share, as bytes or as elements."""

from mortice.ops.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
