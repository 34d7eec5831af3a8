"""Matrices as buffers: blocks, adjoints, sizes of elements, diagonals, reflections. Nothing here is a kernel."""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import Buffer, is_minus
from mortice.dtype import finfo


def block(k: Any, x: Buffer, top: int | None, bottom: int | None, left: int | None, right: int | None) -> Buffer:
    """Take a block of rows and columns."""
    return k.getitem(x, (..., slice(top, bottom), slice(left, right)))


def rows(k: Any, x: Buffer, start: int | None, stop: int | None) -> Buffer:
    """Take a range of rows."""
    return k.getitem(x, (..., slice(start, stop), slice(None)))


def columns(k: Any, x: Buffer, start: int | None, stop: int | None) -> Buffer:
    """Take a range of columns."""
    return k.getitem(x, (..., slice(start, stop)))


def adjoint(k: Any, x: Buffer) -> Buffer:
    """Transpose the matrices and conjugate."""
    x = k.matrix_transpose(x)
    return k.conj(x) if k.dtype_of(x).is_complex else x


def taxicab(k: Any, x: Buffer) -> Buffer:
    """Return |re| + |im|: an absolute value to compare by."""
    return k.add(k.abs(k.real(x)), k.abs(k.imag(x))) if k.dtype_of(x).is_complex else k.abs(x)


def largest_part(k: Any, x: Buffer) -> Buffer:
    """Return the larger of |re| and |im|: a size to scale by, which does not overflow."""
    return k.maximum(k.abs(k.real(x)), k.abs(k.imag(x))) if k.dtype_of(x).is_complex else k.abs(x)


def length(k: Any, x: Buffer) -> Buffer:
    """Return the absolute value."""
    return k.hypot(k.real(x), k.imag(x)) if k.dtype_of(x).is_complex else k.abs(x)


def squared(k: Any, x: Buffer) -> Buffer:
    """Return the square of the absolute value."""
    return k.add(k.square(k.real(x)), k.square(k.imag(x))) if k.dtype_of(x).is_complex else k.square(x)


def eye(k: Any, x: Buffer, n: int, m: int | None = None) -> Buffer:
    """Make an identity matrix, n by m, beside x."""
    down = k.reshape(k.new_arange(x, 0, n), (n, 1))
    across = k.reshape(k.new_arange(x, 0, n if m is None else m), (1, n if m is None else m))
    return k.astype(k.equal(down, across), k.dtype_of(x))


def diagonal(k: Any, x: Buffer) -> Buffer:
    """Take the main diagonals."""
    *batch, m, n = k.shape_of(x)
    size = min(m, n)
    flat = k.reshape(columns(k, rows(k, x, None, size), None, size), (*batch, size * size))
    return k.getitem(flat, (..., slice(None, None, size + 1)))


def gather_rows(k: Any, x: Buffer, order: Buffer) -> Buffer:
    """Reorder the rows of each matrix."""
    *batch, m, n = k.shape_of(x)
    count = k.shape_of(order)[-1]
    index = k.broadcast_to(k.reshape(order, (*k.shape_of(order), 1)), (*batch, count, n))
    return k.take_along_axis(x, index, axis=-2)


def gather_columns(k: Any, x: Buffer, order: Buffer) -> Buffer:
    """Reorder the columns of each matrix."""
    *batch, m, n = k.shape_of(x)
    count = k.shape_of(order)[-1]
    index = k.broadcast_to(k.expand_dims(order, -2), (*batch, m, count))
    return k.take_along_axis(x, index, axis=-1)


def reflector(k: Any, column: Buffer) -> tuple[Buffer, Buffer, Buffer]:
    """Return v, tau and beta so that (1 - tau v v^H)^H column = (beta, 0, ..., 0), with LAPACK's signs."""
    d = k.dtype_of(column)
    # Columns are scaled, so that squares neither overflow nor vanish, by way of normal numbers: dividing by a
    # subnormal one is not safe for complex numbers.
    limits = finfo(d)
    most = k.max(largest_part(k, column), axis=-2, keepdims=True)
    lift = k.where(k.less(most, limits.smallest_normal / limits.eps), limits.eps**-3, k.ones_like(most))
    most = k.multiply(most, lift)
    scale = k.where(k.equal(most, 0.0), 1.0, most)
    column = k.divide(k.multiply(column, k.astype(lift, d)), k.astype(scale, d))
    head, tail = rows(k, column, None, 1), rows(k, column, 1, None)
    re = k.real(head) if d.is_complex else head
    norm = k.sqrt(k.sum(squared(k, column), axis=-2, keepdims=True))
    # A column that is done, a real number over zeros, is left as it is.
    done = k.equal(k.sum(taxicab(k, tail), axis=-2, keepdims=True), 0.0)
    if d.is_complex:
        done = k.bitwise_and(done, k.equal(k.imag(head), 0.0))
    beta = k.where(done, re, k.where(is_minus(k, re), norm, k.negative(norm)))
    safe = k.astype(k.where(done, 1.0, beta), d)
    tau = k.where(done, 0.0, k.divide(k.subtract(safe, head), safe))
    v = k.concat([k.ones_like(head), k.divide(tail, k.where(done, 1.0, k.subtract(head, safe)))], axis=-2)
    return v, tau, k.astype(k.divide(k.multiply(beta, scale), lift), d)
