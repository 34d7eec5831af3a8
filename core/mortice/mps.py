"""mortice.mps: Apple's accelerator, which no backend offers. Questions are answered, all else raises, as in PyTorch without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["device_count", "is_available", "manual_seed"]


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: there is no generator to seed."""


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or not name.islower():
        raise AttributeError(f"module 'mortice.mps' has no attribute {name!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"mps.{name}: no backend offers this device. Ask mps.is_available() first.")

    return call
