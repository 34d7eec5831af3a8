"""custom_fwd and custom_bwd: what `forward` and `backward` of an autograd Function say about autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import mortice
from mortice import Tensor
from mortice.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorate the `forward` of a Function so that its `backward` runs under the same autocast.

    Args:
        cast_inputs: a dtype; inputs are cast to it, and autocast is off inside, where autocast is on outside.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    _check(device_type)

    @functools.wraps(fwd)
    def run(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._fwd_dtype = get_autocast_dtype(device_type)  # not _dtype: plain functions are decorated too, and this is a tensor
        on = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return run


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate the `backward` of a Function so that it runs under the autocast of its `forward`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    _check(device_type)

    @functools.wraps(bwd)
    def run(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._fwd_dtype):
            return bwd(ctx, *args, **kwargs)

    return run


def _check(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Cast the floating tensors of a device type in a structure, but for float64."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype != mortice.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, Mapping):
        return {k: _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value
