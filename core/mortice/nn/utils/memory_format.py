"""Converting the memory format of weights: accepted, since every tensor here is row-major."""

from __future__ import annotations

from typing import Any


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Return the module as it is: memory formats change no values, and there is only one here."""
    return module


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Return the module as it is: memory formats change no values, and there is only one here."""
    return module
