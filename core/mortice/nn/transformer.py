"""The transformer: encoder and decoder layers, stacks of them, and both together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import mortice
from mortice.nn import functional as F
from mortice.nn import init
from mortice.nn.activation import GELU, ReLU
from mortice.nn.attention import MultiheadAttention
from mortice.nn.container import ModuleList
from mortice.nn.dropout import Dropout
from mortice.nn.linear import Linear
from mortice.nn.module import Module
from mortice.nn.norm import LayerNorm

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip


class Transformer(Module):
    """An encoder and a decoder that attends to what the encoder makes of the source."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Any], Any] = F.relu,
        custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        make = {"device": device, "dtype": dtype}
        if custom_encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **make)
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **make), num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **make)
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **make), num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
        src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """Encode the source, then decode the target."""
        at = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[at] != tgt.shape[at]:
            raise RuntimeError(
                f"the batch number of src and tgt must be equal; got src {tuple(src.shape)} and tgt {tuple(tgt.shape)}."
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model; got {src.shape[-1]} and {tgt.shape[-1]} "
                f"with d_model {self.d_model}."
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Return (sz, sz) with -inf above the diagonal and 0 elsewhere: no position sees a later one."""
        return mortice.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Differs from torch: there are no nested tensors; `enable_nested_tensor` and `mask_check` change nothing.
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        self.use_nested_tensor = False  # PyTorch asks that of what it reads

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        """Pass the source through every layer; without `is_causal` a causal mask is recognised."""
        causal = _is_causal(mask, is_causal, _length(src, self.layers))
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """Pass the target through every layer; without `tgt_is_causal` a causal mask is recognised."""
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers))
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class _Layer(Module):
    """What a layer of an encoder and one of a decoder have; the latter attends to the memory too."""

    _attends_to_memory = False

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        make = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **make)
        if self._attends_to_memory:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **make)
        self.linear1 = Linear(d_model, dim_feedforward, **make)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **make)
        self.norm_first = norm_first
        sublayers = range(1, 4 if self._attends_to_memory else 3)
        for i in sublayers:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, **make))
        for i in sublayers:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = kept = _activation(activation)
        if not self._attends_to_memory:  # PyTorch's name of it, by which it computes when it has read the layer
            self.activation_relu_or_gelu = 1 if kept is F.relu or isinstance(kept, ReLU) else 2 * (kept is F.gelu or isinstance(kept, GELU))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feedforward network, each normalised and added to its input."""

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> Any:
        """Return the source after both sublayers."""
        attend = lambda x: self._sa_block(x, src_mask, src_key_padding_mask, is_causal)
        src = _add(src, attend, self.norm1, self.norm_first)
        return _add(src, self._ff_block, self.norm2, self.norm_first)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory and a feedforward network, each normalised and added to its input."""

    _attends_to_memory = True

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """Return the target after the three sublayers."""
        attend = lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        recall = lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        tgt = _add(tgt, attend, self.norm1, self.norm_first)
        tgt = _add(tgt, recall, self.norm2, self.norm_first)
        return _add(tgt, self._ff_block, self.norm3, self.norm_first)

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self.dropout2(_attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _add(x: Any, sublayer: Callable[[Any], Any], norm: Module, norm_first: bool) -> Any:
    """Add a sublayer's output to its input, and normalise before it or after the sum."""
    return x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))


def _attend(attention: Module, x: Any, memory: Any, mask: Any, padding: Any, causal: bool) -> Any:
    return attention(
        x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=causal, need_weights=False
    )[0]


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def _activation(activation: str | Callable[[Any], Any]) -> Any:
    """Return the function of that name, or the one given."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _length(x: Any, layers: Any) -> int:
    """Return the length of the sequences, which the layers' own layout decides."""
    batch_first = len(layers) > 0 and getattr(getattr(layers[0], "self_attn", None), "batch_first", False)
    return int(x.shape[1 if batch_first and x.ndim == 3 else 0])


def _is_causal(mask: Any, is_causal: bool | None, length: int) -> bool:
    """Return whether a mask is causal: as told, or found by looking at it."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    if tuple(mask.shape) != (length, length):
        return False
    hidden = mask if mask.dtype is mortice.bool else mask != 0
    later = mortice.ones(length, length, dtype=mortice.bool, device=mask.device).triu(1)
    return bool((hidden == later).all()) and (mask is hidden or bool((mask[later] == -math.inf).all()))
