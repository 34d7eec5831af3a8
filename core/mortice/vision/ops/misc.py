"""The blocks that models share: convolutions with their norm and activation, and small modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import nn

__all__ = [
    "MLP", "Conv2dNormActivation", "Conv3dNormActivation", "ConvNormActivation", "FrozenBatchNorm2d", "Permute",
    "SqueezeExcitation",
]  # fmt: skip


def _inplace(inplace: bool | None) -> dict[str, bool]:
    return {} if inplace is None else {"inplace": inplace}


class ConvNormActivation(nn.Sequential):
    """A convolution, its norm and its activation; what is None is left out, and padding keeps the size by default."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation: Any = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
        conv_layer: Callable[..., nn.Module] = nn.Conv2d,
    ) -> None:
        if padding is None and isinstance(kernel_size, int) and isinstance(dilation, int):
            padding = (kernel_size - 1) // 2 * dilation
        elif padding is None:
            ndim = len(kernel_size) if isinstance(kernel_size, Sequence) else len(dilation)
            sizes, dilations = (v if isinstance(v, Sequence) else (v,) * ndim for v in (kernel_size, dilation))
            padding = tuple((k - 1) // 2 * d for k, d in zip(sizes, dilations))
        bias = norm_layer is None if bias is None else bias
        layers: list[Any] = [
            conv_layer(
                in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**_inplace(inplace)))
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv2dNormActivation(ConvNormActivation):
    """`ConvNormActivation` of images."""

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
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer, activation_layer, dilation,
            inplace, bias, nn.Conv2d,
        )  # fmt: skip


class Conv3dNormActivation(ConvNormActivation):
    """`ConvNormActivation` of volumes."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int] = 3,
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] | str | None = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm3d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation: int | tuple[int, int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer, activation_layer, dilation,
            inplace, bias, nn.Conv3d,
        )  # fmt: skip


class FrozenBatchNorm2d(nn.Module):
    """BatchNorm2d whose statistics, weight and bias are buffers, which training leaves as they are."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, make in (
            ("weight", mortice.ones), ("bias", mortice.zeros), ("running_mean", mortice.zeros), ("running_var", mortice.ones)
        ):  # fmt: skip
            self.register_buffer(name, make(num_features))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # Checkpoints of BatchNorm2d have it.
        state_dict.pop(prefix + "num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Any) -> Any:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


class SqueezeExcitation(nn.Module):
    """Scale each channel by what two 1x1 convolutions make of the channels' means."""

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Callable[..., nn.Module] = nn.ReLU,
        scale_activation: Callable[..., nn.Module] = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Any) -> Any:
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class Permute(nn.Module):
    """`permute` as a module."""

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Any) -> Any:
        return mortice.permute(x, self.dims)


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
