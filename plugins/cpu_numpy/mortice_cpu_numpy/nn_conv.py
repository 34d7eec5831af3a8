"""Convolution as matrix products over windows gathered into one buffer, a cache's worth of samples at a time."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mortice.backends.nn_common import tap_keys, window_count
from mortice_cpu_numpy.nn_tools import WIDE, pad_trailing, silent, windows

# Bytes of gathered windows at a time: what stays in a second-level cache.
_BLOCK = 1 << 20
# Windows a sample from which a matrix product for each sample is worth its call.
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


def _rows(total: int, row_bytes: int) -> int:
    return max(1, min(total, _BLOCK // max(row_bytes, 1)))


def _samples_last(gathered: Any, nd: int) -> Any:
    """Move the batch behind the taps: (groups, channels, *kernel, N, *counts)."""
    return gathered.transpose(1, 2, *range(3, 3 + nd), 0, *range(3 + nd, 3 + 2 * nd))


def _conv(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    n, _, *sizes = x.shape
    outputs, inputs, *kernel = w.shape
    counts = [window_count(*a) for a in zip(sizes, kernel, stride, padding, dilation)]
    length, depth, nd = prod(counts), inputs * prod(kernel), len(kernel)
    w = w.reshape(groups, outputs // groups, depth)
    x = pad_trailing(x, [(p, p) for p in padding])
    x = x.reshape(n, groups, inputs, *x.shape[2:])
    if prod(kernel) == 1 and all(s == 1 for s in stride):
        return np.matmul(w, x.reshape(n, groups, inputs, length)).reshape(n, outputs, *counts)
    gathered = windows(x, kernel, counts, stride, dilation)
    out = np.empty((n, outputs, *counts), x.dtype)
    step = _rows(n, groups * depth * length * x.itemsize)
    if length >= _LONG:
        rows = out.reshape(n, groups, outputs // groups, length)
        cols = np.empty((step, *gathered.shape[1:]), x.dtype)
        for i in range(0, n, step):
            part = cols[: min(step, n - i)]
            part[...] = gathered[i : i + step]
            np.matmul(w, part.reshape(len(part), groups, depth, length), out=rows[i : i + step])
        return out
    # Few windows a sample: the samples of a block become one wide matrix.
    gathered = _samples_last(gathered, nd)
    for i in range(0, n, step):
        part = np.array(gathered[(slice(None),) * (2 + nd) + (slice(i, i + step),)], order="C")
        m = part.shape[2 + nd]
        found = np.matmul(w, part.reshape(groups, depth, m * length))
        out[i : i + step] = found.reshape(outputs, m, *counts).swapaxes(0, 1)
    return out


def _weight_grad(g: Any, x: Any, w_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    outputs, inputs, *kernel = w_shape
    n, _, *counts = g.shape
    length, depth, nd = prod(counts), inputs * prod(kernel), len(kernel)
    x = pad_trailing(x, [(p, p) for p in padding])
    x = x.reshape(n, groups, inputs, *x.shape[2:])
    gathered = _samples_last(windows(x, kernel, counts, stride, dilation), nd)
    total = np.zeros((groups, outputs // groups, depth), x.dtype)
    step = _rows(n, groups * depth * length * x.itemsize)
    cols = np.empty((*gathered.shape[: 2 + nd], step, *counts), x.dtype)
    for i in range(0, n, step):
        m = min(step, n - i)
        part = cols if m == step else np.empty((*gathered.shape[: 2 + nd], m, *counts), x.dtype)
        part[...] = gathered[(slice(None),) * (2 + nd) + (slice(i, i + m),)]
        rows = g[i : i + m].swapaxes(0, 1).reshape(groups, outputs // groups, m * length)
        total += np.matmul(rows, part.reshape(groups, depth, m * length).swapaxes(1, 2))
    return total.reshape(w_shape)


def _input_grad(
    g: Any, w: Any, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    n, outputs, *counts = g.shape
    _, inputs, *kernel = w.shape
    nd, taps, sizes = len(kernel), prod(kernel), tuple(x_shape[2:])
    margins = [d * (m - 1) - p for d, m, p in zip(dilation, kernel, padding)]
    same_step = all(s == 1 for s in stride) and min(margins) >= 0
    if same_step and all(c + q - p == s for c, q, p, s in zip(counts, margins, padding, sizes)):
        if outputs <= 2 * groups * inputs:
            # Without strides this is a convolution with the filters turned round.
            turned = w[(slice(None), slice(None), *[slice(None, None, -1)] * nd)]
            turned = turned.reshape(groups, outputs // groups, inputs, *kernel).swapaxes(1, 2)
            turned = turned.reshape(groups * inputs, outputs // groups, *kernel)
            return _conv(g, turned, stride, margins, dilation, groups)
    length, depth = prod(counts), inputs * taps
    w = np.ascontiguousarray(w.reshape(groups, outputs // groups, depth).swapaxes(1, 2))
    reach = [
        max(s + 2 * p, (c - 1) * t + d * (m - 1) + 1)
        for s, p, c, t, d, m in zip(sizes, padding, counts, stride, dilation, kernel)
    ]
    total = np.zeros((n, groups * inputs, *reach), g.dtype)
    keys = tap_keys(kernel, counts, stride, dilation)
    step = _rows(n, groups * depth * length * g.itemsize)
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
