"""`associative_scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice import cat, stack
from mortice.func.vmap import vmap
from mortice.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Return the running results of an associative function along a dim of a tensor, or of a tree of tensors.

    The function is mapped over pairs of slices, so its calls are few: about twice the logarithm of the length.
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"associative_scan: expected combine_mode 'pointwise' or 'generic'; got {combine_mode!r}.")
    leaves, spec = tree_flatten(xs)
    if not leaves or any(x.shape[dim] == 0 for x in leaves):
        raise ValueError(f"associative_scan: expected tensors that are not empty along dim {dim}; got {xs!r}.")

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        trees = (tree_unflatten(x, spec) for x in (left, right))
        return tree_flatten(vmap(combine_fn)(*trees))[0]

    def scan(elements: list[Any]) -> list[Any]:
        length = len(elements[0])
        if length < 2:
            return elements
        odd = scan(combine([x[0 : length - 1 : 2] for x in elements], [x[1::2] for x in elements]))
        if length == 2:
            return [cat([x[:1], y]) for x, y in zip(elements, odd, strict=True)]
        even = combine([y[: (length - 1) // 2] for y in odd], [x[2::2] for x in elements])
        even = [cat([x[:1], y]) for x, y in zip(elements, even, strict=True)]
        # Even ones and odd ones take turns; an odd length ends with an even one.
        turns = [stack([y[: len(z)], z], 1).flatten(0, 1) for y, z in zip(even, odd, strict=True)]
        return [cat([x, y[-1:]]) if length % 2 else x for x, y in zip(turns, even, strict=True)]

    moved = [x.movedim(dim, 0) for x in leaves]
    out = scan([x.flip(0) for x in moved] if reverse else moved)
    return tree_map(lambda x: (x.flip(0) if reverse else x).movedim(0, dim), tree_unflatten(out, spec))
