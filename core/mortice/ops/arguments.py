"""Arguments by NumPy's names, which PyTorch takes beside its own, and those that are True or False."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mortice.errors import switch
from mortice.modes import beneath
from mortice.tensor import TensorBase


def numpy_names(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch does; what is a switch must be a bool."""
    inner: Any = fn
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code, defaults = inner.__code__, inner.__defaults__ or ()
    start = code.co_argcount - len(defaults)
    places = {code.co_varnames[i]: i for i, d in enumerate(defaults, start) if d.__class__ is bool}
    switches = (*places, *[name for name, d in (inner.__kwdefaults__ or {}).items() if d.__class__ is bool])
    first, one, several = min(places.values(), default=code.co_argcount), (*switches, "")[0], len(switches) > 1

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = {name: args[i] for name, i in places.items() if i < len(args)}  # the 2 of x.mean(1, 2) was meant as a dim
        for name, value in {**kwargs, **given}.items():
            if name in switches:
                switch(fn.__name__, name, value)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if "axis" in kwargs:
                kwargs["dim"] = kwargs.pop("axis")
            if "keepdims" in kwargs:
                kwargs["keepdim"] = kwargs.pop("keepdims")
            if several or (one in kwargs and kwargs[one].__class__ is not bool):
                check(args, kwargs)
        if len(args) > first and (several or args[first].__class__ is not bool):
            check(args, kwargs)
        try:
            return fn(*args, **kwargs)
        except AttributeError:
            if args and not isinstance(args[0], TensorBase):
                raise TypeError(f"{fn.__name__}: expected a Tensor; got {type(args[0]).__name__}.") from None
            raise

    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount][:32]
    under, _, _, usual = beneath.get(fn, (fn, (), 0, False))
    beneath[call] = under, names, sum([1 << i for i, name in enumerate(names) if name in switches]), usual
    return call
