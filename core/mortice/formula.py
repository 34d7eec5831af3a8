"""The gradient formulas of an op: how their arguments are fetched, and what must be kept for them until backward."""

from __future__ import annotations

import functools

from mortice.node import ONE, OpNode, _saved_tensor, in_operand_format
from mortice.shape import broadcast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Plan = tuple[tuple[bool, ...], bool, bool | None]


def signature(fn: Any) -> tuple[list[str], list[str], list[str]]:
    """Return a function's positional parameters, its *parameter if any, and its keyword-only ones.

    Read from the code object: importing `inspect`, and asking it 500 times, is a quarter of `import mortice`.
    """
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    code = fn.__code__
    names, n = code.co_varnames, code.co_argcount
    end = n + code.co_kwonlyargcount
    return list(names[:n]), list(names[end : end + 1]) if code.co_flags & 4 else [], list(names[n:end])


@functools.cache
def _loader(fetches: str, keeps_format: bool) -> Any:
    """Return what calls a formula with its arguments fetched: made from source so that fetching costs no loop.

    The text holds only names that `Formula` has checked; many formulas share one.
    """
    made = f"F(f(k, g, {fetches}), k, n)" if keeps_format else f"f(k, g, {fetches})"
    return eval(f"lambda f, k, g, n: {made}", {"T": _saved_tensor, "F": in_operand_format, "__name__": __name__})


class Formula:
    """A gradient formula and the loaders that fetch what its argument names ask for."""

    __slots__ = ("fn", "saves", "out", "shapes", "raw", "graph")

    def __init__(self, op: Differentiable, fn: Callable[..., Any], keeps_format: bool = False) -> None:
        self.fn = fn
        self.saves: set[int] = set()
        self.out: set[int] = set()
        self.shapes = False
        names = sum(signature(fn), [])[2:]
        raw, graph_mode = [], []
        for name in names:
            if name in op.inputs:
                i = op.inputs.index(name)
                self.saves.add(i)
                if op.variadic:
                    raise TypeError(f"{op.name}.vjp: a formula of an op with *{name} sees its shapes only.")
                raw.append(f"n.saved[{i}]._buffer")
                graph_mode.append(f"T(n.saved[{i}])")
            elif name == "out" or name in op.outputs:
                i = op.outputs.index(name) if name in op.outputs else 0
                self.out.add(i)
                raw.append(f"n.out[{i}]")
                graph_mode.append(f"n.out_tensor({i})")
            elif name.removesuffix("_shape") in op.inputs:
                self.shapes = True
                i = op.inputs.index(name.removesuffix("_shape"))
                where = "n.shapes" if op.variadic else f"n.shapes[{i}]"
                raw.append(where)
                graph_mode.append(where)
            elif name == "needs":
                raw.append("n.needs()")
                graph_mode.append("n.needs()")
            elif name in op.attrs:
                raw.append(f"n.attrs[{name!r}]")
                graph_mode.append(f"n.attrs[{name!r}]")
            else:
                raise TypeError(
                    f"{op.name}.vjp: a formula takes k, g and names of inputs ({', '.join(op.inputs)}), attributes "
                    f"({', '.join(op.attrs) or 'none'}), outputs ({', '.join(op.outputs)}) or <input>_shape; got {name!r}."
                )
        self.raw, self.graph = [_loader(", ".join(names), keeps_format) for names in (raw, graph_mode)]


class Plans(dict):  # type: ignore[type-arg]
    """What an op keeps for backward, by which inputs want gradients; found at first use."""

    def __init__(self, op: Differentiable) -> None:
        self.op = op

    def __missing__(self, needs: tuple[bool, ...]) -> Plan:
        found = self[needs] = self.op.make_plan(needs)
        return found


class Differentiable:
    """The part of an op that concerns its gradients."""

    # What recording reads each time lies in slots, which `fast` reads where they are.
    __slots__ = ("no_grad_reason", "node_class", "plan_one", "plan_both", "plan_first", "plan_second", "pulls",
                 "__dict__", "__weakref__")  # fmt: skip
    name: str
    inputs: list[str]
    attrs: list[str]
    outputs: tuple[str, ...]
    fixed: frozenset[int]
    variadic: bool
    shape: Callable[..., Any] | None
    differentiable: int
    grad_name: str

    def __init__(self) -> None:
        self.parts: Callable[..., Any] | None = None  # what `next_functions` shows, where PyTorch has several nodes for the op
        self.formulas: dict[str, Formula] = {}
        self.by_position: list[Any] = []
        self.joint: Formula | None = None
        self.kept: set[int] = set()  # numbers of the outputs that formulas ask for
        self.kept_indices: tuple[int, ...] = ()  # of those, the ones that have no gradient themselves
        self.no_grad_reason: str | None = None
        self.jvp: Any = None
        self.zero_again: bool | Callable[[Any], bool] = False  # or which of its nodes do
        self.format_asked = False
        self.plans = Plans(self)
        self.plan_one: Plan | None = None
        self.plan_both: Plan | None = None  # the same for two operands that both want gradients, or one of them
        self.plan_first: Plan | None = None
        self.plan_second: Plan | None = None
        self.pulls: Any = None  # what `OpNode.pull` asks of the op, once it has formulas
        self.node_class: Any = None
        self.named_classes: dict[str, Any] = {}

    def vjp(
        self, joint: Callable[..., Any] | None = None, /, *, jvp: Any = None,
        zero_again: bool | Callable[[Any], bool] = False, keeps_format: bool = False,
        **formulas: Callable[..., Any],
    ) -> None:  # fmt: skip
        """Give one formula per input by its name, or one function that returns all gradients as a tuple.

        With `zero_again` the first input's gradient gives that input a gradient of zeros, where PyTorch's does: what then
        is asked for second gradients gets zeros, not None. With `keeps_format` the gradients of the first two inputs have the
        memory format that `Op.keeps_format` finds among these.
        """
        if not (jvp is None or callable(jvp) or jvp in ("elementwise", "linear", "bilinear")):
            raise TypeError(f"{self.name}.vjp: jvp is 'elementwise', 'linear', 'bilinear' or a function; got {jvp!r}.")
        self.jvp, self.zero_again, self.format_asked = jvp, zero_again, keeps_format
        if joint is not None:
            self.joint = Formula(self, joint, keeps_format)
        for name, fn in formulas.items():
            if name not in self.inputs:
                raise TypeError(f"{self.name}.vjp: no input is called {name!r}; inputs: {', '.join(self.inputs)}.")
            self.formulas[name] = Formula(self, fn, keeps_format and name in self.inputs[:2])
        self.by_position = [self.formulas.get(name) for name in self.inputs]
        self.kept = set().union(*(f.out for f in (self.joint, *self.formulas.values()) if f is not None))
        self.kept_indices = tuple(sorted(i for i in self.kept if i >= self.differentiable))
        each = tuple(f and (f.raw, f.fn) for f in self.by_position)
        self.pulls = each, self.joint and (self.joint.raw, self.joint.fn), tuple(self.fixed), self.shape is broadcast

    def no_grad(self, reason: str = "its result does not change continuously") -> None:
        """Say that the operation has no gradient, and why."""
        self.no_grad_reason = reason

    def make_plan(self, needs: tuple[bool, ...]) -> Plan:
        """Find what to keep when the inputs in `needs` want gradients: which inputs, the output, the shapes; None: the format too."""
        if self.joint is not None:
            used = [self.joint]
        else:
            used = []
            for name, need in zip(self.inputs, needs):
                if need and name not in self.formulas:
                    raise NotImplementedError(f"{self.name}: the derivative for {name!r} is not implemented.")
                if need:
                    used.append(self.formulas[name])
        saves: set[int] = set().union(*(f.saves for f in used))
        keep = tuple(i in saves for i in range(0 if self.variadic else len(self.inputs)))
        shapes = any(f.shapes for f in used) or (self.shape is broadcast and len(self.inputs) != 2)
        return keep, any(f.out for f in used), None if self.format_asked else shapes

    def find_plan_one(self) -> Plan:
        """Return the plan of an op of one operand, and keep it at hand."""
        self.plan_one = self.plans[ONE]
        return self.plan_one

    def find_plan_two(self, first: bool, second: bool) -> Plan:
        """Return the plan of an op of two operands, and keep it at hand."""
        plan: Plan = self.plans[first, second]
        if first and second:
            self.plan_both = plan
        elif first:
            self.plan_first = plan
        else:
            self.plan_second = plan
        return plan

    def make_node_class(self) -> Any:
        """Make the class of the op's nodes: users look at `type(t.grad_fn).__name__`."""
        self.node_class = self.class_named(self.grad_name)
        return self.node_class

    def class_named(self, name: str) -> Any:
        """Return the class of the op's nodes of that name."""
        if name not in self.named_classes:
            from mortice.saved import saved_properties

            self.named_classes[name] = type(name, (OpNode,), {"__slots__": (), **saved_properties(self, name)})
        return self.named_classes[name]
