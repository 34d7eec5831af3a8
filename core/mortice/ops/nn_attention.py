"""Affine maps (`linear`, `bilinear`) and scaled dot product attention."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice.call import no_tensor
from mortice.dtype import bool_, float32, promote_types
from mortice.errors import DTypeError, ShapeError, cast_hint
from mortice.graph import Part
from mortice.modes import autocasting, modes
from mortice.node import TENSOR_KERNELS, named
from mortice.op import op
from mortice.ops.movement import expand, permute, reshape, unsqueeze
from mortice.ops.nn_activation import keep_mask
from mortice.rules import beside_wide
from mortice.shape import Size, broadcast, prod, remembered
from mortice.tensor import TensorBase

__all__ = ["bilinear"]

# ---- linear ----


@lru_cache(4096)  # shapes recur
def _linear_shape(name: str, x: Size, w: Size, b: Any = None) -> Size:
    return Size((*tuple(x)[:-1], *tuple(w)[:-1]))


def _name_by_parts(node: Any) -> str:
    """Return what PyTorch does last: with leading dims, or without any, it gives the product of matrices its shape."""
    biased = len(node.edges) > 2
    if len(node.shape) == 2:
        return "AddmmBackward0" if biased else "MmBackward0"
    return "ViewBackward0" if biased else "UnsafeViewBackward0" if len(node.shape) > 2 else "SqueezeBackward4"


# One op instead of transpose, matmul and add: the commonest layer keeps one node and works on one big matrix.
@op(shape=_linear_shape, kernel="linear", name="linear", dtypes="uifc", grad_name="AddmmBackward0", grad_name_of=_name_by_parts)
def _linear(k: Any, x: Any, w: Any, b: Any = None, /) -> Any:
    """Compute x W^T + b for any leading dims."""


# A formula each: a frozen weight keeps no input, and the first layer's weight may be stepped before backward.
_linear.vjp(
    x=lambda k, g, w: k.matmul(g, w),
    w=lambda k, g, x: k.linear_weight_grad(g, x),
    b=lambda k, g: k.sum(g, axis=tuple(range(len(k.shape_of(g)) - 1))) if len(k.shape_of(g)) > 1 else g,
    jvp="bilinear",
)


def _parts(node: Any, x: Any, w: Any, *b: Any) -> Any:
    """Return the nodes that PyTorch has before `node`: of the transposed weight, and of the product of matrices."""
    dims = len(node.shape)
    turned = w if w[0] is None else (Part("TBackward0", w), 0)
    if dims == 2:
        return *b, x, turned
    flat = x if x[0] is None else (Part("ViewBackward0" if dims > 1 or b else "UnsqueezeBackward0", x), 0)
    return ((Part("AddmmBackward0" if b else "MmBackward0", *b, flat, turned), 0),)


_linear.op.parts = _parts


def linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Any:
    """Compute input W^T + bias; the weight is (out, in) or (in,), leading dims of the input are free."""
    for value, what in ((input, "input"), (weight, "weight")):
        if not isinstance(value, TensorBase):
            raise no_tensor("linear", what, value)
    shape, ws = input.shape, weight.shape
    if len(ws) not in (1, 2) or not shape or tuple.__getitem__(shape, -1) != tuple.__getitem__(ws, -1):
        if not shape or not ws:
            raise ShapeError(f"both arguments to linear need to be at least 1D, but they are {len(shape)}D and {len(ws)}D")
        flat = len(shape) > 2 and ws and prod(tuple(shape)[1:]) == ws[-1]
        raise ShapeError(
            f"linear: mat1 and mat2 shapes cannot be multiplied ({prod(tuple(shape)[:-1])}x{shape[-1]} and "
            f"{ws[-1]}x{ws[0]}); got input {list(shape)} and weight {list(ws)}. The last dim of "
            "the input must have the size that the layer takes" + (": flatten it with x.flatten(1)." if flat else ".")
        )
    differ = input.dtype is not weight.dtype or (bias is not None and bias.dtype is not input.dtype)
    if differ and modes.autocast is None:
        other = weight if input.dtype is not weight.dtype else bias
        if other is not bias or bias.shape or len(shape) == 2:
            raise DTypeError(
                f"linear: mat1 and mat2 must have the same dtype, but got {input.dtype} and {other.dtype}. "
                + cast_hint(input.dtype.name, other.dtype.name, "bias" if other is bias else "weight")
            )
        bias = _call.CAST(bias, input.dtype)  # a number that is added to the product, and not in it as for matrices
    if len(ws) == 1:
        result = reshape(_linear(input, unsqueeze(weight, 0)), tuple(shape)[:-1])
        if bias is not None:
            if broadcast("linear", result.shape, bias.shape) != result.shape:
                raise ShapeError(f"linear: output with shape {list(result.shape)} doesn't match the bias of {list(bias.shape)}.")
            result = result + bias
    elif bias is not None and tuple(bias.shape) != (ws[0],):
        result = _linear(input, weight) + bias
    else:
        result = _linear(input, weight) if bias is None else _linear(input, weight, bias)
    return result if out is None else _call.WRITE_OUT("linear", out, result)


@autocasting
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Compute input1^T W_o input2 + bias for each output o; the weight is (out, in1, in2)."""
    dtypes = [t.dtype.name for t in (input1, input2, weight, bias) if t is not None]
    if len(set(dtypes)) > 1:
        raise DTypeError(f"bilinear: All tensors must have the same dtype, got {', '.join(dtypes)}")
    a, b, w = tuple(input1.shape), tuple(input2.shape), tuple(weight.shape)
    if len(a) != len(b) or a[:-1] != b[:-1]:
        raise ShapeError(f"bilinear: input batch dimensions do not match; got input1 {list(a)} and input2 {list(b)}.")
    if len(w) != 3 or a[-1] != w[1] or b[-1] != w[2]:
        raise ShapeError(
            f"bilinear: expected weight (out, {a[-1]}, {b[-1]}) for input1 {list(a)} and input2 {list(b)}; got {list(w)}."
        )
    if bias is not None and tuple(bias.shape) != (w[0],):
        raise ShapeError(f"bilinear: bias size does not match weight size: got {list(bias.shape)} and {list(w)}.")
    k = TENSOR_KERNELS
    rows = prod(a[:-1])
    left = k.matmul(reshape(input1, (rows, w[1])), reshape(permute(weight, 1, 0, 2), (w[1], w[0] * w[2])))
    out = k.matmul(reshape(left, (rows, w[0], w[2])), reshape(input2, (rows, w[2], 1)))
    out = reshape(out, (*a[:-1], w[0]))
    return out if bias is None else out + bias


# ---- attention ----


def _attention_shapes(name: str, query: Size, key: Size, value: Size, *rest: Any, **attrs: Any) -> tuple[Size, Size]:
    lead = (*broadcast(name, query[:-2], key[:-2], value[:-2]), tuple.__getitem__(query, -2))
    return remembered((*lead, tuple.__getitem__(value, -1))), remembered(lead)


@op(
    result=beside_wide, shape=_attention_shapes, kernel="attention", name="attention", dtypes="f", fixed=("mask", "keep"),
    outputs=("out", "lse"), differentiable=1, grad_name="ScaledDotProductAttentionBackward0",
)  # fmt: skip
def _attention(
    k: Any, query: Any, key: Any, value: Any, mask: Any = None, keep: Any = None, /, *, causal: bool, scale: Any,
    dropout_p: float,
) -> Any:  # fmt: skip
    """Return the values weighted by the softmax of the scores, and each query's log of the sum of exponentials."""


def _attention_back(
    k: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, keep: Any, out: Any, lse: Any, causal: bool, scale: Any,
    dropout_p: float, needs: Any,
) -> Any:  # fmt: skip
    grads = k.attention_grad(
        g, query, key, value, mask, keep, out, lse, causal=causal, scale=scale, dropout_p=dropout_p,
        needs_mask=needs[3],
    )  # fmt: skip
    return (*grads, None)


_attention.vjp(_attention_back)


@autocasting
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Compute softmax(query key^T * scale + mask) value; a bool mask is True where a key takes part.

    A query whose keys are all masked gets zeros. As in PyTorch on CPU, `is_causal` joins a mask of 2 or 4 dims that has no
    gradient where the input has 4 dims and there is no dropout.
    """
    name = "scaled_dot_product_attention"
    shapes = [tuple(x.shape) for x in (query, key, value)]
    if min(map(len, shapes)) < 2:
        raise ShapeError(f"{name}: Expected query, key, and value to all be at least 2 dimensional; got {shapes}.")
    if not query.dtype is key.dtype is value.dtype:
        raise DTypeError(
            f"{name}: Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype} "
            f"key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if attn_mask is not None and hasattr(attn_mask, "_materialize"):  # one of nn.attention.bias
        if is_causal:
            raise ValueError(f"{name}: CausalBias should not be used with causal=True.")
        attn_mask = attn_mask._materialize(query.device)
    joins = not dropout_p and len(shapes[0]) == 4  # what PyTorch's fused kernel takes
    if is_causal and attn_mask is not None and (not joins or attn_mask.requires_grad or len(attn_mask.shape) not in (2, 4)):
        raise RuntimeError(f"{name}: Explicit attn_mask should not be set when is_causal=True")
    dtype = query.dtype
    if attn_mask is not None and attn_mask.dtype not in (bool_, dtype):
        if attn_mask.dtype is not float32:
            raise DTypeError(
                f"{name}: Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{attn_mask.dtype} and query.dtype: {dtype} instead."
            )
        # In the wider type, as a mask's lowest number would become -inf in a narrow one.
        wide = promote_types(dtype, float32)
        query, key, value, attn_mask = (x.to(wide) for x in (query, key, value, attn_mask))
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"{name}: dropout probability has to be between 0 and 1, but got {dropout_p}")
    if enable_gqa and len(shapes[0]) > 2:
        heads = shapes[0][-3]
        key, value = _repeat_heads(name, key, heads), _repeat_heads(name, value, heads)
        shapes = [tuple(x.shape) for x in (query, key, value)]
    if shapes[0][-1] != shapes[1][-1] or shapes[1][-2] != shapes[2][-2]:
        raise ShapeError(
            f"{name}: expected query (..., L, E), key (..., S, E) and value (..., S, V); got "
            f"{', '.join(str(list(s)) for s in shapes)}."
        )
    batch = broadcast(name, *[s[:-2] for s in shapes])
    scores = (*batch, shapes[0][-2], shapes[1][-2])
    if attn_mask is not None and broadcast(name, scores, attn_mask.shape) != scores:
        raise ShapeError(f"{name}: attn_mask must broadcast to {list(scores)}; got {list(attn_mask.shape)}.")
    keep = keep_mask(query, dropout_p, scores) if dropout_p else None
    if shapes[2][:-2] != shapes[0][:-2] and broadcast(name, shapes[0][:-2], shapes[1][:-2]) != batch:
        query = expand(query, (*batch, *shapes[0][-2:]))  # kernels' scores have all the dims
    out = _attention(query, key, value, attn_mask, keep, causal=bool(is_causal), scale=scale, dropout_p=dropout_p)[0]
    flash = len(shapes[0]) == 4 and not dropout_p
    named(out, "ScaledDotProductFlashAttentionForCpuBackward0" if flash else "UnsafeViewBackward0")
    return out if out.dtype is dtype else out.to(dtype)


def _repeat_heads(name: str, x: Any, heads: int) -> Any:
    """Repeat each head of the keys or values for the group of query heads that shares it."""
    *batch, own, length, size = tuple(x.shape)
    if own == heads:
        return x
    if not own or heads % own:
        raise ShapeError(
            f"{name}: the number of heads in key and value must divide the number of heads in query; got {own} and {heads}."
        )
    wide = expand(reshape(x, (*batch, own, 1, length, size)), (*batch, own, heads // own, length, size))
    return reshape(wide, (*batch, heads, length, size))
