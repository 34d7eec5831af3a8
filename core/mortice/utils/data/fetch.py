"""Reading one batch: of a dataset by indices, or of a stream; and seeding the random numbers that it takes."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mortice

SEED_STEP = 0x9E3779B97F4A7C15  # from a sample's seed to the next: odd, so that 2**64 samples have seeds of their own


def seed_everything(seed: int) -> None:
    """Seed mortice's, Python's and, where it is loaded, NumPy's global generator."""
    random.seed(seed)
    mortice.manual_seed(seed)
    if "numpy" in sys.modules:  # else forked workers would all draw the same from NumPy's global generator
        sys.modules["numpy"].random.seed([seed & 0xFFFFFFFF, seed >> 32])


@contextmanager
def generators_kept() -> Iterator[None]:
    """Put the generators that `seed_everything` seeds back where they were when the block ends."""
    theirs, numpy = random.getstate(), sys.modules.get("numpy")
    numpys = numpy and numpy.random.get_state()
    try:
        with mortice.random.fork_rng():
            yield
    finally:
        random.setstate(theirs)
        if numpy is not None:
            numpy.random.set_state(numpys)


class EndOfStream:
    """What a fetcher returns when a stream is exhausted."""


class MapFetcher:
    """Reads batches of a map-style dataset; with a seed, each sample draws from a stream of its own."""

    def __init__(self, collate: Any, batched: bool, drop_last: bool, dataset: Any) -> None:
        self.collate, self.batched, self.dataset = collate, batched, dataset
        self.several = getattr(dataset, "__getitems__", None)

    def __call__(self, indices: Any, seed: int | None = None) -> Any:
        if seed is not None:
            items = list(self._seeded(indices if self.batched else [indices], seed))
            found = items if self.batched else items[0]
        elif not self.batched:
            found = self.dataset[indices]
        else:
            found = self.several(indices) if self.several else [self.dataset[i] for i in indices]
        try:
            return self.collate(found)
        except (TypeError, RuntimeError) as error:
            error.add_note(f"The batch was made of {type(self.dataset).__name__}[i] for i in {indices}.")
            raise

    def _seeded(self, indices: Any, seed: int) -> Iterator[Any]:
        for i in indices:
            seed_everything(seed)
            yield self.dataset[i]
            seed = (seed + SEED_STEP) % (1 << 64)


_END = object()


class StreamFetcher:
    """Reads batches of an iterable dataset; of what it is asked for only the number counts."""

    def __init__(self, collate: Any, batched: bool, drop_last: bool, dataset: Any) -> None:
        self.collate, self.batched, self.drop_last = collate, batched, drop_last
        self.items = iter(dataset)
        self.ended = False

    def __call__(self, indices: Any, seed: None = None) -> Any:
        if self.ended:
            return EndOfStream()
        wanted = len(indices) if self.batched else 1
        items: list[Any] = []
        while len(items) < wanted and not self.ended:
            # Only `next`: a dataset that is its own iterator would begin anew if it were asked for one again.
            item = next(self.items, _END)
            self.ended = item is _END
            if not self.ended:
                items.append(item)
        if not items or (self.ended and self.drop_last):
            return EndOfStream()
        return self.collate(items if self.batched else items[0])


def fetcher(loader: Any) -> Any:
    """Return what makes the fetcher of a dataset, as a loader says."""
    return functools.partial(loader._dataset_kind, loader.collate_fn, loader._auto_collation, loader.drop_last)
