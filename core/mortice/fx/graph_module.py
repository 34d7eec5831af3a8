"""GraphModule: a module whose forward is generated from a graph."""

from __future__ import annotations

import copy
import inspect
import itertools
import linecache
from collections.abc import Callable
from typing import Any

from mortice import Tensor, fx, nn
from mortice.fx.codegen import BUILTINS, PythonCode
from mortice.fx.graph import Graph

_numbers = itertools.count()


def _forward(src: str, names: dict[str, Any], function: str) -> Callable[..., Any]:
    """Return the function of a source, whose lines tracebacks show."""
    file = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[file] = (len(src), None, src.splitlines(keepends=True), file)
    names = {**names, "__name__": "mortice.fx.generated"}
    exec(compile(src, file, "exec"), names)
    return names[function]  # type: ignore[no-any-return]


def _imports(names: dict[str, Any]) -> str:
    """Return the statements that bring what a source names."""
    lines = []
    for name, value in names.items():
        if name in BUILTINS:
            lines.append(BUILTINS[name][1])
        elif inspect.ismodule(value):
            lines.append(f"import {value.__name__} as {name}")
        elif isinstance(value, str):  # an annotation that was not evaluated
            lines.append(f"{name} = {value!r}")
        elif value.__module__ != "builtins":
            lines.append(f"from {value.__module__} import {value.__qualname__} as {name}")
    return "\n".join(lines)


class _Attributes(nn.Module):
    """What a graph module holds, without a graph."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(attributes)


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """Return the graph module that was pickled: its source is recorded again."""
    names: dict[str, Any] = {}
    exec(import_block, names)
    src, cls = body.pop("_saved")
    attributes = _Attributes(body)
    type(attributes).forward = _forward(src, names, "forward")  # type: ignore[method-assign]

    class KeepModules(fx.Tracer):  # type: ignore[name-defined,misc]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    graph = KeepModules().trace(attributes)
    graph._tracer_cls = fx.Tracer
    made = cls(attributes, graph)
    _keep(made, body)
    return made


def _keep(made: Any, attributes: dict[str, Any]) -> None:
    """Give a module the attributes that it lacks."""
    for table in ("_parameters", "_buffers", "_modules"):
        own = made.__dict__[table]
        made.__dict__[table] = {name: own.get(name, value) for name, value in attributes[table].items()}
    for name, value in attributes.items():
        made.__dict__.setdefault(name, value)


def _put(root: Any, target: str, value: Any, like: Any = None) -> None:
    """Give a module a value at a dotted name, with modules on the way there; those of `like` lend their places."""
    *path, name = target.split(".")
    for part in path:
        there = getattr(root, part, None)
        if there is None:
            there = nn.Module()
            setattr(root, part, there)
        if like is not None:
            like = getattr(like, part)
            if like is there:
                return  # what holds it is there already
        root = there
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        root.register_buffer(name, value)
    else:
        setattr(root, name, value)


class GraphModule(nn.Module):
    """A module with a `graph`, and the `code` and `forward` made of it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance of a class of its own, which will have a forward of its own."""
        base: Any = next(c for c in cls.__mro__ if "_of_graph" not in vars(c))

        class GraphModuleImpl(base):  # libraries look for this name where they replace a forward
            _of_graph = True

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            self.training = root.training
            for target in targets:
                value: Any = root
                for part in target.split("."):
                    value = getattr(value, part)
                _put(self, target, value, root)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for target in sorted(set(targets), key=lambda t: (t.count("."), t)):
                _put(self, target, root[target])
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.meta: dict[str, Any] = dict(getattr(root, "meta", None) or {})
        self.graph = graph

    # ---- graph and code ----

    @property
    def graph(self) -> Graph:
        """The graph; what is assigned takes its place, and forward is made anew. After changes within call `recompile`."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of forward."""
        return self._code

    def recompile(self) -> PythonCode:
        """Make forward of the graph as it is now."""
        codegen = self._graph._codegen
        if hasattr(codegen, "in_spec"):
            self._in_spec, self._out_spec = codegen.in_spec, codegen.out_spec
        made = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = made.src
        type(self).forward = _forward(made.src, made.globals, codegen._func_name)  # type: ignore[method-assign]
        return made

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Print the source, and those of the graph modules below; return it."""
        src = self._graph.python_code(root_module="self", verbose=True).src.lstrip("\n")
        below = [m.print_readable(print_output=False) for m in self.children() if isinstance(m, GraphModule)]
        text = _indented(f"class {type(self).__name__}(torch.nn.Module):\n{src}") + _indented("\n".join(["", *below]))
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self._code}\n{reminder}"

    # ---- submodules ----

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Add a module at a dotted name, with empty ones on the way; tell whether that could be."""
        root: Any = self
        *path, name = target.split(".")
        for part in path:
            if not hasattr(root, part):
                setattr(root, part, nn.Module())
            root = getattr(root, part)
            if not isinstance(root, nn.Module):
                return False
        root.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a dotted name; tell whether there was one."""
        path, _, name = target.rpartition(".")
        try:
            parent: Any = self.get_submodule(path)
        except AttributeError:
            return False
        if not isinstance(getattr(parent, name, None), nn.Module):
            return False
        delattr(parent, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph neither calls nor takes anything of."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                used.update(f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies ----

    def _state(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}

    def __reduce__(self) -> Any:
        made = self._graph.python_code(root_module="self")
        base = next(c for c in type(self).__mro__ if "_of_graph" not in vars(c))
        return reduce_graph_module, ({**self._state(), "_saved": (made.src, base)}, _imports(made.globals))

    def __deepcopy__(self, memo: Any) -> Any:
        made = memo[id(self)] = type(self).__new__(type(self))  # first, as what it holds may lead back to it
        attributes = _Attributes(copy.deepcopy(self._state(), memo))
        GraphModule.__init__(made, attributes, copy.deepcopy(self._graph, memo))
        _keep(made, vars(attributes))
        return made

    def __copy__(self) -> Any:
        made = type(self).__new__(type(self))
        GraphModule.__init__(made, self, self._graph)
        self._graph.owning_module = self
        return made

    def _replicate_for_data_parallel(self) -> Any:
        made = copy.copy(self)  # an instance made without __init__ would have no forward
        made.__dict__["_is_replica"] = True
        return made


def _indented(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in rest)])
