"""Matrices as buffers: blocks, adjoints, diagonals. Nothing here is a kernel."""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import Buffer


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
