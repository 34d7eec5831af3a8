"""Reading one batch: of a dataset by indices, or of a stream."""

from __future__ import annotations

import itertools
from typing import Any


class EndOfStream:
    """What a fetcher returns when a stream is exhausted."""


class MapFetcher:
    """Reads batches of a map-style dataset."""

    def __init__(self, collate: Any, batched: bool, drop_last: bool, dataset: Any) -> None:
        self.collate, self.batched, self.dataset = collate, batched, dataset
        self.several = getattr(dataset, "__getitems__", None)

    def __call__(self, indices: Any) -> Any:
        if not self.batched:
            return self.collate(self.dataset[indices])
        if self.several:
            return self.collate(self.several(indices))
        return self.collate([self.dataset[i] for i in indices])


class StreamFetcher:
    """Reads batches of an iterable dataset; of what it is asked for only the number counts."""

    def __init__(self, collate: Any, batched: bool, drop_last: bool, dataset: Any) -> None:
        self.collate, self.batched, self.drop_last = collate, batched, drop_last
        self.items = iter(dataset)
        self.ended = False

    def __call__(self, indices: Any) -> Any:
        if self.ended:
            return EndOfStream()
        wanted = len(indices) if self.batched else 1
        items = list(itertools.islice(self.items, wanted))
        self.ended = len(items) < wanted
        if not items or (self.ended and self.drop_last):
            return EndOfStream()
        return self.collate(items if self.batched else items[0])
