"""What is done to images, videos and masks: torchvision.transforms' own functions, for what v2 takes besides."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.vision import tv_tensors
from mortice.vision._pillow import is_pil, pillow
from mortice.vision.transforms import _color, _pil, _tensor, _warp
from mortice.vision.transforms import functional as F
from mortice.vision.transforms.functional import InterpolationMode
from mortice.vision.transforms.v2.functional._kernels import IMAGES, PIL, functional, kernel
from mortice.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
_NAMES = {mode.value: mode for mode in InterpolationMode}


def interpolation_mode(value: Any) -> InterpolationMode:
    """Return an InterpolationMode, also for its name and for Pillow's number."""
    if isinstance(value, str):
        if value not in _NAMES:
            raise ValueError(f"Invalid interpolation mode: '{value}'. Supported string values are: {list(_NAMES)}.")
        return _NAMES[value]
    if not isinstance(value, (int, InterpolationMode)):
        raise ValueError(
            f"Argument interpolation should be an `InterpolationMode` or a corresponding Pillow integer constant, but got {value}."
        )
    return F.interpolation_mode(value)


# ---- sizes ----


@functional(*IMAGES, wraps=False)
def get_dimensions(inpt: Any) -> list[int]:
    """Return channels, height and width of an image or video."""
    return F.get_dimensions(inpt)


@functional(*IMAGES, wraps=False)
def get_num_channels(inpt: Any) -> int:
    """Return the number of channels of an image or video."""
    return F.get_dimensions(inpt)[0]


@functional(*IMAGES, Mask, wraps=False)
def get_size(inpt: Any) -> list[int]:
    """Return height and width of an image, video or mask, or of the canvas of boxes or points."""
    return F.get_dimensions(inpt)[1:]


@functional(Tensor, Video, wraps=False)
def get_num_frames(inpt: Any) -> int:
    """Return the number of frames of a video."""
    return inpt.shape[-4]  # type: ignore[no-any-return]


# ---- from one kind to another ----


def to_image(inpt: Any) -> Image:
    """Make an Image of a tensor, of an array (H, W, C) or (H, W), or of a PIL image, in its own type."""
    if is_pil(inpt):
        inpt = F.pil_to_tensor(inpt)
    elif F._is_array(inpt):
        t: Any = mortice.as_tensor(inpt)
        inpt = t.reshape(*t.shape, *(1,) * (3 - t.ndim)).permute(2, 0, 1).contiguous()
    elif not isinstance(inpt, Tensor):
        raise TypeError(
            f"Input can either be a pure Tensor, a numpy array, or a PIL image, but got {type(inpt)} instead."
        )
    return tv_tensors.Image(inpt)


@functional(Tensor, Image, Video)
def to_dtype(inpt: Any, dtype: Any = mortice.float32, scale: bool = False) -> Any:
    """Convert to another dtype; images and videos so that white stays white, where `scale` asks for it."""
    if inpt.dtype == dtype or not scale:
        return inpt.to(dtype)
    if dtype.is_floating_point and not inpt.dtype.is_floating_point:
        return inpt.to(dtype).mul_(1.0 / _tensor.max_value(inpt.dtype))
    return F.convert_image_dtype(inpt, dtype)


def _to_dtype_alone(inpt: Any, dtype: Any = mortice.float32) -> Any:
    return inpt.to(dtype)


for _kind in (Mask, BoundingBoxes, KeyPoints):
    kernel(to_dtype, _kind)(_to_dtype_alone)


def convert_image_dtype(image: Any, dtype: Any = mortice.float32) -> Any:
    """Convert a tensor image to another dtype, white staying white."""
    return to_dtype.image(image, dtype, scale=True)


# ---- cutting, padding, resizing ----


@functional(*IMAGES, Mask)
def horizontal_flip(inpt: Any) -> Any:
    """Mirror left and right."""
    return F.hflip(inpt)


@functional(*IMAGES, Mask)
def vertical_flip(inpt: Any) -> Any:
    """Mirror top and bottom."""
    return F.vflip(inpt)


@functional(*IMAGES, Mask)
def crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cut out a box; what lies outside of the image is 0."""
    return F.crop(inpt, top, left, height, width)


@functional(*IMAGES, Mask)
def center_crop(inpt: Any, output_size: Any) -> Any:
    """Cut out the middle, padding with 0 where the image is smaller."""
    return F.center_crop(inpt, output_size)


@functional(*IMAGES)
def five_crop(inpt: Any, size: Any) -> tuple[Any, ...]:
    """Return the top left, top right, bottom left, bottom right and central crop."""
    return F.five_crop(inpt, size)


@functional(*IMAGES)
def ten_crop(inpt: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """Return the five crops, and those of the mirrored image."""
    return F.ten_crop(inpt, size, vertical_flip)


@functional(*IMAGES)
def pad(inpt: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    """Pad all sides, (left/right, top/bottom) or (left, top, right, bottom).

    The modes are "constant", with one fill or one for each channel, "edge", "reflect" and "symmetric".
    """
    if isinstance(inpt, Tensor) and isinstance(fill, (list, tuple)):
        if len(fill) > 1:
            return _padded_by_channel(inpt, padding, fill, padding_mode)
        fill = fill[0]
    return F.pad(inpt, padding, fill, padding_mode)


def _padded_by_channel(img: Tensor, padding: Any, fill: Sequence[float], padding_mode: str) -> Tensor:
    if padding_mode != "constant":
        raise ValueError(f"Padding mode '{padding_mode}' is not supported if fill is not scalar")
    inside = F.pad(img.new_ones(img.shape[-2:], dtype=mortice.bool), padding)
    colours = mortice.tensor(fill, device=img.device).to(img.dtype).reshape(-1, 1, 1)
    return mortice.where(inside, F.pad(img, padding), colours)


@kernel(pad, Mask)
def pad_mask(mask: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    """Pad a mask, with one fill."""
    if isinstance(fill, (tuple, list)):
        raise ValueError("Non-scalar fill value is not supported")
    return pad.image(mask, padding, fill, padding_mode)


def resized_to(canvas_size: Sequence[int], size: Any, max_size: int | None = None) -> list[int]:
    """Return the height and width that `resize` gives; size may be None, when max_size says what the longer side is."""
    h, w = canvas_size
    if size is None:
        if not isinstance(max_size, int):
            raise ValueError(f"max_size must be an integer when size is None, but got {max_size} instead.")
        shorter = int(max_size * min(h, w) / max(h, w))
        return [max_size, shorter] if w <= h else [shorter, max_size]
    if max_size is not None and not isinstance(size, int) and len(size) != 1:
        raise ValueError(
            "max_size should only be passed if size is None or specifies the length of the smaller edge, i.e. size should be "
            "an int or a sequence of length 1 in torchscript mode."
        )
    return F.resized_to(h, w, size, max_size)


@functional(*IMAGES)
def resize(
    inpt: Any, size: Any, interpolation: Any = BILINEAR, max_size: int | None = None, antialias: bool | None = True
) -> Any:
    """Resize to (h, w), or so that the shorter side is `size` and the longer at most `max_size`; masks by nearest pixels."""
    h, w = F.get_dimensions(inpt)[1:]
    wanted, mode = resized_to((h, w), size, max_size), interpolation_mode(interpolation)
    if isinstance(inpt, Tensor):
        if wanted == [h, w]:
            return inpt
        img = inpt
        if inpt.ndim > 2 and inpt.numel() == inpt.shape[-3:].numel() > 0:
            img = inpt.reshape(1, *inpt.shape[-3:])
            if img.is_contiguous(memory_format=mortice.channels_last):
                # An image alone. Strides that tell where its channels lie make those of the result lie there too.
                img = img.as_strided(img.shape, (img.numel(), *img.stride()[1:]))
        out = _tensor.resize(img, wanted, mode.value, bool(antialias), as_bytes=True)
        return out.reshape(*inpt.shape[:-2], *wanted)
    return F.resize(inpt, wanted, mode, antialias=antialias)


def _nearest(interpolation: Any) -> InterpolationMode:
    mode = interpolation_mode(interpolation)
    return mode if mode is InterpolationMode.NEAREST_EXACT else NEAREST


@kernel(resize, Mask)
def resize_mask(mask: Any, size: Any, interpolation: Any = BILINEAR, max_size: int | None = None) -> Any:
    """Resize a mask by its nearest pixels."""
    return resize.image(mask, size, _nearest(interpolation), max_size)


@functional(*IMAGES)
def resized_crop(
    inpt: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = BILINEAR,
    antialias: bool | None = True,
) -> Any:  # fmt: skip
    """Cut out a box and resize it."""
    return resize.image(F.crop(inpt, top, left, height, width), size, interpolation, antialias=antialias)


@kernel(resized_crop, Mask)
def resized_crop_mask(mask: Any, top: int, left: int, height: int, width: int, size: Any) -> Any:
    """Cut out a box of a mask and resize it."""
    return resize_mask(F.crop(mask, top, left, height, width), size)


# ---- warping ----


@functional(*IMAGES)
def rotate(
    inpt: Any, angle: float, interpolation: Any = NEAREST, expand: bool = False, center: Any = None, fill: Any = None
) -> Any:
    """Rotate counter-clockwise by degrees, about the middle or another center."""
    if isinstance(inpt, Tensor) and center is None and angle % 90 == 0:
        quarters = int(angle % 360) // 90
        if quarters % 2 == 0 or expand or inpt.shape[-1] == inpt.shape[-2]:
            return mortice.rot90(inpt, quarters, (-2, -1)) if quarters else inpt.clone()
    return F.rotate(inpt, angle, interpolation_mode(interpolation), expand, center, fill)


@kernel(rotate, Mask)
def rotate_mask(mask: Any, angle: float, expand: bool = False, center: Any = None, fill: Any = None) -> Any:
    """Rotate a mask."""
    return rotate.image(mask, angle, NEAREST, expand, center, fill)


@functional(*IMAGES)
def affine(
    inpt: Any, angle: float, translate: Any, scale: float, shear: Any, interpolation: Any = NEAREST, fill: Any = None,
    center: Any = None,
) -> Any:  # fmt: skip
    """Rotate clockwise, shear, scale and move, the middle or another center standing still."""
    return F.affine(inpt, angle, translate, scale, shear, interpolation_mode(interpolation), fill, center)


@kernel(affine, Mask)
def affine_mask(
    mask: Any, angle: float, translate: Any, scale: float, shear: Any, fill: Any = None, center: Any = None
) -> Any:
    """Rotate, shear, scale and move a mask."""
    return F.affine(mask, angle, translate, scale, shear, NEAREST, fill, center)


def coefficients_of(startpoints: Any, endpoints: Any, coefficients: Any) -> list[float]:
    """Return the 8 numbers of a map from the result to the image, given themselves or by four points and their places."""
    points = startpoints is not None and endpoints is not None
    if coefficients is not None:
        if points:
            raise ValueError("The startpoints/endpoints and the coefficients shouldn't be defined concurrently.")
        if len(coefficients) != 8:
            raise ValueError("Argument coefficients should have 8 float values")
        return coefficients  # type: ignore[no-any-return]
    if not points:
        raise ValueError("Either the startpoints/endpoints or the coefficients must have non `None` values.")
    return _warp.perspective_coefficients(startpoints, endpoints)


@functional(*IMAGES)
def perspective(
    inpt: Any, startpoints: Any, endpoints: Any, interpolation: Any = BILINEAR, fill: Any = None, coefficients: Any = None
) -> Any:
    """Warp so that four points, (x, y) each, come to lie on four others, or by the 8 numbers of the map back."""
    numbers = coefficients_of(startpoints, endpoints, coefficients)
    return F.perspective_by(inpt, numbers, interpolation_mode(interpolation), fill)


@kernel(perspective, Mask)
def perspective_mask(mask: Any, startpoints: Any, endpoints: Any, fill: Any = None, coefficients: Any = None) -> Any:
    """Warp a mask."""
    return perspective.image(mask, startpoints, endpoints, NEAREST, fill, coefficients)


@functional(*IMAGES)
def elastic(inpt: Any, displacement: Any, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    """Move each pixel by a displacement (1, H, W, 2) of x and y, in halves of the width and height."""
    return F.elastic_transform(inpt, displacement, interpolation_mode(interpolation), fill)


@kernel(elastic, Mask)
def elastic_mask(mask: Any, displacement: Any, fill: Any = None) -> Any:
    """Move the pixels of a mask."""
    return F.elastic_transform(mask, displacement, NEAREST, fill)


# ---- values ----


@functional(Tensor, Image, Video)
def normalize(inpt: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """Subtract the mean and divide by the standard deviation, one of each for every channel."""
    return _tensor.normalize(inpt, mean, std, inplace)


@functional(*IMAGES)
def gaussian_blur(inpt: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Blur with a Gaussian of odd sizes (x, y); sigma is 0.15 of the size plus 0.35 unless given."""
    return F.gaussian_blur(inpt, kernel_size, sigma)


@functional(*IMAGES)
def gaussian_noise(inpt: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    """Add noise to float or uint8 images, with a mean and a deviation as of values from 0 to 1."""
    if not isinstance(inpt, Tensor):
        raise ValueError("Gaussian Noise is not implemented for PIL images.")
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")
    white = _tensor.max_value(inpt.dtype)
    if inpt.is_floating_point():
        out = inpt + (mean + mortice.randn_like(inpt) * sigma)
    elif inpt.dtype == mortice.uint8:
        noise = mean * white + mortice.randn_like(inpt, dtype=mortice.float32) * (sigma * white)
        out = inpt + noise.to(mortice.int16)
    else:
        raise ValueError(f"Input tensor is expected to be in uint8 or float dtype, got dtype={inpt.dtype}")
    return (out.clamp(0, white) if clip else out).to(inpt.dtype)


@functional(*IMAGES)
def erase(inpt: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """Put a value in place of the box whose upper left corner is (i, j)."""
    return _on_tensor(inpt, lambda img: _tensor.erase(img, i, j, h, w, v, inplace))


def _on_tensor(img: Any, change: Callable[[Any], Any]) -> Any:
    return change(img) if isinstance(img, Tensor) else _pil.through_tensor(change, img)


@functional(*IMAGES)
def jpeg(image: Any, quality: int) -> Any:
    """Write bytes as a JPEG file of a quality from 1 to 100, and read that."""
    if isinstance(image, Tensor):
        from mortice.vision.io import decode_jpeg, encode_jpeg

        each = [decode_jpeg(encode_jpeg(one, quality=quality)) for one in image.reshape(-1, *image.shape[-3:]).unbind()]
        return mortice.stack(each).reshape(image.shape) if each else image.clone()
    file = io.BytesIO()
    image.save(file, format="JPEG", quality=quality)
    return pillow().open(file).copy()


@functional(Tensor, Video)
def uniform_temporal_subsample(inpt: Any, num_samples: int) -> Any:
    """Take that many frames of a video, at equal steps from the first to the last."""
    places = mortice.linspace(0, inpt.shape[-4] - 1, num_samples, device=inpt.device).to(mortice.int64)
    return inpt.index_select(-4, places)


# ---- colours ----

_STILLS = (Tensor, PIL, Image)


@functional(*_STILLS)
def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1) -> Any:
    """Make an image black and white, in 1 or 3 channels."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")
    return F.rgb_to_grayscale(inpt, num_output_channels)


@functional(*_STILLS)
def grayscale_to_rgb(inpt: Any) -> Any:
    """Give an image of one channel three."""
    if not isinstance(inpt, Tensor):
        return inpt.convert(mode="RGB")
    return inpt if inpt.shape[-3] >= 3 else F.rgb_to_grayscale(inpt, 3)


@functional(*IMAGES)
def permute_channels(inpt: Any, permutation: Any) -> Any:
    """Put the channels in another order."""
    n = F.get_dimensions(inpt)[0]
    if len(permutation) != n:
        raise ValueError(f"Length of permutation does not match number of channels: {len(permutation)} != {n}")
    order = mortice.as_tensor(permutation)
    return _on_tensor(inpt, lambda img: img.index_select(-3, order.to(img.device)))


@functional(*IMAGES)
def adjust_brightness(inpt: Any, brightness_factor: float) -> Any:
    """Change the brightness: 0 is black, 1 the image itself, 2 twice as bright."""
    return F.adjust_brightness(inpt, brightness_factor)


@functional(*IMAGES)
def adjust_contrast(inpt: Any, contrast_factor: float) -> Any:
    """Change the contrast: 0 is plain grey, 1 the image itself."""
    return F.adjust_contrast(inpt, contrast_factor)


@functional(*IMAGES)
def adjust_saturation(inpt: Any, saturation_factor: float) -> Any:
    """Change the saturation: 0 is black and white, 1 the image itself."""
    return F.adjust_saturation(inpt, saturation_factor)


@functional(*IMAGES)
def adjust_hue(inpt: Any, hue_factor: float) -> Any:
    """Turn the hues by a share of the circle, from -0.5 to 0.5; 0 is the image itself."""
    return F.adjust_hue(inpt, hue_factor)


@functional(*IMAGES)
def adjust_sharpness(inpt: Any, sharpness_factor: float) -> Any:
    """Change the sharpness: 0 is blurred, 1 the image itself."""
    if isinstance(inpt, Tensor):
        return _color.adjust_sharpness_once(inpt, sharpness_factor)
    return F.adjust_sharpness(inpt, sharpness_factor)


def _by_channel(change: Callable[[Any], Any], img: Any) -> Any:
    """Apply a function of grey images to each channel, of which there may be any number."""
    return change(img.unsqueeze(-3)).squeeze(-3) if isinstance(img, Tensor) else change(img)


@functional(*IMAGES)
def adjust_gamma(inpt: Any, gamma: float, gain: float = 1) -> Any:
    """Raise the values, as from 0 to 1, to a power, and multiply them by a gain."""
    if isinstance(inpt, Tensor) and inpt.is_floating_point() and gain == 1 and gamma >= 0:
        return inpt.pow(gamma)  # without a gain, values beyond white stay there
    return _by_channel(lambda img: F.adjust_gamma(img, gamma, gain), inpt)


@functional(*IMAGES)
def invert(inpt: Any) -> Any:
    """Return the negative."""
    return _by_channel(F.invert, inpt)


@functional(*IMAGES)
def posterize(inpt: Any, bits: int) -> Any:
    """Keep that many upper bits of each value."""
    if not isinstance(inpt, Tensor):
        return F.posterize(inpt, bits)
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"bits must be a positive integer in the range [0, 8], got {bits} instead.")
    levels = 1 << bits
    if inpt.is_floating_point():
        return inpt.mul(levels).floor_().clamp_(0, levels - 1).mul_(1.0 / levels)
    kept = (_tensor.max_value(inpt.dtype) + 1) // levels  # what the lowest bit that is kept counts
    return inpt if kept <= 1 else inpt & (_tensor.max_value(inpt.dtype) + 1 - kept)


@functional(*IMAGES)
def solarize(inpt: Any, threshold: float) -> Any:
    """Invert the values that are at or above a threshold."""
    return _by_channel(lambda img: F.solarize(img, threshold), inpt)


@functional(*IMAGES)
def autocontrast(inpt: Any) -> Any:
    """Stretch the values of each channel to the full range."""
    return F.autocontrast(inpt)


@functional(*IMAGES)
def equalize(inpt: Any) -> Any:
    """Spread the values of each channel evenly over the range, in 256 steps."""
    if not isinstance(inpt, Tensor) or inpt.dtype == mortice.uint8:
        return _by_channel(F.equalize, inpt)
    steps = _by_channel(F.equalize, to_dtype.image(inpt, mortice.uint8, scale=True))
    return to_dtype.image(steps, inpt.dtype, scale=True)
