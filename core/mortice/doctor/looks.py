"""Reading values: what a rule pays for, and cannot do everywhere."""

from __future__ import annotations

from typing import Any


class Rarely:
    """Says yes to the first, second, fourth, eighth ... time: for looks that wait for a device."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> bool:
        self.times += 1
        return not self.times & (self.times - 1)


def number(t: Any) -> float | None:
    """Return the value of a tensor of one element; None where it has none to read, as inside vmap."""
    try:
        return float(t.item())
    except RuntimeError:
        return None
