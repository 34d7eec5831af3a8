"""Presets: the whole way from a picture to what a model takes, as published weights ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice import float32, is_tensor, nn
from mortice.vision.transforms import functional as F
from mortice.vision.transforms.functional import InterpolationMode

__all__ = ["ImageClassification", "ObjectDetection", "SemanticSegmentation", "VideoClassification"]


class ObjectDetection(nn.Module):
    """Scale to 0..1: PIL images, and tensors with any leading dims."""

    def forward(self, img: Any) -> Any:
        """Prepare an image, or a batch of them."""
        return F.convert_image_dtype(img if is_tensor(img) else F.pil_to_tensor(img), float32)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def describe(self) -> str:
        """Say what is done to an image."""
        return f"{_IMAGES} The images are rescaled to ``[0.0, 1.0]``."


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


class VideoClassification(nn.Module):
    """Resize, crop the middle, scale to 0..1, normalize, and put channels before frames: (T, C, H, W), or a batch."""

    def __init__(
        self, *, crop_size: Sequence[int], resize_size: Sequence[int],
        mean: Sequence[float] = (0.43216, 0.394666, 0.37645), std: Sequence[float] = (0.22803, 0.22145, 0.216989),
        interpolation: Any = InterpolationMode.BILINEAR,
    ) -> None:  # fmt: skip
        super().__init__()
        self.crop_size, self.resize_size = list(crop_size), list(resize_size)
        self.mean, self.std, self.interpolation = list(mean), list(std), interpolation

    def forward(self, vid: Any) -> Any:
        """Prepare a film, or a batch of them."""
        # The weights that are published were trained without antialiasing.
        vid = F.resize(vid, self.resize_size, self.interpolation, antialias=False)
        return _scaled(F.center_crop(vid, self.crop_size), self.mean, self.std).transpose(-4, -3)

    def __repr__(self) -> str:
        return _shown(self, "crop_size resize_size mean std interpolation")

    def describe(self) -> str:
        """Say what is done to a film."""
        return (
            "Accepts batched ``(B, T, C, H, W)`` and single ``(T, C, H, W)`` video frame ``mortice.Tensor`` objects. The frames "
            f"are resized to ``resize_size={self.resize_size}`` using ``interpolation={self.interpolation}``, followed by a "
            f"central crop of ``crop_size={self.crop_size}``. {_scaling(self)} Finally the output dimensions are permuted "
            "to ``(..., C, T, H, W)`` tensors."
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
