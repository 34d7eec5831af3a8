"""Images of several sizes as one tensor."""

from __future__ import annotations

from typing import Any

__all__ = ["ImageList"]


class ImageList:
    """Images in a batch `tensors`, padded to one size, and the (height, width) which each of them had before."""

    def __init__(self, tensors: Any, image_sizes: list[tuple[int, int]]) -> None:
        self.tensors, self.image_sizes = tensors, image_sizes

    def to(self, device: Any) -> ImageList:
        """Return the same images on another device."""
        return ImageList(self.tensors.to(device), self.image_sizes)
