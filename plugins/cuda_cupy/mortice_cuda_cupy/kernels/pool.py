"""Pooling: maxima with their places, and averages with their gradient; windows fitted to a size stay the core's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import pool_count
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import FLOATS, Program, empty, float32, over_elements, prod

POOL = Program(
    "pool.cu",
    *[f"{name}<{{T}}>" for name in ("max_pool", "max_pool_grad", "max_pool_window_grad", "avg_pool", "avg_pool_grad")],
)
_LARGE = 1 << 30  # elements of a plane that kernels count in int


class PoolKernels(KernelMixin):
    """One launch a call, over one to three trailing axes."""

    def max_pool(
        self, x: Any, *, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
        ceil_mode: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil_mode}
        if not _fits(self, x, kernel):
            return NamespaceBackend.max_pool(self, x, **window)  # type: ignore[no-any-return]
        return _max_pool(self, x, True, window)

    def max_pool_values(
        self, x: Any, *, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
        ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil_mode}
        if not _fits(self, x, kernel):
            return NamespaceBackend.max_pool_values(self, x, **window)
        return _max_pool(self, x, False, window)[0]

    def max_pool_grad(self, g: Any, indices: Any, *, x_shape: Sequence[int], ndim: int) -> Any:
        dtype = self.dtype_of(g)
        if dtype not in FLOATS or not g.size:
            return NamespaceBackend.max_pool_grad(self, g, indices, x_shape=x_shape, ndim=ndim)
        wide = dtype if dtype.itemsize > 2 else float32
        out = self.new_full(g, tuple(x_shape), 0, wide)
        lead = len(x_shape) - ndim
        windows, plane = prod(g.shape[lead:]), prod(x_shape[lead:])
        POOL.get(dtype, "max_pool_grad<{T}>")(
            *over_elements(g.size), (contiguous(g), contiguous(indices), out, g.size, windows, plane)
        )
        return out if wide is dtype else self.astype(out, dtype)

    def max_pool_window_grad(
        self, g: Any, indices: Any, *, x_shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
        padding: Sequence[int], dilation: Sequence[int],
    ) -> Any:  # fmt: skip
        nd = len(kernel)
        lead, counts = tuple(x_shape[: len(x_shape) - nd]), tuple(g.shape[len(x_shape) - nd :])
        if nd > 3 or not g.size or prod(x_shape[len(lead) :]) >= _LARGE or self.dtype_of(g) not in FLOATS:
            return self.max_pool_grad(g, indices, x_shape=x_shape, ndim=nd)
        out = empty(x_shape, g.dtype)
        axes = _numbers(tuple(x_shape[len(lead) :]), counts, kernel, stride, padding, dilation)
        _launch(self, "max_pool_window_grad<{T}>", out, (contiguous(g), contiguous(indices), out), lead, axes)
        return out

    def avg_pool(
        self, x: Any, *, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        if not _fits(self, x, kernel):
            return NamespaceBackend.avg_pool(
                self, x, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
                count_include_pad=count_include_pad, divisor_override=divisor_override,
            )  # fmt: skip
        x = contiguous(x)
        lead, counts, axes = _axes(x.shape, kernel, stride, padding, (1,) * len(kernel), ceil_mode)
        out = empty((*lead, *counts), x.dtype)
        _launch(self, "avg_pool<{T}>", out, (x, out), lead, axes, *_divisor(count_include_pad, divisor_override))
        return out

    def avg_pool_grad(
        self, g: Any, *, x_shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        if not _fits(self, g, kernel) or prod(x_shape[g.ndim - len(kernel) :]) >= _LARGE:
            return NamespaceBackend.avg_pool_grad(
                self, g, x_shape=x_shape, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
                count_include_pad=count_include_pad, divisor_override=divisor_override,
            )  # fmt: skip
        g, out = contiguous(g), empty(x_shape, g.dtype)
        lead, _, axes = _axes(x_shape, kernel, stride, padding, (1,) * len(kernel), ceil_mode)
        _launch(self, "avg_pool_grad<{T}>", out, (g, out), lead, axes, *_divisor(count_include_pad, divisor_override))
        return out


def _fits(k: Any, x: Any, kernel: Sequence[int]) -> bool:
    plane = prod(x.shape[x.ndim - len(kernel) :])
    return len(kernel) <= 3 and x.size > 0 and plane < _LARGE and k.dtype_of(x) in FLOATS


def _axes(
    shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    ceil_mode: bool,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]:  # fmt: skip
    """Return the shape before the pooled axes, the windows along these, and the numbers of three axes."""
    nd = len(kernel)
    lead, sizes = tuple(shape[: len(shape) - nd]), tuple(shape[len(shape) - nd :])
    windows = zip(sizes, kernel, stride, padding, dilation)
    counts = tuple(pool_count(n, m, s, p, d, ceil_mode) for n, m, s, p, d in windows)
    return lead, counts, _numbers(sizes, counts, kernel, stride, padding, dilation)


def _numbers(*rows: Sequence[int]) -> tuple[Any, ...]:
    """Return the numbers of three axes: sizes, windows along them, kernel, stride, padding and dilation."""
    rest = 3 - len(rows[0])
    return tuple([np.int32(v) for first, row in zip((1, 1, 1, 1, 0, 1), rows) for v in (*[first] * rest, *row)])


def _max_pool(k: Any, x: Any, places: bool, window: dict[str, Any]) -> tuple[Any, Any]:
    x = contiguous(x)
    lead, counts, axes = _axes(x.shape, *window.values())
    out = empty((*lead, *counts), x.dtype)
    at = empty(out.shape, np.dtype(np.int64)) if places else None
    _launch(k, "max_pool<{T}>", out, (x, out, at), lead, axes)
    return out, at


def _divisor(count_include_pad: bool, override: int | None) -> tuple[Any, Any]:
    return np.bool_(count_include_pad), float(override or 0)


def _launch(k: Any, kernel: str, out: Any, arrays: Any, lead: Sequence[int], axes: Any, *numbers: Any) -> None:
    if out.size:
        POOL.get(k.dtype_of(out), kernel)(*over_elements(out.size), (*arrays, int(prod(lead)), *axes, *numbers))
