"""Pooling in place over strided views of the taps; which tap won is kept in a byte until the end."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mortice.backends.nn_common import pool_count, tap_slice
from mortice_cpu_numpy.nn_tools import FULL, WIDE, add_at, pad_trailing, silent


class PoolOverrides:
    """max_pool, avg_pool and their gradients."""

    @silent
    def max_pool(
        self, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool = False
    ) -> Any:
        # One sum tells whether nan or inf is about: these have rules of their own, which the default body knows.
        settings = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        if x.dtype not in FULL or prod(kernel) == 1 or max(kernel) > 255 or not np.isfinite(np.add.reduce(x, axis=None)):
            return super().max_pool(x, ceil_mode=ceil_mode, **settings)
        nd = len(kernel)
        lead, sizes = x.shape[: x.ndim - nd], x.shape[x.ndim - nd :]
        best, taps = x, {}
        for i in reversed(range(nd)):
            pieces = _pieces(best, i, nd, sizes[i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode, -np.inf)
            best, won = np.array(pieces[0], order="C"), np.zeros(pieces[0].shape, np.uint8)
            for t, piece in enumerate(pieces[1:], 1):
                better = np.greater(piece, best)
                np.maximum(best, piece, out=best)
                np.maximum(won, np.multiply(better.view(np.uint8), np.uint8(t)), out=won)
            for j in taps:
                own = _pieces(taps[j], i, nd, sizes[i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode, 0)
                taps[j] = np.array(own[0], order="C")
                for t, piece in enumerate(own[1:], 1):
                    # Choosing by bits: np.copyto and np.where mispredict on random masks.
                    mask = np.negative(np.equal(won, t).view(np.uint8))
                    np.bitwise_and(mask, np.bitwise_xor(taps[j], piece), out=mask)
                    np.bitwise_xor(taps[j], mask, out=taps[j])
            taps[i] = won
        start, offset, step = np.zeros((), np.int64), np.zeros((), np.int64), 1
        small = np.int32 if prod(sizes) < 1 << 31 else np.int64
        for i in reversed(range(nd)):
            first = (np.arange(best.shape[len(lead) + i]) * stride[i] - padding[i]) * step
            start = start + first.reshape(-1, *[1] * (nd - i - 1))
            own = np.multiply(taps[i], dilation[i] * step, dtype=small)
            offset = own if step == 1 else np.add(own, offset, out=own)
            step *= sizes[i]
        at = np.add(offset, start)
        return best, at

    @silent
    def max_pool_grad(self, g: Any, indices: Any, *, x_shape: Any, ndim: int) -> Any:
        lead = prod(x_shape[: len(x_shape) - ndim])
        size = prod(x_shape[len(x_shape) - ndim :])
        values = np.asarray(g, WIDE.get(g.dtype, g.dtype))
        if not values.size:
            return np.zeros(x_shape, g.dtype)
        at = indices.reshape(lead, -1) + np.arange(0, lead * size, size)[:, None]
        return add_at(lead * size, at, values).reshape(x_shape).astype(g.dtype, copy=False)

    @silent
    def avg_pool_grad(
        self,
        g: Any,
        *,
        x_shape: Any,
        kernel: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        nd = len(kernel)
        counts, sizes = g.shape[g.ndim - nd :], x_shape[len(x_shape) - nd :]
        tiled = tuple(kernel) == tuple(stride) and not any(padding)
        if not tiled or any(c * m != n for c, m, n in zip(counts, kernel, sizes)) or g.dtype not in FULL:
            return super().avg_pool_grad(
                g,
                x_shape=x_shape,
                kernel=kernel,
                stride=stride,
                padding=padding,
                ceil_mode=ceil_mode,
                count_include_pad=count_include_pad,
                divisor_override=divisor_override,
            )
        # Windows that tile the input: each gradient is repeated, one axis after the other.
        out = np.divide(g, divisor_override or prod(kernel))
        for i in reversed(range(nd)):
            shape, axis = out.shape, out.ndim - nd + i
            wide = np.empty((*shape[: axis + 1], kernel[i], *shape[axis + 1 :]), out.dtype)
            for t in range(kernel[i]):
                wide[(*[slice(None)] * (axis + 1), t)] = out
            out = wide.reshape(*shape[:axis], shape[axis] * kernel[i], *shape[axis + 1 :])
        return out


def _pieces(
    x: Any, i: int, nd: int, size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool, fill: Any
) -> list[Any]:
    """Return what each tap of the windows along spatial axis `i` sees, as views."""
    count = pool_count(size, kernel, stride, padding, dilation, ceil_mode)
    past = max(0, (count - 1) * stride + dilation * (kernel - 1) + 1 - size - padding)
    rest = nd - i - 1
    x = pad_trailing(x, [(padding, past), *[(0, 0)] * rest], fill)
    after = (slice(None),) * rest
    return [x[(..., tap_slice(t, count, stride, dilation), *after)] for t in range(kernel)]
