"""mortice.mps: Apple's accelerator, which no backend offers. Questions are answered, all else raises, as in PyTorch without it."""

from __future__ import annotations

from mortice.lazy import absent

__all__ = ["device_count", "is_available", "manual_seed"]


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: there is no generator to seed."""


__getattr__ = absent("mps", RuntimeError)
