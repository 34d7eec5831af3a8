"""Methods of linear algebra."""

from __future__ import annotations

from mortice.lazy import family
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mortice.ops import covariance, products, reflections
    from mortice.ops import linalg as linalg_ops
    from mortice.ops import linalg_derived as derived
    from mortice.ops import matmul as matmul_ops
else:
    linalg_ops, derived = family("ops.linalg"), family("ops.linalg_derived")
    matmul_ops, reflections = family("ops.matmul"), family("ops.reflections")
    products, covariance = family("ops.products"), family("ops.covariance")


class Matrices(TensorBase):
    """Products, factorisations, solves."""

    __slots__ = ()

    matmul, mm, bmm, mv, dot, vdot, inner, outer, ger = (
        matmul_ops.matmul, matmul_ops.mm, matmul_ops.bmm, matmul_ops.mv, matmul_ops.dot, matmul_ops.vdot,
        products.inner, matmul_ops.outer, matmul_ops.ger)  # fmt: skip
    addmm, addmv, addr, addbmm, baddbmm, kron, trace, cross, cov, corrcoef = (
        matmul_ops.addmm, matmul_ops.addmv, matmul_ops.addr, matmul_ops.addbmm, matmul_ops.baddbmm, products.kron,
        products.trace, products.cross, covariance.cov, covariance.corrcoef)  # fmt: skip
    addmm_, addmv_, addr_, addbmm_, baddbmm_ = (
        matmul_ops.addmm_, matmul_ops.addmv_, matmul_ops.addr_, matmul_ops.addbmm_, matmul_ops.baddbmm_)  # fmt: skip
    cholesky, cholesky_solve, cholesky_inverse, inverse, pinverse, det, logdet, slogdet = (
        linalg_ops.torch_cholesky, linalg_ops.cholesky_solve, linalg_ops.cholesky_inverse, linalg_ops.inverse,
        derived.pinverse, linalg_ops.det, linalg_ops.logdet, linalg_ops.torch_slogdet)  # fmt: skip
    orgqr, ormqr, geqrf = reflections.orgqr, reflections.ormqr, reflections.geqrf
    qr, svd, lu, lu_solve, matrix_power, matrix_exp, triangular_solve = (
        linalg_ops.torch_qr, linalg_ops.torch_svd, linalg_ops.method_lu, linalg_ops.torch_lu_solve,
        derived.matrix_power, derived.matrix_exp, linalg_ops.triangular_solve)  # fmt: skip
