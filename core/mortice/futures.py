"""mortice.futures: values that arrive later, with PyTorch's names around those of Python's library."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that somebody will set, or an error in its place."""

    def __init__(self, *, devices: Any = None) -> None:
        self._later: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Tell whether the value or the error is there."""
        return self._later.done()

    def wait(self) -> T:
        """Wait for the value and return it; raise the error that came in its place."""
        return self._later.result()

    def value(self) -> T:
        """Return the value, which must be there."""
        if not self.done():
            raise RuntimeError("value: expected a Future that is done. Use wait().")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Give the value, once."""
        self._once(self._later.set_result, result)

    def set_exception(self, result: BaseException) -> None:
        """Give an error in place of the value."""
        if not isinstance(result, BaseException):
            raise TypeError(f"set_exception: expected an exception; got {type(result).__name__}.")
        self._once(self._later.set_exception, result)

    def _once(self, give: Callable[[Any], None], result: Any) -> None:
        try:
            give(result)
        except concurrent.futures.InvalidStateError as e:
            raise RuntimeError("Future can only be marked completed once.") from e

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this Future once it is done, now if it is."""
        self._later.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """Return a Future of what a function makes of this one once it is done."""
        made: Future[Any] = Future()

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as e:
                # A RuntimeError whatever it was, as in PyTorch; the error itself is its cause.
                told = RuntimeError(f"Got the following error when running the callback: {type(e).__name__}: {e}")
                told.__cause__ = e
                made.set_exception(told)
            else:
                made.set_result(result)

        self.add_done_callback(run)
        return made


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a Future of the given ones, done when all are; it has the error of the first that has one."""
    left = _all(futures)
    made: Future[list[Future[Any]]] = Future()

    def arrived(_: Any = None) -> None:
        while left and left[-1].done():
            left.pop()
        if left:
            left[-1].add_done_callback(arrived)
        elif failed := next((e for future in futures if (e := future._later.exception())), None):
            made.set_exception(failed)
        else:
            made.set_result(list(futures))

    arrived()
    return made


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all and return their values."""
    return [future.wait() for future in _all(futures)]


def _all(futures: Sequence[Future[Any]]) -> list[Future[Any]]:
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    return list(futures)
