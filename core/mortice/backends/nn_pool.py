"""Pooling over the trailing axes: maximum (with positions), average, and both with windows fitted to an output size.

Windows are products of intervals, so each axis is reduced on its own: the work grows with the sum of the window's
sides instead of their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends.kernel_tools import KernelMixin, in_float32
from mortice.backends.nn_common import narrow, pad_trailing, pool_count, spread_columns, tap_slice, widen
from mortice.dtype import DType
from mortice.shape import prod


class PoolKernels(KernelMixin):
    """FREE: `kernel`, `stride`, ... are tuples, one int a spatial axis; the spatial axes are the last ones."""

    # ---- maximum ----

    def max_pool(
        self,
        x: Any,
        *,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool = False,
    ) -> tuple[Any, Any]:
        """Return each window's maximum and its flat position (int64) among the spatial elements of the input."""
        sizes = _spatial(self, x, len(kernel))
        values, at, step = x, None, 1
        for i in reversed(range(len(kernel))):
            count = pool_count(sizes[i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode)
            after = len(kernel) - i - 1
            past = _past(sizes[i], count, kernel[i], stride[i], padding[i], dilation[i])
            widths = [(padding[i], past), *[(0, 0)] * after]
            values = pad_trailing(self, values, widths, _lowest(self.dtype_of(x)))
            # Padding takes the position of the border: a window of nothing but -inf still points into the input.
            place = self.new_arange(x, -padding[i], sizes[i] + past)
            place = self.minimum(self.maximum(place, 0), sizes[i] - 1)
            place = self.reshape(self.multiply(place, step), (padding[i] + sizes[i] + past, *[1] * after))
            at = place if at is None else self.add(_repeat_border(self, at, widths), place)
            taps = [tap_slice(t, count, stride[i], dilation[i]) for t in range(kernel[i])]
            values, at = _first_max(self, values, at, taps, after)
            step *= sizes[i]
        return (self.copy(values) if values is x or prod(kernel) == 1 else values), at

    def max_pool_values(
        self,
        x: Any,
        *,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool = False,
    ) -> Any:
        """Return each window's maximum alone, for when nobody asks where it was."""
        sizes = _spatial(self, x, len(kernel))
        values = x
        for i in reversed(range(len(kernel))):
            count = pool_count(sizes[i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode)
            after = (slice(None),) * (len(kernel) - i - 1)
            past = _past(sizes[i], count, kernel[i], stride[i], padding[i], dilation[i])
            padded = pad_trailing(
                self, values, [(padding[i], past), *[(0, 0)] * len(after)], _lowest(self.dtype_of(x))
            )
            values = None
            for t in range(kernel[i]):
                piece = self.getitem(padded, (Ellipsis, tap_slice(t, count, stride[i], dilation[i]), *after))
                values = piece if values is None else self.maximum(values, piece)
        return self.copy(values) if prod(kernel) == 1 else values

    def max_pool_grad(self, g: Any, indices: Any, *, x_shape: Sequence[int], ndim: int) -> Any:
        """Add each gradient at its maximum's flat position over the last `ndim` axes."""
        dtype = self.dtype_of(g)
        lead = tuple(x_shape[: len(x_shape) - ndim])
        flat = (*lead, prod(self.shape_of(g)[len(lead) :]))
        g = widen(self, g)
        zeros = self.new_full(g, (*lead, prod(x_shape[len(lead) :])), 0)
        spread = self.scatter_add(zeros, self.reshape(indices, flat), self.reshape(g, flat), axis=len(lead))
        return narrow(self, self.reshape(spread, tuple(x_shape)), dtype)

    def max_pool_window_grad(
        self, g: Any, indices: Any, *, x_shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
        padding: Sequence[int], dilation: Sequence[int],
    ) -> Any:  # fmt: skip
        """Do what `max_pool_grad` does for these windows: a backend may look in those that hold an element."""
        return self.max_pool_grad(g, indices, x_shape=x_shape, ndim=len(kernel))

    def max_pool_take(self, x: Any, indices: Any, *, ndim: int) -> Any:
        """Read the elements at flat positions over the last `ndim` axes: what `max_pool_grad` is the gradient of."""
        shape, windows = tuple(self.shape_of(x)), tuple(self.shape_of(indices))
        lead = shape[: len(shape) - ndim]
        x = self.reshape(x, (*lead, prod(shape[len(lead) :])))
        at = self.reshape(indices, (*lead, prod(windows[len(lead) :])))
        return self.reshape(self.take_along_axis(x, at, axis=len(lead)), windows)

    # ---- average ----

    @in_float32
    def avg_pool(
        self,
        x: Any,
        *,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        """Return each window's mean."""
        sizes = _spatial(self, x, len(kernel))
        counts = _pool_counts(sizes, kernel, stride, padding, ceil_mode)
        for i in reversed(range(len(kernel))):
            after = (slice(None),) * (len(kernel) - i - 1)
            past = _past(sizes[i], counts[i], kernel[i], stride[i], padding[i], 1)
            padded = pad_trailing(self, x, [(padding[i], past), *[(0, 0)] * len(after)])
            x = None
            for t in range(kernel[i]):
                piece = self.getitem(padded, (Ellipsis, tap_slice(t, counts[i], stride[i], 1), *after))
                x = piece if x is None else self.add(x, piece)
        divisor = _divisor(
            self, x, sizes, counts, kernel, stride, padding, count_include_pad, divisor_override
        )
        return self.divide(x, divisor)

    @in_float32
    def avg_pool_grad(
        self,
        g: Any,
        *,
        x_shape: Sequence[int],
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        """Spread each gradient evenly over its window."""
        sizes = tuple(x_shape[len(x_shape) - len(kernel) :])
        counts = _pool_counts(sizes, kernel, stride, padding, ceil_mode)
        g = self.divide(
            g, _divisor(self, g, sizes, counts, kernel, stride, padding, count_include_pad, divisor_override)
        )
        for i in range(len(kernel)):
            rest = len(kernel) - i - 1
            later = counts[i + 1 :]
            pieces = [g] * kernel[i]
            g = spread_columns(
                self,
                pieces,
                (sizes[i], *later),
                (kernel[i], *[1] * rest),
                (stride[i], *[1] * rest),
                (padding[i], *[0] * rest),
                (1,) * (rest + 1),
            )
        return g

    # ---- windows fitted to an output size ----

    @in_float32
    def adaptive_avg_pool(self, x: Any, *, output_size: Sequence[int]) -> Any:
        """Return the means of windows that cut the trailing axes into `output_size` parts, as equal as can be."""
        sizes = _spatial(self, x, len(output_size))
        for i in reversed(range(len(sizes))):
            x = _sum_parts(self, x, i - len(sizes), output_size[i])
        return self.divide(x, _part_sizes(self, x, sizes, output_size))

    @in_float32
    def adaptive_avg_pool_grad(self, g: Any, *, x_shape: Sequence[int], output_size: Sequence[int]) -> Any:
        """Spread each gradient evenly over its part."""
        sizes = tuple(x_shape[len(x_shape) - len(output_size) :])
        g = self.divide(g, _part_sizes(self, g, sizes, output_size))
        # The parts that hold element i are, seen from the other side, part i of the output cut into x's size.
        for i in range(len(sizes)):
            g = _sum_parts(self, g, i - len(sizes), sizes[i])
        return g

    def adaptive_max_pool(self, x: Any, *, output_size: Sequence[int]) -> tuple[Any, Any]:
        """Return each part's maximum and its flat position, as `max_pool` does; `max_pool_grad` is the gradient."""
        sizes = _spatial(self, x, len(output_size))
        values, at, step = x, None, 1
        for i in reversed(range(len(sizes))):
            axis = i - len(sizes)
            start, end, longest = _parts(self, x, sizes[i], output_size[i])
            place = self.reshape(self.new_arange(x, 0, sizes[i] * step, step), (sizes[i], *[1] * (-axis - 1)))
            at = place if at is None else self.add(at, place)
            pieces, places = [], []
            for t in range(longest or 1):  # once also for no parts, of which the place has a dtype
                # Past its end a part repeats its last element, which changes neither the maximum nor its place.
                tap = self.minimum(self.add(start, t), self.subtract(end, 1))
                pieces.append(self.take(values, tap, axis=axis + len(self.shape_of(values))))
                places.append(self.take(at, tap, axis=axis + len(self.shape_of(at))))
            values, at = _running_max(self, pieces, places)
            step *= sizes[i]
        return values, at


# ---- helpers ----


def _spatial(k: Any, x: Any, nd: int) -> tuple[int, ...]:
    shape = tuple(k.shape_of(x))
    return shape[len(shape) - nd :]


def _past(size: int, count: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Return how far the last window reaches past the input's end."""
    return max(0, (count - 1) * stride + dilation * (kernel - 1) + 1 - size - padding)


def _repeat_border(k: Any, x: Any, widths: Sequence[tuple[int, int]]) -> Any:
    if not any(before or after for before, after in widths):
        return x
    lead = [(0, 0)] * (len(k.shape_of(x)) - len(widths))
    return k.pad_border(x, widths=[*lead, *widths], mode="replicate")


def _lowest(dtype: DType) -> Any:
    if dtype.kind == "f":
        return float("-inf")
    return -(2 ** (8 * dtype.itemsize - 1)) if dtype.kind == "i" else 0


def _first_max(k: Any, values: Any, at: Any, taps: Sequence[slice], after: int) -> tuple[Any, Any]:
    keys = [(Ellipsis, tap, *[slice(None)] * after) for tap in taps]
    return _running_max(k, [k.getitem(values, key) for key in keys], [k.getitem(at, key) for key in keys])


def _running_max(k: Any, pieces: Sequence[Any], places: Sequence[Any]) -> tuple[Any, Any]:
    """Return the elementwise maximum over the pieces and the place it came from: the first one, or the last nan."""
    best, at = pieces[0], places[0]
    for value, place in zip(pieces[1:], places[1:]):
        better = k.less(best, value)
        if k.dtype_of(value).kind == "f":
            better = k.logical_or(better, k.isnan(value))
        best = k.where(better, value, best)
        at = k.where(better, place, at)
    if tuple(k.shape_of(at)) != tuple(k.shape_of(best)):
        at = k.copy(k.broadcast_to(at, tuple(k.shape_of(best))))
    return best, at


def _pool_counts(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
) -> tuple[int, ...]:
    return tuple(pool_count(n, m, s, p, 1, ceil_mode) for n, m, s, p in zip(sizes, kernel, stride, padding))


def _divisor(
    k: Any,
    like: Any,
    sizes: Sequence[int],
    counts: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    count_include_pad: bool,
    override: int | None,
) -> Any:
    """Return what to divide each window's sum by: a number where all windows agree, otherwise a grid over the windows."""
    if override is not None:
        return override
    even = all((c - 1) * s + m <= n + 2 * p for n, c, s, m, p in zip(sizes, counts, stride, kernel, padding))
    if even and (count_include_pad or not any(padding)):
        return prod(kernel)
    total = None
    for i, (n, c, s, m, p) in enumerate(zip(sizes, counts, stride, kernel, padding)):
        start = k.new_arange(like, -p, -p + c * s, s)
        end = k.minimum(k.add(start, m), n + p)
        if not count_include_pad:
            start, end = k.maximum(start, 0), k.minimum(end, n)
        part = k.maximum(k.subtract(end, start), 1)
        part = k.reshape(part, (c, *[1] * (len(sizes) - i - 1)))
        total = part if total is None else k.multiply(total, part)
    return k.astype(total, k.dtype_of(like))


def _parts(k: Any, like: Any, size: int, parts: int) -> tuple[Any, Any, int]:
    """Return where each part of an axis starts and ends (int64), and how long the longest is."""
    number = k.new_arange(like, 0, parts)
    start = k.floor_divide(k.multiply(number, size), parts)
    end = k.floor_divide(k.add(k.multiply(k.add(number, 1), size), parts - 1), parts)
    longest = max((-(-(i + 1) * size // parts) - i * size // parts for i in range(parts)), default=0)
    return start, end, longest


def _sum_parts(k: Any, x: Any, axis: int, parts: int) -> Any:
    """Add up x within each part of an axis (negative number)."""
    shape = tuple(k.shape_of(x))
    axis += len(shape)
    size, before, after = shape[axis], shape[:axis], shape[axis + 1 :]
    if size == parts:
        return x
    if parts and size % parts == 0:
        return k.sum(k.reshape(x, (*before, parts, size // parts, *after)), axis=axis + 1)
    if size == 1:
        return k.copy(k.broadcast_to(x, (*before, parts, *after)))
    if size and parts % size == 0:
        times = parts // size
        wide = k.broadcast_to(k.reshape(x, (*before, size, 1, *after)), (*before, size, times, *after))
        return k.reshape(wide, (*before, parts, *after))
    start, end, longest = _parts(k, x, size, parts)
    total = None
    for t in range(longest):
        tap = k.add(start, t)
        inside = k.reshape(k.less(tap, end), (parts, *[1] * len(after)))
        piece = k.where(inside, k.take(x, k.minimum(tap, size - 1), axis=axis), 0)
        total = piece if total is None else k.add(total, piece)
    return total if total is not None else k.new_full(x, (*before, parts, *after), 0)


def _part_sizes(k: Any, like: Any, sizes: Sequence[int], output_size: Sequence[int]) -> Any:
    """Return the number of elements in each part: a number where all agree, otherwise a grid."""
    if all(o and n % o == 0 for n, o in zip(sizes, output_size)):
        return prod(n // o for n, o in zip(sizes, output_size))
    total = None
    for i, (n, o) in enumerate(zip(sizes, output_size)):
        start, end, _ = _parts(k, like, n, o)
        part = k.reshape(k.subtract(end, start), (o, *[1] * (len(sizes) - i - 1)))
        total = part if total is None else k.multiply(total, part)
    return k.astype(total, k.dtype_of(like))
