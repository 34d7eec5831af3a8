"""The types of modules whose parameters are spread over processes, which libraries ask about: there are none; how they load."""

from types import SimpleNamespace
from typing import Any

from mortice.distributed import ProcessGroup

__all__ = ["FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "StateDictOptions", "fully_shard", "set_model_state_dict"]


class FSDPModule(ProcessGroup):
    """The type of a module whose parameters are spread over processes, for `isinstance`."""


class FullyShardedDataParallel(FSDPModule):
    """The type of a wrapped module whose parameters are spread over processes, for `isinstance`."""


class MixedPrecisionPolicy(FSDPModule):
    """The type of the settings for such a module's precision, for annotations."""


fully_shard = FSDPModule  # refuses, as any call here does


class StateDictOptions(SimpleNamespace):
    """What is asked of a state dict, by name: `strict` and `full_state_dict` count where there is one process."""

    strict, full_state_dict = True, False


def set_model_state_dict(model: Any, model_state_dict: dict[str, Any], *, options: Any = None) -> Any:
    """Load a state dict into a module, as `load_state_dict`; one on `meta` takes the tensors of a full state dict themselves."""
    asked = StateDictOptions() if options is None else options
    assign = asked.full_state_dict and any([t.is_meta for t in model.parameters()])
    return model.load_state_dict(model_state_dict, strict=asked.strict, assign=assign)
