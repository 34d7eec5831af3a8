"""What a thread knows of its own, and how another one goes on with it: the stack of a thread is not without end."""

from __future__ import annotations

import contextvars
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_kept: list[Local] = []


class Local(threading.local):
    """A thread's own state, as `threading.local` keeps it, which `elsewhere` hands on."""

    def __new__(cls) -> Local:
        made: Local = super().__new__(cls)
        _kept.append(made)
        return made


def elsewhere(work: Callable[[], Any]) -> Any:
    """Return what `work` returns, or raise what it raises, having called it in a new thread with the state of this one."""
    held = [vars(state) for state in _kept]  # this thread's
    here = contextvars.copy_context()
    given: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        for state, mine in zip(_kept, held):
            vars(state).update(mine)
        try:
            given.append(here.run(work))
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to who waits
            failed.append(error)
        finally:
            for state, mine in zip(_kept, held):
                mine.clear()
                mine.update(vars(state))

    thread = threading.Thread(target=run, name="mortice-backward", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed.pop()
    return given.pop()
