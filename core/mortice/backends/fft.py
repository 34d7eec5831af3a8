"""FFTKernels: the FREE kernels of Fourier transforms, and the sum of overlapping frames.

A length is split by its small factors, each a multiplication by a small matrix; what has no small factor goes through a
convolution of a length that has. So any length takes O(n log n), in a few kernel calls over the whole batch.
"""

from __future__ import annotations

import math
from typing import Any

from mortice.backends.kernel_tools import Buffer
from mortice.shape import prod

# Lengths up to the first are one matrix product; longer ones are split by their largest factor up to the second.
_DIRECT, _RADIX = 64, 32


def _roots(k: Any, x: Buffer, powers: Buffer, n: int, sign: int) -> Buffer:
    """Return exp(sign * 2 pi i * powers / n) for powers in [0, n), in x's dtype.

    Angles are folded into [0, pi / 4] in integers first: quarter turns are exact, the rest as good as sin and cos.
    """
    fourth = k.multiply(powers, 4)
    quarter = k.floor_divide(fourth, n)
    rest = k.subtract(fourth, k.multiply(quarter, n))
    steep = k.less(n, k.multiply(rest, 2))
    rest = k.where(steep, k.subtract(n, rest), rest)
    angle = k.multiply(k.astype(rest, k.dtype_of(x).to_real()), math.pi / 2 / n)
    c, s = k.cos(angle), k.sin(angle)
    c, s = k.where(steep, s, c), k.where(steep, c, s)
    odd = k.equal(k.bitwise_and(quarter, 1), 1)
    c, s = k.where(odd, k.negative(s), c), k.where(odd, c, s)
    behind = k.less(1, quarter)
    c, s = k.where(behind, k.negative(c), c), k.where(behind, k.negative(s), s)
    return k.complex(c, s if sign > 0 else k.negative(s))


def _root_table(k: Any, x: Buffer, rows: int, columns: int, n: int, sign: int) -> Buffer:
    """Return the roots for powers row * column, as a matrix."""
    down, across = k.reshape(k.new_arange(x, 0, rows), (rows, 1)), k.reshape(k.new_arange(x, 0, columns), (1, columns))
    return _roots(k, x, k.remainder(k.multiply(down, across), n), n, sign)


def _transform(k: Any, x: Buffer, sign: int) -> Buffer:
    """Transform the rows of a matrix, without a factor."""
    rows, n = k.shape_of(x)
    if n <= _DIRECT:
        return k.matmul(x, _root_table(k, x, n, n, n, sign))
    r = next(f for f in range(_RADIX, 0, -1) if n % f == 0)
    if r == 1:
        return _chirp(k, x, sign)
    m = n // r
    # Every r-th element is a transform of length m; turned, the r of them meet in a transform of length r.
    parts = k.reshape(k.matrix_transpose(k.reshape(x, (rows, m, r))), (rows * r, m))
    parts = k.reshape(_transform(k, parts, sign), (rows, r, m))
    turned = k.multiply(parts, _root_table(k, x, r, m, n, sign))
    return k.reshape(k.matmul(_root_table(k, x, r, r, r, sign), turned), (rows, n))


def _chirp(k: Any, x: Buffer, sign: int) -> Buffer:
    """Transform rows of any length as a convolution (Bluestein): j * i = (j² + i² - (i - j)²) / 2."""
    rows, n = k.shape_of(x)
    count = k.new_arange(x, 0, n)
    chirp = _roots(k, x, k.remainder(k.multiply(count, count), 2 * n), 2 * n, sign)
    length = 1 << (2 * n - 2).bit_length()
    back = k.conj(chirp)
    gap = k.new_full(x, (length - 2 * n + 1,), 0)
    kernel = k.concat([back, gap, k.flip(k.getitem(back, (slice(1, n),)), 0)], axis=0)
    padded = k.concat([k.multiply(x, chirp), k.new_full(x, (rows, length - n), 0)], axis=1)
    spectrum = k.multiply(_transform(k, padded, -1), _transform(k, k.reshape(kernel, (1, length)), -1))
    full = k.multiply(_transform(k, spectrum, 1), 1 / length)
    return k.multiply(k.getitem(full, (slice(None), slice(0, n))), chirp)


def _over(k: Any, x: Buffer, axes: tuple[int, ...], norm: str, sign: int) -> Buffer:
    """Transform along axes, with the factor that `norm` asks for in this direction."""
    out, points = x, 1
    for axis in axes:
        last = len(k.shape_of(x)) - 1
        rows = k.moveaxis(out, axis, last)
        shape = k.shape_of(rows)
        points *= shape[-1]
        if shape[-1] > 1:
            done = _transform(k, k.reshape(rows, (prod(shape[:-1]), shape[-1])), sign)
            out = k.moveaxis(k.reshape(done, shape), last, axis)
    if norm == "ortho":
        return k.multiply(out, 1 / math.sqrt(points))
    if norm == ("forward" if sign < 0 else "backward"):
        return k.multiply(out, 1 / points)
    return k.copy(x) if out is x else out


class FFTKernels:
    """Fourier transforms along `axes` (not negative, all different, sizes not 0) with default bodies.

    `norm` says where the factor 1 / points goes: "forward", "backward", or its root to both as "ortho".
    """

    def fftn(k: Any, x: Buffer, *, axes: tuple[int, ...], norm: str) -> Buffer:
        """Transform complex numbers."""
        return _over(k, x, axes, norm, -1)

    def ifftn(k: Any, x: Buffer, *, axes: tuple[int, ...], norm: str) -> Buffer:
        """Transform complex numbers back."""
        return _over(k, x, axes, norm, 1)

    def fftn_real(k: Any, x: Buffer, *, axes: tuple[int, ...], norm: str) -> Buffer:
        """Transform real numbers: what fftn makes of them as complex ones. There is at least one axis."""
        return k.fftn(k.astype(x, k.dtype_of(x).to_complex()), axes=axes, norm=norm)

    def rfftn(k: Any, x: Buffer, *, axes: tuple[int, ...], norm: str) -> Buffer:
        """Transform real numbers; along the last of the axes only the first n // 2 + 1 places are kept."""
        *rest, last = axes
        whole = k.fftn(k.astype(x, k.dtype_of(x).to_complex()), axes=(last,), norm=norm)
        half = k.getitem(whole, (*(slice(None),) * last, slice(0, k.shape_of(x)[last] // 2 + 1)))
        return k.fftn(half, axes=tuple(rest), norm=norm) if rest else k.contiguous(half)

    def irfftn(k: Any, x: Buffer, *, axes: tuple[int, ...], n: int, norm: str) -> Buffer:
        """Transform n // 2 + 1 places along the last of the axes back to n real numbers.

        The other axes go first. Of what is then along the last one, the first place, and for even n the last, count by
        their real parts only.
        """
        *rest, last = axes
        half = k.ifftn(x, axes=tuple(rest), norm=norm) if rest else x
        mirrored = k.conj(k.flip(k.getitem(half, (*(slice(None),) * last, slice(1, (n + 1) // 2))), last))
        whole = k.concat([half, mirrored], axis=last)
        return k.contiguous(k.real(k.ifftn(whole, axes=(last,), norm=norm)))

    def overlap_add(k: Any, x: Buffer, *, step: int, length: int) -> Buffer:
        """Add up frames (..., count, size) where they lie in (..., length), `step` apart: sliding_window's transpose."""
        *batch, count, size = k.shape_of(x)
        none = ((0, 0),) * len(batch)
        blocks = -(-size // step)
        x = k.reshape(k.pad(x, (*none, (0, 0), (0, blocks * step - size))), (*batch, count, blocks, step))
        if blocks < count:
            x = k.moveaxis(x, -2, -3)
        rows, columns = min(blocks, count), max(blocks, count)
        # Rows with as many empty blocks as there are rows, cut anew one block shorter, slide one further each.
        flat = k.reshape(k.pad(x, (*none, (0, 0), (0, rows), (0, 0))), (*batch, rows * (columns + rows), step))
        wide = rows + columns - 1
        flat = k.getitem(flat, (..., slice(0, rows * wide), slice(None)))
        total = k.sum(k.reshape(flat, (*batch, rows, wide, step)), axis=len(batch), keepdims=False)
        total = k.reshape(total, (*batch, wide * step))
        if wide * step < length:
            return k.pad(total, (*none, (0, length - wide * step)))
        return k.getitem(total, (..., slice(0, length)))
