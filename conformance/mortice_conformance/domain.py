"""Domains: where a sample's operands are drawn from. Draws depend on the seed alone and are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mortice.backends import DType
from mortice_conformance.arrays import BY_NAME, limits, rounded

Draw = Callable[[Any, tuple[int, ...], DType, Any], Any]


@dataclass(frozen=True)
class Domain:
    """A rule for drawing operands.

    Attributes:
        name: as it reads in a report.
        low, high: the range of floats, and of the parts of complex numbers.
        ints: the range of integers, cut to what the dtype holds.
        dtype: the dtype that such operands always have; None follows the sample's.
        draw: replaces the whole rule: `(rng, shape, dtype, case) -> array`.
        gap: floats keep this distance from zero.
    """

    name: str
    low: float = -3.0
    high: float = 3.0
    ints: tuple[int, int] = (-9, 9)
    dtype: str | None = None
    draw: Draw | None = None
    gap: float = 0.0

    def of(self, dtype: DType) -> DType:
        """Return the dtype that operands have when the sample's is `dtype`."""
        return dtype if self.dtype is None else BY_NAME[self.dtype]

    def values(self, rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
        """Draw values, already rounded to the dtype."""
        dtype = self.of(dtype)
        if self.draw is not None:
            return rounded(self.draw(rng, shape, dtype, case), dtype)
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "ui":
            bottom, top = limits(dtype)
            found = rng.integers(max(self.ints[0], bottom), min(self.ints[1], top) + 1, shape)
            return np.where((found == 0) & (self.gap > 0), 1, found).astype(dtype.name).reshape(shape)
        if dtype.kind == "c":
            return rounded(self._floats(rng, shape) + 1j * self._floats(rng, shape), dtype)
        return rounded(self._floats(rng, shape), dtype)

    def _floats(self, rng: Any, shape: tuple[int, ...]) -> Any:
        found = rng.uniform(self.low, self.high, shape)
        return found if not self.gap else found + np.copysign(self.gap, found)


real = Domain("real")
small = Domain("small", -1.0, 1.0, (-3, 3))
positive = Domain("positive", 0.1, 4.0, (1, 9))
not_negative = Domain("not negative", 0.0, 4.0, (0, 9))
nonzero = Domain("nonzero", -3.0, 3.0, (-9, 9), gap=0.3)
unit = Domain("inside (-1, 1)", -0.95, 0.95, (0, 0))
above_one = Domain("above 1", 1.05, 4.0, (2, 9))
above_two = Domain("above 2", 2.2, 6.0, (3, 9))
probability = Domain("inside (0, 1)", 0.05, 0.95, (0, 1))
shift = Domain("shift", ints=(0, 6))
bools = Domain("bool", dtype="bool")


def _distinct(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    n = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    ranks = rng.permutation(n).reshape(shape).astype(np.float64)
    if dtype.kind in "ui":
        return np.minimum(ranks, limits(dtype)[1])
    found = (ranks - n / 2) / 4 + rng.uniform(-0.05, 0.05, shape)
    return found + 1j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else found


def _tied(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    return rng.integers(0, 2 if dtype.kind == "b" else 4, shape)


# Far enough apart that a finite difference changes no order; and the opposite, many equal elements.
distinct = Domain("distinct", draw=_distinct)
tied = Domain("tied", draw=_tied)


def indices_into(operand: int = 0, axis: str = "axis") -> Domain:
    """Draw int64 positions along the axis that an attribute names, of the operand of that number."""

    def draw(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
        at = case.attrs.get(axis, 0)
        return rng.integers(0, max(case.shapes[operand][at], 1), shape)

    return Domain(f"indices into operand {operand}", dtype="int64", draw=draw)


def below(n: int, dtype: str | None = "int64") -> Domain:
    """Draw integers in [0, n)."""
    return Domain(f"below {n}", dtype=dtype, draw=lambda rng, shape, d, case: rng.integers(0, n, shape))


# ---- matrices ----


def _matrix(rng: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    a = rng.uniform(-1, 1, shape)
    return a + 1j * rng.uniform(-1, 1, shape) if dtype.is_complex else a


def _invertible(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    a = _matrix(rng, shape, dtype)
    return a + 2 * np.eye(*shape[-2:]) * (shape[-1] ** 0.5)


def _definite(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    a = _matrix(rng, shape, dtype)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + shape[-1] * np.eye(shape[-1])


def _symmetric(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    a = _matrix(rng, shape, dtype) + np.diag(np.arange(shape[-1]) * 2.0)
    return (a + np.conj(np.swapaxes(a, -1, -2))) / 2


def _indefinite(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    a = _matrix(rng, shape, dtype) * 0.1
    # Ones across the diagonal, on which little is left: pivots of two columns are needed.
    return a + np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1])[::-1]


def _lower(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    return np.tril(_invertible(rng, shape, dtype, case))


def _upper(rng: Any, shape: tuple[int, ...], dtype: DType, case: Any) -> Any:
    return np.triu(_invertible(rng, shape, dtype, case))


invertible = Domain("invertible", draw=_invertible)
definite = Domain("positive definite", draw=_definite)
symmetric = Domain("symmetric", draw=_symmetric)
indefinite = Domain("symmetric and indefinite", draw=_indefinite)
lower = Domain("lower triangular", draw=_lower)
upper = Domain("upper triangular", draw=_upper)
