"""Converting the memory format of convolutions' weights; values stay the same."""

from __future__ import annotations

from typing import Any

from mortice.nn.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _converted(module: Any, memory_format: Any, kinds: tuple[type, ...]) -> Any:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Put the weights of all two-dimensional convolutions in a module into a memory format."""
    return _converted(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Put the weights of all three-dimensional convolutions in a module into a memory format."""
    return _converted(module, memory_format, (Conv3d, ConvTranspose3d))
