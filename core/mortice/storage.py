"""mortice.storage: the memory that tensors share, as bytes or as elements."""

from io import BytesIO
from typing import Any

from mortice.ops.storage import TypedStorage, UntypedStorage
from mortice.serialize import load

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(data: bytes) -> Any:
    """Read the memory in a plain pickle of PyTorch's."""
    return load(BytesIO(data), weights_only=False)
