"""The transforms of tensors that change colours: blends, hues, negatives, histograms."""

from __future__ import annotations

import mortice
from mortice import Tensor
from mortice.nn import functional as F
from mortice.vision.transforms._tensor import check_channels, convert_image_dtype, in_float, max_value

# ---- blends with another image ----


def _blend(img: Tensor, other: Tensor | None, ratio: float) -> Tensor:
    """Return ratio * img + (1 - ratio) * other in the image's range; None stands for black."""
    mixed = img * float(ratio)
    if other is not None:
        mixed = mixed + other * (1.0 - ratio)
    return mixed.clamp(0, max_value(img.dtype)).to(img.dtype)


def _checked(name: str, img: Tensor, factor: float) -> int:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")
    return check_channels(img)


def adjust_brightness(img: Tensor, factor: float) -> Tensor:
    """Blend with black."""
    _checked("brightness_factor", img, factor)
    return _blend(img, None, factor)


def adjust_contrast(img: Tensor, factor: float) -> Tensor:
    """Blend with the mean grey."""
    channels = _checked("contrast_factor", img, factor)
    grey = rgb_to_grayscale(img, 1) if channels == 3 else img
    grey = grey if grey.dtype.is_floating_point else grey.to(mortice.float32)
    return _blend(img, grey.mean(dim=tuple(range(-min(img.ndim, 3), 0)), keepdim=True), factor)


def adjust_saturation(img: Tensor, factor: float) -> Tensor:
    """Blend with the grey image."""
    channels = _checked("saturation_factor", img, factor)
    return img if channels == 1 else _blend(img, rgb_to_grayscale(img, 1), factor)


def adjust_sharpness(img: Tensor, factor: float) -> Tensor:
    """Blend with the smoothed image, whose border is the image's own."""
    _checked("sharpness_factor", img, factor)
    if min(img.shape[-2:]) <= 2:
        return img
    smooth = img.clone()
    smooth[..., 1:-1, 1:-1] = in_float(_smooth, img)
    return _blend(img, smooth, factor)


def adjust_sharpness_once(img: Tensor, factor: float) -> Tensor:
    """Do as `adjust_sharpness`, but round (towards 0) at the end alone, as transforms.v2 does."""
    _checked("sharpness_factor", img, factor)
    if min(img.shape[-2:]) <= 2:
        return img
    out = img.clone() if img.dtype.is_floating_point else img.to(mortice.float32)
    inside = out[..., 1:-1, 1:-1]
    inside += (in_float(_smooth, img) - inside) * (1.0 - factor)
    return out.clamp_(0, max_value(img.dtype)).to(img.dtype)


def _smooth(x: Tensor) -> Tensor:
    kernel = mortice.tensor([[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]], dtype=x.dtype, device=x.device) / 13
    n, c, h, w = x.shape
    return F.conv2d(x.reshape(n * c, 1, h, w), kernel.reshape(1, 1, 3, 3)).reshape(n, c, h - 2, w - 2)


# ---- colours ----


def rgb_to_grayscale(img: Tensor, num_output_channels: int) -> Tensor:
    """Return the luma of ITU-R 601, in 1 or 3 channels."""
    if check_channels(img, least=3) == 3:
        r, g, b = img.unbind(-3)
        grey = (0.2989 * r + 0.587 * g + 0.114 * b).to(img.dtype).unsqueeze(-3)
    else:
        grey = img.clone()
    return grey.expand(*img.shape[:-3], 3, *img.shape[-2:]) if num_output_channels == 3 else grey


def adjust_hue(img: Tensor, factor: float) -> Tensor:
    """Turn the hues by a share of the circle."""
    if check_channels(img) == 1:
        return img
    work = convert_image_dtype(img, mortice.float32)
    h, s, v = _hsv(work)
    return convert_image_dtype(_rgb((h + factor) % 1.0, s, v), img.dtype)


def _hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return hue (0 to 1), saturation and value."""
    r, g, b = img.unbind(-3)
    high, low = img.amax(-3), img.amin(-3)
    grey = high == low
    span = mortice.where(grey, 1.0, high - low)
    # The distance of the other two channels says how far the hue is from the strongest one's.
    hue = mortice.where(high == r, (g - b) / span, mortice.where(high == g, 2.0 + (b - r) / span, 4.0 + (r - g) / span))
    hue = mortice.where(grey, 0.0, hue / 6.0) % 1.0
    return hue, (high - low) / mortice.where(grey, 1.0, high), high


def _rgb(h: Tensor, s: Tensor, v: Tensor) -> Tensor:
    """Return the colours of hue, saturation and value.

    Each channel is v less s * v times a trapezoid of the hue's distance to the channel's own.
    """
    places = ((n + h * 6.0) % 6.0 for n in (5, 3, 1))
    return mortice.stack([v - v * s * mortice.minimum(k, 4.0 - k).clamp(0.0, 1.0) for k in places], -3)


def adjust_gamma(img: Tensor, gamma: float, gain: float) -> Tensor:
    """Raise the values to a power."""
    check_channels(img)
    work = img if img.dtype.is_floating_point else convert_image_dtype(img, mortice.float32)
    return convert_image_dtype((gain * work.pow(gamma)).clamp(0, 1), img.dtype)


def invert(img: Tensor) -> Tensor:
    """Return the negative."""
    check_channels(img, least=3)
    return max_value(img.dtype) - img


def solarize(img: Tensor, threshold: float) -> Tensor:
    """Invert what is at or above a threshold."""
    check_channels(img, least=3)
    if threshold > max_value(img.dtype):
        raise TypeError("Threshold should be less than bound of img.")
    return mortice.where(img >= threshold, invert(img), img)


def _check_bytes(img: Tensor) -> None:
    if img.dtype != mortice.uint8:
        raise TypeError(f"Only {mortice.uint8} image tensors are supported, but found {img.dtype}")
    check_channels(img, least=3)


def posterize(img: Tensor, bits: int) -> Tensor:
    """Keep the upper bits of bytes."""
    _check_bytes(img)
    return img & (256 - 2 ** (8 - bits))


# ---- histograms ----


def autocontrast(img: Tensor) -> Tensor:
    """Stretch each channel to the full range; a channel of one value stays."""
    check_channels(img, least=3)
    bound = max_value(img.dtype)
    low, high = (v if img.dtype.is_floating_point else v.to(mortice.float32)
                 for v in (img.amin((-2, -1), keepdim=True), img.amax((-2, -1), keepdim=True)))  # fmt: skip
    flat = high == low
    scale = bound / mortice.where(flat, 1.0, high - low)
    flat = flat | ~scale.isfinite()
    low, scale = mortice.where(flat, 0.0, low), mortice.where(flat, 1.0, scale)
    return ((img - low) * scale).clamp(0, bound).to(img.dtype)


def equalize(img: Tensor) -> Tensor:
    """Spread the values of each channel evenly, by the cumulative histogram; a channel of one value stays."""
    _check_bytes(img)
    values = img.reshape(-1, img.shape[-2] * img.shape[-1]).to(mortice.int64)
    rows = mortice.arange(values.shape[0], device=img.device).unsqueeze(1)
    histogram = (values + 256 * rows).flatten().bincount(minlength=256 * values.shape[0]).reshape(-1, 256)
    # The pixels of the largest value are left out of the count, so that they map to 255.
    step = (values.shape[1] - histogram.gather(1, values.amax(1, keepdim=True))) // 255
    before = histogram.cumsum(1) - histogram
    table = ((before + step // 2) // step.clamp(min=1)).clamp(0, 255)
    table = mortice.where(step == 0, mortice.arange(256, device=img.device), table)
    return table.gather(1, values).reshape(img.shape).to(mortice.uint8)
