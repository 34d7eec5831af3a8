"""Checks of indices and labels that nothing waits for: a kernel writes what it has seen to memory of the host.

What is wrong is raised by the next call that finds the answer there: another check, or whatever waits for the device.
Until then kernels read 0 at positions outside, and add nothing there.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from mortice_cuda_cupy.graphs import current_capture
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import INTEGERS, Plans, int64, launcher
from mortice_cuda_cupy.kernels.reduce import FEW, LOOK

_PLACES = 4096  # for answers: more checks than a device has launches under way
_NOTE = "The call that it is about came earlier: its device was not waited for."


def _look(dtype: Any, n: int) -> Any:
    return launcher(LOOK.get(dtype, "look<{T}>"), (1,), (min(-(-n // 32) * 32, 1024),), "xw=ii", n)


_looks = Plans(_look)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.asked: deque[tuple[int, Any]] = deque()  # in the order of the checks: number, and what it is about


class LateChecks:
    """refuse_outside."""

    _answers: Any = None
    _place: int

    def __init__(self, *args: Any, **options: Any) -> None:
        self._late, self._numbers = _Thread(), itertools.count(1)
        super().__init__(*args, **options)

    def refuse_outside(
        self, x: Any, low: int, high: int, error: Callable[[int], Exception], allowed: int | None = None
    ) -> None:
        self.raise_late()
        if current_capture() is not None:
            return
        if self._answers is None:  # the least, the greatest and the number of a check; for good, as kernels write there
            made = np.frombuffer(cupy.cuda.alloc_pinned_memory(24 * _PLACES), np.int64, 3 * _PLACES).reshape(-1, 3)
            made[:] = 0
            self._answers, self._place = made, made.ctypes.data
        dtype, skip = self.dtype_of(x), low if allowed is None else allowed  # type: ignore[attr-defined]
        if dtype not in INTEGERS:
            x, dtype = self.astype(x, int64), int64  # type: ignore[attr-defined]
        if x.size > FEW:
            if allowed is not None:
                x, skip = self.where(self.equal(x, allowed), low, x), low  # type: ignore[attr-defined]
            x = self.concat([self.reshape(end(x), (1,)) for end in (self.min, self.max)], axis=0)  # type: ignore[attr-defined]
        number = next(self._numbers)
        _looks[dtype, x.size](contiguous(x), self._place + 24 * (number % _PLACES), skip, number)
        self._late.asked.append((number, (low, high, error)))
        self.raise_late(own=number)

    def raise_late(self, own: int = 0) -> None:
        """Raise what a check of this thread has found, if the answer is there."""
        asked = self._late.asked
        while asked:
            number, (low, high, error) = asked[0]
            answer = self._answers[number % _PLACES]
            written = int(answer[2])  # before the ends, which were there before it
            if written < number:
                return
            asked.popleft()
            least, most = int(answer[0]), int(answer[1])
            if written == number and (least < low or most > high):
                found = error(least if least < low else most)
                if number != own:
                    found.add_note(_NOTE)
                raise found
