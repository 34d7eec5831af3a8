"""mortice.xpu: Intel's accelerator, which no backend offers. Questions are answered, all else raises, as in PyTorch without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or not name.islower():
        raise AttributeError(f"module 'mortice.xpu' has no attribute {name!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"xpu.{name}: no backend offers this device. Ask xpu.is_available() first.")

    return call
