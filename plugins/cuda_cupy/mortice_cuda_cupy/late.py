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
from mortice_cuda_cupy.kernels.launch import INTEGERS, Plans, int64, launcher, scratch
from mortice_cuda_cupy.kernels.reduce import FEW, LOOK

_PLACES = 4096  # for answers: more checks than a device has launches under way
_NOTE = "The call that it is about came earlier: its device was not waited for."


_MOST_BLOCKS, _LEAST = 528, 1 << 13  # that share many elements, and the elements of one: 4 blocks for each of 132 multiprocessors
_making = threading.Lock()


def _look(dtype: Any, n: int) -> Any:
    """Return a function of an array, the address of its answer, the ends, what else is allowed, and the number of the check."""
    kernel = LOOK.get(dtype, "look<{T}>")
    if n <= FEW:
        return launcher(kernel, (1,), (min(-(-n // 32) * 32, 1024),), "x=w==iiii", None, n, 0)
    per = max(-(-n // _MOST_BLOCKS), _LEAST)
    count = -(-n // per)
    first = launcher(LOOK.get(dtype, "outside<{T}>"), (count,), (256,), "xm==iii", n, per)
    last = launcher(kernel, (1,), (256,), "xmw==iiii", n, count)

    def look(x: Any, place: int, low: int, high: int, skip: int, number: int) -> None:
        firsts = scratch(8 * count)
        first(x, firsts, low, high, skip)
        last(x, firsts, place, low, high, skip, number)

    return look


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
        if self._answers is None:
            self._make_answers()
        dtype, skip = self.dtype_of(x), low if allowed is None else allowed  # type: ignore[attr-defined]
        if dtype not in INTEGERS:
            x, dtype = self.astype(x, int64), int64  # type: ignore[attr-defined]
        number = next(self._numbers)
        _looks[dtype, x.size](contiguous(x), self._place + 24 * (number % _PLACES), low, high, skip, number)
        self._late.asked.append((number, error))
        self.raise_late(own=number)

    def _make_answers(self) -> None:
        """Take memory for answers, for good, as kernels write there: whether an element is outside, the first, the number of the check."""
        with _making:
            if self._answers is None:
                made = np.frombuffer(cupy.cuda.alloc_pinned_memory(24 * _PLACES), np.int64, 3 * _PLACES).reshape(-1, 3)
                made[:] = 0
                self._place = made.ctypes.data
                self._answers = made

    def raise_late(self, own: int = 0) -> None:
        """Raise what a check of this thread has found, if the answer is there."""
        asked = self._late.asked
        while asked:
            number, error = asked[0]
            answer = self._answers[number % _PLACES]
            written = int(answer[2])  # before the rest, which was there before it
            if written < number:
                return
            asked.popleft()
            wrong, value = int(answer[0]), int(answer[1])
            if written == number and wrong:
                found = error(value)
                if number != own:
                    found.add_note(_NOTE)
                raise found
