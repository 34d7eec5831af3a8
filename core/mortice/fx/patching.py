"""Functions that record themselves while a program is traced, wherever programs hold them; afterwards nothing is left of it."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import mortice
from mortice.asking import Overridable, asks, let_methods_ask, wrapped
from mortice.fx.functions import public_functions
from mortice.fx.proxy import Proxy, find_proxy, record
from mortice.lazy import behind

# What works on tensors alone, and holds the functions that the public ones are made of.
_INNER = ("mortice.ops", "mortice.methods", "mortice.fx", "mortice.asking", "mortice.nn.functional.")


class _Recording(Overridable):
    """Stands for a function during a trace, and equals it: a call with a proxy among the arguments is recorded by `make`."""

    def __init__(self, fn: Any, make: Callable[[Proxy, Any, Any], Any]) -> None:
        super().__init__(behind(fn), fn.__name__)
        self.fn, self.make = fn, make

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        return self.fn(*args, **kwargs) if proxy is None else self.make(proxy, args, kwargs)


def _original(fn: Any) -> Any:
    """Return what was there before a trace that runs, as traces may run in traces."""
    return fn.fn if isinstance(fn, _Recording) else fn


def _kept(fn: Any) -> Any:
    """Return what stands for a function that is recorded as it is called."""
    fn = _original(fn)

    def make(proxy: Proxy, args: Any, kwargs: Any) -> Any:
        made = proxy.tracer.create_proxy("call_function", fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return _Recording(fn, make)


def _public(namespace: str, name: str, fn: Any) -> Any:
    return _Recording(fn, lambda proxy, args, kwargs: record(proxy.tracer, namespace, name, fn, args, kwargs))


@contextmanager
def functions_recorded(root: Any, kept: Any = ()) -> Iterator[None]:
    """Let functions and methods record calls with proxies; those in `kept`, and what `wrap` was told, as they are called."""
    functions = public_functions()
    stands = {id(fn): _public(namespace, name, _original(fn)) for namespace, name, fn in functions}
    for _, _, fn in functions:  # a program may hold the function since before `mortice.overrides` put another in its place
        stands.setdefault(id(behind(fn)), stands[id(fn)])
    stands.update({id(fn): _kept(fn) for fn in kept})
    undo: list[tuple[Any, str, Any]] = []
    load, opened = mortice._load, "mortice.overrides" in sys.modules

    def put(names: Any, name: str, made: Any) -> None:
        undo.append((names, name, names.get(name, undo)))
        names[name] = made

    def replace(names: Any) -> None:
        for name, value in list(names.items()):
            if id(value) in stands:
                put(names, name, stands[id(value)])
            elif type(value) is dict and value is not names:  # such as a table of activations by name
                for key, inner in list(value.items()):
                    if id(inner) in stands:
                        put(value, key, stands[id(inner)])

    def load_recorded(module: str, name: str) -> Any:
        value = load(module, name)
        if not asks(name, value):
            return value
        undo.append((vars(mortice), name, value))  # its caller puts what it gets there
        return _public("mortice", name, value)

    for key, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and not key.startswith(_INNER) and key.partition(".")[0] != "torch":
            replace(vars(module))
    for module in root.modules():
        replace(vars(module))
    for (_, name), names in wrapped.items():
        fn = names.get(name, getattr(builtins, name, None))
        if fn is not None:
            put(names, name, _kept(fn))
    vars(mortice)["_load"] = load_recorded
    let_methods_ask(True)
    try:
        yield
    finally:
        let_methods_ask(False)
        vars(mortice)["_load"] = load
        for names, name, value in reversed(undo):
            if value is undo:
                del names[name]
            else:
                names[name] = value
        if not opened and "mortice.overrides" in sys.modules:  # what it changed has just been undone
            sys.modules["mortice.overrides"].open_namespaces()


class _Patcher(ExitStack):
    """What a tracer of others, which writes `trace` again, has in place while it runs, by PyTorch's names."""

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Put a method into a class until the end."""
        self.callback(setattr, cls, name, getattr(cls, name))
        setattr(cls, name, new_fn)


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    patcher.enter_context(functions_recorded(mortice.nn.Module()))


def _autowrap_check(patcher: _Patcher, names: dict[str, Any], function_ids: set[int]) -> None:
    """Let functions in a namespace, those of these ids, be recorded as they are called until the end."""
    for name, value in list(names.items()):
        if id(value) in function_ids:
            patcher.callback(names.__setitem__, name, value)
            names[name] = _kept(value)
