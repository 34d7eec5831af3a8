"""Changing spatial sizes by rule: padding modes and interpolation, with their gradients. All are linear maps of x."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

from mortice.backends.host import HostBuffer, pack
from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, widen
from mortice.dtype import float32, float64, int32, int64, uint8
from mortice.shape import prod


class ResizeKernels(KernelMixin):
    """FREE: pairs each map with its adjoint, which is its gradient, and whose gradient it is."""

    # ---- padding ----

    def pad_border(
        self, x: Any, *, widths: Sequence[tuple[int, int]], mode: str = "constant", value: Any = 0
    ) -> Any:
        """Extend each axis by (before, after) elements, or cut them off where negative.

        Modes: "constant" (with `value`), "reflect", "replicate", "circular".
        """
        out = x
        for axis, (before, after) in enumerate(widths):
            if mode in ("constant", "circular"):
                out = _crop(self, out, axis, max(-before, 0), max(-after, 0))
            n = self.shape_of(out)[axis]
            b, a = max(before, 0), max(after, 0)
            if mode != "constant" and (b or a):
                left, right = _borders(self, out, axis, n, b, a, mode)
                out = self.concat(
                    [piece for piece, size in ((left, b), (out, 1), (right, a)) if size], axis=axis
                )
            if mode in ("reflect", "replicate") and min(before, after) < 0:
                out = self.contiguous(_crop(self, out, axis, max(-before, 0), max(-after, 0)))
        if mode == "constant":
            out = self.pad(out, [(max(b, 0), max(a, 0)) for b, a in widths], value)
        resized = any(b > 0 or a > 0 for b, a in widths)
        return out if resized else self.copy(out)

    def pad_border_grad(self, g: Any, *, widths: Sequence[tuple[int, int]], mode: str = "constant") -> Any:
        """Add the gradient of each border element to the element that it repeats."""
        dtype = self.dtype_of(g)
        out = widen(self, g)
        for axis in reversed(range(len(widths))):
            before, after = widths[axis]
            if mode in ("reflect", "replicate"):
                out = _grow(self, out, axis, max(-before, 0), max(-after, 0))
            b, a = max(before, 0), max(after, 0)
            if b or a:
                n = self.shape_of(out)[axis] - b - a
                core = _cut(self, out, axis, b, b + n)
                if mode != "constant":
                    if b:
                        left = _cut(self, out, axis, 0, b)
                        core = self.add(core, _fold_border(self, left, axis, n, mode, first=True))
                    if a:
                        right = _cut(self, out, axis, b + n, b + n + a)
                        core = self.add(core, _fold_border(self, right, axis, n, mode, first=False))
                out = core
            if mode in ("constant", "circular"):
                out = _grow(self, out, axis, max(-before, 0), max(-after, 0))
        return narrow(self, self.copy(out), dtype)

    # ---- interpolation ----

    def interpolate(
        self,
        x: Any,
        *,
        size: Sequence[int],
        mode: str,
        align_corners: bool = False,
        scales: Sequence[float | None] | None = None,
        antialias: bool = False,
    ) -> Any:
        """Resample the trailing axes to `size`.

        Args:
            mode: "nearest", "nearest-exact", "linear", "cubic" (in any number of axes) or "area"; "lanczos" with antialias.
            scales: output over input per axis where the caller gave a factor, which then places the samples.
        """
        if mode == "area":
            return self.adaptive_avg_pool(x, output_size=size)
        dtype = self.dtype_of(x)
        sizes = tuple(self.shape_of(x))[-len(size) :]
        exact = mode.startswith("nearest")
        if dtype is uint8 and not exact:
            # PyTorch takes the last axis first and rounds after each.
            for i in reversed(range(len(size))):
                if sizes[i] != size[i]:
                    scale = scales[i] if scales else None
                    weighed = _byte_taps(sizes[i], size[i], mode, align_corners, scale, antialias)
                    x = _bytes_along(self, x, len(self.shape_of(x)) - len(size) + i, *weighed)
            return self.copy(x) if sizes == tuple(size) else x
        out = x if exact else widen(self, x)
        for i, (n, m) in enumerate(zip(sizes, size)):
            axis = len(self.shape_of(x)) - len(size) + i
            scale = _factor(scales, i, n, m, mode, len(size))
            if antialias:
                if n != m:
                    out = _along(self, out, axis, _antialias_matrix(self, out, n, m, mode, align_corners, scale))
                continue
            taps = _taps(self, out, n, m, mode, align_corners, scale)
            if taps is not None:
                out = _resample(self, out, taps, axis)
        return self.copy(x) if out is x else narrow(self, out, dtype)

    def interpolate_grad(
        self,
        g: Any,
        *,
        x_shape: Sequence[int],
        mode: str,
        align_corners: bool = False,
        scales: Sequence[float | None] | None = None,
        antialias: bool = False,
    ) -> Any:
        """Give each input element the gradients of the samples that it took part in. All axes but two are spatial."""
        sizes, size = tuple(x_shape[2:]), tuple(self.shape_of(g)[2:])
        if mode == "area":
            return self.adaptive_avg_pool_grad(g, x_shape=x_shape, output_size=size)
        dtype = self.dtype_of(g)
        out = widen(self, g)
        for i, (n, m) in enumerate(zip(sizes, size)):
            axis = 2 + i
            scale = _factor(scales, i, n, m, mode, len(size))
            if mode == "nearest" and m == 2 * n and scale is None:
                shape = tuple(self.shape_of(out))
                out = self.reshape(out, (*shape[:axis], n, 2, *shape[axis + 1 :]))
                out = self.sum(out, axis=axis + 1)
                continue
            if antialias:
                if n == m:
                    continue
                matrix = _antialias_matrix(self, out, n, m, mode, align_corners, scale)
            else:
                taps = _taps(self, out, n, m, mode, align_corners, scale)
                if taps is None:
                    continue
                matrix = _matrix(self, out, taps, n)
            out = _along(self, out, axis, self.matrix_transpose(matrix))
        return self.copy(g) if out is g else narrow(self, out, dtype)


# ---- padding helpers ----


def _cut(k: Any, x: Any, axis: int, start: int, stop: int, step: int = 1) -> Any:
    return k.getitem(x, (*[slice(None)] * axis, slice(start, stop, step)))


def _crop(k: Any, x: Any, axis: int, before: int, after: int) -> Any:
    return _cut(k, x, axis, before, k.shape_of(x)[axis] - after) if before or after else x


def _grow(k: Any, x: Any, axis: int, before: int, after: int) -> Any:
    widths = [(0, 0)] * len(k.shape_of(x))
    widths[axis] = (before, after)
    return k.pad(x, widths, 0) if before or after else x


def _borders(k: Any, x: Any, axis: int, n: int, before: int, after: int, mode: str) -> tuple[Any, Any]:
    """Return what goes before and after the axis."""
    if mode == "circular":
        return _cut(k, x, axis, n - before, n), _cut(k, x, axis, 0, after)
    if mode == "reflect":
        left, right = _cut(k, x, axis, 1, before + 1), _cut(k, x, axis, n - 1 - after, n - 1)
        return k.flip(left, axis), k.flip(right, axis)
    shape = list(k.shape_of(x))
    left, right = _cut(k, x, axis, 0, 1), _cut(k, x, axis, n - 1, n)
    first, last = shape.copy(), shape.copy()
    first[axis], last[axis] = before, after
    return k.broadcast_to(left, tuple(first)), k.broadcast_to(right, tuple(last))


def _fold_border(k: Any, x: Any, axis: int, n: int, mode: str, first: bool) -> Any:
    """Return a border's gradient laid over the `n` elements that it repeats, zeros elsewhere."""
    size = k.shape_of(x)[axis]
    if mode == "circular":
        return _grow(k, x, axis, n - size, 0) if first else _grow(k, x, axis, 0, n - size)
    if mode == "reflect":
        x = k.flip(x, axis)
        return _grow(k, x, axis, 1, n - 1 - size) if first else _grow(k, x, axis, n - 1 - size, 1)
    x = k.sum(x, axis=axis, keepdims=True)
    return _grow(k, x, axis, 0, n - 1) if first else _grow(k, x, axis, n - 1, 0)


# ---- interpolation helpers: a tap is (int64 positions, weights or None), one of each for every output element ----

Taps = list[tuple[Any, Any]]


def _factor(scales: Sequence[float | None] | None, i: int, n: int, m: int, mode: str, axes: int) -> float | None:
    """Return the caller's factor for an axis, None where the sizes alone place the samples."""
    # PyTorch reads a factor in two axes (only) as the 1 or 2 that it rounds down to.
    if scales is None or (mode == "nearest" and axes == 2 and m in (n, 2 * n)):
        return None
    return scales[i]


def _taps(k: Any, like: Any, n: int, m: int, mode: str, align: bool, scale: float | None) -> Taps | None:
    """Return which of `n` elements make each of `m`, and how much of each; None when that changes nothing."""
    if m == n and (mode == "linear" or scale is None):
        return None
    ratio = n / m if not scale else 1 / scale
    if mode.startswith("nearest"):
        # In float32 whatever x is: rounding decides which element is nearest, and PyTorch rounds here.
        place = k.new_arange(like, 0, m, 1, float32)
        place = k.multiply(k.add(place, 0.5) if mode == "nearest-exact" else place, ratio)
        return [(k.minimum(k.astype(k.floor(place), int64), n - 1), None)]
    place = _centers(k, like, n, m, align, ratio)
    if mode == "linear":
        place = k.maximum(place, 0)
    low = k.minimum(k.astype(k.floor(place), int64), n - 1)
    past = k.minimum(k.maximum(k.subtract(place, k.astype(low, k.dtype_of(place))), 0), 1)
    if mode == "linear":
        return [(low, k.subtract(1, past)), (k.minimum(k.add(low, 1), n - 1), past)]
    taps = []
    for i in range(-1, 3):
        at = k.minimum(k.maximum(k.add(low, i), 0), n - 1)
        taps.append((at, _cubic(k, k.abs(k.subtract(past, i)), -0.75, inner=i in (0, 1))))
    return taps


def _centers(k: Any, like: Any, n: int, m: int, align: bool, ratio: float) -> Any:
    """Return where each output element lies, counted in input elements."""
    place = k.new_arange(like, 0, m, 1, float64 if k.dtype_of(like) is float64 else float32)
    if align:
        return k.multiply(place, (n - 1) / (m - 1) if m > 1 else 0.0)
    return k.subtract(k.multiply(k.add(place, 0.5), ratio), 0.5)


def _cubic(k: Any, x: Any, a: float, inner: bool) -> Any:
    """Compute Keys' cubic filter at distances x, within 1 (`inner`) or between 1 and 2."""
    if inner:
        return k.add(k.multiply(k.multiply(k.subtract(k.multiply(x, a + 2), a + 3), x), x), 1)
    outer = k.subtract(k.multiply(x, a), 5 * a)
    return k.subtract(k.multiply(k.add(k.multiply(outer, x), 8 * a), x), 4 * a)


def _weight(k: Any, weight: Any, like: Any, axis: int) -> Any:
    shape = [1] * len(k.shape_of(like))
    shape[axis] = k.shape_of(weight)[0]
    return k.reshape(narrow(k, weight, k.dtype_of(like)), tuple(shape))


def _resample(k: Any, x: Any, taps: Taps, axis: int) -> Any:
    total = None
    for at, weight in taps:
        piece = k.take(x, at, axis=axis)
        if weight is not None:
            piece = k.multiply(piece, _weight(k, weight, x, axis))
        total = piece if total is None else k.add(total, piece)
    return total


def _matrix(k: Any, like: Any, taps: Taps, n: int) -> Any:
    """Return the (m, n) matrix of the taps."""
    total = None
    for at, weight in taps:
        m = k.shape_of(at)[0]
        hit = k.equal(k.reshape(at, (m, 1)), k.new_arange(like, 0, n))
        part = k.astype(hit, k.dtype_of(like))
        if weight is not None:
            part = k.multiply(part, k.reshape(narrow(k, weight, k.dtype_of(like)), (m, 1)))
        total = part if total is None else k.add(total, part)
    return total


def _antialias_matrix(k: Any, like: Any, n: int, m: int, mode: str, align: bool, scale: float | None) -> Any:
    """Return the (m, n) matrix of a filter as wide as the input elements under one output element."""
    ratio = (n - 1) / (m - 1) if align and m > 1 else 0.0 if align else n / m if not scale else 1 / scale
    radius = {"linear": 1, "cubic": 2, "lanczos": 3}[mode]
    support, squeeze = (radius * ratio, 1 / ratio) if ratio >= 1 else (float(radius), 1.0)
    real = float64 if k.dtype_of(like) is float64 else float32
    center = k.reshape(k.multiply(k.add(k.new_arange(like, 0, m, 1, real), 0.5), ratio), (m, 1))
    first = k.maximum(k.floor(k.add(center, 0.5 - support)), 0)
    last = k.minimum(k.floor(k.add(center, 0.5 + support)), n)
    place = k.reshape(k.new_arange(like, 0, n, 1, real), (1, n))
    distance = k.abs(k.multiply(k.subtract(k.add(place, 0.5), center), squeeze))
    if mode == "linear":
        weight = k.maximum(k.subtract(1, distance), 0)
    elif mode == "lanczos":
        angle = k.maximum(k.multiply(distance, math.pi), 1e-7)  # sin(x) / x is 1 there already
        waves = k.multiply(k.sin(angle), k.sin(k.divide(angle, 3)))
        weight = k.where(k.less(distance, 3), k.divide(k.multiply(waves, 3), k.multiply(angle, angle)), 0)
    else:
        outer = k.where(k.less(distance, 2), _cubic(k, distance, -0.5, inner=False), 0)
        weight = k.where(k.less(distance, 1), _cubic(k, distance, -0.5, inner=True), outer)
    weight = k.where(k.logical_and(k.less_equal(first, place), k.less(place, last)), weight, 0)
    return narrow(k, k.divide(weight, k.sum(weight, axis=1, keepdims=True)), k.dtype_of(like))


@functools.lru_cache(maxsize=16)
def _byte_taps(n: int, m: int, mode: str, align: bool, scale: float | None, antialias: bool) -> tuple[int, Taps]:
    """Return in how many bits weights of bytes are counted, and the taps, as lists."""
    ratio = ((n - 1) / (m - 1) if m > 1 else 0.0) if align else 1 / scale if scale else n / m
    radius = {"linear": 1, "cubic": 2, "lanczos": 3}[mode]
    wide = max(ratio, 1.0)
    rows: list[dict[int, float]] = []
    for i in range(m):
        if antialias:
            center = (i + 0.5) * ratio
            first, last = max(int(center - radius * wide + 0.5), 0), min(int(center + radius * wide + 0.5), n)
            row = {j: _filter(mode, abs(j - center + 0.5) / wide, -0.5) for j in range(first, last)}
            total = sum(row.values())
            rows.append({j: weight / total for j, weight in row.items()})
            continue
        place = i * ratio if align else (i + 0.5) * ratio - 0.5
        low = min(math.floor(place if mode == "cubic" else max(place, 0.0)), n - 1)
        past = min(max(place - low, 0.0), 1.0)
        rows.append({})
        for j in range(1 - radius, 1 + radius):
            at = min(max(low + j, 0), n - 1)
            rows[i][at] = rows[i].get(at, 0.0) + _filter(mode, abs(j - past), -0.75)
    # As many bits as the largest weight leaves room for in an int16.
    largest, bits = max([weight for row in rows for weight in row.values()]), 0
    while bits < 22 and int(0.5 + largest * (2 << bits)) < 1 << 15:
        bits += 1
    taps = []
    for own in itertools.zip_longest(*[row.items() for row in rows], fillvalue=(0, 0.0)):
        taps.append(([at for at, _ in own], [int(w * (1 << bits) + math.copysign(0.5, w)) for _, w in own]))
    return bits, taps


def _filter(mode: str, x: float, a: float) -> float:
    """Compute a filter at distance x, Keys' with parameter a."""
    if mode == "linear":
        return max(1.0 - x, 0.0)
    if mode == "lanczos":
        angle = max(x * math.pi, 1e-7)  # sin(x) / x is 1 there already
        return 3 * math.sin(angle) * math.sin(angle / 3) / (angle * angle) if x < 3 else 0.0
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _bytes_along(k: Any, x: Any, axis: int, bits: int, taps: Taps) -> Any:
    """Apply `_byte_taps` to an axis."""
    shape = tuple(k.shape_of(x))
    if axis == len(shape) - 1 > 0:  # whole rows are quicker to take than elements
        turned = _bytes_along(k, k.contiguous(k.matrix_transpose(x)), axis - 1, bits, taps)
        return k.contiguous(k.matrix_transpose(turned))
    total: Any = 1 << (bits - 1)
    for numbers in taps:
        hosts = [HostBuffer(pack(n, d), (len(n),), d) for n, d in zip(numbers, (int64, int32))]
        at, weight = (k.from_host(host, k.device_of(x)) for host in hosts)
        piece = k.astype(k.take(x, at, axis=axis), int32)
        total = k.add(k.multiply(piece, k.reshape(weight, (-1, *[1] * (len(shape) - axis - 1)))), total)
    return k.astype(k.minimum(k.maximum(k.bitwise_right_shift(total, bits), 0), 255), uint8)


def _along(k: Any, x: Any, axis: int, matrix: Any) -> Any:
    """Apply an (m, n) matrix to one axis."""
    shape = tuple(k.shape_of(x))
    m, n = k.shape_of(matrix)
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    out_shape = (*shape[:axis], m, *shape[axis + 1 :])
    if after == 1:
        return k.reshape(k.matmul(k.reshape(x, (before, n)), k.matrix_transpose(matrix)), out_shape)
    return k.reshape(k.matmul(matrix, k.reshape(x, (before, n, after))), out_shape)
