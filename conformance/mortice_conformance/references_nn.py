"""References of the neural network ops, in plain loops over windows: slow, and easy to check by eye."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mortice_conformance.references import logsumexp, softmax


def adjoint(forward: Callable[[Any], Any], shape: tuple[int, ...], y: Any) -> Any:
    """Return A^T y of the linear map `forward` on arrays of `shape`, one unit vector at a time."""
    out = np.zeros(shape, y.dtype)
    for at in np.ndindex(*shape):
        unit = np.zeros(shape, y.dtype)
        unit[at] = 1
        out[at] = np.sum(forward(unit) * y)
    return out


# ---- convolution ----


def windows(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: float = 0.0, ceil: bool = False, beyond: Any = None
) -> tuple[Any, tuple[int, ...]]:
    """Return the windows of the trailing axes: (..., *counts, *kernel), and the counts.

    The border is `fill`. With `ceil` a last window may reach beyond it, where it meets `beyond`, but must not begin there.
    """
    nd = len(kernel)
    sizes = x.shape[x.ndim - nd :]
    x = np.pad(x, [(0, 0)] * (x.ndim - nd) + [(p, p) for p in padding], constant_values=fill)
    counts = []
    for i, (n, p, m, s, d) in enumerate(zip(sizes, padding, kernel, stride, dilation)):
        span = d * (m - 1) + 1
        count = (n + 2 * p - span) // s + 1
        if ceil and (n + 2 * p - span) % s and count * s < n + p:
            more = count * s + span - (n + 2 * p)
            count += 1
            x = np.pad(x, [(0, more if a == x.ndim - nd + i else 0) for a in range(x.ndim)],
                       constant_values=fill if beyond is None else beyond)  # fmt: skip
        counts.append(count)
    out = np.empty((*x.shape[: x.ndim - nd], *counts, *kernel), x.dtype)
    for at in itertools.product(*map(range, counts)):
        region = tuple(slice(i * s, i * s + d * (m - 1) + 1, d) for i, s, d, m in zip(at, stride, dilation, kernel))
        out[(..., *at, *[slice(None)] * nd)] = x[(..., *region)]
    return out, tuple(counts)


def conv(x: Any, w: Any, b: Any = None, *, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Correlate (N, C, *sizes) with (O, C / groups, *kernel)."""
    kernel = w.shape[2:]
    seen, counts = windows(x, kernel, stride, padding, dilation)
    n, nd = x.shape[0], len(kernel)
    out = np.zeros((n, w.shape[0], *counts), np.result_type(x, w))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for o in range(w.shape[0]):
        first = (o // per_out) * per_in
        part = seen[:, first : first + per_in]
        taps = w[o].reshape(per_in, *[1] * nd, *kernel)
        out[:, o] = np.sum(part * taps, axis=(1, *range(2 + nd, 2 + 2 * nd)))
    return out if b is None else out + b.reshape(-1, *[1] * nd)


def conv_input_grad(y: Any, w: Any, b: Any = None, *, x_shape: Any, **attrs: Any) -> Any:
    """Transposed convolution."""
    out = adjoint(lambda x: conv(x, w, **attrs), tuple(x_shape), y)
    return out if b is None else out + b.reshape(-1, *[1] * (len(x_shape) - 2))


def conv_weight_grad(y: Any, x: Any, *, w_shape: Any, **attrs: Any) -> Any:
    """Return the gradient of the filters."""
    return adjoint(lambda w: conv(x, w, **attrs), tuple(w_shape), y)


def im2col(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Return sliding blocks as columns (N, C * taps, windows)."""
    seen, counts = windows(x, kernel, stride, padding, dilation)
    nd = len(kernel)
    taps = np.moveaxis(seen, range(2 + nd, 2 + 2 * nd), range(2, 2 + nd))
    return taps.reshape(x.shape[0], x.shape[1] * int(np.prod(kernel)), int(np.prod(counts)))


def col2im(x: Any, *, output_size: Any, kernel: Any, **attrs: Any) -> Any:
    """Add columns up where their blocks lie."""
    shape = (x.shape[0], x.shape[1] // int(np.prod(kernel)), *output_size)
    return adjoint(lambda image: im2col(image, kernel=kernel, **attrs), shape, x)


# ---- pooling ----


def max_pool(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> tuple[Any, Any]:
    """Return maxima and their flat positions among the spatial elements."""
    nd = len(kernel)
    places = np.arange(int(np.prod(x.shape[x.ndim - nd :]))).reshape(x.shape[x.ndim - nd :])
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    seen, counts = windows(x, kernel, stride, padding, dilation, low, ceil_mode)
    at, _ = windows(np.broadcast_to(places, x.shape), kernel, stride, padding, dilation, -1, ceil_mode)
    flat, flat_at = (a.reshape(*a.shape[: a.ndim - nd], -1) for a in (seen, at))
    best = np.argmax(flat, -1)[..., None]
    return np.take_along_axis(flat, best, -1)[..., 0], np.take_along_axis(flat_at, best, -1)[..., 0]


def avg_pool(
    x: Any, *, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor_override: Any
) -> Any:
    """Return means of windows."""
    nd = len(kernel)
    ones = (1,) * nd
    total = windows(x, kernel, stride, padding, ones, 0, ceil_mode)[0].sum(axis=tuple(range(-nd, 0)))
    if divisor_override:
        return total / divisor_override
    # What lies beyond the border, where `ceil_mode` lets a window reach, counts in no case.
    counted = windows(np.ones_like(x), kernel, stride, padding, ones, int(count_include_pad), ceil_mode, 0)[0]
    return total / counted.sum(axis=tuple(range(-nd, 0)))


def _parts(n: int, count: int) -> list[slice]:
    return [slice(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]


def _adaptive(x: Any, output_size: Any) -> Any:
    nd = len(output_size)
    sizes = x.shape[x.ndim - nd :]
    for at in itertools.product(*[range(c) for c in output_size]):
        yield at, tuple(_parts(n, c)[i] for n, c, i in zip(sizes, output_size, at))


def adaptive_avg_pool(x: Any, *, output_size: Any) -> Any:
    """Return means of parts as equal as can be."""
    out = np.empty((*x.shape[: x.ndim - len(output_size)], *output_size), x.dtype)
    for at, region in _adaptive(x, output_size):
        out[(..., *at)] = x[(..., *region)].mean(axis=tuple(range(-len(output_size), 0)))
    return out


def adaptive_max_pool(x: Any, *, output_size: Any) -> tuple[Any, Any]:
    """Return maxima of parts and their flat positions."""
    nd = len(output_size)
    sizes = x.shape[x.ndim - nd :]
    places = np.arange(int(np.prod(sizes))).reshape(sizes)
    shape = (*x.shape[: x.ndim - nd], *output_size)
    values, found = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    for at, region in _adaptive(x, output_size):
        part = x[(..., *region)].reshape(*x.shape[: x.ndim - nd], -1)
        best = np.argmax(part, -1)
        values[(..., *at)] = np.max(part, -1)
        found[(..., *at)] = places[region].reshape(-1)[best]
    return values, found


# ---- normalisation ----


def normalized(x: Any, axes: Any, eps: float) -> tuple[Any, Any, Any, Any]:
    """Return (x - mean) / deviation over axes, with the mean, the variance and 1 / deviation, axes kept."""
    mean = x.mean(axis=axes, keepdims=True)
    var = x.var(axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(var + eps)
    return (x - mean) * rstd, mean, var, rstd


def affine(x: Any, weight: Any, bias: Any, channel: int | None) -> Any:
    """Multiply by a weight and add a bias, along the channel axis or the trailing ones."""
    shape = (-1, *[1] * (x.ndim - 2)) if channel is not None else None
    for p, fn in ((weight, np.multiply), (bias, np.add)):
        if p is not None:
            x = fn(x, p if shape is None else p.reshape(shape))
    return x


def attention(
    q: Any, k: Any, v: Any, mask: Any, keep: Any, *, causal: bool, scale: Any, dropout_p: float
) -> tuple[Any, Any]:
    """Return (weights @ values, log of the sum of exponentials)."""
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = softmax(scores, -1)
    if keep is not None:
        weights = weights * keep / (1 - dropout_p)
    return weights @ v, logsumexp(scores, axis=-1)


# ---- resizing ----


def pad(x: Any, *, widths: Any, mode: str, value: Any = 0) -> Any:
    """Extend each axis, or cut where negative."""
    grown = [(max(b, 0), max(a, 0)) for b, a in widths]
    if mode == "constant":
        out = np.pad(x, grown, constant_values=value)
    else:
        out = np.pad(x, grown, mode={"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])  # type: ignore[call-overload]
    return out[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(out.shape, widths))]


def interpolate(x: Any, *, size: Any, mode: str, align_corners: bool, scales: Any, antialias: bool) -> Any:
    """Resample the trailing axes, nearest or linear, one axis after another."""
    for axis, count in zip(range(x.ndim - len(size), x.ndim), size):
        n = x.shape[axis]
        at = np.arange(count)
        if mode == "nearest":
            x = np.take(x, np.minimum(np.floor(at * (n / count)).astype(int), n - 1), axis)
            continue
        if mode == "area":
            x = np.stack([np.take(x, range(p.start, p.stop), axis).mean(axis) for p in _parts(n, count)], axis)
            continue
        where = (
            at * ((n - 1) / (count - 1))
            if align_corners and count > 1
            else np.maximum((at + 0.5) * (n / count) - 0.5, 0)
        )
        low = np.minimum(np.floor(where).astype(int), n - 1)
        high = np.minimum(low + 1, n - 1)
        part = (where - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x
