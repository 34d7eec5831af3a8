"""Metrics that rank scores: the ROC curve and the area below it, precision against recall, average precision.

Samples are kept, since a rank is known when all are there; they stay on the device that they came on until `compute`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import mortice
from mortice import Tensor
from mortice.metrics.metric import Metric, State, UndefinedMetricWarning, mismatch, one_of, placed, read
from mortice.notice import warn
from mortice.utils._wide import wide

DOUBTED = 50  # samples, above which scores that rank the wrong way round are no accident
Binary = Callable[[Tensor, Tensor, Tensor | None], Tensor]  # of scores, whether positive, weights


class _Ranked(Metric):
    """Keeps scores, targets and weights as they come."""

    kept = True
    name = ""
    columns = False  # whether scores of several classes have a meaning

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Keep a copy of the batch."""
        preds, target, weight = read(self.name, preds, target, sample_weight)
        preds = _scores(self.name, preds, target, self.columns)
        part = {"preds": preds.clone(), "target": target.clone()}
        return part if weight is None else {**part, "weight": weight.clone()}

    def join(self, parts: list[State]) -> State:
        """Put batches behind one another on the device of the first."""
        device = parts[0]["preds"].device
        names = ("preds", "target", "weight") if any("weight" in part for part in parts) else ("preds", "target")
        return {name: _joined([placed(_of(part, name), device) for part in parts]) for name in names}

    def value(self, state: State) -> Any:
        """Sort, and measure."""
        preds, target, weight = state["preds"], state["target"], state.get("weight")
        if not len(target):
            raise ValueError(f"{self.name}: expected at least one sample; got none.")
        if bool(preds.isnan().any()):
            raise ValueError(f"{self.name}: expected scores that can be compared; got nan among them.")
        return self.measured(preds.to(wide(preds.device)), target, weight)

    def measured(self, preds: Tensor, target: Tensor, weight: Tensor | None) -> Any:
        """Return the metric of all samples."""
        raise NotImplementedError

    def _positive(self, target: Tensor, label: int = 1) -> Tensor:
        other = (target != 0) & (target != 1)
        if bool(other.any()):
            raise ValueError(
                f"{self.name}: expected targets 0 and 1 for scores of one class; {int(other.sum())} are others."
            )
        return target == label


def _of(part: State, name: str) -> Tensor:
    if name in part:
        return part[name]
    target = part["target"]
    return mortice.ones(target.shape, dtype=wide(target.device), device=target.device)


def _joined(parts: list[Tensor]) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    dtype = parts[0].dtype
    for part in parts:
        dtype = mortice.promote_types(dtype, part.dtype)
    return mortice.cat([part.to(dtype) for part in parts])


def _scores(name: str, preds: Tensor, target: Tensor, columns: bool) -> Tensor:
    """Return scores (N) or (N, C), or say what was mistaken for them."""
    if target.ndim != 1 or preds.ndim not in (1, 2) or len(preds) != len(target):
        raise mismatch(name, preds, target, "scores (N,)" + " or (N, C)" * columns + " and labels (N,)")
    if not preds.is_floating_point():
        raise ValueError(
            f"{name}: expected scores, floats that grow with the chance of the positive class; got {preds.dtype}, which looks "
            "like hard labels. Give probabilities, softmax(logits)[:, 1] or sigmoid(logit), from before any argmax or threshold."
        )
    if preds.ndim == 2 and preds.shape[1] == 1:
        return preds.squeeze(1)
    if preds.ndim == 2 and preds.shape[1] == 2:
        raise ValueError(
            f"{name}: expected scores of the positive class (N,); got both columns {tuple(preds.shape)}. "
            "Give preds[:, 1]; with the other column the result would be of class 0: 1 - AUC."
        )
    if preds.ndim == 2 and not columns:
        raise mismatch(name, preds, target, "scores of one class (N,): of class c give preds[:, c] and target == c")
    return preds


# ---- two classes ----


def _curve(scores: Tensor, positive: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return false and true positives at each distinct score, from the highest down, and those scores."""
    if weight is not None:
        there = (weight != 0).nonzero().squeeze(1)
        scores, positive, weight = scores[there], positive[there], weight[there]
    if not len(scores):
        raise ValueError("roc_curve: expected a sample of a weight other than 0; got none.")
    order = scores.argsort(descending=True, stable=True)
    scores, hits = scores[order], positive[order].to(scores.dtype)
    misses = 1 - hits
    if weight is not None:
        hits, misses = hits * weight[order], misses * weight[order]
    ends = (scores[1:] != scores[:-1]).nonzero().squeeze(1)
    last = mortice.full((1,), len(scores) - 1, dtype=ends.dtype, device=ends.device)
    ends = mortice.cat([ends, last])
    return misses.cumsum(0)[ends], hits.cumsum(0)[ends], scores[ends]


def _corners(*counts: Tensor) -> Tensor | slice:
    """Say where curves turn; points in between lie on a line."""
    if len(counts[0]) <= 2:
        return slice(None)
    turns = mortice.zeros(len(counts[0]) - 2, dtype=mortice.bool, device=counts[0].device)
    for count in counts:
        turns = turns | (count.diff(2) != 0)
    end = mortice.ones(1, dtype=mortice.bool, device=turns.device)
    return mortice.cat([end, turns, end]).nonzero().squeeze(1)


def _roc(scores: Tensor, positive: Tensor, weight: Tensor | None, drop: bool) -> tuple[Tensor, Tensor, Tensor]:
    fps, tps, thresholds = _curve(scores, positive, weight)
    if drop:
        at = _corners(fps, tps)
        fps, tps, thresholds = fps[at], tps[at], thresholds[at]
    rates = []
    for kind, count in (("negative", fps), ("positive", tps)):
        count = mortice.cat([mortice.zeros_like(count[:1]), count])
        if bool(count[-1] <= 0):
            warn(
                f"roc_curve: no {kind} samples, so the {'false' if kind == 'negative' else 'true'} positive rate is nan.",
                UndefinedMetricWarning,
            )
            rates.append(mortice.full_like(count, math.nan))
        else:
            rates.append(count / count[-1])
    return rates[0], rates[1], mortice.cat([mortice.full_like(thresholds[:1], math.inf), thresholds])


def _area(scores: Tensor, positive: Tensor, weight: Tensor | None) -> Tensor:
    if bool(positive.all()) or not bool(positive.any()):
        warn("roc_auc: only one class is there, so it is nan.", UndefinedMetricWarning)
        return mortice.full((), math.nan, dtype=scores.dtype, device=scores.device)
    fpr, tpr, _ = _roc(scores, positive, weight, True)
    return mortice.trapezoid(tpr, fpr)


def _chance(target: Tensor) -> float:
    """Return the standard deviation of the area under the ROC curve of scores that know nothing."""
    n = len(target)
    positive = int((target == 1).sum())
    return math.sqrt((n + 1) / (12 * max(1, positive) * max(1, n - positive)))


def _doubt(scores: Tensor, target: Tensor, area: Tensor) -> None:
    """Warn of scores that look like those of the other class, or like hard labels."""
    from mortice.tracing import doubts  # not needed before

    x, n = float(area), len(scores)
    if n > DOUBTED and bool(((scores == 0) | (scores == 1)).all()) and bool((scores != scores[0]).any()):
        doubts.doubt(
            "D24",
            f"roc_auc: all {n} scores are 0 or 1, which looks like hard labels: the area is of a single point. Pass "
            "probabilities of the positive class, from before any argmax or threshold.",
            samples=n,
        )
    elif n > DOUBTED and x < 0.4 and 0.5 - x > 4 * _chance(target):
        doubts.doubt(
            "D24",
            f"roc_auc: AUC {x:.2f} < 0.5: preds look like the probability of the NEGATIVE class (column 0). Pass probabilities "
            "of the positive class (column 1).",
            auc=x,
            samples=n,
        )


def _precision_recall(
    scores: Tensor, positive: Tensor, weight: Tensor | None, drop: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    fps, tps, thresholds = _curve(scores, positive, weight)
    if drop and len(tps) > 2:
        end = mortice.ones(1, dtype=mortice.bool, device=tps.device)
        moves = tps.diff() != 0
        at = mortice.cat([end, moves[:-1] | moves[1:], end]).nonzero().squeeze(1)
        fps, tps, thresholds = fps[at], tps[at], thresholds[at]
    said = tps + fps
    precision = (tps / said.masked_fill(said == 0, 1)).masked_fill(said == 0, 0)
    if bool(tps[-1] == 0):
        warn("precision_recall_curve: no positive samples, so recall is 1 at all thresholds.")
        recall = mortice.ones_like(tps)
    else:
        recall = tps / tps[-1]
    one = mortice.ones_like(precision[:1])
    return mortice.cat([precision.flip(0), one]), mortice.cat([recall.flip(0), one * 0]), thresholds.flip(0)


def _average_precision(scores: Tensor, positive: Tensor, weight: Tensor | None) -> Tensor:
    precision, recall, _ = _precision_recall(scores, positive, weight)
    return (-(recall.diff() * precision[:-1]).sum()).clamp(min=0)


# ---- several classes ----


def _classes(name: str, preds: Tensor, target: Tensor) -> Tensor:
    """Return which targets are of which class (N, C); each class must be there."""
    own = mortice.arange(preds.shape[1], device=preds.device) == target.unsqueeze(1)
    if not bool(own.any(0).all()) or not bool(own.any(1).all()):
        raise ValueError(
            f"{name}: expected targets of each of the {preds.shape[1]} classes that there are scores of, and no others; "
            f"got classes {target.unique().tolist()}."
        )
    return own


def _over_classes(measure: Binary, preds: Tensor, own: Tensor, weight: Tensor | None, average: str | None) -> Tensor:
    """Measure each class against the rest."""
    if average == "micro":
        spread = None if weight is None else weight.unsqueeze(1).expand(preds.shape).flatten()
        return measure(preds.flatten(), own.flatten(), spread)
    each = mortice.stack([measure(preds[:, c], own[:, c], weight) for c in range(preds.shape[1])])
    if average is None:
        return each
    if average == "macro":
        return each.mean()
    support = (own if weight is None else own * weight.unsqueeze(1)).sum(0).to(each.dtype)
    return (each.masked_fill(support == 0, 0) * support).sum() / support.sum()


class ROC(_Ranked):
    """The false and the true positive rate at each threshold; see `roc_curve`."""

    name = "roc_curve"

    def __init__(self, *, pos_label: int = 1, drop_intermediate: bool = True) -> None:
        super().__init__()
        one_of(self.name, "pos_label", pos_label, (0, 1))
        self.pos_label, self.drop_intermediate = pos_label, drop_intermediate

    def measured(self, preds: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return both rates and the thresholds."""
        return _roc(preds, self._positive(target, self.pos_label), weight, self.drop_intermediate)


class PrecisionRecallCurve(_Ranked):
    """Precision and recall at each threshold; see `precision_recall_curve`."""

    name = "precision_recall_curve"

    def __init__(self, *, pos_label: int = 1, drop_intermediate: bool = False) -> None:
        super().__init__()
        one_of(self.name, "pos_label", pos_label, (0, 1))
        self.pos_label, self.drop_intermediate = pos_label, drop_intermediate

    def measured(self, preds: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return precision, recall and the thresholds."""
        return _precision_recall(preds, self._positive(target, self.pos_label), weight, self.drop_intermediate)


class AUROC(_Ranked):
    """The area under the ROC curve: the chance that a positive sample has a higher score than a negative one.

    Args:
        average: over classes: 'macro', 'weighted', 'micro' (for 'ovr'), or None for each.
        multi_class: for scores (N, C): 'ovr' takes each class against the rest, 'ovo' each pair of classes.

    `update` takes scores of the positive class (N), or probabilities (N, C) of three and more classes.
    """

    name, columns = "roc_auc", True

    def __init__(self, *, average: str | None = "macro", multi_class: str | None = None) -> None:
        super().__init__()
        one_of(self.name, "average", average, ("macro", "weighted", "micro", None))
        one_of(self.name, "multi_class", multi_class, ("ovr", "ovo", None))
        if multi_class == "ovo":
            one_of(self.name, "average with multi_class='ovo'", average, ("macro", "weighted"))
        self.average, self.multi_class = average, multi_class

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Keep a copy of the batch."""
        part = super().batch(preds, target, sample_weight)
        if part["preds"].ndim == 2:
            one_of(self.name, "multi_class for scores of several classes", self.multi_class, ("ovr", "ovo"))
            if self.multi_class == "ovo" and "weight" in part:
                raise ValueError("roc_auc: expected no sample_weight with multi_class='ovo'; got one.")
        return part

    def measured(self, preds: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """Return the area."""
        if preds.ndim == 1:
            area = _area(preds, self._positive(target), weight)
            _doubt(preds, target, area)
            return area
        if not bool(((preds.sum(1) - 1).abs() <= 1e-5).all()):
            raise ValueError(
                "roc_auc: expected probabilities, rows that sum to one; got others. Give softmax(logits, 1)."
            )
        own = _classes(self.name, preds, target)
        if self.multi_class == "ovr":
            return _over_classes(_area, preds, own, weight, self.average)
        areas, shares = [], []
        for a, b in combinations(range(preds.shape[1]), 2):
            pair = (own[:, a] | own[:, b]).nonzero().squeeze(1)
            first, second = (_area(preds[pair, c], own[pair, c], None) for c in (a, b))
            areas.append((first + second) / 2)
            shares.append(len(pair) if self.average == "weighted" else 1)
        share = mortice.tensor(shares, dtype=preds.dtype, device=preds.device)
        return (mortice.stack(areas) * share).sum() / share.sum()


class AveragePrecision(_Ranked):
    """The mean of precisions at each threshold, weighted by how much recall grows there.

    Args:
        average: over classes: 'macro', 'weighted', 'micro', or None for each.

    `update` takes scores of the positive class (N), or scores (N, C) of three and more classes.
    """

    name, columns = "average_precision", True

    def __init__(self, *, average: str | None = "macro", pos_label: int = 1) -> None:
        super().__init__()
        one_of(self.name, "average", average, ("macro", "weighted", "micro", None))
        one_of(self.name, "pos_label", pos_label, (0, 1))
        self.average, self.pos_label = average, pos_label

    def measured(self, preds: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """Return the mean."""
        if preds.ndim == 1:
            return _average_precision(preds, self._positive(target, self.pos_label), weight)
        return _over_classes(_average_precision, preds, _classes(self.name, preds, target), weight, self.average)


# ---- functions: a metric that sees one batch ----


def roc_auc(
    preds: Any, target: Any, *, sample_weight: Any = None, average: str | None = "macro", multi_class: str | None = None
) -> Tensor:
    """Return the area under the ROC curve of scores of the positive class, or of probabilities (N, C); see `AUROC`."""
    return AUROC(average=average, multi_class=multi_class).update(preds, target, sample_weight).compute()


def average_precision(
    preds: Any, target: Any, *, sample_weight: Any = None, average: str | None = "macro", pos_label: int = 1
) -> Tensor:
    """Return the mean of precisions, weighted by how much recall grows; see `AveragePrecision`."""
    return AveragePrecision(average=average, pos_label=pos_label).update(preds, target, sample_weight).compute()


def roc_curve(
    preds: Any, target: Any, *, sample_weight: Any = None, pos_label: int = 1, drop_intermediate: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the false and the true positive rate at each threshold, and the thresholds, from inf down."""
    return ROC(pos_label=pos_label, drop_intermediate=drop_intermediate).update(preds, target, sample_weight).compute()


def precision_recall_curve(
    preds: Any, target: Any, *, sample_weight: Any = None, pos_label: int = 1, drop_intermediate: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return precision and recall at each threshold, and the thresholds, upwards; a last point (1, 0) has none."""
    metric = PrecisionRecallCurve(pos_label=pos_label, drop_intermediate=drop_intermediate)
    return metric.update(preds, target, sample_weight).compute()
