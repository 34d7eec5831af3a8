"""SchurKernels: eigenvalues and eigenvectors of any square matrix, by the QR algorithm with shifts, batched.

Everything is complex. The number of steps is fixed by the size, about twice what matrices need, so nothing is read on
the host; each step turns the whole Hessenberg matrix, and parts that are done keep still.
"""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import Buffer
from mortice.backends.linalg_eigen import power_of_two
from mortice.backends.linalg_tools import (
    adjoint,
    block,
    columns,
    diagonal,
    eye,
    largest_part,
    reflector,
    rows,
    squared,
    taxicab,
)
from mortice.dtype import finfo


def _hessenberg(k: Any, a: Buffer) -> tuple[Buffer, Buffer]:
    """Return H, zero below its subdiagonal, and Z with a = Z H Z^H."""
    *batch, n, _ = k.shape_of(a)
    z = k.broadcast_to(eye(k, a, n), (*batch, n, n))
    for j in range(n - 2):
        v, tau, _ = reflector(k, block(k, a, j + 1, None, j, j + 1))
        lower = rows(k, a, j + 1, None)
        lower = k.subtract(lower, k.multiply(k.conj(tau), k.matmul(v, k.matmul(adjoint(k, v), lower))))
        both = k.concat([rows(k, a, None, j + 1), lower, z], axis=-2)
        right = columns(k, both, j + 1, None)
        right = k.subtract(right, k.multiply(tau, k.matmul(k.matmul(right, v), adjoint(k, v))))
        both = k.concat([columns(k, both, None, j + 1), right], axis=-1)
        a, z = rows(k, both, None, n), rows(k, both, n, None)
    return a, z


def _shift(k: Any, h: Buffer, active: Buffer, step: int) -> Buffer:
    """Return Wilkinson's shift for the lowest part of h that is not done."""
    *batch, n, _ = k.shape_of(h)
    # The last place below the diagonal that is not zero.
    weight = k.where(active, k.new_arange(h, 1, n), 0)
    low = k.maximum(k.max(weight, axis=-1, keepdims=True), 1)
    flat = k.reshape(h, (*batch, n * n))

    def at(row: Buffer, column: Buffer) -> Buffer:
        return k.take_along_axis(flat, k.add(k.multiply(row, n), column), axis=-1)

    up = k.subtract(low, 1)
    c, d = at(low, up), at(low, low)
    if step % 11 == 10:
        # Symmetric patterns may go round in circles; a shift from elsewhere breaks them.
        return k.add(d, k.multiply(c, 0.75))
    half = k.multiply(k.subtract(at(up, up), d), 0.5)
    product = k.multiply(at(up, low), c)
    root = k.sqrt(k.add(k.square(half), product))
    plus, minus = k.add(half, root), k.subtract(half, root)
    larger = k.where(k.less(taxicab(k, plus), taxicab(k, minus)), minus, plus)
    nothing = k.less(taxicab(k, larger), finfo(k.dtype_of(h)).smallest_normal)
    return k.subtract(d, k.where(nothing, 0.0, k.divide(product, k.where(nothing, 1.0, larger))))


def _qr_step(k: Any, h: Buffer, z: Buffer, shift: Buffer) -> tuple[Buffer, Buffer]:
    """Factor h - shift into Q R, and return R Q + shift and z Q."""
    n = k.shape_of(h)[-1]
    shifted = k.multiply(eye(k, h, n), shift)
    h = k.subtract(h, shifted)
    d = k.dtype_of(h)
    turns = []
    finished = []
    carried = rows(k, h, None, 1)
    for j in range(n - 1):
        lower = rows(k, h, j + 1, j + 2)
        f, g = columns(k, carried, j, j + 1), columns(k, lower, j, j + 1)
        size = k.sqrt(k.add(squared(k, f), squared(k, g)))
        # What is zero already is not turned, not even in phase: that would add rounding errors at every step.
        nothing = k.bitwise_or(k.equal(g, 0.0), k.equal(size, 0.0))
        size = k.astype(k.where(nothing, 1.0, size), d)
        c, s = k.where(nothing, 1.0, k.divide(f, size)), k.where(nothing, 0.0, k.divide(g, size))
        turns.append((c, s))
        finished.append(k.add(k.multiply(carried, k.conj(c)), k.multiply(lower, k.conj(s))))
        carried = k.subtract(k.multiply(lower, c), k.multiply(carried, s))
    both = k.concat([*finished, carried, z], axis=-2)
    finished = []
    carried = columns(k, both, None, 1)
    for j, (c, s) in enumerate(turns):
        right = columns(k, both, j + 1, j + 2)
        finished.append(k.add(k.multiply(carried, c), k.multiply(right, s)))
        carried = k.subtract(k.multiply(right, k.conj(c)), k.multiply(carried, k.conj(s)))
    both = k.concat([*finished, carried], axis=-1)
    return k.add(rows(k, both, None, n), shifted), rows(k, both, n, None)


def _triangular_vectors(k: Any, t: Buffer) -> Buffer:
    """Return the eigenvectors of an upper triangle, each scaled at will."""
    *batch, n, _ = k.shape_of(t)
    d = k.dtype_of(t)
    limits = finfo(d)
    w = diagonal(k, t)
    least = k.multiply(k.max(taxicab(k, t), axis=(-2, -1)), limits.eps)
    least = k.reshape(k.maximum(least, limits.smallest_normal / limits.eps), (*batch, 1, 1))
    across = k.new_arange(t, 0, n)
    x = k.new_full(t, (*batch, 0, n), 0)
    for i in reversed(range(n)):
        apart = k.expand_dims(k.subtract(columns(k, w, i, i + 1), w), -2)
        # Equal eigenvalues are taken as a rounding error apart: their vectors come out parallel or nearly so.
        apart = k.where(k.less(taxicab(k, apart), least), k.astype(least, d), apart)
        row = k.divide(k.negative(k.matmul(block(k, t, i, i + 1, i + 1, None), x)), apart)
        row = k.where(k.equal(across, i), 1.0, k.where(k.less(across, i), 0.0, row))
        x = k.concat([row, x], axis=-2)
        size = k.max(largest_part(k, x), axis=-2, keepdims=True)
        x = k.divide(x, k.astype(k.maximum(size, limits.smallest_normal), d))
    return x


class SchurKernels:
    """Eigenvalues of general matrices with default bodies."""

    def eig(k: Any, x: Buffer) -> tuple[Buffer, Buffer]:
        """Return complex eigenvalues, in no order, and eigenvectors of length 1."""
        *batch, n, _ = k.shape_of(x)
        d = k.dtype_of(x).to_complex()
        if n == 0:
            return k.new_full(x, (*batch, 0), 0, d), k.new_full(x, (*batch, 0, 0), 0, d)
        scale = power_of_two(k, x)
        h, z = _hessenberg(k, k.astype(k.divide(x, k.astype(scale, k.dtype_of(x))), d))
        down = k.reshape(k.new_arange(x, 0, n), (n, 1))
        across = k.reshape(k.new_arange(x, 0, n), (1, n))
        upper, below = k.less_equal(down, across), k.equal(down, k.add(across, 1))
        eps = finfo(d).eps
        for step in range(6 * n + 20 if n > 1 else 0):
            size = taxicab(k, diagonal(k, h))
            around = k.multiply(k.add(columns(k, size, 1, None), columns(k, size, None, n - 1)), eps)
            beside = taxicab(k, diagonal(k, block(k, h, 1, None, None, n - 1)))
            active = k.less(k.maximum(around, eps**3), beside)
            kept = k.concat([active, k.new_full(x, (*batch, 1), False, k.dtype_of(active))], axis=-1)
            h = k.where(k.bitwise_or(upper, k.bitwise_and(below, k.expand_dims(kept, -2))), h, 0.0)
            h, z = _qr_step(k, h, z, k.expand_dims(_shift(k, h, active, step), -1))
        t = k.where(upper, h, 0.0)
        v = k.matmul(z, _triangular_vectors(k, t))
        norm = k.sqrt(k.sum(squared(k, v), axis=-2, keepdims=True))
        w = k.multiply(diagonal(k, t), k.astype(k.squeeze(scale, -1), d))
        return w, k.divide(v, k.astype(norm, d))
