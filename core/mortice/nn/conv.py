"""Convolutions and transposed convolutions over one to three axes."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.nn import functional as F
from mortice.nn import init
from mortice.nn.functional.spatial import _tuple
from mortice.nn.lazy import LazyModuleMixin
from mortice.nn.module import Module
from mortice.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
    "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip


class _ConvNd(Module):
    """What all convolutions share: settings, weight and bias, their initialisation and repr."""

    nd: int
    transposed: bool

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
        output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if not hasattr(self, "nd"):  # a class of a program's own, which gives a size for each axis
            self.nd = len(kernel_size)
        nd = self.nd
        self.in_channels, self.out_channels, self.groups, self.transposed = in_channels, out_channels, groups, transposed
        self.kernel_size, self.stride = _tuple(kernel_size, nd), _tuple(stride, nd)
        self.dilation, self.output_padding = _tuple(dilation, nd), _tuple(output_padding, nd)
        self.padding: Any = padding if isinstance(padding, str) else _tuple(padding, nd)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {set(modes)}, but got padding_mode='{padding_mode}'")
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_widths()
        self.weight = Parameter(mortice.empty(self._weight_shape(), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(mortice.empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.in_channels, self.out_channels
        if not self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weight and bias from uniform(-1/sqrt(fan in), 1/sqrt(fan in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _pad_widths(self) -> tuple[int, ...]:
        """Return `F.pad`'s argument for the padding modes that convolution does not know."""
        if self.padding == "valid":
            return (0,) * (2 * self.nd)
        if self.padding == "same":
            totals = [d * (n - 1) for d, n in zip(self.dilation, self.kernel_size)]
            pairs = [(t // 2, t - t // 2) for t in totals]
        else:
            pairs = [(p, p) for p in self.padding]
        return tuple(n for pair in reversed(pairs) for n in pair)

    def extra_repr(self) -> str:
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        zero, one = (0,) * self.nd, (1,) * self.nd
        for name, usual in (("padding", zero), ("dilation", one), ("output_padding", zero), ("groups", 1)):
            if getattr(self, name) != usual:
                shown += f", {name}={getattr(self, name)}"
        if self.bias is None:
            shown += ", bias=False"
        return shown if self.padding_mode == "zeros" else f"{shown}, padding_mode={self.padding_mode}"


class _Forward(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, groups, bias, padding_mode, device, dtype
        )

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return getattr(F, f"conv{self.nd}d")(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Forward):
    """Convolution of (N, C, L) or (C, L)."""

    nd = 1


class Conv2d(_Forward):
    """Convolution of (N, C, H, W) or (C, H, W)."""

    nd = 2


class Conv3d(_Forward):
    """Convolution of (N, C, D, H, W) or (C, D, H, W)."""

    nd = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Any, output_size: Any) -> tuple[int, ...]:
        """Return the output padding that gives `output_size`."""
        if output_size is None:
            return self.output_padding
        nd = self.nd
        lead = input.ndim - nd
        wanted = list(output_size)
        if len(wanted) == lead + nd:
            wanted = wanted[lead:]
        if len(wanted) != nd:
            raise ValueError(
                f"ConvTranspose{nd}D: for {input.ndim}D input, output_size must have {nd} or {lead + nd} elements (got "
                f"{len(wanted)})"
            )
        low = [
            (n - 1) * s - 2 * p + d * (m - 1) + 1
            for n, s, p, d, m in zip(
                tuple(input.shape)[lead:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        high = [n + s - 1 for n, s in zip(low, self.stride)]
        if any(not a <= w <= b for w, a, b in zip(wanted, low, high)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {low} to {high} (for an input of "
                f"{mortice.Size(tuple(input.shape)[lead:])})"
            )
        return tuple(w - a for w, a in zip(wanted, low))

    def forward(self, input: Any, output_size: Any = None) -> Any:
        convolve = getattr(F, f"conv_transpose{self.nd}d")
        extra = self._output_padding(input, output_size)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class _ConvTransposeMixin(_ConvTransposeNd):
    """What libraries import for `isinstance`; no layer is one, as in PyTorch."""


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (N, C, L) or (C, L); `output_size` in the call chooses among the valid sizes."""

    nd = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (N, C, H, W) or (C, H, W); `output_size` in the call chooses among the valid sizes."""

    nd = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (N, C, D, H, W) or (C, D, H, W)."""

    nd = 3


# ---- with in_channels taken from the first input ----


class _Lazy(LazyModuleMixin):
    """What all lazy convolutions share."""

    def _without_weights(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self: Any) -> None:
        """Do what the convolution does, once there are weights."""
        if self.in_channels and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self: Any, input: Any, *args: Any, **kwargs: Any) -> None:
        """Take in_channels from the input."""
        if not self.has_uninitialized_params():
            # A loaded state_dict has brought the weights.
            self.in_channels = self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups
            return
        if input.ndim not in (self.nd + 1, self.nd + 2):
            raise RuntimeError(
                f"Expected {self.nd + 1}D (unbatched) or {self.nd + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self.nd - 1]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyForward(_Lazy):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._without_weights(out_channels, bias, device, dtype)


class LazyConv1d(_LazyForward, Conv1d):
    """A Conv1d that takes in_channels from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyForward, Conv2d):
    """A Conv2d that takes in_channels from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyForward, Conv3d):
    """A Conv3d that takes in_channels from its first input."""

    cls_to_become = Conv3d


class _LazyTransposed(_Lazy):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._without_weights(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose3d
