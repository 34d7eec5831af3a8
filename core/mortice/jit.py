"""mortice.jit: scripting and tracing as identities: a function keeps its Python, which gives the same results.

What would need a compiled program (saving and loading one, running its parts at once) says so.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from inspect import signature
from types import FunctionType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from mortice.nn.module import Module

__all__ = [
    "Attribute", "Error", "Final", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export", "fork", "freeze", "ignore",
    "interface", "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference", "optimized_execution", "save",
    "script", "script_if_tracing", "script_method", "trace", "trace_module", "unused", "wait",
]  # fmt: skip
_isinstance = isinstance
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses


class ScriptModule(Module):
    """A module whose methods PyTorch compiles: here a Module like others, and what `script` returns is none."""


class Error(Exception):
    """What a compiled program of PyTorch's raises, for `except`; nothing here does."""


class TracerWarning(Warning):
    """What PyTorch warns of while it traces, for filters; nothing here gives it."""


class ScriptFunction:
    """The type of a compiled function, for `isinstance` and annotations; there are none."""


class DeviceObjType:
    """The type of a device in compiled programs, for annotations; a device is a `device`."""


class TensorType:
    """The type of a tensor in compiled programs, for annotations; a tensor is a `Tensor`."""


def script(
    obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:
    """Return the function, class or module itself; floats that a function says it takes may be given as integers."""
    if not _isinstance(obj, FunctionType) or not {float, "float"}.intersection(obj.__annotations__.values()):
        return obj
    takes = signature(obj)

    @functools.wraps(obj)
    def scripted(*args: Any, **kwargs: Any) -> Any:
        given = takes.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            if type(value) is int and takes.parameters[name].annotation in (float, "float"):
                given.arguments[name] = float(value)
        return obj(*given.args, **given.kwargs)

    return scripted


def trace(func: Callable[..., Any], example_inputs: Any = None, **options: Any) -> Any:
    """Return the function or module itself, once it has run on the example inputs.

    Differs from torch: control flow stays Python, so it is not fixed to what the examples took.
    """
    inputs = options.get("example_kwarg_inputs") if example_inputs is None else example_inputs
    if inputs is None:
        raise RuntimeError("trace: example_kwarg_inputs should be a dict; example_inputs and it were both left out.")
    if _isinstance(inputs, dict):
        func(**inputs)
    else:
        func(*(inputs if _isinstance(inputs, (tuple, list)) else (inputs,)))
    return func


def trace_module(mod: Any, inputs: dict[str, Any], **options: Any) -> Any:
    """Return the module itself, once the named methods have run on their inputs."""
    for name, args in inputs.items():
        trace(getattr(mod, name), args)
    return mod


def _same(fn: Any) -> Any:
    """Return the function itself."""
    return fn


export = interface = script_method = script_if_tracing = unused = _same
_overload = _overload_method = _script_if_tracing = _same  # private in PyTorch; torchvision's sources name them


def ignore(drop: Any = False, **options: Any) -> Any:
    """Return the function itself; works with and without arguments."""
    return drop if callable(drop) else _same


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Return the module itself."""
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Return the module itself."""
    return mod


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Accept the switch, without effect."""
    yield


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """Return the value, as `annotate` does."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Tell whether an object is of a type or one in a tuple; `list[int]` asks items too."""
    if _isinstance(target_type, tuple):
        return any(isinstance(obj, kind) for kind in target_type)
    kind, inner = get_origin(target_type), get_args(target_type)
    if kind in (Union, UnionType):
        return obj is None or isinstance(obj, inner)  # as PyTorch
    if kind not in (list, dict, tuple) or not _isinstance(obj, kind):
        return not kind and _isinstance(obj, target_type)
    rows = obj.items() if kind is dict else zip(obj) if kind is list else [obj]
    return all(len(row) == len(inner) and all(map(isinstance, row, inner)) for row in rows)


def _unwrap_optional(x: Any) -> Any:
    """Return what is not None."""
    if x is None:
        raise AssertionError("jit._unwrap_optional: Unwrapping null optional")
    return x


def is_scripting() -> bool:
    """Return False: nothing runs as a script or is traced."""
    return False


is_tracing = is_scripting


def _refuse(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"jit.{name}: there are no compiled programs here. {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refuse: there are no compiled programs."
    return refuse


optimize_for_mobile = _refuse("optimize_for_mobile", "Run the module as it is.")
save = _refuse("save", "Save the module's state_dict() with mortice.save.")
load = _refuse("load", "Make the module in Python and load its state_dict.")
fork = _refuse("fork", "Call the function, or use concurrent.futures.")
wait = _refuse("wait", "Use concurrent.futures.")
_get_trace_graph = _refuse("_get_trace_graph", "Use fx.symbolic_trace, or count with utils.flop_counter.")
