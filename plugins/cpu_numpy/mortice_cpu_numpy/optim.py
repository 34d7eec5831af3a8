"""Optimiser steps in place, a piece that fits the cache at a time: all rules of `mortice.backends.optim` at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from mortice_cpu_numpy.quiet import _QUIET, _reset, _set

PIECE = 1 << 16  # elements: what a step reads, writes and makes of as many fits the cache


class Steps:
    """What elementwise rules ask for, without the wrapping of single kernels; what changes state does so in place."""

    add, subtract, multiply, divide, negative, abs, sqrt = map(
        staticmethod, (np.add, np.subtract, np.multiply, np.divide, np.negative, np.abs, np.sqrt)
    )
    maximum, minimum, sign, less, where, ones_like, copy = map(
        staticmethod, (np.maximum, np.minimum, np.sign, np.less, np.where, np.ones_like, np.copy)
    )

    @staticmethod
    def toward(x: Any, y: Any, weight: float) -> Any:
        way = np.subtract(y, x)
        way *= weight
        x += way
        return x

    @staticmethod
    def toward_square(x: Any, y: Any, keep: float) -> Any:
        square = np.multiply(y, y)
        square *= 1 - keep
        x *= keep
        x += square
        return x

    @staticmethod
    def fade(x: Any, keep: float, y: Any) -> Any:
        x *= keep
        x += y
        return x

    @staticmethod
    def plus(x: Any, y: Any, times: Any) -> Any:
        return np.add(x, np.multiply(y, times))

    @staticmethod
    def downhill(x: Any, direction: Any, length: float) -> Any:
        x -= direction if length == 1 else np.multiply(direction, length)
        return x


class NumPyOptim:
    """The way in which steps are run."""

    def run_step(
        self: Any, rule: Any, lists: Sequence[Sequence[Any]], numbers: dict[str, Any], elementwise: bool
    ) -> tuple[Sequence[Any], ...]:
        changed = (0, *range(2, len(lists)))  # all but the gradients
        token = _set(_QUIET)
        try:
            for arrays in zip(*[buffers or repeat(None) for buffers in lists]):
                p = arrays[0]
                if not elementwise or p.dtype.kind not in "fc":  # bfloat16 is of no kind that NumPy knows
                    k, parts = self, (arrays,)
                elif p.dtype.kind == "f" and p.size <= PIECE:
                    k, parts = Steps, (arrays,)
                else:
                    k, parts = Steps, self._pieces(arrays)
                for part in parts:
                    for i, r in zip(changed, rule(k, *part, **numbers)):
                        if r is not part[i]:
                            part[i][...] = r
        finally:
            _reset(token)
        return (lists[0], *lists[2:])

    def _pieces(self: Any, arrays: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """Cut arrays of one shape, None among them, into pieces that stay in the cache from one operation to the next."""
        if arrays[0].dtype.kind == "c":
            arrays = [None if a is None else self.view_as_real(a) for a in arrays]
        if not all([a is None or a.flags.c_contiguous for a in arrays]):
            yield arrays
            return
        flat = [None if a is None else a.reshape(-1) for a in arrays]
        for start in range(0, flat[0].size, PIECE):
            yield [None if a is None else a[start : start + PIECE] for a in flat]

    def count_step(self, counts: Sequence[Any]) -> tuple[Sequence[Any]]:
        for count in counts:
            np.add(count, 1, out=count)
        return (counts,)

    def hold_step(self, numbers: Sequence[Any], *, value: float) -> tuple[Sequence[Any]]:
        for number in numbers:
            number.fill(value)
        return (numbers,)
