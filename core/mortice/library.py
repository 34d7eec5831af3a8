"""Functions of one's own as operators with a gradient: PyTorch's torch.library.custom_op."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import mortice
from mortice.autograd import Function

__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel"]

_defined: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """A function that runs as one step of the graph; what it does inside is not recorded."""

    def __init__(self, name: str, fn: Callable[..., Any]) -> None:
        if name.count("::") != 1:
            raise ValueError(f"custom_op: expected a name of the form namespace::name; got {name!r}.")
        self._qualname, self._signature, self._kernels = name, inspect.signature(fn), {"cpu": fn, None: fn}
        self._backward: Any = None
        self._setup: Any = None
        self.__name__, self.__doc__ = name.partition("::")[2], fn.__doc__
        self._step = type(self.__name__, (Function,), {"forward": self._forward, "backward": self._pull})
        _defined[name] = self
        space, _, short = name.partition("::")
        if not hasattr(mortice.ops, space):
            setattr(mortice.ops, space, SimpleNamespace())
        if isinstance(found := getattr(mortice.ops, space), SimpleNamespace):
            setattr(found, short, self)

    def _forward(self, ctx: Any, *args: Any) -> Any:
        named = dict(zip(self._signature.parameters, args))
        only = {n: v for n, v in named.items() if self._signature.parameters[n].kind is inspect.Parameter.KEYWORD_ONLY}
        inputs = args[: len(args) - len(only)]
        device = next((a.device.type for a in args if isinstance(a, mortice.Tensor)), None)
        output = self._kernels.get(device, self._kernels[None])(*inputs, **only)
        if self._setup is not None:
            self._setup(ctx, inputs, output, **({"keyword_only_inputs": only} if only else {}))
        return output

    def _pull(self, ctx: Any, *grads: Any) -> Any:
        if self._backward is None:
            raise RuntimeError(
                f"Trying to backward through {self._qualname} but no autograd formula was registered. Call "
                "register_autograd on it."
            )
        found = self._backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        return found + (None,) * (len(self._signature.parameters) - len(found))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._step.apply(*bound.arguments.values())

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Give the gradient: `setup_context(ctx, inputs, output)` keeps what `backward(ctx, *grads)` needs."""
        self._backward, self._setup = backward, setup_context

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Return the function that gives the result's shape; nothing here asks for it."""
        return fn

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Let another function serve tensors of some types of devices."""
        types = device_types if isinstance(device_types, Iterable) and not isinstance(device_types, str) else [device_types]

        def register(fn: Any) -> Any:
            self._kernels.update(dict.fromkeys(types, fn))
            return fn

        return register if fn is None else register(fn)


def custom_op(
    name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None, tags: Any = None
) -> Any:
    """Make an operator of a function, or return the decorator that does; it is `mortice.ops.namespace.name` as well."""
    return CustomOpDef(name, fn) if fn is not None else lambda fn: CustomOpDef(name, fn)


def _op(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else _defined.get(op)
    if found is None:
        raise RuntimeError(f"library: expected an operator that custom_op made, or its name; got {op!r}.")
    return found


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None) -> None:
    """Give an operator its gradient."""
    _op(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Any = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = False) -> Any:
    """Take the function that gives the shape of an operator's result; nothing here asks for it."""
    return _op(op).register_fake if func is None else _op(op).register_fake(func)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Let another function serve tensors of some types of devices."""
    return _op(op).register_kernel(device_types, func)
