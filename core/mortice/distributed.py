"""mortice.distributed: no communication between processes is built in, which `is_available` says, as in such builds of PyTorch.

Programs that ask before they gather or reduce then run as one process; what would need others is left out.
"""

from __future__ import annotations

from typing import Any

_LEFT_OUT = "training over several processes is left out"


class ProcessGroup:
    """The type of a group of processes, for annotations and `isinstance`; there are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"ProcessGroup: {_LEFT_OUT}; ask distributed.is_available() first.")


def is_available() -> bool:
    """Return False: there is no distributed package to use."""
    return False


def is_initialized() -> bool:
    """Return False: no process group was made."""
    return False


def is_torchelastic_launched() -> bool:
    """Return False: a launcher would need process groups."""
    return False


def _no_group(name: str) -> ValueError:
    return ValueError(
        f"{name}: Default process group has not been initialized; {_LEFT_OUT}. Ask distributed.is_initialized() first."
    )


def get_rank(group: Any = None) -> int:
    """Raise ValueError, as PyTorch does while no process group was made."""
    raise _no_group("get_rank")


def get_world_size(group: Any = None) -> int:
    """Raise ValueError, as PyTorch does while no process group was made."""
    raise _no_group("get_world_size")


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'mortice.distributed' has no attribute {name!r}: {_LEFT_OUT}")


__all__ = ["ProcessGroup", "get_rank", "get_world_size", "is_available", "is_initialized", "is_torchelastic_launched"]
