"""Sampling at the points of a grid, and its gradients: every tap is one row of a table of pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, widen
from mortice.dtype import int64
from mortice.shape import prod

_CUBIC = -0.75  # the sharpness of the cubic convolution


class GridKernels(KernelMixin):
    """FREE: x is (N, C, *sizes), the grid (N, *out, axes) holds points in [-1, 1], the last axis of x first.

    `mode` is nearest, linear or cubic; `padding` says what lies outside: zeros, border or reflection.
    """

    def grid_sample(self, x: Any, grid: Any, *, mode: str, padding: str, align_corners: bool) -> Any:
        """Return (N, C, *out): x between its elements, at the points of the grid."""
        dtype = self.dtype_of(x)
        x, grid = widen(self, x), widen(self, grid)
        table, points = _rows(self, x), _Points(self, x, grid, mode, padding, align_corners)
        total = None
        for at, weight, _ in points.taps():
            part = self.multiply(self.take(table, at, axis=0), weight)
            total = part if total is None else self.add(total, part)
        return narrow(self, _unrows(self, total, x, self.shape_of(grid)[1:-1]), dtype)

    def grid_sample_grad(
        self, g: Any, x: Any, grid: Any, *, mode: str, padding: str, align_corners: bool, needs: Sequence[bool]
    ) -> tuple[Any, Any]:
        """Return the gradients of x and of the grid, each None unless it is needed."""
        dtype, sizes = self.dtype_of(g), tuple(self.shape_of(x)[2:])
        g, x, grid = widen(self, g), widen(self, x), widen(self, grid)
        g_rows = _flat(self, g)
        table, points = _rows(self, x), _Points(self, x, grid, mode, padding, align_corners)
        spread = self.new_full(table, self.shape_of(table), 0) if needs[0] else None
        slopes: list[Any] = [None] * len(sizes)
        for at, weight, slope in points.taps():
            if needs[0]:
                spread = self.index_add(spread, at, self.multiply(g_rows, weight), axis=0)
            if needs[1] and slope:
                seen = self.sum(self.multiply(g_rows, self.take(table, at, axis=0)), axis=1, keepdims=True)
                for axis, s in enumerate(slope):
                    part = self.multiply(seen, s)
                    slopes[axis] = part if slopes[axis] is None else self.add(slopes[axis], part)
        d_x = d_grid = None
        if needs[0]:
            pixels = self.getitem(spread, (slice(0, -1),))
            d_x = narrow(self, _unrows(self, pixels, x, sizes), dtype)
        if needs[1] and mode == "nearest":
            d_grid = self.new_full(g, self.shape_of(grid), 0, dtype=dtype)
        elif needs[1]:
            d_grid = self.reshape(self.concat(slopes[::-1], axis=1), self.shape_of(grid))
            d_grid = narrow(self, d_grid, dtype)
        return d_x, d_grid


def _flat(k: Any, x: Any) -> Any:
    """Return (N, C, *sizes) as rows of channels, (N * sizes, C)."""
    shape = tuple(k.shape_of(x))
    x = k.moveaxis(k.reshape(x, (*shape[:2], prod(shape[2:]))), 1, 2)
    return k.reshape(x, (shape[0] * prod(shape[2:]), shape[1]))


def _rows(k: Any, x: Any) -> Any:
    """Return the rows of x and a row of zeros after them, which stands for everything outside."""
    rows = _flat(k, x)
    return k.concat([rows, k.new_full(rows, (1, k.shape_of(rows)[1]), 0)], axis=0)


def _unrows(k: Any, rows: Any, x: Any, sizes: Sequence[int]) -> Any:
    """Return rows of channels as (N, C, *sizes)."""
    n, c = k.shape_of(x)[:2]
    return k.reshape(k.contiguous(k.moveaxis(k.reshape(rows, (n, prod(sizes), c)), 1, 2)), (n, c, *sizes))


class _Points:
    """The points of a grid in units of elements, and what each axis reads at them."""

    def __init__(self, k: Any, x: Any, grid: Any, mode: str, padding: str, align_corners: bool) -> None:
        self.k, self.mode, self.padding, self.corners = k, mode, padding, align_corners
        self.n, _, *self.sizes = k.shape_of(x)
        self.count = prod(k.shape_of(grid)[:-1])
        points = k.reshape(grid, (self.count, len(self.sizes)))
        last = len(self.sizes) - 1
        self.axes = [
            self._axis(k.getitem(points, (slice(None), slice(last - d, last - d + 1))), size)
            for d, size in enumerate(self.sizes)
        ]

    def taps(self) -> Iterator[tuple[Any, Any, list[Any]]]:
        """Yield the rows (count,) read as one tap, their weights (count, 1) and the weights' slope along each axis."""
        k = self.k
        outside = self.n * prod(self.sizes)
        first = k.multiply(k.new_arange(self.axes[0][0][0], 0, self.n), prod(self.sizes))
        first = k.broadcast_to(k.reshape(first, (self.n, 1)), (self.n, self.count // max(self.n, 1)))
        first = k.reshape(first, (self.count, 1))
        for chosen in product(*self.axes):
            at, inside = first, None
            for d, (index, within, _, _) in enumerate(chosen):
                at = k.add(at, k.multiply(index, prod(self.sizes[d + 1 :])))
                inside = within if inside is None else k.logical_and(inside, within)
            at = k.reshape(k.where(inside, at, outside), (self.count,))
            if self.mode == "nearest":
                yield at, 1, []
                continue
            weights, slopes = [tap[2] for tap in chosen], [tap[3] for tap in chosen]
            slope = [_product(k, [*weights[:d], s, *weights[d + 1 :]]) for d, s in enumerate(slopes)]
            yield at, _product(k, weights), slope

    def _axis(self, point: Any, size: int) -> list[tuple[Any, Any, Any, Any]]:
        """Return (index, whether it is inside, weight, the weight's slope by the grid) of each tap along an axis."""
        k = self.k
        half = (size - 1) / 2 if self.corners else size / 2
        # PyTorch's order and roundings, so that at an element and half way between two the last bit says the same: in two
        # dimensions its product is not rounded.
        d = k.dtype_of(point)
        x = k.astype(k.add(point, 1), k.device_of(point).widest_float if len(self.sizes) == 2 else d)
        x = k.multiply(x, half)
        x = k.astype(x if self.corners else k.subtract(x, 0.5), d)
        turn = half
        if self.mode != "cubic":
            x, moved = self._padded(x, size)
            turn = k.multiply(moved, half)
        if self.mode == "nearest":
            return [(*self._index(k.round(x), size), None, None)]
        low = k.floor(x)
        t = k.subtract(x, low)
        if self.mode == "linear":
            weights = [(0, k.subtract(1, t), -1), (1, t, 1)]
        else:
            weights = [(i - 1, *_cubic(k, t, i)) for i in range(4)]
        return [
            (*self._index(k.add(low, step), size), weight, k.multiply(turn, slope)) for step, weight, slope in weights
        ]

    def _index(self, place: Any, size: int) -> tuple[Any, Any]:
        """Return the index at whole-numbered places, and whether they are inside."""
        k = self.k
        if self.mode == "cubic":
            place, _ = self._padded(place, size)
        inside = k.logical_and(k.less_equal(0, place), k.less_equal(place, size - 1))
        return k.astype(k.where(inside, place, 0), int64), inside

    def _padded(self, x: Any, size: int) -> tuple[Any, Any]:
        """Return where points outside come to lie, and the slope of that: 1, -1 or 0."""
        k = self.k
        one = k.new_full(x, (1,), 1)
        if self.padding == "zeros":
            return x, one
        if self.padding == "reflection":
            low, span = (0, size - 1) if self.corners else (-0.5, size)
            if span == 0:
                return k.new_full(x, k.shape_of(x), 0), k.new_full(x, (1,), 0)
            away = k.subtract(x, low)
            sign = k.where(k.less(away, 0), -1, one)
            away = k.abs(away)
            turns = k.floor(k.divide(away, span))
            left = k.subtract(away, k.multiply(turns, span))
            even = k.equal(k.remainder(turns, 2), 0)
            x = k.add(k.where(even, left, k.subtract(span, left)), low)
            one = k.where(even, sign, k.negative(sign))
        free = k.logical_and(k.less(0, x), k.less(x, size - 1))
        return k.where(k.less(0, x), k.minimum(x, size - 1), 0), k.where(free, one, 0)  # nan lies at 0


def _product(k: Any, factors: list[Any]) -> Any:
    total = factors[0]
    for factor in factors[1:]:
        total = k.multiply(total, factor)
    return total


def _cubic(k: Any, t: Any, tap: int) -> tuple[Any, Any]:
    """Return the weight of a tap of cubic convolution, t past tap 1, and its slope."""
    d = k.add(t, 1 - tap) if tap < 2 else k.subtract(tap - 1, t)  # the distance
    a = _CUBIC
    if tap in (1, 2):
        weight = k.add(k.multiply(k.multiply(k.subtract(k.multiply(d, a + 2), a + 3), d), d), 1)
        slope = k.multiply(k.subtract(k.multiply(d, 3 * (a + 2)), 2 * (a + 3)), d)
    else:
        weight = k.multiply(k.subtract(k.multiply(k.add(k.multiply(k.subtract(d, 5), d), 8), d), 4), a)
        slope = k.multiply(k.add(k.multiply(k.subtract(k.multiply(d, 3), 10), d), 8), a)
    return weight, slope if tap < 2 else k.negative(slope)
