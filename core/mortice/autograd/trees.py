"""Nests of tuples, lists, dicts and what was registered: their leaves, and nests of the same form with other leaves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from mortice.tensor import TensorBase

# Classes that are containers too -> what gives the children and a context, and what makes one of them: see `utils._pytree`.
REGISTERED: dict[type, Any] = {deque: (lambda x: (x, x.maxlen), deque)}


def _children(tree: Any) -> list[Any]:
    return list(REGISTERED[type(tree)][0](tree)[0])


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a nest, in order."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, (tuple, list)) or type(tree) in REGISTERED:
        for value in tree if isinstance(tree, (tuple, list)) else _children(tree):
            yield from leaves(value)
    else:
        yield tree


def rebuild(tree: Any, values: Iterator[Any]) -> Any:
    """Return a nest of the same form with other leaves."""
    if isinstance(tree, dict):
        made: Any = [(key, rebuild(value, values)) for key, value in tree.items()]
        kind: Any = type(tree)
        return kind(tree.default_factory, made) if hasattr(tree, "default_factory") else kind(made)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[rebuild(value, values) for value in tree])
    if isinstance(tree, (tuple, list)):
        return type(tree)([rebuild(value, values) for value in tree])
    if type(tree) in REGISTERED:
        apart, together = REGISTERED[type(tree)]
        children, context = apart(tree)
        return together([rebuild(value, values) for value in children], context)
    return next(values)


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to each leaf."""
    return rebuild(tree, iter([fn(leaf) for leaf in leaves(tree)]))


def form(tree: Any) -> Any:
    """Return what two nests of the same form have in common."""
    if isinstance(tree, dict):
        return dict, tuple([(key, form(value)) for key, value in tree.items()])
    if isinstance(tree, (tuple, list)):
        return type(tree), tuple([form(value) for value in tree])
    return (type(tree), tuple(map(form, _children(tree)))) if type(tree) in REGISTERED else None


def tensors(name: str, tree: Any, what: str) -> list[Any]:
    """Return the leaves of a nest, all of which must be tensors."""
    found = list(leaves(tree))
    for leaf in found:
        if not isinstance(leaf, TensorBase):
            raise RuntimeError(f"{name}: Expected {what} to only contain Tensors, got {type(leaf).__name__}.")
    return found


def spread(dims: Any, tree: Any, problem: str) -> Iterator[Any]:
    """Yield a dim for every leaf; one that stands for a nest counts for all its leaves."""
    if dims is None or (isinstance(dims, int) and not isinstance(dims, bool)):
        for _ in leaves(tree):
            yield dims
        return
    if isinstance(tree, dict) and isinstance(dims, dict) and dims.keys() == tree.keys():
        pairs = [(dims[key], value) for key, value in tree.items()]
    elif (
        isinstance(tree, (tuple, list)) and isinstance(dims, (tuple, list)) and len(dims) == len(tree)
        and isinstance(dims, tuple) is isinstance(tree, tuple)
    ):  # fmt: skip
        pairs = list(zip(dims, tree))
    elif type(tree) is type(dims) and type(tree) in REGISTERED:
        pairs = list(zip(_children(dims), _children(tree)))
    else:
        raise ValueError(problem)
    for part, value in pairs:
        yield from spread(part, value, problem)
