"""Observers: modules that watch numbers pass and tell the scale and the zero point that fit them."""

from __future__ import annotations

import functools
import math
from typing import Any

import mortice
from mortice import Tensor, nn
from mortice.ao.quantization.functional import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)  # fmt: skip

_EPS = 2.0**-23
_RANGES = {
    "qint8": (-128, 127), "int8": (-128, 127), "quint8": (0, 255), "uint8": (0, 255), "qint32": (-(2**31), 2**31 - 1),
    "int32": (-(2**31), 2**31 - 1), "uint16": (0, 2**16 - 1), "int16": (-(2**15), 2**15 - 1),
}  # fmt: skip


class Partial(functools.partial):  # type: ignore[type-arg]
    """A class of observers with some arguments, as `with_args` makes it."""

    @property
    def p(self) -> Any:
        """Itself, as PyTorch keeps the partial call there."""
        return self

    def with_args(self, **kwargs: Any) -> Partial:
        """Return it with more arguments."""
        return Partial(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> Any:
        """Return it with arguments that are made anew, by a call, for each observer."""
        return Callables(self, kwargs)


class Callables:
    """What makes observers with arguments that calls make."""

    def __init__(self, made: Any, calls: dict[str, Any]) -> None:
        self.made, self.calls = made, calls

    def __call__(self, **kwargs: Any) -> Any:
        return self.made(**{**{name: call() for name, call in self.calls.items()}, **kwargs})

    def with_args(self, **kwargs: Any) -> Partial:
        """Return it with more arguments."""
        return Partial(self, **kwargs)


class ObserverBase(nn.Module):
    """What observers derive from: `forward` watches a tensor and returns it, `calculate_qparams` tells what fits."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    def forward(self, x: Any) -> Any:
        """Watch a tensor."""
        raise NotImplementedError(f"{type(self).__name__}: give it a method forward(x).")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Return the scale and the zero point."""
        raise NotImplementedError(f"{type(self).__name__}: give it a method calculate_qparams().")

    @classmethod
    def with_args(cls, **kwargs: Any) -> Partial:
        """Return what makes observers with these arguments."""
        return Partial(cls, **kwargs)

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> Any:
        """Return what makes observers with arguments that are made anew, by a call, for each."""
        return Callables(cls, kwargs)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of ranges, for whole numbers at equal distances.

    Raises:
        AssertionError: for a scheme or a dtype that it does not know, or bounds that leave zero out.
    """

    _version = 3
    eps: Tensor

    def __init__(
        self, dtype: Any = mortice.quint8, qscheme: qscheme = per_tensor_affine, reduce_range: bool = False, quant_min: int | None = None,
        quant_max: int | None = None, factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(dtype, is_dynamic, **kwargs)
        known = per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams
        if qscheme not in known:
            raise AssertionError(f"{type(self).__name__}: expected one of the schemes {known}; got {qscheme}.")
        kind = str(dtype).rpartition(".")[2]
        if kind not in _RANGES:
            raise AssertionError(f"{type(self).__name__}: expected one of the dtypes {', '.join(_RANGES)}; got {dtype}.")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", mortice.tensor([eps], **(factory_kwargs or {})))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            if not quant_min <= 0 <= quant_max or quant_min == quant_max:
                raise AssertionError(f"{type(self).__name__}: expected quant_min <= 0 <= quant_max; got {quant_min} and {quant_max}.")
            found = quant_min, quant_max
        else:
            found = _RANGES[kind]
        halved = reduce_range and (self.has_customized_qrange or kind in ("qint8", "int8", "quint8", "uint8"))
        self.quant_min, self.quant_max = (found[0] // 2, found[1] // 2) if halved else found

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version") in (None, 1):  # before it was kept there
            state_dict[f"{prefix}eps"] = mortice.tensor([_EPS])
        for name in ("min_val", "max_val"):
            value = state_dict.get(prefix + name)
            if value is not None and value.shape != getattr(self, name).shape:
                setattr(self, name, mortice.empty_like(value, device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _calculate_qparams(self, min_val: Any, max_val: Any) -> Any:
        """Return what fits a range, or one for each channel."""
        device = min_val.device
        if not min_val.numel() or bool((min_val.isinf() & max_val.isinf()).all()):
            return mortice.tensor([1.0], device=device), mortice.tensor([0], device=device)
        if bool((min_val > max_val).any()):
            raise AssertionError(f"{type(self).__name__}: expected min <= max; got {min_val.tolist()} and {max_val.tolist()}.")
        spread, zero = float(self.quant_max - self.quant_min), mortice.zeros_like(min_val)
        low, high = mortice.minimum(min_val, zero), mortice.maximum(max_val, zero)
        zero_point: Any = mortice.zeros(low.shape, dtype=mortice.int64, device=device)
        if self.qscheme in (per_tensor_symmetric, per_channel_symmetric):
            scale = mortice.maximum(mortice.maximum(-low, high) / (spread / 2), self.eps.to(device))
            if self.dtype in (mortice.quint8, mortice.uint8):
                zero_point = zero_point + ((self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128)
            elif self.dtype is mortice.uint16:
                zero_point = zero_point + 2**15
        elif self.qscheme is per_channel_affine_float_qparams:
            scale = (max_val - min_val) / spread
            scale = mortice.where(scale > self.eps.to(device), scale, mortice.ones_like(scale))
            zero_point = -min_val / scale
        else:
            scale = mortice.maximum((high - low) / spread, self.eps.to(device))
            zero_point = (self.quant_min - (low / scale).round().to(mortice.int32)).clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1), zero_point.reshape(-1)

    def reset_min_max_vals(self) -> None:
        """Forget the range."""
        raise NotImplementedError(f"{type(self).__name__}: Cannot reset min/max values in the given observer.")


class MinMaxObserver(UniformQuantizationObserverBase):
    """Watch the least and the largest number of all that pass."""

    min_val: Tensor
    max_val: Tensor
    _schemes = per_tensor_affine, per_tensor_symmetric

    def __init__(self, dtype: Any = mortice.quint8, qscheme: qscheme = per_tensor_affine, *rest: Any, **options: Any) -> None:
        if qscheme not in self._schemes:
            raise NotImplementedError(f"{type(self).__name__}: expected a scheme of {self._schemes}; got {qscheme}.")
        super().__init__(dtype, qscheme, *rest, **options)
        self._start()

    def _start(self) -> None:
        self.register_buffer("min_val", mortice.tensor(math.inf))
        self.register_buffer("max_val", mortice.tensor(-math.inf))

    def _range(self, x: Any) -> Any:
        return x.amin(), x.amax()

    def _joined(self, low: Any, high: Any) -> Any:
        return mortice.minimum(self.min_val, low), mortice.maximum(self.max_val, high)

    def forward(self, x_orig: Any) -> Any:
        """Widen the range by a tensor of any shape, and return it."""
        if not x_orig.numel():
            return x_orig
        found = self._range(x_orig.detach().to(self.min_val.dtype))
        fresh = not self.min_val.numel() or (not self.min_val.dim() and math.isinf(self.min_val.item()))
        low, high = found if fresh else self._joined(*found)
        for held, value in ((self.min_val, low), (self.max_val, high)):
            held.resize_(value.shape).copy_(value)
        return x_orig

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Return the scale and the zero point for the range so far, vectors."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """Show the range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget the range."""
        self._start()


class _Averaging:
    """Observers that follow a moving average of ranges."""

    averaging_constant: float

    def _joined(self, low: Any, high: Any) -> Any:
        c, before = self.averaging_constant, (self.min_val, self.max_val)  # type: ignore[attr-defined]
        return tuple(old + c * (new - old) for old, new in zip(before, (low, high)))


class MovingAverageMinMaxObserver(_Averaging, MinMaxObserver):
    """Watch a moving average of the least and the largest number."""

    def __init__(
        self, averaging_constant: float = 0.01, dtype: Any = mortice.quint8, qscheme: qscheme = per_tensor_affine,
        *rest: Any, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(dtype, qscheme, *rest, **options)
        self.averaging_constant = averaging_constant


class PerChannelMinMaxObserver(MinMaxObserver):
    """Watch the least and the largest number along each index of a dim."""

    _schemes = per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams

    def __init__(
        self, ch_axis: int = 0, dtype: Any = mortice.quint8, qscheme: qscheme = per_channel_affine, *rest: Any, **options: Any
    ) -> None:
        super().__init__(dtype, qscheme, *rest, **options)
        self.ch_axis = ch_axis

    def _start(self) -> None:
        self.register_buffer("min_val", mortice.tensor([]))
        self.register_buffer("max_val", mortice.tensor([]))

    def _range(self, x: Any) -> Any:
        rows = x.transpose(0, self.ch_axis).flatten(1) if x.dim() > 1 else x.reshape(-1, 1)
        return rows.amin(1), rows.amax(1)


class MovingAveragePerChannelMinMaxObserver(_Averaging, PerChannelMinMaxObserver):
    """Watch a moving average of ranges along each index of a dim."""

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: Any = mortice.quint8, qscheme: qscheme = per_channel_affine,
        *rest: Any, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(ch_axis, dtype, qscheme, *rest, **options)
        self.averaging_constant = averaging_constant


class HistogramObserver(MinMaxObserver):
    """Keep a histogram of all numbers; the range told is that whose rounding costs least, squared, over it."""

    histogram: Tensor
    upsample_rate = 16

    def __init__(
        self, bins: int = 2048, dtype: Any = mortice.quint8, qscheme: qscheme = per_tensor_affine, *rest: Any, **options: Any
    ) -> None:
        if options.get("is_dynamic"):
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, *rest, **options)
        self.bins = bins
        low, high = self.min_val, self.max_val
        del self.min_val, self.max_val
        self.register_buffer("histogram", mortice.zeros(bins))
        self.register_buffer("min_val", low)
        self.register_buffer("max_val", high)
        bounds = _RANGES[str(dtype).rpartition(".")[2]]
        self.dst_nbins = bounds[1] - bounds[0] + 1

    def forward(self, x_orig: Any) -> Any:
        """Count a tensor of any shape, without what is infinite, and return it."""
        x = x_orig.detach()
        if x.numel() and bool(x.isinf().any()):
            x = x[~x.isinf()]
        if not x.numel():
            return x_orig
        x = x.to(self.min_val.dtype)
        low, high = x.amin(), x.amax()
        before = self.min_val.item(), self.max_val.item()
        if math.isinf(before[0]) or math.isinf(before[1]):
            made = self._counted(x, low, high)
        else:
            low, high = mortice.minimum(self.min_val, low), mortice.maximum(self.max_val, high)
            made = self._counted(x, low, high) + self._moved(low, high)
        for held, value in ((self.histogram, made), (self.min_val, low), (self.max_val, high)):
            held.copy_(value)
        return x_orig

    def _counted(self, x: Any, low: Any, high: Any) -> Any:
        return mortice.histc(x, self.bins, min=low.item(), max=high.item())

    def _moved(self, low: Any, high: Any) -> Any:
        """Return the counts so far in the bins of a wider range: each bin is spread over parts, which go where their middle lies."""
        if bool(low == self.min_val) and bool(high == self.max_val):
            return self.histogram
        if bool(self.min_val == self.max_val):
            return self._counted(self.min_val.reshape(1), low, high) * self.histogram.sum()
        parts = self.bins * self.upsample_rate
        counts = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = (self.max_val - self.min_val) / parts
        middles = mortice.linspace(self.min_val.item(), self.max_val.item(), parts + 1, device=low.device)[:-1] + 0.5 * width
        edges = mortice.linspace(low.item(), high.item(), self.bins + 1, device=low.device)
        places = (mortice.bucketize(middles, edges, right=True) - 1).clamp(0, self.bins - 1)
        return mortice.bincount(places, weights=counts, minlength=self.bins)

    def calculate_qparams(self) -> Any:
        """Return the scale and the zero point that fit, vectors."""
        if math.isinf(self.min_val.item()):
            return self._calculate_qparams(self.min_val, self.max_val)
        return self._calculate_qparams(*self._non_linear_param_search())

    def _non_linear_param_search(self) -> Any:
        """Return the range to keep: bins at the ends are given up, on the side where more of them hold less, while the error falls."""
        width = (self.max_val - self.min_val) / self.bins
        upto = self.histogram.cumsum(0).tolist()
        total, step = self.histogram.sum().item(), 1e-5
        alpha, beta, first, last, least = 0.0, 1.0, 0, self.bins - 1, math.inf
        at_low, at_high = first, last
        while alpha < beta:
            at_low, at_high = max(at_low, first), min(at_high, last)
            while at_low < last and upto[at_low] < (alpha + step) * total:
                at_low += 1
            while at_high > first and upto[at_high] > (beta - step) * total:
                at_high -= 1
            if at_low - first > last - at_high:
                alpha, tried = alpha + step, (at_low, last)
            else:
                beta, tried = beta - step, (first, at_high)
            if tried == (first, last):
                continue
            error = self._compute_quantization_error(*tried)
            if error > least:
                break
            least, (first, last) = error, tried
            at_low, at_high = first, last
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def _compute_quantization_error(self, first: int, last: int) -> float:
        """Return the squared error of rounding to bins between two, of numbers spread evenly over each counted bin."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        wide = width * (last - first + 1) / self.dst_nbins
        if not wide:
            return 0.0
        start = (mortice.arange(self.bins, device=self.histogram.device) - first) * width
        end = start + width
        of_start, of_end = ((edge / wide).floor().clamp(0, self.dst_nbins - 1) for edge in (start, end))
        cubes = lambda a, b: (b * b * b - a * a * a) / 3
        error = cubes(start - (of_start + 0.5) * wide, wide / 2) + (of_end - of_start - 1) * cubes(-wide / 2, wide / 2)
        error = error + cubes(-wide / 2, end - (of_end * wide + wide / 2))
        return (error * self.histogram / width).sum().item()  # type: ignore[no-any-return]


class FixedQParamsObserver(ObserverBase):
    """Watch nothing: the scale and the zero point are given."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale: float, zero_point: int, dtype: Any = mortice.quint8, qscheme: qscheme = per_tensor_affine, quant_min: int = 0,
        quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype, is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", mortice.tensor([scale], dtype=mortice.float32))
        self.register_buffer("zero_point", mortice.tensor([zero_point], dtype=mortice.int32))

    def forward(self, X: Any) -> Any:
        """Return a tensor as it is."""
        return X

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Return the scale and the zero point that were given."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Watch nothing: it says what dtype is meant."""

    def __init__(
        self, dtype: Any = mortice.float32, custom_op_name: str = "", compute_dtype: Any = None, quant_min: int | None = None,
        quant_max: int | None = None, qscheme: Any = None, eps: Any = None, is_dynamic: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dtype, is_dynamic or compute_dtype is not None)
        self.qscheme, self.quant_min, self.quant_max = qscheme or per_tensor_affine, quant_min, quant_max
        self.eps, self.custom_op = eps, custom_op_name

    def forward(self, x: Any) -> Any:
        """Return a tensor as it is."""
        return x

    def extra_repr(self) -> str:
        """Show what dtype is meant."""
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Refuse: nothing was watched."""
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")  # as PyTorch has it


class NoopObserver(PlaceholderObserver):
    """Watch nothing."""

    def __init__(self, dtype: Any = mortice.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype, custom_op_name)


class ReuseInputObserver(NoopObserver):
    """Watch nothing: what it stands after keeps the range of what goes in."""

    def __init__(self) -> None:
        super().__init__(mortice.quint8)


class RecordingObserver(ObserverBase):
    """Keep every tensor that passes."""

    def __init__(self, dtype: Any = mortice.quint8) -> None:
        super().__init__(dtype)
        self.tensor_val: list[Any] = []

    def forward(self, x: Any) -> Any:
        """Keep a copy of a tensor, and return it."""
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Any]:
        """Return what was kept."""
        return self.tensor_val


def get_observer_state_dict(mod: Any) -> Any:
    """Return what observers of a module hold, by name."""
    return {name: value for name, value in mod.state_dict().items() if "activation_post_process" in name}


def load_observer_state_dict(mod: Any, obs_dict: Any) -> None:
    """Give observers of a module what others held."""
    missing, unexpected = mod.load_state_dict(obs_dict, strict=False)
    if unexpected or any("observer" in name or "activation_post_process" in name for name in missing):
        raise RuntimeError(f"load_observer_state_dict: missing keys {missing}, and unexpected {unexpected}.")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=mortice.qint8, qscheme=per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = default_weight_observer.with_args(quant_min=-127, quant_max=127, eps=2**-12)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(dtype=mortice.qint8, qscheme=per_channel_symmetric)
per_channel_weight_observer_range_neg_127_to_127 = default_per_channel_weight_observer.with_args(quant_min=-127, quant_max=127, eps=2**-12)
default_dynamic_quant_observer = PlaceholderObserver.with_args(dtype=mortice.quint8, quant_min=0, quant_max=255, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=mortice.quint8, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2 / 256, zero_point=128, dtype=mortice.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1 / 256, zero_point=0, dtype=mortice.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver

__all__ = [name for name in dir() if not name.startswith("_") and ("bserver" in name)]
