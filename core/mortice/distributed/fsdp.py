"""The types of modules whose parameters are spread over processes, which libraries ask about: there are none; how they load."""

from enum import Enum
from types import SimpleNamespace
from typing import Any

from mortice.distributed import ProcessGroup

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FSDPModule", "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy", "OptimStateDictConfig",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictOptions",
    "StateDictSettings", "StateDictType", "fully_shard", "set_model_state_dict",
]  # fmt: skip

__path__: list[str] = []  # what PyTorch has below it leads here
# What is asked of such a module, which scripts write down before they know how many processes there are.
ShardingStrategy = Enum("ShardingStrategy", "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2")
StateDictType = Enum("StateDictType", "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT")
BackwardPrefetch = Enum("BackwardPrefetch", "BACKWARD_PRE BACKWARD_POST")


class FSDPModule(ProcessGroup):
    """The type of a module whose parameters are spread over processes, for `isinstance`."""


class FullyShardedDataParallel(FSDPModule):
    """The type of a wrapped module whose parameters are spread over processes, for `isinstance`."""


class MixedPrecisionPolicy(FSDPModule):
    """The type of the settings for such a module's precision, for annotations."""


fully_shard = size_based_auto_wrap_policy = transformer_auto_wrap_policy = FSDPModule  # refuses, as any call here does


class MixedPrecision(SimpleNamespace):
    """The dtypes of a wrapped module, by name."""

    param_dtype = reduce_dtype = buffer_dtype = None


class CPUOffload(SimpleNamespace):
    """Whether a wrapped module's parameters wait on the CPU, by name."""

    offload_params = False


class StateDictConfig(SimpleNamespace):
    """Where a state dict goes, by name."""

    offload_to_cpu = False


class OptimStateDictConfig(SimpleNamespace):
    """That of an optimizer."""

    offload_to_cpu = True


class FullStateDictConfig(StateDictConfig):
    """Where a state dict of whole tensors goes, by name."""

    rank0_only = False


class FullOptimStateDictConfig(OptimStateDictConfig):
    """That of an optimizer."""

    rank0_only = False


class LocalStateDictConfig(StateDictConfig):
    """That of this process's own memory."""


class LocalOptimStateDictConfig(OptimStateDictConfig):
    """That of an optimizer."""

    offload_to_cpu = False


class ShardedStateDictConfig(StateDictConfig):
    """That of parts of tensors."""


class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """That of an optimizer."""


class StateDictSettings(SimpleNamespace):
    """Which state dicts are made, and where they go, by name."""


class StateDictOptions(SimpleNamespace):
    """What is asked of a state dict, by name: `strict` and `full_state_dict` count where there is one process."""

    strict, full_state_dict = True, False


def set_model_state_dict(model: Any, model_state_dict: dict[str, Any], *, options: Any = None) -> Any:
    """Load a state dict into a module, as `load_state_dict`; one on `meta` takes the tensors of a full state dict themselves."""
    asked = StateDictOptions() if options is None else options
    assign = asked.full_state_dict and any([t.is_meta for t in model.parameters()])
    return model.load_state_dict(model_state_dict, strict=asked.strict, assign=assign)
