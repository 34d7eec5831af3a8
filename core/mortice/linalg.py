"""mortice.linalg: PyTorch's torch.linalg names. The functions themselves are in `mortice.ops`."""

from mortice import misuse as _misuse
from mortice.errors import LinAlgError
from mortice.ops.ldl import ldl_factor, ldl_factor_ex, ldl_solve
from mortice.ops.linalg import (
    cholesky, cholesky_ex, det, eig, eigh, eigvals, eigvalsh, inv, inv_ex, lu, lu_factor, lu_factor_ex, lu_solve,
    qr, slogdet, solve, solve_ex, solve_triangular, svd, svdvals, tensorinv, tensorsolve,
)
from mortice.ops.linalg_derived import (
    cond, diagonal, lstsq, matrix_exp, matrix_power, matrix_rank, pinv, vander,
)
from mortice.ops.matmul import matmul
from mortice.ops.norms import matrix_norm, norm, vecdot, vector_norm
from mortice.ops.products import linalg_cross as cross
from mortice.ops.products import multi_dot
from mortice.ops.reflections import householder_product

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu",
    "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals",
    "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

_misuse.guard_namespace(globals())
