"""Marks and ranges for NVIDIA's profilers, by the backend that offers CUDA; without one they raise, as in PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from mortice.backends.plugins import devices_of

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def tell(what: str, *told: Any) -> Any:
    """Tell the profiler, by the name that a backend knows it by; see `mortice.backends.services`."""
    for where in devices_of("cuda"):
        return where.backend.tell_profiler(what, *told)
    raise RuntimeError("NVTX functions not installed. Use mortice.profiler.record_function to name a part.")


def mark(msg: str) -> None:
    """Mark a moment."""
    tell("mark", msg)


def range_push(msg: str) -> Any:
    """Begin a range, inside those that this thread has begun."""
    return tell("push", msg)


def range_pop() -> Any:
    """End the range that this thread has begun last."""
    return tell("pop")


def range_start(msg: str) -> Any:
    """Begin a range that any thread may end; return its number."""
    return tell("start", msg)


def range_end(range_id: Any) -> None:
    """End a range of `range_start`."""
    tell("end", range_id)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Make a block or a function a range; its name may be a format."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
