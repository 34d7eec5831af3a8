"""Attributes and methods that do not do what they look like: misspelt, not called, called past the hooks, or for nothing."""

from __future__ import annotations

import ast

from mortice.doctor.spelling import distance
from mortice.doctor.static.meaning import MODULES
from mortice.doctor.static.program import Function
from mortice.doctor.static.rule import StaticRule, register, text

# Of a settings object such as argparse's anything may be set.
SETTINGS = frozenset("self cls args opt opts cfg config conf hparams params settings options".split())
UNCALLED = frozenset("backward step zero_grad eval train zero_ detach_".split())
# Methods that Module has as well, where they work in place; and those that only tensors (and arrays) have.
SHARED = frozenset("to cuda cpu float double half bfloat16".split())
TENSORS_OWN = frozenset("permute squeeze unsqueeze contiguous".split())
TENSORS = TENSORS_OWN | frozenset(
    "detach clone view reshape transpose expand flatten clamp clip add sub mul div long int bool requires_grad type masked_fill "
    "relu sigmoid tanh softmax log_softmax abs neg sqrt exp log pow round".split()
)
# Those that compute something are called for nothing in measurements; in a forward they are there for their result.
COMPUTING = frozenset("relu sigmoid tanh softmax log_softmax abs neg sqrt exp log pow round".split())
IN_PLACE = frozenset(
    "clamp clip add sub mul div masked_fill relu sigmoid tanh abs neg sqrt exp log pow round squeeze unsqueeze transpose "
    "detach".split()
)


def near(name: str, wanted: str, most: int = 2) -> bool:
    """Tell whether a name is probably a misspelling."""
    if name == wanted or name.startswith("_") or abs(len(name) - len(wanted)) > most:
        return False
    return distance(name, wanted) <= most


@register
class MisspeltAttribute(StaticRule):
    """An attribute that nobody reads, a method that is not called, or an attribute that is called."""

    id = "D23"
    title = "Misspelt attribute"
    why = "Python lets any attribute be set and any method be named without a call: nothing happens, and nobody complains."
    remedy = "Write the name as it is, with parentheses for a method and without for an attribute."

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store):
            self._set(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if not isinstance(value, ast.Attribute) or value.attr not in UNCALLED or node in self.program.displayed:
            return
        if self.program.qualified(value):
            return
        name = text(value)
        self.report(value, f"`{name}` only names the method and does not call it.", remedy=f"Write {name}().")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        value = node.value
        if isinstance(value, ast.Attribute) and value.attr == "size" and self.meaning.is_tensor(value.value):
            name, index = text(value), text(node.slice)
            self.report(
                node,
                f"`{name}` is a method and cannot be indexed.",
                remedy=f"Write {name}({index}) or {text(value.value)}.shape[{index}].",
            )

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr == "shape" and self.meaning.is_tensor(called.value):
            name = text(called.value)
            self.report(node, f"`{name}.shape` is no method.", remedy=f"Write {name}.shape or {name}.size().")
        full = self.program.qualified(called)
        if full.startswith("torch.") and full.count(".") <= 2:
            for keyword in node.keywords:
                if keyword.arg and near(keyword.arg, "requires_grad"):
                    self.report(
                        keyword.value,
                        f"{text(called)} knows no argument {keyword.arg!r}; did you mean 'requires_grad'?",
                        remedy="Write requires_grad.",
                    )

    def _set(self, node: ast.Attribute) -> None:
        name, meaning = node.attr, self.meaning
        wanted = ""
        if (near(name, "requires_grad") or name == "requires_gradient") and not self._own(node):
            wanted = "requires_grad"
        elif (near(name, "grad", 1) or near(name, "data", 1)) and meaning.is_tensor(node.value):
            wanted = "grad" if near(name, "grad", 1) else "data"
        elif near(name, "training") and meaning.kind(node.value) in MODULES and not self._own(node):
            wanted = "training"
        if wanted:
            kind = "Module" if wanted == "training" else "Tensor"
            self.report(
                node,
                f"Setting unknown attribute {name!r} on a {kind} has no effect; did you mean {wanted!r}?",
                remedy=f"Write {text(node.value)}.{wanted}.",
                name=name,
            )
        elif name in ("train", "eval") and meaning.kind(node.value) in MODULES:
            whole = text(node)
            self.report(node, f"`{whole} = ...` replaces the method and switches nothing.", remedy=f"Write {whole}().")

    def _own(self, node: ast.Attribute) -> bool:
        """Tell whether an attribute is one that the program's own classes or settings have."""
        if isinstance(node.value, ast.Name) and node.value.id in SETTINGS:
            return True
        for each in self.program.nodes.get(ast.ClassDef, ()):
            if node.attr in self.program.members(each):
                return True
            for s in each.body:
                if isinstance(s, (ast.FunctionDef, ast.ClassDef)) and s.name == node.attr:
                    return True
                targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []
                if any(isinstance(t, ast.Name) and t.id == node.attr for t in targets):
                    return True
        return False


@register
class ForwardCalled(StaticRule):
    """`net.forward(x)` where `net(x)` is meant."""

    id = "D38"
    title = "module.forward(x) called directly"
    why = "Hooks run only when the module itself is called: those of spectral_norm, of profilers and of the doctor do not run."
    remedy = "Call the module: net(x)."

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if not isinstance(called, ast.Attribute) or called.attr != "forward":
            return
        receiver = called.value
        owner = self.meaning.is_self(receiver)
        function = self.program.function(node)
        if owner is not None:
            if (
                not self.meaning.is_module(owner)
                or function is None
                or function.name in ("__init__", "forward", "__call__")
            ):
                return
        elif self.meaning.kind(receiver) not in MODULES or self._wrapper(function):
            return
        name = text(receiver)
        hooked = "remove" not in self.program.attributes and any(
            "hook" in a or a in ("spectral_norm", "weight_norm", "DataParallel") for a in self.program.attributes
        )
        self.report(
            node,
            f"{name}.forward(...) skips the hooks of {name}" + ("." if hooked else ", should it have any."),
            level="warning" if hooked else "info",
            remedy=f"Call {name}(...).",
        )

    def _wrapper(self, function: Function | None) -> bool:
        return function is not None and function.name == "__call__"


@register
class ResultDropped(StaticRule):
    """A statement that makes a new tensor and forgets it."""

    id = "D39"
    title = "Result of a non-in-place method dropped"
    why = "The method leaves its tensor as it is and returns a new one: without an assignment nothing has happened."
    remedy = "Assign the result."

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or node in self.program.displayed:
            return
        method, receiver = call.func.attr, call.func.value
        if method not in SHARED and method not in TENSORS:
            return
        if self.program.qualified(call.func) or any(k.arg == "out" for k in call.keywords):
            return
        kind = self.meaning.kind(receiver)
        if kind != "tensor" and not (method in TENSORS_OWN and not kind and self._plain(receiver)):
            return
        if self._watched(node) or method in COMPUTING and not self._in_forward(node):
            return
        name, whole = text(receiver), text(call)
        remedy = f"Write {name} = {whole}" if isinstance(receiver, (ast.Name, ast.Attribute)) else "Assign the result"
        if method in IN_PLACE:
            remedy += f", or {name}.{method}_(...) to change it in place"
        self.report(
            call, f"{whole} returns a new tensor and the result is not used.", remedy=remedy + ".", method=method
        )

    def _in_forward(self, node: ast.AST) -> bool:
        function = self.program.function(node)
        return (
            function is not None and function.name == "forward" and self.meaning.is_module(self.program.owner(function))
        )

    def _watched(self, node: ast.stmt) -> bool:
        """Tell whether a statement is there for what it does besides: `with explain() as seen: x.float()`, or a small try."""
        inner: ast.AST = node
        for around in self.program.up(node):
            if isinstance(around, (ast.With, ast.AsyncWith)) and any(i.optional_vars is not None for i in around.items):
                return True
            if isinstance(around, ast.Try) and inner is node and around.handlers and len(around.body) <= 2:
                return True
            if isinstance(around, Function):
                return False
            inner = around
        return False

    def _plain(self, node: ast.expr) -> bool:
        """Tell whether an expression may be a tensor: not self, nor a call, nor what a class of the program made."""
        if not isinstance(node, ast.Name) or self.meaning.is_self(node):
            return False
        for binding in self.program.bindings(node)[1]:
            value = binding.value
            if binding.how not in ("assign", "parameter", "for"):
                return False
            if isinstance(value, ast.Call):
                called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
                if called[:1].isupper():  # an object of somebody's class, such as torch_geometric's Data
                    return False
        return True
