"""Factorisations, solves and determinants of `mortice.linalg` and their older names: checks and named results."""

from __future__ import annotations

import math
from typing import Any

from mortice import return_types
from mortice.call import check_device, give
from mortice.dtype import bfloat16, float16, int32
from mortice.errors import DTypeError, LinAlgError, ShapeError
from mortice.modes import autocasting, modes
from mortice.node import TENSOR_KERNELS, named, node_name
from mortice.notice import warn
from mortice.ops import factor
from mortice.ops.creation import filled
from mortice.ops.data import range_of
from mortice.ops.movement import cast, contiguous, expand, permute, reshape, transpose, unsqueeze
from mortice.ops.reduce import write_all
from mortice.ops.strided import diagonal
from mortice.ops.views import adjoint
from mortice.shape import Size, broadcast, prod
from mortice.tensor import TensorBase, make

__all__ = ["cholesky_inverse", "cholesky_solve", "inverse", "logdet", "lu_unpack", "triangular_solve"]

# ---- checks ----


def check_floats(name: str, *tensors: Any) -> None:
    for x in tensors:
        if not isinstance(x, TensorBase):
            raise TypeError(f"{name}: expected a Tensor; got {type(x).__name__}.")
        if x.dtype.kind not in "fc":
            raise DTypeError(
                f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}. Use .float()."
            )
        if x.dtype is float16 or x.dtype is bfloat16:
            raise DTypeError(f"{name}: Low precision dtypes not supported. Got {x.dtype}. Use .float().")


def check_matrix(name: str, *tensors: Any) -> None:
    check_floats(name, *tensors)
    for x in tensors:
        check_dims(name, x)


def check_dims(name: str, x: Any) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions; got {list(x.shape)}.")


def check_square(name: str, x: Any, check: Any = check_matrix) -> None:
    check(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )


def check_one_dtype(name: str, a: Any, b: Any) -> None:
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name}: Expected A and B to have the same dtype; got {a.dtype} and {b.dtype}.")
    check_device(factor.solve_ex.op, a, b)


def fail(name: str, info: Any, what: str) -> None:
    """Raise for the first matrix of a batch that failed; reads `info` once."""
    low, high = (prod(info.shape) and range_of(info)) or (0, 0)
    if low == high == 0:
        return
    if info._device.level is not None:
        raise LinAlgError(f"{name}: " + what.format(high or low))
    flat = reshape(info, -1).tolist()
    at = next(i for i, v in enumerate(flat) if v)
    where = f"(Batch element {at}): " if info.shape else ""
    raise LinAlgError(f"{name}: {where}" + what.format(flat[at]))


def _reach(x: Any) -> tuple[float, float]:
    """Return the least and the greatest element, or absolute value of complex ones: nan where there is nan."""
    return (prod(x.shape) and range_of(x.detach().abs() if x.dtype.is_complex else x)) or (0.0, 0.0)


def check_nan(name: str, x: Any) -> None:
    """Refuse nan, of which no singular values can be found."""
    if math.isnan(_reach(x)[0]):
        raise LinAlgError(f"{name}: The algorithm failed to converge because the input matrix contained non-finite values.")


_SINGULAR = "The diagonal element {} is zero, the {} could not be completed because the input matrix is singular."
_INVERT = _SINGULAR.format("{}", "inversion")
_SOLVE = "The solver failed because the input matrix is singular."
_CHOLESKY = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{} is not positive-definite)."
)


# ---- Cholesky ----


@autocasting
def cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Factor like cholesky, with a code per matrix instead of an error: 0, or the order of the minor that failed."""
    check_square("linalg.cholesky_ex", input)
    low, info = factor.cholesky_ex(input, upper=bool(upper))
    if check_errors:
        fail("linalg.cholesky_ex", info, _CHOLESKY)
    return write_all("linalg.cholesky_ex", out, return_types.linalg_cholesky_ex(low, info))


@autocasting
def cholesky(input: Any, *, upper: bool = False, out: Any = None) -> Any:
    """Return L with A = L @ L.mH, for Hermitian positive-definite A; with `upper` its adjoint."""
    check_square("linalg.cholesky", input)
    low, info = factor.cholesky_ex(input, upper=bool(upper))
    fail("linalg.cholesky", info, _CHOLESKY)
    return give("linalg.cholesky", out, low)


def older(name: str, new: str, how: str = "") -> None:
    """Warn, once in a program, of a function that PyTorch is about to remove."""
    warn(f"torch.{name} is deprecated in favor of {new} and will be removed in a future PyTorch release.{how}", once=True)


@autocasting
@node_name("CholeskyBackward0")
def torch_cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Return L with input = L @ L.mH; linalg.cholesky's older name."""
    older("cholesky", "torch.linalg.cholesky", " With upper=True write torch.linalg.cholesky(A).mH.")
    return cholesky(input, upper=upper, out=out)


@autocasting
def cholesky_solve(input: Any, input2: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Solve A @ X = B given the Cholesky factor of A."""
    check_matrix("cholesky_solve", input, input2)
    check_square("cholesky_solve", input2)
    check_one_dtype("cholesky_solve", input2, input)
    if input2.shape[-1] != input.shape[-2]:
        raise ShapeError(
            f"cholesky_solve: Incompatible matrix sizes for cholesky_solve; got {list(input.shape)} and {list(input2.shape)}."
        )
    return give("cholesky_solve", out, factor.cholesky_solve(input, input2, upper=bool(upper)))


@autocasting
def cholesky_inverse(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Invert A given its Cholesky factor."""
    check_square("cholesky_inverse", input)
    zero = cast(diagonal(input, 0, -2, -1) == 0, int32)
    first = cast(zero.argmax(-1) + 1, int32) * zero.amax(-1) if input.shape[-1] else zero.sum(-1)
    fail("cholesky_inverse", first, _INVERT)
    made = factor.cholesky_solve(identity(input), input, upper=bool(upper))
    return give("cholesky_inverse", out, named(made, "CholeskyInverseBackward0"))


def identity(x: Any, n: int | None = None) -> Any:
    from mortice.ops.creation import eye

    return eye(x.shape[-1] if n is None else n, dtype=x.dtype, device=x._device)


# ---- inverse and solve ----


@autocasting
def inv_ex(A: Any, *, check_errors: bool = False, out: Any = None) -> Any:
    """Invert, with a code per matrix instead of an error: not 0 where it is singular."""
    check_square("linalg.inv_ex", A)
    made, info = factor.inv_ex(A)
    if check_errors:
        fail("linalg.inv_ex", info, _INVERT)
    return write_all("linalg.inv_ex", out, return_types.linalg_inv_ex(made, info))


@autocasting
def inv(A: Any, *, out: Any = None) -> Any:
    """Return the inverse of square matrices."""
    check_square("linalg.inv", A)
    made, info = factor.inv_ex(A)
    fail("linalg.inv", info, _INVERT)
    return give("linalg.inv", out, made)


@autocasting
def inverse(input: Any, *, out: Any = None) -> Any:
    """Return the inverse of square matrices: another name of linalg.inv."""
    return inv(input, out=out)


def _is_vector(a: Any, b: Any) -> bool:
    return len(b.shape) == 1 or (len(a.shape) - 1 == len(b.shape) and tuple(b.shape) == tuple(a.shape)[:-1])


def _solve(name: str, a: Any, b: Any, left: bool) -> tuple[Any, Any]:
    check_square(name, a)
    check_floats(name, b)
    check_one_dtype(name, a, b)
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
        fail("linalg.solve_ex", info, _SOLVE)
    return write_all("linalg.solve_ex", out, return_types.linalg_solve_ex(made, info))


@autocasting
def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """Solve A @ X = B, or X @ A = B unless left."""
    made, info = _solve("linalg.solve", A, B, left)
    fail("linalg.solve", info, _SOLVE)
    return give("linalg.solve", out, made)


def solve_triangular(
    input: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Any:
    """Solve A @ X = B with one triangle of A, or X @ A = B unless left."""
    check_square("linalg.solve_triangular", input)
    check_matrix("linalg.solve_triangular", B)
    check_one_dtype("linalg.solve_triangular", input, B)
    if input.shape[-1] != B.shape[-2 if left else -1]:
        raise ShapeError(
            "linalg.solve_triangular: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({input.shape[-2]}x{input.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    made = factor.solve_triangular(input, B, upper=bool(upper), left=bool(left), unit_diagonal=bool(unitriangular))
    return give("linalg.solve_triangular", out, made)


@autocasting
@node_name("TriangularSolveBackward0")
def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None
) -> Any:
    """Solve A @ X = b with one triangle of A: linalg.solve_triangular's older form."""
    older("triangular_solve", "torch.linalg.solve_triangular", " Its arguments are the other way round.")
    check_square("triangular_solve", A)
    check_matrix("triangular_solve", input)
    a, up = (A.mT, not upper) if transpose else (A, upper)
    made = solve_triangular(a, input, upper=up, unitriangular=unitriangular)
    whole = expand(A, (*tuple(made.shape)[:-2], *tuple(A.shape)[-2:])).clone()
    return write_all("triangular_solve", out, return_types.triangular_solve(made, whole))


@autocasting
def tensorinv(input: Any, ind: int = 2, *, out: Any = None) -> Any:
    """Invert a tensor as a map from its last dims to its first `ind` ones."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = tuple(input.shape)[:ind], tuple(input.shape)[ind:]
    if prod(first) != prod(last):
        raise ShapeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(last)} != {prod(first)}"
        )
    made = reshape(inv(reshape(input, (prod(first), prod(last)))), (*last, *first))
    return give("linalg.tensorinv", out, made)


@autocasting
def tensorsolve(input: Any, other: Any, dims: Any = None, *, out: Any = None) -> Any:
    """Solve tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        order = [d % len(input.shape) for d in dims]
        input = permute(input, [d for d in range(len(input.shape)) if d not in order] + order)
    shape = tuple(input.shape)[len(other.shape) :]
    if prod(shape) != prod(tuple(input.shape)[: len(other.shape)]):
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {prod(shape)} != {prod(tuple(input.shape)[: len(other.shape)])}"
        )
    made = reshape(solve(reshape(input, (prod(other.shape), prod(shape))), reshape(other, -1)), shape)
    return give("linalg.tensorsolve", out, made)


# ---- LU ----


@autocasting
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Factor with partial pivoting into packed L and U, with a code per matrix instead of an error."""
    check_matrix("linalg.lu_factor_ex", A)
    _pivoting("linalg.lu_factor_ex", pivot)
    packed, pivots, _, info = factor.lu_ex(A)
    if check_errors:
        fail("linalg.lu_factor_ex", info, _LU)
    return write_all("linalg.lu_factor_ex", out, return_types.linalg_lu_factor_ex(packed, pivots, info))


_LU = "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero."


def _pivoting(name: str, pivot: bool) -> None:
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU.")


@autocasting
def lu_factor(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """Factor with partial pivoting into packed L and U and the pivots, for lu_solve."""
    check_matrix("linalg.lu_factor", A)
    _pivoting("linalg.lu_factor", pivot)
    packed, pivots, _, info = factor.lu_ex(A)
    fail("linalg.lu_factor", info, _LU)
    return write_all("linalg.lu_factor", out, return_types.linalg_lu_factor(packed, pivots))


@node_name("LinalgLuBackward0")
def lu(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """Factor into P @ L @ U: a permutation, a unit lower and an upper triangular matrix."""
    check_matrix("linalg.lu", A)
    _pivoting("linalg.lu", pivot)
    packed, _, order, _ = factor.lu_ex(A)
    made = return_types.linalg_lu(_permutation(order, A.dtype), _lower(packed), _upper(packed))
    return write_all("linalg.lu", out, made)


@autocasting
def torch_lu(input: Any, pivot: bool = True, get_infos: bool = False, *, out: Any = None) -> Any:
    """Factor with partial pivoting into packed L and U, and the pivots; with codes on request."""
    older("lu", "torch.linalg.lu_factor / torch.linalg.lu_factor_ex")
    made = lu_factor_ex(input, pivot=pivot)
    if get_infos:
        return write_all("lu", out, made)
    made = (made.LU, made.pivots)
    return made if out is None else tuple([give("lu", o, t) for o, t in zip(out, made)])


def method_lu(self: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """Factor with partial pivoting into packed L and U, and the pivots; with codes on request."""
    return tuple(torch_lu(self, pivot, get_infos))


def _lower(packed: Any) -> Any:
    return factor.unit_lower(TENSOR_KERNELS, packed)


def _upper(packed: Any) -> Any:
    return factor.upper_part(TENSOR_KERNELS, packed)


def _permutation(order: Any, d: Any) -> Any:
    """Return P with (P @ y)[order[i]] = y[i]."""
    m = order.shape[-1]
    down = TENSOR_KERNELS.new_arange(order, 0, m)
    return cast(unsqueeze(order, -2) == unsqueeze(down, -1), d)


def check_pivots(name: str, packed: str, matrix: Any, pivots: Any) -> None:
    """Refuse pivots that no factorization of such a matrix gives: of another shape, or with rows that it has not."""
    *batch, m, n = matrix.shape
    due = Size((*batch, min(m, n)))
    if pivots.shape != due:
        raise ShapeError(
            f"{name}: expected pivots of shape {list(due)} for {packed} of {list(matrix.shape)}; got {list(pivots.shape)}. "
            "Pass what the factorization returned."
        )
    low, high = (prod(due) and range_of(pivots)) or (1, m)
    if low < 1 or high > m:
        raise RuntimeError(
            f"{name}: pivots must be greater or equal to 1, and smaller or equal to {packed}.size(-2) = {m}; "
            f"got {low if low < 1 else high}. Pass what the factorization returned."
        )


def _order(name: str, pivots: Any, LU: Any) -> Any:
    check_pivots(name, "LU", LU, pivots)
    k = pivots._device.backend
    data = k.pivots_to_order(k.astype(pivots._buffer, int32), LU.shape[-2])
    return make(data, pivots._device, k.dtype_of(data), Size(k.shape_of(data)))


@node_name("LuUnpackBackward0")
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """Return P, L and U of a packed LU."""
    if LU_pivots.dtype is not int32:
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype; got {LU_pivots.dtype}."
        )
    check_dims("lu_unpack", LU_data)
    empty = filled("lu_unpack", Size((0,)), 0, LU_data.dtype, LU_data._device)
    low, up = (_lower(LU_data), _upper(LU_data)) if unpack_data else (empty, empty)
    p = _permutation(_order("lu_unpack", LU_pivots, LU_data), LU_data.dtype) if unpack_pivots else empty
    return write_all("lu_unpack", out, return_types.lu_unpack(p, low, up))


turned = adjoint  # under a name that the argument `adjoint` does not hide


@node_name("LinalgLuSolveBackward0")
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False, out: Any = None) -> Any:
    """Solve A @ X = B (or X @ A = B, or with the adjoint of A) given what lu_factor returns."""
    check_square("linalg.lu_solve", LU)
    check_matrix("linalg.lu_solve", B)
    check_one_dtype("linalg.lu_solve", LU, B)
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
        solved = lu_solve(LU, pivots, turned(B), left=True, adjoint=not adjoint)
        return give("linalg.lu_solve", out, turned(solved))
    lead = broadcast("linalg.lu_solve", tuple(LU.shape)[:-2], tuple(B.shape)[:-2])
    order = expand(_order("linalg.lu_solve", pivots, LU), (*lead, n))
    low, up = _lower(LU), _upper(LU)
    b = expand(B, (*lead, *tuple(B.shape)[-2:]))
    if not adjoint:
        y = factor.solve_triangular(low, _rows(b, order), upper=False, left=True, unit_diagonal=True)
        made = factor.solve_triangular(up, y, upper=True, left=True, unit_diagonal=False)
    else:
        y = factor.solve_triangular(turned(up), b, upper=False, left=True, unit_diagonal=False)
        y = factor.solve_triangular(turned(low), y, upper=True, left=True, unit_diagonal=True)
        made = _rows(y, order.argsort(-1))
    return give("linalg.lu_solve", out, made)


def _rows(x: Any, order: Any) -> Any:
    return factor.gather_rows(TENSOR_KERNELS, x, order)


@autocasting
def torch_lu_solve(input: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """Solve A @ X = b given what lu_factor returns: linalg.lu_solve's older form."""
    return lu_solve(LU_data, LU_pivots, input, out=out)


# ---- determinants ----


def det(A: Any, *, out: Any = None) -> Any:
    """Return the determinant of square matrices."""
    check_square("linalg.det", A)
    return give("linalg.det", out, factor.det(A))


def slogdet(A: Any, *, out: Any = None) -> Any:
    """Return the sign and the logarithm of the size of the determinant."""
    check_square("linalg.slogdet", A)
    return write_all("linalg.slogdet", out, return_types.linalg_slogdet(*factor.slogdet(A)))


def torch_det(input: Any) -> Any:
    """Return the determinant of square matrices: linalg.det's older name."""
    return det(input)


def torch_slogdet(input: Any, *, out: Any = None) -> Any:
    """Return the sign and the logarithm of the size of the determinant: linalg.slogdet's older name."""
    return return_types.slogdet(*slogdet(input, out=out))


def logdet(input: Any) -> Any:
    """Return the logarithm of the determinant; nan where that is negative."""
    check_square("logdet", input)
    sign, log = factor.slogdet(input)
    if input.dtype.is_complex:
        return sign.log() + log
    return TENSOR_KERNELS.where(sign == -1, math.nan, log)


# ---- QR, eigenvalues, singular values ----


@autocasting
def qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """Factor into Q, orthonormal, and R, upper triangular; `mode` is "reduced", "complete" or "r"."""
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return write_all("linalg.qr", out, return_types.linalg_qr(*factor.qr(A, mode=mode)))


@autocasting
def torch_qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """Factor into Q and R: linalg.qr's older form."""
    older("qr", "torch.linalg.qr", " Its mode is 'reduced' for some=True, else 'complete'.")
    return qr(input, "reduced" if some else "complete", out=out)


def _uplo(name: str, UPLO: Any) -> bool:
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"{name}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


@autocasting
def eigh(input: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return the eigenvalues, ascending, and eigenvectors of Hermitian matrices; one triangle is read."""
    check_square("linalg.eigh", input)
    return write_all("linalg.eigh", out, return_types.linalg_eigh(*factor.eigh(input, upper=_uplo("linalg.eigh", UPLO))))


@autocasting
def eigvalsh(input: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return the eigenvalues, ascending, of Hermitian matrices; one triangle is read."""
    check_square("linalg.eigvalsh", input)
    upper = _uplo("linalg.eigvalsh", UPLO)
    # Where a gradient is to come the vectors are found at once.
    kept = input.requires_grad and modes.grad
    return give("linalg.eigvalsh", out, factor.eigh(input, upper=upper)[0] if kept else factor.eigvalsh(input, upper=upper))


def _check_eig(name: str, x: Any) -> None:
    check_square(name, x)
    if not all(map(math.isfinite, _reach(x))):
        raise RuntimeError(f"{name}: input tensor should not contain infs or NaNs.")


@autocasting
def eig(input: Any, *, out: Any = None) -> Any:
    """Return the complex eigenvalues and eigenvectors of square matrices."""
    _check_eig("linalg.eig", input)
    return write_all("linalg.eig", out, return_types.linalg_eig(*factor.eig(input)))


@autocasting
def eigvals(input: Any, *, out: Any = None) -> Any:
    """Return the complex eigenvalues of square matrices."""
    _check_eig("linalg.eigvals", input)
    return give("linalg.eigvals", out, factor.eig(input)[0])


@autocasting
def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Return U, the singular values, descending, and V^H."""
    check_matrix("linalg.svd", A)
    check_nan("linalg.svd", A)
    _driver("linalg.svd", driver)
    return write_all("linalg.svd", out, return_types.linalg_svd(*factor.svd(A, full_matrices=bool(full_matrices))))


def _driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise RuntimeError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@autocasting
def svdvals(A: Any, *, driver: str | None = None, out: Any = None) -> Any:
    """Return the singular values, descending."""
    check_matrix("linalg.svdvals", A)
    check_nan("linalg.svdvals", A)
    _driver("linalg.svdvals", driver)
    return give("linalg.svdvals", out, factor.svdvals(A))


@autocasting
def torch_svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Return U, the singular values and V (not its adjoint): linalg.svd's older form."""
    check_matrix("svd", input)
    check_nan("svd", input)
    if not compute_uv:
        m, n = tuple(input.shape)[-2:]
        lead = tuple(input.shape)[:-2]
        zeros = [filled("svd", Size((*lead, size, size)), 0, input.dtype, input._device) for size in (m, n)]
        return write_all("svd", out, return_types.svd(zeros[0], factor.svdvals(input), zeros[1]))
    u, s, vh = factor.svd(input, full_matrices=not some)
    return write_all("svd", out, return_types.svd(u, s, contiguous(adjoint(vh))))
