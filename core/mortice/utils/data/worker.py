"""Worker processes of a DataLoader: what runs in them, and how their errors and their end reach the parent."""

from __future__ import annotations

import os
import random
import threading
import traceback
from dataclasses import dataclass
from typing import Any

import mortice


@dataclass
class WorkerInfo:
    """Who a worker is: its id, the number of workers, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the WorkerInfo of this worker process, None in the main process."""
    return _info


class WorkerError:
    """An exception of a worker, carried as text so that any exception can cross."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.where = where
        self.kind: Any = type(error)
        self.text = "".join(traceback.format_exception(error))

    def reraise(self) -> None:
        """Raise the same type in the parent, with the worker's traceback in its text."""
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(text)
        try:
            error = self.kind(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


@dataclass
class EndOfStream:
    """Says that a worker's part of an IterableDataset is exhausted."""

    worker_id: int


def _leave_with_parent(parent: Any) -> None:
    """End this process when the parent has gone, whatever the main thread is doing."""

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="mortice-parent-watch").start()


def run(
    fetch_from: Any, index_queue: Any, result_queue: Any, worker_id: int, num_workers: int, base_seed: int,
    init_fn: Any, backend: str,
) -> None:  # fmt: skip
    """Read (batch number, indices) from the queue and put (batch number, data) back until None comes."""
    import multiprocessing
    import signal

    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    parent = multiprocessing.parent_process()
    if parent is not None:
        _leave_with_parent(parent)
    seed = (base_seed + worker_id) % 2**64
    random.seed(seed)
    mortice.manual_seed(seed)
    mortice.set_backend(backend)
    dataset, make_fetcher = fetch_from
    _info = WorkerInfo(worker_id, num_workers, seed, dataset)
    where = f"in DataLoader worker process {worker_id}"
    fetcher = problem = None
    try:
        if init_fn is not None:
            init_fn(worker_id)
        fetcher = make_fetcher(dataset)
    except Exception as error:
        problem = WorkerError(where, error)
    while True:
        task = index_queue.get()
        if task is None:
            return
        number, indices = task
        if number is None:  # another pass begins
            try:
                fetcher, problem = make_fetcher(dataset), None
            except Exception as error:
                problem = WorkerError(where, error)
            continue
        if problem is not None:
            data: Any = problem
        else:
            assert fetcher is not None
            try:
                data = fetcher(indices)
            except StopIteration:
                data = EndOfStream(worker_id)
            except Exception as error:
                data = WorkerError(where, error)
        result_queue.put((number, data))
