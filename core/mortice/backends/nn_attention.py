"""Scaled dot product attention and its gradient, in blocks of queries so that no (L, S) matrix need exist whole."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, reduce_to, rows_per_block, widen
from mortice.shape import prod


class AttentionKernels(KernelMixin):
    """FREE: query is (..., L, E), key (..., S, E), value (..., S, V); leading axes broadcast.

    `mask` broadcasts to (..., L, S): bool (True takes part) or a number added to the scores. `keep` is the dropout's
    bool buffer of the scores' shape. A query that may look at nothing gets zeros.
    """

    def attention(
        self,
        query: Any,
        key: Any,
        value: Any,
        mask: Any = None,
        keep: Any = None,
        *,
        causal: bool = False,
        scale: float | None = None,
        dropout_p: float = 0.0,
    ) -> tuple[Any, Any]:
        """Return (out, lse): the weighted values, and the logarithm of each query's sum of exponentials (..., L)."""
        dtype = self.dtype_of(query)
        query, key, value = widen(self, query), widen(self, key), widen(self, value)
        query = self.multiply(query, _scale(self, query, scale))
        outs, sums = [], []
        for rows, columns in _blocks(self, query, key, causal):
            scores = _scores(self, query, key, mask, rows, columns, causal)
            top = _top(self, scores)
            e = self.exp(self.subtract(scores, top))
            total = self.sum(e, axis=-1, keepdims=True)
            empty = self.equal(total, 0)
            total = self.where(empty, 1, total)
            part = self.divide(e, total)
            if keep is not None:
                part = self.dropout(part, _cut(self, keep, rows, columns), p=dropout_p)
            outs.append(self.matmul(part, self.getitem(value, (Ellipsis, columns, slice(None)))))
            lse = self.where(empty, float("-inf"), self.add(self.log(total), top))
            sums.append(self.squeeze(lse, -1))
        joined, lse = _join(self, outs, -2), _join(self, sums, -1)
        return narrow(self, joined, dtype), lse

    def attention_grad(
        self,
        g: Any,
        query: Any,
        key: Any,
        value: Any,
        mask: Any = None,
        keep: Any = None,
        out: Any = None,
        lse: Any = None,
        *,
        causal: bool = False,
        scale: float | None = None,
        dropout_p: float = 0.0,
        needs_mask: bool = False,
    ) -> tuple[Any, Any, Any, Any]:
        """Return the gradients of query, key, value, and of an additive mask when `needs_mask` (otherwise None).

        `out` and `lse` are a cache that a backend may read; this body computes the weights again, so that it
        differentiates with respect to its inputs.
        """
        dtype = self.dtype_of(g)
        shapes = [tuple(self.shape_of(a)) for a in (query, key, value)]
        g, query, key, value = (widen(self, a) for a in (g, query, key, value))
        factor = _scale(self, query, scale)
        scaled = self.multiply(query, factor)
        d_queries, d_key, d_value, d_masks = [], None, None, []
        for rows, columns in _blocks(self, query, key, causal):
            scores = _scores(self, scaled, key, mask, rows, columns, causal)
            e = self.exp(self.subtract(scores, _top(self, scores)))
            total = self.sum(e, axis=-1, keepdims=True)
            part = self.divide(e, self.where(self.equal(total, 0), 1, total))
            g_rows = self.getitem(g, (Ellipsis, rows, slice(None)))
            d_part = self.matmul(g_rows, _swap(self, self.getitem(value, (Ellipsis, columns, slice(None)))))
            kept = part
            if keep is not None:
                kept = self.dropout(part, _cut(self, keep, rows, columns), p=dropout_p)
                d_part = self.dropout(d_part, _cut(self, keep, rows, columns), p=dropout_p)
            d_scores = self.softmax_grad(d_part, part, axis=-1)
            d_value = _accumulate(self, d_value, self.matmul(_swap(self, kept), g_rows), value, columns)
            d_queries.append(self.matmul(d_scores, self.getitem(key, (Ellipsis, columns, slice(None)))))
            q_rows = self.getitem(scaled, (Ellipsis, rows, slice(None)))
            d_key = _accumulate(self, d_key, self.matmul(_swap(self, d_scores), q_rows), key, columns)
            if needs_mask:
                d_masks.append(_widened(self, d_scores, columns, self.shape_of(key)[-2]))
        d_query = self.multiply(_join(self, d_queries, -2), factor)
        d_query, d_key, d_value = (
            narrow(self, reduce_to(self, d, shape), dtype)
            for d, shape in zip((d_query, d_key, d_value), shapes)
        )
        d_mask = None
        if needs_mask:
            d_mask = reduce_to(self, _join(self, d_masks, -2), self.shape_of(mask))
            d_mask = narrow(self, d_mask, self.dtype_of(mask))
        return d_query, d_key, d_value, d_mask


def _scale(k: Any, query: Any, scale: float | None) -> float:
    return 1 / sqrt(max(1, k.shape_of(query)[-1])) if scale is None else scale


def _swap(k: Any, x: Any) -> Any:
    return k.matrix_transpose(x)


def _blocks(k: Any, query: Any, key: Any, causal: bool) -> Iterator[tuple[slice, slice]]:
    """Yield (rows, columns): blocks of queries, each with the keys that it can see at all."""
    *batch, length, _ = k.shape_of(query)
    keys = k.shape_of(key)[-2]
    step = rows_per_block(max(prod(batch), prod(k.shape_of(key)[:-2])) * keys * k.dtype_of(query).itemsize)
    for start in range(0, max(length, 1), step):
        stop = min(start + step, length)
        yield slice(start, stop), slice(0, min(keys, stop) if causal else keys)


def _cut(k: Any, mask: Any, rows: slice, columns: slice) -> Any:
    """Return the part of a mask that belongs to a block; axes of size 1 stay."""
    shape = k.shape_of(mask)
    key: list[Any] = [columns if shape[-1] != 1 else slice(None)]
    if len(shape) > 1:
        key.insert(0, rows if shape[-2] != 1 else slice(None))
    return k.getitem(mask, (Ellipsis, *key))


def _scores(k: Any, query: Any, key: Any, mask: Any, rows: slice, columns: slice, causal: bool) -> Any:
    """Return the scores of a block; query is scaled already."""
    q, t = k.getitem(query, (Ellipsis, rows, slice(None))), k.getitem(key, (Ellipsis, columns, slice(None)))
    scores = k.matmul(q, _swap(k, t))
    if mask is not None:
        part = _cut(k, mask, rows, columns)
        if k.dtype_of(part).kind == "b":
            scores = k.where(part, scores, float("-inf"))
        else:
            scores = k.add(scores, narrow(k, part, k.dtype_of(scores)))
    if causal:
        row = k.reshape(k.new_arange(query, rows.start, rows.stop), (rows.stop - rows.start, 1))
        scores = k.where(k.less(row, k.new_arange(query, 0, columns.stop)), float("-inf"), scores)
    return scores


def _top(k: Any, scores: Any) -> Any:
    """Return each row's largest score; 0 where there is none to look at, so that nothing becomes nan."""
    shape = tuple(k.shape_of(scores))
    if shape[-1] == 0:
        return k.new_full(scores, (*shape[:-1], 1), 0)
    top = k.max(scores, axis=-1, keepdims=True)
    return k.where(k.equal(top, float("-inf")), 0, top)


def _join(k: Any, pieces: list[Any], axis: int) -> Any:
    return pieces[0] if len(pieces) == 1 else k.concat(pieces, axis=axis % len(k.shape_of(pieces[0])))


def _widened(k: Any, x: Any, columns: slice, total: int) -> Any:
    """Return x with zeros for the columns that its block left out."""
    if columns.stop == total:
        return x
    return k.pad(x, [(0, 0)] * (len(k.shape_of(x)) - 1) + [(0, total - columns.stop)], 0)


def _accumulate(k: Any, total: Any, part: Any, like: Any, columns: slice) -> Any:
    """Add a block's gradient of the first keys (or values) to what earlier blocks gave."""
    shape = tuple(k.shape_of(part))
    rows = k.shape_of(like)[-2]
    if shape[-2] != rows:
        part = k.pad(part, [(0, 0)] * (len(shape) - 2) + [(0, rows - shape[-2]), (0, 0)], 0)
    return part if total is None else k.add(total, part)
