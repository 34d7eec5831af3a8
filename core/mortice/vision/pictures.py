"""Pillow's images from tensors and back, for files, grids and drawings: eight or sixteen bits a channel."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice.vision._pillow import pillow

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def to_image(pixels: Any) -> Any:
    """Make an image of the bytes of a tensor or array: height and width, or height, width and channels."""
    height, width = pixels.shape[:2]
    mode = _MODES[pixels.shape[2] if len(pixels.shape) == 3 else 1]
    data = pixels._host().tobytes() if isinstance(pixels, mt.Tensor) else pixels.tobytes()
    return pillow().frombytes(mode, (width, height), data)


def to_tensor(image: Any) -> Any:
    """Return the pixels of an image as a tensor of channels, height and width; uint16 where it has sixteen bits."""
    deep = image.mode.startswith("I;16")
    data = bytearray(image.tobytes("raw", "I;16") if deep else image.tobytes())
    pixels = mt.frombuffer(data, dtype=mt.uint16 if deep else mt.uint8)
    return pixels.reshape(image.height, image.width, -1).permute(2, 0, 1).contiguous()


def to_array(pixels: Any) -> Any:
    """Return a NumPy array, which is what torchvision's datasets hold; the tensor itself where NumPy is not installed."""
    try:
        return pixels.numpy(force=True)
    except RuntimeError as error:
        if not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        return pixels
