"""What NVIDIA's profilers are told: ranges, and as `cuda.profiler` when to record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from mortice.backends.plugins import devices_of

__all__ = ["mark", "profile", "range", "range_end", "range_pop", "range_push", "range_start", "start", "stop"]


def _tell(what: str, *told: Any) -> Any:
    for where in devices_of("cuda"):
        return where.backend.tell_profiler(what, *told)
    raise RuntimeError("NVTX functions not installed. Use mortice.profiler.record_function to name a part.")


def mark(msg: str) -> None:
    """Mark a moment."""
    _tell("mark", msg)


def range_push(msg: str) -> Any:
    """Begin a range inside others."""
    return _tell("push", msg)


def range_pop() -> Any:
    """End the range that began last."""
    return _tell("pop")


def range_start(msg: str) -> Any:
    """Begin a range for any thread to end; return its number."""
    return _tell("start", msg)


def range_end(range_id: Any) -> None:
    """End a range of `range_start`."""
    _tell("end", range_id)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Make a block or a function a range; its name may be a format."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


def start() -> None:
    """Let profilers record from now on."""
    _tell("on")


def stop() -> None:
    """Let profilers record no more."""
    _tell("off")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Let profilers record a block."""
    start()
    try:
        yield
    finally:
        stop()


class cudart:
    """The CUDA runtime, as far as programs call it."""

    cudaProfilerStart, cudaProfilerStop = staticmethod(start), staticmethod(stop)
