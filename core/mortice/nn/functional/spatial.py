"""Pooling, resizing, sliding blocks and pixel shuffles."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import _autocasting as autocasting
from mortice import _nn
from mortice import _node_name as node_name
from mortice.notice import warn

__all__ = [
    "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
    "channel_shuffle", "conv_tbc", "fold", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "native_channel_shuffle",
    "pixel_shuffle", "pixel_unshuffle", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

# ---- maximum pooling ----


def _max_pool(nd: int, input: Any, args: tuple[Any, ...], return_indices: bool) -> Any:
    return getattr(_nn, f"max_pool{nd}d_with_indices" if return_indices else f"max_pool{nd}d")(input, *args)


def max_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return the maxima of windows over the last dim, and their positions if asked."""
    return _max_pool(1, input, (kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def max_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return the maxima of windows over the last two dims, and their flat positions if asked."""
    return _max_pool(2, input, (kernel_size, stride, padding, dilation, ceil_mode), return_indices)


@autocasting
def max_pool3d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return the maxima of windows over the last three dims, and their flat positions if asked."""
    return _max_pool(3, input, (kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def max_pool1d_with_indices(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return `max_pool1d` and the position of each maximum."""
    return _max_pool(1, input, (kernel_size, stride, padding, dilation, ceil_mode), True)


def max_pool2d_with_indices(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return `max_pool2d` and the flat position of each maximum."""
    return _max_pool(2, input, (kernel_size, stride, padding, dilation, ceil_mode), True)


def max_pool3d_with_indices(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return `max_pool3d` and the flat position of each maximum."""
    return _max_pool(3, input, (kernel_size, stride, padding, dilation, ceil_mode), True)


def adaptive_max_pool1d_with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return `adaptive_max_pool1d` and the position of each maximum."""
    return _nn.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return `adaptive_max_pool2d` and the flat position of each maximum."""
    return _nn.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool3d_with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return `adaptive_max_pool3d` and the flat position of each maximum."""
    return _nn.adaptive_max_pool3d(input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of the last dim cut into `output_size` parts."""
    pair = _nn.adaptive_max_pool1d(input, output_size)
    return pair if return_indices else pair[0]


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of the last two dims cut to `output_size`."""
    pair = _nn.adaptive_max_pool2d(input, output_size)
    return pair if return_indices else pair[0]


def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of the last three dims cut to `output_size`."""
    pair = _nn.adaptive_max_pool3d(input, output_size)
    return pair if return_indices else pair[0]


def _tuple(value: Any, nd: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * nd


def _in_format_of(input: Any, out: Any) -> Any:
    """Return `out` with its channels last in memory where only those of `input` are."""
    last = mortice.channels_last
    if input.ndim != 4 or input.is_contiguous() or not input.is_contiguous(memory_format=last):
        return out
    return out.clone(memory_format=last)  # with its strides along dims of one element


def _unpool(
    nd: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Any:
    kernel = _tuple(kernel_size, nd)
    step = kernel if stride is None else _tuple(stride, nd)
    around = _tuple(padding, nd)
    if not len(kernel) == len(step) == len(around) == nd:
        raise RuntimeError(
            f"max_unpool{nd}d: expected kernel_size, stride and padding of {nd} sizes; got {kernel}, {step} and {around}."
        )
    if indices.dtype is not mortice.int64:
        raise RuntimeError(f"max_unpool{nd}d: elements in indices should be type int64 but got: {indices.dtype}")
    if input.shape != indices.shape:
        raise RuntimeError(
            f"max_unpool{nd}d: Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but "
            f"got indices tensor with shape: {list(indices.shape)}"
        )
    _nn.check_kind(f"max_unpool{max(nd, 2)}d", input.dtype, "f")
    shape = tuple(input.shape)
    default = [(n - 1) * s + m - 2 * p for n, s, m, p in zip(shape[-nd:], step, kernel, around)]
    if output_size is None:
        sizes = default
    else:
        given = list(output_size)
        sizes = [int(n) for n in (given[-nd:] if len(given) in (nd + 1, nd + 2) else given)]
        if len(given) not in (nd, nd + 1, nd + 2):
            raise ValueError(
                f"output_size should be a sequence containing {nd} or {nd + 2} elements, but it has a length of '{len(given)}'"
            )
        for d, (want, base, s) in enumerate(zip(sizes, default, step)):
            if not base - s < want < base + s:
                raise ValueError(
                    f"invalid output_size {output_size} (dim {d} must be between {base - s} and {base + s})"
                )
    lead = shape[:-nd]
    count = math.prod(sizes)
    flat = mortice.zeros(*lead, count, dtype=input.dtype, device=input.device)
    pooled = math.prod(shape[-nd:])
    flat = flat.scatter(-1, indices.reshape(*lead, pooled), input.reshape(*lead, pooled))
    out = flat.reshape(*lead, *sizes)
    return _in_format_of(input, out) if nd == 2 else out


@autocasting
def max_unpool1d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Put values back at the positions that `max_pool1d` returned, zeros elsewhere."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@autocasting
@node_name("MaxUnpool2DBackward0")
def max_unpool2d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Put values back at the positions that `max_pool2d` returned, zeros elsewhere."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@autocasting
@node_name("MaxUnpool3DBackward0")
def max_unpool3d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Put values back at the positions that `max_pool3d` returned, zeros elsewhere."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# ---- power average pooling ----


def _lp_pool(nd: int, input: Any, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    kernel = _tuple(kernel_size, nd)
    powered = mortice.pow(input, norm_type)
    mean = getattr(_nn, f"avg_pool{nd}d")(powered, kernel_size, stride, 0, ceil_mode)
    return mortice.pow(mortice.sign(mean) * _nn.relu(mortice.abs(mean)) * math.prod(kernel), 1.0 / norm_type)


def lp_pool1d(
    input: Any, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """Return (the sum of x**p over windows of the last dim)**(1/p)."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """Return (the sum of x**p over windows of the last two dims)**(1/p)."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """Return (the sum of x**p over windows of the last three dims)**(1/p)."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# ---- sliding blocks, shuffles ----


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Gather the sliding blocks of (N, C, H, W) or (C, H, W) as columns."""
    return _nn.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Add columns of sliding blocks up where the blocks lie."""
    return _nn.col2im(input, output_size, kernel_size, dilation, padding, stride)


def _rows(x: Any) -> Any:
    """Copy row by row, also what lies so already: an order that nothing changes is no view of the input."""
    return x.clone(memory_format=mortice.contiguous_format)


def _check_factor(name: str, kind: str, input: Any, factor: int) -> None:
    if input.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got {input.ndim} dimension(s)")
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {kind}_factor, but got {factor}")


@node_name("PixelShuffleBackward0")
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Rearrange (*, C r^2, H, W) to (*, C, H r, W r)."""
    r = upscale_factor
    _check_factor("pixel_shuffle", "upscale", input, r)
    *lead, c, h, w = tuple(input.shape)
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    x = input.reshape(*lead, c // (r * r), r, r, h, w).permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return _in_format_of(input, _rows(x).reshape(*lead, c // (r * r), h * r, w * r))


@node_name("PixelUnshuffleBackward0")
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Rearrange (*, C, H r, W r) to (*, C r^2, H, W)."""
    r = downscale_factor
    _check_factor("pixel_unshuffle", "downscale", input, r)
    *lead, c, h, w = tuple(input.shape)
    for what, n in (("height", h), ("width", w)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but got {n} and {r}"
            )
    n = len(lead)
    x = input.reshape(*lead, c, h // r, r, w // r, r).permute(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return _in_format_of(input, _rows(x).reshape(*lead, c * r * r, h // r, w // r))


@node_name("ChannelShuffleBackward0")
def channel_shuffle(input: Any, groups: int) -> Any:
    """Interleave the channels of `groups` groups of (N, C, *)."""
    if input.ndim <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}"
        )
    n, c, *rest = tuple(input.shape)
    if groups <= 0 or c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    x = input.reshape(n, groups, c // groups, *rest).transpose(1, 2)
    return _in_format_of(input, _rows(x).reshape(n, c, *rest))


native_channel_shuffle = channel_shuffle


@autocasting
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """Convolve a sequence (T, N, C) with filters (taps, C, out)."""
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise RuntimeError(
            "conv_tbc: expected input (T, N, C), weight (taps, C, out) and bias (out,); got "
            f"{', '.join(str(tuple(x.shape)) for x in (input, weight, bias))}."
        )
    return _nn.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)


# ---- old names of interpolate ----


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """Resample; the old name of `interpolate`."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return _nn.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resample by the nearest element; use `interpolate`."""
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return _nn.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resample bilinearly with aligned corners; use `interpolate`."""
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return _nn.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
