"""Padding layers: constant, zero, reflection, replication, circular, over one to three axes."""

from __future__ import annotations

from typing import Any

from mortice.nn import functional as F
from mortice.nn.module import Module


class _Pad(Module):
    nd: int
    mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * self.nd)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPad):
    """Pads the last dim with a number."""

    nd = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last two dims with a number."""

    nd = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last three dims with a number."""

    nd = 3


class ZeroPad1d(_ZeroPad):
    """Pads the last dim with zeros."""

    nd = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last two dims with zeros."""

    nd = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last three dims with zeros."""

    nd = 3


class ReflectionPad1d(_Pad):
    """Pads the last dim by reflection."""

    nd, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pads the last two dims by reflection."""

    nd, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pads the last three dims by reflection."""

    nd, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last dim with its border."""

    nd, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pads the last two dims with their border."""

    nd, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pads the last three dims with their border."""

    nd, mode = 3, "replicate"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        if input.ndim not in (self.nd + 1, self.nd + 2):
            raise ValueError(f"expected {self.nd + 1}D or {self.nd + 2}D input (got {input.ndim}D input)")
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPad):
    """Pads the last dim with its other end."""

    nd = 1


class CircularPad2d(_CircularPad):
    """Pads the last two dims with their other ends."""

    nd = 2


class CircularPad3d(_CircularPad):
    """Pads the last three dims with their other ends."""

    nd = 3
