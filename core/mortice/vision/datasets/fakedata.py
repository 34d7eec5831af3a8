"""Random pictures in place of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mortice as mt
from mortice.vision.datasets.vision import VisionDataset
from mortice.vision.pictures import to_image


class FakeData(VisionDataset):
    """Random PIL images and classes; which ones depends on the index and `random_offset` alone."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes, self.random_offset = size, image_size, num_classes, random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        draw = mt.Generator().manual_seed(index + self.random_offset)
        # Normal numbers as bytes, which wrap around: this is what torchvision's look like.
        pixels = mt.randn(*self.image_size, generator=draw).mul(255).to(mt.int32).remainder(256).to(mt.uint8)
        target = mt.randint(0, self.num_classes, (1,), generator=draw)[0]
        picture, target = self._transformed(to_image(pixels.permute(1, 2, 0)), target)
        return picture, target.item() if isinstance(target, mt.Tensor) else target

    def __len__(self) -> int:
        return self.size
