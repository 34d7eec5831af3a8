"""The types of modules whose parameters are spread over processes, which libraries ask about; there are none."""

from mortice.distributed import ProcessGroup

__all__ = ["FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "fully_shard"]


class FSDPModule(ProcessGroup):
    """The type of a module whose parameters are spread over processes, for `isinstance`."""


class FullyShardedDataParallel(FSDPModule):
    """The type of a wrapped module whose parameters are spread over processes, for `isinstance`."""


class MixedPrecisionPolicy(FSDPModule):
    """The type of the settings for such a module's precision, for annotations."""


fully_shard = FSDPModule  # refuses, as any call here does
