"""Metrics that average what each sample loses: squared and absolute errors, R2, log loss, perplexity."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import Tensor
from mortice.metrics.metric import Metric, State, UndefinedMetricWarning, mismatch, one_of, placed, read, total_of
from mortice.notice import warn
from mortice.utils._wide import wide


class MeanMetric(Metric):
    """The mean of values, such as the losses of an epoch's batches, each with a weight."""

    def batch(self, value: Any, weight: Any = 1.0) -> State:
        """Add up values and weights."""
        value = mortice.as_tensor(value).detach()
        value = value.to(wide(value.device))
        weight = mortice.as_tensor(weight, dtype=value.dtype, device=value.device)
        return {"sum": (value * weight).sum(), "total": weight.expand(value.shape).sum()}

    def value(self, state: State) -> Tensor:
        """Divide."""
        return state["sum"] / total_of("MeanMetric", state["total"])


class _Regression(Metric):
    """Errors of numbers; `update` takes predictions and targets of one shape, (N) or (N, outputs)."""

    name = ""
    outputs: tuple[str, ...] = ("uniform_average", "raw_values")

    def __init__(self, *, multioutput: str = "uniform_average") -> None:
        super().__init__()
        one_of(self.name, "multioutput", multioutput, self.outputs)
        self.multioutput = multioutput

    def _read(self, preds: Any, target: Any, weight: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return predictions and targets (N, outputs) and weights (N, 1)."""
        preds, target, weight = read(self.name, preds, target, weight, rows=True)
        if preds.shape != target.shape or preds.ndim == 0:
            raise mismatch(self.name, preds, target, "one shape, the samples first")
        dtype = wide(preds.device)
        preds, target = (x.to(dtype).reshape(len(x), math.prod(x.shape[1:])) for x in (preds, target))
        if weight is None:
            weight = mortice.ones(len(preds), dtype=dtype, device=preds.device)
        return preds, target, weight.unsqueeze(1)

    def _averaged(self, each: Tensor) -> Tensor:
        return each if self.multioutput == "raw_values" else each.mean()


class MeanSquaredError(_Regression):
    """The mean of squared differences, of all outputs together or of each ('raw_values')."""

    name = "mean_squared_error"

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Add up errors."""
        preds, target, weight = self._read(preds, target, sample_weight)
        return {"sum": (self.error(preds - target) * weight).sum(0), "total": weight.sum()}

    def error(self, difference: Tensor) -> Tensor:
        """Return what differences cost."""
        return difference.square()

    def value(self, state: State) -> Tensor:
        """Divide by the number of samples."""
        return self._averaged(state["sum"] / total_of(self.name, state["total"]))


class MeanAbsoluteError(MeanSquaredError):
    """The mean of absolute differences, of all outputs together or of each ('raw_values')."""

    name = "mean_absolute_error"

    def error(self, difference: Tensor) -> Tensor:
        """Return the differences' sizes."""
        return difference.abs()


class R2Score(_Regression):
    """The share of the targets' variance that predictions explain: 1 at best, 0 for the mean, below for worse.

    Of several outputs the plain mean, the mean by their variances ('variance_weighted'), or each ('raw_values').
    """

    name = "r2"
    outputs = ("uniform_average", "raw_values", "variance_weighted")

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Add up squared errors, and the squared distances of targets from their mean."""
        preds, target, weight = self._read(preds, target, sample_weight)
        total = weight.sum()
        mean = (target * weight).sum(0) / total.masked_fill(total == 0, 1)
        return {
            "errors": ((preds - target).square() * weight).sum(0), "spread": ((target - mean).square() * weight).sum(0),
            "mean": mean, "total": total, "samples": mortice.full((), len(target), dtype=mortice.int64, device=target.device),
        }  # fmt: skip

    def join(self, parts: list[State]) -> State:
        """Add; spreads grow by how far the means are apart (Chan et al. 1979)."""
        first, *others = parts
        for other in others:
            added = super().join([first, other])
            a, b = first["total"], added["total"] - first["total"]
            apart = placed(other["mean"], first["mean"].device) - first["mean"]
            share = b / added["total"].masked_fill(added["total"] == 0, 1)
            added["spread"] = added["spread"] + apart.square() * a * share
            added["mean"] = first["mean"] + apart * share
            first = added
        return first

    def value(self, state: State) -> Tensor:
        """Compare errors with the spread."""
        if int(state["samples"]) < 2:
            warn("r2: not defined for fewer than two samples.", UndefinedMetricWarning)
            return mortice.full_like(state["total"], math.nan)
        errors, spread = state["errors"], state["spread"]
        flat = spread == 0
        each = mortice.where(flat, (errors == 0).to(errors.dtype), 1 - errors / spread.masked_fill(flat, 1))
        if self.multioutput == "variance_weighted" and not bool(flat.all()):
            return (each * spread).sum() / spread.sum()
        return self._averaged(each)


class LogLoss(Metric):
    """The mean of -log of the probability given to the class that it is; probabilities are kept an epsilon from 0 and 1.

    `update` takes probabilities (N, C), or of the positive class (N), not logits: `softmax` or `sigmoid` first.
    """

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Add up losses; probabilities that are none are counted for `compute` to tell."""
        preds, target, weight = read("log_loss", preds, target, sample_weight)
        if not preds.is_floating_point() or target.ndim != 1 or preds.shape[:1] != target.shape or preds.ndim > 2:
            raise mismatch(
                "log_loss", preds, target, f"probabilities (N, C) or (N,), not {preds.dtype}, and labels (N,)"
            )
        eps = mortice.finfo(preds.dtype).eps
        preds = preds.to(wide(preds.device))
        outside = ((preds < 0) | (preds > 1) | preds.isnan()).sum()
        if preds.ndim == 1 or preds.shape[1] == 1:
            preds = preds.reshape(-1, 1)
            preds = mortice.cat([1 - preds, preds], 1)
        here = mortice.arange(preds.shape[1], device=preds.device) == target.unsqueeze(1)
        loss = -preds.clamp(eps, 1 - eps).log().masked_fill(~here, 0).sum(1)
        weight = mortice.ones_like(loss) if weight is None else weight
        return {
            "sum": (loss * weight).sum(), "total": weight.sum(), "outside": outside, "strays": (~here.any(1)).sum(),
            "uneven": ((preds.sum(1) - 1).abs() > math.sqrt(eps)).sum(),
        }  # fmt: skip

    def value(self, state: State) -> Tensor:
        """Divide by the number of samples."""
        outside, strays, uneven = (int(state[name]) for name in ("outside", "strays", "uneven"))
        if outside:
            raise ValueError(
                f"log_loss: expected probabilities from 0 to 1; {outside} are not. Give softmax or sigmoid of logits."
            )
        if strays:
            raise ValueError(f"log_loss: expected labels below the number of columns; {strays} are not.")
        if uneven:
            warn(f"log_loss: expected rows that sum to one; {uneven} do not.")
        return state["sum"] / total_of("log_loss", state["total"])


class Perplexity(Metric):
    """The exponential of the mean cross entropy of a language model: over how many tokens it is as good as undecided.

    `update` takes logits (..., vocabulary) and tokens (...).
    """

    def __init__(self, *, ignore_index: int | None = None) -> None:
        super().__init__()
        self.ignore_index = ignore_index

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Add up cross entropies."""
        preds, target, weight = read("perplexity", preds, target, sample_weight)
        if not preds.is_floating_point() or preds.shape[:-1] != target.shape:
            raise mismatch("perplexity", preds, target, "logits (..., vocabulary) and tokens (...)")
        dtype = wide(preds.device)
        if weight is None:
            weight = mortice.ones(target.shape, dtype=dtype, device=target.device)
        known = (target >= 0) & (target < preds.shape[-1])
        if self.ignore_index is not None:
            weight = weight.masked_fill(target == self.ignore_index, 0)
        half = preds.dtype in (mortice.float16, mortice.bfloat16)
        logs = (preds.float() if half else preds).log_softmax(-1)
        # Not by `gather`, whose indices are checked on the host.
        other = mortice.arange(preds.shape[-1], device=preds.device) != target.unsqueeze(-1)
        logs = logs.masked_fill(other, 0).sum(-1)
        return {
            "sum": -(logs.to(dtype) * weight).sum(),
            "total": weight.sum(),
            "strays": (~known & (weight != 0)).sum(),
        }

    def value(self, state: State) -> Tensor:
        """Return the exponential of the mean."""
        if strays := int(state["strays"]):
            raise ValueError(f"perplexity: expected tokens below the vocabulary's size; {strays} are not.")
        return (state["sum"] / total_of("perplexity", state["total"])).exp()


# ---- functions: a metric that sees one batch ----


def mean_squared_error(
    preds: Any, target: Any, *, sample_weight: Any = None, multioutput: str = "uniform_average"
) -> Tensor:
    """Return the mean of squared differences; 'raw_values' gives each output's."""
    return MeanSquaredError(multioutput=multioutput).update(preds, target, sample_weight).compute()


def mean_absolute_error(
    preds: Any, target: Any, *, sample_weight: Any = None, multioutput: str = "uniform_average"
) -> Tensor:
    """Return the mean of absolute differences; 'raw_values' gives each output's."""
    return MeanAbsoluteError(multioutput=multioutput).update(preds, target, sample_weight).compute()


def r2(preds: Any, target: Any, *, sample_weight: Any = None, multioutput: str = "uniform_average") -> Tensor:
    """Return the share of the targets' variance that predictions explain; see `R2Score`."""
    return R2Score(multioutput=multioutput).update(preds, target, sample_weight).compute()


def log_loss(preds: Any, target: Any, *, sample_weight: Any = None) -> Tensor:
    """Return the mean of -log of the probability given to the class that it is; see `LogLoss`."""
    return LogLoss().update(preds, target, sample_weight).compute()


def perplexity(preds: Any, target: Any, *, sample_weight: Any = None, ignore_index: int | None = None) -> Tensor:
    """Return the exponential of the mean cross entropy of logits (..., vocabulary) and tokens (...)."""
    return Perplexity(ignore_index=ignore_index).update(preds, target, sample_weight).compute()
