"""ShuffleNetV2: N. Ma et al., "ShuffleNet V2: practical guidelines for efficient CNN architecture design" (2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models.registry import register

__all__ = ["ShuffleNetV2", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0"]


def _conv(inp: int, out: int, kernel: int, stride: int = 1, groups: int = 1, relu: bool = True) -> list[nn.Module]:
    made = [nn.Conv2d(inp, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]
    return [*made, nn.ReLU(inplace=True)] if relu else made


def channel_shuffle(x: Any, groups: int) -> Any:
    """Return images whose channels come from each group in turn."""
    n, channels, height, width = x.size()
    x = mt.transpose(x.view(n, groups, channels // groups, height, width), 1, 2).contiguous()
    return x.view(n, channels, height, width)


class InvertedResidual(nn.Module):
    """Works on half of the channels, or halves the picture on two ways; then shuffles the two halves."""

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        half = oup // 2
        if stride == 1 and inp != 2 * half:
            raise ValueError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. If stride == 1 then inp should be "
                "equal to oup // 2 << 1."
            )
        self.stride = stride
        first = [*_conv(inp, inp, 3, stride, groups=inp, relu=False), *_conv(inp, half, 1)] if stride > 1 else []
        self.branch1 = nn.Sequential(*first)
        self.branch2 = nn.Sequential(
            *_conv(inp if stride > 1 else half, half, 1),
            *_conv(half, half, 3, stride, groups=half, relu=False),
            *_conv(half, half, 1),
        )

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        kept, worked = x.chunk(2, dim=1) if self.stride == 1 else (self.branch1(x), x)
        return channel_shuffle(mt.cat((kept, self.branch2(worked)), dim=1), 2)


class ShuffleNetV2(nn.Module):
    """Three stages of blocks between two convolutions."""

    def __init__(
        self,
        stages_repeats: Sequence[int],
        stages_out_channels: Sequence[int],
        num_classes: int = 1000,
        inverted_residual: Callable[..., nn.Module] = InvertedResidual,
    ) -> None:
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        channels, *stages, last = stages_out_channels
        self.conv1 = nn.Sequential(*_conv(3, channels, 3, 2))
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, (blocks, wanted) in enumerate(zip(stages_repeats, stages), 2):
            made = [inverted_residual(channels if j == 0 else wanted, wanted, 1 if j else 2) for j in range(blocks)]
            self.add_module(f"stage{i}", nn.Sequential(*made))
            channels = wanted
        self.conv5 = nn.Sequential(*_conv(channels, last, 1))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean([2, 3]))


_4_8_4 = (4, 8, 4)
shufflenet_v2_x0_5 = register(
    "shufflenet_v2_x0_5", ShuffleNetV2, _4_8_4, (24, 48, 96, 192, 1024), about="ShuffleNetV2, half as wide"
)
shufflenet_v2_x1_0 = register(
    "shufflenet_v2_x1_0", ShuffleNetV2, _4_8_4, (24, 116, 232, 464, 1024), about="ShuffleNetV2"
)
shufflenet_v2_x1_5 = register(
    "shufflenet_v2_x1_5", ShuffleNetV2, _4_8_4, (24, 176, 352, 704, 1024), about="ShuffleNetV2, half as wide again"
)
shufflenet_v2_x2_0 = register(
    "shufflenet_v2_x2_0", ShuffleNetV2, _4_8_4, (24, 244, 488, 976, 2048), about="ShuffleNetV2, twice as wide"
)
