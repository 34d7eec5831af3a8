"""Distances, similarities, normalising and one-hot."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import _autocasting as autocasting
from mortice import _nn
from mortice import _node_name as node_name
from mortice import _numpy_names as numpy_names
from mortice import _range_of as range_of

__all__ = ["cosine_similarity", "normalize", "one_hot", "pairwise_distance", "pdist"]


@numpy_names
@node_name("NormBackward1")
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """Return the p-norm of x1 - x2 + eps along the last dim."""
    return mortice.norm(x1 - x2 + eps, p, -1, keepdim)


@numpy_names
@autocasting
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Return the cosine of the angle between x1 and x2 along a dim."""
    if not x1.is_floating_point() or not x2.is_floating_point():
        d = mortice.promote_types(x1.dtype, x2.dtype)
        if not d.is_floating_point:
            raise RuntimeError(f"cosine_similarity: expected common dtype to be floating point, yet common dtype is {d}")
        x1, x2 = x1.to(d), x2.to(d)
    x1, x2 = mortice.broadcast_tensors(x1, x2)
    n1, n2 = (mortice.linalg.vector_norm(x, 2, dim, True).clone() for x in (x1, x2))
    with mortice.no_grad():  # the gradient is that of the norms also where they count as eps
        n1.clamp_(min=eps)
        n2.clamp_(min=eps)
    return mortice.sum((x1 / n1) * (x2 / n2), dim)


@autocasting
@node_name("PdistBackward0")
def pdist(input: Any, p: float = 2) -> Any:
    """Return the p-norm distances between all pairs of rows, as the upper triangle without its diagonal."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values; got {p}.")
    n = input.shape[0]
    if not input.is_meta:  # of which no mask can be counted
        upper = mortice.ones((n, n), dtype=mortice.bool, device=input.device).triu(1)
        _nn.check_kind("pdist", input.dtype, "f")
        return _nn.own_distances(input, p=float(p)).masked_select(upper)
    row, other = mortice.triu_indices(n, n, 1, device=input.device)
    return mortice.norm(input.index_select(0, row) - input.index_select(0, other), p, -1)


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """Divide by the p-norm along a dim, which counts as no less than eps."""
    length = mortice.clamp(mortice.norm(input, p, dim, keepdim=True), min=eps)
    return mortice.div(input, length, out=out)


def one_hot(input: Any, num_classes: int = -1) -> Any:
    """Return int64 rows with a 1 at each class index."""
    if input.dtype is not mortice.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor; got {input.dtype}.")
    if input.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty input.")
        return mortice.zeros(*input.shape, num_classes, dtype=mortice.int64, device=input.device)
    ends = range_of(input)
    if ends is None and num_classes == -1:
        ends = int(input.min()), int(input.max())  # which says why there are none to read
    low, high = ends or (0, num_classes - 1)
    if low < 0:
        raise RuntimeError(f"Class values must be non-negative; got {low}.")
    if num_classes == -1:
        num_classes = high + 1
    elif num_classes < 1:
        raise RuntimeError(f"num_classes should be positive; got {num_classes}.")
    elif high >= num_classes:
        raise RuntimeError(f"Class values must be smaller than num_classes; got {high} and {num_classes}.")
    return input.new_zeros((*input.shape, num_classes)).scatter_(-1, input.unsqueeze(-1), 1)
