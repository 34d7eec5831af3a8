"""Metrics that count labels: accuracy, the confusion matrix, and precision, recall and F1 from it."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import Tensor
from mortice.metrics.metric import Metric, State, UndefinedMetricWarning, mismatch, one_of, read, total_of
from mortice.notice import warn
from mortice.utils._wide import wide


def _labels(name: str, preds: Tensor, target: Tensor, threshold: float) -> tuple[Tensor, int | None, Tensor]:
    """Return labels of the targets' shape, of how many classes the scores are, and how many are no probabilities.

    The number of classes is None where labels were given.
    """
    if target.is_floating_point():
        raise ValueError(
            f"{name}: expected targets to be labels, integers or bools; got {target.dtype}. Cast them: .long()."
        )
    none = mortice.zeros((), dtype=mortice.int64, device=preds.device)
    if preds.ndim == target.ndim + 1 and preds.shape[:1] + preds.shape[2:] == target.shape:
        return preds.argmax(1), preds.shape[1], none
    if preds.shape != target.shape:
        wanted = "labels of the target's shape, or scores with one more dimension, the classes, at 1"
        raise mismatch(name, preds, target, wanted)
    if preds.is_floating_point():
        # With another threshold they are scores of some other kind, such as logits with 0.
        none = none + (((preds < 0) | (preds > 1) | preds.isnan()).sum() if 0 < threshold < 1 else preds.isnan().sum())
        return (preds > threshold).long(), 2, none
    return preds.long(), None, none


def _probabilities(name: str, state: State) -> None:
    if outside := int(state["outside"]):
        raise ValueError(
            f"{name}: expected probabilities of the positive class, from 0 to 1; {outside} are not. "
            "Give sigmoid(logits), or threshold=0 for logits."
        )


class Accuracy(Metric):
    """The share of labels that are right.

    Args:
        threshold: above which a probability of the positive class says 1.
        ignore_index: a target that does not count.

    `update` takes labels, probabilities of the positive class (both of the targets' shape), or scores (N, C, ...).
    """

    def __init__(self, *, threshold: float = 0.5, ignore_index: int | None = None) -> None:
        super().__init__()
        self.threshold, self.ignore_index = threshold, ignore_index

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Count what is right."""
        preds, target, weight = read("accuracy", preds, target, sample_weight)
        binary = preds.is_floating_point() and preds.shape == target.shape
        preds, _, outside = _labels("accuracy", preds, target, self.threshold)
        shares = _shares(preds == target, target, weight, self.ignore_index)
        others = (target > 1) & (target != self.ignore_index if self.ignore_index is not None else True)
        strays = others.sum() if binary and target.dtype != mortice.bool else mortice.zeros_like(outside)
        return {**shares, "outside": outside, "strays": strays}

    def value(self, state: State) -> Tensor:
        """Divide by the number of samples."""
        _probabilities("accuracy", state)
        if strays := int(state["strays"]):
            raise ValueError(
                f"accuracy: expected targets 0 and 1 for floats of their shape, probabilities of one class; {strays} are others. "
                "Give scores (N, C), or integers as labels."
            )
        return _share("accuracy", state)


def _shares(right: Tensor, target: Tensor, weight: Tensor | None, ignored: int | None) -> State:
    # Whole numbers where there are no weights: devices without float64 count on past 2 ** 24.
    weight = mortice.ones_like(right, dtype=mortice.int64) if weight is None else weight
    if ignored is not None:
        weight = weight.masked_fill(target == ignored, 0)
    return {"right": (right * weight).sum(), "total": weight.sum()}


def _share(name: str, state: State) -> Tensor:
    dtype = wide(state["total"].device)
    return state["right"].to(dtype) / total_of(name, state["total"]).to(dtype)


class TopKAccuracy(Metric):
    """The share of samples whose class is among the k with the highest scores; among equal scores later classes win.

    `update` takes scores (N, C).
    """

    def __init__(self, k: int = 2, *, ignore_index: int | None = None) -> None:
        super().__init__()
        self.k, self.ignore_index = k, ignore_index

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Count the classes that are ahead of the right one."""
        preds, target, weight = read("top_k_accuracy", preds, target, sample_weight)
        if preds.ndim != 2 or target.shape != preds.shape[:1]:
            raise mismatch("top_k_accuracy", preds, target, "scores (N, C) and labels (N,)")
        if self.k >= preds.shape[1]:
            warn(f"top_k_accuracy: k={self.k} of {preds.shape[1]} classes is always right.", UndefinedMetricWarning)
        classes, own = mortice.arange(preds.shape[1], device=preds.device), target.unsqueeze(1)
        here = classes == own
        score = preds.masked_fill(~here, 0).sum(1, keepdim=True)
        ahead = (preds > score) | ((preds == score) & (classes > own))
        known = here.any(1)
        hit = (ahead.sum(1) < self.k) & ~score.isnan().squeeze(1) & known
        if self.ignore_index is not None:
            known = known | (target == self.ignore_index)
        return {**_shares(hit, target, weight, self.ignore_index), "strays": (~known).sum()}

    def value(self, state: State) -> Tensor:
        """Divide by the number of samples."""
        if strays := int(state["strays"]):
            raise ValueError(f"top_k_accuracy: expected labels below the number of columns; {strays} are not.")
        return _share("top_k_accuracy", state)


class ConfusionMatrix(Metric):
    """How often (or with what weight) each class, the row, was taken for each class, the column.

    Args:
        num_classes: how many classes there are; scores (N, C, ...) say it themselves.
        normalize: None, or what adds up to 1: 'true' rows, 'pred' columns, 'all'.
        threshold, ignore_index: as for `Accuracy`.
    """

    name = "confusion_matrix"

    def __init__(
        self, num_classes: int | None = None, *, normalize: str | None = None, threshold: float = 0.5, ignore_index: int | None = None
    ) -> None:  # fmt: skip
        super().__init__()
        one_of(self.name, "normalize", normalize, (None, "true", "pred", "all"))
        self.num_classes, self.threshold, self.ignore_index = num_classes, threshold, ignore_index
        self.normalize = normalize

    def batch(self, preds: Any, target: Any, sample_weight: Any = None) -> State:
        """Count pairs; what is outside of the classes is counted apart, for `compute` to tell."""
        preds, target, weight = read(self.name, preds, target, sample_weight)
        binary = preds.is_floating_point() and preds.shape == target.shape
        preds, seen, outside = _labels(self.name, preds, target, self.threshold)
        if self.num_classes is None:
            if seen is None:
                raise ValueError(
                    f"{self.name}: expected num_classes, which labels do not say; got None. Give it to {type(self).__name__}."
                )
            self.num_classes = seen
        n = self.num_classes
        if seen is not None and (seen > n or (binary and n != 2)):
            raise ValueError(f"{self.name}: expected scores of {n} classes; got {seen}. {self._advice()}")
        preds, target = preds.flatten(), target.flatten().long()
        known = (preds >= 0) & (preds < n) & (target >= 0) & (target < n)
        strays = ~known if self.ignore_index is None else ~known & (target != self.ignore_index)
        if self.ignore_index is not None:
            known = known & (target != self.ignore_index)
        weight = None if weight is None else weight.flatten()
        return {"counts": _pairs(preds, target, known, weight, n), "strays": strays.sum(), "outside": outside}

    def _advice(self) -> str:
        return f"Give {type(self).__name__} the right num_classes."

    def _counts(self, state: State) -> Tensor:
        _probabilities(self.name, state)
        if strays := int(state["strays"]):
            raise ValueError(
                f"{self.name}: expected labels from 0 to {len(state['counts']) - 1}; {strays} are not. {self._advice()}"
            )
        return state["counts"]

    def value(self, state: State) -> Tensor:
        """Return the matrix, integers unless samples have weights or it is normalised."""
        counts = self._counts(state)
        if self.normalize is None:
            return counts
        counts = counts.to(wide(counts.device))
        over = {
            "true": lambda: counts.sum(1, keepdim=True),
            "pred": lambda: counts.sum(0, keepdim=True),
            "all": counts.sum,
        }
        return (counts / over[self.normalize]()).nan_to_num(nan=0.0)


_ROWS = 65536  # samples that are compared with all classes at a time


def _pairs(preds: Tensor, target: Tensor, known: Tensor, weight: Tensor | None, n: int) -> Tensor:
    """Count pairs (n, n), or add up their weights, by what asks for no index: those are checked, on the host."""
    dtype = wide(preds.device)
    if weight is None and (dtype == mortice.float64 or n <= 1024):  # numbers of pairs must be exact
        place = mortice.where(known, target * n + preds, -1).to(dtype)
        return mortice.histc(place, n * n, -0.5, n * n - 0.5).to(mortice.int64).reshape(n, n)
    amount = known.to(dtype) if weight is None else weight.masked_fill(~known, 0)
    classes, total = mortice.arange(n, device=preds.device), mortice.zeros(n, n, dtype=dtype, device=preds.device)
    for start in range(0, len(preds), _ROWS):
        at = slice(start, start + _ROWS)
        left = (target[at].unsqueeze(1) == classes) * amount[at].unsqueeze(1)
        total = total + left.t() @ (preds[at].unsqueeze(1) == classes).to(dtype)
    return total if weight is not None else total.round().to(mortice.int64)


_AVERAGES = ("binary", "micro", "macro", "weighted", None)


class _Ratio(ConfusionMatrix):
    """A ratio of counts: of each class, or one of them, or an average.

    Args:
        average: 'binary' is of class `pos_label` alone; 'micro' counts all classes together; 'macro' and 'weighted' are the
            means over the classes that occur, all alike or by how often they are right; None gives all classes.
        num_classes: how many classes there are; scores (N, C, ...) say it themselves.
        zero_division: what stands for a division by zero: 0, 1 or nan, which means leave out; 'warn' is 0 with a warning.
        threshold, ignore_index: as for `Accuracy`.
    """

    without = ""  # what there is none of where the ratio is undefined

    def __init__(
        self, average: str | None = "binary", *, num_classes: int | None = None, pos_label: int = 1,
        zero_division: float | str = "warn", threshold: float = 0.5, ignore_index: int | None = None,
    ) -> None:  # fmt: skip
        one_of(self.name, "average", average, _AVERAGES)
        if zero_division != "warn" and not (zero_division in (0, 1) or math.isnan(float(zero_division))):
            raise ValueError(f"{self.name}: expected zero_division to be 'warn', 0, 1 or nan; got {zero_division!r}.")
        if average == "binary":
            one_of(self.name, "pos_label", pos_label, (0, 1))
            if num_classes not in (None, 2):
                raise ValueError(
                    f"{self.name}: expected num_classes=2 for average='binary'; got {num_classes}. {_CHOOSE}"
                )
            num_classes = 2
        super().__init__(num_classes, threshold=threshold, ignore_index=ignore_index)
        self.average, self.pos_label, self.zero_division = average, pos_label, zero_division

    def _advice(self) -> str:
        return _CHOOSE if self.average == "binary" else super()._advice()

    def parts(self, hit: Tensor, said: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Return numerator and denominator from the right ones, those predicted, and those that there are."""
        raise NotImplementedError

    def value(self, state: State) -> Tensor:
        """Return the ratio, or its average."""
        counts = self._counts(state)
        counts = counts.to(wide(counts.device))
        total_of(self.name, counts.sum())
        hit, said, there = counts.diagonal(), counts.sum(0), counts.sum(1)
        if self.average == "micro":
            hit, said, there = (x.sum() for x in (hit, said, there))
        elif self.average == "binary":
            hit, said, there = (x[self.pos_label] for x in (hit, said, there))
        above, below = self.parts(hit, said, there)
        undefined = below == 0
        instead = 0.0 if self.zero_division == "warn" else float(self.zero_division)
        ratio = (above / below.masked_fill(undefined, 1)).masked_fill(undefined, instead)
        averaged = self.average in ("macro", "weighted")
        present = (said + there) != 0
        if self.zero_division == "warn" and bool((undefined & present if averaged else undefined).any()):
            warn(
                f"{self.name}: no {self.without} samples, so it is undefined and set to 0; `zero_division` says otherwise.",
                UndefinedMetricWarning,
            )
        if not averaged:
            return ratio
        defined = present & ~ratio.isnan()
        weight = (there if self.average == "weighted" else mortice.ones_like(there)).masked_fill(~defined, 0)
        if bool(weight.sum() == 0):
            weight = defined.to(weight.dtype)
        return (ratio.masked_fill(~defined, 0) * weight).sum() / weight.sum()


_CHOOSE = "For more than two classes choose average='micro', 'macro', 'weighted' or None."


class Precision(_Ratio):
    """Of the samples taken for a class, the share that are of it."""

    name, without = "precision", "predicted"

    def parts(self, hit: Tensor, said: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Divide by those predicted."""
        return hit, said


class Recall(_Ratio):
    """Of the samples of a class, the share that are found."""

    name, without = "recall", "true"

    def parts(self, hit: Tensor, said: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Divide by those that there are."""
        return hit, there


class F1Score(_Ratio):
    """The harmonic mean of precision and recall."""

    name, without = "f1", "true nor predicted"

    def parts(self, hit: Tensor, said: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Divide twice the right ones by both."""
        return 2 * hit, said + there


for _cls in (Precision, Recall, F1Score):
    _cls.__doc__ = f"{_cls.__doc__}\n\n    {(_Ratio.__doc__ or '').partition('average.')[2].strip()}\n    "


# ---- functions: a metric that sees one batch ----


def accuracy(
    preds: Any, target: Any, *, sample_weight: Any = None, threshold: float = 0.5, ignore_index: int | None = None
) -> Tensor:
    """Return the share of labels that are right; see `Accuracy` for what the predictions may be."""
    return Accuracy(threshold=threshold, ignore_index=ignore_index).update(preds, target, sample_weight).compute()


def top_k_accuracy(
    preds: Any, target: Any, k: int = 2, *, sample_weight: Any = None, ignore_index: int | None = None
) -> Tensor:
    """Return the share of samples whose class is among the k with the highest scores."""
    return TopKAccuracy(k, ignore_index=ignore_index).update(preds, target, sample_weight).compute()


def _once(metric: ConfusionMatrix, preds: Any, target: Any, sample_weight: Any) -> Tensor:
    preds, target, _ = read(metric.name, preds, target, None)
    if metric.num_classes is None and preds.shape == target.shape and not preds.is_floating_point() and target.numel():
        metric.num_classes = max(int(preds.max()), int(target.max()), 1) + 1
    elif metric.num_classes is None and not target.numel():
        metric.num_classes = 2
    return metric.update(preds, target, sample_weight).compute()


def confusion_matrix(
    preds: Any, target: Any, num_classes: int | None = None, *, sample_weight: Any = None, normalize: str | None = None,
    threshold: float = 0.5, ignore_index: int | None = None,
) -> Tensor:  # fmt: skip
    """Return how often each class, the row, was taken for each class, the column; see `ConfusionMatrix`."""
    metric = ConfusionMatrix(num_classes, normalize=normalize, threshold=threshold, ignore_index=ignore_index)
    return _once(metric, preds, target, sample_weight)


def precision(
    preds: Any, target: Any, average: str | None = "binary", *, sample_weight: Any = None, **options: Any
) -> Tensor:
    """Return the share of what was taken for a class that is of it; the options are those of `Precision`."""
    return _once(Precision(average, **options), preds, target, sample_weight)


def recall(
    preds: Any, target: Any, average: str | None = "binary", *, sample_weight: Any = None, **options: Any
) -> Tensor:
    """Return the share of a class that is found; the options are those of `Recall`."""
    return _once(Recall(average, **options), preds, target, sample_weight)


def f1(preds: Any, target: Any, average: str | None = "binary", *, sample_weight: Any = None, **options: Any) -> Tensor:
    """Return the harmonic mean of precision and recall; the options are those of `F1Score`."""
    return _once(F1Score(average, **options), preds, target, sample_weight)
