"""EfficientNet and EfficientNetV2: M. Tan and Q. Le, "Rethinking model scaling" (2019), "Smaller models and faster training" (2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models._utils import _make_divisible
from mortice.vision.models.registry import register
from mortice.vision.ops import Conv2dNormActivation, SqueezeExcitation, StochasticDepth

__all__ = [
    "EfficientNet", "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4",
    "efficientnet_b5", "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_l", "efficientnet_v2_m",
    "efficientnet_v2_s",
]  # fmt: skip


def widened(
    inp: int, wide: int, out: int, kernel: int, stride: int, norm: Any, activation: Any, squeeze: Any = None,
    dilation: int = 1,
) -> list[nn.Module]:  # fmt: skip
    """Make the layers of an inverted residual: widen, filter each channel by itself, weigh the channels, and narrow."""
    step = partial(Conv2dNormActivation, norm_layer=norm, activation_layer=activation)
    layers = [step(inp, wide, kernel_size=1)] if wide != inp else []
    layers.append(step(wide, wide, kernel, 1 if dilation > 1 else stride, groups=wide, dilation=dilation))
    layers += [squeeze(wide)] if squeeze is not None else []
    return [*layers, step(wide, out, kernel_size=1, activation_layer=None)]


@dataclass
class _MBConvConfig:
    """A stage: its blocks, the first of which takes the stride and changes the channels."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Callable[..., nn.Module]

    @staticmethod
    def adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
        """Scale channels to a multiple of eight."""
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of `MBConv`, scaled in width and depth."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        block: Callable[..., nn.Module] | None = None,
    ) -> None:
        channels = (self.adjust_channels(c, width_mult) for c in (input_channels, out_channels))
        super().__init__(
            expand_ratio, kernel, stride, *channels, self.adjust_depth(num_layers, depth_mult), block or MBConv
        )

    @staticmethod
    def adjust_depth(num_layers: int, depth_mult: float) -> int:
        """Scale the number of blocks, upwards."""
        return math.ceil(num_layers * depth_mult)


class FusedMBConvConfig(_MBConvConfig):
    """A stage of `FusedMBConv`."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        block: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(
            expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block or FusedMBConv
        )


class _Block(nn.Module):
    """Layers, to whose result the input is added where the shapes allow it."""

    def __init__(self, cnf: _MBConvConfig, layers: Sequence[nn.Module], stochastic_depth_prob: float) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    def forward(self, input: Any) -> Any:
        """Return what goes to the next block."""
        out = self.block(input)
        return self.stochastic_depth(out) + input if self.use_res_connect else out


class MBConv(_Block):
    """An inverted residual with weighed channels."""

    def __init__(
        self,
        cnf: MBConvConfig,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module],
        se_layer: Callable[..., nn.Module] = SqueezeExcitation,
    ) -> None:
        wide = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        narrow = max(1, cnf.input_channels // 4)
        squeeze = partial(se_layer, squeeze_channels=narrow, activation=partial(nn.SiLU, inplace=True))
        layers = widened(
            cnf.input_channels, wide, cnf.out_channels, cnf.kernel, cnf.stride, norm_layer, nn.SiLU, squeeze
        )
        super().__init__(cnf, layers, stochastic_depth_prob)


class FusedMBConv(_Block):
    """One convolution that widens and filters, and one that narrows if it widened."""

    def __init__(
        self, cnf: FusedMBConvConfig, stochastic_depth_prob: float, norm_layer: Callable[..., nn.Module]
    ) -> None:
        wide = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        widens = wide != cnf.input_channels
        step = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        layers = [step(cnf.input_channels, wide if widens else cnf.out_channels, cnf.kernel, cnf.stride)]
        layers += [step(wide, cnf.out_channels, kernel_size=1, activation_layer=None)] if widens else []
        super().__init__(cnf, layers, stochastic_depth_prob)


class EfficientNet(nn.Module):
    """Stages of inverted residuals, the later of which are dropped the more often while training."""

    def __init__(
        self,
        inverted_residual_setting: Sequence[MBConvConfig | FusedMBConvConfig],
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: Callable[..., nn.Module] | None = None,
        last_channel: int | None = None,
    ) -> None:
        super().__init__()
        stages = inverted_residual_setting
        if not stages:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(stages, Sequence) or not all(isinstance(s, _MBConvConfig) for s in stages):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm = norm_layer or nn.BatchNorm2d
        step = partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.SiLU)
        features: list[nn.Module] = [step(3, stages[0].input_channels, stride=2)]
        blocks, made = sum(s.num_layers for s in stages), 0
        for stage in stages:
            layers = []
            for i in range(stage.num_layers):
                given = (stage.stride, stage.input_channels) if i == 0 else (1, stage.out_channels)
                cnf = _MBConvConfig(stage.expand_ratio, stage.kernel, *given, stage.out_channels, 1, stage.block)
                layers.append(stage.block(cnf, stochastic_depth_prob * made / blocks, norm))
                made += 1
            features.append(nn.Sequential(*layers))
        channels = stages[-1].out_channels
        last = 4 * channels if last_channel is None else last_channel
        self.features = nn.Sequential(*features, step(channels, last, kernel_size=1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(last, num_classes))
        initial.draw(self, conv=initial.he_fan_out, linear=_by_outputs)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.classifier(mt.flatten(self.avgpool(self.features(x)), 1))


def _by_outputs(weight: Any) -> Any:
    bound = 1 / math.sqrt(weight.shape[0])
    return nn.init.uniform_(weight, -bound, bound)


# expansion, kernel, stride, channels in and out, blocks
_V1 = ((1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3),
       (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1))  # fmt: skip


# fused stages, then plain ones
_V2_S = (((1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4)),
         ((4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15)))  # fmt: skip
_V2_M = (((1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5)),
         ((4, 3, 2, 80, 160, 7), (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18), (6, 3, 1, 304, 512, 5)))  # fmt: skip
_V2_L = (((1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7)),
         ((4, 3, 2, 96, 192, 10), (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25), (6, 3, 1, 384, 640, 7)))  # fmt: skip


def _v1(name: str, width: float, depth: float, dropout: float, **norm: float) -> Any:
    stages = [MBConvConfig(*stage, width_mult=width, depth_mult=depth) for stage in _V1]
    usual: dict[str, Any] = {"dropout": dropout}
    if norm:
        usual["norm_layer"] = partial(nn.BatchNorm2d, **norm)
    about = f"EfficientNet-{name[-2:].upper()}"
    return register(name, EfficientNet, stages, usual=usual, last_channel=None, about=about)


def _v2(name: str, fused: Any, plain: Any, dropout: float) -> Any:
    stages = [*(FusedMBConvConfig(*stage) for stage in fused), *(MBConvConfig(*stage) for stage in plain)]
    usual = {"dropout": dropout, "norm_layer": partial(nn.BatchNorm2d, eps=1e-3)}
    about = f"EfficientNetV2-{name[-1].upper()}"
    return register(name, EfficientNet, stages, usual=usual, last_channel=1280, about=about)


efficientnet_b0 = _v1("efficientnet_b0", 1.0, 1.0, 0.2)
efficientnet_b1 = _v1("efficientnet_b1", 1.0, 1.1, 0.2)
efficientnet_b2 = _v1("efficientnet_b2", 1.1, 1.2, 0.3)
efficientnet_b3 = _v1("efficientnet_b3", 1.2, 1.4, 0.3)
efficientnet_b4 = _v1("efficientnet_b4", 1.4, 1.8, 0.4)
efficientnet_b5 = _v1("efficientnet_b5", 1.6, 2.2, 0.4, eps=1e-3, momentum=0.01)
efficientnet_b6 = _v1("efficientnet_b6", 1.8, 2.6, 0.5, eps=1e-3, momentum=0.01)
efficientnet_b7 = _v1("efficientnet_b7", 2.0, 3.1, 0.5, eps=1e-3, momentum=0.01)
efficientnet_v2_s = _v2("efficientnet_v2_s", *_V2_S, 0.2)
efficientnet_v2_m = _v2("efficientnet_v2_m", *_V2_M, 0.3)
efficientnet_v2_l = _v2("efficientnet_v2_l", *_V2_L, 0.4)
