"""KernelMixin: the base of the families of FREE kernels, for type checkers only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class KernelMixin:
    """A family of kernels. Each calls the others by name on self, and which class brings them is not its business."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
