"""mortice.amp: mixed precision: autocast, GradScaler, and what custom autograd functions need."""

from __future__ import annotations

from mortice.amp.autocast_mode import autocast, is_autocast_available
from mortice.amp.custom import custom_bwd, custom_fwd
from mortice.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
