"""Running a graph node by node, and making a new graph of it node by node."""

from __future__ import annotations

from typing import Any

from mortice import nn
from mortice.fx.graph import Graph
from mortice.fx.graph_module import GraphModule
from mortice.fx.node import Node, map_aggregate, map_arg
from mortice.fx.patching import functions_recorded
from mortice.fx.proxy import Proxy, Scope, TracerBase


class Interpreter:
    """Runs the graph of a module. Override `run_node` or the method of a kind of node to do something else there."""

    def __init__(self, module: nn.Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module, self.submodules = module, dict(module.named_modules())
        self.graph: Any = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes) if garbage_collect_values else ():
            self.user_to_last_uses[node] = [n for n in node.all_input_nodes if n not in seen]
            seen.update(node.all_input_nodes)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph and return its output; values in `initial_env` are not computed."""
        self.env = initial_env if initial_env is not None else {}
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    text = f"While executing {node.format_node()}"
                    text = f"{error.args[0]}\n\n{text}" if error.args else text
                    error.args = (text + (f"\nOriginal traceback:\n{node.stack_trace}" if node.stack_trace else ""), *error.args[1:])
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            for old in self.user_to_last_uses.get(node, ()):
                del self.env[old]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def run_node(self, n: Node) -> Any:
        """Return the value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the next argument, or the default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a method."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the value of the output."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return what the module has at a dotted name."""
        found: Any = self.module
        path = target.split(".")
        for at, part in enumerate(path):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[: at + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """Return the values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return what holds the values of the nodes in `args`."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues")
            return self.env[node]

        return map_arg(args, value)


# What a Transformer's new nodes have of the meta of those that they stand for.
_KEPT = ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "from_node", "custom")


class _Making(TracerBase):
    """Adds nodes to the graph that a Transformer makes."""

    def __init__(self, graph: Graph, base: Any) -> None:
        self.graph, self.tensor_attrs, self.base = graph, {}, base
        self.scope, self.module_stack, self.node_name_to_scope = Scope("", None), {}, {}
        self.old: Node | None = None  # in whose place the new nodes are

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        """Add a node that was called from where the old one was."""
        node = super().create_node(*args, **kwargs)
        if self.old is not None:
            node.meta.update({name: self.old.meta[name] for name in _KEPT if name in self.old.meta})
        return node

    def is_leaf_module(self, m: Any, name: str) -> bool:
        """Tell that all modules are kept."""
        return True


class Transformer(Interpreter):
    """Makes a new graph of a module's: the methods get proxies, and what they return takes the place of the node."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _Making(self.new_graph, module)

    def run_node(self, n: Node) -> Any:
        self.tracer.old = n
        return super().run_node(n)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        default = args[0] if args else None
        return Proxy(self.new_graph.create_node("placeholder", target, (default,) if args else ()), self.tracer)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the module of the new graph."""
        with functions_recorded(self.module):
            result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_proxies(result))
        return GraphModule(self.module, self.new_graph)


def map_proxies(value: Any) -> Any:
    """Return what holds the nodes of the proxies in `value`."""
    return map_aggregate(value, lambda v: v.node if isinstance(v, Proxy) else v)
