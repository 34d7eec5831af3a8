"""Float8: what its 256 codes stand for, and which code a number is rounded to. Backends hold such tensors as uint8 codes."""

from __future__ import annotations

import functools
import struct
from bisect import bisect_right
from math import inf, nan

from mortice.dtype import DType

# The bits of the fraction, the bias of the exponent, and the least code without a number: fnuz has that, nan, where -0 would be.
_FORMATS = {"e4m3fn": (3, 7, 127), "e5m2": (2, 15, 124), "e4m3fnuz": (3, 8, 128), "e5m2fnuz": (2, 16, 128), "e8m0fnu": (0, 127, 255)}


@functools.cache
def values(d: DType) -> tuple[float, ...]:
    """Return the number of each code."""
    fraction, bias, end = _FORMATS[d.name[7:]]
    if not fraction:  # powers of 2 alone, without a sign
        return (*[2.0 ** (code - bias) for code in range(end)], nan)
    one = 1 << fraction
    found = [(c % one + (c >= one) * one) * 2.0 ** (max(c >> fraction, 1) - bias - fraction) for c in range(end)]
    found += ([inf] * (end == 124) + [nan] * 3)[: 128 - end]
    return (*found, nan if end == 128 else -0.0, *[-v for v in found[1:]])


@functools.cache
def steps(d: DType) -> tuple[list[int], bytes]:
    """Return the float32 bits, as int32 in order, from which on numbers have the next one of the codes, and these codes.

    As int32 the negative numbers come first, from -0 down, so that one search finds the code of any bits.
    """
    end, ends = _FORMATS[d.name[7:]][2], [*values(d)]
    powers = end == 255  # ties go up there, elsewhere to even codes
    # e4m3fn ends at its greatest number; behind that of others lies inf or nan.
    ends = ends[:end] if end == 127 else [*ends[:end], 2.0**128 if powers else 2 * ends[end - 1] - ends[end - 2]]
    found = [bits_of((a + b) / 2) + (not powers and not code & 1) for code, (a, b) in enumerate(zip(ends, ends[1:]))]
    if powers:
        found[0] = bits_of(ends[0]) + 1  # what is no normal number of float32 is rounded up
    found.append(bits_of(inf) + 1)  # nan
    codes = [*range(len(ends)), max(end, 127)]
    below = codes if powers else [c | 128 if c or end < 128 else 0 for c in codes]
    return [*[b - (1 << 31) for b in found], 0, *found], bytes([*below, *codes])


@functools.cache
def codes(d: DType) -> bytes:
    """Return the code of each number's upper 16 bits as float32, of which the last is also set where a bit below them is.

    That says enough: between two codes lies a number whose last bit there is 0, and it only counts on which side one is.
    """
    starts, found = steps(d)
    ends = [-(1 << 15), *[-(-s >> 16) for s in starts], 1 << 15]
    table = b"".join([bytes([code]) * (b - a) for code, a, b in zip(found, ends, ends[1:])])
    return table[1 << 15 :] + table[: 1 << 15]


def bits_of(value: float) -> int:
    """Return the bits of a number as float32, as an int32."""
    try:
        return struct.unpack("=i", struct.pack("=f", value))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return bits_of(-inf if value < 0 else inf)


def code_of(value: float, d: DType) -> int:
    """Return the code that a number is rounded to."""
    starts, codes = steps(d)
    return codes[bisect_right(starts, bits_of(value))]
