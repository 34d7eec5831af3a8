"""Residual networks of films: D. Tran et al., "A closer look at spatiotemporal convolutions for action recognition" (2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.registry import register

__all__ = ["VideoResNet", "mc3_18", "r2plus1d_18", "r3d_18"]


class Conv3DSimple(nn.Conv3d):
    """A convolution over 3 frames of 3 by 3."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int | None = None, stride: int = 1, padding: int = 1
    ) -> None:
        super().__init__(in_planes, out_planes, 3, stride, padding, bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        """Return the stride over frames and pixels that goes with one of its own."""
        return stride, stride, stride


class Conv2Plus1D(nn.Sequential):
    """A convolution of 3 by 3, and one over 3 frames."""

    def __init__(self, in_planes: int, out_planes: int, midplanes: int, stride: int = 1, padding: int = 1) -> None:
        super().__init__(
            nn.Conv3d(in_planes, midplanes, (1, 3, 3), (1, stride, stride), (0, padding, padding), bias=False),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(midplanes, out_planes, (3, 1, 1), (stride, 1, 1), (padding, 0, 0), bias=False),
        )

    get_downsample_stride = staticmethod(Conv3DSimple.get_downsample_stride)


class Conv3DNoTemporal(nn.Conv3d):
    """A convolution of 3 by 3 in each frame."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int | None = None, stride: int = 1, padding: int = 1
    ) -> None:
        super().__init__(in_planes, out_planes, (1, 3, 3), (1, stride, stride), (0, padding, padding), bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        """Return the stride over frames and pixels that goes with one of its own."""
        return 1, stride, stride


def _between(inplanes: int, planes: int) -> int:
    """Return how many channels `Conv2Plus1D` has between, for as many weights as `Conv3DSimple` has."""
    return inplanes * planes * 27 // (inplanes * 9 + 3 * planes)


def _normed(conv: nn.Module, planes: int, relu: bool = True) -> nn.Sequential:
    return nn.Sequential(conv, nn.BatchNorm3d(planes), *[nn.ReLU(inplace=True)][:relu])


def _single(inp: int, out: int, stride: Any = 1) -> nn.Conv3d:
    return nn.Conv3d(inp, out, kernel_size=1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions, and the input added to what they return."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        between = _between(inplanes, planes)
        self.conv1 = _normed(conv_builder(inplanes, planes, between, stride), planes)
        self.conv2 = _normed(conv_builder(planes, planes, between), planes, relu=False)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        return self.relu(self.conv2(self.conv1(x)) + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """A convolution between two of single pixels, and the input added to what they return."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        wide = planes * self.expansion
        self.conv1 = _normed(_single(inplanes, planes), planes)
        self.conv2 = _normed(conv_builder(planes, planes, _between(inplanes, planes), stride), planes)
        self.conv3 = _normed(_single(planes, wide), wide, relu=False)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        y = self.conv3(self.conv2(self.conv1(x)))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class BasicStem(nn.Sequential):
    """A convolution over 3 frames of 7 by 7, which halves them."""

    def __init__(self) -> None:
        super().__init__(*_normed(nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), 64))


class R2Plus1dStem(nn.Sequential):
    """A convolution of 7 by 7, which halves the frames, and one over 3 of them."""

    def __init__(self) -> None:
        super().__init__(
            *_normed(nn.Conv3d(3, 45, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False), 45),
            *_normed(nn.Conv3d(45, 64, (3, 1, 1), 1, (1, 0, 0), bias=False), 64),
        )


class VideoResNet(nn.Module):
    """Four stages of residual blocks; `conv_makers` says for each what its convolutions are."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        conv_makers: Sequence[Any],
        layers: Sequence[int],
        stem: Callable[..., nn.Module],
        num_classes: int = 400,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        for i in range(4):
            stage = self._make_layer(block, conv_makers[i], 64 * 2**i, layers[i], 2 if i else 1)
            self.add_module(f"layer{i + 1}", stage)
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(self.inplanes, num_classes)
        initial.draw(self, conv=initial.he_fan_out, linear=initial.small_normal)
        if zero_init_residual:  # so that each bottleneck starts as the identity
            for module in self.modules():
                if isinstance(module, Bottleneck):
                    nn.init.zeros_(module.conv3[1].weight)

    def _make_layer(self, block: Any, conv_builder: Any, planes: int, blocks: int, stride: int = 1) -> nn.Sequential:
        """Make a stage, whose first block changes size and channels where they change."""
        wide, downsample = planes * block.expansion, None
        if stride != 1 or self.inplanes != wide:
            step = conv_builder.get_downsample_stride(stride)
            downsample = _normed(_single(self.inplanes, wide, step), wide, relu=False)
        first = block(self.inplanes, planes, conv_builder, stride, downsample)
        self.inplanes = wide
        return nn.Sequential(first, *(block(wide, planes, conv_builder) for _ in range(1, blocks)))

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of films."""
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(self.avgpool(x).flatten(1))


_18 = (2, 2, 2, 2)
r3d_18 = register("r3d_18", VideoResNet, BasicBlock, [Conv3DSimple] * 4, _18, BasicStem, about="ResNet3D-18")
mc3_18 = register(
    "mc3_18", VideoResNet, BasicBlock, [Conv3DSimple, *[Conv3DNoTemporal] * 3], _18, BasicStem,
    about="ResNet-18 whose first stage alone looks over frames",
)  # fmt: skip
r2plus1d_18 = register(
    "r2plus1d_18", VideoResNet, BasicBlock, [Conv2Plus1D] * 4, _18, R2Plus1dStem, about="ResNet(2+1)D-18"
)
