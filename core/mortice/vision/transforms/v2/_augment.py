"""Transforms that erase, mix samples of a batch, or spoil images."""

from __future__ import annotations

import math
import numbers
from typing import Any

import mortice
from mortice import Tensor
from mortice.nn.functional import one_hot
from mortice.utils import _pytree
from mortice.vision import transforms as v1
from mortice.vision import tv_tensors
from mortice.vision._pillow import is_pil
from mortice.vision.transforms._draws import check_sequence, erased_box, integer
from mortice.vision.transforms.v2 import functional as F
from mortice.vision.transforms.v2._geometry import ForImages
from mortice.vision.transforms.v2._transform import RandomApplyTransform, Transform
from mortice.vision.transforms.v2._utils import _parse_labels_getter, has_any, query_chw, query_size
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor
from mortice.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

__all__ = ["CutMix", "JPEG", "MixUp", "RandomErasing"]


class RandomErasing(ForImages, RandomApplyTransform):
    """Put a value, or noise, in place of a random box of an image, with probability `p`.

    Args:
        p: the probability.
        scale: the box's least and largest share of the image.
        ratio: the least and largest quotient of its sides.
        value: one number, one for each channel, or "random".
        inplace: whether the image itself is changed.
    """

    _v1_transform_cls = v1.RandomErasing

    def __init__(
        self, p: float = 0.5, scale: Any = (0.02, 0.33), ratio: Any = (0.3, 3.3), value: Any = 0.0, inplace: bool = False
    ) -> None:
        super().__init__(p)
        v1.RandomErasing(p, scale, ratio, value)  # which checks them
        self.scale, self.ratio = scale, ratio
        value = [value] if isinstance(value, numbers.Number) else value
        self.value = None if isinstance(value, str) else [float(v) for v in value]
        self.inplace = inplace

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the box, and the noise."""
        channels, height, width = query_chw(flat_inputs)
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {channels} (number of inpt channels)"
            )
        box = erased_box(channels, height, width, self.scale, self.ratio, self.value) or (0, 0, height, width, None)
        return dict(zip("ijhwv", box))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Erase a box of an input."""
        return inpt if params["v"] is None else self._call_kernel(F.erase, inpt, **params, inplace=self.inplace)


class _Mixing(Transform):
    """Mixes each sample of a batch with the one before, and the labels likewise."""

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = "default") -> None:
        super().__init__()
        self.alpha = float(alpha)
        self._dist = mortice.distributions.Beta(mortice.tensor([alpha]), mortice.tensor([alpha]))
        self.num_classes = num_classes
        self._labels_getter = _parse_labels_getter(labels_getter)

    def forward(self, *inputs: Any) -> Any:
        """Mix the samples of a batch."""
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat_inputs, spec = _pytree.tree_flatten(sample)
        if has_any(flat_inputs, is_pil, BoundingBoxes, Mask, KeyPoints):
            raise ValueError(
                f"{type(self).__name__}() does not support PIL images, bounding boxes, keypoints and masks."
            )
        labels = self._checked(self._labels_getter(sample))
        chosen = self._needs_transform_list(flat_inputs)
        params = self.make_params([inpt for inpt, needed in zip(flat_inputs, chosen) if needed])
        params |= {"labels": labels, "batch_size": labels.shape[0]}
        return _pytree.tree_unflatten(
            [self.transform(x, params) if needed or x is labels else x for x, needed in zip(flat_inputs, chosen)], spec
        )

    def _checked(self, labels: Any) -> Any:
        if not isinstance(labels, Tensor):
            raise ValueError(f"The labels must be a tensor, but got {type(labels)} instead.")
        if labels.ndim not in (1, 2):
            raise ValueError(
                "labels should be index based with shape (batch_size,) or probability based with shape (batch_size, "
                f"num_classes), but got a tensor of shape {labels.shape} instead."
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[-1]):
            raise ValueError(
                "When passing 2D labels, the number of elements in last dimension must match num_classes: "
                f"{labels.shape[-1]} != {self.num_classes}. You can Leave num_classes to None."
            )
        return labels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Mix the samples of an input."""
        if inpt is params["labels"]:
            labels = one_hot(inpt, self.num_classes) if inpt.ndim == 1 else inpt
            return _mixed(labels if labels.is_floating_point() else labels.float(), params["lam"])
        if not (is_pure_tensor(inpt) or isinstance(inpt, (Image, Video))):
            return inpt
        dims = 5 if isinstance(inpt, Video) else 4
        if inpt.ndim != dims:
            raise ValueError(f"Expected a batched input with {dims} dims, but got {inpt.ndim} dimensions instead.")
        if inpt.shape[0] != params["batch_size"]:
            raise ValueError(
                "The batch size of the image or video does not match the batch size of the labels: "
                f"{inpt.shape[0]} != {params['batch_size']}."
            )
        out = self._mix(inpt.as_subclass(Tensor), params)
        return out if is_pure_tensor(inpt) else tv_tensors.wrap(out, like=inpt)

    def _mix(self, images: Any, params: dict[str, Any]) -> Any:
        raise NotImplementedError


def _mixed(t: Any, share: float) -> Any:
    return t.roll(1, 0).mul_(1.0 - share).add_(t.mul(share))


class MixUp(_Mixing):
    """Blend each image of a batch with the one before by a share drawn from Beta(alpha, alpha), and the labels likewise.

    Labels are numbers of classes, of which there are `num_classes`, or probabilities. The labels' getter finds them in what
    is given; "default" takes the second item, or looks for a name like it.
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the share."""
        return {"lam": float(self._dist.sample(()))}

    def _mix(self, images: Any, params: dict[str, Any]) -> Any:
        return _mixed(images, params["lam"])


class CutMix(_Mixing):
    """Put a box of each image of a batch in place of the next one's, with labels mixed by the shares of the images.

    The box's share is drawn from Beta(alpha, alpha); labels are as of `MixUp`.
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the box."""
        side = 0.5 * math.sqrt(1.0 - float(self._dist.sample(())))
        height, width = query_size(flat_inputs)
        x, y = integer(0, width), integer(0, height)
        across, down = int(side * width), int(side * height)
        x1, y1, x2, y2 = max(x - across, 0), max(y - down, 0), min(x + across, width), min(y + down, height)
        return {"box": (x1, y1, x2, y2), "lam": float(1.0 - (x2 - x1) * (y2 - y1) / (width * height))}

    def _mix(self, images: Any, params: dict[str, Any]) -> Any:
        x1, y1, x2, y2 = params["box"]
        out = images.clone()
        out[..., y1:y2, x1:x2] = images.roll(1, 0)[..., y1:y2, x1:x2]
        return out


class JPEG(Transform):
    """Write images of bytes as JPEG files of a quality from a range within 1 to 100, and read those."""

    def __init__(self, quality: Any) -> None:
        super().__init__()
        if isinstance(quality, bool):
            raise TypeError("quality can't be bool")
        quality = [quality, quality] if isinstance(quality, int) else quality
        check_sequence(quality, "quality", 2)
        low, high = quality
        if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high <= 100):
            raise ValueError(f"quality must be an integer from 1 to 100, got quality ={quality!r}")
        self.quality = quality

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the quality."""
        return {"quality": integer(self.quality[0], self.quality[1] + 1)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Write and read an input."""
        return self._call_kernel(F.jpeg, inpt, **params)
