"""Starting one function in several processes, and raising here what went wrong there."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn",
    "start_processes",
]  # fmt: skip


class ProcessException(Exception):
    """A process that failed: `error_index` is its number, `error_pid` its id."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process in which the function raised; the message holds the traceback."""


class ProcessExitedException(ProcessException):
    """A process that ended by a signal or with another status than 0."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent has been interrupted too, and says so
    except Exception:
        errors.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes = processes
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}
        self._errors = errors

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for one process or more to end, `timeout` seconds at most; return whether all have ended.

        When one has failed the others are terminated, after `grace_period` seconds, and its error is raised.
        """
        ended = connection.wait(list(self.sentinels), timeout=timeout) if self.sentinels else []
        failed = None
        for index in sorted(self.sentinels.pop(sentinel) for sentinel in ended):
            self.processes[index].join()
            if failed is None and self.processes[index].exitcode != 0:
                failed = index
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        raise self._error(failed)

    def _end_others(self, grace_period: float | None) -> None:
        """End what still runs: asked first, killed when it does not hear within half a minute."""
        until = time.monotonic() + (grace_period or 0)
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
        for end, wait in (("terminate", 30.0), ("kill", None)):
            alive = [process for process in self.processes if process.is_alive()]
            for process in alive:
                getattr(process, end)()
            for process in alive:
                process.join(wait)

    def _error(self, index: int) -> ProcessException:
        process = self.processes[index]
        told = None
        if self._errors[index].poll():
            try:
                told = self._errors[index].recv()
            except EOFError:
                pass
        if told is not None:
            return ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{told}", index, process.pid
            )
        code = process.exitcode
        if code >= 0:
            return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"<Unknown signal {-code}>"
        return ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, code, name)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Start `nprocs` processes that call `fn(i, *args)`, i from 0 on; with `join` wait for all and raise what one raised.

    Without it the ProcessContext comes back, to be joined later.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, tuple(args), sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Start `nprocs` new interpreters that call `fn(i, *args)`; see `start_processes`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
