"""The Fourier transform extension: `mortice.fft` in the standard's names."""

from __future__ import annotations

from typing import Any

import mortice as mt

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Transform along an axis."""
    return mt.fft.fft(x, n, axis, norm)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Invert `fft`."""
    return mt.fft.ifft(x, n, axis, norm)


def fftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """Transform along several axes."""
    return mt.fft.fftn(x, s, axes, norm)


def ifftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """Invert `fftn`."""
    return mt.fft.ifftn(x, s, axes, norm)


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Transform real numbers along an axis; the half that mirrors the other is left out."""
    return mt.fft.rfft(x, n, axis, norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Invert `rfft`, to real numbers."""
    return mt.fft.irfft(x, n, axis, norm)


def rfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """Transform real numbers along several axes."""
    return mt.fft.rfftn(x, s, axes, norm)


def irfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """Invert `rfftn`, to real numbers."""
    return mt.fft.irfftn(x, s, axes, norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Transform what has Hermitian symmetry, to real numbers."""
    return mt.fft.hfft(x, n, axis, norm)


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Invert `hfft`."""
    return mt.fft.ihfft(x, n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: mt.dtype | None = None, device: Any = None) -> Any:
    """Return the frequencies of `fft` for n samples that are d apart."""
    return mt.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: mt.dtype | None = None, device: Any = None) -> Any:
    """Return the frequencies of `rfft` for n samples that are d apart."""
    return mt.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Move frequency 0 to the middle."""
    return mt.fft.fftshift(x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Undo `fftshift`."""
    return mt.fft.ifftshift(x, axes)
