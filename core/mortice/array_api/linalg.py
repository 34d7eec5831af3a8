"""The linear algebra extension: PyTorch's `linalg` in the standard's names, results and arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import mortice as mt
from mortice.array_api.reductions import along, sum
from mortice.errors import ShapeError
from mortice.linalg import cholesky, det, eigvals, eigvalsh, inv, matrix_power, svdvals

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of symmetric matrices."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """Orthonormal and upper triangular factor."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of a determinant."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, adjoint right singular vectors."""

    U: Any
    S: Any
    Vh: Any


def _alike(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Convert both to the dtype that they promote to, which PyTorch's products leave to the caller."""
    d = mt.promote_types(x1.dtype, x2.dtype)
    return x1.to(d), x2.to(d)


def matmul(x1: Any, x2: Any, /) -> Any:
    """Multiply matrices: vectors count as rows or columns, leading axes broadcast."""
    return mt.matmul(*_alike(x1, x2))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the vector perpendicular to two vectors of 3 elements along an axis; the other axes broadcast."""
    ndim = max(x1.ndim, x2.ndim)
    x1, x2 = [mt.reshape(x, (1,) * (ndim - x.ndim) + tuple(x.shape)) for x in _alike(x1, x2)]
    return mt.linalg.cross(x1, x2, dim=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return a diagonal of each matrix."""
    return mt.linalg.diagonal(x, offset=offset)


def eig(x: Any, /) -> EigResult:
    """Return eigenvalues and eigenvectors, complex."""
    return EigResult(*mt.linalg.eig(x))


def eigh(x: Any, /) -> EighResult:
    """Return eigenvalues, rising, and eigenvectors of symmetric (Hermitian) matrices."""
    return EighResult(*mt.linalg.eigh(x))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return the norm of each matrix: "fro", "nuc", inf, -inf, 1, -1, 2 or -2."""
    return mt.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Count the singular values above `rtol` times the largest."""
    return mt.linalg.matrix_rank(x, rtol=rtol)


def matrix_transpose(x: Any, /) -> Any:
    """Swap the last two axes."""
    return x.mT


def outer(x1: Any, x2: Any, /) -> Any:
    """Multiply each element of one vector with each of another."""
    return mt.outer(x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Return the Moore-Penrose inverse; singular values up to `rtol` times the largest count as zero."""
    return mt.linalg.pinv(x, rtol=rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Split into an orthonormal and an upper triangular matrix."""
    return QRResult(*mt.linalg.qr(x, mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """Return sign and logarithm of the absolute value of the determinant."""
    return SlogdetResult(*mt.linalg.slogdet(x))


def solve(x1: Any, x2: Any, /) -> Any:
    """Solve linear equations; x2 is a vector only when it is 1-D, else a stack of matrices."""
    x1, x2 = _alike(x1, x2)
    if x2.ndim == 1:
        return mt.linalg.solve(x1, x2)
    lead = mt.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return mt.linalg.solve(mt.broadcast_to(x1, (*lead, *x1.shape[-2:])), mt.broadcast_to(x2, (*lead, *x2.shape[-2:])))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Split into left singular vectors, singular values, and adjoint right singular vectors."""
    return SVDResult(*mt.linalg.svd(x, full_matrices))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Multiply and add up over so many last and first axes, or over those listed for each."""
    return mt.tensordot(*_alike(x1, x2), axes)


def trace(x: Any, /, *, offset: int = 0, dtype: mt.dtype | None = None) -> Any:
    """Add up a diagonal of each matrix."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Multiply vectors along an axis, the first one conjugated."""
    if not (x1.ndim and x2.ndim) or x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: sizes along axis {axis} must agree; got {tuple(x1.shape)} and {tuple(x2.shape)}.")
    x1, x2 = _alike(x1, x2)
    return mt.sum(mt.conj(x1) * x2, axis, dtype=x1.dtype)  # PyTorch's vecdot refuses integers


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """Return the norm of vectors along axes, of all elements by default."""
    return along(lambda x, axis, keepdims: mt.linalg.vector_norm(x, ord, axis, keepdims), x, axis, keepdims)
