"""DataLoader: batches from a dataset, in this process or from workers that read ahead."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import queue
import time
import warnings
from collections.abc import Iterator
from typing import Any

import mortice
from mortice.utils.data import worker as _worker
from mortice.utils.data.collate import default_collate, default_convert
from mortice.utils.data.collate import pin_memory as _pin
from mortice.utils.data.dataset import IterableDataset
from mortice.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


class _MapFetcher:
    """Reads batches of a map-style dataset."""

    def __init__(self, collate: Any, batched: bool, drop_last: bool, dataset: Any) -> None:
        self.collate, self.batched, self.dataset = collate, batched, dataset

    def __call__(self, indices: Any) -> Any:
        if not self.batched:
            return self.collate(self.dataset[indices])
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.collate(self.dataset.__getitems__(indices))
        return self.collate([self.dataset[i] for i in indices])


class _IterFetcher:
    """Reads batches of an iterable dataset; raises StopIteration at its end."""

    def __init__(self, collate: Any, batched: bool, drop_last: bool, dataset: Any) -> None:
        self.collate, self.batched, self.drop_last = collate, batched, drop_last
        self.items = iter(dataset)

    def __call__(self, indices: Any) -> Any:
        if not self.batched:
            return self.collate(next(self.items))
        items = list(itertools.islice(self.items, len(indices)))
        if not items or (self.drop_last and len(items) < len(indices)):
            raise StopIteration
        return self.collate(items)


class _Endless:
    """The sampler of an iterable dataset: it has no indices, only a next batch."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
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
        generator: gives the order and the workers' seeds.
        prefetch_factor: batches that each worker loads ahead.
        persistent_workers: keep the workers between passes.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Any = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
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
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.timeout, self.worker_init_fn, self.generator = timeout, worker_init_fn, generator
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            if shuffle not in (False, None):
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
                )
            for option, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {option} option, but got "
                        f"{option}={value}"
                    )
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
            if self._iterable:
                sampler = _Endless()
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
        self._workers: _Workers | None = None

    @property
    def _batched(self) -> bool:
        return self.batch_sampler is not None

    def _fetcher(self) -> Any:
        kind = _IterFetcher if self._iterable else _MapFetcher
        return functools.partial(kind, self.collate_fn, self._batched, self.drop_last)

    def __len__(self) -> int:
        if self._iterable:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.batch_sampler if self._batched else self.sampler)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleIterator(self)
        if self.persistent_workers:
            if self._workers is None or self._workers.stopped:
                self._workers = _Workers(self)
            else:
                self._workers.restart(self)
            return _WorkerIterator(self, self._workers)
        return _WorkerIterator(self, _Workers(self))

    def check_worker_number_rationality(self) -> None:
        """Warn when more workers are asked for than there are cores."""
        import os

        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if cores is not None and self.num_workers > cores:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
                f"worker in current system is {cores}, which is smaller than what this DataLoader is going to create.",
                stacklevel=2,
            )

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if name in fixed and "_workers" in self.__dict__:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)


def _base_seed(generator: Any) -> int:
    """Draw the seed that the workers' seeds derive from."""
    return int(mortice.randint(0, 2**63 - 1, (), dtype=mortice.int64, generator=generator).item())


class _SingleIterator(Iterator[Any]):
    """One pass in this process."""

    def __init__(self, loader: DataLoader) -> None:
        _base_seed(loader.generator)  # as with workers, so that their number does not change later random numbers
        self._indices = iter(loader.batch_sampler if loader._batched else loader.sampler)
        self._fetch = loader._fetcher()(loader.dataset)
        self._pin = loader.pin_memory

    def __next__(self) -> Any:
        data = self._fetch(next(self._indices))
        return _pin(data) if self._pin else data

    def __iter__(self) -> Iterator[Any]:
        return self


class _Workers:
    """The worker processes of a loader and their queues."""

    def __init__(self, loader: DataLoader) -> None:
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.seed = _base_seed(loader.generator)
        self.results = context.Queue()
        self.queues: list[Any] = []
        self.processes: list[Any] = []
        self.stopped = False
        self.generation = 0
        task = (loader.dataset, loader._fetcher())
        for i in range(loader.num_workers):
            index_queue = context.Queue()
            index_queue.cancel_join_thread()
            process = context.Process(
                target=_worker.run, daemon=True,
                args=(task, index_queue, self.results, i, loader.num_workers, self.seed, loader.worker_init_fn,
                      mortice.default_backend()),
            )  # fmt: skip
            process.start()
            self.queues.append(index_queue)
            self.processes.append(process)

    def restart(self, loader: DataLoader) -> None:
        """Begin another pass with the same processes."""
        _base_seed(loader.generator)
        self.generation += 1
        for q in self.queues:
            q.put((None, None))

    def stop(self) -> None:
        """End the processes; safe to call twice."""
        if self.stopped:
            return
        self.stopped = True
        for q in self.queues:
            try:
                q.put(None)
            except (ValueError, OSError):
                pass
        deadline = time.monotonic() + 5
        while any(p.is_alive() for p in self.processes) and time.monotonic() < deadline:
            try:
                self.results.get(timeout=0.01)  # a worker may wait for room in the pipe before it sees the None
            except (queue.Empty, EOFError, OSError):
                pass
        for p in self.processes:
            if p.is_alive():
                p.terminate()
            p.join(timeout=5)
        for q in [*self.queues, self.results]:
            q.cancel_join_thread()
            q.close()

    def __del__(self) -> None:
        try:
            self.stop()
        except Exception:
            pass  # the interpreter is going down


class _WorkerIterator(Iterator[Any]):
    """One pass over worker processes; batches come in the order of the sampler."""

    def __init__(self, loader: DataLoader, workers: _Workers) -> None:
        self._loader, self._workers = loader, workers
        self._generation = workers.generation
        self._indices = iter(loader.batch_sampler if loader._batched else loader.sampler)
        self._sent = self._received = 0
        self._ready: dict[int, Any] = {}
        self._finished: set[int] = set()
        self._owner: dict[int, int] = {}
        self._turn = itertools.cycle(range(loader.num_workers))
        self._done = False
        for _ in range((loader.prefetch_factor or 0) * loader.num_workers):
            self._send()

    def __iter__(self) -> Iterator[Any]:
        return self

    def _send(self) -> None:
        """Hand the next batch's indices to the next worker that still has data."""
        for _ in range(self._loader.num_workers):
            i = next(self._turn)
            if i not in self._finished:
                break
        else:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        self._owner[self._sent] = i
        self._workers.queues[i].put(((self._generation, self._sent), indices))
        self._sent += 1

    def __next__(self) -> Any:
        while True:
            # Batches that exhausted workers were asked for do not exist.
            while self._received < self._sent and self._received not in self._ready and (
                self._owner.get(self._received) in self._finished
            ):  # fmt: skip
                self._owner.pop(self._received)
                self._received += 1
            if self._received >= self._sent:
                self._finish()
                raise StopIteration
            if self._received in self._ready:
                data = self._ready.pop(self._received)
                self._owner.pop(self._received)
                self._received += 1
                self._send()
                if isinstance(data, _worker.WorkerError):
                    data.reraise()
                return _pin(data) if self._loader.pin_memory else data
            self._receive()

    def _receive(self) -> None:
        """Take one result off the queue, watching for workers that died."""
        loader = self._loader
        deadline = time.monotonic() + loader.timeout if loader.timeout else None
        while True:
            try:
                (generation, number), data = self._workers.results.get(timeout=0.5 if deadline is None else 0.05)
                break
            except queue.Empty:
                dead = [p for p in self._workers.processes if not p.is_alive()]
                if dead:
                    pids = ", ".join(str(p.pid) for p in dead)
                    codes = ", ".join(str(p.exitcode) for p in dead)
                    self._abort()
                    raise RuntimeError(
                        f"DataLoader worker (pid(s) {pids}) exited unexpectedly; exit code(s) {codes}."
                    ) from None
                if deadline is not None and time.monotonic() > deadline:
                    self._abort()
                    raise RuntimeError(f"DataLoader timed out after {loader.timeout} seconds") from None
        if generation != self._generation:
            return
        if isinstance(data, _worker.EndOfStream):
            self._finished.add(data.worker_id)
            return
        self._ready[number] = data

    def _finish(self) -> None:
        if not self._done:
            self._done = True
            if not self._loader.persistent_workers:
                self._workers.stop()

    def _abort(self) -> None:
        self._done = True
        self._workers.stop()

    def __del__(self) -> None:
        try:
            self._finish()
        except Exception:
            pass  # the interpreter is going down


