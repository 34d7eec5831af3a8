"""Checkpointing under PyTorch's module name; what it does is in `autograd.checkpoint`."""

from mortice.autograd.checkpoint import (
    CheckpointError,
    CheckpointFunction,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_early_stop,
)

__all__ = [
    "CheckpointError", "CheckpointFunction", "checkpoint", "checkpoint_sequential", "noop_context_fn",
    "set_checkpoint_early_stop",
]  # fmt: skip
