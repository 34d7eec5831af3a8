"""`scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice import Tensor, stack
from mortice.utils._pytree import tree_flatten, tree_map

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Go along a dim of a tree of tensors: `carry, out = combine_fn(carry, slice)`, from `init` on.

    Args:
        reverse: begin with the last slice; the results still lie as the slices do.

    Returns:
        The last carry, and the tree of the results, stacked in a new dim 0.

    Raises:
        RuntimeError: for what are no tensors, slices of several numbers or none, or a carry of another form than `init`.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"scan: Combine_fn must be a callable, but got {combine_fn!r}.")
    n = _length("scan", xs, dim)
    carry: Any = init
    if not tree_flatten(init)[0] or any(not isinstance(x, Tensor) for x in tree_flatten(init)[0]):
        raise RuntimeError(f"scan: All init leaves must be a Tensor, and one at least; got {init!r}.")
    outs: list[Any] = [None] * n
    for i in reversed(range(n)) if reverse else range(n):
        carry, outs[i] = combine_fn(carry, tree_map(lambda x, i=i: x.select(dim, i), xs))
        if _form(carry) != _form(init):
            raise RuntimeError(
                "scan: Expected init and carry to have the same tree structure, shapes and dtypes; got "
                f"{_form(init)} and {_form(carry)}."
            )
    return carry, _stacked("scan", outs)


def _form(tree: Any) -> tuple[Any, list[Any]]:
    leaves, spec = tree_flatten(tree)
    return spec, [(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else type(x) for x in leaves]


def _length(op: str, xs: Any, dim: int) -> int:
    leaves = tree_flatten(xs)[0]
    if not leaves or any(not isinstance(x, Tensor) or not x.ndim for x in leaves):
        raise RuntimeError(f"{op}: Expect xs to be a tree of tensors with dims, one at least; got {xs!r}.")
    lengths = {x.shape[dim] for x in leaves}
    if len(lengths) > 1 or not min(lengths):
        raise RuntimeError(f"{op}: Leading dimensions of mapped xs must be one number above 0; got {sorted(lengths)}.")
    return int(lengths.pop())


def _stacked(op: str, outs: list[Any]) -> Any:
    for x in tree_flatten(outs[0])[0]:
        if x is not None and not isinstance(x, Tensor):
            raise RuntimeError(f"{op}: Expect outputs to be trees of tensors and None alone; got {type(x).__name__}.")
    return tree_map(lambda *parts: None if parts[0] is None else stack(parts), *outs)
