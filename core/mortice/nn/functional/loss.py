"""Losses, with the three reductions: "none", "mean", "sum"."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import _autocasting as autocasting
from mortice import _nn
from mortice import _node_name as node_name
from mortice import _range_of as range_of
from mortice.nn._reduction import NAMES, get_enum, legacy_get_string
from mortice.nn.functional.distance import pairwise_distance
from mortice.notice import warn

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "cosine_embedding_loss", "cross_entropy", "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss",
    "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy", "margin_ranking_loss", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction, also where it was said with PyTorch's old arguments."""
    if size_average is not None or reduce is not None:
        return legacy_get_string(size_average, reduce)
    return reduction if reduction in NAMES or reduction == "batchmean" else NAMES[get_enum(reduction)]


def _check_reduction(reduction: str) -> str:
    return reduction if reduction in NAMES else NAMES[get_enum(reduction)]


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction == "mean":
        return mortice.mean(loss)
    if reduction == "sum":
        return mortice.sum(loss)
    _check_reduction(reduction)
    return loss


def _warn_sizes(input: Any, target: Any) -> None:
    if input.shape != target.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
            "lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )


def _weighted(name: str, loss: Any, weight: Any, input: Any, reduction: str) -> Any:
    """Reduce losses; the mean is over the sum of the weights."""
    if weight.shape != input.shape:
        raise ValueError(f"{name}: Weights and input must have the same size; got {weight.shape} and {input.shape}.")
    loss = loss * weight
    return mortice.sum(loss) / mortice.sum(weight) if reduction == "mean" else _reduced(loss, reduction)


# ---- regression ----


@autocasting
def mse_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    weight: Any = None,
) -> Any:  # fmt: skip
    """Return the squared differences, reduced."""
    _warn_sizes(input, target)
    reduction = _check_reduction(legacy_reduction(size_average, reduce, reduction))
    if weight is None:
        return _nn.mse_loss(input, target, reduction)
    return _weighted("mse_loss", _nn.mse_loss(input, target, "none"), weight, input, reduction)


@autocasting
def l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    weight: Any = None,
) -> Any:  # fmt: skip
    """Return the absolute differences, reduced."""
    _warn_sizes(input, target)
    if input.shape != target.shape:  # so that one without dims counts for the dtype, as in PyTorch
        input, target = mortice.broadcast_tensors(input, target)
    loss, reduction = mortice.abs(input - target), legacy_reduction(size_average, reduce, reduction)
    return _reduced(loss, reduction) if weight is None else _weighted("l1_loss", loss, weight, input, reduction)


@autocasting
def smooth_l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Any:  # fmt: skip
    """Return d * d / (2 * beta) for differences below beta and |d| - beta / 2 for others, reduced."""
    _warn_sizes(input, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta; got {beta}.")
    reduction = _check_reduction(legacy_reduction(size_average, reduce, reduction))
    return _nn.smooth_l1_loss(input, target, reduction, beta)


def _check_floats(name: str, *inputs: Any) -> None:
    for x in inputs:
        if x.dtype.kind != "f":
            raise NotImplementedError(
                f"{name}: result type Float can't be cast to the desired output type {x.dtype.name}. Use .float()."
            )


@autocasting
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """Return d * d / 2 for differences below delta and delta * (|d| - delta / 2) for others, reduced."""
    _warn_sizes(input, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta; got {delta}.")
    reduction = _check_reduction(reduction)
    _check_floats("huber_loss", input)
    if weight is None:
        return _nn.huber_loss(input, target, reduction, delta)
    return _weighted("huber_loss", _nn.huber_loss(input, target, "none", delta), weight, input, reduction)


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Return the negative log likelihood of targets under normal distributions of mean `input` and variance `var`."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = mortice.ones_like(input) * var
    elif mortice.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.ndim != input.ndim or [v for n, v in zip(input.shape, var.shape, strict=True) if n != v] != [1]:
            raise ValueError(
                f"var is of incorrect size; got {var.shape} for input {input.shape}. One dim of it may be 1, or the last left out."
            )
    if reduction not in NAMES:
        raise ValueError(f"{reduction} is not valid")
    _check_floats("gaussian_nll_loss", var)
    var = mortice.where(var.detach() < eps, var - var.detach() + eps, var)
    loss = (mortice.log(var) + (input - target) * (input - target) / var) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


@autocasting
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return the negative log likelihood of counts under Poisson distributions of (log) rate `input`."""
    reduction = _check_reduction(legacy_reduction(size_average, reduce, reduction))
    loss = mortice.exp(input) - target * input if log_input else input - target * mortice.log(input + eps)
    if full:
        stirling = target * mortice.log(target) - target + 0.5 * mortice.log(2 * math.pi * target)
        loss += mortice.where(target <= 1, mortice.zeros_like(stirling), stirling)
    return _reduced(loss, reduction)


# ---- classes ----


@autocasting
def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None, ignore_index: int = -100,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return -weight * input at the target classes, reduced; classes are dim 1, the mean is weighted."""
    reduction = _check_reduction(legacy_reduction(size_average, reduce, reduction))
    return _nn.nll_loss(input, target, weight, reduction, ignore_index)


@autocasting
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None, ignore_index: int = -100,
    reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Return the cross entropy of logits; the target holds class indices, or probabilities of the input's shape.

    Differs from torch: of class indices backward reads the logits, not a copy: writing into them before is an error.
    """
    reduction = _check_reduction(legacy_reduction(size_average, reduce, reduction))
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not input.shape:
        raise RuntimeError("cross_entropy: expected input with a class dim; got a 0-d tensor.")
    dim = 0 if input.ndim == 1 else 1
    if input.shape == target.shape and target.is_floating_point():
        if ignore_index >= 0:
            raise RuntimeError(
                "cross_entropy: ignore_index is not supported for floating point target; "
                f"got {ignore_index}. Give such rows the probability 0 for every class."
            )
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing, dim)
    return _nn.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None, reduction: str = "mean",
    ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
) -> Any:  # fmt: skip
    """Return the cross entropy of input W^T + b; W is (C, *d, in) and the logits are (N, C, *d).

    Differs from torch: the logits are made whole; `options`, which cut them into chunks, change nothing.
    """
    last, classes, wrong = linear_weight.shape[-1:], tuple(linear_weight.shape)[:-1], None
    if input.ndim not in (1, 2):
        wrong = f"expected input with dimensionality 1 or 2, got {input.ndim}"
    elif linear_weight.ndim < 2:
        wrong = f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}"
    elif input.shape[-1:] != last:
        wrong = (
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {last[0]}, respectively"
        )
    elif linear_bias is not None and tuple(linear_bias.shape) != classes:
        wrong = f"expected linear_bias shape {classes}, got {tuple(linear_bias.shape)}"
    elif len(classes) > 1 and input.ndim == 1:
        wrong = (
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {last[0]}), got unbatched input with shape {tuple(input.shape)}"
        )
    if wrong:
        raise RuntimeError(f"linear_cross_entropy: {wrong}")
    shape = (*tuple(input.shape)[:-1], *classes)
    if ignore_index is not None and tuple(target.shape) == shape:
        raise RuntimeError("linear_cross_entropy: ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _nn.linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias).reshape(shape)
    return cross_entropy(
        logits, target, weight, ignore_index=-100 if ignore_index is None else ignore_index, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip


def _along(weight: Any, ndim: int, dim: int) -> Any:
    shape = [1] * ndim
    shape[dim] = -1
    return weight.reshape(shape)


def _soft_cross_entropy(input: Any, target: Any, weight: Any, reduction: str, smoothing: float, dim: int) -> Any:
    classes = input.shape[dim]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.shape)}"
        )
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    loss = _nn.log_softmax(input, dim) * target
    if weight is not None:
        loss = loss * _along(weight, input.ndim, dim)
    if reduction == "mean":
        return -mortice.sum(loss) / (input.numel() // classes if classes else 0)
    return -(mortice.sum(loss) if reduction == "sum" else mortice.sum(loss, dim))


@autocasting
@node_name("BinaryCrossEntropyBackward0")
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return the cross entropy of probabilities with targets in [0, 1], logarithms no lower than -100."""
    reduction = _check_reduction(legacy_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype != input.dtype:
        raise RuntimeError(f"binary_cross_entropy: expected target of {input.dtype}; got {target.dtype}. Use .to({input.dtype}).")
    if weight is None:
        return _nn.binary_cross_entropy(input, target, reduction)
    return _reduced(_nn.binary_cross_entropy(input, target, "none") * weight, reduction)


@autocasting
@node_name("BinaryCrossEntropyWithLogitsBackward0")
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """Return the cross entropy of sigmoid(input) with targets in [0, 1], computed stably."""
    reduction = _check_reduction(legacy_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    _check_floats("binary_cross_entropy_with_logits", input, target)
    if pos_weight is None:
        loss = _nn.binary_cross_entropy_with_logits(input, target, reduction if weight is None else "none")
    else:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * _nn.logsigmoid(input)
    if weight is not None:
        loss = loss * weight
    loss = loss if loss.dtype is target.dtype else loss.to(target.dtype)
    return loss if pos_weight is None and weight is None else _reduced(loss, reduction)


@autocasting
def kl_div(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    log_target: bool = False,
) -> Any:  # fmt: skip
    """Return target * (log(target) - input), reduced; "batchmean" divides by the batch, as the definition does."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only "
            "by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release."
        )
    if input.dtype.kind in "bui" or target.dtype.kind in "bui":
        raise RuntimeError(f"kl_div: Integral inputs not supported; got {input.dtype} and {target.dtype}. Use .float().")
    if log_target:
        loss = mortice.exp(target) * (target - input)
    else:
        loss = mortice.xlogy(target, target) - target * input
    if reduction == "batchmean":
        return mortice.sum(loss) / input.shape[0] if input.ndim else mortice.sum(loss)
    return _reduced(loss, reduction)


@autocasting
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Return the negative log-likelihood of label sequences under log_probs (T, N, C), over all their alignments.

    Targets are (N, S), or all labels one after the other. The mean is over samples, of the loss by target length.
    """
    return _nn.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity)


# ---- margins ----


@autocasting
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return input where the target is 1 and max(0, margin - input) where it is -1."""
    zero = mortice.zeros_like(input)
    apart = mortice.where(target != 1, mortice.clamp(mortice.full_like(input, margin) - input, min=0), zero)
    together = mortice.where(target != -1, input, zero)
    return _reduced(apart + together, legacy_reduction(size_average, reduce, reduction))


@autocasting
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return max(0, -target * (input1 - input2) + margin)."""
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = mortice.clamp_min(-target * (input1 - input2) + float(margin), 0)
    return _reduced(loss, legacy_reduction(size_average, reduce, reduction))


@autocasting
@node_name("SoftMarginLossBackward0")
def soft_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Any:
    """Return log(1 + exp(-target * input))."""
    _check_floats("soft_margin_loss", input)
    loss = mortice.log1p(mortice.exp(-input * target))
    if loss.shape != input.shape:
        raise RuntimeError(
            f"soft_margin_loss: output with shape {list(input.shape)} doesn't match the broadcast shape {list(loss.shape)}"
        )
    return _reduced(loss.to(input.dtype), legacy_reduction(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return each sample's mean binary cross entropy over its labels, from logits."""
    loss = -(target * _nn.logsigmoid(input) + (1 - target) * _nn.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    dim = input.ndim - 1  # the labels' also where a target or weight has more dims
    return _reduced(mortice.sum(loss, dim) / input.size(dim), legacy_reduction(size_average, reduce, reduction))


def _check_margin_input(name: str, input: Any) -> None:
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    _nn.check_kind(name, input.dtype, "f")


def _labels(name: str, target: Any) -> Any:
    if target.dtype is not mortice.int64:
        raise RuntimeError(f"{name}: expected scalar type Long but found {target.dtype.name}. Use target.long().")
    return target


@autocasting
@node_name("MultiMarginLossBackward0")
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return each sample's mean over the other classes of max(0, margin - input[target] + input)**p."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_margin_input("multi_margin_loss", input)
    rows = input if input.ndim == 2 else input.reshape(1, -1)
    if target.numel() != rows.shape[0]:
        raise RuntimeError(
            f"multi_margin_loss: inconsistent target size: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{rows.shape[0]}], but got {list(target.shape)}"
        )
    at = _labels("multi_margin_loss", target).reshape(-1, 1)
    gap = mortice.clamp(margin - mortice.gather(rows, 1, at) + rows, min=0)
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * weight[at]
    loss = mortice.mean(gap.scatter(1, at, 0), 1)  # without the class itself
    return _reduced(loss.reshape(target.shape), reduction)


@autocasting
@node_name("MultilabelMarginLossBackward0")
def multilabel_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Any:
    """Return each sample's mean of max(0, 1 - input[label] + input[other]); labels end at the first -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_margin_input("multilabel_margin_loss", input)
    one = max(input.ndim, target.ndim) < 2 and input.numel() == target.numel() == 1  # with or without its dim
    if input.shape != target.shape and not one:
        raise RuntimeError(
            f"multilabel_margin_loss: inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    rows = input.reshape(-1, input.shape[-1] if input.ndim else 1)
    at = _labels("multilabel_margin_loss", target).reshape(rows.shape)
    classes = rows.shape[1]
    given = mortice.cumsum((at < 0).to(mortice.int64), 1) == 0
    counted = range_of(given.sum(1)) if at.numel() else None
    if counted:  # no sample has more labels than these
        at, given = at[:, : counted[1]], given[:, : counted[1]]
    safe = mortice.where(given, at, mortice.zeros_like(at))
    is_label = mortice.zeros_like(rows, dtype=at.dtype).scatter_add(1, safe, given.to(at.dtype)) > 0
    # (sample, label position, other class)
    gap = mortice.clamp(1 - mortice.gather(rows, 1, safe).unsqueeze(2) + rows.unsqueeze(1), min=0)
    counts = given.unsqueeze(2) & ~is_label.unsqueeze(1)
    loss = mortice.sum(mortice.where(counts, gap, mortice.zeros_like(gap)), (1, 2)) / classes
    return _reduced(loss if input.ndim == 2 else loss.reshape(()), reduction)


@autocasting
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return 1 - cos where the target is 1 and max(0, cos - margin) where it is -1."""
    if target.ndim > 1:
        raise RuntimeError(
            f"cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not supported; got "
            f"{list(target.shape)}. A target is one number a pair; use target.squeeze(1)."
        )
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(
            f"cosine_embedding_loss: {target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found "
            f"inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    axis = target.ndim
    # PyTorch's formula here adds its epsilon to the squares, unlike cosine_similarity.
    squares = (mortice.sum(input1 * input1, axis) + 1e-12) * (mortice.sum(input2 * input2, axis) + 1e-12)
    cos = mortice.sum(input1 * input2, axis) / mortice.sqrt(squares)
    zero = mortice.zeros_like(cos)
    apart = mortice.where(target == -1, mortice.clamp(cos - margin, min=0), zero)
    return _reduced(mortice.where(target == 1, 1 - cos, zero) + apart, legacy_reduction(size_average, reduce, reduction))


def _check_triplet(anchor: Any, positive: Any, negative: Any) -> None:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


@autocasting
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return max(0, |anchor - positive| - |anchor - negative| + margin)."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_triplet(anchor, positive, negative)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = mortice.minimum(far, pairwise_distance(positive, negative, p, eps))
    near = pairwise_distance(anchor, positive, p, eps)
    return _reduced(mortice.clamp_min(near - far + margin, 0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance of one's own."""
    if reduction not in NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = mortice.minimum(far, distance(positive, negative))
    return _reduced(mortice.clamp_min(near - far + margin, 0), reduction)
