"""ConvNeXt: Z. Liu et al., "A ConvNet for the 2020s" (2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.registry import register
from mortice.vision.ops import Conv2dNormActivation, Permute, StochasticDepth

__all__ = ["ConvNeXt", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny"]


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm of the channels of images."""

    def forward(self, x: Any) -> Any:
        """Return the images, normalised at each pixel."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """Filter each channel by itself, then two linear layers at each pixel; what they give is scaled and added."""

    def __init__(
        self,
        dim: int,
        layer_scale: float,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim), Permute([0, 2, 3, 1]),
            (norm_layer or partial(nn.LayerNorm, eps=1e-6))(dim),
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), Permute([0, 3, 1, 2]),
        )  # fmt: skip
        self.layer_scale = nn.Parameter(mt.full((dim, 1, 1), float(layer_scale)))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Any) -> Any:
        """Return what goes to the next block."""
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


@dataclass
class CNBlockConfig:
    """A stage, and the channels that come after it; None for the last."""

    input_channels: int
    out_channels: int | None
    num_layers: int


class ConvNeXt(nn.Module):
    """Stages of blocks, which halve the picture between them."""

    def __init__(
        self,
        block_setting: Sequence[CNBlockConfig],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        stages = block_setting
        if not stages:
            raise ValueError("The block_setting should not be empty")
        if not isinstance(stages, Sequence) or not all(isinstance(s, CNBlockConfig) for s in stages):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block, norm = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        features: list[nn.Module] = [
            Conv2dNormActivation(
                3, stages[0].input_channels, 4, 4, padding=0, norm_layer=norm, activation_layer=None, bias=True
            )
        ]
        made, last = 0, max(sum(stage.num_layers for stage in stages) - 1, 1)
        for stage in stages:
            shares = [stochastic_depth_prob * i / last for i in range(made, made + stage.num_layers)]
            features.append(nn.Sequential(*(block(stage.input_channels, layer_scale, share) for share in shares)))
            made += stage.num_layers
            if stage.out_channels is not None:
                halve = nn.Conv2d(stage.input_channels, stage.out_channels, kernel_size=2, stride=2)
                features.append(nn.Sequential(norm(stage.input_channels), halve))
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        channels = stages[-1].out_channels or stages[-1].input_channels
        self.classifier = nn.Sequential(norm(channels), nn.Flatten(1), nn.Linear(channels, num_classes))
        draw = partial(nn.init.trunc_normal_, std=0.02)
        initial.draw(self, conv=draw, linear=draw)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.classifier(self.avgpool(self.features(x)))


def _convnext(name: str, channels: int, blocks: int, stochastic_depth_prob: float) -> Any:
    """List a network of 3, 3, `blocks` and 3 blocks, which doubles the channels after each stage but the last."""
    widths = [channels, 2 * channels, 4 * channels, 8 * channels]
    stages = [CNBlockConfig(*stage) for stage in zip(widths, [*widths[1:], None], (3, 3, blocks, 3))]
    usual = {"stochastic_depth_prob": stochastic_depth_prob}
    return register(name, ConvNeXt, stages, usual=usual, about=f"ConvNeXt-{name[9:].capitalize()}")


convnext_tiny = _convnext("convnext_tiny", 96, 9, 0.1)
convnext_small = _convnext("convnext_small", 96, 27, 0.4)
convnext_base = _convnext("convnext_base", 128, 27, 0.5)
convnext_large = _convnext("convnext_large", 192, 27, 0.5)
