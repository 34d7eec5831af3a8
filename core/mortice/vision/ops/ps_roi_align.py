"""Position-sensitive RoIAlign: each bin of a region has channels of its own. J. Dai et al., "R-FCN" (2016)."""

from __future__ import annotations

from typing import Any

from mortice import nn
from mortice.asking import wrap
from mortice.vision.ops.roi_align import regions, roi_align

__all__ = ["PSRoIAlign", "ps_roi_align"]


def bins_of(name: str, input: Any, boxes: Any, output_size: int | tuple[int, int]) -> tuple[list[int], Any, int, int]:
    """Return the images and corners of regions, and the rows and columns of bins, which must have as many channels each."""
    images, corners = regions(name, input, boxes)
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    if input.shape[1] % (height * width):
        raise RuntimeError(
            f"{name}: input channels must be a multiple of pooling height * pooling width; got {input.shape[1]} for "
            f"{height} * {width}."
        )
    return images, corners, height, width


def own_channels(pooled: Any) -> Any:
    """Keep of (K, C * H * W, H, W) the channels of each bin: (K, C, H, W)."""
    height, width = pooled.shape[2:]
    return pooled.unflatten(1, (-1, height, width)).diagonal(0, 2, 4).diagonal(0, 2, 3)


@wrap
def ps_roi_align(
    input: Any,
    boxes: Any,
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
) -> Any:
    """Pool regions of feature maps (N, C * H' * W', H, W) as `roi_align` does when aligned, to (K, C, H', W').

    Args:
        boxes: rows of (image, x1, y1, x2, y2), or for each image a tensor of rows of corners.
        spatial_scale: the size of the feature map by that of what the boxes are measured in.
        sampling_ratio: how many samples a bin has each way; by default enough for one a pixel.

    Raises:
        RuntimeError: where the channels are not shared out evenly among the bins.
    """
    *_, height, width = bins_of("ps_roi_align", input, boxes, output_size)
    return own_channels(roi_align(input, boxes, (height, width), spatial_scale, sampling_ratio, aligned=True))


class PSRoIAlign(nn.Module):
    """`ps_roi_align` as a module."""

    def __init__(self, output_size: int | tuple[int, int], spatial_scale: float, sampling_ratio: int) -> None:
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio = output_size, spatial_scale, sampling_ratio

    def forward(self, input: Any, rois: Any) -> Any:
        return ps_roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio})"
        )
