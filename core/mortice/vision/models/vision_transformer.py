"""The vision transformer: A. Dosovitskiy et al., "An image is worth 16x16 words" (2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import mortice as mt
from mortice import nn
from mortice.vision.models.registry import register
from mortice.vision.ops import MLP, Conv2dNormActivation

__all__ = ["VisionTransformer", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32"]

_norm = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """One layer of a stem of convolutions, in place of the cut into patches."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Callable[..., nn.Module] = nn.BatchNorm2d
    activation_layer: Callable[..., nn.Module] = nn.ReLU


class MLPBlock(MLP):
    """The two linear layers of a transformer block."""

    _version = 2

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for layer in (self[0], self[3]):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        # The first release of these models called the layers by name.
        for old, new in (("linear_1", "0"), ("linear_2", "3")):
            for kind in ("weight", "bias"):
                if f"{prefix}{old}.{kind}" in state_dict:
                    state_dict[f"{prefix}{new}.{kind}"] = state_dict.pop(f"{prefix}{old}.{kind}")
        super()._load_from_state_dict(state_dict, prefix, *rest)


class EncoderBlock(nn.Module):
    """Attention and an MLP, each after a norm and added to what came in."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Callable[..., nn.Module] = _norm,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Any) -> Any:
        """Return what goes to the next block."""
        x = self.ln_1(input)
        x = self.dropout(self.self_attention(x, x, x, need_weights=False)[0]) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Adds the learned positions and runs the blocks."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Callable[..., nn.Module] = _norm,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(mt.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential()
        for i in range(num_layers):
            block = EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
            self.layers.add_module(f"encoder_layer_{i}", block)
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Any) -> Any:
        """Return the tokens of the last block."""
        mt._assert(input.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {input.shape}")
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A transformer over the patches of an image, of which a token of its own gives the class."""

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: Callable[..., nn.Module] = _norm,
        conv_stem_configs: Sequence[ConvStemConfig] | None = None,
    ) -> None:
        super().__init__()
        mt._assert(image_size % patch_size == 0, "Input shape indivisible by patch size!")
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = image_size, patch_size, hidden_dim, mlp_dim
        self.attention_dropout, self.dropout, self.num_classes = attention_dropout, dropout, num_classes
        self.representation_size, self.norm_layer = representation_size, norm_layer
        if conv_stem_configs is None:
            self.conv_proj: Any = nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
        else:
            self.conv_proj = _stem(conv_stem_configs, hidden_dim)
        self.class_token = nn.Parameter(mt.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        self.heads = nn.Sequential()
        if representation_size is not None:
            self.heads.add_module("pre_logits", nn.Linear(hidden_dim, representation_size))
            self.heads.add_module("act", nn.Tanh())
        self.heads.add_module("head", nn.Linear(representation_size or hidden_dim, num_classes))
        if conv_stem_configs is None:
            _truncated(self.conv_proj, fan_in=3 * patch_size**2)
        else:
            last = self.conv_proj.conv_last
            nn.init.normal_(last.weight, mean=0.0, std=math.sqrt(2 / last.out_channels))
            nn.init.zeros_(last.bias)
        if representation_size is not None:
            _truncated(self.heads.pre_logits, fan_in=hidden_dim)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        n, _, h, w = x.shape
        mt._assert(h == self.image_size, f"Wrong image height! Expected {self.image_size} but got {h}!")
        mt._assert(w == self.image_size, f"Wrong image width! Expected {self.image_size} but got {w}!")
        patches = self.conv_proj(x).flatten(2).permute(0, 2, 1)
        tokens = mt.cat([self.class_token.expand(n, -1, -1), patches], dim=1)
        return self.heads(self.encoder(tokens)[:, 0])


def _truncated(layer: Any, fan_in: int) -> None:
    nn.init.trunc_normal_(layer.weight, std=math.sqrt(1 / fan_in))
    nn.init.zeros_(layer.bias)


def _stem(configs: Sequence[ConvStemConfig], hidden_dim: int) -> nn.Sequential:
    """Make the stem of T. Xiao et al., "Early convolutions help transformers see better" (2021)."""
    stem, channels = nn.Sequential(), 3
    for i, (wanted, kernel, stride, norm, activation) in enumerate(configs):
        step = Conv2dNormActivation(channels, wanted, kernel, stride, norm_layer=norm, activation_layer=activation)
        stem.add_module(f"conv_bn_relu_{i}", step)
        channels = wanted
    stem.add_module("conv_last", nn.Conv2d(channels, hidden_dim, kernel_size=1))
    return stem


def _make(patch: int, layers: int, heads: int, hidden: int, mlp: int, image_size: int = 224, **kwargs: Any) -> Any:
    return VisionTransformer(image_size, patch, layers, heads, hidden, mlp, **kwargs)


_make.__name__ = "VisionTransformer"
vit_b_16 = register("vit_b_16", _make, 16, 12, 12, 768, 3072, about="ViT-B over patches of 16 by 16")
vit_b_32 = register("vit_b_32", _make, 32, 12, 12, 768, 3072, about="ViT-B over patches of 32 by 32")
vit_l_16 = register("vit_l_16", _make, 16, 24, 16, 1024, 4096, about="ViT-L over patches of 16 by 16")
vit_l_32 = register("vit_l_32", _make, 32, 24, 16, 1024, 4096, about="ViT-L over patches of 32 by 32")
vit_h_14 = register("vit_h_14", _make, 14, 32, 16, 1280, 5120, about="ViT-H over patches of 14 by 14")
