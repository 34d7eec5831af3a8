"""Images for summaries: from tensors of any format to PNG, without an image library."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.utils._wide import wide
from mortice.utils.tensorboard.wire import message, packed


def png(image: Tensor) -> bytes:
    """Return a tensor of bytes (height, width, channels) as a PNG file; 1 to 4 channels."""
    height, width, channels = image.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    flat = bytes(image.contiguous().cpu()._host().view)
    length = width * channels
    lines = b"".join(b"\0" + flat[i * length : (i + 1) * length] for i in range(height))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)), (b"IDAT", zlib.compress(lines, 6)), (b"IEND", b""),
    )  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def grid(images: Tensor, columns: int = 8) -> Tensor:
    """Lay images (N, 3, H, W) out in rows of `columns`, without gaps."""
    n, channels, height, width = images.shape
    columns = min(n, columns)
    rows = math.ceil(n / columns)
    images = mortice.cat([images, images.new_zeros((rows * columns - n, channels, height, width))])
    return (
        images.reshape(rows, columns, channels, height, width)
        .permute(2, 0, 3, 1, 4)
        .reshape(channels, rows * height, -1)
    )


def arranged(image: Any, formats: str) -> Tensor:
    """Return an image, or a grid of several, as (height, width, channels); grey ones get three channels."""
    image = mortice.as_tensor(image).detach()
    letters = formats.upper()
    if len(set(letters)) != len(letters) or set(letters) - set("NCHW") or not {"H", "W"} <= set(letters):
        raise ValueError(f"tensorboard: expected dataformats of the letters N, C, H and W, each once; got {formats!r}.")
    if len(letters) != image.ndim:
        raise ValueError(
            f"tensorboard: expected an image {letters}; got shape {tuple(image.shape)}. Say its dataformats."
        )
    if "C" not in letters:
        letters, image = letters + "C", image.unsqueeze(-1)
    if "N" not in letters:
        letters, image = "N" + letters, image.unsqueeze(0)
    image = image.permute([letters.index(letter) for letter in "NCHW"])
    if image.shape[1] == 1:
        image = image.expand(-1, 3, -1, -1)
    return grid(image).permute(1, 2, 0) if len(image) > 1 else image[0].permute(1, 2, 0)


def as_bytes(image: Tensor) -> Tensor:
    """Return 0 to 255 of floats from 0 to 1; bytes stay."""
    if image.dtype == mortice.uint8:
        return image
    return (image.float() * 255).nan_to_num(0.0).clamp(0, 255).to(mortice.uint8)


def summary_image(image: Tensor) -> bytes:
    """Return an image (height, width, channels) as the Image message of a summary."""
    height, width, channels = image.shape
    if channels not in (1, 2, 3, 4):
        raise ValueError(
            f"tensorboard: expected 1 to 4 channels; got {channels} of shape {tuple(image.shape)}. Say its dataformats."
        )
    return message(f1=height, f2=width, f3=channels, f4=png(as_bytes(image)))


def boxed(image: Tensor, boxes: Any, labels: Sequence[str] | None, scale: float) -> Tensor:
    """Return an image (height, width, channels) with red boxes (N, 4), given by their corners, and their labels; scaled."""
    from PIL import Image, ImageDraw, ImageFont

    height, width, channels = image.shape
    flat = bytes(as_bytes(image).contiguous().cpu()._host().view)
    picture = Image.frombytes({3: "RGB", 4: "RGBA"}[channels], (width, height), flat)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default()
    for i, (left, top, right, bottom) in enumerate(mortice.as_tensor(boxes).tolist()):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="red")
        if labels is not None and labels[i]:
            x0, y0, x1, y1 = font.getbbox(labels[i])
            wide, high, margin = x1 - x0, y1 - y0, math.ceil(0.05 * (y1 - y0))
            draw.rectangle([(left, bottom - high - 2 * margin), (left + wide, bottom)], fill="red")
            draw.text((left + margin, bottom - high - margin), labels[i], fill="black", font=font)
    if scale != 1:
        picture = picture.resize((int(width * scale), int(height * scale)), Image.Resampling.LANCZOS)
    data = bytearray(picture.tobytes())
    return mortice.frombuffer(data, dtype=mortice.uint8).reshape(picture.height, picture.width, channels)


def figure(drawn: Any, close: bool) -> Tensor:
    """Return what a matplotlib figure shows as a tensor (channels, height, width)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    width, height = canvas.get_width_height()
    data = bytearray(canvas.buffer_rgba())
    if close:
        from matplotlib import pyplot

        pyplot.close(drawn)
    return mortice.frombuffer(data, dtype=mortice.uint8).reshape(height, width, 4)[:, :, :3].permute(2, 0, 1)


def spectrum(values: Tensor, bins: Any, most: int | None) -> bytes:
    """Return a histogram of numbers as HistogramProto; reads only the counts back from the device."""
    values = values.detach().flatten()
    if not len(values):
        raise ValueError("add_histogram: expected values; the input has none.")
    values = values.to(wide(values.device)).sort().values
    edges = _edges(values, bins)
    inner = mortice.tensor(edges, dtype=values.dtype, device=values.device)
    below = mortice.searchsorted(values, inner)
    last = mortice.searchsorted(values, inner[-1:], right=True)
    counts = mortice.cat([below[:-1], last]).diff().tolist()
    if most is not None and len(counts) > most:
        step = len(counts) // most
        edges = [*edges[:-1:step], edges[-1]]
        counts = [sum(counts[i : i + step]) for i in range(0, len(counts), step)]
    first = next((i for i, n in enumerate(counts) if n), 0)
    end = next((i for i in range(len(counts), 0, -1) if counts[i - 1]), 1)
    # TensorBoard has only right edges: an empty bin in front says where the first one begins.
    counts, limits = [0, *counts[first:end]], edges[first : end + 1]
    about = mortice.stack([values.amin(), values.amax(), values.sum(), values.dot(values)]).tolist()
    return histogram(about[0], about[1], len(values), about[2], about[3], limits, counts)


def histogram(
    low: float, high: float, n: int, total: float, squares: float, limits: list[float], counts: list[Any]
) -> bytes:
    """Return a histogram that is given by its counts as HistogramProto."""
    return message(
        f1=float(low),
        f2=float(high),
        f3=float(n),
        f4=float(total),
        f5=float(squares),
        f6=packed(limits),
        f7=packed(counts),
    )


def _growing() -> list[float]:
    edge, found = 1e-12, []
    while edge < 1e20:
        found.append(edge)
        edge *= 1.1
    return found


# Widths of bins from sorted values, their number and their span, as NumPy's `bins` names them.
_RULES = {
    "sqrt": lambda x, n, span: span / math.sqrt(n),
    "sturges": lambda x, n, span: span / (math.log2(n) + 1),
    "rice": lambda x, n, span: span / (2 * n ** (1 / 3)),
    "scott": lambda x, n, span: (24 * math.sqrt(math.pi) / n) ** (1 / 3) * x.std(correction=0).item(),
    "fd": lambda x, n, span: 2 * (x.quantile(0.75) - x.quantile(0.25)).item() / n ** (1 / 3),
    "auto": lambda x, n, span: min(filter(None, (_RULES["fd"](x, n, span), _RULES["sturges"](x, n, span)))),
}


def _edges(values: Tensor, bins: Any) -> list[float]:
    if isinstance(bins, str) and bins == "tensorflow":
        positive = _growing()
        return [*(-x for x in reversed(positive)), 0.0, *positive]
    if not isinstance(bins, (str, int)):
        return mortice.as_tensor(bins).tolist()
    low, high = values[0].item(), values[-1].item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(
            f"add_histogram: expected finite values for bins={bins!r}; got {low} to {high}. bins='tensorflow' takes them."
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
        number = 1 if isinstance(bins, str) else bins
    elif isinstance(bins, str):
        if bins not in _RULES:
            raise ValueError(
                f"add_histogram: expected bins to be 'tensorflow', a number, edges, or one of {', '.join(_RULES)}; got {bins!r}."
            )
        width = _RULES[bins](values, len(values), high - low)
        number = math.ceil((high - low) / width) if width else 1
    else:
        number = bins
    return mortice.linspace(low, high, number + 1, dtype=mortice.float64, device="cpu").tolist()
