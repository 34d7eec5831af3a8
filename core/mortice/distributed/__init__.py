"""mortice.distributed: what programs ask before they train over several processes, which mortice does not do.

It answers as a PyTorch does whose process group was never initialised, so that programs written for one process or
many take their way for one. To communicate is refused.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "ProcessGroup", "ReduceOp", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "barrier",
    "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_rank", "get_world_size",
    "init_process_group", "is_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "new_group", "recv", "reduce", "reduce_scatter", "scatter", "send",
]  # fmt: skip


_LEFT_OUT = "training over several processes is left out"


class ProcessGroup:
    """The type of a group of processes, for annotations and `isinstance`; there are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: {_LEFT_OUT}; ask distributed.is_available() first.")


class ReduceOp(Enum):
    """How values of several processes are combined."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


def is_available() -> bool:
    """Return False: there is no communication between processes."""
    return False


def is_initialized() -> bool:
    """Return False: there is no process group."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_torchelastic_launched = is_available


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is no communication between processes."""
    raise NotImplementedError(
        f"init_process_group: {_LEFT_OUT}. Ask is_available() first; gradients can be averaged by a library such as mpi4py "
        "between backward and step."
    )


def _needs_group(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            f"{name}: Default process group has not been initialized; {_LEFT_OUT}. Ask is_initialized() first."
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refuse: there is no process group."
    return refuse


all_gather = _needs_group("all_gather")
all_gather_into_tensor = _needs_group("all_gather_into_tensor")
all_gather_object = _needs_group("all_gather_object")
all_reduce = _needs_group("all_reduce")
barrier = _needs_group("barrier")
broadcast = _needs_group("broadcast")
broadcast_object_list = _needs_group("broadcast_object_list")
destroy_process_group = _needs_group("destroy_process_group")
gather = _needs_group("gather")
get_backend = _needs_group("get_backend")
get_rank = _needs_group("get_rank")
get_world_size = _needs_group("get_world_size")
new_group = _needs_group("new_group")
recv = _needs_group("recv")
reduce = _needs_group("reduce")
reduce_scatter = _needs_group("reduce_scatter")
scatter = _needs_group("scatter")
send = _needs_group("send")


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'mortice.distributed' has no attribute {name!r}: {_LEFT_OUT}")
