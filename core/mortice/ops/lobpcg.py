"""A few extreme eigenvalues of a large symmetric matrix, by the locally optimal block preconditioned conjugate gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.dtype import finfo
from mortice.errors import ShapeError
from mortice.modes import no_grad
from mortice.ops import factor
from mortice.ops.creation import eye
from mortice.ops.joining import cat
from mortice.ops.linalg import adjoint, check_square
from mortice.ops.linalg_derived import pinv
from mortice.ops.matmul import matmul
from mortice.ops.movement import unsqueeze
from mortice.ops.random import randn

__all__ = ["lobpcg"]


def _times(m: Any, x: Any) -> Any:
    return x if m is None else matmul(m, x)


def _ritz(a: Any, b: Any, basis: Any, largest: bool) -> tuple[Any, Any]:
    """Return the best approximations to eigenpairs in the span of a basis, the wanted ones first."""
    q = factor.qr(basis, mode="reduced")[0]
    small = matmul(adjoint(q), matmul(a, q))
    if b is not None:
        low = factor.cholesky_ex(matmul(adjoint(q), matmul(b, q)), upper=False)[0]
        q = adjoint(factor.solve_triangular(low, adjoint(q), upper=False, left=True, unit_diagonal=False))
        small = matmul(adjoint(q), matmul(a, q))
    values, vectors = factor.eigh(small, upper=False)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values, matmul(q, vectors)


def _columns(x: Any) -> Any:
    return x.abs().square().sum(-2).sqrt()


def _iterate(
    a: Any, b: Any, x: Any, precondition: Any, count: int, steps: int, tol: float, largest: bool, tracker: Any
) -> Any:
    n = x.shape[-1]
    size_a = _columns(matmul(a, x)).amax() / _columns(x).amax()
    size_b = 1.0 if b is None else _columns(matmul(b, x)).amax() / _columns(x).amax()
    values, x = (v[..., :n] for v in _ritz(a, b, x, largest))
    direction, step = None, 0
    while step != steps:
        residual = matmul(a, x) - _times(b, x) * unsqueeze(values, -2)
        error = _columns(residual) / (_columns(x) * (size_a + values.abs() * size_b))
        if tracker is not None:
            tracker(step, values, x, error)
        if bool((error[..., :count] < tol).all().item()):
            break
        parts = [x, _times(precondition, residual), *([] if direction is None else [direction])]
        values, new = (v[..., :n] for v in _ritz(a, b, cat(parts, -1), largest))
        # What the step added to the old approximation is the direction to search next time.
        direction = new - matmul(x, matmul(adjoint(x), _times(b, new)))
        x, step = new, step + 1
    return values[..., :count], x[..., :count]


def _followed(a: Any, values: Any, vectors: Any) -> tuple[Any, Any]:
    """Return eigenpairs of a symmetric matrix with their gradients: two steps of Newton's method, of whose matrix none is asked.

    Each step makes the derivatives of one more order exact.
    """
    a = (a + adjoint(a)) / 2
    u, value = unsqueeze(adjoint(vectors), -1), unsqueeze(unsqueeze(values, -1), -1)
    corner, a = value * 0, unsqueeze(a, -3)
    here = a.detach() - value * eye(a.shape[-1], dtype=a.dtype, device=a._device)
    # Of equal eigenvalues the matrix is singular: their vectors have no derivative along each other.
    inverse = pinv(cat([cat([here, -u], -1), cat([-adjoint(u), corner], -1)], -2), hermitian=True)
    for _ in range(2):
        error = cat([matmul(a, u) - value * u, (1 - matmul(adjoint(u), u)) / 2], -2)
        step = matmul(inverse, error)
        u, value = u - step[..., :-1, :], value - step[..., -1:, :]
    return value[..., 0, 0], adjoint(u[..., 0])


def lobpcg(
    A: Any, k: int | None = None, B: Any = None, X: Any = None, n: int | None = None, iK: Any = None,
    niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None,
    tracker: Callable[..., None] | None = None, ortho_iparams: Any = None, ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the k largest (or smallest) eigenvalues of A, or of A against B, with their vectors.

    Differs from torch: against B, and of complex A, gradients reach the eigenvalues alone; both methods are one, and `tracker` is
    called with the step, the values, the vectors and their errors.
    """
    check_square("lobpcg", A)
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: expected method to be 'basic' or 'ortho'; got {method!r}.")
    m = A.shape[-1]
    n = (k or 1 if n is None else n) if X is None else X.shape[-1]
    k = n if k is None else k
    if m < 3 * n or not 0 < k <= n:
        raise ShapeError(
            f"lobpcg: expected 0 < k <= n and a matrix of at least 3 * n rows; got k = {k}, n = {n}, {m} rows."
        )
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    with no_grad():
        a, b = A.detach(), None if B is None else B.detach()
        start = randn(*tuple(A.shape)[:-1], n, dtype=A.dtype, device=A._device) if X is None else X.detach()
        values, vectors = _iterate(
            a, b, start, iK, k, 1000 if niter is None else niter, tol, largest is None or largest, tracker
        )
    if A._rg and B is None and not A.dtype.is_complex:
        return _followed(A, values, vectors)
    if A._rg or (B is not None and B._rg):
        # At an eigenvector the quotient is flat in the vector, so its gradient is that of the eigenvalue.
        values = (vectors.conj() * matmul(A, vectors)).sum(-2) / (vectors.conj() * _times(B, vectors)).sum(-2)
        values = values.real if values.dtype.is_complex else values
    return values, vectors
