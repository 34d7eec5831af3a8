"""What of a result is determined where PyTorch leaves a choice: among equals, in order, up to a factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Which of equal elements is chosen is free. The number is the place of `dim` among the arguments after the input.
CHOICES = {"argsort": 0, "kthvalue": 1, "median": 0, "mode": 0, "nanmedian": 0, "sort": 0, "topk": 1}

# The order of eigenvalues is free: these sums do not depend on it.
ORDERLESS: dict[str, Callable[[Any], Any]] = {
    "linalg.eigvals": lambda w: (w.sum(-1), (w * w).sum(-1), (w * w * w).sum(-1)),
    "linalg.eig": lambda out: (
        out[0].sum(-1),
        (out[0] * out[0]).sum(-1),
        (out[1].abs() ** 2 * out[0][..., None, :]).sum(-1),
    ),
}


def reading(op: Any, sample: Any) -> Callable[[Any], Any]:
    """Return what leaves only the determined part of a result; for most decompositions PyTorch's table knows."""
    return ORDERLESS.get(op.name, sample.output_process_fn_grad)


def chosen(name: str, sample: Any, result: Any) -> Any:
    """Replace indices by the elements that they choose, and by whether one is chosen twice."""
    x, place = sample.input, CHOICES[name]
    if x.ndim == 0 or not (name == "argsort" or isinstance(result, tuple)):
        return result
    given = [arg for arg in sample.args[place:] if type(arg) is int]
    dim = sample.kwargs.get("dim", given[0] if given else -1)
    indices = result if name == "argsort" else result[1]
    at = indices if indices.ndim == x.ndim else indices.unsqueeze(dim)
    twice = bool(at.sort(dim).values.diff(dim=dim).eq(0).any())
    return None if name == "argsort" else result[0], x.detach().take_along_dim(at, dim), twice
