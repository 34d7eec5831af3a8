"""Recording a program: it runs once with proxies for its inputs, and what is done to them becomes a graph."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import mortice
from mortice import Tensor, nn
from mortice._C import ScriptObject
from mortice.fx import compatibility, wrap
from mortice.fx.graph import Graph
from mortice.fx.graph_module import GraphModule
from mortice.fx.patching import _autowrap_check, _patch_wrapped_functions, _Patcher, functions_recorded
from mortice.fx.proxy import ParameterProxy, Scope, TracerBase, find_proxy
from mortice.fx.pytree import flattened
from mortice.notice import warn
from mortice.utils import _pytree as pytree

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]
_orig_module_call, _orig_module_getattr = nn.Module.__call__, nn.Module.__getattr__
# What tracers of others, which write `trace` again, take from here.
_FOR_OTHERS = ScriptObject, _Patcher, _autowrap_check, _patch_wrapped_functions, compatibility, functools
_tracing = 0
_proxyable: set[type] = set()


def is_fx_tracing() -> bool:
    """Tell whether a program is being recorded."""
    return _tracing > 0


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction with proxies is recorded."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable.add(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls)
        if is_fx_tracing():
            proxy = find_proxy(args, kwargs)
            if proxy is not None:
                return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        made.__init__(*args, **kwargs)
        return made


class PHBase:
    """What stands in `concrete_args` for a value that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """Like PH; its attributes go to the node."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


class Tracer(TracerBase):
    """Records programs. Override `is_leaf_module`, `call_module`, `create_arg` and others to record otherwise.

    Differs from torch: functions record themselves while a trace runs, where they are found in modules, in attributes of
    layers and in dicts of both. One that only a closure, a default or a list holds needs an `import mortice.overrides` before.
    What `linalg` and `special` share with the root, such as `special.expm1`, is recorded by its name there.
    """

    _qualname_counter: ClassVar[dict[str, int]] = {}

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,), autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        found = [f for m in autowrap_modules for n, f in vars(m).items() if not n.startswith("_") and callable(f)]
        self._autowrapped = [*found, *autowrap_functions]
        self._autowrap_search, self._autowrap_function_ids = list(autowrap_modules), set(map(id, self._autowrapped))
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack, self.node_name_to_scope = {}, {}
        self.num_calls: dict[str, int] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        """Copy all but the modules that are searched, which cannot be copied."""
        memo.update((id(module), module) for module in self._autowrap_search)
        made = memo[id(self)] = object.__new__(type(self))
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    # ---- what may be overridden ----

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Tell whether the call of a module is one node: that of a layer, but not of a Sequential."""
        return type(m).__module__.startswith(("mortice.nn", "torch.nn")) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """Return the name of a module below the root."""
        paths = self.submodule_paths or {m: name for name, m in self.root.named_modules()}
        if mod not in paths:
            raise NameError("module is not installed as a submodule")
        return paths[mod]

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Record the call of a leaf, or run another module's forward."""
        path = self.path_of_module(m)
        before = self.scope
        self.scope = Scope(path, type(m))
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        key = f"{path}@{calls}" if calls else path
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.scope = before
            self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return what a module's attribute is in a trace: parameters are proxies, and with `proxy_buffer_attributes` buffers."""
        if isinstance(attr_val, nn.Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        name = next((n for n, p in named if p is attr_val), None)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            more: dict[str, Any] = {}
            if self.param_shapes_constant:
                more["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, attr_val)
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **more)
        return parameter_proxy_cache[name]

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name that the root has no attribute of."""
        at = 0
        while hasattr(self.root, f"{prefix}{at}"):
            at += 1
        return f"{prefix}{at}"

    def create_arg(self, a: Any) -> Any:
        """Return a value as an argument of a node; tensors become attributes of the root."""
        named: Any = ()
        if isinstance(a, nn.Parameter):
            named = self.root.named_parameters()
        elif isinstance(a, Tensor):
            named = self.root.named_buffers()
        elif isinstance(a, nn.Module):
            named = self.root.named_modules()
        for name, value in named:
            if value is a:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, nn.Parameter):
            raise NameError("parameter is not a member of this module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(v) for v in a), {})
        if isinstance(a, Tensor) or type(a) in _proxyable:
            name = self.tensor_attrs.get(id(a))
            if name is None:
                kind = "_tensor_constant" if isinstance(a, Tensor) else f"_{type(a).__name__}_constant_"
                name = self.tensor_attrs[id(a)] = self.get_fresh_qualname(kind)
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    # ---- recording ----

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:  # fmt: skip
        """Return the function to run, and proxies for its parameters."""
        fn = inspect.unwrap(root_fn)
        code, sig = fn.__code__, inspect.signature(fn)
        count = code.co_argcount + code.co_kwonlyargcount
        star, double = code.co_flags & inspect.CO_VARARGS, code.co_flags & inspect.CO_VARKEYWORDS
        args: list[Any] = [self.root] if is_module else []
        if is_module and not count:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        names = list(code.co_varnames[len(args) : count])
        if isinstance(concrete_args, tuple):
            if concrete_args and star and count == 1:
                return root_fn, args + [self.create_proxy("placeholder", f"input_{i}", (), {}) for i in range(len(concrete_args))]
            if len(names) != len(concrete_args):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments")
            concrete_args = dict(zip(names, concrete_args))
        names += [f"*{code.co_varnames[count]}"] if star else []
        names += [f"**{code.co_varnames[count + bool(star)]}"] if double else []
        args += [self._proxy_placeholder(name, concrete_args, sig, fn) for name in names]
        if code.co_kwonlyargcount or star or double:
            root_fn = _by_position(root_fn, len(args))
        return flattened(self.graph, root_fn, args, list(code.co_varnames[:count]))

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: inspect.Signature, fn: Any) -> Any:
        default: Any = ()
        if name[0] != "*" and sig.parameters[name].default is not inspect.Parameter.empty:
            default = (sig.parameters[name].default,)
        if not concrete_args or name not in concrete_args:
            kind = fn.__annotations__.get(name)
            if isinstance(kind, str) and fn.__module__.startswith("mortice."):
                kind = None
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def specialised(x: Any) -> Any:
            nonlocal count
            count += 1
            out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(x, PHBase):
                out.node.__dict__.update(vars(x))
                return out
            if isinstance(x, (bool, int, float, complex, str, mortice.dtype, mortice.device)):
                text = f"{name} has been specialized to have value {x} but got another value"
                self.create_proxy("call_function", mortice._assert, (out == x, text), {}, name="_assert")
            elif x is None:
                text = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (out, text), {})
            else:
                warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                    "user to make sure that your inputs match the inputs you specialized the function with."
                )
            return x

        return pytree.tree_map(specialised, concrete_args[name])

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Return the graph of a module or a function. Values in `concrete_args` are constants."""
        global _tracing
        is_module = isinstance(root, nn.Module)
        self.root = root if is_module else nn.Module()
        fn: Any = getattr(type(root), self.traced_func_name) if is_module else root
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"trace: expected a module or a function written in Python; got {type(root).__name__}.")
        if is_module:
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {
            id(v): f"{path}.{name}" if path else name
            for path, m in self.root.named_modules() for name, v in vars(m).items() if isinstance(v, Tensor)
        }  # fmt: skip
        before = nn.Module.__call__, nn.Module.__getattr__
        proxies: dict[str, Any] = {}

        def get(mod: nn.Module, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), proxies)

        def call(mod: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self.call_module(mod, lambda *args, **kwargs: _orig_module_call(mod, *args, **kwargs), args, kwargs)

        _tracing += 1
        try:
            run, args = self.create_args_for_root(fn, is_module, concrete_args)
            nn.Module.__call__, nn.Module.__getattr__ = call, get  # type: ignore[method-assign]
            with functions_recorded(self.root, self._autowrapped):
                result = self.create_arg(run(*args))
                returned = inspect.unwrap(fn).__annotations__.get("return")
                if isinstance(returned, str) and fn.__module__.startswith("mortice."):
                    returned = None
                self.create_node("output", "output", (result,), {}, type_expr=returned)
        finally:
            nn.Module.__call__, nn.Module.__getattr__ = before  # type: ignore[method-assign]
            _tracing -= 1
            self.submodule_paths = None
        return self.graph


def _by_position(fn: Any, count: int) -> Any:
    """Return a function that takes all its parameters by position, *args and **kwargs as one each."""
    code = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_flags=flags, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0)
    return FunctionType(code, fn.__globals__, fn.__name__, None, fn.__closure__)


def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """Record a module or a function and return a module that does the same by its graph."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
