"""A program as the static rules read it: its tree walked once, with scopes, bindings and what imports stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# What a name most likely stands for where a program, such as a cell of a notebook, does not say where it is from.
USUAL = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional"}
# mortice's places under the names that PyTorch's have.
ROOTS = (("mortice.vision", "torchvision"), ("mortice", "torch"))

How = Literal["assign", "augment", "parameter", "for", "with", "import", "function", "class", "other"]


@dataclass(slots=True, eq=False)
class Binding:
    """A place that gives a name its value: `path` is where in `value` it is found, such as (1,) for `y` in `x, y = value`."""

    how: How
    node: ast.AST
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    stands_for: str = ""


@dataclass(slots=True, eq=False)
class Scope:
    """The names of a module, a class, a function or a comprehension."""

    node: ast.AST
    outer: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)  # global and nonlocal names


class Program:
    """A parsed program.

    Attributes:
        nodes: every node by its type, in the order of the text.
        parent: the node around each node.
        displayed: expression statements whose value is shown: the last ones of a notebook's cells.
        uses: the roots of what is imported, such as "torch".
    """

    def __init__(self, tree: ast.Module, displayed: frozenset[ast.stmt] = frozenset()) -> None:
        self.tree, self.displayed = tree, displayed
        self.nodes: dict[type[ast.AST], list[Any]] = {}
        self.parent: dict[ast.AST, ast.AST] = {}
        self.uses: set[str] = set()
        self.attributes: set[str] = set()  # every name after a dot, in the whole program
        self._scopes: dict[ast.AST, Scope] = {}
        self.stored: set[str] = set()  # those that are assigned to
        self._scope_of: dict[ast.AST, Scope] = {}
        self._classes: dict[ast.AST, dict[str, list[tuple[ast.expr | None, Function]]]] = {}
        self._starred: list[str] = []
        self.module = Scope(tree, None)
        self._scopes[tree] = self.module
        self._walk(tree, self.module)

    # ---- the one walk ----

    def _walk(self, node: ast.AST, scope: Scope) -> None:
        self.nodes.setdefault(type(node), []).append(node)
        method = _BINDERS.get(type(node))
        if method is not None:
            method(self, node, scope)
            scope = self._scopes.get(node, scope)
        elif type(node) is ast.Attribute:
            self.attributes.add(node.attr)
            if type(node.ctx) is ast.Store:
                self.stored.add(node.attr)
        elif type(node) is ast.Name:
            self._scope_of[node] = scope
        parent = self.parent
        for name in node._fields:
            child = getattr(node, name, None)
            if isinstance(child, ast.AST):
                parent[child] = node
                if child._fields:
                    self._walk(child, scope)
            elif isinstance(child, list):
                for each in child:
                    if isinstance(each, ast.AST):
                        parent[each] = node
                        self._walk(each, scope)

    def _bind(self, scope: Scope, name: str, binding: Binding) -> None:
        at: Scope | None = scope
        if name in scope.elsewhere:
            at = self.module
        at.bindings.setdefault(name, []).append(binding)  # type: ignore[union-attr]

    def _target(
        self,
        scope: Scope,
        target: ast.expr,
        how: How,
        node: ast.AST,
        value: ast.expr | None,
        path: tuple[int, ...] = (),
    ) -> None:
        if isinstance(target, ast.Name):
            self._bind(scope, target.id, Binding(how, node, value, path))
        elif isinstance(target, (ast.Tuple, ast.List)):
            same = value.elts if not path and how == "assign" and isinstance(value, (ast.Tuple, ast.List)) else []
            whole = len(same) == len(target.elts) and not any(isinstance(e, ast.Starred) for e in (*same, *target.elts))
            for i, each in enumerate(target.elts):
                if whole:
                    self._target(scope, each, how, node, same[i])
                else:
                    self._target(scope, each, how, node, value, (*path, i))
        elif isinstance(target, ast.Starred):
            self._target(scope, target.value, "other", node, None)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            function = self._function(scope)
            if function is not None and function.args.args and target.value.id == function.args.args[0].arg:
                owner = self.parent.get(function)
                if isinstance(owner, ast.ClassDef):
                    found = value if how == "assign" and not path else None
                    self._classes.setdefault(owner, {}).setdefault(target.attr, []).append((found, function))

    def _function(self, scope: Scope) -> Function | None:
        at: Scope | None = scope
        while at is not None and isinstance(at.node, (ast.Lambda, *COMPREHENSIONS)):
            at = at.outer
        return at.node if at is not None and isinstance(at.node, Function) else None

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self._target(scope, target, "assign", node, node.value)

    def _assign_one(self, node: ast.AnnAssign | ast.NamedExpr, scope: Scope) -> None:
        if node.value is not None:
            while isinstance(node, ast.NamedExpr) and isinstance(scope.node, COMPREHENSIONS) and scope.outer:
                scope = scope.outer
            self._target(scope, node.target, "assign", node, node.value)

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        self._target(scope, node.target, "augment", node, None)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        self._target(scope, node.target, "for", node, node.iter)

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._target(scope, item.optional_vars, "with", node, item.context_expr)

    def _except(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            self._bind(scope, node.name, Binding("other", node))

    def _delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            self._target(scope, target, "other", node, None)

    def _elsewhere(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        scope.elsewhere.update(node.names)

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            self.uses.add(alias.name.partition(".")[0])
            name = alias.asname or alias.name.partition(".")[0]
            self._bind(
                scope, name, Binding("import", node, stands_for=_torch_name(alias.name if alias.asname else name))
            )

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        source = "." * node.level + (node.module or "")
        self.uses.add(source.partition(".")[0])
        for alias in node.names:
            if alias.name == "*":
                self._starred.append(_torch_name(source))
            else:
                found = _torch_name(f"{source}.{alias.name}")
                self._bind(scope, alias.asname or alias.name, Binding("import", node, stands_for=found))

    def _define(self, node: Function, scope: Scope) -> None:
        self._bind(scope, node.name, Binding("function", node))
        self._parameters(node, scope)

    def _parameters(self, node: Function | ast.Lambda, scope: Scope) -> None:
        inner = self._scopes[node] = Scope(node, scope)
        a = node.args
        for each in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))):
            inner.bindings[each.arg] = [Binding("parameter", each)]

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        self._bind(scope, node.name, Binding("class", node))
        self._scopes[node] = Scope(node, scope)

    def _comprehension(self, node: ast.ListComp, scope: Scope) -> None:
        inner = self._scopes[node] = Scope(node, scope)
        for each in node.generators:
            self._target(inner, each.target, "for", each, each.iter)

    # ---- where things are ----

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        at = self.parent.get(node)
        while at is not None:
            yield at
            at = self.parent.get(at)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node is in."""
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    def function(self, node: ast.AST) -> Function | None:
        """Return the function whose body a node is in."""
        return next((n for n in self.up(node) if isinstance(n, Function)), None)

    def owner(self, function: ast.AST | None) -> ast.ClassDef | None:
        """Return the class whose method a function is."""
        around = self.parent.get(function) if function is not None else None
        return around if isinstance(around, ast.ClassDef) else None

    def loops(self, node: ast.AST) -> Iterator[Loop]:
        """Yield the loops in the same function whose bodies run a node again and again, innermost first."""
        inner = node
        for around in self.up(node):
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                return
            once = isinstance(around, Loop) and (inner in around.orelse or inner is getattr(around, "iter", None))
            if isinstance(around, Loop) and not once:
                yield around
            inner = around

    def imported(self) -> set[str]:
        """Return what all imports name, in full."""
        return {b.stands_for for found in self.module.bindings.values() for b in found if b.how == "import"}

    def expected(self, node: ast.AST) -> bool:
        """Tell whether a mistake is made on purpose: where a test expects an error or a warning."""
        for around in self.up(node):
            if isinstance(around, (ast.With, ast.AsyncWith)):
                for item in around.items:
                    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
                    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                    if "raises" in name.lower() or "warn" in name.lower():
                        return True
        return False

    def scope(self, node: ast.AST) -> Scope:
        """Return the scope in which a node's names are looked up."""
        found = self._scope_of.get(node)
        if found is None:
            found = next((self._scopes[n] for n in self.up(node) if n in self._scopes), self.module)
        return found

    def assigned(self, owner: ast.ClassDef, name: str) -> list[tuple[ast.expr | None, Function]]:
        """Return what methods of a class assign to an attribute of self; None for what is no plain value."""
        return self._classes.get(owner, {}).get(name, [])

    def members(self, owner: ast.ClassDef) -> dict[str, list[tuple[ast.expr | None, Function]]]:
        """Return all attributes that methods of a class assign to self."""
        return self._classes.get(owner, {})

    # ---- what names stand for ----

    def bindings(self, name: ast.Name) -> tuple[Scope | None, list[Binding]]:
        """Return the scope that a name is of, and every place there that gives it a value."""
        first = at = self.scope(name)
        while at is not None:
            found = at.bindings.get(name.id)
            if found and name.id not in at.elsewhere and (at is first or not isinstance(at.node, ast.ClassDef)):
                return at, found
            at = at.outer  # type: ignore[assignment]
        return None, []

    def reaching(self, name: ast.Name) -> Binding | None:
        """Return the one place that gave a name the value it has here; None where several may have, or none is seen."""
        scope, found = self.bindings(name)
        if scope is None:
            return None
        if len(found) == 1:
            return found[0]
        if scope is not self.scope(name):
            return None
        blocks, use = self._blocks(name), self.statement(name)
        nearest: Binding | None = None
        for binding in reversed(found):
            if not self._before(binding, name):
                continue
            block = self._block(binding.node, binding.how)
            if block in blocks:
                nearest = binding
                break
            if not self._apart(block, blocks):
                return None
        if nearest is None:
            return None
        for loop in self.loops(use):  # what a later part of a loop's body assigns is what the next round begins with
            if not any(n is loop for n in self.up(nearest.node)) and nearest.node is not loop:
                if any(b is not nearest and any(n is loop for n in self.up(b.node)) for b in found):
                    return None
        return nearest

    def _before(self, binding: Binding, use: ast.AST) -> bool:
        inner: ast.AST = use
        for around in self.up(use):
            if around is binding.node:
                if binding.how == "for":
                    return inner in getattr(around, "body", ()) or not isinstance(around, Loop)
                return binding.how == "with" and inner in getattr(around, "body", ())
            inner = around
        at, here = binding.node, self.statement(use)
        if isinstance(at, ast.arg):
            return True
        return (at.lineno, at.col_offset) < (here.lineno, here.col_offset)  # type: ignore[attr-defined]

    def _block(self, node: ast.AST, how: How) -> tuple[ast.AST, str]:
        """Return which list of statements decides whether a binding is run: a `with` runs its body always."""
        if how == "parameter":
            return self.parent[self.parent[node]], "body"
        if how == "for" and isinstance(node, Loop):
            return node, "body"
        at: ast.AST = node if isinstance(node, ast.stmt) else self.statement(node)
        return next(self._chain(at))

    def _chain(self, at: ast.AST) -> Iterator[tuple[ast.AST, str]]:
        while at in self.parent:
            around = self.parent[at]
            if isinstance(around, ast.ExceptHandler):
                yield around, "body"
            elif isinstance(around, (ast.With, ast.AsyncWith)):
                pass
            elif isinstance(at, ast.stmt):
                which = next(f for f in around._fields if isinstance(v := getattr(around, f), list) and at in v)
                if not (isinstance(around, ast.Try) and which in ("body", "finalbody")):
                    yield around, which
            at = around

    def _blocks(self, node: ast.AST) -> set[tuple[ast.AST, str]]:
        return set(self._chain(self.statement(node)))

    @staticmethod
    def _apart(block: tuple[ast.AST, str], blocks: set[tuple[ast.AST, str]]) -> bool:
        """Tell whether a block is the other branch of an `if` that the blocks are in."""
        node, which = block
        return isinstance(node, ast.If) and (node, "orelse" if which == "body" else "body") in blocks

    def qualified(self, node: ast.expr | None) -> str:
        """Return what an expression names, under PyTorch's names: "torch.nn.Linear"; empty where it names nothing known."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        found = self.bindings(node)[1]
        if found:
            if any(b.how != "import" for b in found):
                return ""
            root = found[0].stands_for
        else:
            root = self._guess(node.id, bool(parts))
        return ".".join((root, *reversed(parts))) if root else ""

    def _guess(self, name: str, dotted: bool) -> str:
        if dotted:
            return USUAL.get(name, "") if self._starred or name == "torch" else ""
        for source in self._starred:
            if source in ("torch.nn", "torch.optim") and name[:1].isupper():
                return f"{source}.{name}"
            if source.endswith("transforms"):
                return f"torchvision.transforms.{name}"
        return ""


_BINDERS: dict[type[ast.AST], Any] = {
    ast.Assign: Program._assign,
    ast.AnnAssign: Program._assign_one,
    ast.NamedExpr: Program._assign_one,
    ast.AugAssign: Program._augment,
    ast.For: Program._for,
    ast.AsyncFor: Program._for,
    ast.With: Program._with,
    ast.AsyncWith: Program._with,
    ast.ExceptHandler: Program._except,
    ast.Delete: Program._delete,
    ast.Global: Program._elsewhere,
    ast.Nonlocal: Program._elsewhere,
    ast.Import: Program._import,
    ast.ImportFrom: Program._import_from,
    ast.FunctionDef: Program._define,
    ast.AsyncFunctionDef: Program._define,
    ast.Lambda: Program._parameters,
    ast.ClassDef: Program._class,
    ast.ListComp: Program._comprehension,
    ast.SetComp: Program._comprehension,
    ast.DictComp: Program._comprehension,
    ast.GeneratorExp: Program._comprehension,
}


def _torch_name(name: str) -> str:
    for ours, theirs in ROOTS:
        if name == ours or name.startswith(ours + "."):
            return theirs + name[len(ours) :]
    return name
