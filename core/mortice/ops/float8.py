"""Conversions from and to float8, whose codes every backend holds as uint8."""

from __future__ import annotations

import functools
from typing import Any

from mortice.backends.float8 import codes, values
from mortice.dtype import DType, float32, int32, int64, uint8
from mortice.modes import no_grad
from mortice.node import TENSOR_KERNELS
from mortice.ops.data import from_host
from mortice.ops.movement import cast, reshape
from mortice.ops.reinterpret import view_dtype
from mortice.tensor import make


@functools.cache
def _table(d: DType, coding: bool, device: Any) -> Any:
    """Return `codes` or `values` of `backends.float8` as a tensor."""
    numbers = list(codes(d) if coding else values(d))
    return from_host(numbers, (len(numbers),), uint8 if coding else float32, device)


def converted(x: Any, dtype: DType) -> Any:
    """Convert from or to float8, which tables say; outside the graph."""
    d, device, k = x.dtype, x._device.base, TENSOR_KERNELS
    coding = d.stored is d
    with no_grad():
        if coding and x._device.backend.float8_codes is not None:
            data = x._device.backend.float8_codes(cast(x, float32)._buffer, codes(dtype))
            return make(data, x._device, dtype, x.shape)
        if coding:
            bits = view_dtype(cast(x, float32), int32)
            lost = k.add(k.bitwise_and(bits, 0xFFFF), 0xFFFF)  # its bit 16 is set where one below is
            place = k.bitwise_and(k.bitwise_right_shift(k.bitwise_or(bits, lost), 16), 0xFFFF)
        else:
            place = make(x._buffer, x._device, uint8, x.shape)
        table = _table(dtype if coding else d, coding, device)
        found = reshape(k.take(table, reshape(cast(place, int64), -1), axis=0), x.shape)
        return make(found._buffer, found._device, dtype, x.shape) if coding else cast(found, dtype)
