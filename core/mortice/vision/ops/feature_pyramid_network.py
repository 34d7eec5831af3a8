"""Feature pyramids: T.-Y. Lin et al., "Feature pyramid networks for object detection" (2016)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mortice import nn
from mortice.nn import functional as F
from mortice.vision.ops.misc import Conv2dNormActivation

__all__ = ["ExtraFPNBlock", "FeaturePyramidNetwork", "LastLevelMaxPool", "LastLevelP6P7"]


class ExtraFPNBlock(nn.Module):
    """Base of what adds levels to a pyramid: of its results, what they were made of and names, it returns results and names."""

    def forward(self, results: list[Any], x: list[Any], names: list[str]) -> tuple[list[Any], list[str]]:
        raise NotImplementedError(f"{type(self).__name__} has no forward()")


class LastLevelMaxPool(ExtraFPNBlock):
    """Adds "pool": every second pixel of the last level."""

    def forward(self, x: list[Any], y: list[Any], names: list[str]) -> tuple[list[Any], list[str]]:
        return [*x, F.max_pool2d(x[-1], kernel_size=1, stride=2)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Adds "p6" and "p7" by convolutions, of the last level or, where they differ in channels, of what it was made of."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        _draw(self)
        self.use_P5 = in_channels == out_channels

    def forward(self, p: list[Any], c: list[Any], names: list[str]) -> tuple[list[Any], list[str]]:
        p6 = self.p6(p[-1] if self.use_P5 else c[-1])
        return [*p, p6, self.p7(F.relu(p6))], [*names, "p6", "p7"]


def _draw(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_uniform_(layer.weight, a=1)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class FeaturePyramidNetwork(nn.Module):
    """Bring maps of several sizes to the same channels, and add to each what those of the smaller ones say.

    Args:
        in_channels_list: the channels of the maps, from the largest to the smallest.
        out_channels: the channels of the results.
        extra_blocks: what adds levels at the end.
    """

    _version = 2

    def __init__(
        self,
        in_channels_list: Sequence[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if 0 in in_channels_list:
            raise ValueError("in_channels=0 is currently not supported")
        step = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=None)
        self.inner_blocks = nn.ModuleList(step(c, out_channels, kernel_size=1) for c in in_channels_list)
        self.layer_blocks = nn.ModuleList(step(out_channels, out_channels, kernel_size=3) for _ in in_channels_list)
        _draw(self)
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}")
        self.extra_blocks = extra_blocks

    def forward(self, x: dict[str, Any]) -> dict[str, Any]:
        """Return the results by the names of the maps."""
        names, maps = list(x), list(x.values())
        above = None
        results: list[Any] = []
        for level in range(len(maps) - 1, -1, -1):
            inner = self.inner_blocks[level](maps[level])
            above = inner if above is None else inner + F.interpolate(above, size=inner.shape[-2:], mode="nearest")
            results.insert(0, self.layer_blocks[level](above))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        # The convolutions of the first release had no norm beside them.
        for kind in ("inner_blocks", "layer_blocks"):
            for i in range(len(self.inner_blocks)):
                for name in ("weight", "bias"):
                    old = f"{prefix}{kind}.{i}.{name}"
                    if old in state_dict:
                        state_dict[f"{prefix}{kind}.{i}.0.{name}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)
