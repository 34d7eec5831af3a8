"""Layers that train with rounded weights: those of one layer, of torch.ao.nn.qat."""

from __future__ import annotations

from typing import Any, ClassVar

from mortice import nn
from mortice.nn import functional as F

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]


def begin(layer: Any, qconfig: Any) -> None:
    """Give a layer what rounds its weights."""
    if not qconfig:
        raise AssertionError(f"{type(layer).__name__}: qconfig must be provided for QAT module")
    layer.qconfig, layer.weight_fake_quant = qconfig, qconfig.weight()
    layer.weight_fake_quant.to(layer.weight.device)


def source(cls: Any, mod: Any) -> Any:
    """Return the layer whose parameters a module of plain numbers gives, having checked that it can."""
    if type(mod) is not cls._FLOAT_MODULE and not (cls._FLOAT_MODULE is nn.Linear and type(mod) in cls._ALSO):
        raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}")
    if not getattr(mod, "qconfig", None):
        raise AssertionError(f"qat.{cls.__name__}.from_float: Input float module must have a valid qconfig")
    return mod[0] if isinstance(mod, nn.Sequential) else mod


class Linear(nn.Linear):
    """A linear layer whose weight is rounded as it is used."""

    _FLOAT_MODULE: ClassVar[Any] = nn.Linear
    _ALSO: ClassVar[Any] = (nn.modules.linear.NonDynamicallyQuantizableLinear,)
    _activation: ClassVar[Any] = staticmethod(lambda x: x)

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        begin(self, qconfig)

    def forward(self, input: Any) -> Any:
        """Apply it to (..., in_features)."""
        return self._activation(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make one with the parameters of a layer that has a qconfig."""
        layer = source(cls, mod)
        made = cls(layer.in_features, layer.out_features, layer.bias is not None, mod.qconfig, device=layer.weight.device)
        made.weight, made.bias = layer.weight, layer.bias
        return made

    def to_float(self) -> Any:
        """Return a plain layer of the same parameters."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        return plain(self, made)


def plain(layer: Any, made: Any) -> Any:
    """Return a layer of plain numbers with the parameters of another."""
    made.weight = nn.Parameter(layer.weight.detach())
    if layer.bias is not None:
        made.bias = nn.Parameter(layer.bias.detach())
    kind = type(layer)._FLOAT_MODULE
    return (kind(made, nn.ReLU()) if issubclass(kind, nn.Sequential) else made).train(layer.training)


class _Conv:
    """What convolutions with rounded weights have in common."""

    _FLOAT_MODULE: ClassVar[Any]
    _FLOAT_CONV_MODULE: ClassVar[Any]
    _activation: ClassVar[Any] = staticmethod(lambda x: x)

    def __init__(self, *args: Any, qconfig: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        begin(self, qconfig)

    def forward(self, input: Any) -> Any:
        """Apply it, as the layer itself."""
        return self._activation(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))  # type: ignore[attr-defined]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make one with the parameters of a layer that has a qconfig."""
        layer = source(cls, mod)
        made: Any = cls(*arguments(layer), qconfig=mod.qconfig, device=layer.weight.device)
        made.weight, made.bias = layer.weight, layer.bias
        return made

    def to_float(self) -> Any:
        """Return a plain layer of the same parameters."""
        return plain(self, self._FLOAT_CONV_MODULE(*arguments(self)))


def arguments(conv: Any) -> tuple[Any, ...]:
    """Return what a convolution is made with."""
    sizes = conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups
    return (*sizes, conv.bias is not None, conv.padding_mode)


class Conv1d(_Conv, nn.Conv1d):
    """A convolution whose weight is rounded as it is used."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    """A convolution whose weight is rounded as it is used."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    """A convolution whose weight is rounded as it is used."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv3d


class _Table:
    """What tables with rounded weights have in common."""

    _FLOAT_MODULE: ClassVar[Any]
    _options = "num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse"

    def __init__(self, *args: Any, qconfig: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        begin(self, qconfig)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make one with the weight of a table that has a qconfig."""
        layer = source(cls, mod)
        made: Any = cls(**{name: getattr(layer, name) for name in cls._options.split()}, qconfig=mod.qconfig, device=layer.weight.device)
        made.weight = layer.weight
        return made

    def to_float(self) -> Any:
        """Return a plain table of the same weight."""
        made = self._FLOAT_MODULE(**{name: getattr(self, name) for name in self._options.split()})
        made.weight = nn.Parameter(self.weight.detach())  # type: ignore[attr-defined]
        return made.train(self.training)  # type: ignore[attr-defined]


class Embedding(_Table, nn.Embedding):
    """A table of vectors that are rounded as they are used."""

    _FLOAT_MODULE = nn.Embedding

    def forward(self, input: Any) -> Any:
        """Look indices up."""
        rest = self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        return F.embedding(input, self.weight_fake_quant(self.weight), *rest)


class EmbeddingBag(_Table, nn.EmbeddingBag):
    """A table of vectors that are rounded as they are used, whose bags are summed up."""

    _FLOAT_MODULE = nn.EmbeddingBag
    _options = "num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq mode sparse include_last_offset padding_idx"

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Look bags of indices up."""
        rest = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights
        weight = self.weight_fake_quant(self.weight)
        return F.embedding_bag(input, weight, offsets, *rest, self.include_last_offset, self.padding_idx)
