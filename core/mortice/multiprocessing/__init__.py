"""Python's multiprocessing, whose queues, pipes and arguments hand tensors over without copying them.

What is put on a queue moves to memory that both sides see, as PyTorch's does; `mortice.multiprocessing` has all names of
`multiprocessing`, and `spawn`, which starts the same function several times and raises what any of them raised.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403
from typing import Any

from mortice.multiprocessing.reductions import init_reductions
from mortice.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [  # noqa: PLE0604 - all that multiprocessing has, and ours
    *multiprocessing.__all__,
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = ["file_descriptor"]


def get_all_sharing_strategies() -> set[str]:
    """Return the names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the name last set."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how shared memory is named.

    Differs from torch: both names give memory without a name, passed on as an open file, since that is never left behind.
    """
    if new_strategy not in _STRATEGIES:
        raise ValueError(f"set_sharing_strategy: expected one of {sorted(_STRATEGIES)}; got {new_strategy!r}.")
    _strategy[0] = new_strategy


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)


init_reductions()
