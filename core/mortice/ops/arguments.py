"""Arguments by NumPy's names, which PyTorch takes beside its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mortice.tensor import TensorBase


def numpy_names(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch does."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if "axis" in kwargs:
                kwargs["dim"] = kwargs.pop("axis")
            if "keepdims" in kwargs:
                kwargs["keepdim"] = kwargs.pop("keepdims")
        try:
            return fn(*args, **kwargs)
        except AttributeError:
            if args and not isinstance(args[0], TensorBase):
                raise TypeError(f"{fn.__name__}: expected a Tensor; got {type(args[0]).__name__}.") from None
            raise

    return call
