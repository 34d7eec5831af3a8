"""`cond` and `while_loop`, and what libraries ask of sizes that a compiler may not know: here all of it is plain Python."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from mortice import Tensor
from mortice.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["cond", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum", "while_loop"]


def _truth(op: str, pred: Any) -> bool:
    """Return what a predicate says: a Python number, or the one element of a tensor."""
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"{op}: Expected pred to be bool or tensor, but got {pred!r}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"{op}: Expected pred to be bool or single-element tensor, but got shape {tuple(pred.shape)}.")
    return bool(pred)


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """Return `true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`; gradients are those of the branch that ran.

    Args:
        pred: a number, or a tensor of one element.
        operands: tensors, or trees of tensors.

    Differs from torch: the other branch is not traced, so the two need not agree in what they return.
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError(f"cond: Expect both branches to be callable; got {true_fn!r} and {false_fn!r}.")
    if not isinstance(operands, (tuple, list)) or any(not isinstance(x, Tensor) for x in tree_flatten(operands)[0]):
        raise RuntimeError(f"cond: Expect operands to be a tuple of tensors or of trees of tensors; got {operands!r}.")
    return (true_fn if _truth("cond", pred) else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]) -> Any:
    """Call `values = body_fn(*values)` while `cond_fn(*values)` holds, from `carried_inputs` on; return the last values.

    What the body returns has the structure, shapes and dtypes of what it took.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError(f"while_loop: Expect cond_fn and body_fn to be callable; got {cond_fn!r} and {body_fn!r}.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"while_loop: Expect carried_inputs to be a tuple or list; got {type(carried_inputs).__name__}.")
    leaves, spec = tree_flatten(tuple(carried_inputs))
    if any(not isinstance(x, (Tensor, int, float)) for x in leaves):
        raise RuntimeError(f"while_loop: Expect carried_inputs to hold tensors and numbers alone; got {carried_inputs!r}.")
    while True:
        values = tree_unflatten(leaves, spec)
        if not _truth("while_loop", cond_fn(*values)):
            return values
        returned = body_fn(*values)
        after, found = tree_flatten(tuple(returned) if isinstance(returned, (tuple, list)) else (returned,))
        before, now = ([(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else type(x) for x in t] for t in (leaves, after))
        if found != spec or before != now:
            raise RuntimeError(f"while_loop: Expected body_fn to return what it takes: {before}; got {now}.")
        leaves = after


def sym_float(a: Any) -> float:
    """Return the number as a float."""
    return float(a)


def sym_int(a: Any) -> int:
    """Return the number as an int, cut towards zero."""
    return int(a)


def sym_not(a: Any) -> Any:
    """Return `not a` of a bool, `~a` of a tensor."""
    return ~a if isinstance(a, Tensor) else not a


def sym_sqrt(a: Any) -> float:
    """Return the square root of a number."""
    return math.sqrt(a)


def sym_sum(args: Any) -> Any:
    """Return the sum of a sequence of numbers."""
    return builtins.sum(args)


def _extreme(choose: Callable[..., Any], a: Any, b: Any) -> Any:
    """Return the greater or lesser number; a float where one of the two is."""
    chosen = choose(a, b)
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


def sym_max(a: Any, b: Any) -> Any:
    """Return the greater of two numbers; a float where one of the two is."""
    return _extreme(builtins.max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the lesser of two numbers; a float where one of the two is."""
    return _extreme(builtins.min, a, b)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return `t` where `b` holds, else `f`; the two are of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise TypeError(f"sym_ite: expected a bool and two values of one type; got {b!r}, {t!r} and {f!r}.")
    return t if b else f
