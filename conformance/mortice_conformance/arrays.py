"""NumPy on the kit's side: rounding to any dtype, distance in ulp, and the way of values into a backend and out again.

References work on wide arrays: float64 for floats, complex128 for complex, the dtype's own integers and bools.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice.backends import DTYPES, DType, HostBuffer
from mortice.dtype import finfo, iinfo

BY_NAME = {d.name: d for d in DTYPES}


def native(dtype: DType) -> Any:
    """Return the NumPy dtype of host values; bfloat16 values are kept in float32."""
    return np.dtype(np.float32 if dtype.name == "bfloat16" else dtype.name)


def wide(dtype: DType) -> Any:
    """Return the NumPy dtype that references compute in."""
    return np.dtype({"f": np.float64, "c": np.complex128}.get(dtype.kind, dtype.name))


def bfloat16_bits(x: Any) -> Any:
    """Round float32 to bfloat16, ties to even, as uint16 words."""
    words = np.array(x, np.float32, ndmin=1).view(np.uint32)
    up = ((words >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    bits = ((words + up) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(words.view(np.float32)), np.uint16(0x7FC0), bits).astype(np.uint16).reshape(np.shape(x))


def bfloat16_values(bits: Any) -> Any:
    """Return the float32 values of bfloat16 words."""
    return (np.array(bits, np.uint32, ndmin=1) << np.uint32(16)).view(np.float32).reshape(np.shape(bits))


def rounded(x: Any, dtype: DType) -> Any:
    """Round values to what `dtype` holds, in its native NumPy dtype."""
    with np.errstate(all="ignore"):
        if dtype.name == "bfloat16":
            return bfloat16_values(bfloat16_bits(np.asarray(x).astype(np.float32)))
        if dtype.kind not in "c" and np.asarray(x).dtype.kind == "c":
            x = np.asarray(x).real
        return np.asarray(x).astype(native(dtype))


def widened(x: Any) -> Any:
    """Return values as references take them."""
    x = np.asarray(x)
    return x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))


def host_buffer(x: Any, dtype: DType) -> HostBuffer:
    """Return values as a host buffer of `dtype`."""
    if dtype.name == "bfloat16":
        return HostBuffer(bfloat16_bits(x).tobytes(), np.shape(x), dtype)
    x = np.ascontiguousarray(np.asarray(x, native(dtype))).reshape(np.shape(x))
    return (
        HostBuffer(x.tobytes(), x.shape, dtype)
        if dtype.name == "uint8" or not x.size
        else HostBuffer(x.data, x.shape, dtype)
    )


def from_host_buffer(host: HostBuffer) -> Any:
    """Return the values of a host buffer in the dtype's native NumPy dtype."""
    data = host.tobytes()
    if host.dtype.name == "bfloat16":
        return bfloat16_values(np.frombuffer(data, np.uint16)).reshape(host.shape)
    return np.frombuffer(data, native(host.dtype)).reshape(host.shape)


def spacing(x: Any, dtype: DType) -> Any:
    """Return the distance from |x| to the next number of `dtype`, never below that of the smallest normal."""
    info = finfo(dtype)
    x = np.abs(np.asarray(x, np.float64))
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(x), np.maximum(x, info.tiny), 1.0))
        return np.ldexp(1.0, exponent - 1) * info.eps


def ulps(got: Any, want: Any, dtype: DType, scale: Any = None) -> Any:
    """Return the distance of each element from the wide reference, in ulp of `dtype` at the reference or at `scale`.

    Equal infinities and two nans are 0 apart; a nan or infinity on one side alone is inf apart, but for an overflow at
    the edge of the range, which counts as the distance to the next power of two.
    """
    got, want = widened(got), widened(want)
    if dtype.is_complex or got.dtype.kind == "c" or want.dtype.kind == "c":
        size = np.abs(want) if scale is None else scale
        parts = [
            _real_ulps(np.real(got), np.real(want), dtype, size),
            _real_ulps(np.imag(got), np.imag(want), dtype, size),
        ]
        odd = ~np.isfinite(np.real(want)) | ~np.isfinite(np.imag(want))
        far = np.where(np.isfinite(np.real(got)) & np.isfinite(np.imag(got)), np.inf, 0.0)
        return np.where(odd, far, np.maximum(*parts))
    return _real_ulps(got, want, dtype, want if scale is None else scale)


def _real_ulps(got: Any, want: Any, dtype: DType, scale: Any) -> Any:
    real = dtype.to_real()
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    with np.errstate(all="ignore"):
        target = np.asarray(rounded(want, real), np.float64)
        top = finfo(real).max
        beyond = top * (1 + finfo(real).eps / 2)
        held = np.where(np.isinf(got) & np.isfinite(want), np.copysign(beyond, got), got)
        aim = np.where(np.isinf(target) & np.isfinite(want), np.copysign(beyond, want), want)
        apart = np.abs(held - aim) / spacing(np.minimum(np.abs(scale), top), real)
    same = (got == target) | (np.isnan(got) & np.isnan(want))
    apart = np.where(np.isfinite(apart), apart, np.inf)
    return np.where(same, 0.0, apart)


def limits(dtype: DType) -> tuple[float, float]:
    """Return the smallest and largest value of a dtype."""
    if dtype.kind == "b":
        return 0, 1
    info: Any = iinfo(dtype) if dtype.kind in "ui" else finfo(dtype)
    return info.min, info.max


def describe(x: Any, at: Any) -> str:
    """Return one element of an array as text."""
    return repr(np.asarray(x)[at].item())
