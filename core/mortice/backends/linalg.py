"""LinalgKernels: the FREE kernels of linear algebra, batched over leading axes, real and complex.

Factorisations here divide the matrix in halves, so their work is in `matmul`; QR goes column by column. What can fail
returns an int32 `info` beside its result, as LAPACK counts: 0, or 1 + where it stopped. Eigenvalues and singular values
are in `linalg_eigen`.
"""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import Buffer
from mortice.backends.linalg_eigen import EigenKernels
from mortice.backends.linalg_schur import SchurKernels
from mortice.backends.linalg_tools import (
    adjoint,
    block,
    columns,
    diagonal,
    eye,
    gather_rows,
    length,
    reflector,
    rows,
    taxicab,
)
from mortice.dtype import int32, int64


def _join_info(k: Any, first: Buffer, second: Buffer, offset: int) -> Buffer:
    """Return which of two stages failed first."""
    later = k.where(k.equal(second, 0), second, k.add(second, offset))
    return k.where(k.equal(first, 0), later, first)


def _cholesky(k: Any, a: Buffer) -> tuple[Buffer, Buffer]:
    """Factor the lower triangle of a; its upper one is not read."""
    n = k.shape_of(a)[-1]
    if n <= 1:
        pivot = k.real(a) if k.dtype_of(a).is_complex else a
        good = k.less(0.0, pivot)
        failed = k.astype(k.logical_not(good), int32)
        root = k.astype(k.sqrt(k.where(good, pivot, 1.0)), k.dtype_of(a))
        batch = k.shape_of(a)[:-2]
        info = k.reshape(failed, batch) if n else k.new_full(a, batch, 0, int32)
        return root, info
    h = n // 2
    top, info = _cholesky(k, block(k, a, None, h, None, h))
    # left @ adjoint(top) = a21, solved from the other side.
    left = adjoint(k, _solve(k, top, adjoint(k, block(k, a, h, None, None, h)), False))
    rest = k.subtract(block(k, a, h, None, h, None), k.matmul(left, adjoint(k, left)))
    bottom, info2 = _cholesky(k, rest)
    right = k.new_full(a, (*k.shape_of(a)[:-2], h, n - h), 0)
    upper = k.concat([top, right], axis=-1)
    return k.concat([upper, k.concat([left, bottom], axis=-1)], axis=-2), _join_info(k, info, info2, h)


def _solve(k: Any, a: Buffer, b: Buffer, unit: bool, upper: bool = False) -> Buffer:
    """Solve a @ x = b with the lower triangle of a, or the upper one: first the half that stands alone."""
    n = k.shape_of(a)[-1]
    if n <= 1:
        if unit or n == 0:
            return _spread(k, b, k.shape_of(a)[:-2])
        return k.divide(b, a)
    h = n // 2
    alone, other = ((h, None), (None, h)) if upper else ((None, h), (h, None))
    x = _solve(k, block(k, a, *alone, *alone), rows(k, b, *alone), unit, upper)
    rest = k.subtract(rows(k, b, *other), k.matmul(block(k, a, *other, *alone), x))
    y = _solve(k, block(k, a, *other, *other), rest, unit, upper)
    return k.concat([y, x] if upper else [x, y], axis=-2)


def _spread(k: Any, b: Buffer, batch: tuple[int, ...]) -> Buffer:
    """Broadcast b over the leading axes of another matrix."""
    shape = k.shape_of(b)
    lead = _common(tuple(shape[:-2]), tuple(batch))
    return b if lead == tuple(shape[:-2]) else k.broadcast_to(b, (*lead, *shape[-2:]))


def _common(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    n = max(len(x), len(y))
    x, y = (1,) * (n - len(x)) + x, (1,) * (n - len(y)) + y
    return tuple(b if a == 1 else a for a, b in zip(x, y))


def _lu(k: Any, a: Buffer) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Return L and U packed, pivots from 0, the permutation of rows, info; a has at least one row and column."""
    *batch, m, n = k.shape_of(a)
    if n == 1:
        # LAPACK picks pivots by this norm too, and so the same ones come out.
        pivot = k.argmax(k.reshape(taxicab(k, a), (*batch, m)), axis=-1, keepdims=True)
        row = k.broadcast_to(k.new_arange(a, 0, m), (*batch, m))
        order = k.where(k.equal(row, pivot), 0, k.where(k.equal(row, 0), pivot, row))
        a = gather_rows(k, a, order)
        top = rows(k, a, None, 1)
        singular = k.equal(top, 0)
        below = k.divide(rows(k, a, 1, None), k.where(singular, 1.0, top))
        info = k.astype(k.reshape(singular, tuple(batch)), int32)
        return k.concat([top, below], axis=-2), pivot, order, info
    if m == 1:
        # One row has one pivot; the columns behind it are U as they stand.
        lu, pivot, order, info = _lu(k, columns(k, a, None, 1))
        return k.concat([lu, columns(k, a, 1, None)], axis=-1), pivot, order, info
    h = min(m, n) // 2
    left, pivots, order, info = _lu(k, columns(k, a, None, h))
    right = gather_rows(k, columns(k, a, h, None), order)
    upper = _solve(k, rows(k, left, None, h), rows(k, right, None, h), True)
    below = rows(k, left, h, None)
    rest = k.subtract(rows(k, right, h, None), k.matmul(below, upper))
    corner, pivots2, order2, info2 = _lu(k, rest)
    below = gather_rows(k, below, order2)
    order = k.concat(
        [
            k.getitem(order, (..., slice(None, h))),
            k.take_along_axis(k.getitem(order, (..., slice(h, None))), order2, axis=-1),
        ],
        axis=-1,
    )
    lu = k.concat(
        [
            k.concat([rows(k, left, None, h), upper], axis=-1),
            k.concat([below, corner], axis=-1),
        ],
        axis=-2,
    )
    return lu, k.concat([pivots, k.add(pivots2, h)], axis=-1), order, _join_info(k, info, info2, h)


class LinalgKernels(EigenKernels, SchurKernels):
    """Linear algebra with default bodies."""

    def cholesky_ex(k: Any, x: Buffer, *, upper: bool = False) -> tuple[Buffer, Buffer]:
        """Return L with L @ L^H = x (or U with U^H @ U = x) and info; only that triangle of x is read."""
        factor, info = _cholesky(k, adjoint(k, x) if upper else x)
        return (adjoint(k, factor) if upper else factor), info

    def solve_triangular(
        k: Any, a: Buffer, b: Buffer, *, upper: bool, left: bool = True, unit_diagonal: bool = False
    ) -> Buffer:
        """Solve a @ x = b, or x @ a = b unless left, reading one triangle of a; infinite where it is singular."""
        if not left:
            a, b, upper = k.matrix_transpose(a), k.matrix_transpose(b), not upper
        x = _solve(k, a, b, unit_diagonal, upper)
        return x if left else k.matrix_transpose(x)

    def lu_ex(k: Any, x: Buffer) -> tuple[Buffer, Buffer, Buffer, Buffer]:
        """Factor with partial pivoting: packed L and U, int32 pivots from 1, int64 row order, info.

        Row i of L @ U is row order[i] of x; applying the pivots in turn as swaps gives the same order.
        """
        *batch, m, n = k.shape_of(x)
        if m == 0 or n == 0:
            order = k.broadcast_to(k.new_arange(x, 0, m), (*batch, m))
            return k.copy(x), k.new_full(x, (*batch, 0), 0, int32), order, k.new_full(x, batch, 0, int32)
        packed, pivots, order, info = _lu(k, x)
        return packed, k.astype(k.add(pivots, 1), int32), order, info

    def pivots_to_order(k: Any, pivots: Buffer, m: int) -> Buffer:
        """Return the row order that the swaps make, of m rows."""
        *batch, n = k.shape_of(pivots)
        row = k.broadcast_to(k.new_arange(pivots, 0, m), (*batch, m))
        order = row
        for i in range(n):
            other = k.astype(k.subtract(k.getitem(pivots, (..., slice(i, i + 1))), 1), int64)
            source = k.where(k.equal(row, other), i, k.where(k.equal(row, i), other, row))
            order = k.take_along_axis(order, source, axis=-1)
        return order

    def lu_solve(k: Any, lu: Buffer, order: Buffer, b: Buffer, *, adjoint: bool = False) -> Buffer:
        """Solve with what `lu_ex` gave: a @ x = b, or a^H @ x = b."""
        lead = _common(tuple(k.shape_of(lu)[:-2]), tuple(k.shape_of(b)[:-2]))
        n = k.shape_of(lu)[-1]
        order = k.broadcast_to(order, (*lead, n))
        b = _spread(k, b, lead)
        if not adjoint:
            y = _solve(k, lu, gather_rows(k, b, order), True)
            return _solve(k, lu, y, False, True)
        lu = k.matrix_transpose(k.conj(lu) if k.dtype_of(lu).is_complex else lu)
        y = _solve(k, lu, _solve(k, lu, b, False), True, True)
        return gather_rows(k, y, k.argsort(order, axis=-1))

    def solve_ex(k: Any, a: Buffer, b: Buffer) -> tuple[Buffer, Buffer]:
        """Solve a @ x = b for matrices b, and info: not 0 where a is singular."""
        packed, _, order, info = k.lu_ex(a)
        return k.lu_solve(packed, order, b), info

    def inv_ex(k: Any, x: Buffer) -> tuple[Buffer, Buffer]:
        """Invert, and info: not 0 where x is singular."""
        inverse, info = k.solve_ex(x, eye(k, x, k.shape_of(x)[-1]))
        return inverse, info

    def cross(k: Any, x: Buffer, y: Buffer, *, axis: int) -> Buffer:
        """Multiply 3-vectors along an axis; x and y have one shape."""
        (x1, x2), (y1, y2) = [[k.roll(z, shifts=(-by,), axes=(axis,)) for by in (1, 2)] for z in (x, y)]
        return k.subtract(k.multiply(x1, y2), k.multiply(x2, y1))

    def det(k: Any, x: Buffer) -> Buffer:
        """Return the determinant."""
        packed, pivots, _, _ = k.lu_ex(x)
        return k.multiply(k.prod(diagonal(k, packed), axis=-1), _parity(k, packed, pivots))

    def slogdet(k: Any, x: Buffer) -> tuple[Buffer, Buffer]:
        """Return the determinant's sign and the logarithm of its size; 0 and -inf where singular."""
        packed, pivots, _, _ = k.lu_ex(x)
        pivot = diagonal(k, packed)
        sign = k.multiply(k.prod(k.sgn(pivot), axis=-1), _parity(k, packed, pivots))
        return sign, k.sum(k.log(length(k, pivot)), axis=-1)

    def geqrf(k: Any, x: Buffer) -> tuple[Buffer, Buffer]:
        """Factor by Householder reflections as LAPACK packs them: R with the reflections' vectors below it, and tau."""
        *batch, m, n = k.shape_of(x)
        reflectors, finished = _reflections(k, x)
        steps = len(reflectors)
        if not steps:
            return k.copy(x), k.new_full(x, (*batch, 0), 0)
        below = [k.concat([k.new_full(x, (*batch, j + 1, 1), 0), rows(k, v, 1, None)], axis=-2)
                 for j, (v, _) in enumerate(reflectors)]  # fmt: skip
        if n > steps:
            below.append(k.new_full(x, (*batch, m, n - steps), 0))
        if m > steps:
            finished.append(k.new_full(x, (*batch, m - steps, n), 0))
        tau = k.concat([t for _, t in reflectors], axis=-2)
        packed = k.add(k.concat(finished, axis=-2), k.concat(below, axis=-1))
        return packed, k.reshape(tau, (*batch, steps))

    def qr(k: Any, x: Buffer, *, mode: str = "reduced") -> tuple[Buffer, Buffer]:
        """Factor into Q, orthonormal, and R, upper triangular, by Householder reflections.

        `mode` is "reduced", "complete" or "r"; with "r" Q is empty, of shape (0,).
        """
        *batch, m, n = k.shape_of(x)
        steps, size = min(m, n), m if mode == "complete" else min(m, n)
        reflectors, finished = _reflections(k, x)
        if size > steps:
            finished.append(k.new_full(x, (*batch, size - steps, n), 0))
        r = k.concat(finished, axis=-2) if finished else k.new_full(x, (*batch, size, n), 0)
        if mode == "r":
            return k.new_full(x, (0,), 0), r
        q = k.broadcast_to(eye(k, x, m, size), (*batch, m, size))
        for j in reversed(range(steps)):
            v, tau = reflectors[j]
            part = block(k, q, j, None, j, None)
            part = k.subtract(part, k.multiply(tau, k.matmul(v, k.matmul(adjoint(k, v), part))))
            q = part if j == 0 else _put_corner(k, q, part, j)
        return q, r


def _reflections(k: Any, x: Buffer) -> tuple[list[tuple[Buffer, Buffer]], list[Buffer]]:
    """Return the reflections (v, tau) that make x upper triangular, and the rows that they leave."""
    *batch, m, n = k.shape_of(x)
    reflectors, finished = [], []
    rest = x
    for j in range(min(m, n)):
        v, tau, beta = reflector(k, columns(k, rest, None, 1))
        reflectors.append((v, tau))
        others = columns(k, rest, 1, None)
        # The adjoint of the reflection: conj(tau).
        turned = k.conj(tau) if k.dtype_of(x).is_complex else tau
        others = k.subtract(others, k.multiply(turned, k.matmul(v, k.matmul(adjoint(k, v), others))))
        row = k.concat([beta, rows(k, others, None, 1)], axis=-1)
        if j:
            row = k.concat([k.new_full(x, (*batch, 1, j), 0), row], axis=-1)
        finished.append(row)
        rest = rows(k, others, 1, None)
    return reflectors, finished


def _put_corner(k: Any, q: Buffer, part: Buffer, j: int) -> Buffer:
    """Replace what lies below and right of (j, j)."""
    below = k.concat([block(k, q, j, None, None, j), part], axis=-1)
    return k.concat([rows(k, q, None, j), below], axis=-2)


def _parity(k: Any, packed: Buffer, pivots: Buffer) -> Buffer:
    """Return the sign of the permutation, in the matrix's dtype."""
    n = k.shape_of(pivots)[-1]
    moved = k.not_equal(pivots, k.new_arange(pivots, 1, n + 1, 1, int32))
    odd = k.remainder(k.sum(k.astype(moved, int64), axis=-1), 2)
    return k.astype(k.subtract(1, k.multiply(odd, 2)), k.dtype_of(packed))
