"""DataParallel and data_parallel: PyTorch's names around a module that runs on one device."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.nn.module import Module
from mortice.notice import warn

__all__ = ["DataParallel", "data_parallel"]


def _devices(device_ids: Any) -> list[Any]:
    """Return the given devices, none where there is no accelerator; say so when more than one would be needed."""
    count = mortice.cuda.device_count()
    chosen = list(range(count)) if device_ids is None else list(device_ids)
    if count == 0:
        return []
    if len(chosen) > 1:
        warn(
            f"DataParallel: batches are not split over devices here; {len(chosen)} were given and the module runs where "
            "its parameters are."
        )
    return chosen


class DataParallel(Module):
    """Run a module as it is, on the one device where its parameters are; names in the state_dict start with `module.`.

    Differs from torch: batches are never split over several devices.
    """

    dim = 0  # what PyTorch's files lack where it ran on the CPU
    output_device: Any = None
    requested_ids: Any = ()

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.requested_ids = list(device_ids or ())  # what the program was written for
        self.device_ids = _devices(device_ids)
        self.output_device = self.device_ids[0] if output_device is None and self.device_ids else output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Call a module on the one device where its parameters are."""
    _devices(device_ids)
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
