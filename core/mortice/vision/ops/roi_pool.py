"""RoIPool: the largest values that a feature map has in the parts of each region."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import nn
from mortice.asking import wrap
from mortice.vision.ops.roi_align import regions

__all__ = ["RoIPool", "roi_pool"]


def whole_pixels(corners: Any, spatial_scale: float) -> Any:
    """Return x1, y1, x2 and y2 on the feature map as whole numbers, halves away from zero; no gradient comes to them."""
    scaled = corners.detach() * spatial_scale
    return (scaled.sign() * (scaled.abs() + 0.5).floor()).unbind(1)


def within(start: Any, length: Any, bins: int, size: int) -> Any:
    """Return which of `size` pixels lie in each bin of each region: (regions, bins, size). Bins may share pixels."""
    of = mortice.arange(bins, dtype=length.dtype, device=length.device)
    first = start[:, None] + (of * length[:, None] / bins).floor()
    after = start[:, None] + ((of + 1) * length[:, None] / bins).ceil()
    at = mortice.arange(size, dtype=length.dtype, device=length.device)
    return (at >= first[..., None]) & (at < after[..., None])


@wrap
def roi_pool(input: Any, boxes: Any, output_size: int | tuple[int, int], spatial_scale: float = 1.0) -> Any:
    """Pool regions of feature maps (N, C, H, W), rounded to whole pixels, to one size; what has no pixel gives zero.

    Args:
        boxes: rows of (image, x1, y1, x2, y2), or for each image a tensor of rows of corners.
        spatial_scale: the size of the feature map by that of what the boxes are measured in.
    """
    images, corners = regions("roi_pool", input, boxes)
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    if not images:
        return input.new_zeros((0, input.shape[1], height, width))
    x1, y1, x2, y2 = whole_pixels(corners.to(input.dtype), spatial_scale)
    down = within(y1, (y2 - y1 + 1).clamp(min=1), height, input.shape[2])
    across = within(x1, (x2 - x1 + 1).clamp(min=1), width, input.shape[3])
    low = float("-inf")
    pooled = []
    # A region at a time: a copy of its feature map for each region could fill the memory.
    # Of equal values the first, row by row, is taken, and the gradient goes to it: columns before rows.
    for n, i in enumerate(images):
        part = mortice.stack([input[i].masked_fill(~bin, low).max(2).values for bin in across[n]], 2)
        pooled.append(mortice.stack([part.masked_fill(~bin[:, None], low).max(1).values for bin in down[n]], 1))
    found = mortice.stack(pooled)
    return found.masked_fill(found == low, 0.0)


class RoIPool(nn.Module):
    """`roi_pool` as a module."""

    def __init__(self, output_size: int | tuple[int, int], spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Any, rois: Any) -> Any:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale})"
