"""The type of an optimizer whose state is spread over processes, which libraries ask about; there are none."""

from mortice.distributed import ProcessGroup

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(ProcessGroup):
    """The type of an optimizer whose state is spread over processes, for `isinstance`."""
