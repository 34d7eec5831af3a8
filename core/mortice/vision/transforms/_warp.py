"""The transforms of tensors that sample an image elsewhere: affine and perspective maps, elastic ones, Gaussian blur.

The grids are computed as torchvision's are, so that pixels half way between two others fall to the same side.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.nn import functional as F
from mortice.notice import warn
from mortice.vision.transforms._tensor import get_dimensions, in_float


def _check(img: Tensor, interpolation: str, fill: Any) -> None:
    channels = get_dimensions(img)[0]
    if fill is not None and not isinstance(fill, (int, float, tuple, list)):
        warn("Argument fill should be either int, float, tuple or list")
    if isinstance(fill, (tuple, list)) and len(fill) > 1 and len(fill) != channels:
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of channels of the image "
            f"({len(fill)} != {channels})"
        )
    if interpolation not in ("nearest", "bilinear"):
        raise ValueError(f"Interpolation mode '{interpolation}' is unsupported with Tensor input")


def _floats(img: Tensor, values: Any) -> Tensor:
    dtype = mortice.float64 if img.dtype == mortice.float64 else mortice.float32
    return mortice.tensor(values, dtype=dtype, device=img.device)


def _sample(img: Tensor, grid: Tensor, mode: str, fill: Any) -> Tensor:
    """Sample an image at a grid (1, height, width, 2); outside of it is the fill, black when there is none."""

    def of_batch(x: Tensor) -> Tensor:
        places = grid.expand(x.shape[0], *grid.shape[1:])
        if fill is None:
            return F.grid_sample(x, places, mode=mode, padding_mode="zeros", align_corners=False)
        inside = x.new_ones(x.shape[0], 1, *x.shape[2:])
        out = F.grid_sample(mortice.cat([x, inside], 1), places, mode=mode, padding_mode="zeros", align_corners=False)
        out, share = out[:, :-1], out[:, -1:]
        colour = _floats(x, fill if isinstance(fill, (tuple, list)) else [fill]).reshape(1, -1, 1, 1)
        return mortice.where(share < 0.5, colour, out) if mode == "nearest" else out * share + (1.0 - share) * colour

    return in_float(of_batch, img)


def _linear(img: Tensor, rows: Tensor, width: int, height: int, first: tuple[float, float]) -> list[Tensor]:
    """Return a * x + b * y + c at each pixel's centre, counted from a first one, for each row (a, b, c)."""
    x, y = (_floats(img, start) + mortice.arange(n, device=img.device) for start, n in zip(first, (width, height)))
    return [row[0] * x.reshape(1, -1) + row[1] * y.reshape(-1, 1) + row[2] for row in rows.unbind(0)]


def _scaled(img: Tensor, numbers: Sequence[float]) -> Tensor:
    """Return 6 numbers as two rows, for x and y in halves of the image's size."""
    h, w = img.shape[-2:]
    return _floats(img, numbers).reshape(2, 3) / _floats(img, [[0.5 * w], [0.5 * h]])


def _affine_grid(img: Tensor, matrix: Sequence[float], width: int, height: int) -> Tensor:
    rows = _linear(img, _scaled(img, matrix), width, height, (0.5 - 0.5 * width, 0.5 - 0.5 * height))
    return mortice.stack(rows, -1).unsqueeze(0)


def affine(img: Tensor, matrix: list[float], interpolation: str, fill: Any) -> Tensor:
    """Look up each pixel at the place that a matrix of 6 numbers gives, counted from the centre."""
    _check(img, interpolation, fill)
    return _sample(img, _affine_grid(img, matrix, img.shape[-1], img.shape[-2]), interpolation, fill)


def rotate(img: Tensor, matrix: list[float], interpolation: str, expand: bool, fill: Any) -> Tensor:
    """Look up each pixel as `affine` does; `expand` makes room for the corners."""
    _check(img, interpolation, fill)
    h, w = img.shape[-2:]
    width, height = _bounds(matrix, w, h) if expand else (w, h)
    return _sample(img, _affine_grid(img, matrix, width, height), interpolation, fill)


def _bounds(matrix: Sequence[float], w: int, h: int) -> tuple[int, int]:
    """Return the width and height of the box around the corners that a rotation moves."""
    size = []
    for row, n in ((matrix[:3], w), (matrix[3:], h)):
        ends = [row[0] * x * w / 2 + row[1] * y * h / 2 + row[2] + n / 2 for x in (-1, 1) for y in (-1, 1)]
        # In ten-thousandths of a pixel, since what rounding left over is no pixel.
        low, high = (math.trunc(round(v * 1e4, 2)) for v in (min(ends), max(ends)))
        size.append(-(-high // 10000) - low // 10000)
    return size[0], size[1]


def perspective_coefficients(start: Sequence[Sequence[int]], end: Sequence[Sequence[int]]) -> list[float]:
    """Return the 8 numbers of the map that takes four end points back to the start points, rounded to float32."""
    if len(start) != 4 or len(end) != 4:
        raise ValueError(f"Please provide exactly four corners, got {len(start)} startpoints and {len(end)} endpoints.")
    rows: list[list[float]] = []
    for (x, y), (u, v) in zip(end, start):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y, u], [0, 0, 0, x, y, 1, -v * x, -v * y, v]]
    return list(struct.unpack("8f", struct.pack("8f", *_solve(rows))))


def _solve(rows: list[list[float]]) -> list[float]:
    """Solve linear equations given with their right sides; what they leave open is 0."""
    n = len(rows)
    for i in range(n):
        best = max(range(i, n), key=lambda j: abs(rows[j][i]))
        rows[i], rows[best] = rows[best], rows[i]
        if rows[i][i] == 0:
            continue
        for j in range(n):
            if j != i and rows[j][i]:
                share = rows[j][i] / rows[i][i]
                rows[j] = [a - share * b for a, b in zip(rows[j], rows[i])]
    return [row[n] / row[i] if row[i] else 0.0 for i, row in enumerate(rows)]


def perspective(img: Tensor, coefficients: list[float], interpolation: str, fill: Any) -> Tensor:
    """Look up each pixel at the place that 8 numbers give."""
    _check(img, interpolation, fill)
    h, w = img.shape[-2:]
    rows = mortice.cat([_scaled(img, coefficients[:6]), _floats(img, [[*coefficients[6:], 1.0]])])
    x, y, below = _linear(img, rows, w, h, (0.5, 0.5))
    return _sample(img, mortice.stack([x / below - 1.0, y / below - 1.0], -1).unsqueeze(0), interpolation, fill)


def elastic_transform(img: Tensor, displacement: Tensor, interpolation: str, fill: Any) -> Tensor:
    """Look up each pixel at its own place plus a displacement (1, H, W, 2), in halves of the image's size."""
    h, w = img.shape[-2:]
    like = _floats(img, 0.0)
    y, x = (mortice.linspace((1 - n) / n, (n - 1) / n, n, dtype=like.dtype, device=img.device) for n in (h, w))
    own = mortice.stack([x.reshape(1, -1).expand(h, w), y.reshape(-1, 1).expand(h, w)], -1)
    return _sample(img, own.unsqueeze(0) + displacement.to(like), interpolation, fill)


def gaussian_blur(img: Tensor, kernel_size: Sequence[int], sigma: Sequence[float]) -> Tensor:
    """Convolve with a Gaussian, one axis after the other; beyond the border is the mirror image."""

    def along(x: Tensor, axis: int) -> Tensor:
        n, s = kernel_size[axis], sigma[axis]
        weights = [math.exp(-0.5 * ((i - (n - 1) * 0.5) / s) ** 2) for i in range(n)]
        kernel = _floats(x, weights) / math.fsum(weights)
        return F.conv2d(x, kernel.reshape((1, 1, 1, n) if axis == 0 else (1, 1, n, 1)))

    def of_batch(x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        across, down = kernel_size[0] // 2, kernel_size[1] // 2
        padded = F.pad(x.reshape(n * c, 1, h, w), [across, across, down, down], mode="reflect")
        return along(along(padded, 0), 1).reshape(x.shape)

    return in_float(of_batch, img)
