"""DistributedDataParallel: a name that says what is missing."""

from __future__ import annotations

from typing import Any

from mortice.nn.module import Module


class DistributedDataParallel(Module):
    """Refuses: training over several processes is not part of mortice."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "DistributedDataParallel: expected one process; mortice has no communication between processes. Train the "
            "module itself, or average gradients with a library such as mpi4py between backward and step."
        )
