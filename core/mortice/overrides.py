"""mortice.overrides: calls that a class takes over by its `__torch_function__`, and modes that take over all of them.

Programs without either pay nothing for it. When this module is imported, as it is when the first class is derived from
Tensor or a function meets what is no Tensor and has `__torch_function__`, the functions of the public namespaces give way
to `Overridable` ones, which look at their arguments; the methods that look at theirs stand in a class put between Tensor
and those derived from it. So the methods of plain tensors stay as they are, but while a mode is entered.

Differs from torch: modes are not asked for the attributes of plain tensors, and a class is not asked where a plain tensor's
method gets its tensor (`plain.add(derived)`): functions, operators and the class's own methods ask.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from mortice import Tensor
from mortice.asking import (  # noqa: F401
    _NAMESPACES,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    Overridable,
    _computed,
    _methods,
    _state,
    follow,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    let_methods_ask,
    open_namespaces,
    redispatch_function,
)

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_overridable_functions",
    "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip


class TorchFunctionMode:
    """A mode: in its block every call of the public functions and methods goes to its `__torch_function__`.

    The call itself, and others that are made there, go to the mode around it.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute `func(*args, **kwargs)`, or anything else."""
        raise NotImplementedError(f"{type(self).__name__}: give it a method __torch_function__(func, types, args, kwargs).")

    def __enter__(self) -> Any:
        let_methods_ask(True)
        _state.modes = (*_state.modes, self)
        return self

    def __exit__(self, *exc: object) -> None:
        _state.modes = _state.modes[:-1]
        let_methods_ask(False)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that computes what is asked for."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


# ---- what programs ask about ----


def get_default_nowrap_functions() -> set[Any]:
    """Return the functions whose results `Tensor.__torch_function__` leaves in the class that they have."""
    return {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Return the functions that ask, by their namespaces, and the methods of Tensor."""
    places = [import_module(path) for path in _NAMESPACES]
    found: dict[Any, list[Any]] = {p: [getattr(p, name, None) for name in dir(p)] for p in places}
    found[Tensor] = [*_methods().values()]
    return {p: [f for f in values if isinstance(f, Overridable)] for p, values in found.items()}


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """Return for each function that asks one with its signature that returns -1."""
    every = [f for functions in get_overridable_functions().values() for f in functions]
    return {f: functools.wraps(f)(lambda *args, **kwargs: -1) for f in every}


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether what `__torch_function__` got is a method of Tensor, or what reads an attribute, not a function."""
    return func.__name__ == "__get__" or (isinstance(func, Overridable) and not func.__module__)


def resolve_name(f: Any) -> str | None:
    """Return the public name of what `__torch_function__` got, as `mortice.Tensor.add`; None of anything else."""
    package = Tensor.__module__.partition(".")[0]  # what programs imported it as
    if getattr(f, "__name__", "") == "__get__":
        found = [n for kind in Tensor.__mro__ for n, value in vars(kind).items() if value is f.__self__]
        return f"{package}.Tensor.{found[0]}.__get__" if found else None
    if not isinstance(f, Overridable):
        return None
    return f"{package}{f.__module__.removeprefix('mortice') or '.Tensor' * (not f.__module__)}.{f._name}"


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that shall ask as those here do; `dispatcher` returns the arguments to look at, from all."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return wrapped

    return decorate


open_namespaces()
