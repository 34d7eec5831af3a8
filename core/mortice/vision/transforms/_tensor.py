"""The transforms of tensors that move, cut, pad, resize and rescale; colours and warps are in the modules beside this one.

A tensor image has any leading dims before (C, H, W), or is (H, W) alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.nn import functional as F

_FLOATS = (mortice.float32, mortice.float64)


# ---- what an image is ----


def get_dimensions(img: Tensor) -> list[int]:
    """Return channels, height and width."""
    if img.ndim < 2:
        raise TypeError("Tensor is not a torch image.")
    return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]


def check_channels(img: Tensor, least: int = 2) -> int:
    """Return the number of channels, which must be 1 or 3."""
    channels = get_dimensions(img)[0]
    if img.ndim < least:
        raise TypeError(f"Input image tensor should have at least {least} dimensions, but found {img.ndim}")
    if channels not in (1, 3):
        raise TypeError(f"Input image tensor permitted channel values are [1, 3], but found {channels}")
    return channels


def max_value(dtype: Any) -> int:
    """Return what white is: 1 for floats, the largest integer otherwise."""
    return 1 if dtype.is_floating_point or dtype == mortice.bool else int(mortice.iinfo(dtype).max)


def _batch(img: Tensor) -> Tensor:
    return img if img.ndim == 4 else img.reshape(-1, *get_dimensions(img))  # the strides of a batch stay


def in_float(
    change: Callable[[Tensor], Tensor], img: Tensor, low: float | None = None, high: float | None = None
) -> Tensor:
    """Apply a function of float batches (N, C, H, W) to an image; integers are rounded, and clamped where bounds are given."""
    if not img.numel():  # the masks of no object: only their size changes
        return img.new_zeros((*img.shape[:-2], *change(mortice.zeros(1, 1, *img.shape[-2:])).shape[-2:]))
    work = _batch(img)
    out = change(work if work.dtype in _FLOATS else work.to(mortice.float32))
    if not img.dtype.is_floating_point:
        out = out.round()
        out = out if high is None else out.clamp(low, high)
    return out.to(img.dtype).reshape(*img.shape[:-2], *out.shape[-2:])


# ---- types and values ----


def convert_image_dtype(image: Tensor, dtype: Any) -> Tensor:
    """Convert to another dtype, white staying white."""
    if image.dtype == dtype:
        return image
    if image.dtype.is_floating_point:
        if dtype.is_floating_point:
            return image.to(dtype)
        wide = {mortice.float32: (mortice.int32, mortice.int64), mortice.float64: (mortice.int64,)}
        if dtype in wide.get(image.dtype, ()):
            raise RuntimeError(f"The cast from {image.dtype} to {dtype} cannot be performed safely.")
        # Just short of max + 1, so that each integer gets an equal share of [0, 1].
        return (image * (max_value(dtype) + 1.0 - 1e-3)).to(dtype)
    have = max_value(image.dtype)
    if dtype.is_floating_point:
        return image.to(dtype).div_(have)
    want = max_value(dtype)
    if have > want:
        return image.div((have + 1) // (want + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((want + 1) // (have + 1))


def normalize(tensor: Tensor, mean: Any, std: Any, inplace: bool) -> Tensor:
    """Subtract the mean and divide by the standard deviation of each channel."""
    get_dimensions(tensor)
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tuple(tensor.shape)}"
        )
    mean, std = (mortice.as_tensor(v, dtype=tensor.dtype, device=tensor.device) for v in (mean, std))
    if 0 in std.flatten().tolist():
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    mean, std = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (mean, std))
    if inplace:
        return tensor.sub_(mean).div_(std)
    return (tensor - mean).div_(std)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool) -> Tensor:
    """Put a value or a tensor in place of a box."""
    get_dimensions(img)
    img = img if inplace else img.clone()
    img[..., i : i + h, j : j + w] = v.to(img.device) if isinstance(v, Tensor) else v
    return img


# ---- geometry ----


def hflip(img: Tensor) -> Tensor:
    """Mirror left and right."""
    get_dimensions(img)
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    """Mirror top and bottom."""
    get_dimensions(img)
    return img.flip(-2)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """Cut out a box; what lies outside of the image is 0."""
    _, h, w = get_dimensions(img)
    (y0, y1), (x0, x1) = (
        (min(max(a, 0), n), min(max(b, 0), n)) for a, b, n in ((top, top + height, h), (left, left + width, w))
    )
    inside = img[..., y0:y1, x0:x1]
    if (y1 - y0, x1 - x0) == (height, width):
        return inside
    before = min(max(-left, 0), width), min(max(-top, 0), height)
    return F.pad(inside, [before[0], width - before[0] - (x1 - x0), before[1], height - before[1] - (y1 - y0)])


def sides(padding: Any) -> tuple[int, int, int, int]:
    """Return the padding of left, right, top and bottom."""
    if isinstance(padding, int):
        return padding, padding, padding, padding
    if len(padding) < 4:
        return padding[0], padding[0], padding[-1], padding[-1]
    left, top, right, bottom = padding
    return left, right, top, bottom


def pad(img: Tensor, padding: Any, fill: Any, padding_mode: str) -> Tensor:
    """Pad in any of the four modes."""
    get_dimensions(img)
    fill = 0 if fill is None else fill
    if not isinstance(fill, (int, float)):
        raise TypeError("Got inappropriate fill arg")
    around = sides(padding)
    return F.pad(img, around, value=fill) if padding_mode == "constant" else pad_by_index(img, around, padding_mode)


def pad_by_index(img: Tensor, around: Sequence[int], mode: str) -> Tensor:
    """Pad with pixels of the image itself: "edge", "reflect" or "symmetric"; a negative number crops."""
    for dim, before, after in ((-1, *around[:2]), (-2, *around[2:])):
        if before or after:
            n = img.shape[dim]
            start, stop = max(-before, 0), n - max(-after, 0)
            places = [
                start + _source(i, stop - start, mode) for i in range(-max(before, 0), stop - start + max(after, 0))
            ]
            img = img.index_select(dim, mortice.tensor(places, dtype=mortice.int64, device=img.device))
    return img


def _source(i: int, n: int, mode: str) -> int:
    """Return which of n pixels stands at place i of the row that a mode continues without end."""
    if mode == "edge" or n == 1:
        return min(max(i, 0), n - 1)
    period = 2 * n - 2 if mode == "reflect" else 2 * n
    i %= period
    return i if i < n else (period if mode == "reflect" else period - 1) - i


def resize(img: Tensor, size: list[int], interpolation: str, antialias: bool, as_bytes: bool = False) -> Tensor:
    """Resize to (height, width); `as_bytes` leaves the rounding of bytes to `interpolate`, which does it after each axis."""
    smooth = interpolation in ("bilinear", "bicubic", "lanczos")
    settings: Any = {"align_corners": False, "antialias": bool(antialias)} if smooth else {}

    def change(x: Tensor) -> Tensor:
        return F.interpolate(x, size=size, mode=interpolation, **settings)

    if img.dtype == mortice.uint8 and (as_bytes or not smooth) and img.numel():
        return change(_batch(img)).reshape(*img.shape[:-2], *size)
    # Cubic weights overshoot, as Lanczos's do; torchvision clamps bytes alone.
    bounds = (0, 255) if interpolation in ("bicubic", "lanczos") and img.dtype == mortice.uint8 else ()
    return in_float(change, img, *bounds)
