"""EigenKernels: eigenvalues and singular values by Jacobi rotations, batched, real and complex.

A tournament pairs every column with every other in n - 1 rounds, and each round turns n / 2 disjoint pairs at once. The
number of sweeps is fixed by size and precision, with room to spare, so nothing is read on the host.
"""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import Buffer, single
from mortice.backends.linalg_tools import (
    adjoint,
    columns,
    diagonal,
    eye,
    gather_columns,
    gather_rows,
    largest_part,
    length,
    rows,
    squared,
)
from mortice.dtype import finfo


def power_of_two(k: Any, x: Buffer) -> Buffer:
    """Return, for each matrix, a power of two of the size of its largest element; dividing by it is exact."""
    most = k.max(largest_part(k, x), axis=(-2, -1), keepdims=True)
    lowest = -1022.0 if single(k, x) == 0 else -126.0
    exponent = k.maximum(k.floor(k.log2(most)), lowest)
    return k.where(k.equal(most, 0.0), 1.0, k.pow(2.0, exponent))


def _sweeps(k: Any, x: Buffer, n: int) -> int:
    return (7 if single(k, x) == 0 else 5) + n.bit_length()


def _next_round(k: Any, x: Buffer, n: int) -> Buffer:
    """Return the order of columns that pairs i with i + n/2 in the next round: the circle method, column 0 stays."""
    h = n // 2
    spans = [(0, 1), (h, h + 1), (1, h - 1), (h + 1, n), (h - 1, h)]
    return k.concat([k.new_arange(x, a, b) for a, b in spans if a < b], axis=0)


def _rotation(k: Any, p: Buffer, q: Buffer, g: Buffer) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Return what diagonalises [[p, g], [conj(g), q]]: factors for each column and its partner, and new p and q."""
    d = k.dtype_of(g)
    size = length(k, g)
    # Turning by rounding errors only adds more of them. And too near the subnormal numbers, nothing beside elements
    # near 1, g / |g| would not have length 1.
    limits = finfo(d)
    least = k.multiply(k.sqrt(k.multiply(k.abs(p), k.abs(q))), limits.eps / 4)
    nothing = k.less(size, k.maximum(least, limits.smallest_normal / limits.eps))
    safe = k.where(nothing, 1.0, size)
    tau = k.multiply(k.divide(k.subtract(q, p), safe), 0.5)
    t = k.divide(1.0, k.add(k.abs(tau), k.sqrt(k.add(k.square(tau), 1.0))))
    t = k.where(nothing, 0.0, k.where(k.less(tau, 0.0), k.negative(t), t))
    # 1 / r, but rounded without a bias: hundreds of turns would add it up.
    r = k.sqrt(k.add(k.square(t), 1.0))
    c = k.subtract(1.0, k.divide(k.square(t), k.multiply(r, k.add(r, 1.0))))
    s = k.astype(k.multiply(t, c), d)
    s = k.multiply(s, k.divide(g, k.astype(safe, d)))
    turned = k.conj(s) if d.is_complex else s
    c = k.astype(c, d)
    own = k.concat([c, c], axis=-1)
    partner = k.concat([k.negative(turned), s], axis=-1)
    shift = k.multiply(t, size)
    return own, partner, k.subtract(p, shift), k.add(q, shift)


def _turn_columns(k: Any, x: Buffer, own: Buffer, partner: Buffer) -> Buffer:
    h = k.shape_of(x)[-1] // 2
    swapped = k.concat([columns(k, x, h, None), columns(k, x, None, h)], axis=-1)
    return k.add(k.multiply(x, k.expand_dims(own, -2)), k.multiply(swapped, k.expand_dims(partner, -2)))


def _turn_rows(k: Any, x: Buffer, own: Buffer, partner: Buffer) -> Buffer:
    h = k.shape_of(x)[-1] // 2
    swapped = k.concat([rows(k, x, h, None), rows(k, x, None, h)], axis=-2)
    return k.add(k.multiply(x, k.expand_dims(own, -1)), k.multiply(swapped, k.expand_dims(partner, -1)))


def _straighten(k: Any, v: Buffer) -> Buffer:
    """Make orthonormal what is so but for the rounding of many turns: one step of Newton and Schulz."""
    return k.subtract(k.multiply(v, 1.5), k.multiply(k.matmul(v, k.matmul(adjoint(k, v), v)), 0.5))


def _real(k: Any, x: Buffer) -> Buffer:
    return k.real(x) if k.dtype_of(x).is_complex else x


def _jacobi(k: Any, a: Buffer) -> tuple[Buffer, Buffer]:
    """Return the eigenvalues, unsorted, and eigenvectors of Hermitian matrices."""
    *batch, n, _ = k.shape_of(a)
    size = n + n % 2
    if size != n:
        # A zero row and column are never turned, and after whole sweeps stand last again.
        a = k.concat([a, k.new_full(a, (*batch, n, 1), 0)], axis=-1)
        a = k.concat([a, k.new_full(a, (*batch, 1, size), 0)], axis=-2)
    h = size // 2
    v = k.broadcast_to(eye(k, a, size), (*batch, size, size))
    on = k.equal(eye(k, a, size), 1)
    off = k.concat([columns(k, on, h, None), columns(k, on, None, h)], axis=-1)
    order = _next_round(k, a, size)
    for _ in range(_sweeps(k, a, n) * max(size - 1, 1)):
        d = _real(k, diagonal(k, a))
        p, q = columns(k, d, None, h), columns(k, d, h, None)
        g = diagonal(k, columns(k, rows(k, a, None, h), h, None))
        own, partner, p, q = _rotation(k, p, q, g)
        a = _turn_columns(k, a, own, partner)
        a = _turn_rows(k, a, own, k.conj(partner) if k.dtype_of(a).is_complex else partner)
        d = k.astype(k.concat([p, q], axis=-1), k.dtype_of(a))
        a = k.where(on, k.expand_dims(d, -2), k.where(off, 0.0, a))
        v = _turn_columns(k, v, own, partner)
        if size > 2:
            a = k.take(k.take(a, order, axis=-1), order, axis=-2)
            v = k.take(v, order, axis=-1)
    w = columns(k, _real(k, diagonal(k, a)), None, n)
    return w, rows(k, columns(k, v, None, n), None, n)


def _one_sided(k: Any, g: Buffer) -> tuple[Buffer, Buffer]:
    """Turn the columns of g until they are orthogonal; return them and the product of the rotations."""
    *batch, m, n = k.shape_of(g)
    size = n + n % 2
    if size != n:
        g = k.concat([g, k.new_full(g, (*batch, m, 1), 0)], axis=-1)
    h = size // 2
    v = k.broadcast_to(eye(k, g, size), (*batch, size, size))
    order = _next_round(k, g, size)
    for _ in range((_sweeps(k, g, n) + 3) * max(size - 1, 1)):
        x, y = columns(k, g, None, h), columns(k, g, h, None)
        squares = k.sum(squared(k, g), axis=-2)
        product = k.sum(k.multiply(k.conj(x) if k.dtype_of(x).is_complex else x, y), axis=-2)
        own, partner, _, _ = _rotation(k, columns(k, squares, None, h), columns(k, squares, h, None), product)
        g = _turn_columns(k, g, own, partner)
        v = _turn_columns(k, v, own, partner)
        if size > 2:
            g, v = k.take(g, order, axis=-1), k.take(v, order, axis=-1)
    return columns(k, g, None, n), rows(k, columns(k, v, None, n), None, n)


class EigenKernels:
    """Eigenvalues and singular values with default bodies."""

    def eigh(k: Any, x: Buffer, *, upper: bool = False) -> tuple[Buffer, Buffer]:
        """Return real eigenvalues, ascending, and orthonormal eigenvectors; one triangle of x is read."""
        d = k.dtype_of(x)
        n = k.shape_of(x)[-1]
        if n == 0:
            return k.reshape(_real(k, x), k.shape_of(x)[:-1]), k.copy(x)
        x = adjoint(k, x) if upper else x
        down = k.reshape(k.new_arange(x, 0, n), (n, 1))
        across = k.reshape(k.new_arange(x, 0, n), (1, n))
        mirrored = k.where(k.less(across, down), x, adjoint(k, x))
        # The diagonal counts as real.
        a = k.where(k.equal(across, down), k.astype(_real(k, x), d), mirrored)
        scale = power_of_two(k, a)
        a = k.divide(a, k.astype(scale, d))
        # A sorted diagonal and two steps of the QR algorithm put spectra of many magnitudes in order, which would cost
        # Jacobi many sweeps.
        sorted_ = k.argsort(k.abs(_real(k, diagonal(k, a))), axis=-1, descending=True)
        a = gather_columns(k, gather_rows(k, a, sorted_), sorted_)
        first, r = k.qr(a)
        a = k.matmul(r, first)
        second, r = k.qr(k.multiply(k.add(a, adjoint(k, a)), 0.5))
        a = k.matmul(r, second)
        w, v = _jacobi(k, k.multiply(k.add(a, adjoint(k, a)), 0.5))
        v = gather_rows(k, k.matmul(k.matmul(first, second), v), k.argsort(sorted_, axis=-1))
        v = _straighten(k, v)
        order = k.argsort(w, axis=-1)
        w = k.multiply(k.take_along_axis(w, order, axis=-1), k.squeeze(scale, -1))
        return w, gather_columns(k, v, order)

    def eigvalsh(k: Any, x: Buffer, *, upper: bool = False) -> Buffer:
        """Return the eigenvalues, ascending; one triangle of x is read."""
        return k.eigh(x, upper=upper)[0]

    def svdvals(k: Any, x: Buffer) -> Buffer:
        """Return the singular values, descending."""
        return k.svd(x, full_matrices=False)[1]

    def svd(k: Any, x: Buffer, *, full_matrices: bool = True) -> tuple[Buffer, Buffer, Buffer]:
        """Return U, the singular values, descending, and V^H."""
        *batch, m, n = k.shape_of(x)
        if m < n:
            u, s, vh = k.svd(adjoint(k, x), full_matrices=full_matrices)
            return adjoint(k, vh), s, adjoint(k, u)
        d = k.dtype_of(x)
        if n == 0:
            size = m if full_matrices else 0
            u = k.broadcast_to(eye(k, x, m, size), (*batch, m, size))
            return u, k.new_full(x, (*batch, 0), 0, d.to_real()), k.new_full(x, (*batch, 0, 0), 0)
        scale = power_of_two(k, x)
        x = k.divide(x, k.astype(scale, d))
        # With columns sorted by length, two QR factorisations leave a matrix that is nearly diagonal where singular
        # values have many magnitudes: x P = q (f r)^H, and Jacobi turns r^H.
        lengths = k.sum(squared(k, x), axis=-2)
        sorted_ = k.argsort(lengths, axis=-1, descending=True)
        q, r = k.qr(gather_columns(k, x, sorted_), mode="complete" if full_matrices else "reduced")
        f, r = k.qr(adjoint(k, rows(k, r, None, n)))
        g, turns = _one_sided(k, adjoint(k, r))
        s = k.sqrt(k.sum(squared(k, g), axis=-2))
        order = k.argsort(s, axis=-1, descending=True)
        s = k.take_along_axis(s, order, axis=-1)
        v = k.matmul(f, gather_columns(k, _straighten(k, turns), order))
        v = gather_rows(k, v, k.argsort(sorted_, axis=-1))
        least = finfo(d).smallest_normal
        g = gather_columns(k, g, order)
        unit = k.divide(g, k.expand_dims(k.astype(k.maximum(s, least), d), -2))
        # Where singular values are 0 there are no directions: QR fills them in, and keeps the others but for signs.
        unit = k.where(k.expand_dims(k.less(s, least), -2), 0.0, unit)
        u, kept = k.qr(unit)
        phase = k.sgn(diagonal(k, kept))
        u = k.multiply(u, k.expand_dims(k.where(k.equal(phase, 0), 1.0, phase), -2))
        u = k.matmul(columns(k, q, None, n), u)
        if m > n and full_matrices:
            u = k.concat([u, columns(k, q, n, None)], axis=-1)
        return u, k.multiply(s, k.squeeze(scale, -1)), adjoint(k, v)
