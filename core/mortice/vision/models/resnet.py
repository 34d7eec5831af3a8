"""Residual networks: He et al., "Deep residual learning" (2015), its wide kind (2016) and ResNeXt (Xie et al., 2016)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.registry import register

__all__ = [
    "ResNet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "resnext50_32x4d", "resnext101_32x8d", "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2",
]  # fmt: skip


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """Make a convolution of 3 by 3 that keeps the size."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, padding=dilation, dilation=dilation, groups=groups, bias=False)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """Make a convolution of single pixels."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions of 3 by 3, and the input added to what they return."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        norm = norm_layer or nn.BatchNorm2d
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """A convolution of 3 by 3 between two of single pixels; a stride is taken by the middle one, as in ResNet 1.5."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        width, wide = int(planes * base_width / 64) * groups, planes * self.expansion
        self.conv1, self.bn1 = conv1x1(inplanes, width), norm(width)
        self.conv2, self.bn2 = conv3x3(width, width, stride, groups, dilation), norm(width)
        self.conv3, self.bn3 = conv1x1(width, wide), norm(wide)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Any) -> Any:
        """Return what goes to the next block."""
        y = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """Four stages of residual blocks; each but the first halves the picture, or dilates instead where told to."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        dilate = (False, False, False) if replace_stride_with_dilation is None else replace_stride_with_dilation
        if len(dilate) != 3:
            raise ValueError(f"replace_stride_with_dilation should be None or a 3-element tuple, got {dilate}")
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = 64, 1, groups, width_per_group
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        initial.draw(self, conv=initial.he_fan_out)
        if zero_init_residual:  # so that each block starts as the identity
            for module in self.modules():
                last = {BasicBlock: "bn2", Bottleneck: "bn3"}.get(type(module))
                if last is not None and getattr(module, last).weight is not None:
                    nn.init.zeros_(getattr(module, last).weight)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> nn.Sequential:
        """Make a stage, whose first block changes size and channels where they change."""
        first_dilation = self.dilation
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        wide, norm = planes * block.expansion, self._norm_layer
        downsample = None
        if stride != 1 or self.inplanes != wide:
            downsample = nn.Sequential(conv1x1(self.inplanes, wide, stride), norm(wide))
        common = self.groups, self.base_width
        made = [block(self.inplanes, planes, stride, downsample, *common, first_dilation, norm)]
        made += [block(wide, planes, 1, None, *common, self.dilation, norm) for _ in range(1, blocks)]
        self.inplanes = wide
        return nn.Sequential(*made)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(mt.flatten(self.avgpool(x), 1))


_50, _101 = (3, 4, 6, 3), (3, 4, 23, 3)
resnet18 = register("resnet18", ResNet, BasicBlock, (2, 2, 2, 2), about="ResNet-18")
resnet34 = register("resnet34", ResNet, BasicBlock, _50, about="ResNet-34")
resnet50 = register("resnet50", ResNet, Bottleneck, _50, about="ResNet-50")
resnet101 = register("resnet101", ResNet, Bottleneck, _101, about="ResNet-101")
resnet152 = register("resnet152", ResNet, Bottleneck, (3, 8, 36, 3), about="ResNet-152")
resnext50_32x4d = register(
    "resnext50_32x4d", ResNet, Bottleneck, _50, groups=32, width_per_group=4, about="ResNeXt-50 of 32 groups of 4"
)
resnext101_32x8d = register(
    "resnext101_32x8d", ResNet, Bottleneck, _101, groups=32, width_per_group=8, about="ResNeXt-101 of 32 groups of 8"
)
resnext101_64x4d = register(
    "resnext101_64x4d", ResNet, Bottleneck, _101, groups=64, width_per_group=4, about="ResNeXt-101 of 64 groups of 4"
)
wide_resnet50_2 = register(
    "wide_resnet50_2", ResNet, Bottleneck, _50, width_per_group=128, about="ResNet-50, twice as wide in its blocks"
)
wide_resnet101_2 = register(
    "wide_resnet101_2", ResNet, Bottleneck, _101, width_per_group=128, about="ResNet-101, twice as wide in its blocks"
)
