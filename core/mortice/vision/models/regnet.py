"""RegNet: I. Radosavovic et al., "Designing network design spaces" (2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models._utils import _make_divisible
from mortice.vision.models.registry import register
from mortice.vision.ops import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "RegNet", "regnet_x_16gf", "regnet_x_1_6gf", "regnet_x_32gf", "regnet_x_3_2gf", "regnet_x_400mf", "regnet_x_800mf",
    "regnet_x_8gf", "regnet_y_128gf", "regnet_y_16gf", "regnet_y_1_6gf", "regnet_y_32gf", "regnet_y_3_2gf",
    "regnet_y_400mf", "regnet_y_800mf", "regnet_y_8gf",
]  # fmt: skip

Made = Callable[..., nn.Module]


class SimpleStemIN(Conv2dNormActivation):
    """The first convolution, which halves the picture."""

    def __init__(self, width_in: int, width_out: int, norm_layer: Made, activation_layer: Made) -> None:
        super().__init__(
            width_in, width_out, kernel_size=3, stride=2, norm_layer=norm_layer, activation_layer=activation_layer
        )


class BottleneckTransform(nn.Sequential):
    """A convolution of 3 by 3 in groups between two of single pixels; with `se_ratio` the channels are weighed."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Made, activation_layer: Made, group_width: int,
        bottleneck_multiplier: float, se_ratio: float | None,
    ) -> None:  # fmt: skip
        super().__init__()
        narrow = round(width_out * bottleneck_multiplier)
        layers: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation_layer}
        self.a = Conv2dNormActivation(width_in, narrow, 1, **layers)
        self.b = Conv2dNormActivation(narrow, narrow, 3, stride, groups=narrow // group_width, **layers)
        if se_ratio:  # the squeezed channels are a share of those that come in
            self.se = SqueezeExcitation(narrow, round(se_ratio * width_in), activation=activation_layer)
        self.c = Conv2dNormActivation(narrow, width_out, 1, norm_layer=norm_layer, activation_layer=None)


class ResBottleneckBlock(nn.Module):
    """A bottleneck, and the input added to what it returns; the input is projected where the shapes differ."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Made, activation_layer: Made,
        group_width: int = 1, bottleneck_multiplier: float = 1.0, se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(
                width_in, width_out, 1, stride, norm_layer=norm_layer, activation_layer=None
            )
        self.f = BottleneckTransform(
            width_in, width_out, stride, norm_layer, activation_layer, group_width, bottleneck_multiplier, se_ratio
        )
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class AnyStage(nn.Sequential):
    """Blocks, of which the first takes the stride."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, depth: int, block_constructor: Made, norm_layer: Made,
        activation_layer: Made, group_width: int, bottleneck_multiplier: float, se_ratio: float | None = None,
        stage_index: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        common = norm_layer, activation_layer, group_width, bottleneck_multiplier, se_ratio
        for i in range(depth):
            given = (width_out, width_out, 1) if i else (width_in, width_out, stride)
            self.add_module(f"block{stage_index}-{i}", block_constructor(*given, *common))


class BlockParams:
    """What the stages are made of."""

    def __init__(
        self,
        depths: Sequence[int],
        widths: Sequence[int],
        group_widths: Sequence[int],
        bottleneck_multipliers: Sequence[float],
        strides: Sequence[int],
        se_ratio: float | None = None,
    ) -> None:
        self.depths, self.widths, self.group_widths = depths, widths, group_widths
        self.bottleneck_multipliers, self.strides, self.se_ratio = bottleneck_multipliers, strides, se_ratio

    @classmethod
    def from_init_params(
        cls,
        depth: int,
        w_0: int,
        w_a: float,
        w_m: float,
        group_width: int,
        bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
        **kwargs: Any,
    ) -> BlockParams:
        """Make them as the paper does: widths on the line w_0 + w_a * i, each moved to a power of w_m times w_0."""
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8:
            raise ValueError("Invalid RegNet settings")
        powers = [round(math.log((w_0 + w_a * i) / w_0, w_m)) for i in range(depth)]
        blocks = [8 * round(w_0 * w_m**power / 8) for power in powers]
        widths = sorted(set(blocks))
        narrow = [int(width * bottleneck_multiplier) for width in widths]
        groups = [min(group_width, width) for width in narrow]
        adjusted = [int(_make_divisible(n, g) / bottleneck_multiplier) for n, g in zip(narrow, groups)]
        depths, stages = [blocks.count(width) for width in widths], len(widths)
        return cls(depths, adjusted, groups, [bottleneck_multiplier] * stages, [2] * stages, se_ratio)

    def _get_expanded_params(self) -> Iterator[tuple[int, int, int, int, float]]:
        return zip(self.widths, self.strides, self.depths, self.group_widths, self.bottleneck_multipliers)


class RegNet(nn.Module):
    """A stem and stages of blocks, whose widths follow a rule."""

    def __init__(
        self,
        block_params: BlockParams,
        num_classes: int = 1000,
        stem_width: int = 32,
        stem_type: Made | None = None,
        block_type: Made | None = None,
        norm_layer: Made | None = None,
        activation: Made | None = None,
    ) -> None:
        super().__init__()
        layers = norm_layer or nn.BatchNorm2d, activation or nn.ReLU
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, *layers)
        self.trunk_output = nn.Sequential()
        channels = stem_width
        for i, (width, stride, depth, *rest) in enumerate(block_params._get_expanded_params(), 1):
            stage = AnyStage(
                channels, width, stride, depth, block_type or ResBottleneckBlock, *layers, *rest,
                se_ratio=block_params.se_ratio, stage_index=i,
            )  # fmt: skip
            self.trunk_output.add_module(f"block{i}", stage)
            channels = width
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, num_classes)
        initial.draw(self, conv=initial.he_fan_out, linear=initial.small_normal, biases=False)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(1))


def _regnet(name: str, *params: Any) -> Any:
    kind, size = name.split("_", 2)[1:]
    stages = BlockParams.from_init_params(*params, se_ratio=0.25 if kind == "y" else None)
    return register(name, RegNet, stages, about=f"RegNet{kind.upper()} of {size.replace('_', '.')[:-1].upper()}FLOPs")


regnet_y_400mf = _regnet("regnet_y_400mf", 16, 48, 27.89, 2.09, 8)
regnet_y_800mf = _regnet("regnet_y_800mf", 14, 56, 38.84, 2.4, 16)
regnet_y_1_6gf = _regnet("regnet_y_1_6gf", 27, 48, 20.71, 2.65, 24)
regnet_y_3_2gf = _regnet("regnet_y_3_2gf", 21, 80, 42.63, 2.66, 24)
regnet_y_8gf = _regnet("regnet_y_8gf", 17, 192, 76.82, 2.19, 56)
regnet_y_16gf = _regnet("regnet_y_16gf", 18, 200, 106.23, 2.48, 112)
regnet_y_32gf = _regnet("regnet_y_32gf", 20, 232, 115.89, 2.53, 232)
regnet_y_128gf = _regnet("regnet_y_128gf", 27, 456, 160.83, 2.52, 264)
regnet_x_400mf = _regnet("regnet_x_400mf", 22, 24, 24.48, 2.54, 16)
regnet_x_800mf = _regnet("regnet_x_800mf", 16, 56, 35.73, 2.28, 16)
regnet_x_1_6gf = _regnet("regnet_x_1_6gf", 18, 80, 34.01, 2.25, 24)
regnet_x_3_2gf = _regnet("regnet_x_3_2gf", 25, 88, 26.31, 2.25, 48)
regnet_x_8gf = _regnet("regnet_x_8gf", 23, 80, 49.56, 2.88, 120)
regnet_x_16gf = _regnet("regnet_x_16gf", 22, 216, 55.59, 2.1, 128)
regnet_x_32gf = _regnet("regnet_x_32gf", 23, 320, 69.86, 2.0, 168)
