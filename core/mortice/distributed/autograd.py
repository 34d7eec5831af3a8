"""Gradients through calls in other processes, which libraries ask about; there are none."""

from mortice.distributed import ProcessGroup
from mortice.distributed.rpc import is_available

__all__ = ["context", "is_available"]


class context(ProcessGroup):  # noqa: N801 - PyTorch's name
    """The context of such a backward pass: making one is refused."""
