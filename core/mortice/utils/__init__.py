"""Utilities around training: data loading, checkpointing, safetensors and event files, summaries; bridges to other libraries."""

from __future__ import annotations

from mortice.lazy import load

_MODULES = frozenset(
    "_pytree checkpoint data dlpack einops hooks model_summary opt_einsum plots safetensors tensorboard visdom".split()
)


def __getattr__(name: str) -> object:
    # `mortice.utils.data` needs no import of its own, as in PyTorch; loading waits for the first use.
    if name not in _MODULES:
        raise AttributeError(f"module 'mortice.utils' has no attribute {name!r}")
    return load("mortice.utils.", name)
