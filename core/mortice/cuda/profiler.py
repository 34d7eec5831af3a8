"""When NVIDIA's profilers record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

from mortice.cuda.nvtx import tell

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Let profilers record from now on."""
    tell("on")


def stop() -> None:
    """Let profilers record no more."""
    tell("off")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Let profilers record a block."""
    start()
    try:
        yield
    finally:
        stop()


def cudart() -> SimpleNamespace:
    """Return what programs call of the CUDA runtime: its switch for profilers."""
    return SimpleNamespace(cudaProfilerStart=start, cudaProfilerStop=stop)
