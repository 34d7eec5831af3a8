"""mortice.fft: Fourier transforms under the names of `torch.fft`. The functions themselves are in `mortice.ops`."""

from mortice import misuse as _misuse
from mortice.ops.fft import (
    fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, ihfft, ihfft2, ihfftn,
    irfft, irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_misuse.guard_namespace(globals())
