"""Training and evaluation loops: gradients, modes, and loaders that begin anew."""

from __future__ import annotations

import ast

from mortice.doctor.static.losses import loss_of
from mortice.doctor.static.meaning import MODULES, Thing
from mortice.doctor.static.program import Function
from mortice.doctor.static.rule import StaticRule, register, text

OPTIMIZERS = frozenset("optimizer optim optimiser opt".split())


def method_calls(rule: StaticRule, name: str) -> list[ast.Call]:
    """Return every `something.name(...)`."""
    calls = rule.program.nodes.get(ast.Call, ())
    return [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == name]


def under_no_grad(rule: StaticRule, node: ast.AST) -> ast.AST | None:
    """Return the `with`, or the decorated function, that switches gradients off for a node."""

    def off(switch: ast.expr) -> bool:
        called = switch.func if isinstance(switch, ast.Call) else switch
        return rule.program.qualified(called) in ("torch.no_grad", "torch.inference_mode")

    region: ast.AST | None = None
    for around in rule.program.up(node):
        if isinstance(around, ast.With) and any(off(i.context_expr) for i in around.items):
            region = around
        elif isinstance(around, Function):
            return around if any(off(d) for d in around.decorator_list) else region
    return region


@register
class GradientsNotCleared(StaticRule):
    """A training loop in a program that clears no gradient anywhere."""

    id = "D03"
    title = "zero_grad forgotten"
    why = "Gradients add up: every step goes along the sum of all gradients so far."
    remedy = "Call zero_grad() at the beginning of each iteration."

    def finish(self) -> None:
        names = self.program.attributes
        if "backward" not in names or "step" not in names or any("zero_grad" in n for n in names) or self._clears():
            return
        backwards = [c for c in method_calls(self, "backward") if not self.program.qualified(c.func)]
        for step in method_calls(self, "step"):
            receiver = step.func.value  # type: ignore[attr-defined]
            if self._is_optimizer(receiver) and any(self._together(b, step) for b in backwards):
                name = text(receiver)
                self.report(
                    step,
                    f"The loop calls backward() and {name}.step(), and nothing in this file clears the gradients between the steps.",
                    remedy=f"Call {name}.zero_grad() at the beginning of each iteration.",
                )

    def _is_optimizer(self, node: ast.expr) -> bool:
        made = self.meaning.thing(node)
        if made is not None:
            return made.kind == "optimizer"
        if not isinstance(node, ast.Name) or node.id not in OPTIMIZERS:
            return False
        return all(isinstance(b.node, ast.arg) for b in self.program.bindings(node)[1])

    def _together(self, backward: ast.Call, step: ast.Call) -> bool:
        """Tell whether both run again and again: in one loop, or in one function that is called in a loop."""
        loops = list(self.program.loops(step))
        if any(loop in loops for loop in self.program.loops(backward)):
            return True
        function = self.program.function(step)
        if function is None or self.program.function(backward) is not function or loops:
            return False
        if any(
            isinstance(n, ast.Name) and n.id == "optimizer" and isinstance(n.ctx, ast.Store) for n in ast.walk(function)
        ):
            return False
        return any(next(self.program.loops(call), None) is not None for call in self.meaning.calls(function))

    def _clears(self) -> bool:
        """Tell whether any gradient is set, changed in place, or asked for by autograd.grad."""
        for node in self.program.nodes.get(ast.Attribute, ()):
            if node.attr in ("grad", "main_grad"):
                around = self.program.parent.get(node)
                if not isinstance(node.ctx, ast.Load):
                    return True
                while isinstance(around, ast.Attribute):
                    if around.attr.endswith("_") or around.attr == "data":
                        return True
                    around = self.program.parent.get(around)
        for node in self.program.nodes.get(ast.Call, ()):
            if isinstance(node.func, ast.Name) and node.func.id == "setattr":
                return True
        return False


@register
class NeverEval(StaticRule):
    """An evaluation without eval() of a model that trains in the same program."""

    id = "D02"
    title = "train()/eval() not switched"
    why = "Dropout stays on and BatchNorm keeps learning: predictions are random, and evaluation changes the model."
    remedy = "Call eval() before evaluation and train() after it."

    def finish(self) -> None:
        if "backward" not in self.program.attributes or "step" not in self.program.attributes or self._switches():
            return
        trained = self._trained()
        said: set[ast.AST] = set()
        for call in self.program.nodes.get(ast.Call, ()):
            model = self.meaning.thing(call.func)
            if model is None or model.node in said or not any(model.same(t) for t in trained):
                continue
            layers = self._sensitive(model)
            if layers and self._evaluates(call):
                said.add(model.node)
                name = text(call.func)
                self.report(
                    call,
                    f"{name} is evaluated under no_grad in training mode: its {' and '.join(layers)} stay active, and nothing in this "
                    "file calls eval().",
                    remedy=f"Call {name}.eval() before evaluation and {name}.train() after it.",
                )

    def _switches(self) -> bool:
        if any("eval" in name.lower() and name != "evaluate" for name in self.program.attributes):
            return True
        return any(c.args or c.keywords for c in method_calls(self, "train")) or "training" in {
            n.attr for n in self.program.nodes.get(ast.Attribute, ()) if isinstance(n.ctx, ast.Store)
        }

    def _trained(self) -> list[Thing]:
        """Return the models whose parameters an optimiser gets."""
        found = []
        for call in self.program.nodes.get(ast.Call, ()):
            if self.meaning.kind(call) == "optimizer":
                first = self.meaning.argument(call, 0, "params")
                if (
                    isinstance(first, ast.Call)
                    and isinstance(first.func, ast.Attribute)
                    and first.func.attr == "parameters"
                ):
                    made = self.meaning.thing(first.func.value)
                    if made is not None and made.kind in ("net", "sequential"):
                        found.append(made)
        return found

    def _sensitive(self, model: Thing) -> list[str]:
        """Return the kinds of layers in a model that behave differently in training."""
        found = set()
        waiting: list[ast.AST] = [model.node]
        for at in waiting:
            for node in ast.walk(at):
                made = self.meaning.thing(node) if isinstance(node, ast.Call) else None
                if made is None:
                    continue
                if made.kind == "layer" and made.name.startswith("Dropout"):
                    if self.meaning.constant(self.meaning.argument(made.node, 0, "p")) != 0:  # type: ignore[arg-type]
                        found.add("Dropout")
                elif made.kind == "layer" and "BatchNorm" in made.name:
                    found.add("BatchNorm")
                elif made.kind in ("net", "sequential") and made.node not in waiting:
                    waiting.append(made.node)
        return sorted(found)

    def _evaluates(self, call: ast.Call) -> bool:
        """Tell whether a call is under no_grad, in a loop over data, and its output is counted or given to a loss."""
        region = under_no_grad(self, call)
        if region is None or not any(
            isinstance(loop, ast.For) and not self._counts(loop) for loop in self.program.loops(call)
        ):
            return False
        inside = [n for n in ast.walk(region) if isinstance(n, ast.Call)]
        if any(
            isinstance(c.func, ast.Attribute) and c.func.attr in ("backward", "step", "stack", "std", "var")
            for c in inside
        ):
            return False  # trains in it, or draws many answers of dropout
        if any(
            self.meaning.kind(c.func) in MODULES and any(a is call for a in ast.walk(c)) and c is not call
            for c in inside
        ):
            return False
        counts = any(
            isinstance(c.func, ast.Attribute) and c.func.attr in ("argmax", "max", "topk", "eq") for c in inside
        )
        return counts or any(loss_of(self.meaning, c) is not None for c in inside)

    @staticmethod
    def _counts(loop: ast.For) -> bool:
        """Tell whether a loop only counts: `for _ in range(n)`."""
        return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


@register
class FirstBatchOnly(StaticRule):
    """A pass over a loader that is begun for one batch, again and again."""

    id = "D34"
    level = "info"
    title = "next(iter(loader)) in a loop"
    why = "Each call begins a new pass over the data and uses its first batch: workers start anew, and without shuffling it is " \
          "always the same batch."  # fmt: skip
    remedy = "Keep one iterator: it = iter(loader) before the loop, next(it) in it."

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id == "next" and len(node.args) == 1):
            return
        inner = node.args[0]
        if not (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Name)
            and inner.func.id == "iter"
            and len(inner.args) == 1
        ):
            return
        loader = inner.args[0]
        made = self.meaning.thing(loader)
        label = loader.id if isinstance(loader, ast.Name) else getattr(loader, "attr", "")
        if made is None and not label.lower().endswith("loader") or made is not None and made.kind != "loader":
            return
        loops = list(self.program.loops(node))
        if (
            not loops
            or self._left(node, loops[0])
            or any(isinstance(n, ast.ExceptHandler) for n in self.program.up(node))
        ):
            return
        if isinstance(loader, ast.Name) and any(
            n in loops for b in self.program.bindings(loader)[1] for n in (b.node, *self.program.up(b.node))
        ):
            return
        if not isinstance(loader, (ast.Name, ast.Attribute)):
            return
        if not self._trained_on(node, loops[0]):
            return
        level, more = None, "."
        if made is not None:
            call: ast.Call = made.node  # type: ignore[assignment]
            shuffle, workers = self.meaning.argument(call, 2, "shuffle"), self.meaning.argument(call, 5, "num_workers")
            plain = not self.meaning.starred(call) and not any(
                k.arg in ("sampler", "batch_sampler") for k in call.keywords
            )
            if plain and (shuffle is None or self.meaning.constant(shuffle) is False):
                level, more = "warning", ": always the same one."
            elif (self.meaning.constant(workers) or 0) > 0:
                level, more = "warning", f", restarting {self.meaning.constant(workers)} workers each time."
        self.report(
            node,
            f"next(iter({text(loader)})) in a loop starts a new pass each time and uses one batch of it{more}",
            level=level,
        )

    def _trained_on(self, node: ast.Call, loop: ast.AST) -> bool:
        """Tell whether the loop trains on the batch: it calls backward, and reads the batch where gradients are recorded."""
        if not any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(loop)):
            return False
        statement = self.program.statement(node)
        if not isinstance(statement, ast.Assign) or any(isinstance(t, ast.Attribute) for t in statement.targets):
            return not under_no_grad(self, node)
        for name in ast.walk(loop):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
                binding = self.program.reaching(name)
                if binding is not None and binding.node is statement and not under_no_grad(self, name):
                    return True
        return False

    @staticmethod
    def _left(node: ast.Call, loop: ast.AST) -> bool:
        """Tell whether the loop is left in its first round."""
        return any(isinstance(s, (ast.Break, ast.Return)) for s in loop.body)  # type: ignore[attr-defined]
