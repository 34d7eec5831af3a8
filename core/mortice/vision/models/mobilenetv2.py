"""MobileNetV2: M. Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks" (2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models._utils import _make_divisible
from mortice.vision.models.registry import register
from mortice.vision.ops import Conv2dNormActivation

__all__ = ["MobileNetV2", "mobilenet_v2"]

# expansion, channels, blocks, stride of the first block
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class InvertedResidual(nn.Module):
    """Widen, filter each channel by itself, and narrow; the input is added where the shapes allow it."""

    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Callable[..., nn.Module] | None = None
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm = norm_layer or nn.BatchNorm2d
        step = partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.ReLU6)
        wide = round(inp * expand_ratio)
        self.stride, self.out_channels, self.use_res_connect = stride, oup, stride == 1 and inp == oup
        self._is_cn = stride > 1  # whether a stage begins here: models for detection look for it
        self.conv = nn.Sequential(
            *([step(inp, wide, kernel_size=1)] if expand_ratio != 1 else []),
            step(wide, wide, stride=stride, groups=wide),
            nn.Conv2d(wide, oup, 1, bias=False),
            norm(oup),
        )

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """Inverted residuals; `width_mult` scales the channels and `round_nearest` says of what they are multiples."""

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: Sequence[Sequence[int]] | None = None,
        round_nearest: int = 8,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        block, norm = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        stages = _STAGES if inverted_residual_setting is None else inverted_residual_setting
        if len(stages) == 0 or len(stages[0]) != 4:
            raise ValueError(f"inverted_residual_setting should be non-empty or a 4-element list, got {stages}")
        step = partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.ReLU6)
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [step(3, channels, stride=2)]
        for expansion, width, blocks, stride in stages:
            wanted = _make_divisible(width * width_mult, round_nearest)
            for i in range(blocks):
                features.append(block(channels, wanted, 1 if i else stride, expand_ratio=expansion, norm_layer=norm))
                channels = wanted
        self.features = nn.Sequential(*features, step(channels, self.last_channel, kernel_size=1))
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        initial.draw(self, conv=partial(nn.init.kaiming_normal_, mode="fan_out"), linear=initial.small_normal)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.classifier(mt.flatten(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)), 1))


mobilenet_v2 = register("mobilenet_v2", MobileNetV2, about="MobileNetV2")
