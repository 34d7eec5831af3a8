"""Attention of float32 and float64; the core's body has masks and dropout.

Little work, where launches would take longer than what they do, is one launch, and two for the gradients. What is more goes by
products of matrices, which cuBLAS does better, with one launch between them. The bound was not measured, for lack of a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from mortice_cuda_cupy.kernels.copying import contiguous, together
from mortice_cuda_cupy.kernels.launch import Plans, Program, empty, float32, float64, launcher, over_rows, prod
from mortice_cuda_cupy.matmul import laid

ATTENTION = Program("attention.cu", "attend_rows<{T}>", "attend_grad_rows<{T}>", types=(float32, float64))
_WIDTHS = (32, 64)  # of heads, up to which tiles are made
_BY_TILES = ("attend_tiles", "attend_grad_queries", "attend_grad_keys")
TILES = Program("attention.cu", *[f"{name}<{{T}}, {width}>" for name in _BY_TILES for width in _WIDTHS], types=(float32,))
_ROWS = 32  # of a tile
_FEW = 1 << 27  # products of elements of queries and keys, up to which a launch goes through tiles
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
    if tiles := _tiles[dtype, shape, key.shape, value.shape, causal]:
        return tiles.attend(query, key, value, scale)
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
    k: Any, g: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, causal: bool, scale: float | None
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, key and value; what was computed forward may be None."""
    dtype, turned = k.dtype_of(query), k.turned_product
    if out is not None and (tiles := _tiles[dtype, query.shape, key.shape, value.shape, causal]):
        return tiles.gradients(g, query, key, value, out, lse, scale)
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


class _Tiles:
    """The launches for operands of these shapes; how they lie is told to each launch."""

    def __init__(self, query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], causal: bool) -> None:
        *lead, length, width = query
        keys, depth = value[-2:]
        self._heads, self._factor = [1, 1, *lead][-1], 1 / sqrt(width)
        self._shapes, self._sums = (query, key, value, (*query[:-1], depth)), query[:-1]
        bound = next(n for n in _WIDTHS if max(width, depth) <= n)
        known = self._heads, length, keys, width, depth, np.bool_(causal)

        def launch(name: str, takes: str, count: int, stacks: int) -> Any:
            kernel = TILES.get(float32, f"{name}<{{T}}, {bound}>")
            return launcher(kernel, (prod(lead) * -(-count // _ROWS),), (256,), f"{takes}{'i' * 3 * stacks}======f", *known)

        self._forward = launch("attend_tiles", "xxxxx", length, 4)
        self._of_queries = launch("attend_grad_queries", "xxxxxxxx", length, 6)
        self._of_keys = launch("attend_grad_keys", "xxxxxxxx", keys, 6)

    def attend(self, query: Any, key: Any, value: Any, scale: float | None) -> tuple[Any, Any]:
        query, key, value = _in_rows(query), _in_rows(key), _in_rows(value)
        out, lse = _like(self._shapes[3], query), empty(self._sums, query.dtype)
        lies = [n for x in (query, key, value, out) for n in _distances[x.shape, x.strides, x.itemsize]]
        self._forward(query, key, value, out, lse, *lies, self._factor if scale is None else scale)
        return out, lse

    def gradients(
        self, g: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, scale: float | None
    ) -> tuple[Any, Any, Any]:
        g, query, key, value, out = _in_rows(g), _in_rows(query), _in_rows(key), _in_rows(value), _in_rows(out)
        factor, lse, inner = self._factor if scale is None else scale, contiguous(lse), empty(self._sums, query.dtype)
        of_query, of_key, of_value = (_like(shape, query) for shape in self._shapes[:3])
        lies = [_distances[x.shape, x.strides, x.itemsize] for x in (g, query, key, value, out, of_query, of_key, of_value)]
        read = [n for each in lies[:4] for n in each]
        self._of_queries(g, query, key, value, out, lse, inner, of_query, *read, *lies[4], *lies[5], factor)
        self._of_keys(g, query, key, value, lse, inner, of_key, of_value, *read, *lies[6], *lies[7], factor)
        return of_query, of_key, of_value


def _tiled(dtype: Any, query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], causal: bool) -> Any:
    """Return the launches for operands of these shapes, None where products are to be taken."""
    width = max(query[-1], value[-1])
    if dtype is not float32 or len(query) > 4 or not 0 < width <= _WIDTHS[-1] or not value[-1]:
        return None
    return _Tiles(query, key, value, causal) if prod(query[:-1]) * key[-2] * width <= _FEW else None


def _stack(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Any:
    """Return the elements from a batch, a head and a row to the next, None where those of a row do not lie side by side."""
    if shape[-1] > 1 and strides[-1] != itemsize:
        return None
    return [0, 0, *[s // itemsize for s in strides[:-1]]][-3:]


_tiles, _distances = Plans(_tiled), Plans(_stack)


def _in_rows(x: Any) -> Any:
    return x if _distances[x.shape, x.strides, x.itemsize] else contiguous(x)


def _like(shape: tuple[int, ...], x: Any) -> Any:
    """Return new memory for heads, which lie as those of x do: they are joined again without a copy."""
    if not _heads_inside(x):
        return empty(shape, x.dtype)
    return empty((shape[0], shape[2], shape[1], shape[3]), x.dtype).transpose(0, 2, 1, 3)


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
