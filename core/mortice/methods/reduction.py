"""Methods that combine elements: reductions, running sums, sorting, statistics, activations, transforms, matrices."""

from __future__ import annotations

from mortice.lazy import family
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.dtype import DType
    from mortice.ops import covariance, inplace, products, reduce, reflections, scan, statistics
    from mortice.ops import histogram as histogram_ops
    from mortice.ops import linalg as linalg_ops
    from mortice.ops import linalg_derived as derived
    from mortice.ops import matmul as matmul_ops
    from mortice.ops import nn_activation as nn_ops
    from mortice.ops import sort as sort_ops
    from mortice.ops import stft as stft_ops
else:
    histogram_ops, inplace, reduce = family("ops.histogram"), family("ops.inplace"), family("ops.reduce")
    scan, statistics, nn_ops = family("ops.scan"), family("ops.statistics"), family("ops.nn_activation")
    sort_ops, stft_ops = family("ops.sort"), family("ops.stft")
    linalg_ops, derived, matmul_ops = family("ops.linalg"), family("ops.linalg_derived"), family("ops.matmul")
    reflections, products, covariance = family("ops.reflections"), family("ops.products"), family("ops.covariance")


class Reductions(TensorBase):
    """Sums, extremes, statistics, order; products, factorisations, solves."""

    __slots__ = ()

    # ---- reductions ----

    sum, prod, mean, nansum, nanmean, any = (
        reduce.sum, reduce.prod, reduce.mean, reduce.nansum, reduce.nanmean, reduce.any)  # fmt: skip
    all, count_nonzero, max, min, amax, amin = (
        reduce.all, reduce.count_nonzero, reduce.max, reduce.min, reduce.amax, reduce.amin)  # fmt: skip
    aminmax, argmax, argmin = reduce.aminmax, reduce.argmax, reduce.argmin
    std, var, dist, logsumexp = (
        statistics.std, statistics.var, statistics.dist, statistics.logsumexp)  # fmt: skip

    def norm(self, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: DType | None = None, **named: Any) -> Any:
        """Return the vector norm of order p over all elements or dims, or the nuclear norm ("nuc") of matrices."""
        from mortice.ops import statistics

        return statistics.norm(self, p, dim, keepdim, dtype=dtype, **named)

    histogram, renorm, renorm_ = histogram_ops.histogram, statistics.renorm, inplace.renorm_
    median, nanmedian, mode, kthvalue = (
        statistics.median, statistics.nanmedian, statistics.mode, statistics.kthvalue)  # fmt: skip
    quantile, nanquantile, bincount, histc = (
        statistics.quantile, statistics.nanquantile, histogram_ops.bincount, histogram_ops.histc)  # fmt: skip
    cumsum, cumprod, cummax, cummin, logcumsumexp, diff = (
        scan.cumsum, scan.cumprod, scan.cummax, scan.cummin, scan.logcumsumexp, scan.diff)  # fmt: skip
    cumsum_, cumprod_ = inplace.cumsum_, inplace.cumprod_

    # ---- neural networks ----

    relu, relu_, softmax, log_softmax = nn_ops.relu, nn_ops.relu_, nn_ops.softmax, nn_ops.log_softmax
    prelu, hardshrink = nn_ops.prelu, nn_ops.hardshrink

    # ---- sorting ----

    sort, argsort, msort, topk, unique = (
        sort_ops.sort, sort_ops.argsort, sort_ops.msort, sort_ops.topk, sort_ops.unique)  # fmt: skip
    unique_consecutive = sort_ops.unique_consecutive

    stft, istft = stft_ops.stft, stft_ops.istft

    # ---- matrices ----

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
