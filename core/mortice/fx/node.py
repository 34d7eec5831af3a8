"""Nodes: one value of a graph each, and the call that makes it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import mortice
from mortice.fx.functions import path_of, shown, type_name
from mortice.fx.immutable_collections import immutable_dict, immutable_list

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")
Argument = Target = Any
base_types = (str, int, float, bool, complex, mortice.dtype, mortice.Tensor, mortice.device, mortice.memory_format, mortice.layout)
_effects: set[Any] = {operator.setitem, mortice._assert}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the calls of a function in graphs whose dead code is removed. Also a decorator."""
    _effects.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return what holds the values of `a`, after `fn`; its lists and dicts refuse to change."""
    if isinstance(a, tuple):
        made = [map_aggregate(v, fn) for v in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list(map_aggregate(v, fn) for v in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(v, fn) for v in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return what holds the values of `a`, with each node after `fn`."""
    return map_aggregate(a, lambda v: fn(v) if isinstance(v, Node) else v)


def _written(arg: Any) -> str:
    if isinstance(arg, list):
        return f"[{', '.join(map(_written, arg))}]"
    if isinstance(arg, tuple):
        return f"({', '.join(map(_written, arg))}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_written(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else shown(arg, str)


@functools.total_ordering
class Node:
    """A value: `op` is the kind of call, `target` what is called, `args` and `kwargs` its arguments, `users` who takes it."""

    def __init__(
        self, graph: Any, name: str, op: str, target: Any, args: Any, kwargs: Any, return_type: Any = None
    ) -> None:  # fmt: skip
        if op not in OPS:
            raise AssertionError(f"op {op!r} is not in {OPS}")
        if callable(target) != (op == "call_function"):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {mortice.typename(target)} but a "
                f"{'Callable' if op == 'call_function' else 'str'} is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._prev = self._next = self
        self._erased = False
        self._update(args, kwargs)

    # ---- place in the graph ----

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Put a node of this graph right before this one."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Put a node of this graph right after this one."""
        if x is not self:
            self._next.prepend(x)

    def __lt__(self, other: Node) -> bool:
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    # ---- arguments ----

    def _update(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def taken(node: Node) -> Node:
            self._input_nodes[node] = node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), taken), map_arg(dict(kwargs), taken)

    @property
    def args(self) -> Any:
        """The arguments by position."""
        return self._args

    @args.setter
    def args(self, a: Any) -> None:
        self._update(a, self._kwargs)

    @property
    def kwargs(self) -> Any:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: Any) -> None:
        self._update(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace an argument by position."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put an argument before the one at `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace an argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take one node in place of another."""
        self._update(*map_arg((self._args, self._kwargs), lambda n: new_input if n is old_input else n))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True, *, propagate_meta: bool = False
    ) -> list[Node]:  # fmt: skip
        """Let the users of this node take another one; return those that did."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        users = [user for user in list(self.users) if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def is_impure(self, impure_random: bool = True) -> bool:
        """Tell whether the node does more than make a value: inputs, the output, and calls that change or check something."""
        if self.op == "call_module":
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        if self.op == "call_function":
            draws = impure_random and self.target in (mortice.rand, mortice.randn, mortice.randint, mortice.randperm)
            return self.target in _effects or draws
        return self.op in ("placeholder", "output")

    # ---- printing ----

    @property
    def stack_trace(self) -> str | None:
        """Where the program made the call, if the tracer noted it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._namespace.create_name(candidate)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        known = {"builtins": "builtins", "_operator": "operator"}.get(getattr(target, "__module__", None) or "")
        return f"{known}.{target.__name__}" if known else path_of(target)

    def format_node(self, *_: Any, **options: Any) -> str:
        """Return the node as a line of the printed graph."""
        kind = f"{type_name(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            return f"{head}[target={self.target}]" + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "output":
            return f"return {self.args[0]}"
        head = f"{head}[target={self._pretty_print_target(self.target)}]"
        return head if self.op == "get_attr" else f"{head}(args = {_written(self.args)}, kwargs = {_written(self.kwargs)})"
