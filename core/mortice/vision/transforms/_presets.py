"""Presets: the whole way from a picture to what a model takes, as published weights ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice import float32, is_tensor, nn
from mortice.vision.transforms import functional as F
from mortice.vision.transforms.functional import InterpolationMode

__all__ = ["ImageClassification"]


class ImageClassification(nn.Module):
    """Resize, crop the middle, scale to 0..1 and normalize: PIL images, and tensors with any leading dims."""

    def __init__(
        self, *, crop_size: int, resize_size: int = 256, mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[float] = (0.229, 0.224, 0.225), interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.crop_size, self.resize_size = [crop_size], [resize_size]
        self.mean, self.std = list(mean), list(std)
        self.interpolation, self.antialias = interpolation, antialias

    def forward(self, img: Any) -> Any:
        """Prepare an image, or a batch of them."""
        img = F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias)
        img = F.center_crop(img, self.crop_size)
        if not is_tensor(img):
            img = F.pil_to_tensor(img)
        return F.normalize(F.convert_image_dtype(img, float32), self.mean, self.std)

    def __repr__(self) -> str:
        shown = "".join(f"\n    {name}={getattr(self, name)}" for name in "crop_size resize_size mean std".split())
        return f"{type(self).__name__}({shown}\n    interpolation={self.interpolation}\n)"

    def describe(self) -> str:
        """Say what is done to an image."""
        return (
            "Accepts ``PIL.Image``, batched ``(B, C, H, W)`` and single ``(C, H, W)`` image ``mortice.Tensor`` objects. "
            f"The images are resized to ``resize_size={self.resize_size}`` using ``interpolation={self.interpolation}``, "
            f"followed by a central crop of ``crop_size={self.crop_size}``. Finally the values are first rescaled to "
            f"``[0.0, 1.0]`` and then normalized using ``mean={self.mean}`` and ``std={self.std}``."
        )
