"""Position-sensitive RoIPool: the mean of whole pixels, in each bin of a region over channels of its own."""

from __future__ import annotations

from typing import Any

from mortice import nn
from mortice.asking import wrap
from mortice.nn import functional as F
from mortice.vision.ops.ps_roi_align import bins_of, own_channels
from mortice.vision.ops.roi_align import extent, weighted
from mortice.vision.ops.roi_pool import whole_pixels, within

__all__ = ["PSRoIPool", "ps_roi_pool"]


def _means(start: Any, length: Any, bins: int, size: int) -> Any:
    """Return how much each pixel counts in each bin of each region. As torchvision has it, the map's last one never does."""
    inside = F.pad(within(start, length, bins, size - 1).to(length.dtype), (0, 1))
    return inside / inside.sum(2, keepdim=True).clamp(min=1)


@wrap
def ps_roi_pool(input: Any, boxes: Any, output_size: int | tuple[int, int], spatial_scale: float = 1.0) -> Any:
    """Average regions of feature maps (N, C * H' * W', H, W), rounded to whole pixels, to (K, C, H', W').

    What has no pixel gives zero.

    Args:
        boxes: rows of (image, x1, y1, x2, y2), or for each image a tensor of rows of corners.
        spatial_scale: the size of the feature map by that of what the boxes are measured in.

    Raises:
        RuntimeError: where the channels are not shared out evenly among the bins.
    """
    images, corners, height, width = bins_of("ps_roi_pool", input, boxes, output_size)
    if not images:
        return input.new_zeros((0, input.shape[1] // (height * width), height, width))
    x1, y1, x2, y2 = whole_pixels(corners.to(input.dtype), spatial_scale)
    w, h = (x2 - x1).clamp(min=1), (y2 - y1).clamp(min=1)
    down, across = _means(y1, h, height, input.shape[2]), _means(x1, w, width, input.shape[3])
    where = list(zip(images, extent(y1, h, input.shape[2]), extent(x1, w, input.shape[3])))
    return own_channels(weighted(input, where, down, across))


class PSRoIPool(nn.Module):
    """`ps_roi_pool` as a module."""

    def __init__(self, output_size: int | tuple[int, int], spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Any, rois: Any) -> Any:
        return ps_roi_pool(input, rois, self.output_size, self.spatial_scale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale})"
