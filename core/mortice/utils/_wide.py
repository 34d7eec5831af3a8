"""In which dtype sums are made where precision counts."""

from functools import cache
from typing import Any

import mortice


@cache
def wide(device: Any) -> Any:
    """Return float64 where a device has it, float32 elsewhere."""
    try:
        mortice.empty(0, dtype=mortice.float64, device=device)
    except RuntimeError:
        return mortice.float32
    return mortice.float64
