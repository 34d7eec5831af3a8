"""Graphs: a program as a list of nodes, each a call whose arguments are nodes before it."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mortice import nn
from mortice.fx.codegen import CodeGen, Namespace, PythonCode
from mortice.fx.functions import address, find
from mortice.fx.node import OPS, Node, map_arg
from mortice.notice import warn

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _Nodes:
    """The nodes in order. While they are walked through, nodes may be removed, and put in after the present one."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Any]:
        return self._walk("_next")

    def __reversed__(self) -> Iterator[Any]:
        return self._walk("_prev")

    def _walk(self, step: str) -> Iterator[Any]:
        node = getattr(self.graph._root, step)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, step)


class _InsertPoint:
    """Where new nodes go, from now on or in a block."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before, graph._insert = graph, graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.before


class Graph:
    """A program: inputs (`placeholder`), calls, and one `output`."""

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._namespace = Namespace()
        self._codegen: Any = CodeGen()
        self.owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras

    @property
    def nodes(self) -> Any:
        """All nodes in order."""
        return _Nodes(self)

    def output_node(self) -> Node:
        """Return the node of the output."""
        return next(iter(self.find_nodes(op="output")))

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes of a kind and, for calls, of a target."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- new nodes ----

    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Add a node where nodes go at present: at the end, or where an inserting block says."""
        if not isinstance(args, (tuple, type(None))) or not isinstance(kwargs, (dict, type(None))):
            raise AssertionError("create_node: args must be a tuple and kwargs a dict")
        named = self._namespace.create_name(name if name is not None else self._target_to_str(target))
        node = Node(self, named, op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        return node

    def _target_to_str(self, target: Any) -> str:
        if callable(target):
            public = find(target)  # an alias goes by its own name
            name = address(*public).rpartition(".")[2] if public else target.__name__
        else:
            name = target
        if not callable(target) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Parameter.empty) -> Node:
        """Add an input."""
        args = () if default_value is inspect.Parameter.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def _warn_of_absent(self, op: str, target: str, more: str) -> None:
        if self.owning_module is None:
            return
        found = self.owning_module
        for part in target.split("."):
            found = getattr(found, part, None)
        if found is None:
            warn(
                f"Attempted to insert a {op} Node with no underlying reference in the owning GraphModule! Call "
                f"GraphModule.add_submodule to add the necessary submodule{more}"
            )

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the value of an attribute of the module: a parameter, a buffer."""
        self._warn_of_absent(
            "get_attr", qualified_name, ", GraphModule.add_parameter to add the necessary Parameter, or "
            "nn.Module.register_buffer to add the necessary buffer",
        )  # fmt: skip
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add the call of a submodule."""
        self._warn_of_absent("call_module", module_name, "")
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None, name: str | None = None
    ) -> Node:
        """Add the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the output."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node of another graph, with its arguments after `arg_transform`."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of another graph but its output; return the copy of what it gives."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        result = made.graph_copy(self, val_map := {}, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, old = result
            node = made.output(value, type_expr=getattr(old, "type", None))
            node.meta = copy.copy(old.meta)
        if memo is not None:
            memo.update({id(old): new for old, new in val_map.items()})
        return made

    # ---- changes ----

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes go before a node, in a block or from now on; before all without one."""
        return self.inserting_after(self._root) if n is None else _InsertPoint(self, self._of(n).prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Let each new node go right after a node, in a block or from now on; after all without one."""
        if n is None:
            return self.inserting_before(self._root)
        return _InsertPoint(self, self._of(n).append)

    def _of(self, n: Node) -> Node:
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return n

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody takes."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warn(f"erase_node({to_erase}) on an already erased node")
            return
        to_erase._unlink()
        to_erase._erased = True
        to_erase._update((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes that nobody takes and that do nothing else; tell whether there were any."""
        self.lint()
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not (is_impure_node or Node.is_impure)(node):
                self.erase_node(node)
        return len(self.nodes) < before

    def lint(self) -> None:
        """Check that nodes come after what they take, and that what they call is there.

        Raises:
            RuntimeError: for what is not so.
        """
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in OPS:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            for arg in node._input_nodes:
                context = f"Argument '{arg}' of Node '{node}' "
                if arg.graph is not self:
                    raise RuntimeError(
                        f"{context}does not belong to this Graph, but was used as an argument! If you are copying nodes from "
                        f"another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"{context}was used before it has been defined! Please check that Nodes in the graph are "
                        f"topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        found: Any = self.owning_module
        path = node.target.split(".")
        for at, part in enumerate(path):
            where = "self" if not at else f"self.{'.'.join(path[:at])}"
            if not hasattr(found, part):
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {where}")
            found = getattr(found, part)
        if node.op == "call_module" and not isinstance(found, nn.Module):
            raise RuntimeError(f"Node {node} target {node.target} {path[-1]} of {where} does not reference an nn.Module")

    # ---- as text ----

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let the graph be written by another writer."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Change the lines of the written function: `make_transformer` returns a function of them, given the one before."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the inputs, for the arguments of the function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return what the function returns, for the value of the output."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """Return the graph as the source of a function, in which `root_module` is the module's name."""
        namespace = Namespace()
        before = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in before:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose)  # type: ignore[no-any-return]
        finally:
            for node, shown in before:
                node._repr_fn = shown

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the package `tabulate`."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip "
                "install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))
