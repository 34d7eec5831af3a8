"""DenseNet: G. Huang et al., "Densely connected convolutional networks" (2016), in its compressed form (BC)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import mortice as mt
from mortice import nn
from mortice.utils.checkpoint import checkpoint
from mortice.vision.models import initial
from mortice.vision.models.registry import register

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]

_OLD_KEY = re.compile(r"(norm|relu|conv)\.([12]\.)")  # of files that were written before modules' names lost their dots


class _DenseLayer(nn.Module):
    """Makes `growth_rate` new maps of all that came before."""

    def __init__(
        self, num_input_features: int, growth_rate: int, bn_size: int, drop_rate: float, memory_efficient: bool = False
    ) -> None:
        super().__init__()
        narrow = bn_size * growth_rate
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, narrow, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(narrow)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(narrow, growth_rate, kernel_size=3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def _narrow(self, *maps: Any) -> Any:
        return self.conv1(self.relu1(self.norm1(mt.cat([*maps], 1))))

    def forward(self, maps: Any) -> Any:
        """Return the new maps, of a tensor or of a list of them."""
        maps = [maps] if isinstance(maps, mt.Tensor) else maps
        if self.memory_efficient and any(m.requires_grad for m in maps):
            narrow = checkpoint(self._narrow, *maps, use_reentrant=False)
        else:
            narrow = self._narrow(*maps)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return nn.functional.dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for key in [k for k in state_dict if k.startswith(prefix) and _OLD_KEY.match(k, len(prefix))]:
            state_dict[prefix + _OLD_KEY.sub(r"\1\2", key[len(prefix) :], count=1)] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class _DenseBlock(nn.ModuleDict):
    _version = 2

    def forward(self, first: Any) -> Any:
        """Return the input and what each layer adds to it."""
        maps = [first]
        for layer in self.values():
            maps.append(layer(maps))
        return mt.cat(maps, 1)


class _Transition(nn.Sequential):
    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Blocks in which each layer sees all before it; `memory_efficient` computes the narrow maps anew in backward."""

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        features = self.features = nn.Sequential()
        features.add_module("conv0", nn.Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False))
        features.add_module("norm0", nn.BatchNorm2d(num_init_features))
        features.add_module("relu0", nn.ReLU(inplace=True))
        features.add_module("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1))
        channels = num_init_features
        for i, layers in enumerate(block_config, 1):
            block = _DenseBlock()
            for j in range(layers):
                layer = _DenseLayer(channels, growth_rate, bn_size, drop_rate, memory_efficient)
                block.add_module(f"denselayer{j + 1}", layer)
                channels += growth_rate
            features.add_module(f"denseblock{i}", block)
            if i < len(block_config):
                features.add_module(f"transition{i}", _Transition(channels, channels // 2))
                channels //= 2
        features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        initial.draw(self, conv=nn.init.kaiming_normal_)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        x = nn.functional.relu(self.features(x), inplace=True)
        return self.classifier(mt.flatten(nn.functional.adaptive_avg_pool2d(x, (1, 1)), 1))


densenet121 = register("densenet121", DenseNet, 32, (6, 12, 24, 16), 64, about="DenseNet-121")
densenet161 = register("densenet161", DenseNet, 48, (6, 12, 36, 24), 96, about="DenseNet-161")
densenet169 = register("densenet169", DenseNet, 32, (6, 12, 32, 32), 64, about="DenseNet-169")
densenet201 = register("densenet201", DenseNet, 32, (6, 12, 48, 32), 64, about="DenseNet-201")
