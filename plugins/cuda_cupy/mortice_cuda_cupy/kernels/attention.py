"""Attention of float32 and float64 by products of matrices, with one launch between them; the core's body has masks and dropout."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import together
from mortice_cuda_cupy.kernels.launch import Program, contiguous, empty, float32, float64, over_rows, prod
from mortice_cuda_cupy.matmul import lies

ATTENTION = Program("attention.cu", "attend_rows<{T}>", "attend_grad_rows<{T}>", types=(float32, float64))
_MOST = 1 << 30  # bytes of scores that are there as a whole: beyond, the core goes through them in parts


def fits(k: Any, query: Any, key: Any, value: Any, mask: Any, keep: Any) -> bool:
    """Tell whether attention is computed here."""
    if mask is not None or keep is not None or k.dtype_of(query) not in ATTENTION.types:
        return False
    lead = query.shape[:-2]
    if not (query.dtype == key.dtype == value.dtype and lead == key.shape[:-2] == value.shape[:-2]):
        return False
    size = prod(lead) * query.shape[-2] * key.shape[-2] * query.itemsize
    return 0 < size <= _MOST and query.shape[-1] > 0


def _numbers(query: Any, key: Any, causal: bool, scale: float | None) -> tuple[Any, tuple[Any, ...]]:
    length, keys = query.shape[-2], key.shape[-2]
    rows = prod(query.shape[:-1])
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    return over_rows(rows, keys), (rows, length, keys, float(factor), np.bool_(causal))


def attend(k: Any, query: Any, key: Any, value: Any, causal: bool, scale: float | None) -> tuple[Any, Any]:
    """Return the weighted values, and the logarithm of each query's sum of exponentials."""
    geometry, numbers = _numbers(query, key, causal, scale)
    query, key, value = _readable(query, key, value)
    scores, lse = k.matmul(query, k.matrix_transpose(key)), empty(query.shape[:-1], query.dtype)
    ATTENTION.get(k.dtype_of(query), "attend_rows<{T}>")(*geometry, (scores, lse, *numbers))
    return k.matmul(scores, value), lse


def attend_grad(
    k: Any, g: Any, query: Any, key: Any, value: Any, lse: Any, causal: bool, scale: float | None
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, key and value."""
    geometry, numbers = _numbers(query, key, causal, scale)
    inside = _heads_inside(query)
    g, query, key, value = _readable(g, query, key, value)
    scores, pulled = k.matmul(query, k.matrix_transpose(key)), k.matmul(g, k.matrix_transpose(value))
    launch = ATTENTION.get(k.dtype_of(query), "attend_grad_rows<{T}>")
    launch(*geometry, (scores, pulled, contiguous(lse), *numbers))
    turned = k.matrix_transpose
    grads = k.matmul(pulled, key), k.matmul(turned(pulled), query), k.matmul(turned(scores), g)
    if inside:
        # As the operands lie: heads are joined again without a copy of each.
        return tuple([x.transpose(0, 2, 1, 3) for x in together([x.transpose(0, 2, 1, 3) for x in grads])])  # type: ignore[return-value]
    return grads


def _readable(*arrays: Any) -> list[Any]:
    """Return operands of products that cuBLAS reads; those that it does not are copied together, once for all products."""
    wanted = [i for i, x in enumerate(arrays) if lies(x, x.shape[:-2]) is None]
    made = list(arrays)
    for i, x in zip(wanted, together([arrays[i] for i in wanted])):
        made[i] = x
    return made


def _heads_inside(x: Any) -> bool:
    """Tell whether heads lie inside positions, as a projection gives them."""
    return x.ndim == 4 and min(x.shape[1:3]) > 1 and x.strides[1] < x.strides[2]
