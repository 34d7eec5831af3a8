"""ReductionKernels: the FREE kernels that reduce, scan, sort, search or count along axes.

Scans double their reach at each step, so they take log2(n) of them. `flat_nonzero` and `unique_all` have results whose
shape depends on the data: each reads one number on the host, through `k.item`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mortice.backends.kernel_tools import Buffer, in_float32
from mortice.dtype import bfloat16, bool_, float16, float32, int64, uint8
from mortice.shape import prod

Axis = int | tuple[int, ...] | None


def _count(k: Any, x: Buffer, axis: Axis) -> int:
    """Return how many elements go into each result."""
    shape = k.shape_of(x)
    if axis is None:
        return prod(shape)
    return prod(shape[a] for a in ((axis,) if isinstance(axis, int) else axis))


def _cut(k: Any, x: Buffer, axis: int, start: int | None, stop: int | None) -> Buffer:
    """Take a range along one axis."""
    return k.getitem(x, (slice(None),) * (axis % len(k.shape_of(x))) + (slice(start, stop),))


def _scan(k: Any, parts: list[Buffer], axis: int, combine: Callable[..., list[Buffer]]) -> list[Buffer]:
    """Fold `combine(left, right)`, which is associative, over everything up to each position."""
    n = k.shape_of(parts[0])[axis] if k.shape_of(parts[0]) else 1
    reach = 1
    while reach < n:
        left = [_cut(k, part, axis, None, n - reach) for part in parts]
        right = [_cut(k, part, axis, reach, None) for part in parts]
        joined = combine(left, right)
        heads = [_cut(k, part, axis, None, reach) for part in parts]
        parts = [k.concat([h, j], axis=axis) for h, j in zip(heads, joined)]
        reach *= 2
    return parts


def _positions(k: Any, x: Buffer, axis: int) -> Buffer:
    """Number x's elements along an axis."""
    shape = k.shape_of(x)
    if not shape:
        return k.new_full(x, (), 0, int64)
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return k.broadcast_to(k.reshape(k.new_arange(x, 0, shape[axis]), tuple(along)), shape)


def _running_extreme(k: Any, x: Buffer, axis: int, reaches: Callable[..., Buffer]) -> tuple[Buffer, Buffer]:
    d = k.dtype_of(x)

    def combine(left: list[Buffer], right: list[Buffer]) -> list[Buffer]:
        later = reaches(left[0], right[0])
        if d.is_floating_point:
            later = k.bitwise_or(later, k.isnan(right[0]))
        return [k.where(later, r, l) for l, r in zip(left, right)]

    values = k.astype(x, uint8) if d is bool_ else k.copy(x)
    values, indices = _scan(k, [values, k.copy(_positions(k, x, axis))], axis, combine)
    return (k.astype(values, bool_) if d is bool_ else values), indices


class ReductionKernels:
    """Reductions, scans, sorting and searching with default bodies."""

    # ---- truth ----

    def nansum(k: Any, x: Buffer, *, axis: Axis = None, keepdims: bool = False) -> Buffer:
        """Add up floats, a nan counting as 0."""
        return k.sum(k.where(k.isnan(x), 0.0, x), axis=axis, keepdims=keepdims)

    def count_nonzero(k: Any, x: Buffer, *, axis: Axis = None, keepdims: bool = False) -> Buffer:
        """Count the elements that are not zero, as int64."""
        counted = x if k.dtype_of(x) is bool_ else k.not_equal(x, 0)
        return k.sum(k.astype(counted, int64), axis=axis, keepdims=keepdims)

    def any(k: Any, x: Buffer, *, axis: Axis = None, keepdims: bool = False) -> Buffer:
        """Tell whether any element is nonzero; false for none."""
        return k.not_equal(k.count_nonzero(x, axis=axis, keepdims=keepdims), 0)

    def all_equal(k: Any, x: Buffer, y: Buffer) -> bool:
        """Tell whether x and y, of one shape and dtype, have equal elements; it is read by the host."""
        return bool(k.item(k.all(k.equal(x, y))))

    def all(k: Any, x: Buffer, *, axis: Axis = None, keepdims: bool = False) -> Buffer:
        """Tell whether every element is nonzero; true for none."""
        return k.equal(k.count_nonzero(x, axis=axis, keepdims=keepdims), _count(k, x, axis))

    # ---- averages ----

    @in_float32
    def mean(k: Any, x: Buffer, *, axis: Axis = None, keepdims: bool = False) -> Buffer:
        """Average; nan for no elements."""
        return k.divide(k.sum(x, axis=axis, keepdims=keepdims), float(_count(k, x, axis)))

    @in_float32
    def var(k: Any, x: Buffer, *, axis: Axis = None, correction: float = 1, keepdims: bool = False) -> Buffer:
        """Return the variance in two passes, over n - correction (0 when negative); real for complex x."""
        apart = k.subtract(x, k.mean(x, axis=axis, keepdims=True))
        if k.dtype_of(x).is_complex:
            squares = k.add(k.square(k.real(apart)), k.square(k.imag(apart)))
        else:
            squares = k.square(apart)
        freedom = float(max(_count(k, x, axis) - correction, 0))
        return k.divide(k.sum(squares, axis=axis, keepdims=keepdims), freedom)

    @in_float32
    def std(k: Any, x: Buffer, *, axis: Axis = None, correction: float = 1, keepdims: bool = False) -> Buffer:
        """Return the square root of the variance."""
        return k.sqrt(k.var(x, axis=axis, correction=correction, keepdims=keepdims))

    @in_float32
    def logsumexp(k: Any, x: Buffer, *, axis: Axis = None, keepdims: bool = False) -> Buffer:
        """Return the logarithm of the sum of exponentials without overflow; -inf for no elements."""
        if _count(k, x, axis) == 0:
            return k.log(k.sum(x, axis=axis, keepdims=keepdims))
        top = k.max(k.real(x) if k.dtype_of(x).is_complex else x, axis=axis, keepdims=True)
        top = k.astype(k.where(k.isfinite(top), top, 0.0), k.dtype_of(x))
        total = k.log(k.sum(k.exp(k.subtract(x, top)), axis=axis, keepdims=keepdims))
        return k.add(total, k.reshape(top, k.shape_of(total)))

    # ---- positions ----

    def argmin(k: Any, x: Buffer, *, axis: Any = None, keepdims: bool = False) -> Buffer:
        """Find the first smallest element, or the first nan."""
        d = k.dtype_of(x)
        if d.is_floating_point:
            mirrored = k.negative(x)
        else:
            # Flipping all bits turns the order of integers round, and unlike negation does not overflow.
            mirrored = k.bitwise_invert(k.astype(x, uint8) if d is bool_ else x)
        return k.argmax(mirrored, axis=axis, keepdims=keepdims)

    def vector_norm(k: Any, x: Buffer, *, p: float, axis: Any = None, keepdims: bool = False) -> Buffer:
        """Take the p-norm along axes: real, of complex numbers too."""
        d = k.dtype_of(x)
        if d is float16 or d is bfloat16:
            # Powers and sums of half precision overflow long before the norm does.
            return k.astype(k.vector_norm(k.astype(x, float32), p=p, axis=axis, keepdims=keepdims), d)
        if p == 0:
            return k.sum(k.astype(k.not_equal(x, 0), d.to_real()), axis=axis, keepdims=keepdims)
        if p == 2 and not d.is_complex:
            return k.sqrt(k.sum(k.square(x), axis=axis, keepdims=keepdims))
        size = k.abs(x)
        if p == math.inf:
            return k.max(size, axis=axis, keepdims=keepdims)
        if p == -math.inf:
            return k.min(size, axis=axis, keepdims=keepdims)
        if p == 1:
            return k.sum(size, axis=axis, keepdims=keepdims)
        if p == 2:
            return k.sqrt(k.sum(k.square(size), axis=axis, keepdims=keepdims))
        return k.pow(k.sum(k.pow(size, p), axis=axis, keepdims=keepdims), 1 / p)

    def row_distances(k: Any, x: Buffer, y: Buffer, *, p: float) -> Buffer:
        """Take the p-norms of the differences of all pairs of rows of x (..., m, d) and y (..., n, d): (..., m, n)."""
        return k.vector_norm(k.subtract(k.expand_dims(x, -2), k.expand_dims(y, -3)), p=p, axis=-1)

    def max_dim(k: Any, x: Buffer, *, axis: int, keepdims: bool = False) -> tuple[Buffer, Buffer]:
        """Return the largest along an axis and its first place."""
        return k.max(x, axis=axis, keepdims=keepdims), k.argmax(x, axis=axis, keepdims=keepdims)

    def min_dim(k: Any, x: Buffer, *, axis: int, keepdims: bool = False) -> tuple[Buffer, Buffer]:
        """Return the smallest along an axis and its first place."""
        return k.min(x, axis=axis, keepdims=keepdims), k.argmin(x, axis=axis, keepdims=keepdims)

    def flat_nonzero(k: Any, x: Buffer) -> Buffer:
        """Return the row-major positions of nonzero elements, one-dimensional int64."""
        n = prod(k.shape_of(x))
        flat = k.reshape(x, (n,))
        found = flat if k.dtype_of(x) is bool_ else k.not_equal(flat, 0)
        if n == 0:
            return k.new_full(x, (0,), 0, int64)
        ranks = k.cumulative_sum(k.astype(found, int64), axis=0)
        count = int(k.item(k.getitem(ranks, (slice(n - 1, n),))))
        # What is not found adds 0 to a place past the end.
        place = k.where(found, k.subtract(ranks, 1), count)
        values = k.where(found, k.new_arange(x, 0, n), 0)
        filled = k.scatter_add(k.new_full(x, (count + 1,), 0, int64), place, values, axis=0)
        return k.getitem(filled, (slice(0, count),))

    # ---- scans ----

    @in_float32
    def cumulative_prod(k: Any, x: Buffer, *, axis: int) -> Buffer:
        """Multiply up along an axis.

        Partial products are grouped, so one may leave the range of floats where multiplying in turn does not.
        """

        def multiply(left: list[Buffer], right: list[Buffer]) -> list[Buffer]:
            return [k.multiply(left[0], right[0])]

        d = k.dtype_of(x)
        if d.kind not in "fc":
            return _scan(k, [k.copy(x)], axis, multiply)[0]
        # A group that overflowed must not turn a zero before it into nan: from the first zero on it is left out.
        ended = k.not_equal(k.cumulative_sum(k.astype(k.equal(x, 0.0), int64), axis=axis), 0)
        (product,) = _scan(k, [k.where(ended, 1.0, x)], axis, multiply)
        spoilt = k.astype(k.bitwise_and(ended, k.logical_not(k.isfinite(x))), int64)
        spoilt = k.not_equal(k.cumulative_sum(spoilt, axis=axis), 0)
        zeros = k.where(spoilt, math.nan, k.multiply(product, 0.0))
        return k.where(ended, zeros, product)

    def cumulative_max(k: Any, x: Buffer, *, axis: int) -> tuple[Buffer, Buffer]:
        """Return the largest so far and its last position; nan stays once met."""
        return _running_extreme(k, x, axis, k.less_equal)

    def cumulative_min(k: Any, x: Buffer, *, axis: int) -> tuple[Buffer, Buffer]:
        """Return the smallest so far and its last position; nan stays once met."""
        return _running_extreme(k, x, axis, k.greater_equal)

    @in_float32
    def logcumsumexp(k: Any, x: Buffer, *, axis: int) -> Buffer:
        """Return the logarithm of running sums of exponentials."""
        return _scan(k, [k.copy(x)], axis, lambda left, right: [k.logaddexp(left[0], right[0])])[0]

    def diff(k: Any, x: Buffer, *, axis: int = -1, n: int = 1) -> Buffer:
        """Subtract neighbours, n times; bools by exclusive or."""
        subtract = k.bitwise_xor if k.dtype_of(x) is bool_ else k.subtract
        for _ in range(n):
            x = subtract(_cut(k, x, axis, 1, None), _cut(k, x, axis, None, -1))
        return x

    # ---- sorting and searching ----

    def sort(k: Any, x: Buffer, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Buffer:
        """Sort along an axis; nan goes where `argsort` puts it."""
        return k.take_along_axis(x, k.argsort(x, axis=axis, descending=descending), axis=axis)

    def sort_pairs(k: Any, x: Buffer, *, axis: int = -1, descending: bool = False) -> tuple[Buffer, Buffer]:
        """Sort along an axis: return the values, and where they were as `argsort` does."""
        order = k.argsort(x, axis=axis, descending=descending)
        return k.take_along_axis(x, order, axis=axis), order

    def topk(k: Any, x: Buffer, count: int, *, axis: int = -1, largest: bool = True) -> tuple[Buffer, Buffer]:
        """Return the largest or smallest elements along an axis and where they are, best first; nan counts as largest."""
        order = k.contiguous(_cut(k, k.argsort(x, axis=axis, descending=largest), axis, None, count))
        return k.take_along_axis(x, order, axis=axis), order

    def kthvalue(k: Any, x: Buffer, nth: int, *, axis: int = -1, keepdims: bool = False) -> tuple[Buffer, Buffer]:
        """Return the nth smallest, counted from 1, and its position; nan counts as largest."""
        index = k.contiguous(_cut(k, k.argsort(x, axis=axis), axis, nth - 1, nth))
        value = k.take_along_axis(x, index, axis=axis)
        return (value, index) if keepdims else (k.squeeze(value, axis), k.squeeze(index, axis))

    def median(
        k: Any, x: Buffer, *, axis: int = -1, keepdims: bool = False, ignore_nan: bool = False
    ) -> tuple[Buffer, Buffer]:
        """Return the lower median and its position; a nan, unless ignored, is the median."""
        n = k.shape_of(x)[axis]
        order = k.argsort(x, axis=axis)
        middle = _cut(k, order, axis, (n - 1) // 2, (n - 1) // 2 + 1)
        if k.dtype_of(x).is_floating_point:
            numbers = k.subtract(n, k.sum(k.astype(k.isnan(x), int64), axis=axis, keepdims=True))
            if ignore_nan:
                rank = k.floor_divide(k.maximum(k.subtract(numbers, 1), 0), 2)
            else:
                # Numbers come first, so the first nan stands behind the last of them.
                rank = k.where(k.equal(numbers, n), (n - 1) // 2, numbers)
            middle = k.take_along_axis(order, rank, axis=axis)
        value = k.take_along_axis(x, middle, axis=axis)
        return (value, middle) if keepdims else (k.squeeze(value, axis), k.squeeze(middle, axis))

    def searchsorted(k: Any, sorted: Buffer, values: Buffer, *, side: str = "left") -> Buffer:
        """Find where values go in a sorted row: one row for all, or one for each leading index of both.

        "left" comes before equal elements, "right" after them; nan is the largest.
        """
        n = k.shape_of(sorted)[-1]
        shape = k.shape_of(values)
        low = k.new_full(values, shape, 0, int64)
        if n == 0:
            return low
        single_row = len(k.shape_of(sorted)) == 1
        high = k.new_full(values, shape, n, int64)
        for _ in range(n.bit_length()):
            open_ = k.less(low, high)
            middle = k.floor_divide(k.add(low, high), 2)
            inside = k.minimum(middle, n - 1)
            if single_row:
                found = k.reshape(k.take(sorted, k.reshape(inside, (prod(shape),)), axis=0), shape)
            else:
                found = k.take_along_axis(sorted, inside, axis=-1)
            before = _before(k, found, values) if side == "left" else k.logical_not(_before(k, values, found))
            low = k.where(k.bitwise_and(open_, before), k.add(middle, 1), low)
            high = k.where(k.bitwise_and(open_, k.logical_not(before)), middle, high)
        return low

    def unique_all(k: Any, x: Buffer) -> tuple[Buffer, Buffer, Buffer, Buffer]:
        """Return the distinct values sorted, their first positions, each element's place among them, and counts.

        Positions are row-major, places come in x's shape; every nan is distinct.
        """
        shape = k.shape_of(x)
        n = prod(shape)
        flat = k.reshape(x, (n,))
        if n == 0:
            none = k.new_full(x, (0,), 0, int64)
            return flat, none, k.reshape(none, shape), none
        order = k.argsort(flat, axis=0)
        ordered = k.take(flat, order, axis=0)
        first = k.new_full(x, (1,), True, bool_)
        changed = k.not_equal(_cut(k, ordered, 0, 1, None), _cut(k, ordered, 0, None, -1))
        starts = k.concat([first, changed], axis=0)
        place = k.subtract(k.cumulative_sum(k.astype(starts, int64), axis=0), 1)
        inverse = k.scatter_add(k.new_full(x, (n,), 0, int64), order, place, axis=0)
        start = k.flat_nonzero(starts)
        ends = k.concat([_cut(k, start, 0, 1, None), k.new_full(x, (1,), n, int64)], axis=0)
        values, positions = k.take(flat, k.take(order, start, axis=0), axis=0), k.take(order, start, axis=0)
        return values, positions, k.reshape(inverse, shape), k.subtract(ends, start)


def _before(k: Any, x: Buffer, y: Buffer) -> Buffer:
    """Order x before y, nan last."""
    if not k.dtype_of(x).is_floating_point:
        return k.less(x, y)
    return k.bitwise_or(k.less(x, y), k.bitwise_and(k.isnan(y), k.logical_not(k.isnan(x))))
