"""Arguments by NumPy's names, which PyTorch takes beside its own, and those that are True or False."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mortice.misuse import check_switches, hands_over, own_names, parameters
from mortice.tensor import TensorBase


def numpy_names(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take arguments by NumPy's names too, as PyTorch does; what is a switch must be a bool."""
    asked = parameters(fn)
    known = frozenset(asked[0])

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not known.issuperset(kwargs) and (own := own_names(fn, kwargs)):
            kwargs = dict(zip(own, kwargs.values()))
        if asked[1]:
            check_switches(fn, args, kwargs, *asked)
        try:
            return fn(*args, **kwargs)
        except AttributeError:
            if args and not isinstance(args[0], TensorBase):
                raise TypeError(f"{fn.__name__}: expected a Tensor; got {type(args[0]).__name__}.") from None
            raise

    return hands_over(call, fn, *asked)
