"""DLPack under PyTorch's names: tensors as capsules, and back. `mortice.from_dlpack` takes arrays and capsules alike."""

from __future__ import annotations

from typing import Any

from mortice import from_dlpack
from mortice.backends.dlpack import DLDeviceType

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """Return a DLPack capsule of the first form, which another library can take over once."""
    return tensor.__dlpack__()
