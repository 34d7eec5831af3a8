"""mortice.cuda.amp: the old names of `mortice.amp` for CUDA devices."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from mortice import amp as _amp
from mortice import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses


def _old(name: str) -> None:
    new = f"`torch.amp.{name}('cuda', args...)`"
    warnings.warn(f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use {new} instead.", FutureWarning, stacklevel=3)


class autocast(_amp.autocast):
    """`mortice.amp.autocast` for CUDA devices."""

    def __init__(self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True) -> None:
        _old("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """`mortice.amp.GradScaler` for CUDA devices."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        _old("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


custom_fwd = functools.partial(_amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(_amp.custom_bwd, device_type="cuda")
