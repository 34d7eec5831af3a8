"""What the neural network kernels share: window arithmetic on plain ints, wide accumulation, work in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from mortice.dtype import DType, bfloat16, float16, float32
from mortice.shape import prod

# The largest temporary, in bytes, that a default body makes before it works in blocks.
BLOCK_BYTES = 1 << 26


def widen(k: Any, x: Any) -> Any:
    """Return x in float32 where its own precision is too low to add up in."""
    dtype = k.dtype_of(x)
    return k.astype(x, float32) if dtype is float16 or dtype is bfloat16 else x


def narrow(k: Any, x: Any, dtype: DType) -> Any:
    """Return x in the dtype that it came in."""
    return x if k.dtype_of(x) is dtype else k.astype(x, dtype)


def reduce_to(k: Any, x: Any, shape: Sequence[int]) -> Any:
    """Sum x over the axes along which `shape` was broadcast."""
    have = tuple(k.shape_of(x))
    shape = tuple(shape)
    if have == shape:
        return x
    lead = len(have) - len(shape)
    axes = tuple(i for i, n in enumerate(have) if i < lead or (n != 1 and shape[i - lead] == 1))
    return k.reshape(k.sum(x, axis=axes, keepdims=True), shape) if axes else k.reshape(x, shape)


# ---- sizes ----


def window_count(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Return how many windows fit along an axis; zero or less when none does."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def pool_count(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Return how many pooling windows there are along an axis.

    With `ceil_mode` a window may reach past the end, but has to start inside the input or its left padding.
    """
    reach = size + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)
    count = reach // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def transposed_size(
    count: int, kernel: int, stride: int, padding: int, dilation: int, output_padding: int
) -> int:
    """Return the size whose `window_count` is `count`: a transposed convolution's output."""
    return (count - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1


# ---- windows ----


def tap_slice(tap: int, count: int, stride: int, dilation: int) -> slice:
    """Return what element `tap` of each of `count` windows is, along one axis."""
    start = tap * dilation
    return slice(start, start + (count - 1) * stride + 1, stride) if count > 0 else slice(0, 0)


def tap_keys(
    kernel: Sequence[int], counts: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[slice, ...]]:
    """Return, for each element of the window in row-major order, its slices over the trailing axes."""
    axes = [
        [tap_slice(t, count, s, d) for t in range(size)]
        for size, count, s, d in zip(kernel, counts, stride, dilation)
    ]
    return list(product(*axes))


def pad_trailing(k: Any, x: Any, widths: Sequence[tuple[int, int]], value: Any = 0) -> Any:
    """Surround the trailing axes with a constant; x itself when there is nothing to add."""
    if not any(before or after for before, after in widths):
        return x
    lead = len(k.shape_of(x)) - len(widths)
    return k.pad(x, [(0, 0)] * lead + list(widths), value)


def columns(
    k: Any,
    x: Any,
    kernel: Sequence[int],
    counts: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    axis: int,
) -> Any:
    """Gather the windows of an already padded x: its trailing axes become `counts`, a new `axis` runs over the taps."""
    before = (slice(None),) * axis
    pieces = [
        k.getitem(x, (*before, None, Ellipsis, *key)) for key in tap_keys(kernel, counts, stride, dilation)
    ]
    return pieces[0] if len(pieces) == 1 else k.concat(pieces, axis=axis)


def spread_columns(
    k: Any,
    pieces: Sequence[Any] | Iterator[Any],
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Any:
    """Add each tap's piece (trailing axes: the windows) into place, then drop the padding: the inverse walk of `columns`."""
    total = key = None
    nd = len(kernel)
    keys: list[tuple[slice, ...]] = []
    for i, piece in enumerate(pieces):
        if total is None:
            shape = tuple(k.shape_of(piece))
            counts = shape[len(shape) - nd :]
            reach = [
                max(n + 2 * p, (c - 1) * s + d * (m - 1) + 1)
                for n, p, c, s, d, m in zip(sizes, padding, counts, stride, dilation, kernel)
            ]
            keys = tap_keys(kernel, counts, stride, dilation)
            total = k.new_full(piece, (*shape[: len(shape) - nd], *reach), 0)
        key = (Ellipsis, *keys[i])
        total = k.setitem(total, key, k.add(k.getitem(total, key), piece))
    whole = tuple(k.shape_of(total))[-nd:] if nd else ()
    if whole == tuple(sizes):
        return total
    return k.copy(k.getitem(total, (Ellipsis, *[slice(p, p + n) for n, p in zip(sizes, padding)])))


# ---- blocks ----


def rows_per_block(row_bytes: int, limit: int = 0) -> int:
    """Return how many rows of that size make a block."""
    return max(1, (limit or BLOCK_BYTES) // max(1, row_bytes))


def over_rows(k: Any, body: Callable[..., Any], arrays: Sequence[Any], rows: int) -> list[Any]:
    """Apply `body` to blocks of rows (axis 0) of the arrays; one result a block."""
    total = k.shape_of(arrays[0])[0]
    if total <= rows:
        return [body(*arrays)]
    blocks = [slice(start, min(start + rows, total)) for start in range(0, total, rows)]
    return [body(*[k.getitem(a, (block,)) for a in arrays]) for block in blocks]


def join_rows(k: Any, pieces: Sequence[Any]) -> Any:
    """Concatenate the results of `over_rows`."""
    return pieces[0] if len(pieces) == 1 else k.concat(list(pieces), axis=0)


__all__ = [
    "BLOCK_BYTES", "columns", "join_rows", "narrow", "over_rows", "pad_trailing", "pool_count", "prod", "reduce_to",
    "rows_per_block", "spread_columns", "tap_keys", "tap_slice", "transposed_size", "widen", "window_count",
]  # fmt: skip
