"""PIL images as tensors of the same pixels, and back, without NumPy: they cross as bytes, one plane a band."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import mortice
from mortice.vision._pillow import pillow

WORDS = "I;16" if sys.byteorder == "little" else "I;16B"  # 16-bit grey in this machine's byte order
# Images of one band whose pixels are no bytes, and the dtypes that hold them.
PLAIN = {"I": mortice.int32, "F": mortice.float32, WORDS: mortice.uint16}
_FOREIGN = {"I;16", "I;16B", "I;16L", "I;16N"} - {WORDS}


def pixels(img: Any) -> mortice.Tensor:
    """Return the pixels as a tensor (C, H, W) of memory of its own, in the image's own type; they lie pixel by pixel."""
    if img.mode in _FOREIGN:
        img = img.convert("I").convert(WORDS)
    (width, height), depth, dtype = img.size, len(img.getbands()), PLAIN.get(img.mode, mortice.uint8)
    if not width or not height:
        return mortice.empty((depth, height, width), dtype=mortice.bool if img.mode == "1" else dtype)
    bits = img.mode == "1"
    flat = mortice.frombuffer(bytearray((img.convert("L") if bits else img).tobytes()), dtype=dtype)
    return (flat != 0 if bits else flat).reshape(height, width, depth).permute(2, 0, 1)


def planes(img: Any) -> mortice.Tensor:
    """Return the same with each band by itself."""
    bands, (width, height) = img.getbands(), img.size
    if len(bands) == 1 or not width or not height:
        return pixels(img)
    img = _lab(img) if img.mode == "LAB" else img
    data = bytearray().join(_band_bytes(img, bands))
    return mortice.frombuffer(data, dtype=mortice.uint8).reshape(len(bands), height, width)


def _lab(img: Any) -> Any:
    """Return a LAB image's bands with a and b counted from 128 as in its bytes, or back: it is one and the same."""
    lightness, *ab = img.split()
    return pillow().merge("LAB", [lightness, *[band.point([i ^ 128 for i in range(256)]) for band in ab]])


def _band_bytes(img: Any, bands: Sequence[str]) -> list[bytes]:
    try:  # packing a band by itself is several times faster than splitting or transposing
        return [img.tobytes("raw", band) for band in bands]
    except ValueError:
        return [band.tobytes() for band in img.split()]


def image(pixels: mortice.Tensor, mode: str) -> Any:
    """Make a PIL image of a tensor (C, H, W) of the type that `planes` gives for its mode."""
    Image = pillow()
    channels, height, width = pixels.shape
    if mode == "1":
        return image(pixels.to(mortice.uint8) * 255, "L").convert("1")
    data = memoryview(pixels.detach().contiguous()._host().tobytes())
    if channels == 1:
        return Image.frombytes(mode, (width, height), data)
    n = height * width
    made = Image.merge(mode, [Image.frombytes("L", (width, height), data[i * n : i * n + n]) for i in range(channels)])
    return _lab(made) if mode == "LAB" else made
