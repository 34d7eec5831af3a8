"""Fused layers that train with rounded weights: of torch.ao.nn.intrinsic.qat.

A weight is scaled by what its batch norm will do to it before it is rounded, as it will be when the two are one.
"""

from __future__ import annotations

from typing import Any, ClassVar

import mortice
from mortice import nn
from mortice.ao.quantization import intrinsic, qat
from mortice.nn import functional as F
from mortice.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d",
    "LinearBn1d", "LinearReLU", "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip


class _ThenReLU:
    _activation = staticmethod(F.relu)


class LinearReLU(_ThenReLU, qat.Linear, intrinsic._FusedModule):
    """A linear layer whose weight is rounded as it is used, and a ReLU."""

    _FLOAT_MODULE = intrinsic.LinearReLU


class ConvReLU1d(_ThenReLU, qat.Conv1d, intrinsic._FusedModule):
    """A convolution whose weight is rounded as it is used, and a ReLU."""

    _FLOAT_MODULE = intrinsic.ConvReLU1d


class ConvReLU2d(_ThenReLU, qat.Conv2d, intrinsic._FusedModule):
    """A convolution whose weight is rounded as it is used, and a ReLU."""

    _FLOAT_MODULE = intrinsic.ConvReLU2d


class ConvReLU3d(_ThenReLU, qat.Conv3d, intrinsic._FusedModule):
    """A convolution whose weight is rounded as it is used, and a ReLU."""

    _FLOAT_MODULE = intrinsic.ConvReLU3d


class _Normed(intrinsic._FusedModule):
    """What layers with a batch norm behind them have in common."""

    bn: Any
    bias: Any
    weight: Any
    weight_fake_quant: Any
    _activation: ClassVar[Any] = staticmethod(lambda x: x)

    def _begin(self, features: int, norm: Any, eps: float, momentum: float, freeze_bn: bool, qconfig: Any) -> None:
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = norm(features, eps, momentum)
        qat.begin(self, qconfig)
        self.bn.to(self.weight.device)
        nn.init.uniform_(self.bn.weight)
        (self.freeze_bn_stats if self.freeze_bn else self.update_bn_stats)()

    def reset_running_stats(self) -> None:
        """Forget what the batch norm has seen."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Start the batch norm anew."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> Any:
        """Let the batch norm follow the batches."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self) -> Any:
        """Let the batch norm keep what it has seen, in training too."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def train(self, mode: bool = True) -> Any:
        """Set the mode; a frozen batch norm stays as it is."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _plain(self, input: Any, weight: Any, bias: Any) -> Any:
        raise NotImplementedError

    def forward(self, input: Any) -> Any:
        """Apply the layer with the weight that is rounded as scaled, and undo the scale before the batch norm."""
        factor = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        lead, wide = [1] * self.weight.dim(), [1] * self.weight.dim()
        lead[0] = wide[1] = -1
        weight = self.weight_fake_quant(self.weight * factor.reshape(lead))
        none = mortice.zeros(weight.shape[0], dtype=input.dtype, device=weight.device)
        out = self._plain(input, weight, none) / factor.reshape(wide)
        if self.bias is not None:
            out = out + self.bias.reshape(wide)
        return self._activation(self.bn(out))

    def _taken(self, layer: Any, bn: Any) -> Any:
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self.bn, name, getattr(bn, name))
        return self

    def _folded(self, fuse: Any) -> Any:
        bn = self.bn
        return fuse(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)


class _ConvBn(_Normed):
    """What convolutions with a batch norm behind them have in common."""

    _version = 2
    _FLOAT_MODULE: ClassVar[Any]
    _FLOAT_CONV_MODULE: ClassVar[Any]
    _FLOAT_BN_MODULE: ClassVar[Any]
    _FUSED_FLOAT_MODULE: ClassVar[Any] = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool | None = None, padding_mode: str = "zeros", eps: float = 1e-05, momentum: float = 0.1, freeze_bn: bool = False,
        qconfig: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        sizes = in_channels, out_channels, kernel_size, stride, padding, dilation, groups
        self._FLOAT_CONV_MODULE.__init__(self, *sizes, bool(bias), padding_mode, device=device)
        self._begin(out_channels, self._FLOAT_BN_MODULE, eps, momentum, freeze_bn, qconfig)

    def _plain(self, input: Any, weight: Any, bias: Any) -> Any:
        return self._conv_forward(input, weight, bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make one with the parameters of a fused module that has a qconfig."""
        conv, bn = qat.source(cls, mod), mod[1]
        return cls(*qat.arguments(conv), bn.eps, bn.momentum, False, mod.qconfig, conv.weight.device)._taken(conv, bn)

    def to_float(self) -> Any:
        """Return a plain convolution with the batch norm in its weight, and the ReLU behind it if there is one."""
        made = self._FLOAT_CONV_MODULE(*qat.arguments(self))
        made.weight, made.bias = self._folded(fuse_conv_bn_weights)
        return (made if self._FUSED_FLOAT_MODULE is None else self._FUSED_FLOAT_MODULE(made, nn.ReLU())).train(self.training)


class ConvBn1d(_ConvBn, nn.Conv1d):
    """A convolution and a batch norm, with rounded weights."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = intrinsic.ConvBn1d, nn.Conv1d, nn.BatchNorm1d


class ConvBn2d(_ConvBn, nn.Conv2d):
    """A convolution and a batch norm, with rounded weights."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = intrinsic.ConvBn2d, nn.Conv2d, nn.BatchNorm2d


class ConvBn3d(_ConvBn, nn.Conv3d):
    """A convolution and a batch norm, with rounded weights."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = intrinsic.ConvBn3d, nn.Conv3d, nn.BatchNorm3d


class ConvBnReLU1d(_ThenReLU, ConvBn1d):
    """A convolution, a batch norm and a ReLU, with rounded weights."""

    _FLOAT_MODULE, _FUSED_FLOAT_MODULE = intrinsic.ConvBnReLU1d, intrinsic.ConvReLU1d


class ConvBnReLU2d(_ThenReLU, ConvBn2d):
    """A convolution, a batch norm and a ReLU, with rounded weights."""

    _FLOAT_MODULE, _FUSED_FLOAT_MODULE = intrinsic.ConvBnReLU2d, intrinsic.ConvReLU2d


class ConvBnReLU3d(_ThenReLU, ConvBn3d):
    """A convolution, a batch norm and a ReLU, with rounded weights."""

    _FLOAT_MODULE, _FUSED_FLOAT_MODULE = intrinsic.ConvBnReLU3d, intrinsic.ConvReLU3d


class LinearBn1d(_Normed, nn.Linear):
    """A linear layer and a batch norm, with rounded weights."""

    _FLOAT_MODULE = intrinsic.LinearBn1d

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05, momentum: float = 0.1, freeze_bn: bool = False,
        qconfig: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        nn.Linear.__init__(self, in_features, out_features, bias, device=device)
        self._begin(out_features, nn.BatchNorm1d, eps, momentum, freeze_bn, qconfig)

    def _plain(self, input: Any, weight: Any, bias: Any) -> Any:
        return F.linear(input, weight, bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make one with the parameters of a fused module that has a qconfig."""
        layer, bn = qat.source(cls, mod), mod[1]
        made = cls(
            layer.in_features, layer.out_features, layer.bias is not None, bn.eps, bn.momentum, False, mod.qconfig, layer.weight.device
        )
        return made._taken(layer, bn)

    def to_float(self) -> Any:
        """Return a plain layer with the batch norm in its weight."""
        made = nn.Linear(self.in_features, self.out_features)
        made.weight, made.bias = self._folded(fuse_linear_bn_weights)
        return made


def update_bn_stats(mod: Any) -> None:
    """Let a batch norm that is fused follow the batches: for `model.apply`."""
    if isinstance(mod, _Normed):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """Let a batch norm that is fused keep what it has seen: for `model.apply`."""
    if isinstance(mod, _Normed):
        mod.freeze_bn_stats()
