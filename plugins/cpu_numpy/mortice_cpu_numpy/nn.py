"""Neural network kernels in NumPy's own terms: buffers used again, sums by BLAS, one pass where the default takes two.

Here are activations, softmax and lookups; convolution, normalisation and pooling have files of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice_cpu_numpy.nn_conv import ConvOverrides
from mortice_cpu_numpy.nn_ctc import CTCOverrides
from mortice_cpu_numpy.nn_loss import LossOverrides
from mortice_cpu_numpy.nn_norm import NormOverrides
from mortice_cpu_numpy.nn_pool import PoolOverrides
from mortice_cpu_numpy.nn_rnn import RecurrentOverrides
from mortice_cpu_numpy.nn_tools import FULL, WIDE, add_at, silent

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}
_SINGLE = frozenset({np.dtype(np.float32), *WIDE})


class NNOverrides(ConvOverrides, NormOverrides, PoolOverrides, RecurrentOverrides, CTCOverrides, LossOverrides):
    """What NumPy does faster than the default bodies of the `nn_` families; half precision is left to these where it rounds."""

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
        slope = np.subtract(1, out)
        np.multiply(slope, np.add(1, out), out=slope)
        return np.multiply(slope, g, out=slope)

    @silent
    def gelu(self, x: Any, *, approximate: str = "none") -> Any:
        if approximate == "tanh" and x.dtype in FULL and x.ndim:
            t = np.multiply(x, x)
            _tanh_of(x, t)
            np.add(t, 1, out=t)
            np.multiply(t, x, out=t)
            return np.multiply(t, 0.5, out=t)
        if approximate == "none" and x.dtype in _SINGLE and x.size >= _MANY:
            return _in_blocks(_gelu, x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)
        return super().gelu(x, approximate=approximate)

    @silent
    def gelu_grad(self, g: Any, x: Any, *, approximate: str = "none") -> Any:
        if approximate == "none" and x.dtype in _SINGLE and x.size >= _MANY:
            wide = (x.astype(np.float32, copy=False), g.astype(np.float32, copy=False))
            return _in_blocks(_gelu_grad, *wide).astype(x.dtype, copy=False)
        return super().gelu_grad(g, x, approximate=approximate)

    # ---- softmax ----

    @silent
    def softmax(self, x: Any, *, axis: int) -> Any:
        if x.dtype not in FULL or not x.size or not x.ndim:
            return super().softmax(x, axis=axis)
        e = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True), order="C")
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
        out = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True), order="C")
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


# ---- the normal distribution function in float32, a cache's worth of elements at a time ----

_MANY, _BLOCK = 1024, 1 << 14
# exp(z * z) * erfc(z) / (2 * t), for z >= 0, as a polynomial in t = 1 / (1 + 0.4 * z): relative error below 1e-8.
_TAIL = (
    0.1128379175, 0.11283793, 0.103806864, 0.0858696485, 0.0595041285, 0.0419583179, -0.02344783495, 0.0687810415,
    -0.117763906, 0.070223487, -0.0146075842,
)  # fmt: skip


def _in_blocks(body: Any, *arrays: Any) -> Any:
    """Apply an elementwise body (arrays..., out, three buffers) to blocks of the flattened arrays."""
    out = np.empty(arrays[0].shape, np.float32)
    flat = [a.reshape(-1) for a in (*arrays, out)]
    work = [np.empty(min(_BLOCK, out.size), np.float32) for _ in range(3)]
    for i in range(0, out.size, _BLOCK):
        parts = [a[i : i + _BLOCK] for a in flat]
        body(*parts, *[w[: parts[0].size] for w in work])
    return out


def _upper_tail(x: Any, tail: Any, z: Any, t: Any) -> None:
    """Write the probability above |x| into `tail`, exp(-x * x / 2) into z."""
    np.abs(x, out=z)
    np.multiply(z, 0.4 * 0.5**0.5, out=t)
    np.add(t, 1, out=t)
    np.divide(1, t, out=t)
    np.multiply(t, _TAIL[-1], out=tail)
    for c in _TAIL[-2:0:-1]:
        np.add(tail, c, out=tail)
        np.multiply(tail, t, out=tail)
    np.add(tail, _TAIL[0], out=tail)
    np.multiply(tail, t, out=tail)
    np.multiply(z, z, out=z)
    np.multiply(z, -0.5, out=z)
    np.exp(z, out=z)
    np.multiply(tail, z, out=tail)


def _gelu(x: Any, out: Any, tail: Any, z: Any, t: Any) -> None:
    _upper_tail(x, tail, z, t)
    # max(x, 0) - |x| * tail; the limit keeps inf * 0 out where x is inf.
    np.minimum(x, 64, out=t)
    np.abs(t, out=t)
    np.multiply(tail, t, out=tail)
    np.maximum(x, 0, out=out)
    np.subtract(out, tail, out=out)


def _gelu_grad(x: Any, g: Any, out: Any, tail: Any, z: Any, t: Any) -> None:
    _upper_tail(x, tail, z, t)
    np.multiply(z, x, out=z)
    np.multiply(z, 0.3989422804014327, out=z)
    np.subtract(0.5, tail, out=tail)
    np.copysign(tail, x, out=tail)
    np.add(tail, 0.5, out=tail)
    np.add(tail, z, out=tail)
    np.multiply(tail, g, out=out)
