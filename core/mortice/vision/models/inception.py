"""Inception v3: C. Szegedy et al., "Rethinking the Inception architecture for computer vision" (2015)."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models import initial
from mortice.vision.models.googlenet import BasicConv2d, rescaled
from mortice.vision.models.registry import register

__all__ = ["Inception3", "InceptionOutputs", "inception_v3"]

InceptionOutputs = namedtuple("InceptionOutputs", ["logits", "aux_logits"])
_InceptionOutputs = InceptionOutputs
Made = Callable[..., nn.Module]
_LYING, _UPRIGHT = (1, 7), (7, 1)
_PLACE: Any = re.compile(r"(.*?)(?:_(\d)[ab]?)?")  # the way and the step that a convolution's name says


class _Mixed(nn.Module):
    """Ways side by side, each of convolutions one after the other, and a pooling beside them."""

    def __init__(self, in_channels: int, conv_block: Made | None) -> None:
        super().__init__()
        self._in_channels, self._conv = in_channels, conv_block or BasicConv2d

    def _way(self, name: str, *steps: Any) -> None:
        """Add a way of (channels, kernel) or (channels, kernel, stride); a list of two steps forks at its end."""
        channels = self._in_channels
        for i, step in enumerate(steps, 1):
            fork = isinstance(step, list)
            names = [f"{name}_{i}{letter}" for letter in ("ab" if fork else [""])] if len(steps) > 1 else [name]
            for key, (out, kernel, *stride) in zip(names, step if fork else [step]):
                sides = (kernel, kernel) if isinstance(kernel, int) else kernel
                padding = 0 if stride else tuple(side // 2 for side in sides)
                conv = self._conv(channels, out, kernel_size=kernel, stride=(stride or [1])[0], padding=padding)
                self.add_module(key, conv)
            channels = out

    def forward(self, x: Any) -> Any:
        """Return the maps of all ways, one after the other."""
        ways: dict[str, dict[str, list[nn.Module]]] = {}
        for name, conv in self.named_children():  # so that whole models of torchvision's run as well
            way, step = _PLACE.fullmatch(name).groups()
            ways.setdefault(way, {}).setdefault(step, []).append(conv)
        maps = []
        for way, steps in ways.items():
            y = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1) if way == "branch_pool" else x
            *before, last = steps.values()
            for conv in before:
                y = conv[0](y)
            maps.append(last[0](y) if len(last) == 1 else mt.cat([conv(y) for conv in last], 1))
        if not hasattr(self, "branch_pool"):
            maps.append(F.max_pool2d(x, kernel_size=3, stride=2))
        return mt.cat(maps, 1)


class InceptionA(_Mixed):
    """Kernels of 1, 5, and twice 3."""

    def __init__(self, in_channels: int, pool_features: int, conv_block: Made | None = None) -> None:
        super().__init__(in_channels, conv_block)
        self._way("branch1x1", (64, 1))
        self._way("branch5x5", (48, 1), (64, 5))
        self._way("branch3x3dbl", (64, 1), (96, 3), (96, 3))
        self._way("branch_pool", (pool_features, 1))


class InceptionB(_Mixed):
    """Halves the picture by kernels of 3."""

    def __init__(self, in_channels: int, conv_block: Made | None = None) -> None:
        super().__init__(in_channels, conv_block)
        self._way("branch3x3", (384, 3, 2))
        self._way("branch3x3dbl", (64, 1), (96, 3), (96, 3, 2))


class InceptionC(_Mixed):
    """Kernels of 1 and of 7 along each side."""

    def __init__(self, in_channels: int, channels_7x7: int, conv_block: Made | None = None) -> None:
        super().__init__(in_channels, conv_block)
        c = channels_7x7
        self._way("branch1x1", (192, 1))
        self._way("branch7x7", (c, 1), (c, _LYING), (192, _UPRIGHT))
        self._way("branch7x7dbl", (c, 1), (c, _UPRIGHT), (c, _LYING), (c, _UPRIGHT), (192, _LYING))
        self._way("branch_pool", (192, 1))


class InceptionD(_Mixed):
    """Halves the picture by kernels of 3, after 7 along each side on one way."""

    def __init__(self, in_channels: int, conv_block: Made | None = None) -> None:
        super().__init__(in_channels, conv_block)
        self._way("branch3x3", (192, 1), (320, 3, 2))
        self._way("branch7x7x3", (192, 1), (192, _LYING), (192, _UPRIGHT), (192, 3, 2))


class InceptionE(_Mixed):
    """Kernels of 1 and of 3 along each side, which end two ways in forks."""

    def __init__(self, in_channels: int, conv_block: Made | None = None) -> None:
        super().__init__(in_channels, conv_block)
        fork = [(384, (1, 3)), (384, (3, 1))]
        self._way("branch1x1", (320, 1))
        self._way("branch3x3", (384, 1), fork)
        self._way("branch3x3dbl", (448, 1), (384, 3), fork)
        self._way("branch_pool", (192, 1))


class InceptionAux(nn.Module):
    """A classifier half way up, which training listens to as well."""

    def __init__(self, in_channels: int, num_classes: int, conv_block: Made | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.conv0 = conv(in_channels, 128, kernel_size=1)
        self.conv1 = conv(128, 768, kernel_size=5)
        self.fc = nn.Linear(768, num_classes)

    def forward(self, x: Any) -> Any:
        """Return the logits."""
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(mt.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class Inception3(nn.Module):
    """Five kinds of inception blocks; in training with `aux_logits` it returns InceptionOutputs."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        inception_blocks: Sequence[Made] | None = None,
        init_weights: bool | None = None,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        blocks = inception_blocks or [
            BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE, InceptionAux
        ]  # fmt: skip
        if len(blocks) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(blocks)}")
        conv, a, b, c, d, e, aux = blocks
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        for letter, channels, pooled in (("b", 192, 32), ("c", 256, 64), ("d", 288, 64)):
            self.add_module(f"Mixed_5{letter}", a(channels, pool_features=pooled))
        self.Mixed_6a = b(288)
        for letter, channels in (("b", 128), ("c", 160), ("d", 160), ("e", 192)):
            self.add_module(f"Mixed_6{letter}", c(768, channels_7x7=channels))
        self.AuxLogits = aux(768, num_classes) if aux_logits else None
        self.Mixed_7a, self.Mixed_7b, self.Mixed_7c = d(768), e(1280), e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        if initial.wanted("inception_v3", init_weights):
            draw = partial(nn.init.trunc_normal_, mean=0.0, a=-2, b=2)
            least = self.AuxLogits.fc.weight if isinstance(self.AuxLogits, InceptionAux) else None
            linear = lambda w: draw(w, std=0.001 if w is least else 0.1)
            initial.draw(self, conv=partial(draw, std=0.1), linear=linear, biases=False)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images, with those of the auxiliary classifier in training."""
        x = rescaled(x) if self.transform_input else x
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        aux = self.AuxLogits(x) if self.training and self.AuxLogits is not None else None
        x = self.avgpool(self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x))))
        x = self.fc(mt.flatten(self.dropout(x), 1))
        return InceptionOutputs(x, aux) if self.training and self.aux_logits else x


inception_v3 = register("inception_v3", Inception3, about="Inception v3")
