"""Values that come later: PyTorch's torch.futures, on Python's own."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that another thread sets, or an exception."""

    def __init__(self, *, devices: Any = None) -> None:
        self._of: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(self) -> bool:
        """Tell whether it is set."""
        return self._of.done()

    def wait(self) -> Any:
        """Wait for the value and return it, or raise the exception."""
        return self._of.result()

    def value(self) -> Any:
        """Return the value, which must be set."""
        if not self.done():
            raise RuntimeError("Future: value() was asked for before it was set. Use wait().")
        return self._of.result()

    def set_result(self, result: Any) -> None:
        """Set the value, once."""
        if self.done():
            raise RuntimeError("Future can only be marked completed once")
        self._of.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set the exception that `wait` raises."""
        self._of.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call `callback(self)` when it is set, or now."""
        self._of.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the Future of what `callback(self)` returns once this is set."""
        after = Future()

        def run(done: Future) -> None:
            try:
                after.set_result(callback(done))
            except BaseException as error:
                after.set_exception(error)

        self.add_done_callback(run)
        return after


def collect_all(futures: list[Future]) -> Future:
    """Return the Future of the list, set when the last of them is."""
    all_done, left = Future(), len(futures)

    def count(_: Future) -> None:
        nonlocal left
        left -= 1
        if not left:
            all_done.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        all_done.set_result(futures)
    return all_done


def wait_all(futures: list[Future]) -> list[Any]:
    """Wait for all and return their values."""
    return [future.wait() for future in collect_all(futures).wait()]
