"""Image files as tensors of channels, height and width, through Pillow; torchvision.io's names."""

from __future__ import annotations

import io
import os
from enum import Enum
from typing import Any

import mortice as mt
from mortice.vision._pillow import pillow
from mortice.vision.pictures import to_image, to_tensor

__all__ = [
    "ImageReadMode", "decode_avif", "decode_gif", "decode_image", "decode_jpeg", "decode_png", "decode_webp", "encode_jpeg",
    "encode_png", "read_file", "read_image", "write_file", "write_jpeg", "write_png",
]  # fmt: skip

Path = str | os.PathLike[str]


class ImageReadMode(Enum):
    """To what the pixels of a file are converted; functions take the names as well."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


_MODES = {ImageReadMode.GRAY: "L", ImageReadMode.GRAY_ALPHA: "LA", ImageReadMode.RGB: "RGB", ImageReadMode.RGBA: "RGBA"}


def read_file(path: Path) -> Any:
    """Return the bytes of a file as a 1-D uint8 tensor."""
    try:
        with open(path, "rb") as file:
            data = bytearray(file.read())
    except OSError as error:
        raise RuntimeError(str(error)) from error
    if not data:
        raise RuntimeError(f"read_file: expected a file that is not empty; got {os.fspath(path)}.")
    return mt.frombuffer(data, dtype=mt.uint8)


def write_file(filename: Path, data: Any) -> None:
    """Write a 1-D uint8 tensor to a file."""
    if data.dtype != mt.uint8:
        raise RuntimeError(f"Input tensor dtype should be uint8; got {data.dtype}")
    if data.ndim != 1:
        raise RuntimeError(f"Input data should be a 1-dimensional tensor; got {data.ndim} dimensions")
    with open(filename, "wb") as file:
        file.write(data._host().tobytes())


def _decode(name: str, data: Any, mode: ImageReadMode | str, exif: bool, *formats: str) -> Any:
    wanted = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    if data.dtype != mt.uint8 or data.ndim != 1 or not len(data):
        raise RuntimeError(f"{name}: expected the bytes of a file, 1-D uint8; got {data.dtype} of {tuple(data.shape)}.")
    image = pillow()
    try:
        with image.open(io.BytesIO(data._host().tobytes()), formats=formats or None) as opened:
            if opened.format == "GIF":
                frames = []
                for i in range(opened.n_frames):
                    opened.seek(i)
                    frames.append(to_tensor(opened.convert("RGB")))
                return frames[0] if len(frames) == 1 else mt.stack(frames)
            if wanted is ImageReadMode.GRAY:
                opened.draft("L", opened.size)  # of a JPEG file the luma, which it has
            found = pillow("ImageOps").exif_transpose(opened) if exif else opened
            return to_tensor(_converted(found, _MODES.get(wanted)))
    except image.DecompressionBombError:
        raise
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        expected = " or ".join(formats) or "an image"
        raise RuntimeError(
            f"{name}: expected {expected}; got {len(data)} bytes that cannot be read: {error}"
        ) from error


def _converted(image: Any, mode: str | None) -> Any:
    deep = image.mode.startswith("I;16")
    if mode is None:
        plain = deep or image.mode in ("L", "LA", "RGB", "RGBA")
        clear = image.mode == "PA" or "transparency" in image.info
        return image if plain else image.convert("L" if image.mode == "1" else "RGBA" if clear else "RGB")
    if deep and mode != "L":
        raise ValueError(f"its sixteen bits are read as UNCHANGED or GRAY; got {mode}")
    return image if deep else image.convert(mode)


def decode_image(
    input: Any, mode: ImageReadMode | str = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Any:
    """Read an image from a path or from the bytes of a file; uint16 where a PNG file has sixteen bits."""
    data = input if isinstance(input, mt.Tensor) else read_file(input)
    return _decode("decode_image", data, mode, apply_exif_orientation)


def read_image(
    path: Path, mode: ImageReadMode | str = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Any:
    """Read an image file."""
    data = read_file(path)
    try:
        return decode_image(data, mode, apply_exif_orientation)
    except RuntimeError as error:
        raise RuntimeError(f"{os.fspath(path)}: {error}") from error


def decode_jpeg(
    input: Any,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    device: Any = "cpu",
    apply_exif_orientation: bool = False,
) -> Any:
    """Read JPEG data, or a list of them, and put the pixels on a device."""
    if isinstance(input, list):
        if not input:
            raise ValueError("Input list must contain at least one element")
        return [decode_jpeg(data, mode, device, apply_exif_orientation) for data in input]
    found = _decode("decode_jpeg", input, mode, apply_exif_orientation, "JPEG")
    return found if str(device) == "cpu" else found.to(device)


def decode_png(
    input: Any, mode: ImageReadMode | str = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Any:
    """Read PNG data."""
    return _decode("decode_png", input, mode, apply_exif_orientation, "PNG")


def decode_gif(input: Any) -> Any:
    """Read GIF data as RGB, with a dimension more where there are several pictures."""
    return _decode("decode_gif", input, ImageReadMode.RGB, False, "GIF")


def decode_webp(input: Any, mode: ImageReadMode | str = ImageReadMode.UNCHANGED) -> Any:
    """Read WebP data."""
    return _decode("decode_webp", input, mode, False, "WEBP")


def decode_avif(input: Any, mode: ImageReadMode | str = ImageReadMode.UNCHANGED) -> Any:
    """Read AVIF data, where Pillow was built for it."""
    return _decode("decode_avif", input, mode, False, "AVIF")


def _encode(input: Any, format: str, **options: Any) -> Any:
    if input.dtype != mt.uint8:
        raise RuntimeError(f"Input tensor dtype should be uint8; got {input.dtype}")
    if input.ndim != 3:
        raise RuntimeError(f"Input data should be a 3-dimensional tensor; got {input.ndim} dimensions")
    if input.shape[0] not in (1, 3):
        raise RuntimeError(f"The number of channels should be 1 or 3, got: {input.shape[0]}")
    file = io.BytesIO()
    to_image(input.detach().permute(1, 2, 0)).save(file, format=format, **options)
    return mt.frombuffer(bytearray(file.getbuffer()), dtype=mt.uint8)


def encode_png(input: Any, compression_level: int = 6) -> Any:
    """Return the bytes of a PNG file of a uint8 image with one or three channels."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError(f"Compression level should be between 0 and 9; got {compression_level}")
    return _encode(input, "PNG", compress_level=compression_level)


def encode_jpeg(input: Any, quality: int = 75) -> Any:
    """Return the bytes of a JPEG file of a uint8 image with one or three channels, or those of a list of images."""
    if not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if isinstance(input, list):
        if not input:
            raise ValueError("encode_jpeg requires at least one input tensor when a list is passed")
        return [encode_jpeg(image, quality) for image in input]
    return _encode(input, "JPEG", quality=quality)


def write_png(input: Any, filename: Path, compression_level: int = 6) -> None:
    """Write a uint8 image with one or three channels to a PNG file."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Any, filename: Path, quality: int = 75) -> None:
    """Write a uint8 image with one or three channels to a JPEG file."""
    write_file(filename, encode_jpeg(input, quality))
