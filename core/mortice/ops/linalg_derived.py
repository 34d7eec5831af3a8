"""What is made of the factorisations: pseudo-inverse, rank, condition, least squares, powers, exponential, vander."""

from __future__ import annotations

import math
import operator
from typing import Any

from mortice import return_types
from mortice.call import give
from mortice.dtype import CLASS_NAMES, bfloat16, finfo, float16, float32, int64
from mortice.errors import DTypeError, ShapeError
from mortice.layout import strided
from mortice.modes import autocasting, no_grad
from mortice.node import TENSOR_KERNELS, node_name
from mortice.ops import factor
from mortice.ops.creation import full
from mortice.ops.data import range_of
from mortice.ops.elementwise import add
from mortice.ops.fill import zero
from mortice.ops.joining import cat
from mortice.ops.linalg import (
    adjoint,
    check_dims,
    check_floats,
    check_matrix,
    check_nan,
    check_one_dtype,
    check_square,
    eigvalsh,
    identity,
    inv,
    svdvals,
)
from mortice.ops.matmul import matmul
from mortice.ops.movement import cast, contiguous, expand, reshape, unsqueeze
from mortice.ops.norms import matrix_norm
from mortice.ops.reduce import write_all
from mortice.ops.strided import diagonal as _diagonal
from mortice.shape import Size, broadcast, prod
from mortice.tensor import TensorBase

__all__ = ["matrix_exp", "matrix_power", "pca_lowrank", "pinverse", "svd_lowrank"]

# ---- ranks, pseudo-inverses, least squares ----


def _tolerance(x: Any, value: Any, default: float) -> Any:
    """Return a tolerance as a real tensor beside x."""
    real = x.dtype.to_real()
    if isinstance(value, TensorBase):
        if value.dtype.is_complex:
            raise RuntimeError("tolerance tensors of complex type are not supported.")
        return cast(value, real)
    return full((), default if value is None else float(value), dtype=real, device=x._device)


def _tolerances(x: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Return atol and rtol as tensors: by default rtol is eps * max(m, n), or 0 where atol is given and positive."""
    eps = finfo(x.dtype).eps * max(tuple(x.shape)[-2:])
    absolute = _tolerance(x, atol, 0.0)
    if rtol is not None:
        return absolute, _tolerance(x, rtol, 0.0)
    default = _tolerance(x, None, eps)
    if isinstance(atol, TensorBase):
        return absolute, TENSOR_KERNELS.where(absolute > 0, 0.0, default)
    return absolute, _tolerance(x, 0.0, 0.0) if atol is not None and atol > 0 else default


def pinv(
    input: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Any:
    """Return the Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as zero."""
    check_matrix("linalg.pinv", input)
    if hermitian:
        check_square("linalg.pinv", input)
    else:
        check_nan("linalg.pinv", input)
    absolute, relative = _tolerances(input, atol, rcond if rtol is None else rtol)
    # Tolerances of several sizes ask for as many inverses.
    lead = broadcast("linalg.pinv", tuple(input.shape)[:-2], absolute.shape, relative.shape)
    many = input if lead == tuple(input.shape)[:-2] else expand(input, (*lead, *tuple(input.shape)[-2:]))
    return give("linalg.pinv", out, factor.pinv(many, absolute.detach(), relative.detach(), hermitian=bool(hermitian)))


@autocasting
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """Return the Moore-Penrose inverse: linalg.pinv's older name."""
    return pinv(input, rcond)


@autocasting
def matrix_rank(
    input: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Any:
    """Return how many singular values are above max(atol, rtol * largest)."""
    check_matrix("linalg.matrix_rank", input)
    if hermitian:
        check_square("linalg.matrix_rank", input)
    if tol is not None:
        atol, rtol = tol, 0.0
    input = input.detach()
    absolute, relative = _tolerances(input, atol, rtol)
    if not prod(tuple(input.shape)[-2:]):
        return give("linalg.matrix_rank", out, input.new_zeros(tuple(input.shape)[:-2]).long())
    s = eigvalsh(input).abs() if hermitian else svdvals(input)
    limit = TENSOR_KERNELS.maximum(absolute, relative * s.amax(-1))
    return give("linalg.matrix_rank", out, (s > unsqueeze(limit, -1)).sum(-1))


@autocasting
def cond(input: Any, p: Any = None, *, out: Any = None) -> Any:
    """Return the condition number of matrices, in the 2-norm by default."""
    check_matrix("linalg.cond", input)
    by_values = p is None or p in (2, -2)
    if not by_values:
        check_square("linalg.cond", input)
        if isinstance(p, str) and p not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not prod(input.shape):
        return give("linalg.cond", out, input.new_zeros(tuple(input.shape)[:-2], dtype=input.dtype.to_real()))
    if by_values:
        s = svdvals(input)
        largest, smallest = s[..., 0], s[..., -1]
        return give("linalg.cond", out, smallest / largest if p == -2 else largest / smallest)
    inverted, info = factor.inv_ex(input)
    singular = info != 0
    # What has no inverse needs a norm all the same, and the nuclear one takes finite numbers only.
    inverted = TENSOR_KERNELS.where(reshape(singular, (*singular.shape, 1, 1)), input, inverted)
    made = matrix_norm(input, p) * matrix_norm(inverted, p)
    return give("linalg.cond", out, TENSOR_KERNELS.where(singular, math.inf, made))


@autocasting
@node_name("LinalgLstsqBackward0")
def lstsq(input: Any, b: Any, rcond: Any = None, *, driver: str | None = None, out: Any = None) -> Any:
    """Find X with the smallest norm of A @ X - B."""
    check_matrix("linalg.lstsq", input)
    check_floats("linalg.lstsq", b)
    check_one_dtype("linalg.lstsq", input, b)
    if len(b.shape) < 1:
        raise RuntimeError("torch.linalg.lstsq: input other must have at least 1 dimension.")
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss); got {driver!r}."
        )
    vector = len(input.shape) - 1 == len(b.shape) and tuple(input.shape)[:-1] == tuple(b.shape)
    b = unsqueeze(b, -1) if vector else b
    if len(b.shape) < 2 or len(input.shape) - len(b.shape) > 1:
        raise ShapeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            f"other.dim()) <= 1; got {list(input.shape)} and {list(b.shape)}."
        )
    if input.shape[-2] != b.shape[-2]:
        raise ShapeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size({'-1' if vector else '-2'}); got "
            f"{input.shape[-2]} and {b.shape[-2]}."
        )
    m, n = tuple(input.shape)[-2:]
    real, empty = input.dtype.to_real(), Size((0,))
    rank = input.new_zeros(empty).long()
    values = input.new_zeros(empty, dtype=real)
    if driver == "gels":
        solution = _full_rank(input, b)
    else:
        check_nan("linalg.lstsq", input)
        eps = finfo(input.dtype).eps
        cut = eps * max(m, n) if rcond is None else rcond
        if cut < 0 or (driver == "gelsd" and not 0 < cut < 1):
            cut = eps  # as LAPACK reads such a number
        solution = _full_rank(input, b, cut) if driver == "gelsy" and prod(input.shape) else None
        if solution is not None:
            rank = input.new_full(tuple(input.shape)[:-2], min(m, n), dtype=int64)
        else:
            absolute, relative = _tolerance(input, 0.0, 0.0), _tolerance(input, cut, 0.0)
            solution = matmul(factor.pinv(input, absolute, relative, hermitian=False), b)
            s = svdvals(input.detach())
            top = s.amax(-1, keepdim=True) if prod(s.shape) else s
            rank = (s > relative * top).sum(-1)
            values = s if driver != "gelsy" else values
    residuals = reshape(input, -1)[:0].abs()
    if m > n and driver != "gelsy" and (
        driver == "gels" or not prod(rank.shape) or (range_of(rank) or (n,))[0] == n
    ):
        residuals = (matmul(input, solution) - b).abs().square().sum(-2)
    made = return_types.linalg_lstsq(solution.squeeze(-1) if vector else solution, residuals, rank, values)
    return write_all("linalg.lstsq", out, made)


def _full_rank(a: Any, b: Any, cut: float | None = None) -> Any:
    """Solve least squares by QR, of A or of its adjoint; None where a singular value may be less than `cut` of the largest."""
    tall = a.shape[-2] >= a.shape[-1]
    q, r = factor.qr(a if tall else adjoint(a), mode="reduced")
    if cut is not None:
        with no_grad():
            inverse = factor.solve_triangular(r, identity(r), upper=True, left=True, unit_diagonal=False)
            # No less than the largest singular value by the least.
            _, most = range_of(matrix_norm(r) * matrix_norm(inverse)) or (0, math.inf)
        if not most * cut < 1:
            return None
    if tall:
        return factor.solve_triangular(r, matmul(adjoint(q), b), upper=True, left=True, unit_diagonal=False)
    return matmul(q, factor.solve_triangular(adjoint(r), b, upper=False, left=True, unit_diagonal=False))


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """Return the q largest singular values with their vectors (U, S, V) of A - M, by random projection."""
    from mortice.ops.random import randn

    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = tuple(A.shape)[-2:]
    # A sparse matrix takes part in products alone, and M beside it.
    rest = M if A.layout is not strided else None
    B = A if M is None or rest is not None else A - expand(M, A.shape)
    tall = m >= n

    def product(x: Any, back: bool) -> Any:
        if back is not tall:
            return matmul(B, x) if rest is None else matmul(B, x) - matmul(rest, x)
        made = matmul(adjoint(B), x)
        return made if rest is None else made - matmul(adjoint(rest), x.sum(-2, keepdim=True) if rest.shape[-2] == 1 else x)

    spread = A.layout is not strided
    basis = product(randn(min(m, n), q, dtype=A.dtype, device=A.device if spread else A._device), False)
    check_nan("svd_lowrank", basis if spread else B)
    basis = factor.qr(basis, mode="reduced")[0]
    for _ in range(niter):
        basis = factor.qr(product(basis, True), mode="reduced")[0]
        basis = factor.qr(product(basis, False), mode="reduced")[0]
    u, s, vh = factor.svd(adjoint(product(basis, True)), full_matrices=False)
    u, v = matmul(basis, u), contiguous(adjoint(vh))
    return (u, s, v) if tall else (v, s, u)


def pca_lowrank(A: Any, q: int | None = None, center: Any = True, niter: int = 2) -> Any:
    """Return the q largest principal components (U, S, V) of rows of observations, by random projection."""
    m, n = tuple(A.shape)[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if A.layout is strided:
        return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
    if len(A.shape) != 2:
        raise ValueError(f"pca_lowrank: input is expected to be 2-dimensional tensor; got {list(A.shape)}.")
    return svd_lowrank(A, q, niter, matmul(A.t(), full((m, 1), 1 / m, dtype=A.dtype, device=A.device)).t() if center else None)


# ---- powers, exponentials, products ----


def matrix_power(input: Any, n: int, *, out: Any = None) -> Any:
    """Multiply square matrices with themselves n times; a negative n inverts first."""
    check_square("linalg.matrix_power", input, check_dims)
    n = operator.index(n)
    copied = add.op if n in (0, 1) else None  # these cast into `out=`, as sums do
    if n < 0:
        input, n = inv(input), -n
    if n == 0:
        made = add(zero(input), identity(input))
    else:
        made, square = None, input
        while n:
            if n & 1:
                made = square if made is None else matmul(made, square)
            n >>= 1
            square = matmul(square, square) if n else square
        made = made.clone() if made is input else made
    return give("linalg.matrix_power", out, made, copied)


_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
         670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)  # fmt: skip


@autocasting
def matrix_exp(input: Any) -> Any:
    """Return the exponential of square matrices, by scaling, a Pade quotient and squaring."""
    if isinstance(input, TensorBase) and input.dtype in (float16, bfloat16):
        return cast(matrix_exp(cast(input, float32)), input.dtype)
    check_square("linalg.matrix_exp", input)
    if not prod(input.shape):
        return input.clone()
    sums = input.detach().abs().sum(-2)
    k = sums._device.backend
    _, size = k.index_range(sums._buffer) if k.has_values else (0, 0)
    squarings = max(0, math.ceil(math.log2(size / 5.37))) if size > 5.37 and math.isfinite(size) else 0
    x = input / 2.0**squarings if squarings else input
    b = [float(v) / _PADE[0] for v in _PADE]
    one = identity(input)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    odd = matmul(x6, x6 * b[13] + x4 * b[11] + x2 * b[9]) + x6 * b[7] + x4 * b[5] + x2 * b[3] + one * b[1]
    odd = matmul(x, odd)
    even = matmul(x6, x6 * b[12] + x4 * b[10] + x2 * b[8]) + x6 * b[6] + x4 * b[4] + x2 * b[2] + one * b[0]
    made = contiguous(factor.solve_ex(even - odd, even + odd)[0])
    for _ in range(squarings):
        made = matmul(made, made)
    return made


def vander(x: Any, N: int | None = None) -> Any:
    """Return the powers 0 to N - 1 of vectors, as new last dims."""
    x = x if x.shape else reshape(x, 1)
    n = x.shape[-1] if N is None else N
    if x.dtype.kind == "b":
        raise DTypeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {CLASS_NAMES[x.dtype.name]}")
    if n <= 1:
        raise RuntimeError(f"N must be greater than 1; got {n}.")
    ones = x.new_ones((*x.shape, 1))
    steps = expand(unsqueeze(x, -1), (*x.shape, n - 1)).cumprod(-1)
    return cat([cast(ones, steps.dtype), steps], -1)


def torch_vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the powers of a vector's elements, one element a row, the highest first unless increasing."""
    if len(x.shape) != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor; got {len(x.shape)}D.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError(f"N must be non-negative; got {n}.")
    x = x if x.dtype.kind in "fc" else x.long()  # however few powers are asked for
    made = vander(x, n) if n > 1 else x.new_ones((x.shape[0], n))
    return made if increasing else made.flip(-1)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Show the diagonals of matrices; a view."""
    return _diagonal(A, offset, dim1, dim2)
