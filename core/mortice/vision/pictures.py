"""Pillow's images from tensors and back; the one place of `vision` that asks for Pillow, when it is called for."""

from __future__ import annotations

import importlib
from typing import Any

import mortice as mt

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def pillow(module: str = "Image") -> Any:
    """Return a module of Pillow's."""
    try:
        return importlib.import_module(f"PIL.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "PIL":
            raise
        raise ModuleNotFoundError(
            "vision: image files and PIL images need Pillow, which is not installed (pip install 'mortice[vision]').",
            name="PIL",
        ) from error


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
