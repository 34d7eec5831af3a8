"""The functions of `mortice.linalg` and their older names: checks, named results, and what is made of the ops in `factor`."""

from __future__ import annotations

import math
import operator
from collections import namedtuple
from typing import Any

from mortice import op as _op
from mortice.dtype import bfloat16, finfo, float16, float32, int32
from mortice.errors import DTypeError, LinAlgError, ShapeError
from mortice.op import TENSOR_KERNELS, TensorBase
from mortice.ops import factor
from mortice.ops.arrange import tril
from mortice.ops.creation import filled, full
from mortice.ops.gather import zero
from mortice.ops.matmul import matmul
from mortice.ops.movement import cast, expand, permute, reshape, transpose, unsqueeze
from mortice.ops.reduce import write_all
from mortice.ops.views import adjoint, diagonal as _diagonal
from mortice.shape import Size, broadcast, prod
from mortice.tensor import make

cholesky_ex_result = namedtuple("cholesky_ex_result", "L info")
inv_ex_result = namedtuple("inv_ex_result", "inverse info")
solve_ex_result = namedtuple("solve_ex_result", "result info")
lu_result = namedtuple("lu_result", "P L U")
lu_factor_result = namedtuple("lu_factor_result", "LU pivots")
lu_factor_ex_result = namedtuple("lu_factor_ex_result", "LU pivots info")
qr_result = namedtuple("qr_result", "Q R")
eigh_result = namedtuple("eigh_result", "eigenvalues eigenvectors")
eig_result = namedtuple("eig_result", "eigenvalues eigenvectors")
svd_result = namedtuple("svd_result", "U S Vh")
svd_old_result = namedtuple("svd_old_result", "U S V")
slogdet_result = namedtuple("slogdet_result", "sign logabsdet")
lstsq_result = namedtuple("lstsq_result", "solution residuals rank singular_values")
triangular_solve_result = namedtuple("triangular_solve_result", "solution cloned_coefficient")

# ---- checks ----


def _floats(name: str, *tensors: Any) -> None:
    for x in tensors:
        if not isinstance(x, TensorBase):
            raise TypeError(f"{name}: expected a Tensor; got {type(x).__name__}.")
        if x.dtype.kind not in "fc":
            raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}. Use .float().")
        if x.dtype is float16 or x.dtype is bfloat16:
            raise DTypeError(f"{name}: Low precision dtypes not supported. Got {x.dtype}. Use .float().")


def _matrix(name: str, *tensors: Any) -> None:
    _floats(name, *tensors)
    for x in tensors:
        if len(x.shape) < 2:
            raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions; got {list(x.shape)}.")


def _square(name: str, x: Any) -> None:
    _matrix(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )


def _one_dtype(name: str, a: Any, b: Any) -> None:
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name}: Expected A and B to have the same dtype; got {a.dtype} and {b.dtype}.")
    _op.check_device(factor.solve_ex.op, a, b)


def _fail(name: str, info: Any, what: str) -> None:
    """Raise for the first matrix of a batch that failed; reads `info` once."""
    k = info._device.backend
    if not prod(info.shape) or k.item(k.max(k.abs(info._data))) == 0:
        return
    flat = reshape(info, -1).tolist()
    at = next(i for i, v in enumerate(flat) if v)
    where = f"(Batch element {at}): " if info.shape else ""
    raise LinAlgError(f"{name}: {where}" + what.format(flat[at]))


_SINGULAR = "The diagonal element {} is zero, the {} could not be completed because the input matrix is singular."
_INVERT = _SINGULAR.format("{}", "inversion")
_SOLVE = "The solver failed because the input matrix is singular."
_CHOLESKY = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{} is not positive-definite)."
)


def _out(name: str, out: Any, made: Any) -> Any:
    return made if out is None else _op.WRITE_OUT(name, out, made)


# ---- Cholesky ----


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Factor like cholesky, with a code per matrix instead of an error: 0, or the order of the minor that failed."""
    _square("linalg.cholesky_ex", A)
    low, info = factor.cholesky_ex(A, upper=bool(upper))
    if check_errors:
        _fail("linalg.cholesky_ex", info, _CHOLESKY)
    return write_all("linalg.cholesky_ex", out, cholesky_ex_result(low, info))


def cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """Return L with A = L @ L.mH, for Hermitian positive-definite A; with `upper` its adjoint."""
    _square("linalg.cholesky", A)
    low, info = factor.cholesky_ex(A, upper=bool(upper))
    _fail("linalg.cholesky", info, _CHOLESKY)
    return _out("linalg.cholesky", out, low)


def torch_cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Return L with input = L @ L.mH; linalg.cholesky's older name."""
    return cholesky(input, upper=upper, out=out)


def cholesky_solve(B: Any, L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Solve A @ X = B given the Cholesky factor of A."""
    _matrix("cholesky_solve", B, L)
    _square("cholesky_solve", L)
    _one_dtype("cholesky_solve", L, B)
    if L.shape[-1] != B.shape[-2]:
        raise ShapeError(f"cholesky_solve: Incompatible matrix sizes for cholesky_solve; got {list(B.shape)} and {list(L.shape)}.")  # fmt: skip
    turned = adjoint(L)
    first, second = (turned, L) if upper else (L, turned)
    half = factor.solve_triangular(first, B, upper=False, left=True, unit_diagonal=False)
    return _out("cholesky_solve", out, factor.solve_triangular(second, half, upper=True, left=True, unit_diagonal=False))


def cholesky_inverse(L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Invert A given its Cholesky factor."""
    _square("cholesky_inverse", L)
    return _out("cholesky_inverse", out, cholesky_solve(_eye(L), L, upper))


def _eye(x: Any, n: int | None = None) -> Any:
    from mortice.ops.creation import eye

    return eye(x.shape[-1] if n is None else n, dtype=x.dtype, device=x._device)


# ---- inverse and solve ----


def inv_ex(A: Any, *, check_errors: bool = False, out: Any = None) -> Any:
    """Invert, with a code per matrix instead of an error: not 0 where it is singular."""
    _square("linalg.inv_ex", A)
    made, info = factor.inv_ex(A)
    if check_errors:
        _fail("linalg.inv_ex", info, _INVERT)
    return write_all("linalg.inv_ex", out, inv_ex_result(made, info))


def inv(A: Any, *, out: Any = None) -> Any:
    """Return the inverse of square matrices."""
    _square("linalg.inv", A)
    made, info = factor.inv_ex(A)
    _fail("linalg.inv", info, _INVERT)
    return _out("linalg.inv", out, made)


def inverse(input: Any, *, out: Any = None) -> Any:
    """Return the inverse of square matrices: another name of linalg.inv."""
    return inv(input, out=out)


def _is_vector(a: Any, b: Any) -> bool:
    return len(b.shape) == 1 or (len(a.shape) - 1 == len(b.shape) and tuple(b.shape) == tuple(a.shape)[:-1])


def _solve(name: str, a: Any, b: Any, left: bool) -> tuple[Any, Any]:
    _square(name, a)
    _floats(name, b)
    _one_dtype(name, a, b)
    vector = _is_vector(a, b)
    if vector:
        if not left:
            raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported for left=False.")
        b = unsqueeze(b, -1)
    n, m = a.shape[-1], b.shape[-2 if left else -1]
    if n != m:
        raise ShapeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )
    if left:
        made, info = factor.solve_ex(a, b)
    else:
        made, info = factor.solve_ex(transpose(a, -2, -1), transpose(b, -2, -1))
        made = transpose(made, -2, -1)
    return (made.squeeze(-1) if vector else made), info


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Solve like solve, with a code per matrix instead of an error."""
    made, info = _solve("linalg.solve_ex", A, B, left)
    if check_errors:
        _fail("linalg.solve_ex", info, _SOLVE)
    return write_all("linalg.solve_ex", out, solve_ex_result(made, info))


def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """Solve A @ X = B, or X @ A = B unless left."""
    made, info = _solve("linalg.solve", A, B, left)
    _fail("linalg.solve", info, _SOLVE)
    return _out("linalg.solve", out, made)


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Any:
    """Solve A @ X = B with one triangle of A, or X @ A = B unless left."""
    _square("linalg.solve_triangular", A)
    _matrix("linalg.solve_triangular", B)
    _one_dtype("linalg.solve_triangular", A, B)
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise ShapeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    made = factor.solve_triangular(A, B, upper=bool(upper), left=bool(left), unit_diagonal=bool(unitriangular))
    return _out("linalg.solve_triangular", out, made)


def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None
) -> Any:
    """Solve A @ X = b with one triangle of A: linalg.solve_triangular's older form."""
    _square("triangular_solve", A)
    _matrix("triangular_solve", b)
    a, up = (A.mT, not upper) if transpose else (A, upper)
    made = solve_triangular(a, b, upper=up, unitriangular=unitriangular)
    whole = expand(A, (*tuple(made.shape)[:-2], *tuple(A.shape)[-2:])).clone()
    return write_all("triangular_solve", out, triangular_solve_result(made, whole))


def tensorinv(A: Any, ind: int = 2, *, out: Any = None) -> Any:
    """Invert a tensor as a map from its last dims to its first `ind` ones."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = tuple(A.shape)[:ind], tuple(A.shape)[ind:]
    if prod(first) != prod(last):
        raise ShapeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(last)} != {prod(first)}"
        )
    made = reshape(inv(reshape(A, (prod(first), prod(last)))), (*last, *first))
    return _out("linalg.tensorinv", out, made)


def tensorsolve(A: Any, B: Any, dims: Any = None, *, out: Any = None) -> Any:
    """Solve tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        order = [d % len(A.shape) for d in dims]
        A = permute(A, [d for d in range(len(A.shape)) if d not in order] + order)
    shape = tuple(A.shape)[len(B.shape) :]
    if prod(shape) != prod(tuple(A.shape)[: len(B.shape)]):
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {prod(shape)} != {prod(tuple(A.shape)[: len(B.shape)])}"
        )
    made = reshape(solve(reshape(A, (prod(B.shape), prod(shape))), reshape(B, -1)), shape)
    return _out("linalg.tensorsolve", out, made)


# ---- LU ----


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Factor with partial pivoting into packed L and U, with a code per matrix instead of an error."""
    _matrix("linalg.lu_factor_ex", A)
    _pivoting("linalg.lu_factor_ex", pivot)
    packed, pivots, _, info = factor.lu_ex(A)
    if check_errors:
        _fail("linalg.lu_factor_ex", info, _LU)
    return write_all("linalg.lu_factor_ex", out, lu_factor_ex_result(packed, pivots, info))


_LU = "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero."


def _pivoting(name: str, pivot: bool) -> None:
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU.")


def lu_factor(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """Factor with partial pivoting into packed L and U and the pivots, for lu_solve."""
    _matrix("linalg.lu_factor", A)
    _pivoting("linalg.lu_factor", pivot)
    packed, pivots, _, info = factor.lu_ex(A)
    _fail("linalg.lu_factor", info, _LU)
    return write_all("linalg.lu_factor", out, lu_factor_result(packed, pivots))


def lu(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """Factor into P @ L @ U: a permutation, a unit lower and an upper triangular matrix."""
    _matrix("linalg.lu", A)
    _pivoting("linalg.lu", pivot)
    packed, _, order, _ = factor.lu_ex(A)
    made = lu_result(_permutation(order, A.dtype), _lower(packed), _upper(packed))
    return write_all("linalg.lu", out, made)


def torch_lu(input: Any, pivot: bool = True, get_infos: bool = False, *, out: Any = None) -> Any:
    """Factor with partial pivoting into packed L and U, and the pivots; with codes on request."""
    made = lu_factor_ex(input, pivot=pivot)
    if get_infos:
        return write_all("lu", out, made)
    made = (made.LU, made.pivots)
    return made if out is None else tuple([_op.WRITE_OUT("lu", o, t) for o, t in zip(out, made)])


def _lower(packed: Any) -> Any:
    return factor.unit_lower(TENSOR_KERNELS, packed)


def _upper(packed: Any) -> Any:
    return factor.upper_part(TENSOR_KERNELS, packed)


def _permutation(order: Any, d: Any) -> Any:
    """Return P with (P @ y)[order[i]] = y[i]."""
    m = order.shape[-1]
    down = TENSOR_KERNELS.new_arange(order, 0, m)
    return cast(unsqueeze(order, -2) == unsqueeze(down, -1), d)


def _order(pivots: Any, m: int) -> Any:
    k = pivots._device.backend
    data = k.pivots_to_order(k.astype(pivots._data, int32), m)
    return make(data, pivots._device, k.dtype_of(data), Size(k.shape_of(data)))


def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """Return P, L and U of a packed LU."""
    if LU_pivots.dtype is not int32:
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype; got {LU_pivots.dtype}."
        )
    empty = filled(Size((0,)), 0, LU_data.dtype, LU_data._device)
    low, up = (_lower(LU_data), _upper(LU_data)) if unpack_data else (empty, empty)
    p = _permutation(_order(LU_pivots, LU_data.shape[-2]), LU_data.dtype) if unpack_pivots else empty
    return write_all("lu_unpack", out, lu_result(p, low, up))


def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False, out: Any = None) -> Any:
    """Solve A @ X = B (or X @ A = B, or with the adjoint of A) given what lu_factor returns."""
    _square("linalg.lu_solve", LU)
    _matrix("linalg.lu_solve", B)
    _one_dtype("linalg.lu_solve", LU, B)
    if pivots.dtype is not int32:
        raise RuntimeError(f"linalg.lu_solve: Expected pivots to be int32; got {pivots.dtype}.")
    n = LU.shape[-1]
    if B.shape[-2 if left else -1] != n:
        raise ShapeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({n}x{n} and {B.shape[-2]}x{B.shape[-1]})"
        )
    if not left:
        # X A = B is A^H X^H = B^H.
        turned = lu_solve(LU, pivots, _adjoint(B), left=True, adjoint=not adjoint)
        return _out("linalg.lu_solve", out, _adjoint(turned))
    lead = broadcast("linalg.lu_solve", tuple(LU.shape)[:-2], tuple(B.shape)[:-2])
    order = expand(_order(pivots, n), (*lead, n))
    low, up = _lower(LU), _upper(LU)
    b = expand(B, (*lead, *tuple(B.shape)[-2:]))
    if not adjoint:
        y = factor.solve_triangular(low, _rows(b, order), upper=False, left=True, unit_diagonal=True)
        made = factor.solve_triangular(up, y, upper=True, left=True, unit_diagonal=False)
    else:
        y = factor.solve_triangular(_adjoint(up), b, upper=False, left=True, unit_diagonal=False)
        y = factor.solve_triangular(_adjoint(low), y, upper=True, left=True, unit_diagonal=True)
        made = _rows(y, order.argsort(-1))
    return _out("linalg.lu_solve", out, made)


_adjoint = adjoint


def _rows(x: Any, order: Any) -> Any:
    return factor.gather_rows(TENSOR_KERNELS, x, order)


def torch_lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """Solve A @ X = b given what lu_factor returns: linalg.lu_solve's older form."""
    return lu_solve(LU_data, LU_pivots, b, out=out)


# ---- determinants ----


def det(A: Any, *, out: Any = None) -> Any:
    """Return the determinant of square matrices."""
    _square("linalg.det", A)
    return _out("linalg.det", out, factor.det(A))


def slogdet(A: Any, *, out: Any = None) -> Any:
    """Return the sign and the logarithm of the size of the determinant."""
    _square("linalg.slogdet", A)
    return write_all("linalg.slogdet", out, slogdet_result(*factor.slogdet(A)))


def logdet(input: Any) -> Any:
    """Return the logarithm of the determinant; nan where that is negative."""
    _square("logdet", input)
    sign, log = factor.slogdet(input)
    if input.dtype.is_complex:
        return sign.log() + log
    return TENSOR_KERNELS.where(sign == -1, math.nan, log)


# ---- QR, eigenvalues, singular values ----


def qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """Factor into Q, orthonormal, and R, upper triangular; `mode` is "reduced", "complete" or "r"."""
    _matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")  # fmt: skip
    return write_all("linalg.qr", out, qr_result(*factor.qr(A, mode=mode)))


def torch_qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """Factor into Q and R: linalg.qr's older form."""
    return qr(input, "reduced" if some else "complete", out=out)


def _uplo(name: str, UPLO: Any) -> bool:
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"{name}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


def eigh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return the eigenvalues, ascending, and eigenvectors of Hermitian matrices; one triangle is read."""
    _square("linalg.eigh", A)
    return write_all("linalg.eigh", out, eigh_result(*factor.eigh(A, upper=_uplo("linalg.eigh", UPLO))))


def eigvalsh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return the eigenvalues, ascending, of Hermitian matrices; one triangle is read."""
    _square("linalg.eigvalsh", A)
    return _out("linalg.eigvalsh", out, factor.eigh(A, upper=_uplo("linalg.eigvalsh", UPLO))[0])


def eig(A: Any, *, out: Any = None) -> Any:
    """Return the complex eigenvalues and eigenvectors of square matrices."""
    _square("linalg.eig", A)
    return write_all("linalg.eig", out, eig_result(*factor.eig(A)))


def eigvals(A: Any, *, out: Any = None) -> Any:
    """Return the complex eigenvalues of square matrices."""
    _square("linalg.eigvals", A)
    return _out("linalg.eigvals", out, factor.eig(A)[0])


def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Return U, the singular values, descending, and V^H."""
    _matrix("linalg.svd", A)
    _driver("linalg.svd", driver)
    return write_all("linalg.svd", out, svd_result(*factor.svd(A, full_matrices=bool(full_matrices))))


def _driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


def svdvals(A: Any, *, driver: str | None = None, out: Any = None) -> Any:
    """Return the singular values, descending."""
    _matrix("linalg.svdvals", A)
    _driver("linalg.svdvals", driver)
    return _out("linalg.svdvals", out, factor.svdvals(A))


def torch_svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Return U, the singular values and V (not its adjoint): linalg.svd's older form."""
    _matrix("svd", input)
    if not compute_uv:
        m, n = tuple(input.shape)[-2:]
        lead = tuple(input.shape)[:-2]
        zeros = [filled(Size((*lead, size, size)), 0, input.dtype, input._device) for size in (m, n)]
        return write_all("svd", out, svd_old_result(zeros[0], factor.svdvals(input), zeros[1]))
    u, s, vh = factor.svd(input, full_matrices=not some)
    return write_all("svd", out, svd_old_result(u, s, _adjoint(vh)))


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


def pinv(A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None) -> Any:
    """Return the Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as zero."""
    _matrix("linalg.pinv", A)
    if hermitian:
        _square("linalg.pinv", A)
    absolute, relative = _tolerances(A, atol, rcond if rtol is None else rtol)
    return _out("linalg.pinv", out, factor.pinv(A, absolute.detach(), relative.detach(), hermitian=bool(hermitian)))


def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """Return the Moore-Penrose inverse: linalg.pinv's older name."""
    return pinv(input, rcond)


def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Any:
    """Return how many singular values are above max(atol, rtol * largest)."""
    _matrix("linalg.matrix_rank", A)
    if hermitian:
        _square("linalg.matrix_rank", A)
    if tol is not None:
        atol, rtol = tol, 0.0
    A = A.detach()
    absolute, relative = _tolerances(A, atol, rtol)
    if not prod(tuple(A.shape)[-2:]):
        return _out("linalg.matrix_rank", out, A.new_zeros(tuple(A.shape)[:-2]).long())
    s = eigvalsh(A).abs() if hermitian else svdvals(A)
    limit = TENSOR_KERNELS.maximum(absolute, relative * s.amax(-1))
    return _out("linalg.matrix_rank", out, (s > unsqueeze(limit, -1)).sum(-1))


def cond(A: Any, p: Any = None, *, out: Any = None) -> Any:
    """Return the condition number of matrices, in the 2-norm by default."""
    from mortice.ops.norms import matrix_norm

    _matrix("linalg.cond", A)
    if p is None or p in (2, -2):
        if not prod(A.shape):
            made = A.new_zeros(tuple(A.shape)[:-2], dtype=A.dtype.to_real())
        else:
            s = svdvals(A)
            largest, smallest = s[..., 0], s[..., -1]
            made = smallest / largest if p == -2 else largest / smallest
        return _out("linalg.cond", out, made)
    _square("linalg.cond", A)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not prod(A.shape):
        return _out("linalg.cond", out, A.new_zeros(tuple(A.shape)[:-2], dtype=A.dtype.to_real()))
    inverted, info = factor.inv_ex(A)
    made = matrix_norm(A, p) * matrix_norm(inverted, p)
    return _out("linalg.cond", out, TENSOR_KERNELS.where(info != 0, math.inf, made))


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: str | None = None, out: Any = None) -> Any:
    """Find X with the smallest norm of A @ X - B."""
    _matrix("linalg.lstsq", A)
    _floats("linalg.lstsq", B)
    _one_dtype("linalg.lstsq", A, B)
    if len(B.shape) < 1:
        raise RuntimeError("torch.linalg.lstsq: input other must have at least 1 dimension.")
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss); got {driver!r}."
        )
    vector = len(A.shape) - 1 == len(B.shape) and tuple(A.shape)[:-1] == tuple(B.shape)
    b = unsqueeze(B, -1) if vector else B
    if len(b.shape) < 2 or len(A.shape) - len(B.shape) > 1:
        raise ShapeError(f"torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1; got {list(A.shape)} and {list(B.shape)}.")  # fmt: skip
    if A.shape[-2] != b.shape[-2]:
        raise ShapeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size({'-1' if vector else '-2'}); got "
            f"{A.shape[-2]} and {b.shape[-2]}."
        )
    m, n = tuple(A.shape)[-2:]
    real, empty = A.dtype.to_real(), Size((0,))
    rank = A.new_zeros(empty).long()
    values = A.new_zeros(empty, dtype=real)
    if driver == "gels":
        solution = _full_rank(A, b)
    else:
        cut = finfo(A.dtype).eps * max(m, n) if rcond is None else rcond
        absolute, relative = _tolerance(A, 0.0, 0.0), _tolerance(A, cut, 0.0)
        solution = matmul(factor.pinv(A, absolute, relative, hermitian=False), b)
        s = svdvals(A.detach())
        top = s.amax(-1, keepdim=True) if prod(s.shape) else s
        rank = (s > relative * top).sum(-1)
        values = s if driver != "gelsy" else values
    residuals = reshape(A, -1)[:0].abs()
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank == n).all().item())):
        residuals = (matmul(A, solution) - b).abs().square().sum(-2)
    made = lstsq_result(solution.squeeze(-1) if vector else solution, residuals, rank, values)
    return write_all("linalg.lstsq", out, made)


def _full_rank(a: Any, b: Any) -> Any:
    """Solve least squares by QR, of A or of its adjoint."""
    if a.shape[-2] >= a.shape[-1]:
        q, r = factor.qr(a, mode="reduced")
        return factor.solve_triangular(r, matmul(_adjoint(q), b), upper=True, left=True, unit_diagonal=False)
    q, r = factor.qr(_adjoint(a), mode="reduced")
    return matmul(q, factor.solve_triangular(_adjoint(r), b, upper=False, left=True, unit_diagonal=False))


# ---- powers, exponentials, products ----


def matrix_power(A: Any, n: int, *, out: Any = None) -> Any:
    """Multiply square matrices with themselves n times; a negative n inverts first."""
    if len(A.shape) < 2:
        raise ShapeError(f"linalg.matrix_power: The input tensor A must have at least 2 dimensions; got {list(A.shape)}.")
    if A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")  # fmt: skip
    n = operator.index(n)
    if n < 0:
        A, n = inv(A), -n
    if n == 0:
        made = zero(A) + _eye(A)
    else:
        made, square = None, A
        while n:
            if n & 1:
                made = square if made is None else matmul(made, square)
            n >>= 1
            square = matmul(square, square) if n else square
        made = made.clone() if made is A else made
    return _out("linalg.matrix_power", out, made)


_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
         670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)  # fmt: skip


def matrix_exp(A: Any) -> Any:
    """Return the exponential of square matrices, by scaling, a Pade quotient and squaring."""
    if isinstance(A, TensorBase) and A.dtype in (float16, bfloat16):
        return cast(matrix_exp(cast(A, float32)), A.dtype)
    _square("linalg.matrix_exp", A)
    if not prod(A.shape):
        return A.clone()
    size = A.detach().abs().sum(-2).amax().item()
    squarings = max(0, math.ceil(math.log2(size / 5.37))) if size > 5.37 and math.isfinite(size) else 0
    x = A / 2.0**squarings if squarings else A
    b = [float(v) / _PADE[0] for v in _PADE]
    one = _eye(A)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    odd = matmul(x6, x6 * b[13] + x4 * b[11] + x2 * b[9]) + x6 * b[7] + x4 * b[5] + x2 * b[3] + one * b[1]
    odd = matmul(x, odd)
    even = matmul(x6, x6 * b[12] + x4 * b[10] + x2 * b[8]) + x6 * b[6] + x4 * b[4] + x2 * b[2] + one * b[0]
    made = factor.solve_ex(even - odd, even + odd)[0]
    for _ in range(squarings):
        made = matmul(made, made)
    return made


def householder_product(A: Any, tau: Any, *, out: Any = None) -> Any:
    """Return the first columns of a product of Householder reflections, as geqrf stores them."""
    _matrix("linalg.householder_product", A)
    _floats("linalg.householder_product", tau)
    m, n = tuple(A.shape)[-2:]
    count = tau.shape[-1]
    if m < n:
        raise ShapeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < count:
        raise ShapeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if len(A.shape) - len(tau.shape) != 1 or tuple(A.shape)[:-2] != tuple(tau.shape)[:-1]:
        raise ShapeError(
            f"torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2]; got "
            f"{list(A.shape)} and {list(tau.shape)}."
        )
    _one_dtype("linalg.householder_product", A, tau)
    low = tril(A, -1) + _eye(A, max(m, n))[:m, :n]
    q = expand(_eye(A, m), (*tuple(A.shape)[:-2], m, m))[..., :, :n]
    for i in reversed(range(count)):
        v = low[..., :, i : i + 1]
        q = q - matmul(v * unsqueeze(tau[..., i : i + 1], -1), matmul(_adjoint(v), q))
    return _out("linalg.householder_product", out, q + zero(A) if count == 0 else q)


def vander(x: Any, N: int | None = None) -> Any:
    """Return the powers 0 to N - 1 of vectors, as new last dims."""
    x = x if x.shape else reshape(x, 1)
    n = x.shape[-1] if N is None else N
    if n <= 1 and N is not None:
        raise RuntimeError(f"N must be greater than 1; got {N}.")
    if x.dtype.kind == "b":
        x = x.long()
    ones = x.new_ones((*x.shape, 1))
    if n <= 1:
        return ones[..., :n]
    steps = expand(unsqueeze(x, -1), (*x.shape, n - 1)).cumprod(-1)
    from mortice.ops.movement import cat

    return cat([cast(ones, steps.dtype), steps], -1)


def torch_vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the powers of a vector's elements, one element a row, the highest first unless increasing."""
    if len(x.shape) != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor; got {len(x.shape)}D.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError(f"N must be non-negative; got {n}.")
    made = vander(x, n) if n > 1 else x.new_ones((x.shape[0], n))
    return made if increasing else made.flip(-1)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Show the diagonals of matrices; a view."""
    return _diagonal(A, offset, dim1, dim2)
