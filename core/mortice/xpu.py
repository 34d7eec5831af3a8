"""mortice.xpu: Intel's accelerator, which no backend offers. Questions are answered, all else raises, as in PyTorch without it."""

from __future__ import annotations

from typing import Any

from mortice.lazy import absent

__all__ = [
    "device_count", "empty_cache", "is_available", "is_bf16_supported", "is_initialized", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "memory_allocated",
]  # fmt: skip


def is_available(*args: Any, **kwargs: Any) -> bool:
    """Return False."""
    return False


def device_count(*args: Any) -> int:
    """Return 0."""
    return 0


def empty_cache(*args: Any) -> None:
    """Do nothing: nothing is kept, and there is no generator to seed."""


is_bf16_supported = is_initialized = is_available
max_memory_allocated = memory_allocated = device_count
manual_seed = manual_seed_all = empty_cache
__getattr__ = absent("xpu", AssertionError)
