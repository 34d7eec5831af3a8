"""Methods that look along dims: reductions, running sums, sorting, statistics, activations, transforms."""

from __future__ import annotations

from mortice.lazy import family
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.dtype import DType
    from mortice.ops import histogram as histogram_ops
    from mortice.ops import inplace, reduce, scan, statistics
    from mortice.ops import nn_activation as nn_ops
    from mortice.ops import sort as sort_ops
    from mortice.ops import stft as stft_ops
else:
    histogram_ops, inplace, reduce = family("ops.histogram"), family("ops.inplace"), family("ops.reduce")
    scan, statistics, nn_ops = family("ops.scan"), family("ops.statistics"), family("ops.nn_activation")
    sort_ops, stft_ops = family("ops.sort"), family("ops.stft")


class Reductions(TensorBase):
    """Sums, extremes, statistics, order."""

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
