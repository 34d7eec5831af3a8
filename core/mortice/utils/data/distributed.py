"""DistributedSampler: the part of a dataset that one of several processes reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mortice
from mortice.utils.data.sampler import Sampler, T


class DistributedSampler(Sampler[T]):
    """Every `num_replicas`-th index from `rank` on, of an order that all processes share.

    Call `set_epoch` before each pass, or every pass has the same order. Without `drop_last` the first indices are
    given again at the end until all parts are of equal length.
    Without a process group `num_replicas` and `rank` must be given.
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        if mortice.distributed.is_initialized():  # the group of this process
            num_replicas, rank = 1 if num_replicas is None else num_replicas, rank or 0
        if num_replicas is None or rank is None:
            raise RuntimeError(
                "DistributedSampler: Requires distributed package to be available; pass num_replicas= and rank=."
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else -(-n // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            generator = mortice.Generator().manual_seed(self.seed + self.epoch)
            order = mortice.randperm(n, generator=generator).tolist()
        else:
            order = range(n)
        return (order[i % n] for i in range(self.rank, self.total_size, self.num_replicas))

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next passes."""
        self.epoch = epoch


__all__ = ["DistributedSampler"]
