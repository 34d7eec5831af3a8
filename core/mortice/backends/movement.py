"""MovementKernels: the FREE kernels that rearrange, and those that write at many positions.

On a mutable backend the results of `diagonal` and `sliding_window` should share memory with their input, as the basic
views do: it then overrides both. The bodies here copy, which is right wherever buffers are never written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.backends.host import HostBuffer
from mortice.backends.kernel_tools import Buffer
from mortice.dtype import DType, bool_, iinfo, int64
from mortice.shape import prod


def diagonal_place(m: int, n: int, offset: int) -> tuple[int, int]:
    """Return where a diagonal of an m by n matrix starts in row-major order, and its length."""
    if offset >= 0:
        return offset, max(min(m, n - offset), 0)
    return -offset * n, max(min(m + offset, n), 0)


def _last(ndim: int, axis1: int, axis2: int) -> tuple[int, ...]:
    return (*(a for a in range(ndim) if a != axis1 and a != axis2), axis1, axis2)


def _back(axes: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(axes)
    for i, a in enumerate(axes):
        back[a] = i
    return tuple(back)


def _rows_and_columns(k: Any, x: Buffer, diagonal: int) -> tuple[Buffer, Buffer]:
    """Return the rows' numbers, from that of the diagonal, and the columns', to be compared."""
    *_, m, n = k.shape_of(x)
    return k.reshape(k.new_arange(x, diagonal, m + diagonal), (m, 1)), k.reshape(k.new_arange(x, 0, n), (1, n))


def _zero(k: Any, x: Buffer) -> Any:
    # A plain 0 would raise bools to integers.
    return False if k.dtype_of(x) is bool_ else 0


def lowest(d: DType) -> Any:
    """Return the value that every other one of the dtype is at least."""
    return float("-inf") if d.kind == "f" else False if d.kind == "b" else iinfo(d).min


def highest(d: DType) -> Any:
    """Return the value that every other one of the dtype is at most."""
    return float("inf") if d.kind == "f" else True if d.kind == "b" else iinfo(d).max


class MovementKernels:
    """Diagonals, windows, triangles and scattered writes with default bodies."""

    def constant(k: Any, x: Buffer) -> Buffer:
        """Return x; over Tensors, outside the graph."""
        return x

    def index_range(k: Any, indices: Buffer) -> tuple[int, int]:
        """Read the least and the greatest element, as a check of values needs, at once; there is at least one."""
        ends = [k.reshape(k.min(indices), (1,)), k.reshape(k.max(indices), (1,))]
        low, high = k.to_host(k.concat(ends, axis=0)).tolist()
        return low, high

    def refuse_outside(
        k: Any, x: Buffer, low: int, high: int, error: Callable[[int], Exception], allowed: int | None = None
    ) -> tuple[int, int] | None:
        """Raise error(value) of the first element of x outside [low, high] and not `allowed`; return the ends where there is none.

        x has an element. Where the device runs behind, a backend may return None and raise when the device is next waited for.
        """
        least, most = k.index_range(x)
        if (least < low or most > high) and allowed is not None and not low <= allowed <= high:
            x = k.where(k.equal(x, allowed), low, x)
            least, most = k.index_range(x)
        if least < low or most > high:
            flat = k.astype(k.reshape(x, (prod(tuple(k.shape_of(x))),)), int64)
            outside = k.logical_or(k.less(flat, low), k.less(high, flat))
            raise error(k.item(k.take(flat, k.reshape(k.argmax(k.astype(outside, int64), axis=0), (1,)), axis=0)))
        return least, most

    def contiguous(k: Any, x: Buffer) -> Buffer:
        """Copy into row-major order."""
        return k.copy(x)

    def reinterpret(k: Any, x: Buffer, dtype: DType) -> Buffer:
        """Read the bytes of x as another dtype, of which the last axis holds more or fewer; the same memory where possible."""
        host, d = k.to_host(x), k.dtype_of(x)
        shape = tuple(k.shape_of(x))
        shape = (*shape[:-1], *(n * d.itemsize // dtype.itemsize for n in shape[-1:]))
        return k.from_host(HostBuffer(bytearray(host.tobytes()), shape, dtype), k.device_of(x))

    def diagonal(k: Any, x: Buffer, *, offset: int, axis1: int, axis2: int) -> Buffer:
        """Take a diagonal over two axes (not negative); it comes last."""
        shape = tuple(k.shape_of(x))
        order = _last(len(shape), axis1, axis2)
        *batch, m, n = (shape[a] for a in order)
        start, count = diagonal_place(m, n, offset)
        if not count:
            return k.new_full(x, (*batch, 0), 0)
        flat = k.reshape(k.permute_dims(x, order), (*batch, m * n))
        return k.getitem(flat, (..., slice(start, start + (count - 1) * (n + 1) + 1, n + 1)))

    def diagonal_write(k: Any, x: Buffer, part: Buffer, *, offset: int, axis1: int, axis2: int) -> Buffer:
        """Return x with a diagonal replaced."""
        shape = tuple(k.shape_of(x))
        order = _last(len(shape), axis1, axis2)
        *batch, m, n = (shape[a] for a in order)
        start, count = diagonal_place(m, n, offset)
        if not count:
            return k.copy(x)
        flat = k.reshape(k.copy(k.permute_dims(x, order)), (*batch, m * n))
        flat = k.setitem(flat, (..., slice(start, start + (count - 1) * (n + 1) + 1, n + 1)), part)
        return k.permute_dims(k.reshape(flat, (*batch, m, n)), _back(order))

    def sliding_window(k: Any, x: Buffer, *, axis: int, size: int, step: int) -> Buffer:
        """Take windows along an axis: as many as fit stand there, their elements come last."""
        shape = tuple(k.shape_of(x))
        if not shape:
            return k.reshape(x, (size,))
        count = (shape[axis] - size) // step + 1
        down = k.reshape(k.new_arange(x, 0, count), (count, 1))
        places = k.add(k.multiply(down, step), k.reshape(k.new_arange(x, 0, size), (1, size)))
        taken = k.take(x, k.reshape(places, (count * size,)), axis=axis)
        return k.moveaxis(k.reshape(taken, (*shape[:axis], count, size, *shape[axis + 1 :])), axis + 1, -1)

    def strided(k: Any, x: Buffer, *, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Buffer:
        """Take from a 1-D row-major buffer the elements at offset + sum(index * stride)."""
        places = k.strided_places(x, shape, strides, offset)
        return k.reshape(k.take(x, k.reshape(places, (prod(shape),)), axis=0), shape)

    def strided_places(k: Any, x: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Buffer:
        """Return offset + sum(index * stride) for every index of a shape, beside x."""
        places = k.new_full(x, (1,) * len(shape), offset, dtype=int64)
        for axis, (n, stride) in enumerate(zip(shape, strides)):
            along = tuple(n if i == axis else 1 for i in range(len(shape)))
            places = k.add(places, k.reshape(k.multiply(k.new_arange(x, 0, n), stride), along))
        return k.broadcast_to(places, shape)

    def roll(k: Any, x: Buffer, *, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Buffer:
        """Shift along axes; what falls off comes in at the other end."""
        shape = k.shape_of(x)
        moved = False
        for shift, axis in zip(shifts, axes):
            n = shape[axis]
            start = -shift % n if n else 0
            if start:
                lead = (slice(None),) * axis
                tail, head = k.getitem(x, (*lead, slice(start, n))), k.getitem(x, (*lead, slice(0, start)))
                x, moved = k.concat([tail, head], axis=axis), True
        return x if moved else k.copy(x)

    def tril(k: Any, x: Buffer, *, diagonal: int = 0) -> Buffer:
        """Keep the lower triangles, zero elsewhere."""
        down, across = _rows_and_columns(k, x, diagonal)
        return k.where(k.less(down, across), _zero(k, x), x)

    def triu(k: Any, x: Buffer, *, diagonal: int = 0) -> Buffer:
        """Keep the upper triangles, zero elsewhere."""
        down, across = _rows_and_columns(k, x, diagonal)
        return k.where(k.less(across, down), _zero(k, x), x)

    def gather(k: Any, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """Read like take_along_axis, with indices that may be smaller than x along the other axes."""
        have, want = k.shape_of(x), k.shape_of(indices)
        if any(n != m and i != axis for i, (n, m) in enumerate(zip(have, want))):
            x = k.getitem(x, tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(want)))
        return k.take_along_axis(x, indices, axis=axis)

    def spread_indices(k: Any, counts: Buffer, *, total: int) -> Buffer:
        """Return each position of a vector of int64 counts as often as its count says: `total` in all."""
        # Ones where a new position starts; their running sum is the position.
        ones = k.new_full(counts, k.shape_of(counts), 1)
        starts = k.scatter_add(k.new_full(counts, (total + 1,), 0), k.cumulative_sum(counts, axis=0), ones, axis=0)
        return k.getitem(k.cumulative_sum(starts, axis=0), (slice(0, total),))

    # ---- writing at many positions; `indices` and `values` have one shape, of x's ndim, as in scatter_add ----

    def scatter_places(k: Any, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """Return, for each index of a scatter, the position in row-major order that it means."""
        shape, wide = k.shape_of(x), k.shape_of(indices)
        places, step = None, 1
        for i in range(len(shape) - 1, -1, -1):
            if i == axis:
                part = indices
            else:
                part = k.reshape(k.new_arange(x, 0, wide[i]), tuple(wide[i] if a == i else 1 for a in range(len(wide))))
            part = k.multiply(part, step)
            places = part if places is None else k.add(places, part)
            step *= shape[i]
        return k.broadcast_to(places, wide)

    def scatter_write(k: Any, x: Buffer, indices: Buffer, values: Buffer, *, axis: int) -> Buffer:
        """Return x with values written; of a repeated position the last write stays."""
        places = k.reshape(k.scatter_places(x, indices, axis=axis), (-1,))
        flat = k.index_write(k.reshape(x, (-1,)), places, k.reshape(values, (-1,)), axis=0)
        return k.reshape(flat, k.shape_of(x))

    def scatter_combine(k: Any, x: Buffer, indices: Buffer, values: Buffer, *, axis: int, how: str) -> Buffer:
        """Return x combined with all values that land on each element; `how` is "prod", "max" or "min"."""
        combine = {"prod": k.multiply, "max": k.maximum, "min": k.minimum}[how]
        if not prod(k.shape_of(indices)):
            return k.copy(x)
        if k.dtype_of(x) is bool_:
            wide = k.scatter_combine(k.astype(x, int64), indices, k.astype(values, int64), axis=axis, how=how)
            return k.astype(wide, bool_)
        flat = k.reshape(x, (-1,))
        places = k.reshape(k.scatter_places(x, indices, axis=axis), (-1,))
        order = k.argsort(places, axis=0)
        places, values = k.take(places, order, axis=0), k.take(k.reshape(values, (-1,)), order, axis=0)
        # Doubling steps within runs of one position: the last of a run holds all of it.
        step, count = 1, k.shape_of(places)[0]
        while step < count:
            here, before = k.getitem(values, (slice(step, None),)), k.getitem(values, (slice(0, count - step),))
            together = k.equal(k.getitem(places, (slice(step, None),)), k.getitem(places, (slice(0, count - step),)))
            run = k.where(together, combine(here, before), here)
            values = k.concat([k.getitem(values, (slice(0, step),)), run], axis=0)
            step *= 2
        values = combine(k.take(flat, places, axis=0), values)
        return k.reshape(k.index_write(flat, places, values, axis=0), k.shape_of(x))
