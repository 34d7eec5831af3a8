"""Swin transformers: Z. Liu et al., "Hierarchical vision transformer using shifted windows" (2021), "Swin transformer V2" (2022)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.asking import wrap
from mortice.nn import functional as F
from mortice.vision.models.registry import register
from mortice.vision.ops import MLP, Permute, StochasticDepth

__all__ = ["SwinTransformer", "swin_b", "swin_s", "swin_t", "swin_v2_b", "swin_v2_s", "swin_v2_t"]

_narrow = partial(nn.init.trunc_normal_, mean=0.0, std=0.02)


class PatchMerging(nn.Module):
    """Halve the picture: the channels of four neighbours become twice those of one."""

    def __init__(self, dim: int, norm_layer: Callable[..., nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: Any) -> Any:
        """Return pictures (..., height, width, channels) of half the size."""
        return self.reduction(self.norm(_neighbours(x)))


class PatchMergingV2(nn.Module):
    """`PatchMerging` with the norm at its end."""

    def __init__(self, dim: int, norm_layer: Callable[..., nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: Any) -> Any:
        """Return pictures (..., height, width, channels) of half the size."""
        return self.norm(self.reduction(_neighbours(x)))


def _neighbours(x: Any) -> Any:
    """Put the channels of each two by two pixels beside each other, by columns."""
    h, w = x.shape[-3:-1]
    x = F.pad(x, (0, 0, 0, w % 2, 0, h % 2))
    return mt.cat([x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)], -1)


@wrap
def shifted_window_attention(
    input: Any,
    qkv_weight: Any,
    proj_weight: Any,
    relative_position_bias: Any,
    window_size: Sequence[int],
    num_heads: int,
    shift_size: Sequence[int],
    attention_dropout: float = 0.0,
    dropout: float = 0.0,
    qkv_bias: Any = None,
    proj_bias: Any = None,
    logit_scale: Any = None,
    training: bool = True,
) -> Any:
    """Attend within windows of pictures (N, height, width, channels), which are moved by `shift_size` before.

    With `logit_scale` keys and queries count by their direction alone, as in the second version.
    """
    n, height, width, channels = input.shape
    # What is added at the ends takes part as any other pixel, as in the weights that are published.
    x = F.pad(input, (0, 0, 0, -width % window_size[1], 0, -height % window_size[0]))
    sides = x.shape[1:3]
    # One window along a side sees all there is: nothing to move.
    shift = [0 if window >= side else step for window, side, step in zip(window_size, sides, shift_size)]
    if any(shift):
        x = mt.roll(x, shifts=[-step for step in shift], dims=(1, 2))
    rows, columns = (side // window for side, window in zip(sides, window_size))
    tokens = window_size[0] * window_size[1]
    x = x.view(n, rows, window_size[0], columns, window_size[1], channels).transpose(2, 3)
    x = x.reshape(n * rows * columns, tokens, channels)
    if logit_scale is not None and qkv_bias is not None:  # keys have none
        qkv_bias = mt.cat([qkv_bias[:channels], mt.zeros_like(qkv_bias[:channels]), qkv_bias[2 * channels :]])
    qkv = F.linear(x, qkv_weight, qkv_bias).reshape(-1, tokens, 3, num_heads, channels // num_heads)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    if logit_scale is None:
        scores = (q * (channels // num_heads) ** -0.5) @ k.transpose(-2, -1)
    else:
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * logit_scale.clamp(max=math.log(100.0)).exp()
    scores = scores + relative_position_bias
    if any(shift):
        apart = _apart(sides, window_size, shift).to(device=x.device, dtype=x.dtype)
        scores = scores.view(n, rows * columns, num_heads, tokens, tokens) + apart[None, :, None]
        scores = scores.view(-1, num_heads, tokens, tokens)
    shares = F.dropout(scores.softmax(dim=-1), p=attention_dropout, training=training)
    x = F.linear((shares @ v).transpose(1, 2).reshape(-1, tokens, channels), proj_weight, proj_bias)
    x = F.dropout(x, p=dropout, training=training)
    x = x.view(n, rows, columns, *window_size, channels).transpose(2, 3).reshape(n, *sides, channels)
    if any(shift):
        x = mt.roll(x, shifts=shift, dims=(1, 2))
    return x[:, :height, :width].contiguous()


def _apart(sides: Sequence[int], window_size: Sequence[int], shift: Sequence[int]) -> Any:
    """Return what keeps pixels of a window from each other that moving brought together: (windows, tokens, tokens)."""
    region = []
    for side, window, step in zip(sides, window_size, shift):
        at = mt.arange(side)
        region.append((at >= side - window).long() + (at >= side - step).long() if step else mt.zeros_like(at))
    names = region[0][:, None] * 3 + region[1]
    names = names.view(sides[0] // window_size[0], window_size[0], -1, window_size[1]).transpose(1, 2)
    names = names.reshape(-1, window_size[0] * window_size[1])
    return mt.where(names[:, :, None] == names[:, None], 0.0, -100.0)


def relative_index(height: int, width: int) -> Any:
    """Return which of (2 * height - 1) * (2 * width - 1) ways leads from each pixel of a window to each: two dims."""
    down, across = mt.arange(height), mt.arange(width)
    down = (down[:, None] - down + height - 1)[:, None, :, None] * (2 * width - 1)
    index = down + (across[:, None] - across + width - 1)[None, :, None]
    return index.view(height * width, height * width)


@wrap
def by_ways(table: Any, index: Any) -> Any:
    """Return the row of a table (ways, heads) for each two pixels: (1, heads, tokens, tokens)."""
    tokens = math.isqrt(index.numel())
    return table[index.flatten()].view(tokens, tokens, -1).permute(2, 0, 1).contiguous()[None]


class ShiftedWindowAttention(nn.Module):
    """`shifted_window_attention` with a learned bias for each way from a pixel to another of its window."""

    def __init__(
        self,
        dim: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if len(window_size) != 2 or len(shift_size) != 2:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.define_relative_position_bias_table()
        self.define_relative_position_index()

    def define_relative_position_bias_table(self) -> None:
        """Make the parameter that holds the biases."""
        ways = math.prod(2 * side - 1 for side in self.window_size)
        self.relative_position_bias_table = nn.Parameter(_narrow(mt.zeros(ways, self.num_heads)))

    def define_relative_position_index(self) -> None:
        """Make the buffer that says which bias is that of each two pixels."""
        self.register_buffer("relative_position_index", relative_index(*self.window_size).flatten())

    def get_relative_position_bias(self) -> Any:
        """Return the bias of each two pixels: (1, heads, tokens, tokens)."""
        return by_ways(self.relative_position_bias_table, self.relative_position_index)

    def forward(self, x: Any) -> Any:
        """Return pictures (N, height, width, channels)."""
        return shifted_window_attention(
            x, self.qkv.weight, self.proj.weight, self.get_relative_position_bias(), self.window_size, self.num_heads,
            self.shift_size, self.attention_dropout, self.dropout, self.qkv.bias, self.proj.bias,
            getattr(self, "logit_scale", None), self.training,
        )  # fmt: skip


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """Attention by direction, in which a small network makes the biases of how far pixels are apart, by logarithm."""

    def __init__(
        self,
        dim: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            dim, window_size, shift_size, num_heads, qkv_bias, proj_bias, attention_dropout, dropout
        )
        self.logit_scale = nn.Parameter(mt.full((num_heads, 1, 1), math.log(10.0)))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False)
        )
        if qkv_bias:
            nn.init.zeros_(self.qkv.bias[dim : 2 * dim])

    def define_relative_position_bias_table(self) -> None:
        """Make the buffer of distances along both sides, eight at the ends, by their logarithm."""
        down, across = (8 * mt.arange(1 - side, side).float() / (side - 1) for side in self.window_size)
        table = mt.stack(mt.meshgrid(down, across, indexing="ij"), dim=-1)
        table = mt.sign(table) * mt.log2(table.abs() + 1.0) / 3.0
        self.register_buffer("relative_coords_table", table[None])

    def get_relative_position_bias(self) -> Any:
        """Return the bias of each two pixels: (1, heads, tokens, tokens)."""
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        return 16 * mt.sigmoid(by_ways(table, self.relative_position_index))


class SwinTransformerBlock(nn.Module):
    """Attention and an MLP, each after a norm and added to what came in."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
        attn_layer: Callable[..., nn.Module] = ShiftedWindowAttention,
    ) -> None:
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout, dropout=dropout
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for layer in (self.mlp[0], self.mlp[3]):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """`SwinTransformerBlock` with the norms after attention and MLP."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
        attn_layer: Callable[..., nn.Module] = ShiftedWindowAttentionV2,
    ) -> None:
        super().__init__(
            dim, num_heads, window_size, shift_size, mlp_ratio, dropout, attention_dropout, stochastic_depth_prob,
            norm_layer, attn_layer,
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


class SwinTransformer(nn.Module):
    """Stages of attention within windows, every second block of which moves them; the picture halves between stages."""

    def __init__(
        self,
        patch_size: Sequence[int],
        embed_dim: int,
        depths: Sequence[int],
        num_heads: Sequence[int],
        window_size: Sequence[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.1,
        num_classes: int = 1000,
        norm_layer: Callable[..., nn.Module] | None = None,
        block: Callable[..., nn.Module] | None = None,
        downsample_layer: Callable[..., nn.Module] = PatchMerging,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        norm, block = norm_layer or partial(nn.LayerNorm, eps=1e-5), block or SwinTransformerBlock
        patches = nn.Conv2d(3, embed_dim, kernel_size=tuple(patch_size), stride=tuple(patch_size))
        features = [nn.Sequential(patches, Permute([0, 2, 3, 1]), norm(embed_dim))]
        last, made, dim = max(sum(depths) - 1, 1), 0, embed_dim
        moved = [side // 2 for side in window_size]
        for stage, (depth, heads) in enumerate(zip(depths, num_heads)):
            if stage:
                features.append(downsample_layer(dim, norm))
                dim *= 2
            layers = []
            for i in range(depth):
                shift = list(moved) if i % 2 else [0, 0]
                share = stochastic_depth_prob * made / last
                layers.append(
                    block(
                        dim, heads, window_size=window_size, shift_size=shift, mlp_ratio=mlp_ratio, dropout=dropout,
                        attention_dropout=attention_dropout, stochastic_depth_prob=share, norm_layer=norm,
                    )
                )  # fmt: skip
                made += 1
            features.append(nn.Sequential(*layers))
        self.features = nn.Sequential(*features)
        self.norm = norm(dim)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(dim, num_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                _narrow(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


def _swin(name: str, embed_dim: int, blocks: int, heads: int, stochastic_depth_prob: float) -> Any:
    """List a network of 2, 2, `blocks` and 2 blocks, in which channels and heads double from stage to stage."""
    second = "v2" in name
    fixed = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2} if second else {}
    return register(
        name, SwinTransformer, [4, 4], embed_dim, [2, 2, blocks, 2], [heads * 2**i for i in range(4)], [7 + second] * 2,
        usual={"stochastic_depth_prob": stochastic_depth_prob},
        about=f"Swin{'V2' if second else ''}-{name[-1].upper()}", **fixed,
    )  # fmt: skip


swin_t = _swin("swin_t", 96, 6, 3, 0.2)
swin_s = _swin("swin_s", 96, 18, 3, 0.3)
swin_b = _swin("swin_b", 128, 18, 4, 0.5)
swin_v2_t = _swin("swin_v2_t", 96, 6, 3, 0.2)
swin_v2_s = _swin("swin_v2_s", 96, 18, 3, 0.3)
swin_v2_b = _swin("swin_v2_b", 128, 18, 4, 0.5)
