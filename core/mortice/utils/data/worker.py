"""What runs in a worker process of a DataLoader, and how its errors reach the parent."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any

import mortice
from mortice.interop import numpy_for
from mortice.random import set_engine, worker_seed
from mortice.utils.data.fetch import EndOfStream, seed_everything
from mortice.utils.data.sharing import Sender

GRACE = 2.0  # seconds that a worker has to finish what it is doing when it is no longer wanted


@dataclass(frozen=True)
class WorkerInfo:
    """Who a worker is: its id, the number of workers, its seed, and its copy of the dataset; PyTorch's threads fill the rest."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the WorkerInfo of this worker process, None in the main process."""
    return _worker_info


class ExceptionWrapper:
    """An exception of a worker, by default the one being handled: its type, and its traceback as text."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        error: Any = (exc_info or sys.exc_info())[1]
        kind = type(error)
        self.exc_msg = "".join(traceback.format_exception(error))
        self.where = f"{kind.__name__} {where}"
        # A StopIteration would end the consumer's loop as if nothing had happened.
        self.exc_type: Any = RuntimeError if issubclass(kind, StopIteration) or not _can_travel(kind) else kind

    def reraise(self) -> None:
        """Raise the same type, with the worker's traceback in its text; RuntimeError where that cannot be made."""
        text = f"Caught {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(_Multiline(text))
        try:
            error = self.exc_type(text)
        except Exception:
            error = RuntimeError(text)
        raise error


def _can_travel(kind: Any) -> bool:
    try:
        return pickle.loads(pickle.dumps(kind)) is kind
    except Exception:
        return False


class _Multiline(str):
    """Text that a KeyError, which shows the repr of its key, shows with its line ends."""

    def __repr__(self) -> str:
        return str(self)


class _Inbox:
    """Reads tasks in a thread, so that the parent's sending never waits for the dataset.

    The end of the connection is the end of this process: at once if it is idle, else after a grace.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.newest = 0
        threading.Thread(target=self._listen, daemon=True, name="mortice-data-inbox").start()

    def _listen(self) -> None:
        try:
            while True:
                task = self.connection.recv()
                self.newest = task[0]
                self.tasks.put(task)
        except (EOFError, OSError):
            self.tasks.put(None)
        time.sleep(GRACE)
        os._exit(1)

    def get(self) -> Any:
        """Return the next task (pass, batch number, indices, seed, free slabs); None at the end."""
        return self.tasks.get()


def _generate_state(base_seed: int, worker_id: int) -> Any:
    """Return the words that a worker seeds NumPy with: its own, and PyTorch's."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy_for("the seed of NumPy's generator").random.SeedSequence(words).generate_state(4).tolist()


def run(
    connection: Any, dataset: Any, make_fetcher: Any, worker_id: int, num_workers: int, base_seed: int, init_fn: Any,
    backend: str, engine: str,
) -> None:  # fmt: skip
    """Answer each task with a batch, an error or the end of the stream, until the parent closes the connection."""
    global _worker_info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sender = Sender(connection)
    inbox = _Inbox(connection)
    mortice.set_backend(backend)
    set_engine(engine)
    seed = worker_seed(base_seed, worker_id)
    seed_everything(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_generate_state(base_seed, worker_id))
    _worker_info = WorkerInfo(worker_id, num_workers, seed, dataset)
    where = f"in DataLoader worker process {worker_id}"
    problem = fetcher = begun = None
    try:
        if init_fn is not None:
            init_fn(worker_id)
    except Exception:
        problem = ExceptionWrapper(where=where)
    while (task := inbox.get()) is not None:
        pass_number, number, indices, batch_seed, returned = task
        sender.free += returned
        if pass_number != inbox.newest:  # the loop that wanted this has ended
            continue
        data: Any = problem
        if problem is None:
            try:
                if begun != pass_number:
                    begun, fetcher = pass_number, None
                    fetcher = make_fetcher(dataset)
                data = EndOfStream() if fetcher is None else fetcher(indices, batch_seed)
            except Exception:
                data = ExceptionWrapper(where=where)
        try:
            _answer(sender, (pass_number, number), data, where)
        except (BrokenPipeError, ConnectionResetError):
            break
    sender.close()


def _answer(sender: Sender, label: Any, data: Any, where: str) -> None:
    try:
        sender.send(label, data)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:  # what the dataset returned cannot be pickled
        sender.send(label, ExceptionWrapper(where=where))
