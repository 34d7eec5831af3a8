"""Loading data: datasets, samplers, collation, and the DataLoader."""

from mortice.utils.data.collate import default_collate, default_convert
from mortice.utils.data.dataloader import DataLoader, _DatasetKind  # noqa: F401
from mortice.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from mortice.utils.data.distributed import DistributedSampler
from mortice.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from mortice.utils.data.worker import get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip


class ShufflerIterDataPipe:
    """The type of a pipe, which libraries ask about: making one is refused, and nothing is one."""

    def __init__(self, *args: object) -> None:
        raise NotImplementedError("ShufflerIterDataPipe: pipes are left out; use DataLoader(shuffle=True).")


def __getattr__(name: str) -> object:
    from mortice.addresses import attribute

    return attribute(__name__, name)
