"""Presets: the whole way from a picture to what a model takes, as published weights ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice import float32, is_tensor, nn
from mortice.vision.transforms import functional as F
from mortice.vision.transforms.functional import InterpolationMode

__all__ = ["ImageClassification", "SemanticSegmentation"]


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
        return _scaled(F.center_crop(img, self.crop_size), self.mean, self.std)

    def __repr__(self) -> str:
        return _shown(self, "crop_size resize_size mean std interpolation")

    def describe(self) -> str:
        """Say what is done to an image."""
        return (
            f"{_IMAGES} The images are resized to ``resize_size={self.resize_size}`` using ``interpolation={self.interpolation}``, "
            f"followed by a central crop of ``crop_size={self.crop_size}``. {_scaling(self)}"
        )


class SemanticSegmentation(nn.Module):
    """Resize, unless `resize_size` is None, scale to 0..1 and normalize: PIL images, and tensors with any leading dims."""

    def __init__(
        self, *, resize_size: int | None, mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[float] = (0.229, 0.224, 0.225), interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.resize_size = [resize_size] if resize_size is not None else None
        self.mean, self.std = list(mean), list(std)
        self.interpolation, self.antialias = interpolation, antialias

    def forward(self, img: Any) -> Any:
        """Prepare an image, or a batch of them."""
        if self.resize_size is not None:
            img = F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias)
        return _scaled(img, self.mean, self.std)

    def __repr__(self) -> str:
        return _shown(self, "resize_size mean std interpolation")

    def describe(self) -> str:
        """Say what is done to an image."""
        return (
            f"{_IMAGES} The images are resized to ``resize_size={self.resize_size}`` using "
            f"``interpolation={self.interpolation}``. {_scaling(self)}"
        )


_IMAGES = "Accepts ``PIL.Image``, batched ``(B, C, H, W)`` and single ``(C, H, W)`` image ``mortice.Tensor`` objects."


def _scaled(img: Any, mean: list[float], std: list[float]) -> Any:
    img = img if is_tensor(img) else F.pil_to_tensor(img)
    return F.normalize(F.convert_image_dtype(img, float32), mean, std)


def _shown(preset: Any, names: str) -> str:
    return f"{type(preset).__name__}(" + "".join(f"\n    {name}={getattr(preset, name)}" for name in names.split()) + "\n)"


def _scaling(preset: Any) -> str:
    return (
        "Finally the values are first rescaled to ``[0.0, 1.0]`` and then normalized using "
        f"``mean={preset.mean}`` and ``std={preset.std}``."
    )
