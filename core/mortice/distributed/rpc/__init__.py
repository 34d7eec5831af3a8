"""Calls of functions in other processes, which libraries ask about; there are none."""

import functools
from typing import Any

from mortice import addresses
from mortice.distributed import ProcessGroup

__all__ = ["RRef", "is_available"]


class RRef(ProcessGroup):
    """What another process holds: making one is refused, and nothing is one."""


def is_available() -> bool:
    """Return False."""
    return False


def _require_initialized(function: Any) -> Any:
    @functools.wraps(function)
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("RPC has not been initialized, and is left out.")

    return refused


def __getattr__(name: str) -> Any:
    return addresses.attribute(__name__, name)
