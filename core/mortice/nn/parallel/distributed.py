"""DistributedDataParallel: PyTorch's name around a module whose gradients are those of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import mortice
from mortice.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Run a module as it is, in a process group of one; names in the state_dict start with `module.`.

    Differs from torch: there is one process, so that nothing is exchanged.
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
        *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not mortice.distributed.is_initialized():
            raise ValueError(
                "DistributedDataParallel: Default process group has not been initialized; training over several "
                "processes is left out. Call init_process_group(world_size=1, rank=0) first, or train the module itself."
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        super().__init__()
        self.module, self.dim, self.broadcast_buffers = module, dim, broadcast_buffers
        self.device_ids, self.output_device = device_ids, output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Change nothing: gradients are never exchanged."""
        yield
