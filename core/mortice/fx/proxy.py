"""Proxies: the values of a program while it is recorded. What is done to them becomes nodes."""

from __future__ import annotations

import copy
import dataclasses
import dis
import enum
import operator
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from mortice import nn
from mortice.fx import functions
from mortice.fx.codegen import magic_methods, reflectable_magic_methods
from mortice.fx.node import Node, base_types, map_aggregate, map_arg
from mortice.lazy import behind

_PLAIN = (*base_types, enum.Enum, type(None), type(...))


class TraceError(ValueError):
    """A program that cannot be recorded, for what it does depends on a value."""


class Scope:
    """The module whose forward runs."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class TracerBase:
    """What makes nodes of calls."""

    graph: Any
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: dict[str, Any]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:  # fmt: skip
        """Add a node to the graph; override it to look at what is recorded."""
        node: Node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces:
            import traceback

            frames = [frame for frame in traceback.extract_stack() if "/mortice/fx/" not in frame.filename]
            first = next((i for i, frame in enumerate(frames) if frame.name == "forward"), len(frames))
            node.stack_trace = "".join(traceback.format_list(frames[first:])).strip() or None
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:  # fmt: skip
        """Add a node and return its proxy."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """Return a value as an argument of a node; override it to take more types."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, (tuple, list)):
            made = [self.create_arg(v) for v in a]
            return type(a)(*made) if hasattr(a, "_fields") else type(a)(made)
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, _PLAIN):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        def refuse(arg: Any) -> Any:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {arg}")

        return key if isinstance(key, str) else map_arg(self.create_arg(key), refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """Return a proxy's truth value, if a tracer of one's own knows it."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow; got a truth value asked of "
            f"{obj!r}. Use torch.where, pass the value by concrete_args, or put the branch into a function marked by fx.wrap."
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return an iterator over a proxy, if a tracer of one's own knows how many there are."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            f"**kwargs function argument; got {obj!r}. Index it over a range that is known, or put the loop into a function "
            "marked by fx.wrap."
        )

    def keys(self, obj: Proxy) -> Any:
        """Return the keys of a proxy, as `**proxy` asks for."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds what is done to proxies to a graph, outside of a trace."""

    def __init__(self, graph: Any) -> None:
        import_module("mortice.overrides")  # functions ask their arguments from now on, as no trace lets them
        self.graph, self.scope, self.module_stack, self.node_name_to_scope = graph, Scope("", None), {}, {}


def assert_fn(x: Any) -> None:
    """Check what a recorded `assert` checks."""
    if not x:
        raise AssertionError("Assertion failed")


def find_proxy(*values: Any) -> Proxy | None:
    """Return a proxy among values and what they hold."""
    found: list[Proxy] = []
    map_aggregate(values, lambda v: found.append(v) if isinstance(v, Proxy) else None)
    return found[0] if found else None


def _next_steps(count: int) -> list[dis.Instruction]:
    """Return the instruction of the caller's caller that runs, and those after it."""
    frame = sys._getframe(2)
    steps = list(dis.get_instructions(frame.f_code))
    at = next(i for i, step in enumerate(steps) if step.offset >= frame.f_lasti)
    return steps[at : at + count]


class Proxy:
    """The value of a node: operators, methods, attributes and functions of it make further nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        if tracer is None:
            tracer = GraphAppendingTracer(node.graph)
        self.tracer, self.node = tracer, node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("tracer", "node") or (k.startswith("__array") and k.endswith("__")):  # NumPy asks what is no array
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> Any:
        return self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: Any) -> Proxy:
        made: Proxy = object.__new__(type(self))
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Any:
        step = _next_steps(1)[0]
        if step.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(step.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            step, after = (*_next_steps(2), None)[:2]
            assumed = step is not None and step.opname.startswith("POP_JUMP") and step.opname.endswith("IF_TRUE")
            if assumed and after is not None and after.opname == "LOAD_ASSERTION_ERROR":
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Return the keys, as `**proxy` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record a call of a public function or a method."""
        kwargs = kwargs or {}
        first = find_proxy(args, kwargs)
        assert first is not None
        tracer, method = first.tracer, getattr(func, "told", None)
        if method is not None:
            return tracer.create_proxy("call_method", method.__name__, args, kwargs)
        public = functions.find(func)
        if public is None:
            return tracer.create_proxy("call_function", behind(func), args, kwargs)
        return record(tracer, *public, func, args, kwargs)


def record(tracer: Any, namespace: str, name: str, fn: Any, args: Any, kwargs: Any) -> Any:
    """Record a call of a public function."""
    if functions.as_method(namespace, name):
        return tracer.create_proxy("call_method", name, args, kwargs)
    path = functions.address(namespace, name)
    fill = functions.recorded(path, fn)
    if fill is not None:
        args, kwargs = fill(args, kwargs)
    name = tracer.graph._target_to_str(path.rpartition(".")[2])
    return tracer.create_proxy("call_function", fn, args, kwargs, name=name)


class Attribute(Proxy):
    """An attribute of a proxy: a node once it is used, or the method that is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the attribute, made when it is first asked for."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: nn.Parameter) -> None:
        super().__init__(node, tracer)
        self.name, self.param = name, param
        for known in ("size", "dim", "numel", "nelement"):
            self.__dict__[known] = getattr(param, known)
        self.__dict__.update(shape=param.shape, ndim=param.ndim)

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"


def _operator(name: str, reflected: bool = False) -> Any:
    target = getattr(operator, name)

    def impl(self: Any, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", target, args, {})

    return impl


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator(_name, True))
