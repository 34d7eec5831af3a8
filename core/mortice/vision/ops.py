"""The building blocks that the models of `mortice.vision` share, under the names of torchvision.ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mortice import nn

__all__ = ["MLP", "Conv2dNormActivation"]


def _inplace(inplace: bool | None) -> dict[str, bool]:
    return {} if inplace is None else {"inplace": inplace}


class Conv2dNormActivation(nn.Sequential):
    """A convolution, its norm and its activation; what is None is left out, and padding keeps the size by default."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str | None = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation: int | tuple[int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        if padding is None:
            sizes, dilations = (v if isinstance(v, tuple) else (v, v) for v in (kernel_size, dilation))
            padding = tuple((k - 1) // 2 * d for k, d in zip(sizes, dilations))  # type: ignore[assignment]
            padding = padding[0] if isinstance(kernel_size, int) and isinstance(dilation, int) else padding
        bias = norm_layer is None if bias is None else bias
        layers: list[Any] = [
            nn.Conv2d(
                in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**_inplace(inplace)))
        super().__init__(*layers)
        self.out_channels = out_channels


class MLP(nn.Sequential):
    """Linear layers, each but the last followed by norm, activation and dropout; the last by dropout alone."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: Sequence[int],
        norm_layer: Callable[..., nn.Module] | None = None,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        layers: list[Any] = []
        for i, channels in enumerate(hidden_channels):
            layers.append(nn.Linear(in_channels, channels, bias=bias))
            if i < len(hidden_channels) - 1:
                layers += [norm_layer(channels)] if norm_layer is not None else []
                layers += [activation_layer(**_inplace(inplace))] if activation_layer is not None else []
            layers.append(nn.Dropout(dropout, **_inplace(inplace)))
            in_channels = channels
        super().__init__(*layers)
