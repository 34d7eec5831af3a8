"""Attention of float32 and float64 by products of matrices, with one launch between them; the core's body has masks and dropout."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.launch import Program, contiguous, empty, float32, float64, over_rows, prod

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
    scores, lse = k.matmul(query, k.matrix_transpose(key)), empty(query.shape[:-1], query.dtype)
    ATTENTION.get(k.dtype_of(query), "attend_rows<{T}>")(*geometry, (scores, lse, *numbers))
    return k.matmul(scores, value), lse


def attend_grad(
    k: Any, g: Any, query: Any, key: Any, value: Any, lse: Any, causal: bool, scale: float | None
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, key and value."""
    geometry, numbers = _numbers(query, key, causal, scale)
    # Each goes into two products, which would copy it twice.
    g, query, key = contiguous(g), contiguous(query), contiguous(key)
    scores, pulled = k.matmul(query, k.matrix_transpose(key)), k.matmul(g, k.matrix_transpose(value))
    launch = ATTENTION.get(k.dtype_of(query), "attend_grad_rows<{T}>")
    launch(*geometry, (scores, pulled, contiguous(lse), *numbers))
    turned = k.matrix_transpose
    return k.matmul(pulled, key), k.matmul(turned(pulled), query), k.matmul(turned(scores), g)
