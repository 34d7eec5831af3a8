"""Normalisation layers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import mortice
from mortice.nn import functional as F
from mortice.nn import init
from mortice.nn.lazy import LazyModuleMixin
from mortice.nn.module import Module
from mortice.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from mortice.notice import warn

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LocalResponseNorm", "RMSNorm",
    "SyncBatchNorm",
]  # fmt: skip


def _reset(module: Module) -> None:
    """Set weight 1 and bias 0, where there are any."""
    for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
        if getattr(module, name, None) is not None:
            fill(getattr(module, name))


class _NormBase(Module):
    """Channel statistics with optional running ones, for BatchNorm and InstanceNorm."""

    _version = 2
    nd: tuple[int, ...]
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(mortice.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        if track_running_stats:
            self.register_buffer("running_mean", mortice.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", mortice.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", mortice.tensor(0, dtype=mortice.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running statistics to mean 0 and variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set weight 1, bias 0 and the running statistics to their start."""
        self.reset_running_stats()
        _reset(self)

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim not in self.nd:
            wanted = " or ".join(f"{n}D" for n in self.nd)
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        # Checkpoints before version 2 do not count batches.
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats and key not in state_dict:
            counted = self.num_batches_tracked
            state_dict[key] = mortice.tensor(0, dtype=mortice.int64) if counted is None else counted
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if keep else None, self.running_var if keep else None, self.weight, self.bias,
            by_batch, factor, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    nd = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    nd = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    nd = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, *) by the statistics of all processes, of which there is one.

    Differs from torch: it runs on every device, as BatchNorm does; `process_group` has no effect.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """Replace every BatchNorm in a model, with its state."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            converted.training = module.training
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
        for name, child in module.named_children():
            setattr(converted, name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _InstanceNorm(_NormBase):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        dim = input.ndim - self.nd[0]
        if input.shape[dim] != self.num_features:
            if not self.affine:
                warn(
                    f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                    "in num_features, which is not used because affine=False"
                )
            else:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: {input.shape[dim]}."
                )
        x = input if dim else input.unsqueeze(0)
        by_input = self.training or not self.track_running_stats
        factor = 0.0 if self.momentum is None else self.momentum
        out = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, by_input, factor, self.eps
        )
        return out if dim else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    nd = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    nd = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    nd = (4, 5)


class _LazyNorm(LazyModuleMixin):
    """BatchNorm and InstanceNorm that take num_features from their first input."""

    def __init__(
        self, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        own: Any = self
        own.affine, own.track_running_stats = affine, track_running_stats
        for name in ("weight", "bias")[: affine + (affine and bias)]:
            setattr(self, name, UninitializedParameter(device=device, dtype=dtype))
        if track_running_stats:
            own.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            own.running_var = UninitializedBuffer(device=device, dtype=dtype)
            own.num_batches_tracked = mortice.tensor(0, dtype=mortice.int64, device=device)

    def reset_parameters(self: Any) -> None:
        """Do what the normalisation does, once there are weights."""
        if self.num_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self: Any, input: Any) -> None:
        """Take num_features from the channel dim of the input."""
        self._check_input_dim(input)
        unbatched = isinstance(self, _InstanceNorm) and input.ndim == self.nd[0]
        self.num_features = input.shape[0 if unbatched else 1]
        if self.has_uninitialized_params():
            for value in (self.weight, self.bias, self.running_mean, self.running_var):
                if value is not None:
                    value.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d that takes num_features from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d that takes num_features from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d that takes num_features from its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d that takes num_features from its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d that takes num_features from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d that takes num_features from its first input."""

    cls_to_become = InstanceNorm3d


class _RowNorm(Module):
    """Settings of the normalisations over the last dims."""

    def _setup(
        self, normalized_shape: Any, eps: float | None, elementwise_affine: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        wanted = {"weight": True} if isinstance(self, RMSNorm) else {"weight": True, "bias": bias}
        for name, there in wanted.items():
            made = Parameter(mortice.empty(shape, device=device, dtype=dtype)) if there and elementwise_affine else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight 1 and bias 0."""
        _reset(self)

    def extra_repr(self) -> str:
        text = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        if isinstance(self, LayerNorm):
            return text + f", bias={self.bias is not None}"
        return text


class LayerNorm(_RowNorm):
    """Normalisation over the last dims."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._setup(normalized_shape, eps, elementwise_affine, bias, device, dtype)

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_RowNorm):
    """Division by the root mean square over the last dims; `eps` defaults to the input dtype's own."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._setup(normalized_shape, eps, elementwise_affine, False, device, dtype)

    def forward(self, x: Any) -> Any:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Normalisation over groups of channels of each sample."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(mortice.empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight 1 and bias 0."""
        _reset(self)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Division by the mean square of neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """Local response normalisation of (N, C, H, W), with the defaults of its old name."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)
