"""The transforms of PIL images: Pillow's own functions."""

from __future__ import annotations

from typing import Any

from mortice.vision._pillow import is_pil, pillow
from mortice.vision._planes import image, planes
from mortice.vision.transforms import _tensor


def through_tensor(change: Any, img: Any) -> Any:
    """Apply a function of tensors to a PIL image."""
    made = image(change(planes(img)), img.mode)
    if img.mode in ("P", "PA"):
        made.putpalette(img.getpalette())
    return made


# ---- sizes ----


def get_dimensions(img: Any) -> list[int]:
    """Return channels, height and width."""
    if not is_pil(img):
        raise TypeError(f"Unexpected type {type(img)}")
    return [len(img.getbands()), img.height, img.width]


# ---- geometry ----


def hflip(img: Any) -> Any:
    """Mirror left and right."""
    return img.transpose(pillow().Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Any) -> Any:
    """Mirror top and bottom."""
    return img.transpose(pillow().Transpose.FLIP_TOP_BOTTOM)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cut out a box; what lies outside of the image is black."""
    return img.crop((left, top, left + width, top + height))


def resize(img: Any, size: list[int], interpolation: int) -> Any:
    """Resize to (height, width)."""
    return img.resize((size[1], size[0]), interpolation)


def pad(img: Any, padding: Any, fill: Any, padding_mode: str) -> Any:
    """Pad in any of the four modes."""
    if fill is not None and not isinstance(fill, (int, float, tuple, list)):
        raise TypeError("Got inappropriate fill arg")
    if padding_mode != "constant":
        sides = _tensor.sides(padding)
        return through_tensor(lambda t: _tensor.pad_by_index(t, sides, padding_mode), img)
    border = padding if isinstance(padding, (int, float)) else tuple(padding)
    border = border[0] if isinstance(border, tuple) and len(border) == 1 else border
    made = pillow("ImageOps").expand(img, border=border, fill=_fill(fill, img))
    if img.mode == "P":
        made.putpalette(img.getpalette())
    return made


def _fill(fill: Any, img: Any) -> Any:
    """Return a fill with a value for each band, as Pillow wants it."""
    n = len(img.getbands())
    fill = 0 if fill is None else fill
    if isinstance(fill, (int, float)) and n > 1:
        fill = (fill,) * n
    if isinstance(fill, (list, tuple)):
        if len(fill) not in (1, n):
            raise ValueError(
                f"The number of elements in 'fill' does not match the number of channels of the image ({len(fill)} != {n})"
            )
        fill = tuple(fill) * (n if len(fill) == 1 else 1)
    if img.mode == "F":
        return fill
    return tuple(int(v) for v in fill) if isinstance(fill, tuple) else int(fill)


def affine(img: Any, matrix: list[float], interpolation: int, fill: Any) -> Any:
    """Look up each pixel at the place that a matrix of 6 numbers gives."""
    return img.transform(img.size, pillow().Transform.AFFINE, matrix, interpolation, fillcolor=_fill(fill, img))


def rotate(img: Any, angle: float, interpolation: int, expand: bool, center: Any, fill: Any) -> Any:
    """Rotate counter-clockwise."""
    return img.rotate(angle, interpolation, expand, center, fillcolor=_fill(fill, img))


def perspective(img: Any, coefficients: list[float], interpolation: int, fill: Any) -> Any:
    """Look up each pixel at the place that 8 numbers give."""
    return img.transform(
        img.size, pillow().Transform.PERSPECTIVE, coefficients, interpolation, fillcolor=_fill(fill, img)
    )


# ---- colour ----


def adjust_brightness(img: Any, factor: float) -> Any:
    """Blend with black."""
    return pillow("ImageEnhance").Brightness(img).enhance(factor)


def adjust_contrast(img: Any, factor: float) -> Any:
    """Blend with the mean grey."""
    return pillow("ImageEnhance").Contrast(img).enhance(factor)


def adjust_saturation(img: Any, factor: float) -> Any:
    """Blend with the grey image."""
    return pillow("ImageEnhance").Color(img).enhance(factor)


def adjust_sharpness(img: Any, factor: float) -> Any:
    """Blend with the smoothed image."""
    return pillow("ImageEnhance").Sharpness(img).enhance(factor)


def adjust_hue(img: Any, factor: float) -> Any:
    """Turn the hues, in 256 steps a circle."""
    if img.mode in ("L", "1", "I", "F"):
        return img
    h, s, v = img.convert("HSV").split()
    turned = h.point([(i + int(factor * 255)) % 256 for i in range(256)])
    return pillow().merge("HSV", (turned, s, v)).convert(img.mode)


def adjust_gamma(img: Any, gamma: float, gain: float) -> Any:
    """Raise the values to a power."""
    table = [int((255 + 1 - 1e-3) * gain * pow(i / 255.0, gamma)) for i in range(256)]
    return img.convert("RGB").point(table * 3).convert(img.mode)


def rgb_to_grayscale(img: Any, num_output_channels: int) -> Any:
    """Return the luma, in 1 or 3 channels."""
    grey = img.convert("L")
    return grey if num_output_channels == 1 else pillow().merge("RGB", (grey, grey, grey))


def invert(img: Any) -> Any:
    """Return the negative."""
    return pillow("ImageOps").invert(img)


def posterize(img: Any, bits: int) -> Any:
    """Keep the upper bits."""
    return pillow("ImageOps").posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """Invert what is at or above a threshold."""
    return pillow("ImageOps").solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """Stretch each band to the full range."""
    return pillow("ImageOps").autocontrast(img)


def equalize(img: Any) -> Any:
    """Spread the values evenly over the range."""
    return pillow("ImageOps").equalize(img)
