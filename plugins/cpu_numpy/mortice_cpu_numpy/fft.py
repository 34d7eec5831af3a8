"""NumPy's transforms (pocketfft) in place of the default bodies, without its reports of floating point events."""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice_cpu_numpy.quiet import quiet


def _along(transform: Any, whole: str, divided: str) -> Any:
    """Wrap a transform along one axis; with `norm` as `whole` it has no factor, as `divided` it has 1 / points.

    NumPy takes a missing factor for an integer, and so computes single precision in double, five times slower. Such a
    transform is divided and then multiplied by what was divided by, rounding included.
    """

    def kernel(x: Any, n: int, axis: int, norm: str) -> Any:
        if norm != whole or x.dtype.itemsize > (8 if x.dtype.kind == "c" else 4):
            return transform(x, n, axis, norm)
        out = transform(x, n, axis, divided)
        out *= np.float32(1 / np.float64(np.float32(1) / np.float32(n)))
        return out

    return quiet(kernel)


_fft, _ifft = _along(np.fft.fft, "backward", "forward"), _along(np.fft.ifft, "forward", "backward")
_rfft, _irfft = _along(np.fft.rfft, "backward", "forward"), _along(np.fft.irfft, "forward", "backward")


class FFTOverrides:
    """One axis after another, as np.fft does it too. It keeps single precision, as kernels are to."""

    def fftn(self, x: Any, *, axes: tuple[int, ...], norm: str) -> Any:
        for axis in axes:
            x = _fft(x, x.shape[axis], axis, norm)
        return x

    def ifftn(self, x: Any, *, axes: tuple[int, ...], norm: str) -> Any:
        for axis in axes:
            x = _ifft(x, x.shape[axis], axis, norm)
        return x

    def rfftn(self, x: Any, *, axes: tuple[int, ...], norm: str) -> Any:
        *rest, last = axes
        return self.fftn(_rfft(x, x.shape[last], last, norm), axes=tuple(rest), norm=norm)

    def irfftn(self, x: Any, *, axes: tuple[int, ...], n: int, norm: str) -> Any:
        *rest, last = axes
        return _irfft(self.ifftn(x, axes=tuple(rest), norm=norm), n, last, norm)
