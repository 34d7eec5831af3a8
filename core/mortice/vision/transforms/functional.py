"""transforms.functional: what can be done to an image once its parameters are known, for PIL images and tensors alike.

PIL images go to Pillow's own functions (`_pil`), tensors to compositions of mortice's ops (`_tensor`, `_color`,
`_warp`), which run on every backend and differentiate. A tensor image is (..., C, H, W), or (H, W) alone.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from enum import Enum
from typing import Any

import mortice
from mortice import Tensor
from mortice.notice import warn
from mortice.vision import _planes
from mortice.vision._pillow import is_pil
from mortice.vision.transforms import _color, _pil, _tensor, _warp

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "adjust_sharpness", "affine", "autocontrast", "center_crop", "convert_image_dtype", "crop", "elastic_transform",
    "equalize", "erase", "five_crop", "gaussian_blur", "get_dimensions", "get_image_num_channels", "get_image_size",
    "hflip", "invert", "normalize", "pad", "perspective", "pil_to_tensor", "posterize", "resize", "resized_crop",
    "rgb_to_grayscale", "rotate", "solarize", "ten_crop", "to_grayscale", "to_pil_image", "to_tensor", "vflip",
]  # fmt: skip


class InterpolationMode(Enum):
    """Ways to interpolate; tensors know the first four, PIL images take nearest for nearest-exact."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


pil_modes_mapping = {
    InterpolationMode.NEAREST: 0, InterpolationMode.BILINEAR: 2, InterpolationMode.BICUBIC: 3,
    InterpolationMode.NEAREST_EXACT: 0, InterpolationMode.BOX: 4, InterpolationMode.HAMMING: 5,
    InterpolationMode.LANCZOS: 1,
}  # fmt: skip
_MODES = {number: mode for mode, number in reversed(pil_modes_mapping.items())}  # 0 is NEAREST, which comes first


def interpolation_mode(value: Any) -> InterpolationMode:
    """Return an InterpolationMode, also for Pillow's number of it."""
    if isinstance(value, int):
        if value not in _MODES:
            raise KeyError(f"interpolation: expected an InterpolationMode or Pillow's number from 0 to 5; got {value}")
        return _MODES[value]
    if not isinstance(value, InterpolationMode):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant"
        )
    return value


def _side(img: Any, of_tensors: Any = _tensor) -> Any:
    """Return the module that serves an image."""
    if isinstance(img, Tensor):
        return of_tensors
    if not is_pil(img):
        raise TypeError(f"img should be PIL Image or Tensor. Got {type(img)}")
    return _pil


def _check_tensor(img: Any) -> None:
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")


# ---- sizes ----


def get_dimensions(img: Any) -> list[int]:
    """Return channels, height and width of an image."""
    return (_tensor if isinstance(img, Tensor) else _pil).get_dimensions(img)


def get_image_size(img: Any) -> list[int]:
    """Return width and height of an image, in Pillow's order."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """Return the number of channels of an image."""
    return get_dimensions(img)[0]


# ---- from one kind to another ----


def _is_array(value: Any) -> bool:
    if isinstance(value, Tensor) or is_pil(value):
        return False
    return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def to_tensor(pic: Any) -> Tensor:
    """Make a float tensor (C, H, W) in [0, 1] of a PIL image or of a uint8 array (H, W, C) or (H, W).

    Values of other types than bytes are kept as they are.
    """
    if is_pil(pic):
        img = _planes.planes(pic)
        if img.dtype == mortice.bool:
            return img.to(mortice.get_default_dtype())
        img = img.to(mortice.int16) if img.dtype == mortice.uint16 else img
    elif _is_array(pic):
        img = mortice.as_tensor(pic)
        if img.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {img.ndim} dimensions.")
        img = (img.unsqueeze(2) if img.ndim == 2 else img).permute(2, 0, 1).contiguous()
    else:
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    return img.to(mortice.get_default_dtype()).div_(255) if img.dtype == mortice.uint8 else img


def pil_to_tensor(pic: Any) -> Tensor:
    """Make a tensor (C, H, W) of a PIL image, in the image's own type."""
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return _planes.pixels(pic)


def convert_image_dtype(image: Tensor, dtype: Any = mortice.float32) -> Tensor:
    """Convert a tensor image to another dtype, scaling so that white stays white: 1 for floats, the largest integer."""
    if not isinstance(image, Tensor):
        raise TypeError("Input img should be Tensor Image")
    return _tensor.convert_image_dtype(image, dtype)


# Number of channels -> what they may be called, the first of them when nothing is said.
_PIL_MODES = {2: ["LA"], 3: ["RGB", "YCbCr", "HSV"], 4: ["RGBA", "CMYK", "RGBX"]}


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """Make a PIL image of a tensor (C, H, W), an array (H, W, C), or either (H, W).

    Floats count from 0 to 1, unless the mode is "F".
    """
    if isinstance(pic, Tensor):
        pic = pic.detach()
    elif _is_array(pic):
        pic = mortice.as_tensor(pic)
        pic = pic.permute(2, 0, 1) if pic.ndim == 3 else pic
    else:
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    pic = pic.unsqueeze(0) if pic.ndim == 2 else pic
    if pic.ndim != 3:
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    channels = pic.shape[0]
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    if pic.dtype.is_floating_point and mode != "F":
        pic = (pic * 255).to(mortice.uint8)
    if channels == 1:
        modes = {mortice.uint8: "L", mortice.int16: _planes.WORDS, mortice.int32: "I", mortice.float32: "F"}
        expected = modes.get(pic.dtype)
        if mode is not None and mode != expected:
            raise ValueError(f"Incorrect mode ({mode}) supplied for input type {pic.dtype}. Should be {expected}")
        mode = expected
    else:
        permitted = _PIL_MODES[channels]
        if mode is not None and mode not in permitted:
            raise ValueError(f"Only modes {permitted} are supported for {channels}D inputs")
        mode = mode or (permitted[0] if pic.dtype == mortice.uint8 else None)
        mode = mode if pic.dtype.itemsize == 1 else None  # the bytes of larger numbers are no pixels
    if mode is None:
        raise TypeError(f"Input type {pic.dtype.name} is not supported")
    return _planes.image(pic, mode)


# ---- values ----


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """Subtract the mean and divide by the standard deviation, one of each for every channel."""
    _check_tensor(tensor)
    out = _tensor.normalize(tensor, mean, std, inplace)
    if out.shape != tensor.shape:
        raise RuntimeError(
            f"normalize: mean and std must have one value or one a channel; got {mean} and {std} for an image {tuple(tensor.shape)}."
        )
    return out


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """Put a value in place of the box of a tensor image whose upper left corner is (i, j)."""
    _check_tensor(img)
    return _tensor.erase(img, i, j, h, w, v, inplace)


# ---- cutting and padding ----


def hflip(img: Any) -> Any:
    """Mirror left and right."""
    return _side(img).hflip(img)


def vflip(img: Any) -> Any:
    """Mirror top and bottom."""
    return _side(img).vflip(img)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cut out a box; what lies outside of the image is 0."""
    return _side(img).crop(img, top, left, height, width)


def _pair(size: Any) -> Any:
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    return (size[0], size[0]) if len(size) == 1 else size


def center_crop(img: Any, output_size: Any) -> Any:
    """Cut out the middle, padding with 0 where the image is smaller."""
    height, width = _pair(output_size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        across, down = max(width - w, 0), max(height - h, 0)
        img = pad(img, [across // 2, down // 2, (across + 1) // 2, (down + 1) // 2], fill=0)
        _, h, w = get_dimensions(img)
        if (width, height) == (w, h):
            return img
    return crop(img, int(round((h - height) / 2.0)), int(round((w - width) / 2.0)), height, width)


def five_crop(img: Any, size: Any) -> tuple[Any, ...]:
    """Return the top left, top right, bottom left, bottom right and central crop."""
    size = _pair(size)
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    _, h, w = get_dimensions(img)
    height, width = size
    if width > w or height > h:
        raise ValueError(f"Requested crop size {size} is bigger than input size {(h, w)}")
    corners = [crop(img, top, left, height, width) for top in (0, h - height) for left in (0, w - width)]
    return *corners, center_crop(img, [height, width])


def ten_crop(img: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """Return the five crops, and those of the mirrored image."""
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Pad all sides, (left/right, top/bottom) or (left, top, right, bottom).

    Args:
        img: the image.
        padding: one, two or four numbers; a negative one crops.
        fill: what to pad with; for PIL images also a value for each channel.
        padding_mode: "constant", "edge", "reflect" (without the edge itself) or "symmetric" (with it).
    """
    side = _side(img)
    if not isinstance(padding, (numbers.Number, tuple, list)):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(padding_mode, str):
        raise TypeError("Got inappropriate padding_mode arg")
    check_padding(padding, padding_mode)
    return side.pad(img, padding, fill, padding_mode)


def check_padding(padding: Any, padding_mode: str) -> None:
    """Refuse another number of sides and another mode than there are."""
    if isinstance(padding, Sequence) and len(padding) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


# ---- resizing ----


def resize(
    img: Any, size: Any, interpolation: Any = InterpolationMode.BILINEAR, max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:  # fmt: skip
    """Resize to (h, w), or so that the shorter side is `size` and the longer at most `max_size`.

    `antialias` is for bilinear and bicubic tensors; PIL images always are.
    """
    mode = interpolation_mode(interpolation)
    if isinstance(size, (list, tuple)):
        if len(size) not in (1, 2):
            raise ValueError(
                f"Size must be an int or a 1 or 2 element tuple/list, not a {len(size)} element tuple/list"
            )
        if max_size is not None and len(size) != 1:
            raise ValueError(
                "max_size should only be passed if size specifies the length of the smaller edge, i.e. size should be "
                "an int or a sequence of length 1 in torchscript mode."
            )
    _, h, w = get_dimensions(img)
    wanted = resized_to(h, w, size, max_size)
    if wanted == [h, w]:
        return img
    if isinstance(img, Tensor):
        if mode is InterpolationMode.LANCZOS:
            raise ValueError("resize: InterpolationMode.LANCZOS is for PIL images here; transforms.v2 has it for tensors.")
        return _tensor.resize(img, wanted, mode.value, bool(antialias))
    if antialias is False:
        warn("Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.")
    return _pil.resize(img, wanted, pil_modes_mapping[mode])


def resized_to(h: int, w: int, size: Any, max_size: int | None) -> list[int]:
    """Return height and width when they become `size`, or the shorter of them does."""
    if isinstance(size, (list, tuple)) and len(size) == 2:
        return list(size)
    short, long = min(h, w), max(h, w)
    new_short = size[0] if isinstance(size, (list, tuple)) else size
    new_long = int(new_short * long / short)
    if max_size is not None:
        if max_size <= new_short:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge size = {size}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if w <= h else [new_short, new_long]


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: Any,
    interpolation: Any = InterpolationMode.BILINEAR, antialias: bool | None = True,
) -> Any:  # fmt: skip
    """Cut out a box and resize it."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


# ---- warping ----


def _turn_and_shear(angle: float, shear: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the rows of the matrix that shears in x, then in y, and turns, by degrees; its determinant is 1."""
    turn, shear_x, shear_y = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    return a, b, c, d


def affine_matrix(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Return the 6 numbers that take a place in the image to its place in the result; `_inverse_affine_matrix` is the way back."""
    (cx, cy), (tx, ty) = center, translate
    xx, xy, yx, yy = [v * scale for v in _turn_and_shear(angle, shear)]
    return [xx, xy, cx + tx - xx * cx - xy * cy, yx, yy, cy + ty - yx * cx - yy * cy]


def _inverse_affine_matrix(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Return the 6 numbers that take a place in the result to its place in the image.

    The image is turned about `center`, after a shear in x and then y, scaled, and moved.
    """
    (cx, cy), (tx, ty) = center, translate
    a, b, c, d = _turn_and_shear(angle, shear)
    xx, xy, yx, yy = d / scale, -b / scale, -c / scale, a / scale
    return [xx, xy, xx * (-cx - tx) + xy * (-cy - ty) + cx, yx, yy, yx * (-cx - tx) + yy * (-cy - ty) + cy]


def _check_turn(angle: Any, center: Any) -> None:
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")


def _from_middle(img: Any, center: Any) -> list[float]:
    """Return a center counted from the middle of the image, as tensors' grids have it."""
    return [0.0, 0.0] if center is None else [c - n * 0.5 for c, n in zip(center, get_image_size(img))]


def rotate(
    img: Any, angle: float, interpolation: Any = InterpolationMode.NEAREST, expand: bool = False,
    center: Sequence[float] | None = None, fill: Any = None,
) -> Any:  # fmt: skip
    """Rotate counter-clockwise by degrees, about the middle or another center.

    `expand` makes the result large enough for the whole image, and supposes that it turns about the middle.
    """
    mode = interpolation_mode(interpolation)
    _check_turn(angle, center)
    if not isinstance(img, Tensor):
        return _side(img).rotate(img, angle, pil_modes_mapping[mode], expand, center, fill)
    matrix = _inverse_affine_matrix(_from_middle(img, center), -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    return _warp.rotate(img, matrix, mode.value, expand, fill)


def affine(
    img: Any, angle: float, translate: Sequence[float], scale: float, shear: Any,
    interpolation: Any = InterpolationMode.NEAREST, fill: Any = None, center: Sequence[float] | None = None,
) -> Any:  # fmt: skip
    """Rotate clockwise, shear, scale and move an image, its middle or another center standing still.

    Args:
        img: the image.
        angle: degrees.
        translate: pixels to the right and down.
        scale: more than 1 enlarges.
        shear: degrees along x, or along x and y.
        interpolation: nearest or bilinear; for PIL images bicubic too.
        fill: what is put where there is no image, one value or one for each channel.
        center: x and y from the upper left corner.
    """
    mode = interpolation_mode(interpolation)
    shear = check_affine(angle, translate, scale, shear, center)
    if isinstance(img, Tensor):
        matrix = _inverse_affine_matrix(_from_middle(img, center), angle, translate, scale, shear)
        return _warp.affine(img, matrix, mode.value, fill)
    middle = [n * 0.5 for n in get_image_size(img)] if center is None else center
    matrix = _inverse_affine_matrix(middle, angle, translate, scale, shear)
    return _pil.affine(img, matrix, pil_modes_mapping[mode], fill)


def check_affine(angle: Any, translate: Any, scale: float, shear: Any, center: Any) -> list[float]:
    """Refuse what `affine` cannot take, and return the shear along x and y."""
    _check_turn(angle, center)
    if not isinstance(translate, (list, tuple)):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, (numbers.Number, list, tuple)):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    shear = [shear, 0.0] if isinstance(shear, numbers.Number) else list(_pair(shear))
    if len(shear) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    return shear


def perspective(
    img: Any, startpoints: Sequence[Sequence[int]], endpoints: Sequence[Sequence[int]],
    interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None,
) -> Any:  # fmt: skip
    """Warp an image so that four points, (x, y) each, come to lie on four others."""
    return perspective_by(img, _warp.perspective_coefficients(startpoints, endpoints), interpolation_mode(interpolation), fill)


def perspective_by(img: Any, coefficients: list[float], mode: InterpolationMode, fill: Any) -> Any:
    """Warp an image by the 8 numbers of the map from the result to the image."""
    if isinstance(img, Tensor):
        return _warp.perspective(img, coefficients, mode.value, fill)
    return _side(img).perspective(img, coefficients, pil_modes_mapping[mode], fill)


def _on_tensor(img: Any, change: Any) -> Any:
    """Apply a function of tensors to an image of either kind."""
    return change(img) if _side(img) is _tensor else _pil.through_tensor(change, img)


def elastic_transform(
    img: Any, displacement: Tensor, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None
) -> Any:
    """Move each pixel by a displacement (1, H, W, 2) of x and y, in halves of the width and height."""
    if isinstance(interpolation, int):
        warn(
            "Argument interpolation should be of type InterpolationMode instead of int. Please, use InterpolationMode enum."
        )
    mode = interpolation_mode(interpolation)
    if not isinstance(displacement, Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    _side(img)
    expected = (1, *get_dimensions(img)[1:], 2)
    if tuple(displacement.shape) != expected:
        raise ValueError(f"Argument displacement shape should be {expected}, but given {tuple(displacement.shape)}")
    return _on_tensor(img, lambda t: _warp.elastic_transform(t, displacement, mode.value, fill))


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Blur with a Gaussian of odd sizes (x, y); sigma is 0.15 of the size plus 0.35 unless given."""
    if not isinstance(kernel_size, (int, list, tuple)):
        raise TypeError(f"kernel_size should be int or a sequence of integers. Got {type(kernel_size)}")
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2:
        raise ValueError(f"If kernel_size is a sequence its length should be 2. Got {len(sizes)}")
    if any([n % 2 == 0 or n < 0 for n in sizes]):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {sizes}")
    if not isinstance(sigma, (int, float, list, tuple, type(None))):
        raise TypeError(f"sigma should be either float or sequence of floats. Got {type(sigma)}")
    sigmas = [n * 0.15 + 0.35 for n in sizes] if sigma is None else list(
        _pair(sigma) if isinstance(sigma, (list, tuple)) else (sigma, sigma)
    )  # fmt: skip
    if len(sigmas) != 2:
        raise ValueError(f"If sigma is a sequence, its length should be 2. Got {len(sigmas)}")
    if min(sigmas) <= 0.0:
        raise ValueError(f"sigma should have positive values. Got {sigmas}")
    return _on_tensor(img, lambda t: _warp.gaussian_blur(t, sizes, sigmas))


# ---- colours ----


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Change the brightness: 0 is black, 1 the image itself, 2 twice as bright."""
    return _side(img, _color).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Change the contrast: 0 is plain grey, 1 the image itself."""
    return _side(img, _color).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Change the saturation: 0 is black and white, 1 the image itself."""
    return _side(img, _color).adjust_saturation(img, saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turn the hues by a share of the circle, from -0.5 to 0.5; 0 is the image itself."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return _side(img, _color).adjust_hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """Raise the values, as from 0 to 1, to a power, and multiply them by a gain."""
    side = _side(img, _color)
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    return side.adjust_gamma(img, gamma, gain)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Change the sharpness: 0 is blurred, 1 the image itself."""
    return _side(img, _color).adjust_sharpness(img, sharpness_factor)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Make a PIL image black and white, in 1 or 3 channels."""
    if not is_pil(img):
        raise TypeError("Input should be PIL Image")
    return rgb_to_grayscale(img, num_output_channels)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Make an image black and white, in 1 or 3 channels."""
    side = _side(img, _color)
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    return side.rgb_to_grayscale(img, num_output_channels)


def invert(img: Any) -> Any:
    """Return the negative."""
    return _side(img, _color).invert(img)


def posterize(img: Any, bits: int) -> Any:
    """Keep that many upper bits of each value of a PIL or uint8 image."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    return _side(img, _color).posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """Invert the values that are at or above a threshold."""
    return _side(img, _color).solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """Stretch the values of each channel to the full range."""
    return _side(img, _color).autocontrast(img)


def equalize(img: Any) -> Any:
    """Spread the values of each channel of a PIL or uint8 image evenly over the range."""
    return _side(img, _color).equalize(img)
