"""The worker processes of a DataLoader as the parent sees them: starting, talking, noticing a death, ending.

Every worker has a connection of its own, so one that dies in the middle of anything takes no lock and no other worker
with it. The end of a connection is the sign of the other side's end, in both directions.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import weakref
from collections.abc import Iterator
from multiprocessing import connection as _connection
from multiprocessing import util
from pickle import PicklingError
from typing import Any

import mortice
from mortice.utils.data import worker
from mortice.utils.data.fetch import fetcher
from mortice.utils.data.sharing import Receiver

_LOOK = 1.0  # seconds between looks at the processes themselves, should a connection's end go unnoticed
_open: weakref.WeakSet[Receiver] = weakref.WeakSet()


def _close_inherited() -> None:
    # A forked child that kept these would hide this process's end from the workers.
    for receiver in list(_open):
        receiver.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


def _start(process: Any) -> None:
    try:
        process.start()
    except (AttributeError, TypeError, PicklingError) as error:
        error.add_note(
            f"DataLoader: {type(process).__name__} pickles what a worker gets. Define the dataset, collate_fn and worker_init_fn "
            "at the top of a module, or start workers by multiprocessing_context='fork', Python's default on Linux until 3.14."
        )
        raise


class Workers:
    """Worker processes, and a numbered pass over the data that they are working for."""

    def __init__(self, loader: Any, base_seed: int) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self.processes: list[Any] = []
        self.receivers: list[Receiver] = []
        self.passes = 0
        # Runs when this object goes, and before multiprocessing waits for its children when the interpreter ends.
        self.stop = util.Finalize(self, _stop, (self.processes, self.receivers), exitpriority=100)
        try:
            for i in range(loader.num_workers):
                mine, theirs = context.Pipe()
                self.receivers.append(Receiver(mine))
                _open.add(self.receivers[-1])
                process = context.Process(
                    target=worker.run, daemon=True,
                    args=(theirs, loader.dataset, fetcher(loader), i, loader.num_workers, base_seed,
                          loader.worker_init_fn, mortice.default_backend(), mortice.random.get_engine()),
                )  # fmt: skip
                with theirs:
                    _start(process)
                self.processes.append(process)
        except BaseException:
            self.stop()
            raise

    @property
    def stopped(self) -> bool:
        """Whether the processes have been ended."""
        return not self.stop.still_active()

    def begin(self) -> int:
        """Begin another pass; what was asked for an earlier one is forgotten."""
        self.passes += 1
        return self.passes

    def ask(self, i: int, pass_number: int, number: int, indices: Any, seed: int | None) -> None:
        """Ask worker `i` for a batch, its samples seeded from a seed on, unless that is None."""
        receiver = self.receivers[i]
        try:
            receiver.connection.send((pass_number, number, indices, seed, receiver.returned()))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has died, which is told when the batch is waited for

    def answer(self, timeout: float) -> tuple[int, Any, Any]:
        """Wait for a worker's answer: its number, the label (pass, batch number) and what `sharing.load` takes.

        Whatever else happens, be it Ctrl-C, ends the processes.
        """
        try:
            return self._answer(timeout)
        except BaseException:
            self.stop()
            raise

    def _answer(self, timeout: float) -> tuple[int, Any, Any]:
        places = {r.connection: i for i, r in enumerate(self.receivers)}
        deadline = time.monotonic() + timeout if timeout else float("inf")
        while True:
            ready: Any = _connection.wait(places, min(_LOOK, max(deadline - time.monotonic(), 0)))
            for found in ready:
                i = places[found]
                try:
                    return (i, *self.receivers[i].receive())
                except (EOFError, OSError):
                    raise self._death([self.processes[i]]) from None
            dead = [p for p in self.processes if p.exitcode is not None]
            if dead:
                raise self._death(dead)
            if time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")

    def _death(self, dead: list[Any]) -> RuntimeError:
        for process in dead:
            process.join(_LOOK)
        pids, ends = ", ".join(str(p.pid) for p in dead), ", ".join(_end(p.exitcode) for p in dead)
        return RuntimeError(
            f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {ends}. Use num_workers=0 to see where."
        )


def _end(code: int | None) -> str:
    """Say how a process ended."""
    if code is None:
        return "it closed its connection"
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return f"killed by {name}" + (", as when memory runs out" if name == "SIGKILL" else "")


def _stop(processes: list[Any], receivers: list[Receiver]) -> None:
    """Close the connections, and end what does not end by itself."""
    for receiver in receivers:
        receiver.close()
    try:
        _wait(processes, worker.GRACE)
    finally:
        for process in _living(processes):
            process.terminate()
        _wait(processes, 0.5)
        for process in _living(processes):
            process.kill()
        _wait(processes, 0.5)


def _living(processes: list[Any]) -> Iterator[Any]:
    return (p for p in processes if p.exitcode is None)


def _wait(processes: list[Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(deadline - time.monotonic(), 0))
