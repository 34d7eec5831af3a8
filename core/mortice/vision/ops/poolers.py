"""Pooling of regions from that one of several feature maps which suits the size of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.vision.ops.boxes import box_area
from mortice.vision.ops.roi_align import roi_align

__all__ = ["LevelMapper", "MultiScaleRoIAlign"]


class LevelMapper:
    """Say from which level each box is pooled: one of the canonical size from the canonical level, of half its from one before."""

    def __init__(
        self, k_min: int, k_max: int, canonical_scale: int = 224, canonical_level: int = 4, eps: float = 1e-6
    ) -> None:
        self.k_min, self.k_max, self.s0, self.lvl0, self.eps = k_min, k_max, canonical_scale, canonical_level, eps

    def __call__(self, boxlists: Sequence[Any]) -> Any:
        sides = mortice.cat([box_area(boxes) for boxes in boxlists]).sqrt()
        levels = mortice.floor(self.lvl0 + mortice.log2(sides / self.s0) + self.eps)
        return levels.clamp(self.k_min, self.k_max).to(mortice.int64) - self.k_min


class MultiScaleRoIAlign(nn.Module):
    """`roi_align` of several feature maps, whose scales are found from the sizes of the images.

    Args:
        featmap_names: which maps are pooled.
        canonical_scale, canonical_level: the side of boxes that are pooled from a level, counted by halvings.
    """

    def __init__(
        self,
        featmap_names: Sequence[str],
        output_size: int | Sequence[int],
        sampling_ratio: int,
        *,
        canonical_scale: int = 224,
        canonical_level: int = 4,
    ) -> None:
        super().__init__()
        self.featmap_names, self.sampling_ratio = featmap_names, sampling_ratio
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level
        self.scales: list[float] | None = None
        self.map_levels: LevelMapper | None = None

    def forward(self, x: dict[str, Any], boxes: Sequence[Any], image_shapes: Sequence[tuple[int, int]]) -> Any:
        """Return (boxes, channels, *output_size) of maps by name, boxes for each image, and the sizes of the images."""
        maps = [x[name] for name in x if name in self.featmap_names]
        if self.scales is None or self.map_levels is None:
            if not image_shapes:
                raise ValueError("images list should not be empty")
            largest = [max(shape[i] for shape in image_shapes) for i in (0, 1)]
            self.scales = [2.0 ** round(math.log2(m.shape[-2] / largest[0])) for m in maps]
            ends = [-int(math.log2(scale)) for scale in (self.scales[0], self.scales[-1])]
            self.map_levels = LevelMapper(*ends, self.canonical_scale, self.canonical_level)
        numbered = [mortice.cat([b.new_full((len(b), 1), i), b], dim=1) for i, b in enumerate(boxes)]
        rois = mortice.cat(numbered)
        if len(maps) == 1:
            return roi_align(maps[0], rois, self.output_size, self.scales[0], self.sampling_ratio)
        levels = self.map_levels(boxes)
        pooled = maps[0].new_zeros((len(rois), maps[0].shape[1], *self.output_size))
        for level, (features, scale) in enumerate(zip(maps, self.scales)):
            at = mortice.where(levels == level)[0]
            if len(at):
                pooled[at] = roi_align(features, rois[at], self.output_size, scale, self.sampling_ratio)
        return pooled

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(featmap_names={self.featmap_names}, output_size={self.output_size}, "
            f"sampling_ratio={self.sampling_ratio})"
        )
