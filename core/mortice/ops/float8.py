"""Conversions from and to float8, whose codes every backend holds as uint8."""

from __future__ import annotations

import functools
from typing import Any

from mortice.backends.float8 import steps, values
from mortice.dtype import DType, float32, int32, int64, uint8
from mortice.modes import no_grad
from mortice.node import TENSOR_KERNELS
from mortice.ops.data import from_host
from mortice.ops.movement import cast, reshape
from mortice.ops.reinterpret import view_dtype
from mortice.ops.sort import bucketize
from mortice.tensor import make


@functools.cache
def _table(d: DType, part: int, kind: DType, device: Any) -> Any:
    """Return a table of `backends.float8` as a tensor: 0, 1 those of `steps`, 2 the `values`."""
    numbers = list((*steps(d), values(d))[part])
    return from_host(numbers, (len(numbers),), kind, device)


def converted(x: Any, dtype: DType) -> Any:
    """Convert from or to float8, which tables say; outside the graph."""
    d, device = x.dtype, x._device.base
    with no_grad():
        if d.stored is not d:
            code, table = make(x._buffer, x._device, uint8, x.shape), _table(d, 2, float32, device)
        else:
            bits = view_dtype(cast(x, float32), int32)
            code, table = bucketize(bits, _table(dtype, 0, int32, device), right=True), _table(dtype, 1, uint8, device)
        found = reshape(TENSOR_KERNELS.take(table, reshape(cast(code, int64), -1), axis=0), x.shape)
        return cast(found, dtype) if d.stored is not d else make(found._buffer, found._device, dtype, x.shape)
