"""Marks for NVIDIA's profilers, which nothing here talks to: they raise, as in PyTorch without CUDA."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def mark(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is no NVTX."""
    raise RuntimeError("NVTX functions not installed. Use mortice.profiler.record_function to name a part.")


range_push = range_pop = range_start = range_end = mark


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Refuse when it is entered."""
    mark()
    yield
