"""The way of images and what is in them into a detector, and of what it finds back to the images' sizes."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models.detection.image_list import ImageList
from mortice.vision.models.detection.roi_heads import paste_masks_in_image

__all__ = ["GeneralizedRCNNTransform", "resize_boxes", "resize_keypoints"]


class GeneralizedRCNNTransform(nn.Module):
    """Normalizes and resizes images, with what is known of them, and pads them to one batch.

    Args:
        min_size: what the shorter side becomes; of several one is drawn in training, and the last taken otherwise.
        max_size: what the longer side becomes at most.
        size_divisible: what the sides of the batch are multiples of.
        fixed_size: the (width, height) of all images, in place of the sizes above.
    """

    def __init__(
        self,
        min_size: Any,
        max_size: int,
        image_mean: list[float],
        image_std: list[float],
        size_divisible: int = 32,
        fixed_size: tuple[int, int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.min_size = min_size if isinstance(min_size, (list, tuple)) else (min_size,)
        self.max_size, self.image_mean, self.image_std = max_size, image_mean, image_std
        self.size_divisible, self.fixed_size = size_divisible, fixed_size
        self._skip_resize = kwargs.pop("_skip_resize", False)

    def forward(self, images: Any, targets: Any = None) -> tuple[ImageList, Any]:
        """Return the batch, and what is known of the images in dictionaries that are not those given."""
        made, known = [], []
        for image, target in zip(images, [None] * len(images) if targets is None else targets):
            if image.dim() != 3:
                raise ValueError(
                    f"images is expected to be a list of 3d tensors of shape [C, H, W], got {image.shape}"
                )
            image, target = self.resize(self.normalize(image), None if target is None else dict(target))
            made.append(image)
            known.append(target)
        sizes = [(image.shape[-2], image.shape[-1]) for image in made]
        batch = self.batch_images(made, size_divisible=self.size_divisible)
        return ImageList(batch, sizes), None if targets is None else known

    def normalize(self, image: Any) -> Any:
        """Subtract the mean of each channel and divide by its deviation."""
        if not image.is_floating_point():
            raise TypeError(
                "Expected input images to be of floating type (in range [0, 1]), "
                f"but found type {image.dtype} instead"
            )
        mean, std = (
            mortice.as_tensor(x, dtype=image.dtype, device=image.device)[:, None, None]
            for x in (self.image_mean, self.image_std)
        )
        return (image - mean) / std

    def torch_choice(self, k: Any) -> int:
        """Draw one of several numbers."""
        return k[int(mortice.empty(1).uniform_(0.0, float(len(k))).item())]

    def resize(self, image: Any, target: Any = None) -> tuple[Any, Any]:
        """Resize one image, and in what is known of it boxes, masks and keypoints."""
        if self.training and self._skip_resize:
            return image, target
        before = image.shape[-2:]
        shorter = self.torch_choice(self.min_size) if self.training else self.min_size[-1]
        how: dict[str, Any] = {"size": (self.fixed_size[1], self.fixed_size[0])} if self.fixed_size else {
            "scale_factor": min(shorter / min(before), self.max_size / max(before)), "recompute_scale_factor": True
        }  # fmt: skip
        image = F.interpolate(image[None], mode="bilinear", align_corners=False, **how)[0]
        if target is not None:
            if "masks" in target:
                target["masks"] = F.interpolate(target["masks"][:, None].float(), **how)[:, 0].byte()
            target["boxes"] = resize_boxes(target["boxes"], before, image.shape[-2:])
            if "keypoints" in target:
                target["keypoints"] = resize_keypoints(target["keypoints"], before, image.shape[-2:])
        return image, target

    def batch_images(self, images: list[Any], size_divisible: int = 32) -> Any:
        """Put images into one tensor, with zeros to the right of and below the smaller ones."""
        most = [max(sides) for sides in zip(*(image.shape for image in images))]
        most[1:] = [math.ceil(side / size_divisible) * size_divisible for side in most[1:]]
        batch = images[0].new_zeros((len(images), *most))
        for place, image in zip(batch, images):
            place[: image.shape[0], : image.shape[1], : image.shape[2]].copy_(image)
        return batch

    def postprocess(self, result: list[Any], image_shapes: Any, original_image_sizes: Any) -> list[Any]:
        """Bring what was found to the sizes that the images had; masks become as large as the images."""
        if self.training:
            return result
        for found, now, before in zip(result, image_shapes, original_image_sizes):
            found["boxes"] = resize_boxes(found["boxes"], now, before)
            if "masks" in found:
                found["masks"] = paste_masks_in_image(found["masks"], found["boxes"], before)
            if "keypoints" in found:
                found["keypoints"] = resize_keypoints(found["keypoints"], now, before)
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n    Normalize(mean={self.image_mean}, std={self.image_std})"
            f"\n    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)"
        )


def _ratios(original_size: Any, new_size: Any) -> list[float]:
    """Return how much larger height and width are, as float32 rounds it, whatever the boxes are."""
    return [(mortice.tensor(float(n)) / mortice.tensor(float(o))).item() for n, o in zip(new_size, original_size)]


def resize_keypoints(keypoints: Any, original_size: Any, new_size: Any) -> Any:
    """Bring keypoints (N, K, 3) from images of one (height, width) to another."""
    down, across = _ratios(original_size, new_size)
    x, y, visible = keypoints.unbind(-1)
    return mortice.stack((x * across, y * down, visible), dim=-1)


def resize_boxes(boxes: Any, original_size: Any, new_size: Any) -> Any:
    """Bring boxes from images of one (height, width) to another."""
    down, across = _ratios(original_size, new_size)
    x1, y1, x2, y2 = boxes.unbind(1)
    return mortice.stack((x1 * across, y1 * down, x2 * across, y2 * down), dim=1)
