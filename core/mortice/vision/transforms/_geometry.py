"""Transforms that crop, flip, pad, resize and warp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.vision.transforms import functional as F
from mortice.vision.transforms._draws import (
    Perhaps,
    angles,
    chance,
    check_box,
    check_sequence,
    checked_fill,
    crop_box,
    fill_for,
    integer,
    pair,
    uniform,
)
from mortice.vision.transforms.functional import InterpolationMode, interpolation_mode


def _known_mode(interpolation: Any) -> Any:
    """Return the InterpolationMode of Pillow's number; whatever else it is, is checked when it is used."""
    return interpolation_mode(interpolation) if isinstance(interpolation, int) else interpolation


# ---- sizes that are given ----


class Resize(nn.Module):
    """Resize to (h, w), or so that the shorter side is `size` and the longer at most `max_size`."""

    def __init__(
        self, size: Any, interpolation: Any = InterpolationMode.BILINEAR, max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size, self.max_size, self.antialias = size, max_size, antialias
        self.interpolation = _known_mode(interpolation)

    def forward(self, img: Any) -> Any:
        """Resize an image."""
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(nn.Module):
    """Cut out the middle, padding with 0 where the image is smaller."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = pair(size)

    def forward(self, img: Any) -> Any:
        """Crop an image."""
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(nn.Module):
    """Pad all sides, (left/right, top/bottom) or (left, top, right, bottom).

    The modes are "constant", "edge", "reflect" (without the edge itself) and "symmetric" (with it).
    """

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        for what, value in (("padding", padding), ("fill", fill)):
            if not isinstance(value, (int, float, tuple, list)):
                raise TypeError(f"Got inappropriate {what} arg")
        F.check_padding(padding, padding_mode)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        """Pad an image."""
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class FiveCrop(nn.Module):
    """Return the top left, top right, bottom left, bottom right and central crop, as a tuple."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = pair(size)

    def forward(self, img: Any) -> tuple[Any, ...]:
        """Crop an image."""
        return F.five_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class TenCrop(nn.Module):
    """Return the five crops and those of the mirrored image, as a tuple."""

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__()
        self.size, self.vertical_flip = pair(size), vertical_flip

    def forward(self, img: Any) -> tuple[Any, ...]:
        """Crop an image."""
        return F.ten_crop(img, self.size, self.vertical_flip)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, vertical_flip={self.vertical_flip})"


# ---- random crops and flips ----


class RandomCrop(nn.Module):
    """Cut out a box of a given size anywhere, after padding as `Pad` does where that is asked for."""

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        self.size = tuple(pair(size))
        self.padding, self.pad_if_needed, self.fill, self.padding_mode = padding, pad_if_needed, fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Draw top, left, height and width of a box."""
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {(h, w)}")
        if (h, w) == (height, width):
            return 0, 0, h, w
        return integer(0, h - height + 1), integer(0, w - width + 1), height, width

    def forward(self, img: Any) -> Any:
        """Crop an image."""
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            _, h, w = F.get_dimensions(img)
            if w < self.size[1]:
                img = F.pad(img, [self.size[1] - w, 0], self.fill, self.padding_mode)
            if h < self.size[0]:
                img = F.pad(img, [0, self.size[0] - h], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(nn.Module):
    """Cut out a box with a random share of the image and random proportions, and resize it.

    Args:
        size: of the result.
        scale: the box's least and largest share of the image.
        ratio: its least and largest quotient of width and height.
        interpolation, antialias: as of `Resize`.
    """

    def __init__(
        self, size: Any, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR, antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = pair(size)
        check_box(scale, ratio)
        self.interpolation = _known_mode(interpolation)
        self.antialias, self.scale, self.ratio = antialias, scale, ratio

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Draw top, left, height and width of a box; in the middle where ten of them were too large."""
        return crop_box(*F.get_dimensions(img)[1:], scale, ratio)

    def forward(self, img: Any) -> Any:
        """Crop and resize an image."""
        box = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *box, self.size, self.interpolation, antialias=self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, scale={tuple(round(v, 4) for v in self.scale)}, "
            f"ratio={tuple(round(v, 4) for v in self.ratio)}, interpolation={self.interpolation.value}, "
            f"antialias={self.antialias})"
        )


class RandomHorizontalFlip(Perhaps):
    """Mirror left and right with probability `p`."""

    def change(self, img: Any) -> Any:
        """Flip an image."""
        return F.hflip(img)


class RandomVerticalFlip(Perhaps):
    """Mirror top and bottom with probability `p`."""

    def change(self, img: Any) -> Any:
        """Flip an image."""
        return F.vflip(img)


# ---- random warps ----


class RandomPerspective(nn.Module):
    """Move each corner inwards by up to `distortion_scale` of half the image, with probability `p`."""

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.p, self.distortion_scale = p, distortion_scale
        self.interpolation, self.fill = _known_mode(interpolation), checked_fill(fill)

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """Return the corners (x, y), clockwise from the upper left, and draw the places they move to."""
        right, bottom = width - 1, height - 1
        across, down = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))
        corners = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
        moved = [
            [integer(right - across, width) if x else integer(0, across + 1),
             integer(bottom - down, height) if y else integer(0, down + 1)]
            for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
        ]  # fmt: skip
        return corners, moved

    def forward(self, img: Any) -> Any:
        """Warp an image, perhaps."""
        channels, height, width = F.get_dimensions(img)
        if chance() >= self.p:
            return img
        points = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, *points, self.interpolation, fill_for(img, self.fill, channels))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomRotation(nn.Module):
    """Rotate by a random angle: from -degrees to degrees, or within (least, largest)."""

    def __init__(
        self, degrees: Any, interpolation: Any = InterpolationMode.NEAREST, expand: bool = False, center: Any = None,
        fill: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.degrees = angles(degrees, "degrees", 2)
        if center is not None:
            check_sequence(center, "center", 2)
        self.center, self.expand = center, expand
        self.interpolation, self.fill = _known_mode(interpolation), checked_fill(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """Draw an angle."""
        return uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        """Rotate an image."""
        fill = fill_for(img, self.fill, F.get_dimensions(img)[0])
        return F.rotate(img, self.get_params(self.degrees), self.interpolation, self.expand, self.center, fill)

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, interpolation={self.interpolation.value}, "
            f"expand={self.expand}{center}, fill={self.fill})"
        )


class RandomAffine(nn.Module):
    """Rotate, move, scale and shear at random, the middle or another center standing still.

    Args:
        degrees: the range of the angle, or one number for both sides of 0.
        translate: the largest moves across and down, as shares of the image.
        scale: the range of the scale.
        shear: the range of the shear along x, or (x least, x largest, y least, y largest), or one number.
        interpolation, fill, center: as of `functional.affine`.
    """

    def __init__(
        self, degrees: Any, translate: Any = None, scale: Any = None, shear: Any = None,
        interpolation: Any = InterpolationMode.NEAREST, fill: Any = 0, center: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.degrees = angles(degrees, "degrees", 2)
        for name, value in (("translate", translate), ("scale", scale), ("center", center)):
            if value is not None:
                check_sequence(value, name, 2)
        if translate is not None and not all([0.0 <= v <= 1.0 for v in translate]):
            raise ValueError("translation values should be between 0 and 1")
        if scale is not None and min(scale) <= 0:
            raise ValueError("scale values should be positive")
        self.translate, self.scale, self.center = translate, scale, center
        self.shear = None if shear is None else angles(shear, "shear", 2, 4)
        self.interpolation, self.fill = _known_mode(interpolation), checked_fill(fill)

    @staticmethod
    def get_params(
        degrees: Sequence[float], translate: Any, scale_ranges: Any, shears: Any, img_size: Sequence[int]
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Draw angle, translation, scale and shear for an image of some width and height."""
        angle = uniform(degrees[0], degrees[1])
        moves, scale, shear = (0, 0), 1.0, [0.0, 0.0]
        if translate is not None:
            across, down = (share * n for share, n in zip(translate, img_size))
            moves = round(uniform(-across, across)), round(uniform(-down, down))
        if scale_ranges is not None:
            scale = uniform(scale_ranges[0], scale_ranges[1])
        if shears is not None:
            shear = [uniform(shears[i], shears[i + 1]) for i in range(0, len(shears), 2)] + [0.0] * (4 - len(shears))
        return angle, moves, scale, (shear[0], shear[1])

    def forward(self, img: Any) -> Any:
        """Warp an image."""
        channels, height, width = F.get_dimensions(img)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, [width, height])
        fill = fill_for(img, self.fill, channels)
        return F.affine(img, *drawn, interpolation=self.interpolation, fill=fill, center=self.center)

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in ("translate", "scale", "shear")}
        if self.interpolation != InterpolationMode.NEAREST:
            shown["interpolation"] = self.interpolation.value
        shown |= {"fill": self.fill if self.fill != 0 else None, "center": self.center}
        rest = "".join([f", {name}={value}" for name, value in shown.items() if value is not None])
        return f"{type(self).__name__}(degrees={self.degrees}{rest})"


class ElasticTransform(nn.Module):
    """Move pixels by random displacements: `alpha` pixels at most, smoothed by a Gaussian of `sigma`."""

    def __init__(
        self, alpha: Any = 50.0, sigma: Any = 5.0, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = 0
    ) -> None:
        super().__init__()
        self.alpha, self.sigma = _two_floats("alpha", alpha), _two_floats("sigma", sigma)
        self.interpolation = _known_mode(interpolation)
        if not isinstance(fill, (int, float, list, tuple)):
            raise TypeError(f"fill should be int or float or a list or tuple of them. Got {type(fill)}")
        self.fill = [float(v) for v in (fill if isinstance(fill, (list, tuple)) else [fill])]

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Any:
        """Draw the displacements (1, H, W, 2) of an image of some height and width."""
        moves = []
        for a, s, n in zip(alpha, sigma, reversed(size)):
            d = mortice.rand(1, 1, *size) * 2 - 1
            if s > 0.0:
                d = F.gaussian_blur(d, [int(8 * s + 1) | 1] * 2, list(sigma))
            moves.append(d * a / n)
        return mortice.cat(moves, 1).permute(0, 2, 3, 1)

    def forward(self, tensor: Any) -> Any:
        """Warp an image."""
        displacement = self.get_params(self.alpha, self.sigma, F.get_dimensions(tensor)[1:])
        return F.elastic_transform(tensor, displacement, self.interpolation, self.fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, interpolation={self.interpolation}, "
            f"fill={self.fill})"
        )


def _two_floats(name: str, value: Any) -> Any:
    if not isinstance(value, (float, Sequence)):
        raise TypeError(f"{name} should be float or a sequence of floats. Got {type(value)}")
    if isinstance(value, float):
        return [value, value]
    if len(value) != 2:
        raise ValueError(f"If {name} is a sequence its length should be 2. Got {len(value)}")
    for v in value:
        if not isinstance(v, float):
            raise TypeError(f"{name} should be a sequence of floats. Got {type(v)}")
    return value
