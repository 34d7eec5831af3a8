"""Multi-head attention: projections, heads and masks around `scaled_dot_product_attention`."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import _nn
from mortice.nn.functional.activation import dropout, softmax
from mortice.notice import warn

__all__ = ["multi_head_attention_forward"]

_NAME = "multi_head_attention_forward"


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any,
    training: bool = True, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:  # fmt: skip
    """Attend from query (L, N, E) to key (S, N, K) and value (S, N, V), or without N; return (out, weights or None).

    A bool mask is True where a key takes no part; a mask of numbers is added to the scores.
    """
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    other = _none_or_dtype(attn_mask)
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(f"{_NAME}: Need attn_mask if specifying the is_causal hint.")
    # Without weights to return, the causal kernel needs no mask; extra keys and padding do.
    causal = is_causal and not need_weights and key_padding_mask is None and bias_k is None and not add_zero_attn
    attn_mask = None if causal else _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = tuple(query.shape)
    if width != embed_dim_to_check:
        raise AssertionError(f"{_NAME}: was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"{_NAME}: embed_dim {width} not divisible by num_heads {num_heads}")

    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"{_NAME}: key's sequence and batch dims {tuple(key.shape[:2])} do not match value's {tuple(value.shape[:2])}"
            )
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = (_nn.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    else:
        if key.shape != value.shape:
            raise AssertionError(f"{_NAME}: key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)}")
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)

    extra = 0
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(f"{_NAME}: bias cannot be added to static key. Give one of the two.")
        k, v = mortice.cat([k, bias_k.expand(1, batch, -1)]), mortice.cat([v, bias_v.expand(1, batch, -1)])
        extra += 1
    q = _heads(q, num_heads)
    k = _heads(k, num_heads) if static_k is None else _given(static_k, "static_k", q)
    v = _heads(v, num_heads) if static_v is None else _given(static_v, "static_v", q)
    if add_zero_attn:
        zeros = k.new_zeros(k.shape[0], 1, k.shape[2])
        k, v = mortice.cat([k, zeros], 1), mortice.cat([v, zeros], 1)
        extra += 1
    keys = k.shape[1]
    mask = _merged(attn_mask, key_padding_mask, (batch, num_heads, length, keys), extra)

    # q, k and v are (N * heads, length, head size).
    split = (batch, num_heads)
    q, k, v = (x.reshape(*split, *x.shape[1:]) for x in (q, k, v))
    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
        weights = dropout(softmax(scores if mask is None else scores + mask, -1), dropout_p)
        out = weights @ v
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            weights = weights.squeeze(0)
    else:
        out = _nn.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    out = _nn.linear(out.permute(2, 0, 1, 3).reshape(length, batch, width), out_proj_weight, out_proj_bias)
    return out if batched else out.squeeze(1), weights


def _none_or_dtype(input: Any) -> Any:
    if input is None or isinstance(input, mortice.Tensor):
        return input if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True) -> Any:
    """Return a mask as numbers to add to scores: -inf where a bool mask is True."""
    if mask is None:
        return None
    if mask.dtype is not mortice.bool and not mask.is_floating_point():
        raise AssertionError(f"{_NAME}: only bool and floating types of {mask_name} are supported; got {mask.dtype}.")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.is_floating_point():
        return mask
    return mortice.zeros(mask.shape, dtype=target_type, device=mask.device).masked_fill(mask, -math.inf)


def _check_ranks(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> bool:
    """Return whether the inputs have a batch."""
    q, k, v = query.ndim, key.ndim, value.ndim
    given = f"{_NAME}: For {'' if q == 3 else 'un'}batched ({q}-D) `query`, expected"
    if (q, k, v) not in ((3, 3, 3), (2, 2, 2)):
        raise AssertionError(
            f"{given} `key` and `value` to be {q}-D but found {k}-D and {v}-D tensors respectively"
            if q in (2, 3)
            else f"{_NAME}: query should be unbatched 2D or batched 3D tensor but received {q}-D query tensor"
        )
    if padding is not None and padding.ndim != q - 1:
        raise AssertionError(f"{given} `key_padding_mask` to be `None` or {q - 1}-D but found {padding.ndim}-D tensor instead")
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(f"{given} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead")
    scores = (heads, query.shape[0], key.shape[0])
    if mask is not None and q == 2 and mask.ndim == 3 and mask.shape != scores:
        raise AssertionError(f"{_NAME}: Expected `attn_mask` shape to be {scores} but got {mask.shape}")
    return bool(q == 3)


def _project(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> Any:
    """Apply the three projections stacked in `weight`, in one product where the inputs are the same."""
    if query is key and key is value:
        return _nn.linear(query, weight, bias).chunk(3, -1)
    width = query.shape[-1]
    b = (None, None) if bias is None else (bias[:width], bias[width:])
    q = _nn.linear(query, weight[:width], b[0])
    if key is value:
        return q, *_nn.linear(key, weight[width:], b[1]).chunk(2, -1)
    w_k, w_v = weight[width:].chunk(2)
    b_k, b_v = (None, None) if bias is None else b[1].chunk(2)
    return q, _nn.linear(key, w_k, b_k), _nn.linear(value, w_v, b_v)


def _heads(x: Any, heads: int) -> Any:
    """Return (L, N, E) as (N * heads, L, E / heads)."""
    length, batch, width = tuple(x.shape)
    return x.reshape(length, batch * heads, width // heads).transpose(0, 1)


def _given(x: Any, name: str, like: Any) -> Any:
    if x.shape[0] != like.shape[0] or x.shape[2] != like.shape[2]:
        raise AssertionError(
            f"{_NAME}: expecting {name} to be ({like.shape[0]}, *, {like.shape[2]}), but got {tuple(x.shape)}"
        )
    return x


def _merged(mask: Any, padding: Any, scores: tuple[int, int, int, int], extra: int) -> Any:
    """Return the sum of both masks, to broadcast over (N, heads, L, S); the last `extra` keys are never masked."""
    batch, heads, length, keys = scores
    own = keys - extra
    if mask is not None:
        allowed = ((length, own), (batch * heads, length, own))
        if tuple(mask.shape) not in allowed:
            raise RuntimeError(
                f"{_NAME}: The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {allowed[mask.ndim - 2]}."
            )
        if mask.ndim == 3:
            mask = mask.reshape(batch, heads, length, own)
        mask = _nn.pad(mask, (0, extra))
    if padding is None:
        return mask
    if tuple(padding.shape) != (batch, own):
        raise AssertionError(
            f"{_NAME}: expecting key_padding_mask shape of {(batch, own)}, but got {tuple(padding.shape)}"
        )
    padding = _nn.pad(padding, (0, extra)).reshape(batch, 1, 1, keys)
    return padding if mask is None else mask + padding
