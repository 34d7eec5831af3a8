"""The boxes that predictions start from, some around each pixel of the maps."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import nn
from mortice.vision.models.detection.image_list import ImageList

__all__ = ["AnchorGenerator", "DefaultBoxGenerator"]


class AnchorGenerator(nn.Module):
    """Boxes of all sizes and proportions (height by width) that are given for each map, a tuple of them a map."""

    def __init__(self, sizes: Any = ((128, 256, 512),), aspect_ratios: Any = ((0.5, 1.0, 2.0),)) -> None:
        super().__init__()
        if not isinstance(sizes[0], (list, tuple)):
            sizes = tuple((size,) for size in sizes)
        if not isinstance(aspect_ratios[0], (list, tuple)):
            aspect_ratios = (aspect_ratios,) * len(sizes)
        self.sizes, self.aspect_ratios = sizes, aspect_ratios
        self.cell_anchors = [self.generate_anchors(s, ratios) for s, ratios in zip(sizes, aspect_ratios)]

    def generate_anchors(
        self, scales: Any, aspect_ratios: Any, dtype: Any = mortice.float32, device: Any = "cpu"
    ) -> Any:
        """Return the boxes of one map, around zero and rounded to whole pixels."""
        scales, ratios = (mortice.as_tensor(x, dtype=dtype, device=device) for x in (scales, aspect_ratios))
        high = ratios.sqrt()
        widths, heights = (((side[:, None] * scales).reshape(-1)) for side in (1 / high, high))
        return (mortice.stack((-widths, -heights, widths, heights), dim=1) / 2).round()

    def set_cell_anchors(self, dtype: Any, device: Any) -> None:
        """Bring the boxes to a dtype and device."""
        self.cell_anchors = [anchors.to(dtype=dtype, device=device) for anchors in self.cell_anchors]

    def num_anchors_per_location(self) -> list[int]:
        """Return how many boxes there are at each pixel of each map."""
        return [len(sizes) * len(ratios) for sizes, ratios in zip(self.sizes, self.aspect_ratios)]

    def grid_anchors(self, grid_sizes: Any, strides: Any) -> list[Any]:
        """Return for each map its boxes at each pixel, row by row."""
        if not len(grid_sizes) == len(strides) == len(self.cell_anchors):
            raise AssertionError(
                "Anchors should be Tuple[Tuple[int]] because each feature map could potentially have different sizes and "
                "aspect ratios. There needs to be a match between the number of feature maps passed and the number of "
                f"sizes / aspect ratios specified: got {len(grid_sizes)} maps and {len(self.cell_anchors)} sizes."
            )
        found = []
        for (height, width), (down, across), cell in zip(grid_sizes, strides, self.cell_anchors):
            y, x = (
                mortice.arange(n, dtype=mortice.int32, device=cell.device) * step
                for n, step in ((height, down), (width, across))
            )
            y, x = (t.reshape(-1) for t in mortice.meshgrid(y, x, indexing="ij"))
            found.append((mortice.stack((x, y, x, y), dim=1)[:, None] + cell).reshape(-1, 4))
        return found

    def forward(self, image_list: ImageList, feature_maps: list[Any]) -> list[Any]:
        """Return the boxes of all maps, one tensor an image."""
        height, width = image_list.tensors.shape[-2:]
        sizes = [tuple(x.shape[-2:]) for x in feature_maps]
        self.set_cell_anchors(feature_maps[0].dtype, feature_maps[0].device)
        anchors = mortice.cat(self.grid_anchors(sizes, [(height // h, width // w) for h, w in sizes]))
        return [anchors] * len(image_list.image_sizes)


class DefaultBoxGenerator(nn.Module):
    """The boxes of SSD: two squares and two of each proportion, in parts of the image's size.

    Args:
        aspect_ratios: the proportions of each map.
        min_ratio, max_ratio: the parts that the first and the last map begin with, unless `scales` gives all.
        scales: the parts, one more than there are maps.
        steps: how many pixels of the image are one of each map; by default what its size says.
        clip: whether sides are no longer than the image's.
    """

    def __init__(
        self,
        aspect_ratios: list[list[int]],
        min_ratio: float = 0.15,
        max_ratio: float = 0.9,
        scales: list[float] | None = None,
        steps: list[int] | None = None,
        clip: bool = True,
    ) -> None:
        super().__init__()
        if steps is not None and len(aspect_ratios) != len(steps):
            raise ValueError("aspect_ratios and steps should have the same length")
        self.aspect_ratios, self.steps, self.clip = aspect_ratios, steps, clip
        maps = len(aspect_ratios)
        if scales is None and maps > 1:
            scales = [min_ratio + (max_ratio - min_ratio) * k / (maps - 1.0) for k in range(maps)] + [1.0]
        self.scales = [min_ratio, max_ratio] if scales is None else scales
        self._wh_pairs = self._generate_wh_pairs(maps)

    def _generate_wh_pairs(self, num_outputs: int, dtype: Any = mortice.float32, device: Any = "cpu") -> list[Any]:
        pairs = []
        for k in range(num_outputs):
            scale = self.scales[k]
            sides = [[scale] * 2, [math.sqrt(scale * self.scales[k + 1])] * 2]
            for ratio in self.aspect_ratios[k]:
                long, short = scale * math.sqrt(ratio), scale / math.sqrt(ratio)
                sides += [[long, short], [short, long]]
            pairs.append(mortice.tensor(sides, dtype=dtype, device=device))
        return pairs

    def num_anchors_per_location(self) -> list[int]:
        """Return how many boxes there are at each pixel of each map."""
        return [2 + 2 * len(ratios) for ratios in self.aspect_ratios]

    def _grid_default_boxes(self, grid_sizes: Any, image_size: Any, dtype: Any = mortice.float32) -> Any:
        """Return centres and sides of the boxes of all maps."""
        found = []
        for k, size in enumerate(grid_sizes):
            parts = size if self.steps is None else [side / self.steps[k] for side in image_size]
            y, x = (((mortice.arange(n) + 0.5) / part).to(dtype) for n, part in zip(size, parts))
            y, x = (t.reshape(-1) for t in mortice.meshgrid(y, x, indexing="ij"))
            sides = self._wh_pairs[k].to(y.device)
            sides = sides.clamp(min=0, max=1) if self.clip else sides
            centres = mortice.stack((x, y), dim=-1).repeat_interleave(len(sides), dim=0)
            found.append(mortice.cat((centres, sides.repeat(size[0] * size[1], 1)), dim=1))
        return mortice.cat(found)

    def forward(self, image_list: ImageList, feature_maps: list[Any]) -> list[Any]:
        """Return the boxes of all maps, as corners in pixels, one tensor an image."""
        height, width = image_list.tensors.shape[-2:]
        sizes = [tuple(x.shape[-2:]) for x in feature_maps]
        boxes = self._grid_default_boxes(sizes, (height, width), feature_maps[0].dtype).to(feature_maps[0].device)
        centres, half = boxes[:, :2], 0.5 * boxes[:, 2:]
        scale = mortice.tensor([width, height], device=boxes.device)
        return [mortice.cat(((centres - half) * scale, (centres + half) * scale), -1)] * len(image_list.image_sizes)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(aspect_ratios={self.aspect_ratios}, clip={self.clip}, scales={self.scales}, "
            f"steps={self.steps})"
        )
