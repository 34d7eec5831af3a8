"""Layers fused into one module, before they are prepared: each holds what it was made of, in order."""

from __future__ import annotations

from typing import Any

from mortice import nn
from mortice.addresses import attribute

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d",
    "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearReLU",
]  # fmt: skip


class _FusedModule(nn.Sequential):
    """Layers that are one to an observer, which stands after the last."""


class ConvReLU1d(_FusedModule):
    """A convolution and a ReLU."""


class ConvReLU2d(_FusedModule):
    """A convolution and a ReLU."""


class ConvReLU3d(_FusedModule):
    """A convolution and a ReLU."""


class ConvBn1d(_FusedModule):
    """A convolution and a batch norm."""


class ConvBn2d(_FusedModule):
    """A convolution and a batch norm."""


class ConvBn3d(_FusedModule):
    """A convolution and a batch norm."""


class ConvBnReLU1d(_FusedModule):
    """A convolution, a batch norm and a ReLU."""


class ConvBnReLU2d(_FusedModule):
    """A convolution, a batch norm and a ReLU."""


class ConvBnReLU3d(_FusedModule):
    """A convolution, a batch norm and a ReLU."""


class LinearReLU(_FusedModule):
    """A linear layer and a ReLU."""


class LinearBn1d(_FusedModule):
    """A linear layer and a batch norm."""


class BNReLU2d(_FusedModule):
    """A batch norm and a ReLU."""


class BNReLU3d(_FusedModule):
    """A batch norm and a ReLU."""


def __getattr__(name: str) -> Any:
    return attribute("mortice.ao.nn.intrinsic", name)
