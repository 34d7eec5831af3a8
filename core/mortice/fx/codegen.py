"""A graph written as the Python function that it is."""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import re
import types
import typing
from collections.abc import Callable
from importlib import import_module
from typing import Any

import mortice
from mortice.fx.functions import path_of, shown, told, type_name
from mortice.fx.node import Node

reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}",
    "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
    "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}",
    "neg": "-{}", "invert": "~{}", **reflectable_magic_methods,
}  # fmt: skip
inplace_methods = {
    **{f"i{name}": f"{{}} {sign}= {{}}" for name, sign in (
        ("add", "+"), ("and", "&"), ("floordiv", "//"), ("lshift", "<<"), ("mod", "%"), ("mul", "*"), ("matmul", "@"),
        ("or", "|"), ("pow", "**"), ("rshift", ">>"), ("sub", "-"), ("truediv", "/"), ("xor", "^"),
    )},
    "setitem": "{}[{}] = {}",
}  # fmt: skip


# What generated code may name without an import: the name, the value, and the statement that brings it elsewhere.
BUILTINS: dict[str, tuple[Any, str]] = {
    "inf": (math.inf, "from math import inf"), "nan": (math.nan, "from math import nan"),
    "NoneType": (type(None), "NoneType = type(None)"), "torch": (mortice, "import mortice as torch"),
    "device": (mortice.device, "from mortice import device"),
    "fx_pytree": (None, "import mortice.fx.pytree as fx_pytree"), "pytree": (None, "import mortice.utils._pytree as pytree"),
}  # fmt: skip
_TAKEN = {**dict.fromkeys(keyword.kwlist, ...), **vars(builtins)}
_TAKEN.update((name, value) for name, (value, _) in BUILTINS.items() if value is not None)


class Namespace:
    """Names that are given once each."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """Return a name like the candidate that nothing else has; the one of `obj` if it has one."""
        if obj is not None and obj in self.names:
            return self.names[obj]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        base, digits = re.fullmatch(r"(\w+?)(?:_(\d+))?", candidate).groups()  # type: ignore[union-attr]
        if digits is None or candidate in self.used:
            count = self.counts.get(base, 0)
            if _TAKEN.get(candidate, obj) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(digits)
        while candidate in self.used:
            count += 1
            candidate = f"{base}_{count}"
        self.used.add(candidate)
        self.counts[base] = count
        if obj is not None:
            self.names[obj] = candidate
        return candidate


class PythonCode(typing.NamedTuple):
    """The source of the function, and what it finds among its globals."""

    src: str
    globals: dict[str, Any]


def _module(statement: str) -> Any:
    return import_module(statement.split()[1])


def _attribute(base: str, path: str) -> str:
    for part in path.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class CodeGen:
    """Writes a graph as a function. A class of one's own may write the head and the return otherwise."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """Return the line that ends the function."""
        return f"return {output_args}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the inputs of the graph for the arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return what the function returns for the output of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return names and values that the function needs besides."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, verbose: bool = False) -> PythonCode:
        return _Writer(self, nodes, root_module, namespace, verbose).write()


class _Writer:
    """One graph while it is written."""

    def __init__(self, codegen: CodeGen, nodes: Any, root: str, namespace: Namespace, verbose: bool) -> None:
        self.codegen, self.nodes, self.root, self.namespace, self.verbose = codegen, nodes, root, namespace, verbose
        self.globals: dict[str, Any] = {}
        self.free: list[str] = []
        self.body: list[str] = []
        self.returns = ""
        self.wrapped: dict[str, None] = {}
        for name, (value, statement) in BUILTINS.items():
            self.add_global(name, _module(statement) if value is None else value, known=True)

    def add_global(self, hint: str, value: Any, known: bool = False) -> str:
        """Return the name of a function or a type; those of this package are found below `torch`."""
        if not known and hint.startswith("torch."):
            return hint
        name = self.namespace.create_name(hint, value)
        self.globals[name] = value
        return name

    def kind(self, o: Any) -> str:
        """Return a type as an annotation."""
        if o == ():
            return "()"
        if isinstance(o, types.UnionType):
            return "|".join(map(self.kind, typing.get_args(o)))
        origin = getattr(o, "__origin__", None)
        if origin is None:
            return self.add_global(type_name(o), o)
        name = self.add_global(type_name(origin), origin)
        args = typing.get_args(o)
        return f"{name}[{','.join(map(self.kind, args))}]" if args else name

    def value(self, arg: Any) -> str:
        """Return an argument as it is written."""
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            cls = type(arg)
            return self.add_global(f"{told(cls.__module__)}.{cls.__name__}", cls) + repr(tuple(arg))
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.value, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        return shown(arg)

    def call(self, function: str, args: Any, kwargs: Any) -> str:
        """Return a call."""
        return f"{function}({', '.join([*map(self.value, args), *(f'{k} = {self.value(v)}' for k, v in kwargs.items())])})"

    def statement(self, node: Node, kind: str) -> str:
        """Return what a node does, as a statement."""
        start, args = f"{node!r}{kind} = ", node.args
        if node.op == "call_method":
            return start + self.call(_attribute(self.value(args[0]), node.target), args[1:], node.kwargs)
        if node.op == "call_module":
            return start + self.call(_attribute(self.root, node.target), args, node.kwargs)
        if node.op == "get_attr":
            return start + _attribute(self.root, node.target)
        if getattr(node.target, "__module__", "") == "_operator":
            name = node.target.__name__
            if name in magic_methods:
                return start + magic_methods[name].format(*map(self.value, args))
            if name in inplace_methods:
                return f"{inplace_methods[name].format(*map(self.value, args))};  {start}{self.value(args[0])}"
        path = path_of(node.target)
        name = self.add_global(path, node.target)
        if name == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return start + _attribute(self.value(args[0]), args[1])
        if node.meta.get("is_wrapped"):
            self.wrapped[name] = None
        return start + self.call(name, args, node.kwargs)

    def emit(self, node: Node, freed: list[Node]) -> None:
        """Write a node; `freed` are those whose values nobody takes afterwards."""
        kind = "" if node.type is None else f" : {self.kind(node.type)}"
        meta = node.meta.get("tensor_meta") if self.verbose else None
        if hasattr(meta, "shape"):
            kind = f': "{_short(meta.dtype)}[{", ".join(map(str, meta.shape))}]"'
        if node.op == "placeholder":
            self.free.append(f"{node.target}{kind}" + (f" = {self.value(node.args[0])}" if node.args else ""))
            if node.target.replace("*", "") != repr(node):
                self.body.append(f"{node!r} = {node.target.replace('*', '')}\n")
        elif node.op == "output":
            self.returns = f" -> {self.kind(node.type)}" if node.type is not None else ""
            self.body.append(f"{self.codegen.generate_output(_Raw(self.value(node.args[0])))}\n")
        else:
            ended = f";  {' = '.join([*map(repr, freed), 'None'])}" if freed else ""
            self.body.append(f"{self.statement(node, kind)}{ended}\n")

    def write(self) -> PythonCode:
        """Return the function."""
        seen: set[Node] = set()
        freed: dict[Node, list[Node]] = {}
        for node in reversed(self.nodes):
            freed[node] = [n for n in node._input_nodes if n not in seen] + ([] if node.users else [node])
            seen.update(node._input_nodes)
        before = None
        for node in self.nodes:
            comment = f"\n# {_place(node.stack_trace)}\n"
            if self.verbose and node.op not in ("placeholder", "output") and comment != before:
                self.body.append(comment)
                before = comment
            self.emit(node, freed[node])
        wraps = ""
        if self.wrapped:
            wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        body = self.body or ["pass\n"]
        if self.codegen._body_transformer:
            body = self.codegen._body_transformer(body)
        for name, value in self.codegen.additional_globals():
            self.add_global(name, value)
        head = self.codegen.gen_fn_def(self.free, self.returns)
        lines = "".join(body).lstrip("\n").split("\n")
        return PythonCode(f"\n{wraps}\n\n{head}\n" + "\n".join(f"    {line}" for line in lines), self.globals)


class _Raw(str):
    """Text that is its own repr, as what is returned is handed to `generate_output`."""

    def __repr__(self) -> str:
        return str(self)


def _short(dtype: Any) -> str:
    name = dtype.name.replace("_", "").replace("float", "f").replace("complex", "c")
    return "b8" if name == "bool" else name.replace("uint", "u").replace("int", "i")


def _place(trace: str | None) -> str:
    """Return the innermost line of a stack trace, as a comment."""
    lines = (trace or "").strip().split("\n")
    for at in range(len(lines) - 2, -1, -1):
        found = re.match(r'^File "(.+)", line (\d+), in (.+)$', lines[at].strip())
        if found:
            return f"File: {found[1]}:{found[2]} in {found[3]}, code: {lines[at + 1].strip()}"
    return "No stacktrace found for following nodes"
