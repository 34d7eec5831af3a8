"""mortice.distributed: no communication between processes is built in, which `is_available` says.

Programs that ask before they gather or reduce then run as one process. The usual functions have their names, so that
importing them works, and raise what PyTorch raises while no process group was made.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

_LEFT_OUT = "training over several processes is left out"


class ProcessGroup:
    """The type of a group of processes, for annotations and `isinstance`; there are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"ProcessGroup: {_LEFT_OUT}; ask distributed.is_available() first.")


ReduceOp = Enum("ReduceOp", "SUM AVG PRODUCT MIN MAX BAND BOR BXOR PREMUL_SUM", start=0)


def is_available() -> bool:
    """Return False: there are no process groups to make."""
    return False


def is_initialized() -> bool:
    """Return False: no process group was made."""
    return False


def is_torchelastic_launched() -> bool:
    """Return False: a launcher would need process groups."""
    return False


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """Refuse: there is nothing to make a group of."""
    raise NotImplementedError(f"init_process_group: {_LEFT_OUT}; ask distributed.is_available() first.")


def _needs_a_group(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            f"{name}: Default process group has not been initialized; {_LEFT_OUT}. Ask distributed.is_initialized() first."
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raise ValueError, as PyTorch does while no process group was made."
    return refuse


all_gather = _needs_a_group("all_gather")
all_gather_object = _needs_a_group("all_gather_object")
all_reduce = _needs_a_group("all_reduce")
barrier = _needs_a_group("barrier")
broadcast = _needs_a_group("broadcast")
broadcast_object_list = _needs_a_group("broadcast_object_list")
destroy_process_group = _needs_a_group("destroy_process_group")
gather = _needs_a_group("gather")
get_backend = _needs_a_group("get_backend")
get_rank = _needs_a_group("get_rank")
get_world_size = _needs_a_group("get_world_size")
new_group = _needs_a_group("new_group")
reduce = _needs_a_group("reduce")
scatter = _needs_a_group("scatter")


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'mortice.distributed' has no attribute {name!r}: {_LEFT_OUT}")


__all__ = [
    "ProcessGroup", "ReduceOp", "all_gather", "all_gather_object", "all_reduce", "barrier", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_rank", "get_world_size",
    "init_process_group", "is_available", "is_initialized", "is_torchelastic_launched", "new_group", "reduce", "scatter",
]  # fmt: skip
