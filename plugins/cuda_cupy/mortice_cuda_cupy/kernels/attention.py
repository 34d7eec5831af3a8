"""Attention of float32 and float64 by products of matrices, with one launch between them; the core's body has masks and dropout."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import contiguous, together
from mortice_cuda_cupy.kernels.launch import Plans, Program, empty, float32, float64, launcher, over_rows, prod
from mortice_cuda_cupy.matmul import laid

ATTENTION = Program("attention.cu", "attend_rows<{T}>", "attend_grad_rows<{T}>", types=(float32, float64))
_MOST = 1 << 30  # bytes of scores that are there as a whole: beyond, the core goes through them in parts
_LITTLE = 1 << 25  # bytes of scores and their gradients that are not worth parts: PyTorch counts as many for cuBLAS to work in


def fits(k: Any, query: Any, key: Any, value: Any, mask: Any, keep: Any) -> bool:
    """Tell whether attention is computed here."""
    if mask is not None or keep is not None or k.dtype_of(query) not in ATTENTION.types:
        return False
    lead = query.shape[:-2]
    if not (query.dtype == key.dtype == value.dtype and lead == key.shape[:-2] == value.shape[:-2]):
        return False
    size = prod(lead) * query.shape[-2] * key.shape[-2] * query.itemsize
    return 0 < size <= _MOST and query.shape[-1] > 0


def attend(k: Any, query: Any, key: Any, value: Any, causal: bool, scale: float | None) -> tuple[Any, Any]:
    """Return the weighted values, and the logarithm of each query's sum of exponentials."""
    dtype, shape = k.dtype_of(query), query.shape
    out, lse = empty((*shape[:-1], value.shape[-1]), query.dtype), empty(shape[:-1], query.dtype)
    factor = 1 / sqrt(shape[-1]) if scale is None else scale
    # Once: backward, where all that a program keeps is there, there are scores and their gradients.
    for q, key_part, v, made, sums in _parts(k, 3, [query, key, value], [out, lse]):
        scores = k.turned_product(q, key_part, 2)
        _plans[dtype, "attend_rows<{T}>", "xx", scores.shape, causal](scores, sums, factor)
        k.product_into(made, scores, v)
        del scores
    return out, lse


def attend_grad(
    k: Any, g: Any, query: Any, key: Any, value: Any, lse: Any, causal: bool, scale: float | None
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, key and value."""
    dtype, turned = k.dtype_of(query), k.turned_product
    grads = [empty(x.shape, x.dtype) for x in (query, key, value)]
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    for g_part, q, key_part, v, sums, of_q, of_k, of_v in _parts(k, 1, [g, query, key, value], [contiguous(lse), *grads]):
        scores, pulled = turned(q, key_part, 2), turned(g_part, v, 2)
        _plans[dtype, "attend_grad_rows<{T}>", "xxx", scores.shape, causal](scores, pulled, sums, factor)
        turned(scores, g_part, 1, of_v)
        del scores
        k.product_into(of_q, pulled, key_part)
        turned(pulled, q, 1, of_k)
        del pulled
    if _heads_inside(query):
        # As the operands lie: heads are joined again without a copy of each.
        made = together([x.transpose(0, 2, 1, 3) for x in grads])
        return tuple([x.transpose(0, 2, 1, 3) for x in made])  # type: ignore[return-value]
    return tuple(grads)  # type: ignore[return-value]


def _parts(k: Any, times: int, operands: list[Any], others: list[Any]) -> Iterator[list[Any]]:
    """Yield all in parts of whole matrices, of which the scores take `times` the memory of the operands: PyTorch keeps none.

    Where there is more memory below the peak than scores, their gradients and copies of the operands take, all is one part.
    """
    *_, query, key, _ = operands
    count, pair = prod(query.shape[:-2]), query.shape[-2] * key.shape[-2] * query.itemsize
    most = times * sum([x.nbytes for x in operands])
    parts = min(-(-count * pair // most), count)
    whole = 2 * count * pair
    if parts > 1 and (whole <= _LITTLE or k.below_peak(query.data.device_id) >= whole + most):
        parts = 1
    if parts == 1:
        yield [*_readable(operands), *others]
        return
    flat = [x.reshape(count, *x.shape[query.ndim - 2 :]) for x in (*together(operands), *others)]
    step = -(-count // parts)
    for at in range(0, count, step):
        yield [x[at : at + step] for x in flat]


def _plan(dtype: Any, kernel: str, takes: str, shape: tuple[int, ...], causal: bool) -> Any:
    """Return the launch of a kernel for scores of a shape."""
    length, keys = shape[-2:]
    rows = prod(shape) // keys
    numbers = rows, length, keys, np.bool_(causal)
    return launcher(ATTENTION.get(dtype, kernel), *over_rows(rows, keys), f"{takes}===f=", *numbers)


_plans = Plans(_plan)


def _readable(arrays: list[Any]) -> list[Any]:
    """Return operands of products that cuBLAS reads; those that it does not are copied together, once for all products."""
    wanted = [i for i, x in enumerate(arrays) if _unread[x.shape, x.strides, x.itemsize]]
    made = list(arrays)
    for i, x in zip(wanted, together([arrays[i] for i in wanted])):
        made[i] = x
    return made


# Of shape, strides and size of elements: whether cuBLAS does not read it.
_unread = Plans(lambda shape, strides, size: laid(shape, strides, size, shape[:-2]) is None)


def _heads_inside(x: Any) -> bool:
    """Tell whether heads lie inside positions, as a projection gives them."""
    return x.ndim == 4 and min(x.shape[1:3]) > 1 and x.strides[1] < x.strides[2]
