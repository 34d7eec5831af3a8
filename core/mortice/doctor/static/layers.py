"""The order of layers: biases that a BatchNorm takes away, and two linear maps in a row."""

from __future__ import annotations

import ast

from mortice.doctor.static.meaning import Thing
from mortice.doctor.static.program import Function
from mortice.doctor.static.rule import StaticRule, register, text

LINEAR = frozenset(
    "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyLinear LazyConv1d LazyConv2d LazyConv3d".split()
)
# Where `bias` is among the arguments.
BIAS = {"Linear": 2, "Conv1d": 7, "Conv2d": 7, "Conv3d": 7, "LazyLinear": 1}


def is_norm(thing: Thing | None) -> bool:
    """Tell whether a layer takes the mean of each channel away."""
    return thing is not None and thing.kind == "layer" and "BatchNorm" in thing.name


def is_linear(thing: Thing | None) -> bool:
    """Tell whether a layer is a linear map with weights."""
    return thing is not None and thing.kind == "layer" and thing.name in LINEAR


@register
class BiasBeforeBatchNorm(StaticRule):
    """A layer with a bias whose output goes straight into a BatchNorm."""

    id = "D05"
    level = "info"
    title = "Bias before BatchNorm; no bias in the output layer"
    why = "BatchNorm subtracts the mean of each channel, and the bias with it: it has no effect and costs memory and time."
    remedy = "Use bias=False."

    def finish(self) -> None:
        if self._frozen():
            return
        seen: set[ast.AST] = set()
        for node in self.program.nodes.get(ast.ClassDef, ()):
            if self.meaning.is_module(node):
                self._class(node, seen)
        for node in self.program.nodes.get(ast.Call, ()):
            made = self.meaning.thing(node)
            if made is not None and made.kind == "sequential" and made.node is node and made.items:
                pairs = zip(made.items, made.items[1:], strict=False)
                found = [
                    (a.node, a.name, b.name) for a, b in pairs if a and b and self._pair(a, b) and a.node not in seen
                ]
                self._say(found, seen)

    def _frozen(self) -> bool:
        """Tell whether parts of a model are set to eval by themselves: a frozen BatchNorm takes no mean of a batch away."""
        for call in self.program.nodes.get(ast.Call, ()):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "eval":
                of = call.func.value
                if isinstance(of, ast.Subscript) or is_norm(self.meaning.thing(of)):
                    return True
                if isinstance(of, ast.Name) and any(b.how == "for" for b in self.program.bindings(of)[1]):
                    return True
        return False

    def _pair(self, first: Thing | None, second: Thing | None) -> bool:
        if first is None or second is None or not is_linear(first) or not is_norm(second):
            return False
        call: ast.Call = first.node  # type: ignore[assignment]
        if self.meaning.starred(call):
            return False
        bias = self.meaning.argument(call, BIAS.get(first.name), "bias")
        return bias is None or (isinstance(bias, ast.Constant) and bias.value is True)

    def _class(self, owner: ast.ClassDef, seen: set[ast.AST]) -> None:
        """Follow `self.bn(self.conv(x))`, and `x = self.conv(x)` before `x = self.bn(x)`."""
        found = []
        for function in owner.body:
            if not isinstance(function, Function) or function.name == "__init__":
                continue
            for call in ast.walk(function):
                if not isinstance(call, ast.Call) or len(call.args) != 1 or not is_norm(self._own(call.func)):
                    continue
                given: ast.expr | None = call.args[0]
                if isinstance(given, ast.Name):
                    given = self._only_used_by(given)
                if isinstance(given, ast.Call) and self._pair(
                    first := self._own(given.func), second := self._own(call.func)
                ):
                    if first is not None and second is not None and first.node not in seen:
                        found.append((first.node, text(given.func), text(call.func)))
        self._say(found, seen)

    def _only_used_by(self, name: ast.Name) -> ast.expr | None:
        """Return what a name stands for, if it is read nowhere else."""
        binding = self.program.reaching(name)
        if binding is None or binding.how != "assign" or binding.path:
            return None
        around = self.program.function(name)
        for other in ast.walk(around) if around is not None else ():
            if (
                isinstance(other, ast.Name)
                and other.id == name.id
                and other is not name
                and isinstance(other.ctx, ast.Load)
            ):
                if self.program.reaching(other) in (binding, None):
                    return None
        return binding.value

    def _own(self, node: ast.expr) -> Thing | None:
        return self.meaning.thing(node) if isinstance(node, ast.Attribute) else None

    def _say(self, found: list[tuple[ast.AST, str, str]], seen: set[ast.AST]) -> None:
        found = [f for i, f in enumerate(found) if f[0] not in seen and all(f[0] is not g[0] for g in found[:i])]
        if not found:
            return
        found.sort(key=lambda f: (f[0].lineno, f[0].col_offset))  # type: ignore[attr-defined]
        seen.update(node for node, _, _ in found)
        node, first, second = found[0]
        more = f" So it is with {len(found) - 1} more." if len(found) > 1 else ""
        self.report(
            node,
            f"The bias of {first} has no effect: {second} subtracts the mean right after it.{more}",
            pairs=len(found),
        )


@register
class BatchNormOrder(StaticRule):
    """A BatchNorm between two linear maps."""

    id = "D13"
    level = "info"
    style = True
    title = "BatchNorm not before an activation"
    why = "Without an activation between them two linear maps can do no more than one."
    remedy = "The usual order is conv - BatchNorm - activation."

    def visit_Call(self, node: ast.Call) -> None:
        made = self.meaning.thing(node)
        if made is None or made.kind != "sequential" or made.node is not node or not made.items:
            return
        for before, norm, after in zip(made.items, made.items[1:], made.items[2:], strict=False):
            if (
                is_linear(before)
                and is_norm(norm)
                and is_linear(after)
                and not (self._grouped(before) or self._grouped(after))
            ):
                assert norm is not None and after is not None
                self.report(norm.node, f"{norm.name} feeds {after.name} directly: two linear maps in a row.")

    def _grouped(self, thing: Thing | None) -> bool:
        """Tell whether a convolution is a part of a separable one."""
        return thing is not None and any(k.arg in ("groups", None) for k in thing.node.keywords)  # type: ignore[attr-defined]
