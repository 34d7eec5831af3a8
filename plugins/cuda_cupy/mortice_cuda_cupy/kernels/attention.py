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
_ROWS, _ITEM = 32, 4  # rows of a tile, bytes of an element
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
    if tiles := _tiles[dtype, causal, shape, query.strides, key.shape, key.strides, value.shape, value.strides]:
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
    if out is not None:
        seen = [n for x in (query, key, value, out, g) for n in (x.shape, x.strides)]
        if tiles := _tiles[dtype, causal, *seen]:
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
    """The launches for operands of these shapes and strides: query, key and value, and for their gradients the result and its own."""

    def __init__(self, causal: bool, *seen: tuple[int, ...]) -> None:
        shapes, strides = seen[::2], seen[1::2]
        # Copied are those whose rows have gaps.
        self._loose = [shape[-1] > 1 and by[-1] != _ITEM for shape, by in zip(shapes, strides)]
        lies = [_distances(shape, () if loose else by) for shape, by, loose in zip(shapes, strides, self._loose)]
        query, key, value = shapes[:3]
        *lead, length, width = query
        keys, depth = value[-2:]
        self._sums, self._factor = query[:-1], 1 / sqrt(width)
        # As the query lies: heads are joined again without a copy.
        inside = len(query) == 4 and min(query[1:3]) > 1 and strides[0][1] < strides[0][2]
        made = [_maker(shape, inside) for shape in ((*query[:-1], depth), query, key, value)]
        self._made, written = [make for make, _ in made], [n for _, n in made]
        bound = next(n for n in _WIDTHS if max(width, depth) <= n)
        known = [1, 1, *lead][-1], length, keys, width, depth, np.bool_(causal)

        def launch(name: str, arrays: int, count: int, *stacks: list[int]) -> Any:
            distances = [n for stack in stacks for n in stack]
            takes = f"{'x' * arrays}{'=' * (len(distances) + len(known))}f"
            kernel = TILES.get(float32, f"{name}<{{T}}, {bound}>")
            return launcher(kernel, (prod(lead) * -(-count // _ROWS),), (256,), takes, *distances, *known)

        if len(shapes) == 3:
            self._launch = launch("attend_tiles", 5, length, *lies, written[0])
        else:
            *three, out, g = lies
            self._of_queries = launch("attend_grad_queries", 8, length, g, *three, out, written[1])
            self._of_keys = launch("attend_grad_keys", 8, keys, g, *three, *written[2:])

    def _rows(self, *operands: Any) -> Any:
        return [contiguous(x) if loose else x for x, loose in zip(operands, self._loose)] if True in self._loose else operands

    def attend(self, query: Any, key: Any, value: Any, scale: float | None) -> tuple[Any, Any]:
        out, lse = self._made[0](), empty(self._sums, query.dtype)
        self._launch(*self._rows(query, key, value), out, lse, self._factor if scale is None else scale)
        return out, lse

    def gradients(self, g: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, scale: float | None) -> tuple[Any, Any, Any]:
        query, key, value, out, g = self._rows(query, key, value, out, g)
        factor, lse, inner = self._factor if scale is None else scale, contiguous(lse), empty(self._sums, query.dtype)
        _, *made = self._made
        of_query, of_key, of_value = [make() for make in made]
        self._of_queries(g, query, key, value, out, lse, inner, of_query, factor)
        self._of_keys(g, query, key, value, lse, inner, of_key, of_value, factor)
        return of_query, of_key, of_value


def _tiled(dtype: Any, causal: bool, *seen: tuple[int, ...]) -> Any:
    """Return the launches for operands of these shapes and strides, None where products are to be taken."""
    query, key, value = seen[:6:2]
    width = max(query[-1], value[-1])
    if dtype is not float32 or len(query) > 4 or not 0 < width <= _WIDTHS[-1] or not value[-1]:
        return None
    return _Tiles(causal, *seen) if prod(query[:-1]) * key[-2] * width <= _FEW else None


_tiles = Plans(_tiled)


def _distances(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Return the elements from a batch, a head and a row to the next; without strides those of row-major order."""
    lead = [s // _ITEM for s in strides[:-1]] if strides else [prod(shape[i + 1 :]) for i in range(len(shape) - 1)]
    return [0, 0, *lead][-3:]


def _maker(shape: tuple[int, ...], inside: bool) -> tuple[Any, list[int]]:
    """Return what makes memory for heads, which may lie inside positions; and their distances."""
    dtype = np.dtype(np.float32)
    if not inside:
        return lambda: empty(shape, dtype), _distances(shape, ())
    stored = shape[0], shape[2], shape[1], shape[3]
    batch, row, head = _distances(stored, ())
    return lambda: empty(stored, dtype).transpose(0, 2, 1, 3), [batch, head, row]


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
