"""Arguments by NumPy's names, which PyTorch takes beside its own, and those that are True or False."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import CO_VARARGS
from typing import Any

from mortice.errors import switch
from mortice.modes import beneath
from mortice.tensor import TensorBase


def _asked(fn: Callable[..., Any]) -> tuple[tuple[str | None, ...], frozenset[str], frozenset[str]]:
    """Return the names of a function's parameters, by place, which of them are switches, and of these which may be None."""
    inner: Any = fn
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code, kinds = inner.__code__, inner.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & CO_VARARGS:  # whose places are no parameter's
        names = (*names[: code.co_argcount], *[None] * 16, *names[code.co_argcount :])
    maybe = frozenset([n for n in names if kinds.get(n) == "bool | None"])
    return names[:32], maybe.union([n for n in names if kinds.get(n) == "bool"]), maybe


def _check(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *asked: Any) -> None:
    names, switches, maybe = asked
    for name, value in (*zip(names, args), *kwargs.items()):  # the 2 of x.mean(1, 2) was meant as a dim
        if name in switches and value.__class__ is not bool and (value is not None or name not in maybe):
            switch(fn.__name__.removeprefix("torch_"), name, value)


def _hands_over(call: Callable[..., Any], fn: Callable[..., Any], names: Any, switches: Any, maybe: Any) -> Callable[..., Any]:
    under, _, _, usual = beneath.get(fn, (fn, (), 0, False))
    beneath[call] = under, names, sum([1 << i for i, name in enumerate(names) if name in switches]), usual
    return call


def switched(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes nothing but bools for what is a switch, as PyTorch's in C++ do; itself if it has none."""
    asked = _asked(fn)
    if not asked[1] or (fn in beneath and beneath[fn][1]):  # which asks already
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        _check(fn, args, kwargs, *asked)
        return fn(*args, **kwargs)

    return _hands_over(call, fn, *asked)


def numpy_names(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch does; what is a switch must be a bool."""
    asked = _asked(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        if asked[1]:
            _check(fn, args, kwargs, *asked)
        try:
            return fn(*args, **kwargs)
        except AttributeError:
            if args and not isinstance(args[0], TensorBase):
                raise TypeError(f"{fn.__name__}: expected a Tensor; got {type(args[0]).__name__}.") from None
            raise

    return _hands_over(call, fn, *asked)
