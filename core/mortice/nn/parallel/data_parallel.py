"""A module on several devices of a process, each with a part of the batch."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.nn.module import Module
from mortice.nn.parallel.parallel_apply import parallel_apply
from mortice.nn.parallel.replicate import replicate
from mortice.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Run a module on CUDA devices that share the batch along `dim`; as it is where there are none.

    Parameters are on the first device, and gradients come together there; names in the state_dict start with `module.`.
    """

    dim = 0  # what PyTorch's files lack where it ran on the CPU
    output_device: Any = None
    requested_ids: Any = ()

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.requested_ids = list(device_ids or ())  # what the program was written for
        count = mortice.cuda.device_count()
        ids = (range(count) if device_ids is None else device_ids) if count else ()
        ids = self.device_ids = [i if isinstance(i, int) else mortice.device(i).index for i in ids]
        self.output_device = ids[0] if output_device is None and ids else output_device
        if len(ids) == 1:
            module.to(ids[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        ids = self.device_ids
        rows, named = self.scatter(inputs, kwargs, ids) if ids else ((inputs,), (kwargs,))
        if len(ids) < 2 or not rows:
            return self.module(*(rows or ((),))[0], **(named or ({},))[0])
        replicas = self.replicate(self.module, ids[: len(rows)])
        return self.gather(self.parallel_apply(replicas, rows, named), self.output_device)

    def replicate(self, module: Any, device_ids: Any) -> Any:
        return replicate(module, device_ids, not mortice.is_grad_enabled())

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Any, inputs: Any, kwargs: Any) -> Any:
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Call a module as `DataParallel` does."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
