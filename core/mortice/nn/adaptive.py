"""Losses that hold the last layer: adaptive softmax over many classes, and a linear layer under cross entropy."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mortice
from mortice.nn import functional as F
from mortice.nn.container import ModuleList, Sequential
from mortice.nn.linear import Linear
from mortice.nn.loss import _WeightedLoss
from mortice.nn.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over classes sorted by frequency: the rare ones lie in clusters with smaller projections."""

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1; got {cutoffs} for {n_classes} classes."
            )
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        make = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **make)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters()):
            size = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(Linear(in_features, size, bias=False, **make), Linear(size, high - low, bias=False, **make))
            )

    def _clusters(self) -> list[tuple[int, int]]:
        """Return the first class and the one after the last of each cluster."""
        return list(zip(self.cutoffs[:-1], self.cutoffs[1:]))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        """Return the log-probability of each target, and their mean with its sign turned."""
        if target_.ndim > 1:
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported; got {tuple(target_.shape)}.")
        if tuple(input_.shape)[:-1] != tuple(target_.shape):
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension; got "
                f"{tuple(input_.shape)} and {tuple(target_.shape)}."
            )
        input, target = (input_, target_) if target_.ndim else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found."
            )
        place, tails = target, []
        for i, (low, high) in enumerate(self._clusters()):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            place = place.index_fill(0, rows, self.shortlist_size + i)
            within = F.log_softmax(self.tail[i](input[rows]), dim=1)
            tails.append((rows, within.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)))
        output = F.log_softmax(self.head(input), dim=1).gather(1, place.unsqueeze(1)).squeeze(1)
        for rows, part in tails:
            output = output.index_add(0, rows, part)
        loss = (-output).mean()
        return _ASMoutput(output if target_.ndim else output.squeeze(0), loss)

    def log_prob(self, input: Any) -> Any:
        """Return the log-probabilities of all classes, (N, n_classes)."""
        return self._log_prob(input, self.head(input))

    def _log_prob(self, input: Any, head: Any) -> Any:
        head = F.log_softmax(head, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            of_cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(tail(input), dim=1) + of_cluster)
        return mortice.cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """Return the likeliest class of each row; the clusters are looked at only where one is the likeliest."""
        head = self.head(input)
        best = mortice.argmax(head, dim=1)
        rare = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rare.numel():
            found = mortice.argmax(self._log_prob(input[rare], head[rare]), dim=1)
            best = best.index_copy(0, rare, found)
        return best


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How PyTorch cuts `linear_cross_entropy` into chunks; here accepted, and without effect."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a linear layer's logits."""

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Any = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"LinearCrossEntropyLoss: expected weight shape to be ({num_classes},), got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"LinearCrossEntropyLoss: expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        size = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, size, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Any:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
