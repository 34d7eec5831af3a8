"""PyTorch's operators that its root has beside public functions: reductions and modes are numbers, all results come out."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.nn._reduction import NAMES
from mortice.nn.functional import loss
from mortice.nn.functional.sparse import embedding_bag as _embedding_bag
from mortice.nn.functional.sparse import embedding_renorm_, grouped_mm

__all__ = [
    "batch_norm_update_stats", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "embedding_bag", "embedding_renorm_",
    "hinge_embedding_loss", "kl_div", "margin_ranking_loss", "native_dropout", "poisson_nll_loss", "triplet_margin_loss",
]  # fmt: skip

_MODES = ("sum", "mean", "max")


def _aminmax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return mortice.aminmax(input, dim=dim, keepdim=keepdim)


def _shape_as_tensor(input: Any) -> Any:
    return mortice.tensor(input.shape, dtype=mortice.int64)


def _grouped_mm(self: Any, mat2: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _has_compatible_shallow_copy_type(input: Any, other: Any) -> bool:
    """Tell whether `input.data = other` keeps the kind of tensor that it is."""
    return (input.device.type, input.layout, type(input)) == (other.device.type, other.layout, type(other))


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 0
) -> Any:
    """Return the cross entropy of sigmoid(input) with targets in [0, 1]; `reduction` 0 keeps all, 1 is their mean, 2 their sum."""
    return loss.binary_cross_entropy_with_logits(input, target, weight, reduction=NAMES[reduction], pos_weight=pos_weight)


def _by_number(name: str, names: str) -> Any:
    """Return a loss that takes the operator's arguments in their order, and its reduction by number."""
    each, order = getattr(loss, name), [*names.split(), "reduction"]

    def reduced(*args: Any, **kwargs: Any) -> Any:
        given = {"reduction": 0, **dict(zip(order, args)), **kwargs}
        number = given.pop("reduction")
        return loss._reduced(each(**given, reduction="none"), NAMES[number])

    reduced.__name__, reduced.__doc__ = name, each.__doc__
    return reduced


cosine_embedding_loss = _by_number("cosine_embedding_loss", "input1 input2 target margin")
hinge_embedding_loss = _by_number("hinge_embedding_loss", "input target margin")
kl_div = _by_number("kl_div", "input target")
margin_ranking_loss = _by_number("margin_ranking_loss", "input1 input2 target margin")
poisson_nll_loss = _by_number("poisson_nll_loss", "input target log_input full eps")
triplet_margin_loss = _by_number("triplet_margin_loss", "anchor positive negative margin p eps swap")


def batch_norm_update_stats(input: Any, running_mean: Any, running_var: Any, momentum: float) -> tuple[Any, Any]:
    """Return the mean and the variance (of all N) of each channel, (C,), and move the running ones towards them in place."""
    dims = [d for d in range(input.ndim) if d != 1]
    count = input.numel() // max(input.shape[1], 1)
    var, mean = mortice.var_mean(input.detach(), dims, correction=0)
    with mortice.no_grad():
        for running, new in ((running_mean, mean), (running_var, var * (count / max(count - 1, 1)))):
            if running is not None:
                running.mul_(1 - momentum).add_(new.to(running.dtype), alpha=momentum)
    return mean, var


def embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return the sum (mode 0), mean (1) or maximum (2) of the rows of each bag, whose bag each index is in, and the sizes of bags.

    The last result is for a maximum the index that it is from, (bags, columns), else the sizes again.

    Differs from torch: what is not the first result is the same in all modes, where PyTorch leaves some of it empty.
    """
    out = _embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights, include_last_offset, padding_idx
    )  # fmt: skip
    count = out.shape[0]
    bag = mortice.searchsorted(offsets[:count].contiguous(), mortice.arange(indices.numel(), device=offsets.device), right=True) - 1
    kept = bag if padding_idx is None else bag[indices != padding_idx % weight.shape[0]]
    sizes = mortice.bincount(kept, minlength=count).to(offsets.dtype)
    if mode != 2:
        return out, bag.to(indices.dtype), sizes, sizes
    n, held = indices.numel(), weight.detach()[indices] == out.detach()[bag]
    if padding_idx is not None:
        held &= (indices != padding_idx % weight.shape[0])[:, None]
    places = mortice.where(held, mortice.arange(n, device=out.device)[:, None], n)
    first = places.new_full(out.shape, n).scatter_reduce(0, bag[:, None].expand_as(places), places, "amin")
    return out, bag.to(indices.dtype), sizes, mortice.cat([indices, indices.new_zeros(1)])[first]  # of an empty bag 0


def native_dropout(input: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """Return the input with a share `p` of it set to zero and the rest scaled up, and which elements were kept."""
    p = 0.0 if train is False else p
    kept = mortice.empty_like(input, dtype=mortice.bool).bernoulli_(1 - p)
    return input * kept * (1 / (1 - p) if p < 1 else 0.0), kept
