"""MobileNetV3: A. Howard et al., "Searching for MobileNetV3" (2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models._utils import _make_divisible
from mortice.vision.models.efficientnet import widened
from mortice.vision.models.registry import register
from mortice.vision.ops import Conv2dNormActivation, SqueezeExcitation

__all__ = ["MobileNetV3", "mobilenet_v3_large", "mobilenet_v3_small"]

_norm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
_squeeze = partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)


class InvertedResidualConfig:
    """A block, scaled in width; `activation` is "RE" for ReLU or "HS" for Hardswish."""

    def __init__(
        self,
        input_channels: int,
        kernel: int,
        expanded_channels: int,
        out_channels: int,
        use_se: bool,
        activation: str,
        stride: int,
        dilation: int,
        width_mult: float,
    ) -> None:
        self.input_channels = self.adjust_channels(input_channels, width_mult)
        self.kernel = kernel
        self.expanded_channels = self.adjust_channels(expanded_channels, width_mult)
        self.out_channels = self.adjust_channels(out_channels, width_mult)
        self.use_se, self.use_hs, self.stride, self.dilation = use_se, activation == "HS", stride, dilation

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        """Scale channels to a multiple of eight."""
        return _make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """Widen, filter each channel by itself, weigh the channels, and narrow."""

    def __init__(
        self,
        cnf: InvertedResidualConfig,
        norm_layer: Callable[..., nn.Module],
        se_layer: Callable[..., nn.Module] = _squeeze,
    ) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        wide = cnf.expanded_channels
        self.block = nn.Sequential(
            *widened(
                cnf.input_channels, wide, cnf.out_channels, cnf.kernel, cnf.stride, norm_layer,
                nn.Hardswish if cnf.use_hs else nn.ReLU,
                partial(se_layer, squeeze_channels=_make_divisible(wide // 4, 8)) if cnf.use_se else None,
                cnf.dilation,
            )
        )  # fmt: skip
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.out_channels = cnf.out_channels
        self._is_cn = cnf.stride > 1  # whether a stage begins here: models for segmentation look for it

    def forward(self, input: Any) -> Any:
        """Return what goes to the next block."""
        out = self.block(input)
        return out + input if self.use_res_connect else out


class MobileNetV3(nn.Module):
    """Inverted residuals, and two linear layers over them."""

    def __init__(
        self,
        inverted_residual_setting: Sequence[InvertedResidualConfig],
        last_channel: int,
        num_classes: int = 1000,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        dropout: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        stages = inverted_residual_setting
        if not stages:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(stages, Sequence) or not all(isinstance(s, InvertedResidualConfig) for s in stages):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block, norm = block or InvertedResidual, norm_layer or _norm
        step = partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.Hardswish)
        wide = 6 * stages[-1].out_channels
        self.features = nn.Sequential(
            step(3, stages[0].input_channels, stride=2),
            *(block(cnf, norm) for cnf in stages),
            step(stages[-1].out_channels, wide, kernel_size=1),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(wide, last_channel), nn.Hardswish(inplace=True), nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )  # fmt: skip
        initial.draw(self, conv=initial.he_fan_out, linear=initial.small_normal)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.classifier(mt.flatten(self.avgpool(self.features(x)), 1))


# kernel, widened channels, channels out, whether channels are weighed, activation, stride
_LARGE = ((3, 16, 16, False, "RE", 1), (3, 64, 24, False, "RE", 2), (3, 72, 24, False, "RE", 1),
          (5, 72, 40, True, "RE", 2), (5, 120, 40, True, "RE", 1), (5, 120, 40, True, "RE", 1),
          (3, 240, 80, False, "HS", 2), (3, 200, 80, False, "HS", 1), (3, 184, 80, False, "HS", 1),
          (3, 184, 80, False, "HS", 1), (3, 480, 112, True, "HS", 1), (3, 672, 112, True, "HS", 1),
          (5, 672, 160, True, "HS", 2), (5, 960, 160, True, "HS", 1), (5, 960, 160, True, "HS", 1))  # fmt: skip
_SMALL = ((3, 16, 16, True, "RE", 2), (3, 72, 24, False, "RE", 2), (3, 88, 24, False, "RE", 1),
          (5, 96, 40, True, "HS", 2), (5, 240, 40, True, "HS", 1), (5, 240, 40, True, "HS", 1),
          (5, 120, 48, True, "HS", 1), (5, 144, 48, True, "HS", 1), (5, 288, 96, True, "HS", 2),
          (5, 576, 96, True, "HS", 1), (5, 576, 96, True, "HS", 1))  # fmt: skip


def _make(
    rows: Any, last: int, *, width_mult: float = 1.0, reduced_tail: bool = False, dilated: bool = False, **kwargs: Any
) -> MobileNetV3:
    """Make the network; the last three blocks can be half as wide, and dilated in place of their stride."""
    stages, channels, less = [], 16, 2 if reduced_tail else 1
    for i, (kernel, wide, out, *rest) in enumerate(rows, 3 - len(rows)):
        wide, out = wide // less if i > 0 else wide, out // less if i >= 0 else out
        stages.append(
            InvertedResidualConfig(channels, kernel, wide, out, *rest, 2 if dilated and i >= 0 else 1, width_mult)
        )
        channels = out
    return MobileNetV3(stages, InvertedResidualConfig.adjust_channels(last // less, width_mult), **kwargs)


_make.__name__ = "MobileNetV3"
mobilenet_v3_large = register("mobilenet_v3_large", _make, _LARGE, 1280, about="MobileNetV3-Large")
mobilenet_v3_small = register("mobilenet_v3_small", _make, _SMALL, 1024, about="MobileNetV3-Small")
