"""DataLoader: batches from a dataset, in this process or from workers that read ahead."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

import mortice
from mortice.notice import warn
from mortice.utils.data import sharing
from mortice.utils.data.collate import default_collate, default_convert, pin_memory
from mortice.utils.data.dataset import Dataset, IterableDataset  # noqa: F401
from mortice.utils.data.fetch import SEED_STEP, EndOfStream, MapFetcher, StreamFetcher, fetcher, generators_kept
from mortice.utils.data.pool import Workers
from mortice.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from mortice.utils.data.worker import ExceptionWrapper

T = TypeVar("T", covariant=True)
_collate_fn_t = Callable[[list[T]], Any]
_worker_init_fn_t = Callable[[int], None]


class _InfiniteConstantSampler:
    """The sampler of an iterable dataset: it has no indices, only a next batch."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T]):
    """Iterate over a dataset in batches.

    Args:
        dataset: map-style (`__getitem__`, `__len__`) or an IterableDataset.
        batch_size: samples per batch; None hands out samples as they are.
        shuffle: a new order at each pass.
        sampler, batch_sampler: an order of one's own.
        num_workers: processes that load ahead; 0 loads here.
        collate_fn: makes a batch of a list of samples.
        drop_last: leave out a last batch that is too small.
        timeout: seconds to wait for a worker's batch; 0 waits for ever.
        worker_init_fn: called with the worker's id in each worker.
        multiprocessing_context: how workers are started: "fork", "spawn", "forkserver", or a context; Python's
            default otherwise.
        generator: gives the order and the workers' seeds.
        pin_memory: put batches into pinned memory, where a device makes use of it.
        prefetch_factor: batches that each worker loads ahead, 2 unless given.
        persistent_workers: keep the workers between passes.
        in_order: hand out batches in the order of the sampler; otherwise as workers finish them.
        seed_samples: give each sample random numbers of its own, which depend on the generator and on the sample's
            place in the pass alone: random transforms then do the same with any number of workers and any batch size.
            What is drawn while loading moves no generator of this process.

    Differs from torch: `seed_samples=True` makes what samples draw independent of the number of workers.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Any = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True, seed_samples: bool = False,
    ) -> None:  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.timeout, self.worker_init_fn, self.generator = timeout, worker_init_fn, generator
        self.persistent_workers, self.seed_samples = persistent_workers, seed_samples
        self.multiprocessing_context = multiprocessing_context
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if iterable:
            _check_iterable(shuffle, sampler, batch_sampler, seed_samples)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = batch_size, drop_last, sampler, batch_sampler
        if collate_fn is None:
            collate_fn = default_collate if batch_sampler is not None else default_convert
        self.collate_fn = collate_fn
        self._IterableDataset_len_called: int | None = None
        self._pool: Workers | None = None
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started, None for Python's default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                known = multiprocessing.get_all_start_methods()
                if context not in known:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {known!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        n = len(self.dataset)
        if self.batch_size is not None:
            n = n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        self._IterableDataset_len_called = n
        return n

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

    def _get_iterator(self) -> Iterator[Any]:  # loaders that never end, as Ultralytics', keep what this returns
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def check_worker_number_rationality(self) -> None:
        """Warn when more workers are asked for than there are cores."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if cores is not None and self.num_workers > cores:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
                f"worker in current system is {cores}, which is smaller than what this DataLoader is going to create. "
                "Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower "
                "the worker number to avoid potential slowness/freeze if necessary."
            )

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if name in fixed and "_pool" in self.__dict__:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}


def _base_seed(generator: Any) -> int:
    """Draw the seed that the workers' seeds derive from; without workers too, so that they change no later draw."""
    return int(mortice.empty((), dtype=mortice.int64).random_(generator=generator).item())


class _DatasetKind:
    """What loads from a dataset, by PyTorch's names."""

    Map, Iterable = MapFetcher, StreamFetcher


class _BaseDataLoaderIter(Iterator[Any]):
    """One pass over a loader, or over what has the attributes that PyTorch asks a loader for, as fastai's."""

    def __init__(self, loader: Any, seed: int) -> None:
        self._loader = loader
        self._indices: Iterator[Any] = iter(())
        self._seed = seed if getattr(loader, "seed_samples", False) else None
        self._handed_out = 0
        self._told = loader._IterableDataset_len_called  # what list() asks once it has this pass, says nothing of it
        self._pins = loader.pin_memory and mortice.cuda.is_available()
        if loader.pin_memory and loader.pin_memory_device:
            warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{loader.pin_memory_device}'."
            )
        if loader.pin_memory and not self._pins:
            warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.")

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def _next_task(self) -> tuple[Any, int | None]:
        """Return what to load next, and the seed of the first sample of it if samples are seeded."""
        indices, seed = next(self._indices), self._seed
        if seed is not None:
            indices = list(indices) if self._loader._auto_collation else indices
            n = len(indices) if self._loader._auto_collation else 1
            self._seed = (seed + n * SEED_STEP) % (1 << 64)
        return indices, seed

    def _next(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        loader = self._loader
        data = self._next()
        self._handed_out += 1
        if self._told is not None and self._handed_out > self._told:
            warn(
                f"Length of IterableDataset {loader.dataset} was reported to be {self._told} (when accessing "
                f"len(dataloader)), but {self._handed_out} samples have been fetched. "
                + (loader.num_workers > 0) * (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker."
                )
            )
        return pin_memory(data) if self._pins else data

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass in this process."""

    def __init__(self, loader: Any) -> None:
        if loader.timeout:
            raise ValueError(f"timeout option needs num_workers > 0, but got timeout={loader.timeout}")
        super().__init__(loader, _base_seed(loader.generator))
        self._indices = iter(loader._index_sampler)
        self._fetch = fetcher(loader)(loader.dataset)

    def _next(self) -> Any:
        indices, seed = self._next_task()
        with contextlib.nullcontext() if seed is None else generators_kept():
            data = self._fetch(indices, seed)
        if isinstance(data, EndOfStream):
            raise StopIteration
        return data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A pass over worker processes, each of which has a few batches to work on."""

    def __init__(self, loader: Any) -> None:
        workers: Any = getattr(loader, "_pool", None)
        kept = workers is not None and not workers.stopped
        # As in PyTorch, workers that stay are seeded once, and a later pass draws nothing for them.
        seed = 0 if kept and not getattr(loader, "seed_samples", False) else _base_seed(loader.generator)
        super().__init__(loader, seed)
        self._pool: Any = workers if kept else Workers(loader, seed)
        if loader.persistent_workers:
            loader._pool = self._pool
        self._pass = self._pool.begin()
        self._indices = iter(loader._index_sampler)
        self._asked: dict[int, int] = {}  # the worker of each batch that is under way, in the order of the batches
        self._ready: dict[int, Any] = {}
        self._exhausted: set[int] = set()
        self._number = 0
        self._turn = itertools.cycle(range(loader.num_workers))
        for _ in range(loader.prefetch_factor * loader.num_workers):
            self._ask()

    @property
    def _workers(self) -> list[Any]:
        """The worker processes; libraries name them so, and end them by `_shutdown_workers`."""
        return self._pool.processes

    def _shutdown_workers(self) -> None:
        self._pool.stop()

    def _ask(self, worker: int | None = None) -> None:
        """Ask a worker for another batch: the given one, or the next in turn that still has data."""
        if worker is None or worker in self._exhausted:
            turns = itertools.islice(self._turn, self._loader.num_workers)
            worker = next((w for w in turns if w not in self._exhausted), None)
        if worker is None:
            return
        try:
            task = self._next_task()
        except StopIteration:
            return
        self._asked[self._number] = worker
        self._pool.ask(worker, self._pass, self._number, *task)
        self._number += 1

    def _next(self) -> Any:
        in_order = self._loader.in_order
        while self._asked:
            number = next(iter(self._asked)) if in_order else next(iter(self._ready), None)
            if number not in self._ready:
                self._receive()
                continue
            worker = self._asked.pop(number)
            data = sharing.load(self._ready.pop(number))
            ended = isinstance(data, EndOfStream)
            if ended:
                self._exhausted.add(worker)
            self._ask(None if in_order else worker)
            if ended:
                continue
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return data
        if not self._loader.persistent_workers:
            self._pool.stop()
        raise StopIteration

    def _receive(self) -> None:
        if self._pass != self._pool.passes:
            raise RuntimeError(
                "DataLoader: its persistent workers have begun another pass, so this iterator has no more batches. Use "
                "one iterator at a time, or persistent_workers=False."
            )
        if self._pool.stopped:
            raise RuntimeError("DataLoader: the workers of this iterator have ended. Begin another pass.")
        _, (pass_number, number), data = self._pool.answer(self._loader.timeout)
        if pass_number == self._pass:
            self._ready[number] = data


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError(f"prefetch_factor option should be positive, but got prefetch_factor={prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any, seed_samples: bool) -> None:
    """Refuse what an IterableDataset, which is read in its own order, has no use for."""
    if shuffle not in (False, None):
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    for option, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {option} option, but got {option}={value}"
            )
    if seed_samples:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified seed_samples option, since which worker "
            "makes a sample decides what it draws"
        )
