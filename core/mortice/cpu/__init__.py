"""mortice.cpu: the CPU asked about in the words of `mortice.cuda`."""

from __future__ import annotations

import contextlib
from typing import Any

from mortice.backends.plugins import devices_of


def is_available() -> bool:
    """Return True: there is always a CPU."""
    return True


def is_initialized() -> bool:
    """Return True: there is nothing to prepare."""
    return True


def device_count() -> int:
    """Return 1: all processors are one device."""
    return 1


def current_device() -> str:
    """Return "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing: there is one CPU."""


def synchronize(device: Any = None) -> None:
    """Wait until the backends of the CPU have done all work."""
    for place in devices_of("cpu"):
        place.backend.synchronize(place)


class Stream:
    """A stand-in: work on the CPU runs in order."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: work on the CPU runs in order."""

    def record_event(self) -> None:
        """Do nothing: work on the CPU runs in order."""

    def wait_event(self, event: Any) -> None:
        """Do nothing: work on the CPU runs in order."""


def current_stream(device: Any = None) -> Stream:
    """Return a stand-in for the one stream of work."""
    return Stream()


def stream(stream: Any) -> contextlib.AbstractContextManager[None]:
    """Return a context manager without effect."""
    return contextlib.nullcontext()


def __getattr__(name: str) -> object:
    # `mortice.cpu.amp` needs no import of its own, as in PyTorch.
    if name != "amp":
        raise AttributeError(f"module 'mortice.cpu' has no attribute {name!r}")
    import importlib

    return importlib.import_module("mortice.cpu.amp")
