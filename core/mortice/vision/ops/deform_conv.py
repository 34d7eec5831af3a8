"""Deformable convolutions: J. Dai et al. (2017), and with a mask X. Zhu et al., "Deformable ConvNets v2" (2018)."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import nn

__all__ = ["DeformConv2d", "deform_conv2d"]


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def deform_conv2d(
    input: Any,
    offset: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, int] = (1, 1),
    padding: int | tuple[int, int] = (0, 0),
    dilation: int | tuple[int, int] = (1, 1),
    mask: Any = None,
) -> Any:
    """Convolve images (N, C, H, W) at places that are moved, each by its own way, between pixels where need be.

    Args:
        offset: (N, 2 * groups * kernel pixels, H', W'), for each result and pixel of the kernel how far down and
            across it is moved; channels are moved in as many groups as there are.
        mask: (N, groups * kernel pixels, H', W'), by which what is read is multiplied.
    """
    (n, channels, height, width), (out_channels, in_group, kh, kw) = input.shape, weight.shape
    (sy, sx), (py, px), (dy, dx) = _pair(stride), _pair(padding), _pair(dilation)
    rows, columns = (height + 2 * py - dy * (kh - 1) - 1) // sy + 1, (width + 2 * px - dx * (kw - 1) - 1) // sx + 1
    pixels, size = kh * kw, kh * kw * rows * columns
    moved = offset.shape[1] // (2 * pixels)
    for name, given, each in (("offset", offset, 2), ("mask", mask, 1)):
        if given is not None and (moved == 0 or tuple(given.shape) != (n, moved * each * pixels, rows, columns)):
            raise RuntimeError(
                f"deform_conv2d: expected {name} of ({n}, a multiple of {each * pixels}, {rows}, {columns}); got "
                f"{tuple(given.shape)}."
            )
    if channels % in_group or channels % moved:
        raise RuntimeError(
            f"deform_conv2d: expected a multiple of {in_group} and of {moved} channels, for weight "
            f"{tuple(weight.shape)} and offset {tuple(offset.shape)}; got {channels}."
        )
    grid = {"dtype": offset.dtype, "device": offset.device}
    down = (mortice.arange(kh, **grid) * dy)[:, None, None, None] + (mortice.arange(rows, **grid) * sy - py)[:, None]
    across = (mortice.arange(kw, **grid) * dx)[:, None, None] + mortice.arange(columns, **grid) * sx - px
    way = offset.reshape(n, moved, kh, kw, 2, rows, columns)
    y, x = way[:, :, :, :, 0] + down, way[:, :, :, :, 1] + across
    maps = input.reshape(n, moved, channels // moved, height * width)
    read: Any = 0
    for i in (0, 1):
        for j in (0, 1):  # of the four pixels around a place, those outside count as zero
            py_, px_ = y.detach().floor() + i, x.detach().floor() + j
            share = (1 - (y - py_).abs()) * (1 - (x - px_).abs())
            inside = (py_ >= 0) & (py_ < height) & (px_ >= 0) & (px_ < width)
            at = (py_.clamp(0, height - 1) * width + px_.clamp(0, width - 1)).long().reshape(n, moved, 1, size)
            values = maps.gather(3, at.expand(-1, -1, channels // moved, -1))
            read = read + values * (share * inside).reshape(n, moved, 1, size)
    if mask is not None:
        read = read * mask.reshape(n, moved, 1, size)
    groups = channels // in_group
    read = read.reshape(n, groups, in_group * pixels, rows * columns)
    out = weight.reshape(groups, out_channels // groups, in_group * pixels) @ read
    out = out.reshape(n, out_channels, rows, columns)
    return out if bias is None else out + bias.reshape(1, -1, 1, 1)


class DeformConv2d(nn.Module):
    """`deform_conv2d` with weights of its own, which are drawn as those of a convolution are."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = _pair(kernel_size), _pair(stride)
        self.padding, self.dilation = _pair(padding), _pair(dilation)
        self.weight = nn.Parameter(mortice.empty(out_channels, in_channels // groups, *self.kernel_size))
        if bias:
            self.bias = nn.Parameter(mortice.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any, offset: Any, mask: Any = None) -> Any:
        return deform_conv2d(
            input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask
        )

    def __repr__(self) -> str:
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        usual = {"padding": (0, 0), "dilation": (1, 1), "groups": 1}
        shown += "".join(f", {k}={getattr(self, k)}" for k, v in usual.items() if getattr(self, k) != v)
        return f"{type(self).__name__}({shown}{'' if self.bias is not None else ', bias=False'})"
