"""RoIAlign: what a feature map holds in each region, resampled to one size."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import nn
from mortice.asking import wrap

__all__ = ["RoIAlign", "roi_align"]


def _weights(start: Any, length: Any, bins: int, size: int, sampling_ratio: int) -> Any:
    """Return how much each of `size` pixels counts in each bin of each region: (regions, bins, size).

    A bin is the mean of samples spread evenly over it, each linear between its two nearest pixels. Rows and columns
    are independent of each other, so the weights of a region are a product of one such matrix a side.
    """
    if sampling_ratio > 0:
        count = mortice.full_like(length, sampling_ratio)
    else:
        count = (length / bins).ceil()
    most = int(count.max().item())
    sample = mortice.arange(max(most, 1), dtype=start.dtype, device=start.device)
    bin_size = (length / bins)[:, None, None]
    bin_start = start[:, None, None] + mortice.arange(bins, dtype=start.dtype, device=start.device)[:, None] * bin_size
    at = bin_start + (sample + 0.5) * bin_size / count[:, None, None]  # (regions, bins, samples)
    share = ((sample < count[:, None, None]) & (at >= -1) & (at <= size)) / count.clamp(min=1)[:, None, None]
    at = at.nan_to_num().clamp(0, size - 1)
    below = at.floor()
    weights = start.new_zeros((*at.shape[:2], size))
    for near, part in ((below, 1 - (at - below)), ((below + 1).clamp(max=size - 1), at - below)):
        weights.scatter_add_(2, near.long(), part * share)
    return weights


def extent(start: Any, length: Any, size: int) -> list[list[int]]:
    """Return the first pixel of each region that can count, and the one after its last."""
    ends = mortice.stack((start, start + length)).nan_to_num().clamp(0, size - 1)
    return mortice.stack((ends.amin(0).floor(), ends.amax(0).ceil() + 1), 1).long().tolist()


class _Pool(mortice.autograd.Function):
    """Weighted sums of the pixels of each region, as rows of channels: only those pixels are read, and get a gradient.

    A region at a time: what the regions cover, side by side, could fill the memory.
    """

    @staticmethod
    def forward(ctx: Any, input: Any, where: Any, down: Any, across: Any) -> Any:
        ctx.save_for_backward(down, across)
        ctx.where, ctx.shape = where, input.shape
        rows = input.permute(0, 2, 3, 1).contiguous()
        channels, pooled = input.shape[1], []
        for (i, (top, bottom), (left, right)), v, h in zip(where, down, across):
            part = rows[i, top:bottom, left:right].reshape(bottom - top, -1)
            part = (v[:, top:bottom] @ part).reshape(-1, right - left, channels)
            pooled.append(h[:, left:right] @ part)
        return mortice.stack(pooled).permute(0, 3, 1, 2).contiguous()

    @staticmethod
    @mortice.autograd.function.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        down, across = ctx.saved_tensors
        n, channels, height, width = ctx.shape
        rows = g.new_zeros((n, height, width, channels))
        g = g.permute(0, 2, 3, 1).contiguous()
        for (i, (top, bottom), (left, right)), v, h, part in zip(ctx.where, down, across, g):
            part = (h[:, left:right].T @ part).reshape(len(part), -1)
            rows[i, top:bottom, left:right] += (v[:, top:bottom].T @ part).reshape(bottom - top, right - left, channels)
        return rows.permute(0, 3, 1, 2), None, None, None


weighted = _Pool.apply


def regions(name: str, input: Any, boxes: Any) -> tuple[list[int], Any]:
    """Return the image of each region and the corners, of rows of both or of a tensor of corners for each image."""
    if isinstance(boxes, (list, tuple)):
        if any(b.dim() != 2 or b.shape[1] != 4 for b in boxes):
            raise AssertionError(f"{name}: expected a tensor [L, 4] an image; got {[list(b.shape) for b in boxes]}.")
        images = [i for i, b in enumerate(boxes) for _ in range(b.shape[0])]
        corners = mortice.cat(list(boxes))
    else:
        if boxes.dim() != 2 or boxes.shape[1] != 5:
            raise AssertionError(f"{name}: expected boxes [K, 5] or a list of [L, 4]; got {list(boxes.shape)}.")
        images, corners = [int(i) for i in boxes[:, 0].tolist()], boxes[:, 1:]
    if not all(0 <= i < input.shape[0] for i in images):
        raise IndexError(f"{name}: expected images from 0 to {input.shape[0] - 1}; got {sorted(set(images))}.")
    return images, corners


@wrap
def roi_align(
    input: Any,
    boxes: Any,
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Any:
    """Pool regions of feature maps (N, C, H, W) to one size, with samples between pixels.

    Args:
        boxes: rows of (image, x1, y1, x2, y2), or for each image a tensor of rows of corners.
        spatial_scale: the size of the feature map by that of what the boxes are measured in.
        sampling_ratio: how many samples a bin has each way; by default enough for one a pixel.
        aligned: count pixels from their centres, half a pixel off what torchvision did first.
    """
    images, corners = regions("roi_align", input, boxes)
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    if not images:
        return input.new_zeros((0, input.shape[1], height, width))
    x1, y1, x2, y2 = (corners.detach().to(input.dtype) * spatial_scale - (0.5 if aligned else 0.0)).unbind(1)
    w, h = x2 - x1, y2 - y1
    if not aligned:
        w, h = w.clamp(min=1.0), h.clamp(min=1.0)
    with mortice.no_grad():
        down = _weights(y1, h, height, input.shape[2], sampling_ratio)
        across = _weights(x1, w, width, input.shape[3], sampling_ratio)
    where = list(zip(images, extent(y1, h, input.shape[2]), extent(x1, w, input.shape[3])))
    return weighted(input, where, down, across)


class RoIAlign(nn.Module):
    """`roi_align` as a module."""

    def __init__(
        self, output_size: int | tuple[int, int], spatial_scale: float, sampling_ratio: int, aligned: bool = False
    ) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: Any, rois: Any) -> Any:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned})"
        )
