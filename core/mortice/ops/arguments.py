"""Arguments by NumPy's names, which PyTorch takes beside its own, and those that are True or False."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mortice.misuse import check_switches, hands_over, parameters
from mortice.tensor import TensorBase


def numpy_names(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch does; what is a switch must be a bool."""
    asked = parameters(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        if asked[1]:
            check_switches(fn, args, kwargs, *asked)
        try:
            return fn(*args, **kwargs)
        except AttributeError:
            if args and not isinstance(args[0], TensorBase):
                raise TypeError(f"{fn.__name__}: expected a Tensor; got {type(args[0]).__name__}.") from None
            raise

    return hands_over(call, fn, *asked)
