"""Checkpointing under PyTorch's module name; what it does is in `autograd.checkpoint`."""

from mortice.autograd.checkpoint import (
    CheckpointError,
    CheckpointFunction,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    check_backward_validity,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    detach_variable,
    get_device_states,
    noop_context_fn,
    set_checkpoint_early_stop,
    set_device_states,
)

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
    "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip
