"""layer_norm, rms_norm, group_norm and batch_norm with joint gradients, which read g and x twice in all."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    Program,
    all_in_order,
    empty,
    float32,
    over_elements,
    over_rows,
    prod,
    ready,
)

_ROWS = [
    f"norm_{part}rows<{{T}}, {weight}, {kind}>"
    for part in ("", "grad_")
    for weight in ("{T}", "wide_t<{T}>")
    for kind in ("false, false", "true, false", "false, true")
]
NORM = Program(
    "norm.cu", *_ROWS, "norm_sums_columns<{T}, false>", "norm_sums_columns<{T}, true>", "channel_moments<{T}>",
    "merge_moments<{T}>", "channel_sums<{T}>", "fold_parts<{T}>", "channel_apply<{T}>", "channel_grad<{T}>", "joined_apply<{T}>",
    "joined_grad<{T}>", "blend<{T}>",
)  # fmt: skip
_LAYER, _RMS, _GROUP = "false, false", "true, false", "false, true"
_Core = NamespaceBackend
_BLOCKS = 1056  # that sums are cut into, where there is enough to add: 8 for each of 132 multiprocessors


class NormKernels(KernelMixin):
    """Statistics are float32 for half precision; gradients read the forward's, and go to the core's bodies without."""

    # ---- rows ----

    def layer_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> tuple[Any, Any, Any]:
        if not _fits(self, x):
            return _Core.layer_norm(self, x, weight, bias, ndim=ndim, eps=eps)  # type: ignore[no-any-return]
        stats = (*x.shape[: x.ndim - ndim], *[1] * ndim)
        return _forward(self, _LAYER, x, weight, bias, prod(x.shape[x.ndim - ndim :]), eps, stats)

    def layer_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, rstd: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.layer_norm_grad(self, g, x, weight, mean, rstd, ndim=ndim, eps=eps)
        return _backward(self, _LAYER, g, x, weight, mean, rstd, prod(x.shape[x.ndim - ndim :]))

    def layer_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, rstd: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.layer_norm_weight_grad(self, g, x, mean, rstd, ndim=ndim, eps=eps)
        return _column_sums(self, "false", g, x, mean, rstd, ndim, (True, False))[0]

    def layer_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, *, ndim: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.layer_norm_grads(self, g, x, weight, mean, rstd, ndim=ndim, eps=eps, needs=needs)  # type: ignore[no-any-return]
        of_x = self.layer_norm_grad(g, x, weight, mean, rstd, ndim=ndim, eps=eps) if needs[0] else None
        return of_x, *_column_sums(self, "false", g, x, mean, rstd, ndim, needs[1:])

    def rms_norm(self, x: Any, weight: Any = None, *, ndim: int, eps: float) -> tuple[Any, Any]:
        if not _fits(self, x):
            return _Core.rms_norm(self, x, weight, ndim=ndim, eps=eps)  # type: ignore[no-any-return]
        stats = (*x.shape[: x.ndim - ndim], *[1] * ndim)
        out, _, rrms = _forward(self, _RMS, x, weight, None, prod(x.shape[x.ndim - ndim :]), eps, stats)
        return out, rrms

    def rms_norm_grad(self, g: Any, x: Any, weight: Any = None, rrms: Any = None, *, ndim: int, eps: float) -> Any:
        if rrms is None or not _fits(self, x, g):
            return _Core.rms_norm_grad(self, g, x, weight, rrms, ndim=ndim, eps=eps)
        return _backward(self, _RMS, g, x, weight, None, rrms, prod(x.shape[x.ndim - ndim :]))

    def rms_norm_weight_grad(self, g: Any, x: Any, rrms: Any = None, *, ndim: int, eps: float) -> Any:
        if rrms is None or not _fits(self, x, g):
            return _Core.rms_norm_weight_grad(self, g, x, rrms, ndim=ndim, eps=eps)
        return _column_sums(self, "true", g, x, None, rrms, ndim, (True, False))[0]

    def group_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float = 1e-5
    ) -> tuple[Any, Any, Any]:
        if not _fits(self, x):
            return _Core.group_norm(self, x, weight, bias, groups=groups, eps=eps)  # type: ignore[no-any-return]
        n = prod(x.shape[1:]) // groups
        return _forward(self, _GROUP, x, weight, bias, n, eps, (x.shape[0], groups), groups)

    def group_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, rstd: Any = None, *, groups: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.group_norm_grad(self, g, x, weight, mean, rstd, groups=groups, eps=eps)
        return _backward(self, _GROUP, g, x, weight, mean, rstd, prod(x.shape[1:]) // groups, groups)

    def group_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, rstd: Any = None, *, groups: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.group_norm_weight_grad(self, g, x, mean, rstd, groups=groups, eps=eps)
        return _channel_sums(self, g, x, mean, rstd, groups, (True, False))[1]

    def group_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, *, groups: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.group_norm_grads(self, g, x, weight, mean, rstd, groups=groups, eps=eps, needs=needs)  # type: ignore[no-any-return]
        of_x = self.group_norm_grad(g, x, weight, mean, rstd, groups=groups, eps=eps) if needs[0] else None
        return of_x, *_channel_sums(self, g, x, mean, rstd, groups, needs[1:])[1:]

    # ---- channels ----

    def batch_norm(self, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> tuple[Any, Any, Any]:
        if not _fits(self, x):
            return _Core.batch_norm(self, x, weight, bias, eps=eps)  # type: ignore[no-any-return]
        x = contiguous(x)
        dtype, wide = self.dtype_of(x), _wide(self, x)
        channels, count, together, sizes = _by_channels(x.shape, x.itemsize)
        parts, mean, var = empty((count, 2, channels), wide), empty((channels,), wide), empty((channels,), wide)
        NORM.get(dtype, "channel_moments<{T}>")((channels, count), (256,), (x, parts, *sizes))
        if together:
            out, weight, bias = empty(x.shape, x.dtype), _as_wide(self, weight, x), _as_wide(self, bias, x)
            NORM.get(dtype, "joined_apply<{T}>")(
                (channels, count), (256,), (x, parts, mean, var, weight, bias, out, *sizes, float(eps))
            )
            return out, mean, var
        NORM.get(dtype, "merge_moments<{T}>")(
            *_warps(channels), (parts, mean, var, *_ints(count, x.size // channels, channels, prod(x.shape[2:])))
        )
        return _apply(self, x, mean, var, weight, bias, eps), mean, var

    def batch_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, var: Any, *, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        if mean is None or var is None or not _fits(self, x, g):
            return _Core.batch_norm_grads(self, g, x, weight, mean, var, eps=eps, needs=needs)  # type: ignore[no-any-return]
        g, x, mean, var = contiguous(g), contiguous(x), contiguous(mean), contiguous(var)
        if needs[0] and _by_channels(x.shape, x.itemsize)[2]:
            parts, sizes, geometry = _channel_parts(self, g, x, mean, var, 0, float(eps))
            of_x = empty(x.shape, x.dtype)
            of_weight, of_bias = (empty(mean.shape, x.dtype) if need else None for need in needs[1:])
            NORM.get(self.dtype_of(x), "joined_grad<{T}>")(
                *geometry, (g, x, mean, var, _as_wide(self, weight, x), parts, of_x, of_bias, of_weight, *sizes, float(eps))
            )
            return of_x, of_weight, of_bias
        sums, of_weight, of_bias = _channel_sums(self, g, x, mean, var, 0, needs[1:], float(eps))
        if not needs[0]:
            return None, of_weight, of_bias
        of_x = empty(x.shape, x.dtype)
        _, channels, inner = _sizes(x)
        NORM.get(self.dtype_of(x), "channel_grad<{T}>")(
            *over_elements(x.size, 16 // x.itemsize),
            (g, x, mean, var, _as_wide(self, weight, x), sums, of_x, *_ints(x.size, channels, inner), float(eps)),
        )
        return of_x, of_weight, of_bias

    def batch_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, var: Any = None, *, eps: float = 1e-5
    ) -> Any:
        if mean is None or var is None or not _fits(self, x, g):
            return _Core.batch_norm_grad(self, g, x, weight, mean, var, eps=eps)
        return self.batch_norm_grads(g, x, weight, mean, var, eps=eps, needs=(True, False, False))[0]

    def batch_norm_weight_grad(self, g: Any, x: Any, mean: Any = None, var: Any = None, *, eps: float = 1e-5) -> Any:
        if mean is None or var is None or not _fits(self, x, g):
            return _Core.batch_norm_weight_grad(self, g, x, mean, var, eps=eps)
        return self.batch_norm_grads(g, x, None, mean, var, eps=eps, needs=(False, True, False))[1]

    def batch_norm_eval(
        self, x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
    ) -> Any:
        if not _fits(self, x):
            return _Core.batch_norm_eval(self, x, mean, var, weight, bias, eps=eps)
        return _apply(self, contiguous(x), _as_wide(self, mean, x), _as_wide(self, var, x), weight, bias, eps)

    def batch_norm_eval_weight_grad(self, g: Any, x: Any, mean: Any, var: Any, *, eps: float = 1e-5) -> Any:
        if not _fits(self, x, g):
            return _Core.batch_norm_eval_weight_grad(self, g, x, mean, var, eps=eps)
        mean, var = _as_wide(self, mean, x), _as_wide(self, var, x)
        return self.batch_norm_weight_grad(g, x, mean, var, eps=eps)

    def blend(self, xs: Sequence[Any], share: float, ys: Sequence[Any], others: Sequence[float]) -> list[Any]:
        x = xs[0]
        if len(xs) != 2 or not all([_fits(self, x, a) for a in (xs[1], *ys)]) or not all_in_order(xs):
            return _Core.blend(self, xs, share, ys, others)
        pairs = [contiguous(a) for pair in zip(xs, ys) for a in pair]
        numbers = (x.size, float(share), *map(float, others))
        NORM.get(self.dtype_of(x), "blend<{T}>")(*over_elements(x.size), (*pairs, *numbers))
        return list(xs)


# ---- launches ----


def _fits(k: Any, x: Any, g: Any = None) -> bool:
    return x.size > 0 and k.dtype_of(x) in FLOATS and (g is None or (g.dtype == x.dtype and g.shape == x.shape))


def _wide(k: Any, x: Any) -> Any:
    return x.dtype if x.itemsize > 2 else k.native(float32)


def _as_wide(k: Any, x: Any, like: Any) -> Any:
    """Return statistics or parameters of channels in the dtype that is computed in."""
    wide = _wide(k, like)
    return x if x is None else contiguous(x if x.dtype == wide else x.astype(wide))


def _ints(*sizes: int) -> tuple[Any, ...]:
    return sizes


def _weights(k: Any, x: Any, weight: Any, bias: Any) -> tuple[str, Any, Any]:
    """Return the name of the parameters' type, and them in it: in that of x where both are, else the wide one."""
    if all([w is None or w.dtype == x.dtype for w in (weight, bias)]):
        return "{T}", contiguous(weight), contiguous(bias)
    return "wide_t<{T}>", _as_wide(k, weight, x), _as_wide(k, bias, x)


def _forward(
    k: Any, kind: str, x: Any, weight: Any, bias: Any, n: int, eps: float, stats: Sequence[int], groups: int = 1
) -> tuple[Any, Any, Any]:
    x = contiguous(x)
    out, wide = empty(x.shape, x.dtype), _wide(k, x)
    mean, rstd = None if kind == _RMS else empty(stats, wide), empty(stats, wide)
    name, weight, bias = _weights(k, x, weight, bias)
    launch, grid, block, sizes = _by_rows(k.dtype_of(x), f"norm_rows<{{T}}, {name}, {kind}>", x.shape, n, groups)
    launch(grid, block, (x, weight, bias, out, mean, rstd, *sizes, float(eps)))
    return out, mean, rstd


def _backward(k: Any, kind: str, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, n: int, groups: int = 1) -> Any:
    g, x = contiguous(g), contiguous(x)
    out = empty(x.shape, x.dtype)
    name, weight, _ = _weights(k, x, weight, None)
    launch, grid, block, sizes = _by_rows(k.dtype_of(x), f"norm_grad_rows<{{T}}, {name}, {kind}>", x.shape, n, groups)
    launch(grid, block, (g, x, weight, contiguous(mean), contiguous(rstd), out, *sizes))
    return out


@functools.lru_cache(4096)  # shapes recur
def _by_rows(dtype: Any, kernel: str, shape: tuple[int, ...], n: int, groups: int) -> tuple[Any, ...]:
    """Return a kernel of rows of n elements, its geometry and its sizes."""
    rows = prod(shape) // n
    return NORM.get(dtype, kernel), *over_rows(rows, n), ready(rows, n, groups, prod(shape[2:]))


@functools.lru_cache(4096)
def _by_channels(shape: tuple[int, ...], itemsize: int) -> tuple[int, int, bool, tuple[Any, ...]]:
    """Return how many channels there are, and blocks that share one; whether its elements lie side by side; the sizes."""
    samples, channels, inner = shape[0], shape[1], prod(shape[2:])
    # As blocks of a channel each, where enough elements do.
    return channels, _parts(channels, samples * inner), inner * itemsize >= 64, ready(samples, channels, inner)


def _column_sums(
    k: Any, rms: str, g: Any, x: Any, mean: Any, rstd: Any, ndim: int, needs: Sequence[bool]
) -> tuple[Any, Any]:
    """Return the gradients of weight and bias of normalised rows, where needed."""
    if not any(needs):
        return None, None
    g, x, mean, rstd = contiguous(g), contiguous(x), contiguous(mean), contiguous(rstd)
    row = x.shape[x.ndim - ndim :]
    n = prod(row)
    rows, across = x.size // n, -(-n // 32)
    count = max(1, min(_BLOCKS // across, -(-rows // 32)))
    parts = empty((count, 2, n), _wide(k, x))
    NORM.get(k.dtype_of(x), f"norm_sums_columns<{{T}}, {rms}>")(
        (across, count), (32, 8), (g, x, mean, rstd, parts, *_ints(rows, n))
    )
    return _folded(k, x, parts, row, needs)[1:]


def _channel_sums(
    k: Any, g: Any, x: Any, mean: Any, var: Any, groups: int, needs: Sequence[bool], eps: float = -1.0
) -> tuple[Any, Any, Any]:
    """Return the channels' sums (2, C) of g and of g times the normal x, and the latter as gradients where needed.

    Without an eps the variances are the inverse standard deviations.
    """
    if groups and not any(needs):
        return None, None, None
    parts = _channel_parts(k, g, x, mean, var, groups, eps)[0]
    return _folded(k, x, parts, parts.shape[2:], needs)


def _channel_parts(k: Any, g: Any, x: Any, mean: Any, var: Any, groups: int, eps: float) -> tuple[Any, Any, Any]:
    """Return these sums in parts (count, 2, C), and the sizes and the geometry of the launch, a block for each part."""
    g, x = contiguous(g), contiguous(x)
    channels, count, _, sizes = _by_channels(x.shape, x.itemsize)
    parts, geometry = empty((count, 2, channels), _wide(k, x)), ((channels, count), (256,))
    NORM.get(k.dtype_of(x), "channel_sums<{T}>")(
        *geometry, (g, x, contiguous(mean), contiguous(var), parts, *sizes, groups, eps)
    )
    return parts, sizes, geometry


def _folded(k: Any, x: Any, parts: Any, shape: Sequence[int], needs: Sequence[bool]) -> tuple[Any, Any, Any]:
    count, _, n = parts.shape
    sums = empty((2, n), parts.dtype)
    weight, bias = (empty(shape, x.dtype) if need else None for need in needs)
    NORM.get(k.dtype_of(x), "fold_parts<{T}>")(*_warps(2 * n), (parts, sums, bias, weight, *_ints(count, n)))
    return sums, weight, bias


def _warps(count: int) -> tuple[tuple[int], tuple[int, int]]:
    """Return grid and block for a warp each."""
    return (min(-(-count // 8), 1 << 20),), (32, 8)


def _apply(k: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> Any:
    out = empty(x.shape, x.dtype)
    _, channels, inner = _sizes(x)
    weight, bias = _as_wide(k, weight, x), _as_wide(k, bias, x)
    NORM.get(k.dtype_of(x), "channel_apply<{T}>")(
        *over_elements(x.size, 16 // x.itemsize),
        (x, mean, var, weight, bias, out, *_ints(x.size, channels, inner), float(eps)),
    )
    return out


def _sizes(x: Any) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], prod(x.shape[2:])


def _parts(channels: int, per: int) -> int:
    """Return how many blocks share a channel's sum: some thousand in all, each with a thousand elements at least."""
    return max(1, min(_BLOCKS // channels, per // 1024))
