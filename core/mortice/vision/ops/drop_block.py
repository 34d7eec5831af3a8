"""DropBlock: G. Ghiasi et al., "DropBlock: a regularization method for convolutional networks" (2018)."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import nn
from mortice.asking import wrap

__all__ = ["DropBlock2d", "DropBlock3d", "drop_block2d", "drop_block3d"]


def _drop(input: Any, nd: int, p: float, block_size: int, inplace: bool, eps: float, training: bool) -> Any:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}.")
    if input.ndim != nd + 2:
        raise ValueError(f"input should be {nd + 2} dimensional. Got {input.ndim} dimensions.")
    if not training or p == 0.0:
        return input
    sides = input.shape[2:]
    size = min(block_size, *sides)
    if size % 2 == 0:
        raise ValueError(f"block size should be odd. Got {size} which is even.")
    middles = [side - size + 1 for side in sides]  # where the middle of a block may lie
    share = min(p * math.prod(sides) / (size**nd * math.prod(middles)), 1.0)
    dropped = mortice.empty((*input.shape[:2], *middles), dtype=input.dtype, device=input.device).bernoulli_(share)
    dropped = nn.functional.pad(dropped, [size // 2] * 2 * nd)
    pool = nn.functional.max_pool2d if nd == 2 else nn.functional.max_pool3d
    kept = 1 - pool(dropped, kernel_size=size, stride=1, padding=size // 2)
    scale = kept.numel() / (eps + kept.sum())
    return input.mul_(kept).mul_(scale) if inplace else input * kept * scale


@wrap
def drop_block2d(
    input: Any, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True
) -> Any:
    """Zero squares of images (N, C, H, W), about a share p of their pixels, and scale what stays."""
    return _drop(input, 2, p, block_size, inplace, eps, training)


@wrap
def drop_block3d(
    input: Any, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True
) -> Any:
    """Zero cubes of volumes (N, C, D, H, W), about a share p of their pixels, and scale what stays."""
    return _drop(input, 3, p, block_size, inplace, eps, training)


class DropBlock2d(nn.Module):
    """`drop_block2d` as a module."""

    _nd = 2

    def __init__(self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6) -> None:
        super().__init__()
        self.p, self.block_size, self.inplace, self.eps = p, block_size, inplace, eps

    def forward(self, input: Any) -> Any:
        return _drop(input, self._nd, self.p, self.block_size, self.inplace, self.eps, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, block_size={self.block_size}, inplace={self.inplace})"


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a module."""

    _nd = 3
