"""Numbers rounded as quantized ones would be, with gradients; the names of PyTorch's schemes of quantization."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import Tensor, memory_format

__all__ = [
    "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "fused_moving_avg_obs_fake_quant", "per_channel_affine",
    "per_channel_affine_float_qparams", "per_channel_symmetric", "per_tensor_affine", "per_tensor_symmetric", "qscheme",
]  # fmt: skip


class qscheme(memory_format):
    """How whole numbers stand for real ones: by one scale or one for each channel, with or without a zero point."""


per_tensor_affine, per_tensor_symmetric = qscheme("per_tensor_affine"), qscheme("per_tensor_symmetric")
per_channel_affine, per_channel_symmetric = qscheme("per_channel_affine"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


class FakeQuantizeAffine(mortice.autograd.Function):
    """Round to what a scale and a zero point can express; the gradient passes where nothing was cut off."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
        """Compute in float32, or the input's dtype where that is wider."""
        exact = x if x.dtype is mortice.float64 else x.float()
        scale, whole = scale.to(exact.dtype), not zero_point.is_floating_point()
        zero_point = zero_point.to(exact.dtype)
        q = exact * (1 / scale)
        q = q.round() + zero_point if whole else (q + zero_point).round()
        ctx.save_for_backward((q >= quant_min) & (q <= quant_max))
        return ((q.clamp(quant_min, quant_max) - zero_point) * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """Pass the gradient of what lies within."""
        (inside,) = ctx.saved_tensors
        return g * inside.to(g.dtype), None, None, None, None


def _check(name: str, x: Any, quant_min: int, quant_max: int) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(x).__name__}")
    if not x.is_floating_point():
        raise NotImplementedError(f"{name}: not implemented for '{x.dtype}'; expected floats. Convert with .float().")
    if quant_min > quant_max:
        raise RuntimeError(f"{name}: `quant_min` should be less than or equal to `quant_max`; got {quant_min} and {quant_max}.")


def _check_zero_point(name: str, zero_point: Any, quant_min: int, quant_max: int) -> None:
    if not zero_point.is_floating_point() and bool(((zero_point < quant_min) | (zero_point > quant_max)).any()):
        raise RuntimeError(
            f"{name}: `zero_point` must be between `quant_min` and `quant_max`; got {zero_point.tolist()}, {quant_min} and {quant_max}."
        )


def fake_quantize_per_tensor_affine(input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    """Return `(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale`, of the input's shape.

    Raises:
        RuntimeError: where the bounds, or the zero point and the bounds, do not fit each other.
    """
    name = "fake_quantize_per_tensor_affine"
    _check(name, input, quant_min, quant_max)
    if not isinstance(scale, Tensor):
        scale = mortice.tensor(float(scale), dtype=mortice.float32, device=input.device)
    if not isinstance(zero_point, Tensor):
        zero_point = mortice.tensor(int(zero_point), dtype=mortice.int32, device=input.device)
    _check_zero_point(name, zero_point, quant_min, quant_max)
    return FakeQuantizeAffine.apply(input, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)


def fake_quantize_per_channel_affine(input: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int) -> Any:
    """Do so with a scale and a zero point, vectors, for each index along a dim.

    Raises:
        RuntimeError: where there are not as many as the input has along `axis`.
    """
    name = "fake_quantize_per_channel_affine"
    _check(name, input, quant_min, quant_max)
    if scale.dtype is not mortice.float32:
        raise RuntimeError(f"{name}: Scale must be Float, found {scale.dtype}")
    if zero_point.dtype not in (mortice.int32, mortice.float32, mortice.float16):
        raise RuntimeError(f"{name}: Zero-point must be Int32, Float or Half, found {zero_point.dtype}")
    if not -input.dim() <= axis < input.dim():
        raise IndexError(f"{name}: Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {axis})")
    if scale.dim() != 1 or zero_point.shape != scale.shape or len(scale) != input.shape[axis]:
        raise RuntimeError(
            f"{name}: dimensions of scale and zero-point are not consistent with input tensor; got {list(scale.shape)}, "
            f"{list(zero_point.shape)} and {input.shape[axis]} along axis {axis}."
        )
    _check_zero_point(name, zero_point, quant_min, quant_max)
    shape = [1] * input.dim()
    shape[axis] = -1
    return FakeQuantizeAffine.apply(input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


_SMALLEST = 6.1e-5  # what a scale is at least; ranges grow with it


def choose(low: float, high: float, quant_min: int, quant_max: int, symmetric: bool) -> tuple[float, int]:
    """Return the scale and the zero point for a range of numbers, which zero belongs to."""
    low, high = min(low, 0.0), max(high, 0.0)
    spread = quant_max - quant_min
    mirrored = symmetric and low < 0 < high
    if mirrored:
        most = max(-low / (spread // 2 + 1), high / (spread // 2))
        low, high = -most * (spread // 2 + 1), most * (spread // 2)
    scale = (high - low) / spread
    if scale < 1e-45 or scale < 1 / 3.4028235e38:
        scale = 0.1
    if scale < _SMALLEST:
        if low == 0:
            high = _SMALLEST * spread
        elif high == 0:
            low = -_SMALLEST * spread
        else:
            low, high = low * _SMALLEST / scale, high * _SMALLEST / scale
        scale = _SMALLEST
    by_low = abs(quant_min) + abs(low / scale) < abs(quant_max) + abs(high / scale)
    start = (quant_min + quant_max) / 2 if mirrored else quant_min - low / scale if by_low else quant_max - high / scale
    return scale, quant_min if start < quant_min else quant_max if start > quant_max else round(start)


def fused_moving_avg_obs_fake_quant(
    input: Any, observer_on: Any, fake_quant_on: Any, running_min: Any, running_max: Any, scale: Any, zero_point: Any,
    averaging_const: float, quant_min: int, quant_max: int, ch_axis: int, per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Any:  # fmt: skip
    """Follow the range of what comes in, and return it rounded to that; range, scale and zero point are written in place."""
    if bool(observer_on):
        seen = input.detach()
        if per_row_fake_quant:
            rows = seen.transpose(0, ch_axis).flatten(1)
            found = rows.amin(1), rows.amax(1)
        else:
            found = seen.amin().reshape(1), seen.amax().reshape(1)
        for running, new in zip((running_min, running_max), found):
            if not running.numel():
                running.resize_(new.shape).fill_(math.inf)
            new = new.to(running.dtype).reshape(running.shape)
            running.copy_(mortice.where(running.isinf(), new, running + averaging_const * (new - running)))
    if not bool(fake_quant_on):
        return input
    lows, highs = running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist()
    chosen = [choose(low, high, quant_min, quant_max, symmetric_quant) for low, high in zip(lows, highs)]
    for written, values in zip((scale, zero_point), zip(*chosen)):
        if written.numel() != len(values):
            written.resize_(len(values))
        written.copy_(mortice.tensor(values, dtype=written.dtype, device=written.device).reshape(written.shape))
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)
