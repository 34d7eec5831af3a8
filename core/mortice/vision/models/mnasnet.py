"""MNASNet: M. Tan et al., "MnasNet: platform-aware neural architecture search for mobile" (2018), its model B1."""

from __future__ import annotations

from functools import partial
from typing import Any

from mortice import nn
from mortice.notice import warn
from mortice.vision.models import initial
from mortice.vision.models._utils import _make_divisible
from mortice.vision.models.registry import register

__all__ = ["MNASNet", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"]

_MOMENTUM = 1 - 0.9997
# kernel, stride, expansion, blocks; the channels are those of _CHANNELS from the third on
_STACKS = ((3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1))
_CHANNELS = (32, 16, 24, 40, 80, 96, 192, 320)


def _conv(
    inp: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1, relu: bool = True, momentum: float = _MOMENTUM
) -> list[nn.Module]:
    conv = nn.Conv2d(inp, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(out, momentum=momentum), *[nn.ReLU(inplace=True)][:relu]]


class _InvertedResidual(nn.Module):
    """Widen, filter each channel by itself, and narrow; the input is added where the shapes allow it."""

    def __init__(
        self, in_ch: int, out_ch: int, kernel_size: int, stride: int, expansion_factor: int, bn_momentum: float = 0.1
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        if kernel_size not in (3, 5):
            raise ValueError(f"kernel_size should be 3 or 5 instead of {kernel_size}")
        wide, step = in_ch * expansion_factor, partial(_conv, momentum=bn_momentum)
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(
            *step(in_ch, wide), *step(wide, wide, kernel_size, stride, wide), *step(wide, out_ch, relu=False)
        )

    def forward(self, input: Any) -> Any:
        """Return what goes to the next block."""
        return self.layers(input) + input if self.apply_residual else self.layers(input)


def _beginning(first: int, second: int, third: int) -> list[nn.Module]:
    """Make the layers up to the first stack."""
    stem = [*_conv(3, first, 3, 2), *_conv(first, first, 3, groups=first), *_conv(first, second, relu=False)]
    return [*stem, _stack(second, third, *_STACKS[0])]


def _stack(inp: int, out: int, kernel: int, stride: int, expansion: int, blocks: int) -> nn.Sequential:
    first = _InvertedResidual(inp, out, kernel, stride, expansion, _MOMENTUM)
    more = (_InvertedResidual(out, out, kernel, 1, expansion, _MOMENTUM) for _ in range(1, blocks))
    return nn.Sequential(first, *more)


class MNASNet(nn.Module):
    """Stacks of inverted residuals; `alpha` scales their channels."""

    _version = 2

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        channels = [_make_divisible(c * alpha, 8) for c in _CHANNELS]
        layers = _beginning(*channels[:3])
        for inp, out, stack in zip(channels[2:], channels[3:], _STACKS[1:]):
            layers.append(_stack(inp, out, *stack))
        self.layers = nn.Sequential(*layers, *_conv(channels[-1], 1280))
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes))
        by_outputs = partial(nn.init.kaiming_uniform_, mode="fan_out", nonlinearity="sigmoid")
        initial.draw(self, conv=initial.he_fan_out, linear=by_outputs)

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of images."""
        return self.classifier(self.layers(x).mean([2, 3]))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        version = local_metadata.get("version", self._version)
        if version not in (1, 2):
            raise ValueError(f"version should be set to 1 or 2 instead of {version}")
        if version == 1 != self._version and self.alpha != 1.0:  # whose first layers were not scaled
            for i, layer in enumerate(_beginning(32, 16, _make_divisible(24 * self.alpha, 8))):
                self.layers[i] = layer
            self._version = 1
            warn(
                "The file was saved by the first version of MNASNet, whose first layers alpha does not scale; the model "
                "is changed to that version."
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


mnasnet0_5 = register("mnasnet0_5", MNASNet, 0.5, about="MNASNet, half as wide")
mnasnet0_75 = register("mnasnet0_75", MNASNet, 0.75, about="MNASNet, three quarters as wide")
mnasnet1_0 = register("mnasnet1_0", MNASNet, 1.0, about="MNASNet")
mnasnet1_3 = register("mnasnet1_3", MNASNet, 1.3, about="MNASNet, 1.3 times as wide")
