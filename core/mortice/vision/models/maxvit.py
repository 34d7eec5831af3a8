"""MaxViT: Z. Tu et al., "MaxViT: multi-axis vision transformer" (2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.registry import register
from mortice.vision.models.swin_transformer import by_ways, relative_index
from mortice.vision.ops import Conv2dNormActivation, SqueezeExcitation, StochasticDepth

__all__ = ["MaxVit", "maxvit_t"]

Made = Callable[..., nn.Module]


def _halved(size: Sequence[int]) -> tuple[int, int]:
    return (size[0] + 1) // 2, (size[1] + 1) // 2


def _make_block_input_shapes(input_size: Sequence[int], n_blocks: int) -> list[tuple[int, int]]:
    """Return the sizes of what the blocks make: the stem halves the picture, and so does each of them."""
    shapes, size = [], _halved(input_size)
    for _ in range(n_blocks):
        size = _halved(size)
        shapes.append(size)
    return shapes


class MBConv(nn.Module):
    """A norm and an inverted residual with weighed channels; what came in is added, projected where the shapes differ."""

    def __init__(
        self, in_channels: int, out_channels: int, expansion_ratio: float, squeeze_ratio: float, stride: int,
        activation_layer: Made, norm_layer: Made, p_stochastic_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        projection: list[nn.Module] = [nn.AvgPool2d(kernel_size=3, stride=stride, padding=1)] if stride == 2 else []
        if stride != 1 or in_channels != out_channels:
            self.proj: nn.Module = nn.Sequential(*projection, nn.Conv2d(in_channels, out_channels, kernel_size=1))
        else:
            self.proj = nn.Identity()
        self.stochastic_depth = StochasticDepth(p_stochastic_dropout, "row") if p_stochastic_dropout else nn.Identity()
        wide = int(out_channels * expansion_ratio)
        step = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=activation_layer, inplace=None)
        self.layers = nn.Sequential()
        self.layers.pre_norm = norm_layer(in_channels)
        self.layers.conv_a = step(in_channels, wide, 1)
        self.layers.conv_b = step(wide, wide, 3, stride, groups=wide)
        self.layers.squeeze_excitation = SqueezeExcitation(wide, int(out_channels * squeeze_ratio), activation=nn.SiLU)
        self.layers.conv_c = nn.Conv2d(wide, out_channels, kernel_size=1)

    def forward(self, x: Any) -> Any:
        """Return what goes to the next layer."""
        return self.proj(x) + self.stochastic_depth(self.layers(x))


class RelativePositionalMultiHeadAttention(nn.Module):
    """Attention within groups of tokens (N, groups, tokens, channels), with a bias for each way within a square."""

    def __init__(self, feat_dim: int, head_dim: int, max_seq_len: int) -> None:
        super().__init__()
        if feat_dim % head_dim:
            raise ValueError(f"feat_dim: {feat_dim} must be divisible by head_dim: {head_dim}")
        self.n_heads, self.head_dim = feat_dim // head_dim, head_dim
        self.size, self.max_seq_len = int(max_seq_len**0.5), max_seq_len
        self.to_qkv = nn.Linear(feat_dim, self.n_heads * head_dim * 3)
        self.scale_factor = feat_dim**-0.5  # of all channels, as in the weights that are published
        self.merge = nn.Linear(head_dim * self.n_heads, feat_dim)
        self.relative_position_bias_table = nn.Parameter(mt.empty((2 * self.size - 1) ** 2, self.n_heads))
        self.register_buffer("relative_position_index", relative_index(self.size, self.size))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def get_relative_positional_bias(self) -> Any:
        """Return the bias of each two tokens: (1, heads, tokens, tokens)."""
        return by_ways(self.relative_position_bias_table, self.relative_position_index)

    def forward(self, x: Any) -> Any:
        """Return tokens of the same shape."""
        n, groups, tokens, channels = x.shape
        qkv = self.to_qkv(x).view(n, groups, tokens, 3, self.n_heads, self.head_dim)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5).unbind(0)
        scores = q @ (k * self.scale_factor).transpose(-2, -1) + self.get_relative_positional_bias()
        x = (scores.softmax(dim=-1) @ v).transpose(2, 3).reshape(n, groups, tokens, channels)
        return self.merge(x)


class SwapAxes(nn.Module):
    """`swapaxes` as a module."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.a, self.b = a, b

    def forward(self, x: Any) -> Any:
        """Return the tensor with two dims exchanged."""
        return x.swapaxes(self.a, self.b)


class WindowPartition(nn.Module):
    """Cut pictures (N, C, H, W) into windows of p by p: (N, windows, p * p, C)."""

    def forward(self, x: Any, p: int) -> Any:
        """Return the windows, row by row."""
        n, c, h, w = x.shape
        x = x.reshape(n, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1)
        return x.reshape(n, (h // p) * (w // p), p * p, c)


class WindowDepartition(nn.Module):
    """Put windows together again."""

    def forward(self, x: Any, p: int, h_partitions: int, w_partitions: int) -> Any:
        """Return pictures (N, C, H, W)."""
        n, _, _, c = x.shape
        x = x.reshape(n, h_partitions, w_partitions, p, p, c).permute(0, 5, 1, 3, 2, 4)
        return x.reshape(n, c, h_partitions * p, w_partitions * p)


class PartitionAttentionLayer(nn.Module):
    """Attention and an MLP within windows, or within grids: pixels that lie as far apart as there are windows."""

    def __init__(
        self, in_channels: int, head_dim: int, partition_size: int, partition_type: str, grid_size: tuple[int, int],
        mlp_ratio: int, activation_layer: Made, norm_layer: Made, attention_dropout: float, mlp_dropout: float,
        p_stochastic_dropout: float,
    ) -> None:  # fmt: skip
        super().__init__()
        if partition_type not in ("grid", "window"):
            raise ValueError("partition_type must be either 'grid' or 'window'")
        self.n_heads, self.head_dim = in_channels // head_dim, head_dim
        self.n_partitions = grid_size[0] // partition_size
        self.partition_type, self.grid_size = partition_type, grid_size
        grid = partition_type == "grid"
        self.p, self.g = (self.n_partitions, partition_size) if grid else (partition_size, self.n_partitions)
        self.partition_op, self.departition_op = WindowPartition(), WindowDepartition()
        self.partition_swap = SwapAxes(-2, -3) if grid else nn.Identity()
        self.departition_swap = SwapAxes(-2, -3) if grid else nn.Identity()
        self.attn_layer = nn.Sequential(
            norm_layer(in_channels),
            RelativePositionalMultiHeadAttention(in_channels, head_dim, partition_size**2),
            nn.Dropout(attention_dropout),
        )
        self.mlp_layer = nn.Sequential(
            nn.LayerNorm(in_channels), nn.Linear(in_channels, in_channels * mlp_ratio), activation_layer(),
            nn.Linear(in_channels * mlp_ratio, in_channels), nn.Dropout(mlp_dropout),
        )  # fmt: skip
        self.stochastic_dropout = StochasticDepth(p_stochastic_dropout, "row")

    def forward(self, x: Any) -> Any:
        """Return pictures (N, C, H, W)."""
        rows, columns = (side // self.p for side in self.grid_size)
        x = self.partition_swap(self.partition_op(x, self.p))
        x = x + self.stochastic_dropout(self.attn_layer(x))
        x = x + self.stochastic_dropout(self.mlp_layer(x))
        return self.departition_op(self.departition_swap(x), self.p, rows, columns)


class MaxVitLayer(nn.Module):
    """A convolution, attention within windows, and attention within grids."""

    def __init__(
        self, in_channels: int, out_channels: int, squeeze_ratio: float, expansion_ratio: float, stride: int,
        norm_layer: Made, activation_layer: Made, head_dim: int, mlp_ratio: int, mlp_dropout: float,
        attention_dropout: float, p_stochastic_dropout: float, partition_size: int, grid_size: tuple[int, int],
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = nn.Sequential()
        self.layers.MBconv = MBConv(
            in_channels, out_channels, expansion_ratio, squeeze_ratio, stride, activation_layer, norm_layer,
            p_stochastic_dropout,
        )  # fmt: skip
        for kind in ("window", "grid"):
            attention = PartitionAttentionLayer(
                out_channels, head_dim, partition_size, kind, grid_size, mlp_ratio, activation_layer, nn.LayerNorm,
                attention_dropout, mlp_dropout, p_stochastic_dropout,
            )  # fmt: skip
            self.layers.add_module(f"{kind}_attention", attention)

    def forward(self, x: Any) -> Any:
        """Return what goes to the next layer."""
        return self.layers(x)


class MaxVitBlock(nn.Module):
    """Layers, the first of which halves the picture."""

    def __init__(
        self, in_channels: int, out_channels: int, squeeze_ratio: float, expansion_ratio: float, norm_layer: Made,
        activation_layer: Made, head_dim: int, mlp_ratio: int, mlp_dropout: float, attention_dropout: float,
        partition_size: int, input_grid_size: tuple[int, int], n_layers: int, p_stochastic: Sequence[float],
    ) -> None:  # fmt: skip
        super().__init__()
        if len(p_stochastic) != n_layers:
            raise ValueError(f"p_stochastic must have length n_layers={n_layers}, got p_stochastic={p_stochastic}.")
        self.layers, self.grid_size = nn.ModuleList(), _halved(input_grid_size)
        for i, share in enumerate(p_stochastic):
            given = (out_channels, 1) if i else (in_channels, 2)
            self.layers.append(
                MaxVitLayer(
                    given[0], out_channels, squeeze_ratio, expansion_ratio, given[1], norm_layer, activation_layer,
                    head_dim, mlp_ratio, mlp_dropout, attention_dropout, share, partition_size, self.grid_size,
                )
            )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        for layer in self.layers:
            x = layer(x)
        return x


class MaxVit(nn.Module):
    """A stem of convolutions and blocks; it takes pictures of one size."""

    def __init__(
        self,
        input_size: tuple[int, int],
        stem_channels: int,
        partition_size: int,
        block_channels: Sequence[int],
        block_layers: Sequence[int],
        head_dim: int,
        stochastic_depth_prob: float,
        norm_layer: Made | None = None,
        activation_layer: Made = nn.GELU,
        squeeze_ratio: float = 0.25,
        expansion_ratio: float = 4,
        mlp_ratio: int = 4,
        mlp_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        norm = norm_layer or partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        shapes = _make_block_input_shapes(input_size, len(block_channels))
        for i, shape in enumerate(shapes):
            if any(side % partition_size for side in shape):
                raise ValueError(
                    f"Input size {shape} of block {i} is not divisible by partition size {partition_size}. Consider "
                    "changing the partition size or the input size.\nCurrent configuration yields the following block "
                    f"input sizes: {shapes}."
                )
        self.stem = nn.Sequential(
            Conv2dNormActivation(
                3, stem_channels, 3, 2, norm_layer=norm, activation_layer=activation_layer, inplace=None, bias=False
            ),
            Conv2dNormActivation(stem_channels, stem_channels, 3, norm_layer=None, activation_layer=None, bias=True),
        )
        self.partition_size, self.blocks = partition_size, nn.ModuleList()
        layers = sum(block_layers)
        shares = [stochastic_depth_prob * i / max(layers - 1, 1) for i in range(layers)]
        channels, size = stem_channels, _halved(input_size)
        for wanted, n in zip(block_channels, block_layers):
            block = MaxVitBlock(
                channels, wanted, squeeze_ratio, expansion_ratio, norm, activation_layer, head_dim, mlp_ratio,
                mlp_dropout, attention_dropout, partition_size, size, n, shares[:n],
            )  # fmt: skip
            self.blocks.append(block)
            channels, size, shares = wanted, block.grid_size, shares[n:]
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(channels), nn.Linear(channels, channels), nn.Tanh(),
            nn.Linear(channels, num_classes, bias=False),
        )  # fmt: skip
        draw = partial(nn.init.normal_, std=0.02)
        initial.draw(self, conv=draw, linear=draw)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)


maxvit_t = register(
    "maxvit_t", MaxVit, stem_channels=64, block_channels=[64, 128, 256, 512], block_layers=[2, 2, 5, 2], head_dim=32,
    partition_size=7, usual={"input_size": (224, 224), "stochastic_depth_prob": 0.2}, about="MaxViT-T",
)  # fmt: skip
