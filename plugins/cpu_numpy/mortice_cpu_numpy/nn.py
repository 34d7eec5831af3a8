"""Neural network kernels in NumPy's own terms: buffers used again, sums by BLAS, one pass where the default takes two.

Here are activations, softmax and lookups; convolution, normalisation and pooling have files of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice_cpu_numpy.nn_conv import ConvOverrides
from mortice_cpu_numpy.nn_norm import NormOverrides
from mortice_cpu_numpy.nn_pool import PoolOverrides
from mortice_cpu_numpy.nn_tools import FULL, WIDE, add_at, silent

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


class NNOverrides(ConvOverrides, NormOverrides, PoolOverrides):
    """What NumPy does faster than the default bodies of `NNKernels`; half precision is left to these where it rounds."""

    # ---- activations ----

    def relu_grad(self, g: Any, out: Any) -> Any:
        # np.where mispredicts on random signs; masking bits does not branch, and unlike a product keeps inf out.
        bits = _BITS[g.itemsize]
        mask = np.asarray(np.less_equal(out, 0), bits)
        np.subtract(mask, 1, out=mask)
        np.bitwise_and(mask, g.view(bits), out=mask)
        return mask.view(g.dtype)

    @silent
    def sigmoid_grad(self, g: Any, out: Any) -> Any:
        if g.dtype not in FULL or not g.ndim:
            return super().sigmoid_grad(g, out)
        slope = np.subtract(1, out)
        np.multiply(slope, out, out=slope)
        return np.multiply(slope, g, out=slope)

    @silent
    def tanh_grad(self, g: Any, out: Any) -> Any:
        if g.dtype not in FULL or not g.ndim:
            return super().tanh_grad(g, out)
        slope = np.multiply(out, out)
        np.subtract(1, slope, out=slope)
        return np.multiply(slope, g, out=slope)

    @silent
    def gelu(self, x: Any, *, approximate: str = "none") -> Any:
        if x.dtype not in FULL or not x.ndim or approximate != "tanh":
            return super().gelu(x, approximate=approximate)
        t = np.multiply(x, x)
        _tanh_of(x, t)
        np.add(t, 1, out=t)
        np.multiply(t, x, out=t)
        return np.multiply(t, 0.5, out=t)

    # ---- softmax ----

    @silent
    def softmax(self, x: Any, *, axis: int) -> Any:
        if x.dtype not in FULL or not x.size or not x.ndim:
            return super().softmax(x, axis=axis)
        e = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True))
        np.exp(e, out=e)
        return np.divide(e, np.add.reduce(e, axis=axis, keepdims=True), out=e)

    @silent
    def softmax_grad(self, g: Any, out: Any, *, axis: int) -> Any:
        if g.dtype not in FULL or not g.ndim:
            return super().softmax_grad(g, out, axis=axis)
        pulled = np.multiply(g, out)
        total = np.add.reduce(pulled, axis=axis, keepdims=True)
        np.subtract(g, total, out=pulled)
        return np.multiply(pulled, out, out=pulled)

    @silent
    def log_softmax(self, x: Any, *, axis: int) -> Any:
        if x.dtype not in FULL or not x.size or not x.ndim:
            return super().log_softmax(x, axis=axis)
        out = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True))
        total = np.add.reduce(np.exp(out), axis=axis, keepdims=True)
        return np.subtract(out, np.log(total, out=total), out=out)

    @silent
    def log_softmax_grad(self, g: Any, out: Any, *, axis: int) -> Any:
        if g.dtype not in FULL or not g.ndim:
            return super().log_softmax_grad(g, out, axis=axis)
        pulled = np.exp(out)
        np.multiply(pulled, np.add.reduce(g, axis=axis, keepdims=True), out=pulled)
        return np.subtract(g, pulled, out=pulled)

    # ---- lookups ----

    @silent
    def embedding_grad(
        self,
        g: Any,
        indices: Any,
        *,
        num_weights: int,
        padding_idx: int | None = None,
        scale_grad_by_freq: bool = False,
    ) -> Any:
        row = g.shape[indices.ndim :]
        at = indices.reshape(-1)
        width = int(np.prod(row))
        rows = np.asarray(g.reshape(at.size, width), WIDE.get(g.dtype, g.dtype))
        if scale_grad_by_freq:
            rows = rows / np.bincount(at, minlength=num_weights).astype(rows.dtype)[at][:, None]
        if padding_idx is not None and padding_idx >= 0:
            used = at != padding_idx
            at, rows = at[used], rows[used]
        table = add_at((num_weights * width,), (at[:, None] * width + np.arange(width)), rows)
        return table.reshape(num_weights, *row).astype(g.dtype, copy=False)


def _tanh_of(x: Any, square: Any) -> None:
    """Turn x * x in place into tanh of the argument that approximates the normal distribution."""
    np.multiply(square, 0.044715, out=square)
    np.add(square, 1, out=square)
    np.multiply(square, x, out=square)
    np.multiply(square, 0.7978845608028654, out=square)
    np.tanh(square, out=square)
