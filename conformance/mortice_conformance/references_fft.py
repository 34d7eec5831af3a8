"""References of Fourier transforms and frames: the defining sums, in more digits than a result shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mortice_conformance.references import LONG

_TURN = LONG("6.28318530717958647692528676655900577")


def _roots(n: int, sign: int) -> Any:
    """Return the matrix of exp(sign * 2 pi i * row * column / n)."""
    angle = (np.outer(np.arange(n), np.arange(n)) % n) * (_TURN / n)
    return np.cos(angle) + sign * 1j * np.sin(angle)


def _sums(x: Any, axes: Any, norm: str, sign: int) -> Any:
    out = np.asarray(x, np.clongdouble)
    for axis in axes:
        out = np.moveaxis(np.moveaxis(out, axis, -1) @ _roots(out.shape[axis], sign), -1, axis)
    points = math.prod(np.shape(x)[a] for a in axes)
    divide = {"backward": sign > 0, "forward": sign < 0, "ortho": True}[norm]
    return out / (np.sqrt(LONG(points)) if norm == "ortho" else points if divide else 1)


def fftn(x: Any, axes: Any, norm: str) -> Any:
    """Return the transform along axes."""
    return _sums(x, axes, norm, -1).astype(np.complex128)


def ifftn(x: Any, axes: Any, norm: str) -> Any:
    """Return the transform back along axes."""
    return _sums(x, axes, norm, 1).astype(np.complex128)


def rfftn(x: Any, axes: Any, norm: str) -> Any:
    """Return the transform along axes, the first half of the last of them."""
    return np.take(fftn(x, axes, norm), np.arange(np.shape(x)[axes[-1]] // 2 + 1), axes[-1])


def irfftn(x: Any, axes: Any, n: int, norm: str) -> Any:
    """Return n real numbers along the last of the axes: places beyond the half are conjugates, the lone ones are real."""
    half = np.moveaxis(_sums(x, axes[:-1], norm, 1), axes[-1], -1)
    whole = np.zeros((*half.shape[:-1], n), half.dtype)
    whole[..., : n // 2 + 1] = half
    whole[..., n // 2 + 1 :] = np.conj(half[..., 1 : (n + 1) // 2][..., ::-1])
    back = np.moveaxis(_sums(whole, (-1,), norm, 1), -1, axes[-1])
    return np.real(back).astype(np.float64)


def frames(x: Any, window: Any, step: int) -> Any:
    """Return the frames that fit, `step` apart, times the window."""
    size = len(window)
    starts = range(0, np.shape(x)[-1] - size + 1, step)
    return np.stack([x[..., i : i + size] * window for i in starts], axis=-2)


def overlap_add(x: Any, step: int, length: int) -> Any:
    """Return the sum of frames where they lie."""
    out = np.zeros((*np.shape(x)[:-2], length), x.dtype)
    for i in range(np.shape(x)[-2]):
        out[..., i * step : i * step + np.shape(x)[-1]] += x[..., i, :]
    return out


def stft(x: Any, window: Any, step: int) -> Any:
    """Return (..., frequencies, frames) of a real signal, without padding."""
    cut = frames(x, window, step)
    return np.swapaxes(rfftn(cut, (cut.ndim - 1,), "backward"), -1, -2)


def istft(x: Any, window: Any, step: int) -> Any:
    """Return the signal of (..., frequencies, frames), without padding, for a real window without zeros."""
    window = np.real(window)
    spectrum = np.swapaxes(x, -1, -2)
    count, size = spectrum.shape[-2], len(window)
    cut = irfftn(spectrum, (spectrum.ndim - 1,), size, "backward") * window
    length = size + step * (count - 1)
    return overlap_add(cut, step, length) / overlap_add(np.broadcast_to(window**2, (count, size)), step, length)
