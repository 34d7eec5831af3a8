"""mortice.cuda.amp: the old names of `mortice.amp` for CUDA devices."""

from __future__ import annotations

from typing import Any

from mortice import amp as _amp
from mortice import float16
from mortice.addresses import attribute
from mortice.amp.autocast_mode import old_name
from mortice.cuda.devices import is_available

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses


class autocast(_amp.autocast):
    """`mortice.amp.autocast` for CUDA devices."""

    def __init__(self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True) -> None:
        old_name("cuda", "autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """`mortice.amp.GradScaler` for CUDA devices."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        old_name("cuda", "GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """Decorate a forward, as `mortice.amp.custom_fwd` for CUDA devices."""
    old_name("cuda", "custom_fwd", "args..., device_type='cuda'")
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Decorate a backward, as `mortice.amp.custom_bwd` for CUDA devices."""
    old_name("cuda", "custom_bwd", "args..., device_type='cuda'")
    return _amp.custom_bwd(bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """Tell whether there is no CUDA device."""
    return not is_available()


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
