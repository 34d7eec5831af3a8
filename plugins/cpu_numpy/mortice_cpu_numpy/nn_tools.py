"""What the neural network overrides share: silence, dtypes, windows as strided views, adding at positions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mortice_cpu_numpy.quiet import _QUIET, BFLOAT16, _reset, _set
from mortice_cpu_numpy.quiet import add_at as _add_at

FULL = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
# What half precision is added up in.
WIDE = {np.dtype(np.float16): np.dtype(np.float32), BFLOAT16: np.dtype(np.float32)}


def silent(method: Any) -> Any:
    """Keep floating point events inside a method from becoming warnings."""

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **attrs: Any) -> Any:
        token = _set(_QUIET)
        try:
            return method(self, *args, **attrs)
        finally:
            _reset(token)

    return wrapped


def add_at(shape: Any, indices: Any, values: Any) -> Any:
    """Add values at flat positions into zeros: NumPy's ufunc.at is fast for one axis only."""
    total = np.zeros(shape, values.dtype)
    _add_at(total, indices.reshape(-1), values.reshape(-1))
    return total


def windows(x: Any, kernel: Any, counts: Any, stride: Any, dilation: Any) -> Any:
    """Return a view (..., *kernel, *counts) of the windows over the trailing axes."""
    nd = len(kernel)
    lead, steps = x.strides[: x.ndim - nd], x.strides[x.ndim - nd :]
    taps = [n * d for n, d in zip(steps, dilation)]
    moves = [n * s for n, s in zip(steps, stride)]
    return as_strided(x, (*x.shape[: x.ndim - nd], *kernel, *counts), (*lead, *taps, *moves), writeable=False)


def pad_trailing(x: Any, widths: Any, value: Any = 0) -> Any:
    """Surround the trailing axes with a constant; x itself when there is nothing to add."""
    if not any(b or a for b, a in widths):
        return x
    lead = x.shape[: x.ndim - len(widths)]
    sizes = x.shape[x.ndim - len(widths) :]
    out = np.full((*lead, *[b + n + a for n, (b, a) in zip(sizes, widths)]), value, x.dtype)
    out[(..., *[slice(b, b + n) for n, (b, _) in zip(sizes, widths)])] = x
    return out
