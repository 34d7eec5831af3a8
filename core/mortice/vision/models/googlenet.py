"""GoogLeNet: C. Szegedy et al., "Going deeper with convolutions" (2014), with batch normalisation."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.registry import register

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "googlenet"]

GoogLeNetOutputs = namedtuple("GoogLeNetOutputs", ["logits", "aux_logits2", "aux_logits1"])

# channels in, of 1x1, before and after 3x3, before and after the larger kernel, after the pooling
_BLOCKS = {
    "3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64), "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128), "5b": (832, 384, 192, 384, 48, 128, 128),
}  # fmt: skip


class BasicConv2d(nn.Module):
    """A convolution, its norm and a ReLU."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Any) -> Any:
        """Return the maps."""
        return nn.functional.relu(self.bn(self.conv(x)), inplace=True)


def rescaled(x: Any) -> Any:
    """Return images as weights of Google's expect them: from ImageNet's mean and deviation to a half each."""
    scale = mt.tensor([0.229, 0.224, 0.225], dtype=x.dtype, device=x.device).view(3, 1, 1) / 0.5
    shift = (mt.tensor([0.485, 0.456, 0.406], dtype=x.dtype, device=x.device).view(3, 1, 1) - 0.5) / 0.5
    return x * scale + shift


class Inception(nn.Module):
    """Four ways side by side. Both larger kernels are 3 by 3, as in the weights that are published."""

    def __init__(
        self, in_channels: int, ch1x1: int, ch3x3red: int, ch3x3: int, ch5x5red: int, ch5x5: int, pool_proj: int,
        conv_block: Callable[..., nn.Module] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        for i, (narrow, wide) in ((2, (ch3x3red, ch3x3)), (3, (ch5x5red, ch5x5))):
            way = nn.Sequential(conv(in_channels, narrow, kernel_size=1), conv(narrow, wide, kernel_size=3, padding=1))
            self.add_module(f"branch{i}", way)
        pool = nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True)
        self.branch4 = nn.Sequential(pool, conv(in_channels, pool_proj, kernel_size=1))

    def forward(self, x: Any) -> Any:
        """Return the maps of all ways, one after the other."""
        return mt.cat([branch(x) for branch in self.children()], 1)


class InceptionAux(nn.Module):
    """A classifier half way up, which training listens to as well."""

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        conv_block: Callable[..., nn.Module] | None = None,
        dropout: float = 0.7,
    ) -> None:
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Any) -> Any:
        """Return the logits."""
        x = mt.flatten(self.conv(nn.functional.adaptive_avg_pool2d(x, (4, 4))), 1)
        return self.fc2(self.dropout(nn.functional.relu(self.fc1(x), inplace=True)))


class GoogLeNet(nn.Module):
    """Nine inception blocks; in training with `aux_logits` it returns GoogLeNetOutputs."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        init_weights: bool | None = None,
        blocks: Sequence[Callable[..., nn.Module]] | None = None,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        blocks = [BasicConv2d, Inception, InceptionAux] if blocks is None else blocks
        if len(blocks) != 3:
            raise ValueError(f"blocks length should be 3 instead of {len(blocks)}")
        conv, inception, aux = blocks
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for name, sizes in _BLOCKS.items():
            self.add_module(f"inception{name}", inception(*sizes))
            if name in ("3b", "4e"):
                self.add_module(f"maxpool{name[0]}", nn.MaxPool2d(3 if name == "3b" else 2, stride=2, ceil_mode=True))
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        if initial.wanted("GoogleNet", init_weights):
            draw = partial(nn.init.trunc_normal_, mean=0.0, std=0.01, a=-2, b=2)
            initial.draw(self, conv=draw, linear=draw, biases=False)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images, with those of both auxiliary classifiers in training."""
        x = rescaled(x) if self.transform_input else x
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.inception4a(self.maxpool3(self.inception3b(self.inception3a(x))))
        listens = self.training and self.aux1 is not None
        aux1 = self.aux1(x) if listens else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        aux2 = self.aux2(x) if listens else None
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(x))))
        x = self.fc(self.dropout(mt.flatten(self.avgpool(x), 1)))
        return GoogLeNetOutputs(x, aux2, aux1) if self.training and self.aux_logits else x


googlenet = register("googlenet", GoogLeNet, about="GoogLeNet")
