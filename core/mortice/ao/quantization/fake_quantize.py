"""Modules that round numbers as quantized ones would be while a model trains, by what an observer sees."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Tensor, nn
from mortice.ao.quantization import functional
from mortice.ao.quantization.functional import (
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)  # fmt: skip
from mortice.ao.quantization.observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    Partial,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)  # fmt: skip


class FakeQuantizeBase(nn.Module):
    """What rounds numbers; rounding and observing are switched by buffers, so that they are saved."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor
    _switches: Any = mortice.uint8

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", mortice.tensor([1], dtype=self._switches))
        self.register_buffer("observer_enabled", mortice.tensor([1], dtype=self._switches))

    def forward(self, x: Any) -> Any:
        """Round a tensor."""
        raise NotImplementedError(f"{type(self).__name__}: give it a method forward(x).")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Return the scale and the zero point."""
        raise NotImplementedError(f"{type(self).__name__}: give it a method calculate_qparams().")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self) -> None:
        """Hand numbers on as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Let the range follow what comes in."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self) -> None:
        """Keep the range."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> Partial:
        """Return what makes such modules with these arguments."""
        return Partial(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Round to what the scale and zero point of an observer can express.

    Args:
        observer: what makes the observer, with `observer_kwargs`.
        quant_min: the least whole number; quant_max: the greatest.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int | None = None, quant_max: int | None = None,
        is_dynamic: bool = False, **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", getattr(observer, "keywords", {}).get("dtype", mortice.quint8))
            signed = dtype in (mortice.qint8, mortice.int8)
            low, high = (-128, 127) if signed else (0, 255)
            if dtype in (mortice.qint8, mortice.int8, mortice.quint8, mortice.uint8) and not low <= quant_min <= quant_max <= high:
                raise AssertionError(f"{'quant_min' if quant_min < low else 'quant_max'} out of bound")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = made = observer(is_dynamic=is_dynamic, **observer_kwargs)
        self.quant_min, self.quant_max, self.is_dynamic = made.quant_min, made.quant_max, made.is_dynamic
        self.register_buffer("scale", mortice.tensor([1.0], dtype=mortice.float32))
        whole = made.qscheme is not per_channel_affine_float_qparams
        self.register_buffer("zero_point", mortice.tensor([0], dtype=mortice.int32 if whole else mortice.float32))
        self.dtype, self.qscheme, self.ch_axis = made.dtype, made.qscheme, getattr(made, "ch_axis", -1)
        self.is_per_channel = made.qscheme not in (per_tensor_affine, per_tensor_symmetric)

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Return the scale and the zero point that the observer tells."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Any) -> Any:
        """Round a tensor, whose shape the result has."""
        if bool(self.observer_enabled):
            self.activation_post_process(X.detach())
            for held, found in zip((self.scale, self.zero_point), self.calculate_qparams()):
                if held.shape != found.shape:
                    held.resize_(found.shape)
                held.copy_(found)
        if not bool(self.fake_quant_enabled):
            return X
        quant_min, quant_max = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return functional.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, quant_min, quant_max)
        return functional.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, quant_min, quant_max)

    def extra_repr(self) -> str:
        """Show how it rounds."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, "
            f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for held, name in ((self.scale, "scale"), (self.zero_point, "zero_point")):
            if prefix + name in state_dict:
                held.resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Round by a scale and a zero point that are given, by a `FixedQParamsObserver`."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        made = self.activation_post_process
        if type(made) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver; got {type(made).__name__}.")
        self._observer_ctr = observer
        self.scale, self.zero_point = made.scale, made.zero_point

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Return the scale and the zero point that were given."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        """Show how it rounds."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.activation_post_process.quant_min}, "
            f"quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Follow the range by a moving average and round to it, by one function."""

    _switches = mortice.int64

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0, quant_max: int = 255, **observer_kwargs: Any
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")
        self.is_symmetric_quant = self.qscheme in (per_tensor_symmetric, per_channel_symmetric)

    def forward(self, X: Any) -> Any:
        """Round a tensor, whose shape the result has."""
        made = self.activation_post_process
        return functional.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, made.min_val, made.max_val, self.scale, self.zero_point,
            made.averaging_constant, made.quant_min, made.quant_max, self.ch_axis, self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Show how it rounds."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.activation_post_process.quant_min}, "
            f"quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={self.activation_post_process.reduce_range}"
        )


def _switch(name: str, doc: str) -> Any:
    def switch(mod: Any) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"{doc}, where a module is such a one: for `model.apply`."
    return switch


disable_fake_quant = _switch("disable_fake_quant", "Hand numbers on as they are")
enable_fake_quant = _switch("enable_fake_quant", "Round from now on")
disable_observer = _switch("disable_observer", "Keep the range")
enable_observer = _switch("enable_observer", "Let the range follow what comes in")

_ACTIVATION: dict[str, Any] = {"quant_min": 0, "quant_max": 255, "dtype": mortice.quint8}
_WEIGHT: dict[str, Any] = {"quant_min": -128, "quant_max": 127, "dtype": mortice.qint8}
default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **_ACTIVATION, qscheme=per_tensor_affine, reduce_range=True
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **_WEIGHT, qscheme=per_tensor_symmetric, reduce_range=False
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **_ACTIVATION, is_dynamic=True, averaging_constant=1
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **_WEIGHT, qscheme=per_channel_symmetric, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **_ACTIVATION, qscheme=per_channel_affine_float_qparams, ch_axis=0, averaging_constant=1
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_ACTIVATION, qscheme=per_tensor_affine, reduce_range=True
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_0to1_observer)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, **_ACTIVATION)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **_WEIGHT, qscheme=per_tensor_symmetric
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **_WEIGHT, qscheme=per_channel_symmetric
)
fused_wt_fake_quant_range_neg_127_to_127 = default_fused_wt_fake_quant.with_args(quant_min=-127, eps=2**-12)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = default_fused_per_channel_wt_fake_quant.with_args(quant_min=-127, eps=2**-12)

__all__ = [n for n in dir() if n.endswith(("fake_quant", "_127_to_127", "able_observer")) or "FakeQuantize" in n]
