"""Padding layers: constant, zero, reflection, replication, circular, over one to three axes."""

from __future__ import annotations

from typing import Any

from mortice.nn import functional as F
from mortice.nn.functional.spatial import _tuple
from mortice.nn.module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    nd: int
    mode: str
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _tuple(padding, 2 * self.nd)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dim with a number."""

    nd = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dims with a number."""

    nd = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dims with a number."""

    nd = 3


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads the last dim with zeros."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads the last two dims with zeros."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads the last three dims with zeros."""


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dim by reflection."""

    nd = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dims by reflection."""

    nd = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dims by reflection."""

    nd = 3


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dim with its border."""

    nd = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dims with their border."""

    nd = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dims with their border."""

    nd = 3


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        if input.ndim not in (self.nd + 1, self.nd + 2):
            raise ValueError(f"expected {self.nd + 1}D or {self.nd + 2}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads the last dim with its other end."""

    nd = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dims with their other ends."""

    nd = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dims with their other ends."""

    nd = 3
