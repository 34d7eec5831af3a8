"""Convolution as matrix products over windows gathered into one buffer, a cache's worth at a time.

Channels go last where that makes the longer runs to copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from mortice.backends.nn_common import tap_keys, window_count
from mortice_cpu_numpy.nn_tools import WIDE, pad_trailing, silent, windows

# Bytes of gathered windows at a time: what stays in a second-level cache.
_BLOCK = 1 << 19
# Positions a sample from which a matrix product for each sample is worth its call.
_LONG = 64


class ConvOverrides:
    """conv, its gradients, and the sliding blocks."""

    @silent
    def conv(self, x: Any, w: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
        if x.dtype in WIDE:
            wide = WIDE[x.dtype]
            out = _conv(x.astype(wide), w.astype(wide), stride, padding, dilation, groups)
            return out.astype(x.dtype)
        return _conv(x, w, stride, padding, dilation, groups)

    @silent
    def conv_input_grad(
        self, g: Any, w: Any, *, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1
    ) -> Any:
        if g.dtype in WIDE:
            wide = WIDE[g.dtype]
            out = _input_grad(g.astype(wide), w.astype(wide), x_shape, stride, padding, dilation, groups)
            return out.astype(g.dtype)
        return _input_grad(g, w, x_shape, stride, padding, dilation, groups)

    @silent
    def conv_weight_grad(
        self, g: Any, x: Any, *, w_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1
    ) -> Any:
        if g.dtype in WIDE:
            wide = WIDE[g.dtype]
            out = _weight_grad(g.astype(wide), x.astype(wide), w_shape, stride, padding, dilation, groups)
            return out.astype(g.dtype)
        return _weight_grad(g, x, w_shape, stride, padding, dilation, groups)

    def unfold(self, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
        n, channels, *sizes = x.shape
        counts = [window_count(*a) for a in zip(sizes, kernel, stride, padding, dilation)]
        x = pad_trailing(x, [(p, p) for p in padding])
        cols = np.array(windows(x, kernel, counts, stride, dilation), order="C")
        return cols.reshape(n, channels * prod(kernel), prod(counts))


def _conv(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    n, _, *sizes = x.shape
    counts = [window_count(*a) for a in zip(sizes, w.shape[2:], stride, padding, dilation)]
    out = np.empty((n, w.shape[0], *counts), x.dtype)
    _correlate(x, w, out, stride, padding, dilation, groups)
    return out


def _input_grad(
    g: Any, w: Any, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    outputs, inputs, *kernel = w.shape
    if outputs > 3 * groups * inputs:
        return _spread(g, w, x_shape, stride, padding, dilation, groups)
    # Every stride-th position sees the same taps, so that the gradient there is a convolution with these turned round.
    turned = w.reshape(groups, outputs // groups, inputs, *kernel).swapaxes(1, 2)
    turned = turned.reshape(groups * inputs, outputs // groups, *kernel)
    out = np.empty(x_shape, g.dtype)
    axes = [_phases(*a) for a in zip(x_shape[2:], kernel, stride, padding, dilation)]
    for phases in product(*axes):
        places, taps, before, steps = zip(*phases)
        place, own = out[(..., *places)], turned[(..., *taps)]
        if own.size:
            _correlate(g, own, place, (1,) * len(kernel), before, steps, groups)
        else:
            place[...] = 0
    return out


def _phases(size: int, kernel: int, stride: int, padding: int, dilation: int) -> list[tuple[slice, slice, int, int]]:
    """Return for the positions first, first + stride, ... their slice, that of their taps, and what pads and dilates these."""
    found = []
    for first in range(min(stride, size)):
        taps = [t for t in range(kernel) if (first + padding - t * dilation) % stride == 0]
        if not taps:
            found.append((slice(first, None, stride), slice(0, 0), 0, 1))
            continue
        step = taps[1] - taps[0] if len(taps) > 1 else stride
        before = (taps[-1] * dilation - padding - first) // stride
        found.append((slice(first, None, stride), slice(taps[-1], None, -step), before, step * dilation // stride))
    return found


def _correlate(x: Any, w: Any, out: Any, stride: Any, before: Any, dilation: Any, groups: int) -> None:
    """Write the convolution of x, surrounded as `_blocks` has it, to `out`."""
    n, outputs, *counts = out.shape
    nd, depth, length = len(counts), prod(w.shape[1:]), prod(counts)
    if depth == w.shape[1] and length >= _LONG and list(x.shape[2:]) == counts and not any(before):
        rows = np.matmul(w.reshape(groups, outputs // groups, depth), x.reshape(n, groups, depth, length))
        out[...] = rows.reshape(out.shape)
        return
    if _is_banded(w.shape, counts, groups):
        _correlate_banded(x, w, out, stride, before, dilation)
        return
    filters = w.transpose(0, *range(2, 2 + nd), 1).reshape(groups, outputs // groups, depth)
    out = out.reshape(n, groups, outputs // groups, *counts)
    if _channels_last(w.shape, counts, dilation):
        # Many rows by few columns is what BLAS multiplies fastest.
        filters = np.ascontiguousarray(filters.swapaxes(1, 2))
        places = out.transpose(1, 0, *range(3, 3 + nd), 2)
        for block, rows in _blocks(x, w.shape, counts, stride, before, dilation, groups):
            place = places[(slice(None), *block)]
            place[...] = np.matmul(rows, filters).reshape(place.shape)
    else:
        places = out.transpose(1, 2, 0, *range(3, 3 + nd))
        for block, rows in _blocks(x, w.shape, counts, stride, before, dilation, groups):
            place = places[(slice(None), slice(None), *block)]
            place[...] = np.matmul(filters, rows.swapaxes(1, 2)).reshape(place.shape)


def _weight_grad(g: Any, x: Any, w_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    outputs, inputs, *kernel = w_shape
    n, _, *counts = g.shape
    nd, depth = len(kernel), inputs * prod(kernel)
    if _is_banded(w_shape, counts, groups):
        return _weight_grad_banded(g, x, w_shape, stride, padding, dilation)
    g = g.reshape(n, groups, outputs // groups, *counts).transpose(1, 2, 0, *range(3, 3 + nd))
    total = np.zeros((groups, outputs // groups, depth), x.dtype)
    for block, rows in _blocks(x, w_shape, counts, stride, padding, dilation, groups):
        own = g[(slice(None), slice(None), *block)].reshape(groups, outputs // groups, rows.shape[1])
        total += np.matmul(own, rows)
    return np.ascontiguousarray(total.reshape(outputs, *kernel, inputs).transpose(0, 1 + nd, *range(1, 1 + nd)))


def _channels_last(w_shape: Any, counts: Any, dilation: Any) -> bool:
    """Tell which way the windows are copied in longer runs."""
    return bool(w_shape[1] * (w_shape[-1] if dilation[-1] == 1 else 1) > counts[-1])


def _reach(counts: Any, kernel: Any, stride: Any, dilation: Any) -> list[int]:
    """Return the sizes that the windows cover."""
    return [(c - 1) * s + d * (m - 1) + 1 for c, m, s, d in zip(counts, kernel, stride, dilation)]


def _room(x: Any, samples: int, sizes: Any, before: Any, channels_last: bool) -> tuple[Any, Any, Any]:
    """Return what of x windows see, zeros for some samples of it and what surrounds them, and x's place therein."""
    channels, *inner = x.shape[1:]
    nd = len(inner)
    starts = [min(max(b, 0), size) for b, size in zip(before, sizes)]
    target = [slice(t, max(t, min(size, b + m))) for t, b, m, size in zip(starts, before, inner, sizes)]
    seen = x[(..., *[slice(t.start - b, t.stop - b) for t, b in zip(target, before)])]
    if channels_last:
        room = np.zeros((samples, *sizes, channels), x.dtype)
        return seen, room, room.transpose(0, 1 + nd, *range(1, 1 + nd))[(..., *target)]
    room = np.zeros((samples, channels, *sizes), x.dtype)
    return seen, room, room[(..., *target)]


def _blocks(
    x: Any, w_shape: Any, counts: Any, stride: Any, before: Any, dilation: Any, groups: int
) -> Iterator[tuple[Any, Any]]:
    """Gather windows into matrices (groups, windows, taps and channels), with which (samples, lines) these are.

    x is surrounded by `before` zeros and as many after it as the windows reach; negative ones cut it.
    """
    n, inputs, kernel = len(x), w_shape[1], w_shape[2:]
    nd, depth, first = len(kernel), prod(w_shape[1:]), counts[0]
    last = _channels_last(w_shape, counts, dilation)
    sizes = _reach(counts, kernel, stride, dilation)
    line = groups * depth * prod(counts[1:])
    fit = max(1, _BLOCK // max(1, line * x.itemsize))
    samples, lines = max(1, min(fit // first, n)), min(fit, first)

    x, surrounded, place = _room(x, samples, sizes, before, last)
    sample, *steps = surrounded.strides
    channel = steps.pop(-1 if last else 0)
    moves, taps = [b * s for b, s in zip(steps, stride)], [b * d for b, d in zip(steps, dilation)]
    shape, strides = (groups, samples, *counts, *kernel, inputs), (inputs * channel, sample, *moves, *taps, channel)
    gathered = np.ndarray(shape, x.dtype, surrounded, 0, strides)
    taps_first = (0, *range(2 + nd, 3 + 2 * nd), *range(1, 2 + nd))
    buffer = np.empty(samples * lines * line, x.dtype)
    for i in range(0, n, samples):
        m = min(samples, n - i)
        place[:m] = x[i : i + m]
        for j in range(0, first, lines):
            part = gathered[:, :m, j : j + lines]
            part = part if last else part.transpose(taps_first)
            matrix = buffer[: part.size].reshape(part.shape)
            matrix[...] = part
            shape = (groups, m * part.shape[2 if last else -nd] * prod(counts[1:]), depth)
            matrix = matrix.reshape(shape) if last else matrix.reshape(shape[0], depth, shape[1]).swapaxes(1, 2)
            yield (slice(i, i + m), slice(j, j + lines)), matrix


# ---- a filter or few for each channel: rows times band matrices, which need no gathering ----


def _is_banded(w_shape: Any, counts: Any, groups: int) -> bool:
    """Tell whether the multiplications by a band's zeros cost less than gathering."""
    return bool(w_shape[1] == 1 and groups > 1 and counts[-1] <= 8 * w_shape[-1])


def _banded(
    x: Any, w_shape: Any, counts: Any, stride: Any, before: Any, dilation: Any
) -> Iterator[tuple[slice, list[Any]]]:
    """Return block by block the samples and, for each tap of all axes but the last, the rows that it sees.

    These are (samples, channels, 1, *counts but the last, size); of one axis, a single row.
    """
    n, kernel = len(x), w_shape[2:]
    sizes = _reach(counts, kernel, stride, dilation)
    samples = max(1, min(n, _BLOCK // max(1, x.shape[1] * prod(sizes) * x.itemsize)))
    x, room, place = _room(x, samples, sizes, before, False)
    keys = tap_keys(kernel[:-1], counts[:-1], stride[:-1], dilation[:-1]) if len(kernel) > 1 else [(None,)]
    for i in range(0, n, samples):
        m = min(samples, n - i)
        place[:m] = x[i : i + m]
        yield slice(i, i + m), [room[(slice(0, m), slice(None), None, *key)] for key in keys]


def _diagonals(bands: Any, kernel: int, stride: int, dilation: int) -> Any:
    """Return a view (..., kernel, count) of the places in (..., size, count) that a tap of the last axis has."""
    *lead, _, count = bands.shape
    *strides, down, across = bands.strides
    return np.ndarray((*lead, kernel, count), bands.dtype, bands, 0, (*strides, dilation * down, stride * down + across))


def _correlate_banded(x: Any, w: Any, out: Any, stride: Any, before: Any, dilation: Any) -> None:
    n, outputs, *counts = out.shape
    channels, kernel = x.shape[1], w.shape[2:]
    rows, size = prod(kernel[:-1]), _reach(counts, kernel, stride, dilation)[-1]
    filters = w.reshape(channels, outputs // channels, rows, kernel[-1]).transpose(2, 0, 1, 3)
    bands = np.zeros((*filters.shape[:3], *[1] * (len(counts) - 2), size, counts[-1]), w.dtype)
    places = _diagonals(bands, kernel[-1], stride[-1], dilation[-1])
    places[...] = filters.reshape(*bands.shape[:-2], kernel[-1], 1)
    for block, seen in _banded(x, w.shape, counts, stride, before, dilation):
        total = np.matmul(seen[0], bands[0])
        for own, band in zip(seen[1:], bands[1:]):
            total += np.matmul(own, band)
        out[block] = total.reshape(total.shape[0], outputs, *counts)


def _weight_grad_banded(g: Any, x: Any, w_shape: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    outputs, _, *kernel = w_shape
    n, _, *counts = g.shape
    channels = x.shape[1]
    lines = counts if len(counts) > 1 else [1, *counts]
    g = g.reshape(n, channels, outputs // channels, *lines)
    total = np.zeros((prod(kernel[:-1]), channels, outputs // channels, kernel[-1]), x.dtype)
    for block, seen in _banded(x, w_shape, counts, stride, padding, dilation):
        for own, sums in zip(seen, total):
            bands = np.matmul(own.swapaxes(-1, -2), g[block])
            bands = np.add.reduce(bands, axis=(0, *range(3, bands.ndim - 2)))
            sums += np.add.reduce(_diagonals(bands, kernel[-1], stride[-1], dilation[-1]), axis=-1)
    return np.ascontiguousarray(np.moveaxis(total, 0, 2)).reshape(w_shape)


# ---- few channels that many filters see: what each tap gives is added into place ----


def _spread(g: Any, w: Any, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    n, outputs, *counts = g.shape
    _, inputs, *kernel = w.shape
    taps, sizes = prod(kernel), tuple(x_shape[2:])
    length, depth = prod(counts), inputs * taps
    w = np.ascontiguousarray(w.reshape(groups, outputs // groups, depth).swapaxes(1, 2))
    reach = [
        max(s + 2 * p, (c - 1) * t + d * (m - 1) + 1)
        for s, p, c, t, d, m in zip(sizes, padding, counts, stride, dilation, kernel)
    ]
    total = np.zeros((n, groups * inputs, *reach), g.dtype)
    keys = tap_keys(kernel, counts, stride, dilation)
    step = max(1, min(n, _BLOCK // max(1, groups * depth * length * g.itemsize)))
    g = g.reshape(n, groups, outputs // groups, length)
    for i in range(0, n, step):
        m = min(step, n - i)
        if length >= _LONG:
            cols = np.matmul(w, g[i : i + m]).reshape(m, groups * inputs, taps, *counts)
            cols, block = cols.swapaxes(0, 1), total[i : i + m].swapaxes(0, 1)
            cols = cols.swapaxes(1, 2)
        else:
            rows = g[i : i + m].transpose(1, 2, 0, 3).reshape(groups, outputs // groups, m * length)
            cols = np.matmul(w, rows).reshape(groups * inputs, taps, m, *counts)
            block = total[i : i + m].swapaxes(0, 1)
        for tap, key in enumerate(keys):
            place = block[(..., *key)]
            np.add(place, cols[:, tap], out=place)
    if list(sizes) == reach:
        return total
    return np.ascontiguousarray(total[(..., *[slice(p, p + s) for p, s in zip(padding, sizes)])])
