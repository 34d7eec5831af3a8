"""Running a catalog in several processes, within a time: a check that ends or hangs its process loses only itself."""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from mortice_conformance.catalog import Item, catalog
from mortice_conformance.runner import FAILED, KnownFailure, Result, judge, run_item
from mortice_conformance.subject import Subject

# How the message of a check begins that the time did not reach.
NOT_RUN = "not run:"
SECONDS_EACH = 120.0


def run(
    items: Sequence[Item], name: str, known: dict[str, KnownFailure], seen: Callable[[Result], None], *,
    jobs: int, within: float | None = None, each: float = SECONDS_EACH,
) -> list[Result]:  # fmt: skip
    """Run checks of a backend in processes, low levels first; what `within` seconds do not reach fails as not run.

    A process that a check ends, that takes longer than `each` seconds over it, or whose device no longer answers is
    replaced by a new one.
    """
    end = float("inf") if within is None else time.monotonic() + within
    waiting = deque(sorted(items, key=lambda item: item.level))
    results: list[Result] = []

    def note(result: Result) -> None:
        results.append(judge(result, known))
        seen(results[-1])

    workers = {w.connection: w for w in (_Worker(name) for _ in range(min(jobs, len(waiting))))}
    try:
        while workers and (left := end - time.monotonic()) > 0:
            for connection in wait(list(workers), min(left, 1.0)):
                worker = workers[connection]  # type: ignore[index]
                replace = worker.answered(note)
                if replace:
                    worker.stop()
                    del workers[worker.connection]
                if replace == "replace" and waiting:
                    worker = _Worker(name)
                    workers[worker.connection] = worker
                elif not replace and not worker.ask(waiting):
                    worker.stop()
                    del workers[worker.connection]
            for worker in workers.values():
                if worker.item is not None and time.monotonic() - worker.since > each:
                    worker.problem = f"took more than {each:g} s; its process was ended."
                    worker.process.kill()
        unfinished = [w.item for w in workers.values() if w.item is not None]
        reason = f"{within:g} s were over." if workers else "no process of the kit stayed alive."
        for item in [*unfinished, *waiting]:
            note(_failed(item, f"{NOT_RUN} {reason}"))
    finally:
        for worker in workers.values():
            worker.process.kill()
    order = {item.id: place for place, item in enumerate(items)}
    return sorted(results, key=lambda result: order[result.id])


class _Worker:
    """A process that runs one check after the other, as it is asked."""

    def __init__(self, name: str) -> None:
        # A forked process cannot use a GPU that its parent has used.
        context = multiprocessing.get_context("spawn")
        self.connection, far = context.Pipe()
        self.process = context.Process(target=_serve, args=(far, name))
        self.process.start()
        far.close()
        self.item: Item | None = None
        self.since = 0.0
        self.problem = ""

    def answered(self, note: Callable[[Result], None]) -> str:
        """Take what it sent; return "replace" where it is lost with its check, "lost" where it never began."""
        item = self.item
        try:
            result, usable = self.connection.recv()
        except (EOFError, OSError):
            if item is None:
                return "lost"
            self.process.join(5)
            note(_failed(item, self.problem or f"ended the process, with exit code {self.process.exitcode}."))
            return "replace"
        if result is not None:
            note(result)
        self.item = None
        return "" if usable else "replace"

    def ask(self, waiting: deque[Item]) -> bool:
        """Give it a check to run; return whether there was one."""
        if not waiting:
            return False
        self.item, self.since = waiting.popleft(), time.monotonic()
        try:
            self.connection.send(self.item.id)
        except OSError:
            pass  # it has ended, which the next look at its connection finds
        return True

    def stop(self) -> None:
        """Let it end."""
        self.connection.close()
        self.process.join(5)
        self.process.kill()


def _failed(item: Item, message: str) -> Result:
    return Result(item.id, item.check, item.op, item.level, FAILED, 0.0, message)


def _serve(connection: Connection, name: str) -> None:
    """Run the checks whose ids arrive, until the other side closes."""
    subject = Subject(name)
    items = {item.id: item for item in catalog(subject)}
    connection.send((None, True))
    while True:
        try:
            item = items[connection.recv()]
        except EOFError:
            return
        result = run_item(item, subject)
        connection.send((result, result.outcome != FAILED or _answers(subject)))


def _answers(subject: Subject) -> bool:
    """Tell whether the device still works: after an illegal access a GPU refuses all that its process asks."""
    k: Any = subject.backend
    try:
        k.synchronize(subject.device)
    except Exception:
        return False
    return True
