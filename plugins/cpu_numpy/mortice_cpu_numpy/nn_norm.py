"""Normalisation row by row in place: each row is read for its mean, written once centred, and scaled where it lies."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mortice_cpu_numpy.nn_tools import FULL, silent


def _plain(x: Any, *others: Any) -> bool:
    """Tell whether everything has x's full precision; the default bodies see to the rest."""
    return x.dtype in FULL and x.size > 0 and all(o is None or o.dtype == x.dtype for o in others)


class NormOverrides:
    """layer_norm, rms_norm, group_norm, batch_norm and their gradients."""

    # ---- rows of the last axes ----

    @silent
    def layer_norm(self, x: Any, weight: Any = None, bias: Any = None, *, ndim: int, eps: float = 1e-5) -> Any:
        if not _plain(x, weight, bias):
            return super().layer_norm(x, weight, bias, ndim=ndim, eps=eps)
        rows, stats = _rows(x, ndim)
        out, mean, rstd = _normal(rows, eps)
        if weight is not None:
            np.multiply(out, weight.reshape(-1), out=out)
        if bias is not None:
            np.add(out, bias.reshape(-1), out=out)
        return out.reshape(x.shape), mean.reshape(stats), rstd.reshape(stats)

    @silent
    def layer_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, rstd: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> Any:
        if not _plain(g, x, weight, mean, rstd):
            return super().layer_norm_grad(g, x, weight, mean, rstd, ndim=ndim, eps=eps)
        normal, rstd = _normal_again(_rows(x, ndim)[0], mean, rstd, eps)
        rows = _rows(g, ndim)[0]
        if weight is not None:
            rows = rows * weight.reshape(-1)
        return _pull(rows, normal, rstd).reshape(g.shape)

    @silent
    def layer_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, rstd: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> Any:
        if not _plain(g, x, mean, rstd):
            return super().layer_norm_weight_grad(g, x, mean, rstd, ndim=ndim, eps=eps)
        normal, _ = _normal_again(_rows(x, ndim)[0], mean, rstd, eps)
        np.multiply(normal, _rows(g, ndim)[0], out=normal)
        return np.add.reduce(normal, axis=0).reshape(g.shape[g.ndim - ndim :])

    @silent
    def rms_norm(self, x: Any, weight: Any = None, *, ndim: int, eps: float) -> Any:
        if not _plain(x, weight):
            return super().rms_norm(x, weight, ndim=ndim, eps=eps)
        rows, stats = _rows(x, ndim)
        rrms = _inverse_root(np.vecdot(rows, rows), rows.shape[1], eps)
        out = np.multiply(rows, rrms)
        if weight is not None:
            np.multiply(out, weight.reshape(-1), out=out)
        return out.reshape(x.shape), rrms.reshape(stats)

    @silent
    def rms_norm_grad(
        self, g: Any, x: Any, weight: Any = None, rrms: Any = None, *, ndim: int, eps: float
    ) -> Any:
        if rrms is None or not _plain(g, x, weight, rrms):
            return super().rms_norm_grad(g, x, weight, rrms, ndim=ndim, eps=eps)
        rrms = rrms.reshape(-1, 1)
        normal = np.multiply(_rows(x, ndim)[0], rrms)
        rows = _rows(g, ndim)[0]
        if weight is not None:
            rows = rows * weight.reshape(-1)
        along = np.vecdot(rows, normal)[:, None] / rows.shape[1]
        np.multiply(normal, along, out=normal)
        np.subtract(rows, normal, out=normal)
        return np.multiply(normal, rrms, out=normal).reshape(g.shape)

    # ---- groups of channels ----

    @silent
    def group_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float = 1e-5
    ) -> Any:
        if not _plain(x, weight, bias):
            return super().group_norm(x, weight, bias, groups=groups, eps=eps)
        n, channels, *sizes = x.shape
        out, mean, rstd = _normal(x.reshape(n * groups, channels // groups * prod(sizes)), eps)
        out = out.reshape(n, channels, prod(sizes))
        if weight is not None:
            np.multiply(out, weight[:, None], out=out)
        if bias is not None:
            np.add(out, bias[:, None], out=out)
        return out.reshape(x.shape), mean.reshape(n, groups), rstd.reshape(n, groups)

    @silent
    def group_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, rstd: Any = None, *, groups: int, eps: float = 1e-5
    ) -> Any:
        if not _plain(g, x, weight, mean, rstd):
            return super().group_norm_grad(g, x, weight, mean, rstd, groups=groups, eps=eps)
        n, channels, *sizes = x.shape
        rows = (n * groups, channels // groups * prod(sizes))
        normal, rstd = _normal_again(x.reshape(rows), mean, rstd, eps)
        if weight is not None:
            g = g.reshape(n, channels, prod(sizes)) * weight[:, None]
        return _pull(g.reshape(rows), normal, rstd).reshape(x.shape)

    # ---- channels over the batch ----

    @silent
    def batch_norm(self, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
        if not _plain(x, weight, bias):
            return super().batch_norm(x, weight, bias, eps=eps)
        parts, channels, length = _channels(x)
        count = len(parts) * length
        mean = _channel_sum(parts, channels) / count
        out = np.subtract(parts, mean.repeat(length))
        var = _channel_dot(out, out, channels) / count
        scale = 1 / np.sqrt(var + x.dtype.type(eps))
        np.multiply(out, (scale if weight is None else scale * weight).repeat(length), out=out)
        if bias is not None:
            np.add(out, bias.repeat(length), out=out)
        return out.reshape(x.shape), mean, var

    @silent
    def batch_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, var: Any = None, *, eps: float = 1e-5
    ) -> Any:
        if mean is None or var is None or not _plain(g, x, weight, mean, var):
            return super().batch_norm_grad(g, x, weight, mean, var, eps=eps)
        parts, channels, length = _channels(x)
        pulled = g.reshape(parts.shape)
        count = len(parts) * length
        rstd = 1 / np.sqrt(var + x.dtype.type(eps))
        out = np.subtract(parts, mean.repeat(length))
        # All that depends on the channel alone is folded into two numbers each.
        along = _channel_dot(pulled, out, channels) * (rstd * rstd) / count
        np.multiply(out, along.repeat(length), out=out)
        np.subtract(pulled, out, out=out)
        np.subtract(out, (_channel_sum(pulled, channels) / count).repeat(length), out=out)
        np.multiply(out, (rstd if weight is None else rstd * weight).repeat(length), out=out)
        return out.reshape(x.shape)

    @silent
    def batch_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, var: Any = None, *, eps: float = 1e-5
    ) -> Any:
        if mean is None or var is None or not _plain(g, x, mean, var):
            return super().batch_norm_weight_grad(g, x, mean, var, eps=eps)
        parts, channels, length = _channels(x)
        centred = np.subtract(parts, mean.repeat(length))
        return _channel_dot(g.reshape(parts.shape), centred, channels) / np.sqrt(var + x.dtype.type(eps))

    @silent
    def batch_norm_eval(
        self, x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
    ) -> Any:
        if not _plain(x, mean, var, weight, bias):
            return super().batch_norm_eval(x, mean, var, weight, bias, eps=eps)
        scale = 1 / np.sqrt(var + x.dtype.type(eps))
        parts, _, length = _channels(x)
        out = np.subtract(parts, mean.repeat(length))
        np.multiply(out, (scale if weight is None else scale * weight).repeat(length), out=out)
        if bias is not None:
            np.add(out, bias.repeat(length), out=out)
        return out.reshape(x.shape)


def _rows(x: Any, ndim: int) -> tuple[Any, tuple[int, ...]]:
    """Return x as a matrix of rows, and the shape of a statistic of each."""
    lead = x.shape[: x.ndim - ndim]
    return np.asarray(x.reshape(prod(lead), prod(x.shape[x.ndim - ndim :])), order="C"), (*lead, *[1] * ndim)


def _inverse_root(total: Any, count: int, eps: float) -> Any:
    total = total[:, None]
    np.divide(total, count, out=total)
    np.add(total, float(eps), out=total)  # NumPy would take a list
    np.sqrt(total, out=total)
    return np.divide(1, total, out=total)


def _normal(rows: Any, eps: float) -> tuple[Any, Any, Any]:
    """Return the normalised rows, their means and inverse deviations."""
    mean = np.add.reduce(rows, axis=1, keepdims=True)
    np.divide(mean, rows.shape[1], out=mean)
    out = np.subtract(rows, mean)
    rstd = _inverse_root(np.vecdot(out, out), rows.shape[1], eps)
    return np.multiply(out, rstd, out=out), mean, rstd


def _normal_again(rows: Any, mean: Any, rstd: Any, eps: float) -> tuple[Any, Any]:
    """Return the normalised rows and inverse deviations, from the forward's statistics if they were kept."""
    if mean is None or rstd is None:
        normal, _, rstd = _normal(rows, eps)
        return normal, rstd
    rstd = rstd.reshape(-1, 1)
    normal = np.subtract(rows, mean.reshape(-1, 1))
    return np.multiply(normal, rstd, out=normal), rstd


def _pull(g: Any, normal: Any, rstd: Any) -> Any:
    """Take gradients of normalised rows back; writes over `normal`."""
    count = g.shape[1]
    mean = np.add.reduce(g, axis=1, keepdims=True)
    np.divide(mean, count, out=mean)
    along = np.vecdot(g, normal)[:, None]
    np.divide(along, count, out=along)
    np.multiply(normal, along, out=normal)
    np.subtract(g, normal, out=normal)
    np.subtract(normal, mean, out=normal)
    return np.multiply(normal, rstd, out=normal)


def _channels(x: Any) -> tuple[Any, int, int]:
    """Return (N, C, *sizes) as (N, C * length), C and length: a number a channel, repeated, meets whole rows."""
    length = prod(x.shape[2:])
    return x.reshape(len(x), x.shape[1] * length), x.shape[1], length


def _channel_sum(x: Any, channels: int) -> Any:
    return np.add.reduce(np.add.reduce(x, axis=0).reshape(channels, x.shape[1] // channels), axis=1)


def _channel_dot(x: Any, y: Any, channels: int) -> Any:
    n, length = len(x), x.shape[1] // channels
    if length < 64:
        # Too short for a call of BLAS each.
        return np.add.reduce(np.einsum("nc,nc->c", x, y).reshape(channels, length), axis=1)
    shape = (n, channels, length)
    return np.add.reduce(np.vecdot(x.reshape(shape), y.reshape(shape)), axis=0)
