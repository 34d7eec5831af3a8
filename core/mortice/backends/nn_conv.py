"""Convolution over one to three (or more) spatial axes, its two gradients, and the sliding blocks they are made of.

The three convolutions are each other's gradients, and so are `unfold` and `fold`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends.kernel_tools import KernelMixin, in_float32
from mortice.backends.nn_common import (
    columns,
    join_rows,
    over_rows,
    pad_trailing,
    rows_per_block,
    spread_columns,
    window_count,
)
from mortice.shape import prod


class ConvKernels(KernelMixin):
    """FREE: `x` is (N, C, *sizes), `w` is (O, C / groups, *kernel); the attributes are tuples, one int a spatial axis."""

    @in_float32
    def conv(
        self,
        x: Any,
        w: Any,
        *,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int = 1,
    ) -> Any:
        """Correlate each group of channels with its filters."""
        n, _, *sizes = self.shape_of(x)
        outputs, inputs, *kernel = self.shape_of(w)
        counts = [window_count(*a) for a in zip(sizes, kernel, stride, padding, dilation)]
        length, depth = prod(counts), inputs * prod(kernel)
        x = pad_trailing(self, x, [(p, p) for p in padding])
        w = self.reshape(w, (groups, outputs // groups, depth))

        def block(x: Any) -> Any:
            cols = columns(self, x, kernel, counts, stride, dilation, 2)
            return self.matmul(w, self.reshape(cols, (self.shape_of(x)[0], groups, depth, length)))

        rows = rows_per_block(groups * depth * length * self.dtype_of(x).itemsize)
        out = join_rows(self, over_rows(self, block, [x], rows))
        return self.reshape(out, (n, outputs, *counts))

    @in_float32
    def conv_input_grad(
        self,
        g: Any,
        w: Any,
        *,
        x_shape: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int = 1,
    ) -> Any:
        """Spread `g` (N, O, *counts) back over the input through the filters: also the transposed convolution.

        There `g` is the input, `w` is (C_in, C_out / groups, *kernel), and `x_shape` the output's shape, its output
        padding included.
        """
        n, outputs, *counts = self.shape_of(g)
        _, inputs, *kernel = self.shape_of(w)
        length, taps = prod(counts), prod(kernel)
        w = self.matrix_transpose(self.reshape(w, (groups, outputs // groups, inputs * taps)))

        def block(g: Any) -> Any:
            m = self.shape_of(g)[0]
            cols = self.matmul(w, self.reshape(g, (m, groups, outputs // groups, length)))
            cols = self.reshape(cols, (m, groups * inputs, taps, *counts))
            pieces = (self.getitem(cols, (slice(None), slice(None), t)) for t in range(taps))
            return spread_columns(self, pieces, x_shape[2:], kernel, stride, padding, dilation)

        rows = rows_per_block(groups * inputs * taps * length * self.dtype_of(g).itemsize)
        return join_rows(self, over_rows(self, block, [g], rows))

    @in_float32
    def conv_weight_grad(
        self,
        g: Any,
        x: Any,
        *,
        w_shape: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int = 1,
    ) -> Any:
        """Correlate the input with `g` (N, O, *counts), summed over the batch."""
        outputs, inputs, *kernel = w_shape
        counts = tuple(self.shape_of(g)[2:])
        length, depth = prod(counts), inputs * prod(kernel)
        x = pad_trailing(self, x, [(p, p) for p in padding])
        order = (1, 0, *range(2, len(w_shape)))

        def block(g: Any, x: Any) -> Any:
            m = self.shape_of(g)[0]
            cols = columns(self, self.permute_dims(x, order), kernel, counts, stride, dilation, 1)
            cols = self.reshape(cols, (groups, depth, m * length))
            g = self.reshape(self.permute_dims(g, order), (groups, outputs // groups, m * length))
            return self.matmul(g, self.matrix_transpose(cols))

        rows = rows_per_block(groups * depth * length * self.dtype_of(x).itemsize)
        total, *rest = over_rows(self, block, [g, x], rows)
        for piece in rest:
            total = self.add(total, piece)
        return self.reshape(total, tuple(w_shape))

    def unfold(
        self,
        x: Any,
        *,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
    ) -> Any:
        """Gather the sliding blocks of (N, C, *sizes) as columns: (N, C * taps, windows)."""
        n, channels, *sizes = self.shape_of(x)
        counts = [window_count(*a) for a in zip(sizes, kernel, stride, padding, dilation)]
        padded = pad_trailing(self, x, [(p, p) for p in padding])
        cols = columns(self, padded, kernel, counts, stride, dilation, 2)
        if prod(kernel) == 1 and padded is x:
            cols = self.copy(cols)
        return self.reshape(cols, (n, channels * prod(kernel), prod(counts)))

    @in_float32
    def fold(
        self,
        x: Any,
        *,
        output_size: Sequence[int],
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
    ) -> Any:
        """Add columns (N, C * taps, windows) up where their blocks lie: (N, C, *output_size)."""
        taps = prod(kernel)
        n, depth, _ = self.shape_of(x)
        counts = [window_count(*a) for a in zip(output_size, kernel, stride, padding, dilation)]
        cols = self.reshape(x, (n, depth // taps, taps, *counts))
        pieces = (self.getitem(cols, (slice(None), slice(None), t)) for t in range(taps))
        return spread_columns(self, pieces, output_size, kernel, stride, padding, dilation)
