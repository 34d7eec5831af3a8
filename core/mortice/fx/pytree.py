"""Programs whose inputs hold PH in lists and dicts: they take those, and their graphs take the values within."""

from __future__ import annotations

from collections import defaultdict, deque, namedtuple
from typing import Any

from mortice.fx.codegen import CodeGen
from mortice.utils import _pytree as pytree


def tree_flatten_spec(tree: Any, spec: Any) -> list[Any]:
    """Return the values that a tree holds in the places of a form: those of a dict by its keys, those of a proxy one by one."""
    if spec.is_leaf():
        return [tree]
    kind, keys = spec.type, spec.context
    if kind is namedtuple or issubclass(kind, (list, tuple, deque)):
        parts = [tree[i] for i in range(spec.num_children)]
    elif issubclass(kind, dict):
        parts = [tree[key] for key in (keys[1] if kind is defaultdict else keys)]
    else:
        parts = list(pytree.SUPPORTED_NODES[kind].flatten_fn(tree)[0])
    return [value for part, form in zip(parts, spec.children_specs) for value in tree_flatten_spec(part, form)]


class PyTreeCodeGen(CodeGen):
    """Writes functions that take and return trees."""

    def __init__(self, orig_args: list[str], in_spec: Any) -> None:
        super().__init__()
        self.orig_args, self.in_spec, self.out_spec = orig_args, in_spec, None

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.tree_flatten(inputs)[0]

    def process_outputs(self, out: Any) -> Any:
        values = out if isinstance(out, (list, tuple)) else [out]
        return out if self.out_spec is None else pytree.tree_unflatten(values, self.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        if self.orig_args[:1] == ["self"]:
            free_vars.insert(0, "self")
        head = super().gen_fn_def(self.orig_args[:], maybe_return_annotation)
        if not free_vars:
            return head
        kinds = "".join(f"{v}; " for v in free_vars if ":" in v)
        names = ", ".join(v.split(":")[0] for v in free_vars)
        given = f"[{', '.join(self.orig_args)}], self._in_spec"
        annotated = f"\n    {kinds}\n" if kinds else ""
        return f"{head}{annotated}\n    {names}, = fx_pytree.tree_flatten_spec({given})"

    def generate_output(self, output_args: Any) -> str:
        if self.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args}, self._out_spec)"


def flattened(graph: Any, fn: Any, args: list[Any], names: list[str]) -> Any:
    """Return the function and its arguments; where these hold others, a function of all values within."""
    flat, spec = pytree.tree_flatten(tuple(args))
    if len(flat) == len(args) and all(a is b for a, b in zip(flat, args)):
        return fn, args
    graph._codegen = PyTreeCodeGen(names, spec)

    def run(*values: Any) -> Any:
        out, graph._codegen.out_spec = pytree.tree_flatten(fn(*pytree.tree_unflatten(list(values), spec)))
        return out

    return run, flat
