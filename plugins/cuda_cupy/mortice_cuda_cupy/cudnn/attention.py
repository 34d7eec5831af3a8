"""Scaled dot product attention and its gradient by cuDNN, for halves: causal, or with a mask that is added to the scores.

Dropout is given to it as what the common stream has drawn, so that the same weights are dropped as elsewhere. float32 and
float64, for which cuDNN has no gradient, go through products of matrices. The core's bodies have the rest: these with masks or
dropout, the gradient of a mask, sizes of heads that 8
does not divide, leading axes that differ, and few queries.

Not tried for lack of a GPU: what the kernels compute. All graphs were planned and compiled by cuDNN 9.28 for described
devices (`tests/test_cudnn_plans.py`), and executed by a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

import cupy
import numpy as np

from mortice.backends import NamespaceBackend
from mortice.backends import cuda as ways
from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.cudnn.library import Place, here
from mortice_cuda_cupy.cudnn.plans import (
    ALIGNED,
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    keep,
    launched,
    make,
    new_graph,
    operand,
    result,
    rows,
    setting,
)
from mortice_cuda_cupy.kernels import attention as products
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import array_maker

# cuDNN compiles its attention anew for every pair of lengths, for most of a second. Decoding has a new length each step
# and one query: there the default body is a handful of small launches.
FEWEST_QUERIES = 16
# What stands for minus infinity in a mask: exp of it is 0 beside any score, but differences of two such are no nan.
_NEVER = {FLOAT16: -65504.0, BFLOAT16: -1e30}
MOST_KEPT = 1 << 28  # weights that dropout may choose among: cuDNN wants that choice in the dtype, twice a bool's bytes
_UNKNOWN = object()
_EVERYTHING = 1e30  # the logarithm of the sum of exponentials of a query without keys: its weights then are 0


class AttentionKernels(KernelMixin):
    """attention, attention_grad."""

    def attention(
        self, query: Any, key: Any, value: Any, mask: Any = None, keep: Any = None, *, causal: bool = False,
        scale: float | None = None, dropout_p: float = 0.0,
    ) -> tuple[Any, Any]:  # fmt: skip
        found = _forward(self, query, key, value, mask, keep, causal, scale, dropout_p)
        if found is not None:
            return found
        if products.fits(self, query, key, value, mask, keep):
            return products.attend(self, query, key, value, causal, scale)
        return NamespaceBackend.attention(  # type: ignore[no-any-return]
            self, query, key, value, mask, keep, causal=causal, scale=scale, dropout_p=dropout_p
        )

    def attention_grad(
        self, g: Any, query: Any, key: Any, value: Any, mask: Any = None, keep: Any = None, out: Any = None,
        lse: Any = None, *, causal: bool = False, scale: float | None = None, dropout_p: float = 0.0,
        needs_mask: bool = False,
    ) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        found = None
        if not needs_mask and out is not None and lse is not None:
            found = _backward(self, g, query, key, value, mask, keep, out, lse, causal, scale, dropout_p)
        if found is None and lse is not None and g.dtype == query.dtype and products.fits(self, query, key, value, mask, keep):
            found = products.attend_grad(self, g, query, key, value, out, lse, causal, scale)
        if found is not None:
            return (*found, None)
        return NamespaceBackend.attention_grad(  # type: ignore[no-any-return]
            self, g, query, key, value, mask, keep, out, lse, causal=causal, scale=scale, dropout_p=dropout_p,
            needs_mask=needs_mask,
        )  # fmt: skip


def _forward(
    k: Any, query: Any, key: Any, value: Any, mask: Any, kept: Any, causal: bool, scale: float | None, p: float
) -> Any:
    """Return out and lse, None where cuDNN is not to compute them."""
    place = _place(query, key, value, mask, kept, causal, p)
    if place is None:
        return None
    operands, more = (query, key, value), (mask is not None and mask.shape, kept is not None, causal, scale, setting())
    known = ("attention", _seen(query), _seen(key), _seen(value), more)
    ready = place.plans.get(known, _UNKNOWN)
    if ready is _UNKNOWN:
        ready = _prepare(k, place, "attention", operands, mask, kept, causal, scale, p)
        keep(place, known, ready)
    if ready is None:
        return None
    plan, lays, makers, shapes = ready
    laid = [lay(x) for x, lay in zip(operands, lays)]
    out, lse = makers[0](), array_maker()(shapes[1], FLOAT32)
    extras, empty = _extras(k, mask, kept, query, key.shape[-2], (1 / (1 - p),) if kept is not None else ())
    if not launched(plan, place, "attention", known, *[x.data.ptr for x in (*laid, out, lse, *extras)]):
        return None
    out, lse = out.reshape(shapes[0]), lse.reshape(query.shape[:-1])
    if empty is not None:
        out = k.where(empty, 0.0, out)
        lse = k.where(empty.reshape(empty.shape[:-1]), float("-inf"), lse)
    return out, lse


def _backward(
    k: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, kept: Any, out: Any, lse: Any, causal: bool,
    scale: float | None, p: float,
) -> Any:  # fmt: skip
    """Return the gradients of query, key and value, None where cuDNN is not to compute them."""
    place = _place(query, key, value, mask, kept, causal, p)
    if place is None or g.dtype != query.dtype or out.dtype != query.dtype or lse.dtype != FLOAT32:
        return None
    operands = (query, key, value, out, g)
    more = (mask is not None and mask.shape, kept is not None, causal, scale, setting())
    known = ("attention_grad", *[_seen(x) for x in operands], more)
    ready = place.plans.get(known, _UNKNOWN)
    if ready is _UNKNOWN:
        ready = _prepare(k, place, "attention_grad", operands, mask, kept, causal, scale, p)
        keep(place, known, ready)
    if ready is None:
        return None
    plan, lays, makers, _ = ready
    laid = [lay(x) for x, lay in zip(operands, lays)]
    if mask is not None:
        lse = k.where(k.equal(lse, float("-inf")), _EVERYTHING, lse)
    laid.append(_aligned(contiguous(lse)))
    grads = [maker() for maker in makers]
    extras, _ = _extras(k, mask, kept, query, key.shape[-2], (1 / (1 - p), 1 - p) if kept is not None else ())
    if not launched(plan, place, "attention_grad", known, *[x.data.ptr for x in (*laid, *grads, *extras)]):
        return None
    return tuple(d.reshape(x.shape) for d, x in zip(grads, operands))


def _place(query: Any, key: Any, value: Any, mask: Any, kept: Any, causal: bool, p: float) -> Place | None:
    """Return where cuDNN computes, None for operands that are not for it."""
    dtype, shape = query.dtype, query.shape
    if dtype not in _NEVER or len(shape) < 2 or shape[-2] < FEWEST_QUERIES or not ways.cudnn_sdp_enabled():
        return None
    if not dtype == key.dtype == value.dtype or not shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return None
    if not query.size or not key.size or not value.size or (shape[-1] | value.shape[-1]) % 8:
        return None
    if mask is not None and (causal or len(shape) > 4 or mask.dtype not in (dtype, np.bool_)):
        return None
    if kept is not None and (p >= 1 or kept.size > MOST_KEPT):
        return None
    return here(query.data.device_id)


def _seen(x: Any) -> tuple[Any, ...]:
    return x.dtype, x.shape, x.strides, x.data.ptr & ALIGNED


def _prepare(
    k: Any, place: Place, name: str, operands: Sequence[Any], mask: Any, kept: Any, causal: bool, scale: float | None,
    p: float,
) -> Any:  # fmt: skip
    """Return the plan, what lays out each operand, what makes each result, and the shapes of out and lse."""
    query, _, value = operands[:3]
    shapes = [_four(x.shape) for x in operands]
    lays, strides = zip(*[_layout(x, s) for x, s in zip(operands, shapes)])
    batch, heads, length, _ = shapes[0]
    out_shape, lse_shape = (batch, heads, length, value.shape[-1]), (batch, heads, length, 1)
    like = {"attention": [(out_shape, 0)], "attention_grad": [(shapes[i], i) for i in range(3)]}[name]
    makers, out_strides = zip(*[_maker(s, strides[i], query.dtype) for s, i in like])
    bias_shape = None if mask is None else _bias_shape(mask.shape, length, operands[1].shape[-2])
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    held = [lay(x) for x, lay in zip(operands, lays)]
    lse, results = cupy.zeros(lse_shape, FLOAT32), [maker() for maker in makers]
    held += [*results, lse] if name == "attention" else [lse, *results]
    held += _extras(k, mask, kept, query, value.shape[-2], (1.0,) if name == "attention" else (1.0, 1.0))[0]

    def graph(place: Place) -> Any:
        build = forward if name == "attention" else backward
        return build(
            place,
            query.dtype,
            shapes,
            strides,
            [s for s, _ in like],
            out_strides,
            bias_shape,
            kept is not None,
            causal,
            float(factor),
        )

    case = f"{name} {'x'.join(map(str, query.shape))} on {'x'.join(map(str, value.shape))} {query.dtype.name}"
    plan = make(place, case, graph, query.dtype, [x.data.ptr for x in held])
    shown = (*query.shape[:-1], value.shape[-1])
    return None if plan is None else (plan, lays, makers, (shown, lse_shape))


# ---- graphs ----


def forward(
    place: Place, dtype: Any, shapes: Any, strides: Any, out_shapes: Any, out_strides: Any, bias_shape: Any,
    dropout: bool, causal: bool, scale: float,
) -> Any:  # fmt: skip
    """Return the graph of attention; uids: query, key, value, out, lse, then those of `_how`."""
    graph = new_graph(place, dtype)
    q, k, v = (operand(graph, uid, *at, dtype) for uid, at in enumerate(zip(shapes, strides), 1))
    how = _how(graph, 6, bias_shape, (*shapes[0][:3], shapes[1][2]), 1 if dropout else 0, dtype, causal, scale)
    out, lse = graph.sdpa(q=q, k=k, v=v, generate_stats=True, **how)
    result(out, 4, out_shapes[0], out_strides[0], dtype)
    lse_shape = (*out_shapes[0][:3], 1)
    result(lse, 5, lse_shape, rows(lse_shape), FLOAT32)
    return graph


def backward(
    place: Place, dtype: Any, shapes: Any, strides: Any, out_shapes: Any, out_strides: Any, bias_shape: Any,
    dropout: bool, causal: bool, scale: float,
) -> Any:  # fmt: skip
    """Return the graph of the gradients; uids: query, key, value, out, g, lse, the three, then those of `_how`."""
    graph = new_graph(place, dtype)
    q, k, v, out, g = (operand(graph, uid, *at, dtype) for uid, at in enumerate(zip(shapes, strides), 1))
    lse_shape = (*shapes[0][:3], 1)
    lse = operand(graph, 6, lse_shape, rows(lse_shape), FLOAT32)
    how = _how(graph, 10, bias_shape, (*shapes[0][:3], shapes[1][2]), 2 if dropout else 0, dtype, causal, scale)
    if setting()[1]:
        how["use_deterministic_algorithm"] = True
    grads = graph.sdpa_backward(q=q, k=k, v=v, o=out, dO=g, stats=lse, **how)
    for uid, grad, shape, step in zip((7, 8, 9), grads, out_shapes, out_strides):
        result(grad, uid, shape, step, dtype)
    return graph


def _how(
    graph: Any, uid: int, bias_shape: Any, scores: Sequence[int], numbers: int, dtype: Any, causal: bool, scale: float
) -> dict[str, Any]:
    """Return the other arguments; uids: what is added to the scores, what is kept, and the numbers that go with that."""
    how: dict[str, Any] = {"attn_scale": scale, "use_causal_mask": causal}
    if bias_shape is not None:
        how["bias"] = operand(graph, uid, bias_shape, rows(bias_shape), dtype)
        uid += 1
    if numbers:
        kept = operand(graph, uid, scores, rows(scores), dtype)
        one = (1, 1, 1, 1)
        how["dropout"] = (kept, *[operand(graph, uid + 1 + i, one, one, FLOAT32) for i in range(numbers)])
    return how


def _extras(k: Any, mask: Any, kept: Any, query: Any, keys: int, numbers: Sequence[float]) -> tuple[list[Any], Any]:
    """Return the operands that `_how` declares, and which queries may look at no key."""
    extras, empty = [], None
    if mask is not None:
        bias, empty = _bias(k, mask, query, keys)
        extras.append(bias)
    if kept is not None:
        # The core has drawn it for all scores, in row-major order.
        extras.append(contiguous(kept).astype(query.dtype))
        extras += [cupy.full(1, number, FLOAT32) for number in numbers]
    return extras, empty


# ---- layouts ----


def _four(shape: Sequence[int]) -> tuple[int, int, int, int]:
    """Return a shape as (batch, heads, length, size)."""
    *lead, length, size = shape
    return prod(lead[:-1]), lead[-1] if lead else 1, length, size


def _layout(x: Any, shape: tuple[int, ...]) -> tuple[Callable[[Any], Any], tuple[int, ...]]:
    """Return what gives an operand as cuDNN reads it, and the strides that it then has.

    Any order of the axes will do, such as what a slice of a joint projection has, if the last is dense.
    """
    four = x.reshape(shape)
    strides = tuple(s // x.itemsize for s in four.strides)
    steps = [s for s, n in zip(strides[:3], shape) if n > 1]
    if strides[3] == 1 and all(s > 0 and s % 8 == 0 for s in steps) and not four.data.ptr & ALIGNED:
        if four.data.ptr != x.data.ptr and x.size:  # the reshape has copied
            return (lambda x: x.reshape(shape)), strides
        order = rows(shape)
        # An axis of size 1 has the stride that it would have in a dense array, whatever the view says.
        strides = tuple(s if n > 1 else o for s, n, o in zip(strides, shape, order))
        return (lambda x: x) if x.ndim == 4 else (lambda x: x.reshape(shape)), strides
    return (lambda x: _aligned(contiguous(x)).reshape(shape)), rows(shape)


def _aligned(x: Any) -> Any:
    return x.copy() if x.data.ptr & ALIGNED else x


def _maker(shape: tuple[int, ...], like: Sequence[int], dtype: Any) -> tuple[Callable[[], Any], tuple[int, ...]]:
    """Return what makes memory for a result, in the order that an operand has, and its strides.

    Where heads lie inside positions, as after a projection, what follows joins the heads again without a copy.
    """
    empty = array_maker()
    batch, heads, length, size = shape
    if like[1] < like[2] and heads > 1 and length > 1:
        stored = (batch, length, heads, size)
        return (lambda: empty(stored, dtype).transpose(0, 2, 1, 3)), (length * heads * size, size, heads * size, 1)
    return (lambda: empty(shape, dtype)), rows(shape)


def _bias_shape(mask: Sequence[int], length: int, keys: int) -> tuple[int, int, int, int]:
    """Return the shape of what is added to the scores: leading axes as the mask has them, the last two whole."""
    lead = mask[:-2]
    return lead[0] if len(lead) == 2 else 1, lead[-1] if lead else 1, length, keys


def _bias(k: Any, mask: Any, query: Any, keys: int) -> tuple[Any, Any]:
    """Return what is added to the scores, without infinities, and which queries may look at no key: (..., L, 1)."""
    if mask.ndim < 2:
        mask = mask.reshape((1,) * (2 - mask.ndim) + mask.shape)
    never = _NEVER[query.dtype]
    if mask.dtype == np.bool_:
        added = k.multiply(k.astype(k.logical_not(mask), k.dtype_of(query)), never)
        some = k.any(mask, axis=-1, keepdims=True)
    else:
        added = k.maximum(mask, never)
        some = k.any(k.not_equal(mask, float("-inf")), axis=-1, keepdims=True)
    shape = _bias_shape(mask.shape, query.shape[-2], keys)
    added = added.reshape((1,) * (4 - added.ndim) + added.shape)
    return contiguous(cupy.broadcast_to(added, shape)), k.logical_not(some)
