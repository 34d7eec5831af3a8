"""mortice.cpu.amp: the old names of `mortice.amp` for the CPU."""

from __future__ import annotations

from typing import Any

from mortice import amp as _amp
from mortice import bfloat16
from mortice.amp.autocast_mode import old_name

__all__ = ["GradScaler", "autocast"]


class autocast(_amp.autocast):
    """`mortice.amp.autocast` for the CPU."""

    def __init__(self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True) -> None:
        old_name("cpu", "autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """`mortice.amp.GradScaler` for the CPU."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        old_name("cpu", "GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
