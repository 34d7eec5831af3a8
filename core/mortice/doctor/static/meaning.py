"""What expressions are, as far as the text tells: layers, losses, optimisers, loaders, tensors; and what a tensor was made by.

Everything here answers None when it is not sure.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from mortice.doctor.static.program import Binding, Function, Program

MODULES = ("layer", "sequential", "net", "model")
# Functions of the root namespace that make or change tensors, and methods that give a tensor of a tensor.
MAKERS = frozenset(
    "tensor as_tensor from_numpy zeros ones empty full eye arange linspace rand randn randint randperm normal zeros_like "
    "ones_like empty_like full_like rand_like randn_like cat stack hstack vstack where clamp matmul mm bmm addmm einsum exp "
    "log sqrt abs sum mean relu sigmoid tanh softmax log_softmax flatten reshape squeeze unsqueeze transpose permute".split()
)
ARRANGING = frozenset(
    "view reshape flatten unflatten squeeze unsqueeze transpose permute contiguous expand view_as reshape_as t float double "
    "half bfloat16 to cuda cpu clone type requires_grad_ squeeze_ unsqueeze_ swapaxes movedim".split()
)
PURE = ARRANGING | frozenset(
    "detach abs add sub mul div pow exp log sqrt clamp clip neg relu sigmoid tanh softmax log_softmax sum mean prod cumsum "
    "matmul mm bmm long int bool repeat masked_fill gather index_select permute roll flip argmax round floor ceil square "
    "masked_select expand_as type_as argsort logical_not eq ne lt gt le ge norm detach_ add_ mul_ sub_ div_ clamp_ fill_ "
    "zero_ normal_ uniform_".split()
)
KEEPS = frozenset("to cuda cpu float double half bfloat16 train eval requires_grad_ apply share_memory type".split())
WRAPPERS = ("torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel", "torch.compile", "copy.deepcopy",
            "torch.jit.script", "torch.nn.parallel.DataParallel")  # fmt: skip
ORIGINS = {
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Sigmoid": "sigmoid",
    "LogSigmoid": "logsigmoid",
    "ReLU": "relu",
}
FUNCTIONS = frozenset("softmax log_softmax sigmoid relu".split())
SHAPES = frozenset(("Flatten", "Unflatten", "Identity"))
RECURRENT = frozenset("RNN LSTM GRU LSTMCell MultiheadAttention RNNBase".split())


@dataclass(slots=True, eq=False)
class Thing:
    """What an expression is: `kind` is one of MODULES, or "loss", "optimizer", "scheduler", "loader", "dataset", "tensor".

    `name` is its class, `node` the call (or the class) that says so, and `items` are the layers of a Sequential.
    """

    kind: str
    name: str
    node: ast.AST
    items: list[Thing | None] | None = None

    def same(self, other: Thing) -> bool:
        """Tell whether both are the same; of tensors it is enough that both are."""
        return self.kind == other.kind and (self.kind == "tensor" or self.node is other.node)


@dataclass(slots=True)
class Origin:
    """The first real operation that a tensor comes from, and an active dropout that it met on the way."""

    op: str
    node: ast.AST
    dropout: ast.AST | None = None
    net: ast.ClassDef | None = None


_BUSY: Any = object()


class Meaning:
    """Answers about the expressions of one program; each is worked out once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._things: dict[ast.AST, Any] = {}
        self._origins: dict[ast.AST, Any] = {}
        self._calls: dict[str, list[ast.Call]] | None = None

    # ---- plain values ----

    def constant(self, node: ast.expr | None, depth: int = 0) -> Any:
        """Return the number, string or tuple that an expression always is; None where it is not known."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand, depth)
            return -value if isinstance(value, (int, float)) else None
        if isinstance(node, (ast.Tuple, ast.List)):
            values = [self.constant(e, depth) for e in node.elts]
            return None if None in values else tuple(values)
        if isinstance(node, ast.Name) and depth < 5:
            found = self.program.bindings(node)[1]
            if len(found) == 1 and found[0].how == "assign" and not found[0].path:
                return self.constant(found[0].value, depth + 1)
        return None

    def argument(self, call: ast.Call, place: int | None, name: str = "") -> ast.expr | None:
        """Return an argument of a call by its place or its name; None where it is not there, or hidden by a star."""
        for keyword in call.keywords:
            if keyword.arg == name and name:
                return keyword.value
        if (
            place is not None
            and place < len(call.args)
            and not any(isinstance(a, ast.Starred) for a in call.args[: place + 1])
        ):
            return call.args[place]
        return None

    @staticmethod
    def starred(call: ast.Call) -> bool:
        """Tell whether a call has arguments that cannot be read."""
        return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)

    # ---- classes ----

    def class_of(self, node: ast.expr) -> ast.ClassDef | None:
        """Return the class of this program that an expression names."""
        if isinstance(node, ast.Name):
            found = self.program.bindings(node)[1]
            if len(found) == 1 and isinstance(found[0].node, ast.ClassDef):
                return found[0].node
        return None

    def bases(self, owner: ast.ClassDef) -> list[ast.ClassDef]:
        """Return a class and those of its bases that are in this program."""
        found = [owner]
        for each in found:
            found += [b for b in map(self.class_of, each.bases) if b is not None and b not in found]
        return found

    def is_module(self, owner: ast.ClassDef | None) -> bool:
        """Tell whether a class is certainly a Module."""
        return owner is not None and any(
            self.program.qualified(b) in ("torch.nn.Module", "torch.nn.Sequential", "pytorch_lightning.LightningModule")
            for each in self.bases(owner)
            for b in each.bases
        )

    def method(self, owner: ast.ClassDef, name: str) -> Function | None:
        """Return a method of a class or its bases."""
        for each in self.bases(owner):
            for statement in each.body:
                if isinstance(statement, Function) and statement.name == name:
                    return statement
        return None

    def is_self(self, node: ast.expr) -> ast.ClassDef | None:
        """Return the class whose method calls this name self."""
        if not isinstance(node, ast.Name):
            return None
        function = self.program.function(node)
        while function is not None:
            owner = self.program.owner(function)
            if owner is not None:
                args = function.args.posonlyargs + function.args.args
                return owner if args and args[0].arg == node.id else None
            function = self.program.function(function)
        return None

    def attribute(self, owner: ast.ClassDef, name: str) -> Thing | None:
        """Return what an attribute of self always is."""
        for each in self.bases(owner):
            values = self.program.assigned(each, name)
            if values:
                return self._agreed([v if v is None else self.thing(v) for v, _ in values])
        return None

    # ---- things ----

    def thing(self, node: ast.expr | None) -> Thing | None:
        """Return what an expression is."""
        if node is None:
            return None
        found = self._things.get(node, self)
        if found is _BUSY:
            return None
        if found is self:
            self._things[node] = _BUSY
            try:
                found = self._thing(node)
            finally:
                self._things.pop(node)
            self._things[node] = found
        return found  # type: ignore[no-any-return]

    def kind(self, node: ast.expr | None) -> str:
        """Return the kind of a thing; empty where it is not known."""
        found = self.thing(node)
        return "" if found is None else found.kind

    def is_tensor(self, node: ast.expr | None) -> bool:
        """Tell whether an expression is certainly a tensor."""
        return self.kind(node) == "tensor"

    def _agreed(self, found: list[Thing | None]) -> Thing | None:
        first = found[0] if found else None
        if first is None or any(f is None or not first.same(f) for f in found):
            return None
        return first

    def _thing(self, node: ast.expr) -> Thing | None:
        if isinstance(node, ast.Call):
            return self._made(node)
        if isinstance(node, ast.Name):
            return self._named(node)
        if isinstance(node, ast.Attribute):
            owner = self.is_self(node.value)
            if owner is not None:
                return self.attribute(owner, node.attr)
            if node.attr in ("data", "grad", "T", "weight", "bias"):
                base = self.kind(node.value)
                own = node.attr in ("weight", "bias")
                if base == ("layer" if own else "tensor") and not (own and node.attr in self.program.stored):
                    return Thing("tensor", "", node)
        elif isinstance(node, ast.BinOp):
            if self.is_tensor(node.left) or self.is_tensor(node.right):
                return Thing("tensor", "", node)
        elif isinstance(node, ast.Subscript):
            whole = self.thing(node.value)
            if whole is not None and whole.kind == "tensor":
                return Thing("tensor", "", node)
            if whole is not None and whole.items and isinstance(i := self.constant(node.slice), int):
                return whole.items[i] if -len(whole.items) <= i < len(whole.items) else None
        return None

    def _named(self, node: ast.Name) -> Thing | None:
        binding = self.program.reaching(node)
        if binding is not None:
            return self._bound(binding, node)
        found = self.program.bindings(node)[1]
        things = [self._bound(b, node) for b in found if not self._wraps_itself(b, node.id)]
        return self._agreed(things)

    def _wraps_itself(self, binding: Binding, name: str) -> bool:
        """Tell whether a binding is like `model = model.to(device)`."""
        value = binding.value
        if binding.how != "assign" or binding.path or not isinstance(value, ast.Call):
            return False
        inner = value.func.value if isinstance(value.func, ast.Attribute) and value.func.attr in KEEPS else None
        if inner is None and self.program.qualified(value.func) in WRAPPERS and value.args:
            inner = value.args[0]
        return isinstance(inner, ast.Name) and inner.id == name

    def _bound(self, binding: Binding, name: ast.Name) -> Thing | None:
        if binding.how == "assign" and not binding.path:
            return self.thing(binding.value)
        if binding.how == "for" and binding.value is not None:
            return self._from_loader(binding)
        if isinstance(binding.node, ast.arg):
            return self._parameter(binding.node)
        return None

    def _from_loader(self, binding: Binding) -> Thing | None:
        """`images, labels` of `for images, labels in loader`, also through enumerate and tqdm, are tensors."""
        source, path = binding.value, binding.path
        while isinstance(source, ast.Call) and source.args:
            name = source.func.attr if isinstance(source.func, ast.Attribute) else getattr(source.func, "id", "")
            if name == "enumerate":
                if path[:1] != (1,):
                    return None
                path = path[1:]
            elif name not in ("tqdm", "trange", "track"):
                break
            source = source.args[0]
        if len(path) != 1 or source is None:
            return None
        label = source.id if isinstance(source, ast.Name) else getattr(source, "attr", "")
        if self.kind(source) == "loader" or label.lower().endswith(("loader", "dataloader")):
            return Thing("tensor", "", binding.node)
        return None

    def _parameter(self, node: ast.arg) -> Thing | None:
        function: Any = self.program.parent[self.program.parent[node]]
        if node.annotation is not None:
            named = self.program.qualified(node.annotation)
            if named in ("torch.Tensor", "torch.FloatTensor", "torch.LongTensor"):
                return Thing("tensor", "", node)
            return Thing("model", "Module", node) if named == "torch.nn.Module" else None
        if isinstance(function, ast.Lambda):
            return None
        owner = self.program.owner(function)
        if owner is not None:
            plain = node in function.args.args[1:2]
            return Thing("tensor", "", node) if plain and function.name == "forward" and self.is_module(owner) else None
        passed = [self._passed(call, function, node.arg) for call in self.calls(function)]
        return self._agreed([self.thing(p) for p in passed])

    def calls(self, function: Function) -> list[ast.Call]:
        """Return the calls in this program of a function of it, by its name."""
        if self._calls is None:
            self._calls = {}
            for call in self.program.nodes.get(ast.Call, ()):
                if isinstance(call.func, ast.Name):
                    self._calls.setdefault(call.func.id, []).append(call)
        found = []
        for call in self._calls.get(function.name, []):
            if any(b.node is function for b in self.program.bindings(call.func)[1]):  # type: ignore[arg-type]
                found.append(call)
        return found

    def _passed(self, call: ast.Call, function: Function, name: str) -> ast.expr | None:
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        return self.argument(call, names.index(name) if name in names else None, name)

    def _made(self, node: ast.Call) -> Thing | None:
        full = self.program.qualified(node.func)
        if full:
            found = self._library(node, full)
            if found is not None or full.startswith("torch."):
                return found
        owner = self.class_of(node.func)
        if owner is not None:
            return Thing("net", owner.name, owner) if self.is_module(owner) else None
        if isinstance(node.func, ast.Name):
            bound = self.program.bindings(node.func)[1]
            if len(bound) == 1 and isinstance(bound[0].node, Function):
                returned = self.returns(bound[0].node)
                return self.thing(returned[0]) if len(returned) == 1 else None
        if isinstance(node.func, ast.Attribute):
            base = self.thing(node.func.value)
            if base is not None and base.kind in (*MODULES, "loss") and node.func.attr in KEEPS:
                return base
            if base is not None and base.kind == "tensor" and node.func.attr in PURE:
                return Thing("tensor", "", node)
            if base is not None and base.kind != "sequential":
                return None
            if node.func.attr in ("unsqueeze", "contiguous", "permute"):
                return Thing("tensor", "", node)
        called = self.thing(node.func)
        if called is not None and (
            called.kind in ("loss", "sequential") or called.kind == "layer" and called.name not in RECURRENT
        ):
            return Thing("tensor", "", node)
        if called is not None and called.kind == "net":
            forward = self.method(called.node, "forward")  # type: ignore[arg-type]
            returned = [] if forward is None else self.returns(forward)
            if returned and all(self.is_tensor(r) for r in returned):
                return Thing("tensor", "", node)
        return None

    def _library(self, node: ast.Call, full: str) -> Thing | None:
        if full in WRAPPERS:
            return self.thing(node.args[0]) if node.args else None
        head, _, name = full.rpartition(".")
        if full == "torch.nn.Sequential":
            return Thing("sequential", name, node, self._items(node))
        if full in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable"):
            return Thing("tensor", name, node)
        if head == "torch.nn" and name[:1].isupper():
            return Thing("loss" if name.endswith("Loss") else "layer", name, node)
        if head == "torch.nn.functional" or (head == "torch" and name in MAKERS):
            return Thing("tensor", name, node)
        if full.startswith("torch.optim.lr_scheduler."):
            return Thing("scheduler", name, node)
        if full.startswith("torch.optim.") and name[:1].isupper():
            return Thing("optimizer", name, node)
        if full.startswith("torch.utils.data.") and name == "DataLoader":
            return Thing("loader", name, node)
        if full.startswith("torchvision.models.") or full == "torch.hub.load":
            return Thing("model", name, node)
        if full.startswith("torchvision.datasets."):
            return Thing("dataset", name, node)
        return None

    def _items(self, node: ast.Call) -> list[Thing | None] | None:
        values: list[ast.expr] = node.args
        if len(values) == 1 and isinstance(only := values[0], ast.Call):
            if self.program.qualified(only.func) == "collections.OrderedDict" and only.args:
                pairs = only.args[0]
                if not isinstance(pairs, ast.List) or not all(
                    isinstance(p, ast.Tuple) and len(p.elts) == 2 for p in pairs.elts
                ):
                    return None
                values = [p.elts[1] for p in pairs.elts]  # type: ignore[attr-defined]
        if not values or node.keywords or any(isinstance(v, ast.Starred) for v in values):
            return None
        return [self.thing(v) for v in values]

    @staticmethod
    def returns(function: Function) -> list[ast.expr | None]:
        """Return what a function gives back, in the order of its returns; those of functions in it are not its own."""
        found: list[ast.expr | None] = []
        waiting: list[ast.AST] = list(function.body)
        for at in waiting:
            if isinstance(at, ast.Return):
                found.append(at.value)
            elif not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
                waiting.extend(ast.iter_child_nodes(at))
        return found

    # ---- what a tensor was made by ----

    def origin(self, node: ast.expr | None) -> Origin | None:
        """Return the operation that a tensor comes from, past what only rearranges; None where it is not certain."""
        if node is None:
            return None
        found = self._origins.get(node, self)
        if found is self:
            self._origins[node] = None
            found = self._origins[node] = self._origin(node)
        return found  # type: ignore[no-any-return]

    def _origin(self, node: ast.expr) -> Origin | None:
        if isinstance(node, ast.Name):
            binding = self.program.reaching(node)
            if binding is None or self.program.bindings(node)[0] is not self.program.scope(node):
                return None
            if binding.how == "assign":
                return self._part(binding.value, binding.path)
            if isinstance(binding.node, ast.arg) and self.program.owner(self.program.function(node)) is None:
                function: Any = self.program.function(node)
                passed = [self._passed(c, function, node.id) for c in self.calls(function)] if function else []
                return self._same([self.origin(p) for p in passed])
        elif isinstance(node, ast.Subscript):
            return self.origin(node.value)
        elif isinstance(node, ast.Call):
            return self._called(node)
        return None

    def _part(self, value: ast.expr | None, path: tuple[int, ...]) -> Origin | None:
        """Follow `logits, probabilities = net(x)` into what the net returns."""
        if not path:
            return self.origin(value)
        thing = self.thing(value.func) if isinstance(value, ast.Call) else None
        forward = self.method(thing.node, "forward") if thing is not None and thing.kind == "net" else None  # type: ignore[arg-type]
        returned = [] if forward is None else self.returns(forward)
        if (
            len(path) == 1
            and len(returned) == 1
            and isinstance(returned[0], ast.Tuple)
            and path[0] < len(returned[0].elts)
        ):
            return self.origin(returned[0].elts[path[0]])
        return None

    @staticmethod
    def _same(found: list[Origin | None]) -> Origin | None:
        first = found[0] if found else None
        if first is None or any(f is None or f.op != first.op or bool(f.dropout) != bool(first.dropout) for f in found):
            return None
        return first

    def _called(self, node: ast.Call) -> Origin | None:
        full = self.program.qualified(node.func)
        head, _, name = full.rpartition(".")
        first = self.argument(node, 0, "input")
        if head in ("torch", "torch.nn.functional", "torch.special"):
            if name in FUNCTIONS:
                return Origin(name, node)
            if name.endswith("dropout") and head == "torch.nn.functional":
                if (
                    self.constant(self.argument(node, 2, "training")) is False
                    or self.constant(self.argument(node, 1, "p")) == 0
                ):
                    return self.origin(first)
                return self._dropped(self.origin(first) or Origin("", node), node)
            return self.origin(first) if name in ARRANGING else Origin("other", node)
        if full in WRAPPERS or full.startswith("torch"):
            return None
        called = self.thing(node.func)
        if called is not None and called.kind in MODULES:
            return self._through(called, node, first)
        if isinstance(node.func, ast.Attribute) and self.kind(node.func.value) not in MODULES:
            if node.func.attr in FUNCTIONS:
                return Origin(node.func.attr, node)
            if node.func.attr in ARRANGING:
                return self.origin(node.func.value)
        return None

    @staticmethod
    def _dropped(found: Origin | None, node: ast.AST) -> Origin | None:
        return None if found is None else Origin(found.op, found.node, node, found.net)

    def _through(self, module: Thing, call: ast.AST, before: ast.expr | None) -> Origin | None:
        """Return what a module's output comes from: `before` is its input."""
        if module.kind == "layer":
            if module.name in ORIGINS:
                return Origin(ORIGINS[module.name], module.node)
            if module.name in SHAPES:
                return self.origin(before)
            if module.name.startswith("Dropout"):
                if self.constant(self.argument(module.node, 0, "p")) == 0:  # type: ignore[arg-type]
                    return self.origin(before)
                return self._dropped(self.origin(before) or Origin("", call), module.node)
            return Origin("other", module.node)
        if module.kind == "sequential":
            dropout: ast.AST | None = None
            for item in reversed(module.items or [None]):
                if item is None:
                    return Origin("", call, dropout) if dropout is not None else None
                if item.kind == "layer" and item.name in SHAPES:
                    continue
                if item.kind == "layer" and item.name.startswith("Dropout"):
                    if self.constant(self.argument(item.node, 0, "p")) != 0:  # type: ignore[arg-type]
                        dropout = item.node
                    continue
                found = self._through(item, call, None)
                return found if dropout is None else self._dropped(found or Origin("", call), dropout)
            return None
        if module.kind == "net":
            owner: Any = module.node
            forward = self.method(owner, "forward")
            found = self._same([self.origin(r) for r in self.returns(forward)]) if forward is not None else None
            return found and Origin(found.op, found.node, found.dropout, owner)
        return None
