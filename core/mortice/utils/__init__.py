"""Utilities around training: data loading, checkpointing, safetensors and event files, summaries; bridges to other libraries."""

from __future__ import annotations

from mortice.lazy import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import (
        benchmark,
        checkpoint,
        cpp_extension,
        data,
        deterministic,
        dlpack,
        flop_counter,
        summary,
        tensorboard,
    )

_MODULES = frozenset(
    "_pytree benchmark checkpoint cpp_extension data deterministic dlpack einops flop_counter module_tracker opt_einsum plots "
    "safetensors summary tensorboard visdom weak".split()
)


def __getattr__(name: str) -> Any:
    # `mortice.utils.data` needs no import of its own, as in PyTorch; loading waits for the first use.
    if name == "swap_tensors":
        return load("mortice.nn.swap", name)
    if name in _MODULES:
        return load("mortice.utils.", name)
    return load("mortice.addresses", "attribute")(__name__, name)
