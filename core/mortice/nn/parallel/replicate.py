"""replicate: the modules that run the parts of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["replicate"]


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Return the module itself for each device.

    Differs from torch: it is not copied to other devices than the one where it is.
    """
    return [network for _ in devices]


def _broadcast_coalesced_reshape(tensors: Sequence[Any], devices: Sequence[Any], detach: bool = False) -> list[list[Any]]:
    """Return the tensors for each device, as `replicate` returns the module."""
    return [[t.detach() if detach else t for t in tensors] for _ in devices]
