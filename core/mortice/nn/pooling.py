"""Pooling layers."""

from __future__ import annotations

from typing import Any

from mortice.nn import functional as F
from mortice.nn.functional.spatial import _tuple
from mortice.nn.module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


class _MaxPoolNd(Module):
    nd: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        return getattr(F, f"max_pool{self.nd}d")(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Maxima of windows over (N, C, L) or (C, L)."""

    nd = 1


class MaxPool2d(_MaxPoolNd):
    """Maxima of windows over (N, C, H, W) or (C, H, W)."""

    nd = 2


class MaxPool3d(_MaxPoolNd):
    """Maxima of windows over (N, C, D, H, W) or (C, D, H, W)."""

    nd = 3


class _Windows(Module):
    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxUnpoolNd(_Windows):
    nd: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.padding = _tuple(kernel_size, self.nd), _tuple(padding, self.nd)
        self.stride = _tuple(stride if stride is not None else kernel_size, self.nd)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        unpool = getattr(F, f"max_unpool{self.nd}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts values back at the positions that MaxPool1d returned."""

    nd = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts values back at the positions that MaxPool2d returned."""

    nd = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts values back at the positions that MaxPool3d returned."""

    nd = 3


class AvgPool1d(_Windows):
    """Means of windows over (N, C, L) or (C, L)."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.padding = _tuple(kernel_size, 1), _tuple(padding, 1)
        self.stride = _tuple(stride if stride is not None else kernel_size, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

class _AvgPoolNd(_Windows):
    nd: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride if stride is not None else kernel_size, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return getattr(F, f"avg_pool{self.nd}d")(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolNd):
    """Means of windows over (N, C, H, W) or (C, H, W)."""

    nd = 2


class AvgPool3d(_AvgPoolNd):
    """Means of windows over (N, C, D, H, W) or (C, D, H, W)."""

    nd = 3


class _LPPoolNd(Module):
    nd: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Any) -> Any:
        pool = getattr(F, f"lp_pool{self.nd}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """p-norms of windows over (N, C, L) or (C, L)."""

    nd = 1


class LPPool2d(_LPPoolNd):
    """p-norms of windows over (N, C, H, W) or (C, H, W)."""

    nd = 2


class LPPool3d(_LPPoolNd):
    """p-norms of windows over (N, C, D, H, W) or (C, D, H, W)."""

    nd = 3


class _AdaptiveMaxPoolNd(Module):
    nd: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Any) -> Any:
        return getattr(F, f"adaptive_max_pool{self.nd}d")(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of the last dim cut to `output_size`."""

    nd = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of the last two dims cut to `output_size`."""

    nd = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of the last three dims cut to `output_size`."""

    nd = 3


class _FractionalMaxPool(Module):
    nd: int

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
                if output_size is None
                else f"{name}: only one of output_size and output_ratio may be specified"
            )
        spread = lambda v: v if v is None or isinstance(v, (tuple, list)) else (v,) * self.nd
        self.kernel_size, self.return_indices = spread(kernel_size), return_indices
        self.output_size, self.output_ratio = spread(output_size), spread(output_ratio)
        self.register_buffer("_random_samples", _random_samples)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        pool = getattr(F, f"fractional_max_pool{self.nd}d")
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows at random steps over (N, C, H, W) or (C, H, W)."""

    nd = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows at random steps over (N, C, T, H, W) or (C, T, H, W)."""

    nd = 3


class _AdaptiveAvgPoolNd(Module):
    nd: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return getattr(F, f"adaptive_avg_pool{self.nd}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of the last dim cut to `output_size`."""

    nd = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of the last two dims cut to `output_size`."""

    nd = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of the last three dims cut to `output_size`."""

    nd = 3
