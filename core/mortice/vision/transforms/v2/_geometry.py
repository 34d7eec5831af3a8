"""Transforms that crop, flip, pad, resize and warp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.notice import warn
from mortice.vision import transforms as v1
from mortice.vision._pillow import is_pil
from mortice.vision.ops import box_iou
from mortice.vision.transforms import _tensor, _warp
from mortice.vision.transforms._draws import angles, check_sequence, crop_box, integer, pair
from mortice.vision.transforms.v2 import functional as F
from mortice.vision.transforms.v2._transform import RandomApplyTransform, Transform
from mortice.vision.transforms.v2._utils import (
    _get_fill,
    _setup_fill_arg,
    _setup_number_or_seq,
    get_bounding_boxes,
    has_all,
    has_any,
    query_size,
)
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor
from mortice.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, Image, KeyPoints, Mask

__all__ = [
    "CenterCrop", "ElasticTransform", "FiveCrop", "Pad", "RandomAffine", "RandomCrop", "RandomHorizontalFlip",
    "RandomIoUCrop", "RandomPerspective", "RandomResize", "RandomResizedCrop", "RandomRotation",
    "RandomShortestSize", "RandomVerticalFlip", "RandomZoomOut", "Resize", "ScaleJitter", "TenCrop",
]  # fmt: skip

# ---- settings ----


class Filling:
    """Has a `fill`: a number, one a channel, or a dict of classes of inputs, "others" being the rest."""

    def _set_fill(self, fill: Any) -> None:
        self.fill = fill
        self._fill = _setup_fill_arg(fill)

    def _fill_for(self, inpt: Any) -> Any:
        return _get_fill(self._fill, type(inpt))


def _check_padding(padding: Any, padding_mode: str) -> None:
    sides = padding if isinstance(padding, (tuple, list)) else [padding]
    if len(sides) not in (1, 2, 4) or not all(isinstance(n, int) for n in sides):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


# ---- sizes that are given ----


class _Resizing(Transform):
    interpolation: Any
    antialias: bool | None

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Resize an input."""
        return self._call_kernel(F.resize, inpt, **params, interpolation=self.interpolation, antialias=self.antialias)


class Resize(_Resizing):
    """Resize to (h, w), or so that the shorter side is `size` and the longer at most `max_size`.

    With a `size` of None, `max_size` is what the longer side becomes.
    """

    _v1_transform_cls = v1.Resize

    def __init__(
        self, size: Any, interpolation: Any = "bilinear", max_size: int | None = None, antialias: bool | None = True
    ) -> None:
        super().__init__()
        if size is None:
            if not isinstance(max_size, int):
                raise ValueError(f"max_size must be an integer when size is None, but got {max_size} instead.")
        elif not isinstance(size, int) and not (isinstance(size, Sequence) and len(size) in (1, 2)):
            raise ValueError(
                f"size can be an integer, a sequence of one or two integers, or None, but got {size} instead."
            )
        self.size = [size] if isinstance(size, int) else size and list(size)
        self.interpolation, self.max_size, self.antialias = interpolation, max_size, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Return the size."""
        return {"size": self.size, "max_size": self.max_size}


class ScaleJitter(_Resizing):
    """Resize by a random factor, of the one with which an image fits into a target size."""

    def __init__(
        self, target_size: tuple[int, int], scale_range: tuple[float, float] = (0.1, 2.0), interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.target_size, self.scale_range = target_size, scale_range
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the size."""
        h, w = query_size(flat_inputs)
        low, high = self.scale_range
        r = min(self.target_size[1] / h, self.target_size[0] / w) * (low + mortice.rand(1) * (high - low))
        return {"size": (int(h * r), int(w * r))}


class RandomShortestSize(_Resizing):
    """Resize the shorter side to one of several sizes, unless that makes the longer one more than `max_size`."""

    def __init__(
        self, min_size: Any, max_size: int | None = None, interpolation: Any = "bilinear", antialias: bool | None = True
    ) -> None:
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size, self.interpolation, self.antialias = max_size, interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the size."""
        h, w = query_size(flat_inputs)
        r = self.min_size[integer(0, len(self.min_size))] / min(h, w)
        if self.max_size is not None:
            r = min(r, self.max_size / max(h, w))
        return {"size": (int(h * r), int(w * r))}


class RandomResize(_Resizing):
    """Resize the shorter side to a random size, from `min_size` to less than `max_size`."""

    def __init__(
        self, min_size: int, max_size: int, interpolation: Any = "bilinear", antialias: bool | None = True
    ) -> None:
        super().__init__()
        self.min_size, self.max_size = min_size, max_size
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the size."""
        return {"size": [integer(self.min_size, self.max_size)]}


class CenterCrop(Transform):
    """Cut out the middle, padding with 0 where the image is smaller."""

    _v1_transform_cls = v1.CenterCrop

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = pair(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Crop an input."""
        return self._call_kernel(F.center_crop, inpt, output_size=self.size)


class ForImages(Transform):
    """The base of what lets masks, boxes and points pass, with a warning."""

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(inpt, (BoundingBoxes, KeyPoints, Mask)):
            warn(
                f"{type(self).__name__}() is currently passing through inputs of type tv_tensors.{type(inpt).__name__}. "
                "This will likely change in the future."
            )
        return super()._call_kernel(functional, inpt, *args, **kwargs)


class FiveCrop(ForImages):
    """Return the top left, top right, bottom left, bottom right and central crop of an image, as a tuple."""

    _v1_transform_cls = v1.FiveCrop

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = pair(size)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples with boxes or masks."""
        if has_any(flat_inputs, BoundingBoxes, Mask):
            raise TypeError(f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()")

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Crop an input."""
        return self._call_kernel(F.five_crop, inpt, self.size)


class TenCrop(FiveCrop):
    """Return the five crops and those of the mirrored image, as a tuple."""

    _v1_transform_cls = v1.TenCrop

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Crop an input."""
        return self._call_kernel(F.ten_crop, inpt, self.size, vertical_flip=self.vertical_flip)


class Pad(Filling, Transform):
    """Pad all sides, (left/right, top/bottom) or (left, top, right, bottom).

    The modes are "constant", "edge", "reflect" (without the edge itself) and "symmetric" (with it).
    """

    _v1_transform_cls = v1.Pad

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        _check_padding(padding, padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self._set_fill(fill)
        self.padding_mode = padding_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Pad an input."""
        fill = self._fill_for(inpt)
        return self._call_kernel(F.pad, inpt, padding=self.padding, fill=fill, padding_mode=self.padding_mode)


# ---- random crops and flips ----


class RandomHorizontalFlip(RandomApplyTransform):
    """Mirror left and right with probability `p`."""

    _v1_transform_cls = v1.RandomHorizontalFlip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Flip an input."""
        return self._call_kernel(F.horizontal_flip, inpt)


class RandomVerticalFlip(RandomApplyTransform):
    """Mirror top and bottom with probability `p`."""

    _v1_transform_cls = v1.RandomVerticalFlip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Flip an input."""
        return self._call_kernel(F.vertical_flip, inpt)


class RandomCrop(Filling, Transform):
    """Cut out a box of a given size anywhere, after padding as `Pad` does where that is asked for."""

    _v1_transform_cls = v1.RandomCrop

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        self.size = pair(size)
        if pad_if_needed or padding is not None:
            _check_padding(0 if padding is None else padding, padding_mode)
        self.padding = list(_tensor.sides(padding)) if padding else None
        self.pad_if_needed = pad_if_needed
        self._set_fill(fill)
        self.padding_mode = padding_mode

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the box."""
        h, w = query_size(flat_inputs)
        height, width = self.size
        left, right, top, bottom = self.padding or (0, 0, 0, 0)
        if self.pad_if_needed:
            down, across = max(height - (h + top + bottom), 0), max(width - (w + left + right), 0)
            left, right, top, bottom = left + across, right + across, top + down, bottom + down
        h, w = h + top + bottom, w + left + right
        if h < height or w < width:
            padded = "padded " if self.padding is not None else ""
            raise ValueError(
                f"Required crop size {(height, width)} is larger than {padded}input image size {(h, w)}."
            )
        return {
            "needs_crop": h > height or w > width,
            "top": integer(0, h - height + 1) if h > height else 0,
            "left": integer(0, w - width + 1) if w > width else 0,
            "height": height,
            "width": width,
            "needs_pad": any((left, right, top, bottom)),
            "padding": [left, top, right, bottom],
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Pad and crop an input."""
        if params["needs_pad"]:
            fill = self._fill_for(inpt)
            inpt = self._call_kernel(
                F.pad, inpt, padding=params["padding"], fill=fill, padding_mode=self.padding_mode
            )
        if not params["needs_crop"]:
            return inpt
        return self._call_kernel(F.crop, inpt, **{name: params[name] for name in ("top", "left", "height", "width")})


class RandomResizedCrop(Transform):
    """Cut out a box with a random share of the image and random proportions, and resize it.

    Args:
        size: of the result.
        scale: the box's least and largest share of the image.
        ratio: its least and largest quotient of width and height.
        interpolation, antialias: as of `Resize`.
    """

    _v1_transform_cls = v1.RandomResizedCrop

    def __init__(
        self, size: Any, scale: Any = (0.08, 1.0), ratio: Any = (3.0 / 4.0, 4.0 / 3.0), interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = pair(size)
        for name, value in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(value, Sequence) or len(value) != 2:
                raise TypeError(f"{name} should be a sequence of two floats.")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warn("Scale and ratio should be of kind (min, max)")
        self.scale, self.ratio, self.interpolation, self.antialias = scale, ratio, interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the box."""
        box = crop_box(*query_size(flat_inputs), self.scale, self.ratio)
        return dict(zip(("top", "left", "height", "width"), box))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Crop and resize an input."""
        how = {"interpolation": self.interpolation, "antialias": self.antialias}
        return self._call_kernel(F.resized_crop, inpt, **params, size=self.size, **how)


class RandomZoomOut(Filling, RandomApplyTransform):
    """Put an image somewhere on a larger canvas, whose sides are a random multiple of its own, with probability `p`."""

    def __init__(self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p)
        self._set_fill(fill)
        check_sequence(side_range, "side_range", 2)
        self.side_range = side_range
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the padding."""
        h, w = query_size(flat_inputs)
        low, high = self.side_range
        r = low + mortice.rand(1) * (high - low)
        across, down = int(w * r) - w, int(h * r) - h
        r = mortice.rand(2)
        left, top = int(across * r[0]), int(down * r[1])
        return {"padding": [left, top, across - left, down - top]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Pad an input."""
        return self._call_kernel(F.pad, inpt, **params, fill=self._fill_for(inpt))


class RandomIoUCrop(Transform):
    """Cut out a random box that overlaps one of the sample's boxes enough, as for SSD.

    Boxes whose middles are not within become zeros, which `SanitizeBoundingBoxes` removes.

    Args:
        min_scale, max_scale: the shares of the image's sides that the box's are drawn from.
        min_aspect_ratio, max_aspect_ratio: the range of width by height.
        sampler_options: the least overlaps that one is drawn from; 1 or more leaves the sample as it is.
        trials: how often a box is drawn before another overlap is.
    """

    def __init__(
        self, min_scale: float = 0.3, max_scale: float = 1.0, min_aspect_ratio: float = 0.5, max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None, trials: int = 40,
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_scale, self.max_scale = min_scale, max_scale
        self.min_aspect_ratio, self.max_aspect_ratio = min_aspect_ratio, max_aspect_ratio
        self.options = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] if sampler_options is None else sampler_options
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples without boxes or without an image."""
        if not (has_all(flat_inputs, BoundingBoxes) and has_any(flat_inputs, is_pil, Image, is_pure_tensor)):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain tensor or PIL images and bounding boxes. Sample "
                "can also contain masks."
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the box; there are no parameters where the sample stays."""
        size, boxes = query_size(flat_inputs), get_bounding_boxes(flat_inputs)
        boxes = F.convert_bounding_box_format(boxes.as_subclass(Tensor), boxes.format, BoundingBoxFormat.XYXY)
        while True:
            least = self.options[integer(0, len(self.options))]
            if least >= 1.0:
                return {}
            for _ in range(self.trials):
                params = self._trial(*size, boxes, least)
                if params:
                    return params

    def _trial(self, h: int, w: int, boxes: Any, least: float) -> dict[str, Any] | None:
        r = self.min_scale + (self.max_scale - self.min_scale) * mortice.rand(2)
        width, height = int(w * r[0]), int(h * r[1])
        if not self.min_aspect_ratio <= width / height <= self.max_aspect_ratio:
            return None
        r = mortice.rand(2)
        left, top = int((w - width) * r[0]), int((h - height) * r[1])
        if not (width and height):
            return None
        x, y = 0.5 * (boxes[..., 0] + boxes[..., 2]), 0.5 * (boxes[..., 1] + boxes[..., 3])
        within = (left < x) & (x < left + width) & (top < y) & (y < top + height)
        if not within.any():
            return None
        box = mortice.tensor([[left, top, left + width, top + height]], dtype=boxes.dtype, device=boxes.device)
        if box_iou(boxes[within], box).max() < least:
            return None
        return {"top": top, "left": left, "height": height, "width": width, "is_within_crop_area": within}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Crop an input."""
        if not params:
            return inpt
        out = self._call_kernel(F.crop, inpt, **{name: params[name] for name in ("top", "left", "height", "width")})
        if isinstance(out, BoundingBoxes):
            out[~params["is_within_crop_area"]] = 0
        return out


# ---- random warps ----


class RandomRotation(Filling, Transform):
    """Rotate by a random angle: from -degrees to degrees, or within (least, largest)."""

    _v1_transform_cls = v1.RandomRotation

    def __init__(
        self, degrees: Any, interpolation: Any = "nearest", expand: bool = False, center: Any = None, fill: Any = 0
    ) -> None:
        super().__init__()
        self.degrees = angles(degrees, "degrees", 2)
        self.interpolation, self.expand = interpolation, expand
        self._set_fill(fill)
        if center is not None:
            check_sequence(center, "center", 2)
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the angle."""
        return {"angle": v1.RandomRotation.get_params(self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Rotate an input."""
        how = {"interpolation": self.interpolation, "expand": self.expand, "center": self.center}
        return self._call_kernel(F.rotate, inpt, **params, **how, fill=self._fill_for(inpt))


class RandomAffine(Filling, Transform):
    """Rotate, move, scale and shear at random, the middle or another center standing still.

    Args:
        degrees: the range of the angle, or one number for both sides of 0.
        translate: the largest moves across and down, as shares of the image.
        scale: the range of the scale.
        shear: the range of the shear along x, or (x least, x largest, y least, y largest), or one number.
        interpolation, fill, center: as of `functional.affine`.
    """

    _v1_transform_cls = v1.RandomAffine

    def __init__(
        self, degrees: Any, translate: Any = None, scale: Any = None, shear: Any = None, interpolation: Any = "nearest",
        fill: Any = 0, center: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        checked = v1.RandomAffine(degrees, translate, scale, shear, center=center)
        self.degrees, self.translate, self.scale, self.shear = checked.degrees, translate, scale, checked.shear
        self.interpolation = interpolation
        self._set_fill(fill)
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw angle, translation, scale and shear."""
        h, w = query_size(flat_inputs)
        drawn = v1.RandomAffine.get_params(self.degrees, self.translate, self.scale, self.shear, [w, h])
        return dict(zip(("angle", "translate", "scale", "shear"), drawn))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Warp an input."""
        how = {"interpolation": self.interpolation, "fill": self._fill_for(inpt), "center": self.center}
        return self._call_kernel(F.affine, inpt, **params, **how)


class RandomPerspective(Filling, RandomApplyTransform):
    """Move each corner inwards by up to `distortion_scale` of half the image, with probability `p`."""

    _v1_transform_cls = v1.RandomPerspective

    def __init__(
        self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Any = "bilinear", fill: Any = 0
    ) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale, self.interpolation = distortion_scale, interpolation
        self._set_fill(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the places of the corners."""
        h, w = query_size(flat_inputs)
        points = v1.RandomPerspective.get_params(w, h, self.distortion_scale)
        return {"coefficients": _warp.perspective_coefficients(*points)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Warp an input."""
        how = {"interpolation": self.interpolation, "fill": self._fill_for(inpt)}
        return self._call_kernel(F.perspective, inpt, startpoints=None, endpoints=None, **how, **params)


class ElasticTransform(Filling, Transform):
    """Move pixels by random displacements: `alpha` pixels at most, smoothed by a Gaussian of `sigma`."""

    _v1_transform_cls = v1.ElasticTransform

    def __init__(self, alpha: Any = 50.0, sigma: Any = 5.0, interpolation: Any = "bilinear", fill: Any = 0) -> None:
        super().__init__()
        self.alpha, self.sigma = _setup_number_or_seq(alpha, "alpha"), _setup_number_or_seq(sigma, "sigma")
        self.interpolation = interpolation
        self._set_fill(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the displacements."""
        return {"displacement": v1.ElasticTransform.get_params(self.alpha, self.sigma, list(query_size(flat_inputs)))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Warp an input."""
        return self._call_kernel(F.elastic, inpt, **params, fill=self._fill_for(inpt), interpolation=self.interpolation)
