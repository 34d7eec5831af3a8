"""How another thread goes on with what a thread knows of its own: the stack of a thread is not without end."""

from __future__ import annotations

import contextvars
import threading

from mortice.device import LOCALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def elsewhere(work: Callable[[], Any]) -> Any:
    """Return what `work` returns, or raise what it raises, having called it in a new thread with the state of this one."""
    held = [vars(state) for state in LOCALS]  # this thread's
    here = contextvars.copy_context()
    given: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        for state, mine in zip(LOCALS, held):
            vars(state).update(mine)
        try:
            given.append(here.run(work))
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to who waits
            failed.append(error)
        finally:
            for state, mine in zip(LOCALS, held):
                mine.clear()
                mine.update(vars(state))

    thread = threading.Thread(target=run, name="mortice-backward", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed.pop()
    return given.pop()
