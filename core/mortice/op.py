"""Op and `@op`: one block holds an operation's body, dtype rule, shape rule and gradient formulas.

The call path is compiled once per operation: `unary`, `binary` and `general` below return the function that users call.
Each starts with the case that matters (tensors of one backend and one dtype: kernel, wrap, record if needed) and leaves
everything else (Python numbers, promotion, errors, memory that ends) to `slow`.
"""

from __future__ import annotations

import functools
from importlib import import_module
from math import isfinite
from weakref import ref

from mortice import fast
from mortice.catalog import OPS as CATALOG
from mortice.dtype import (
    DType,
    bool_,
    dtype_of_all,
    finfo,
    get_default_dtype,
    iinfo,
    int64,
    scalar_dtype,
)
from mortice.errors import DeviceError, DTypeError
from mortice.modes import modes, special
from mortice.node import (
    ONE,
    TENSOR_KERNELS,
    Const,
    OpNode,
    _saved_tensor,
    new,
    record,
    record_one,
    record_two,
    saved_properties,
)
from mortice.shape import SCALAR, Size, broadcast, out_of_memory, reduced_shape
from mortice.tensor import TensorBase, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Rule = Callable[["Op", DType], tuple[DType, Any]]
    Plan = tuple[tuple[bool, ...], bool, bool]
    OPS: dict[str, Op]  # every op by its name

_ops: dict[str, Op] = {}  # those of the modules that have been imported
Tensor: Any = None  # the public class, set by `methods`; a name of this module, which is read faster than an attribute


def __getattr__(name: str) -> Any:
    if name != "OPS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in CATALOG:
        import_module(f"mortice.{module}")
    return globals().setdefault("OPS", _ops)


# ---- dtype rules: (op, dtype of the operands together) -> (dtype to compute in, dtype of the result) ----


def promote(op: Op, d: DType) -> tuple[DType, DType]:
    """The operands' common dtype."""
    return d, d


def floating(op: Op, d: DType) -> tuple[DType, DType]:
    """Like promote; integers and bools compute in the default float dtype."""
    if d.kind in "bui":
        d = get_default_dtype()
    return d, d


def comparison(op: Op, d: DType) -> tuple[DType, DType]:
    """Compute in the common dtype, give bool."""
    return d, bool_


def logical(op: Op, d: DType) -> tuple[DType, DType]:
    """Read every operand as a truth value, give bool."""
    return bool_, bool_


def accumulate(op: Op, d: DType) -> tuple[DType, DType]:
    """Bools and integers add up in int64."""
    return (int64, int64) if d.kind in "bui" else (d, d)


def indices(op: Op, d: DType) -> tuple[DType, DType]:
    """Give int64 positions."""
    return d, int64


def real_part(op: Op, d: DType) -> tuple[DType, DType]:
    """Complex gives the real dtype of its parts."""
    return d, d.to_real()


# ---- shape rules: (op name, shapes..., **attributes) -> shape of the result ----


def same(name: str, shape: Size, *rest: Any, **attrs: Any) -> Size:
    """The first operand's shape."""
    return shape


def to_scalar(name: str, shape: Size) -> Size:
    """No dims."""
    return SCALAR


@functools.lru_cache(4096)  # shapes recur, and a look-up costs a fifth
def reduced(name: str, shape: Size, *, axis: Any, keepdims: bool, **attrs: Any) -> Size:
    """Without the reduced axes, or with them as 1."""
    if axis is None and not keepdims:
        return SCALAR
    dims = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return reduced_shape(shape, dims, keepdims)


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
def _loader(fetches: str) -> Any:
    """Return what calls a formula with its arguments fetched: made from source so that fetching costs no loop.

    The text holds only names that `Formula` has checked; many formulas share one.
    """
    return eval(f"lambda f, k, g, n: f(k, g, {fetches})", {"T": _saved_tensor})


class Formula:
    """A gradient formula and the loaders that fetch what its argument names ask for."""

    __slots__ = ("fn", "saves", "out", "shapes", "raw", "graph")

    def __init__(self, op: Op, fn: Callable[..., Any]) -> None:
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
                raw.append(f"n.saved[{i}]._data")
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
        self.raw, self.graph = _loader(", ".join(raw)), _loader(", ".join(graph_mode))


class Plans(dict):  # type: ignore[type-arg]
    """What an op keeps for backward, by which inputs want gradients; found at first use."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __missing__(self, needs: tuple[bool, ...]) -> Plan:
        found = self[needs] = self.op.make_plan(needs)
        return found


class Op:
    """An operation: everything the core knows about it."""

    # What recording reads each time lies in slots, which `fast` reads where they are.
    __slots__ = (
        "no_grad_reason", "node_class", "plan_one", "plan_both", "plan_first", "plan_second", "__dict__", "__weakref__"
    )  # fmt: skip

    def __init__(
        self,
        body: Callable[..., Any],
        *,
        result: Rule | None,
        shape: Callable[..., Any] | None,
        kernel: str | None,
        dtypes: str,
        view: bool,
        outputs: tuple[str, ...],
        differentiable: int | None,
        holomorphic: bool,
        check: Callable[..., Any] | None,
        grad_name: str | None,
        grad_name_of: Callable[[Any], str] | None,
        scalars: bool | str,
        name: str | None,
        scatter: Callable[..., Any] | None,
        strides: Callable[..., Any] | None,
        fixed: tuple[str, ...],
        number: Callable[..., Any] | None,
        operand: Callable[..., Any] | None,
        keeps_format: int,
    ) -> None:
        self.name = (name or body.__name__).strip("_")
        self.body, self.result, self.shape, self.kernel, self.dtypes = body, result, shape, kernel, dtypes
        self.view, self.outputs, self.holomorphic, self.check, self.scalars = view, outputs, holomorphic, check, scalars
        self.differentiable = len(outputs) if differentiable is None else differentiable
        self.grad_name = grad_name or "".join(p.title() for p in self.name.split("_")) + "Backward0"
        self.grad_name_of = grad_name_of
        self.parts: Callable[..., Any] | None = None  # what `next_functions` shows, where PyTorch has several nodes for the op
        self.doc = body.__doc__
        self.scatter, self.strides, self.number = scatter, strides, number or fit_number
        self.operand = operand
        self.keeps_format = keeps_format
        positional, star, self.attrs = signature(body)
        self.variadic = bool(star)
        self.inputs = positional[1:] + star
        self.fixed = frozenset(i for i, n in enumerate(self.inputs) if n in fixed)
        self.formulas: dict[str, Formula] = {}
        self.by_position: list[Any] = []
        self.joint: Formula | None = None
        self.kept: set[int] = set()  # numbers of the outputs that formulas ask for
        self.kept_indices: tuple[int, ...] = ()  # of those, the ones that have no gradient themselves
        self.no_grad_reason: str | None = None
        self.jvp: Any = None
        self.zero_again: bool | Callable[[Any], bool] = False  # or which of its nodes do
        self.plans = Plans(self)
        self.plan_one: Plan | None = None
        self.plan_both: Plan | None = None  # the same for two operands that both want gradients, or one of them
        self.plan_first: Plan | None = None
        self.plan_second: Plan | None = None
        self.node_class: Any = None
        self.named_classes: dict[str, Any] = {}
        self.same_dtype: dict[DType, Any] = {}
        self.fn: Any = None
        self.observer: Callable[..., None] | None = None
        if self.name in _ops:
            raise TypeError(f"op {self.name!r} is defined twice.")
        _ops[self.name] = self

    # ---- gradients ----

    def vjp(
        self, joint: Callable[..., Any] | None = None, /, *, jvp: Any = None,
        zero_again: bool | Callable[[Any], bool] = False,
        **formulas: Callable[..., Any],
    ) -> None:  # fmt: skip
        """Give one formula per input by its name, or one function that returns all gradients as a tuple.

        With `zero_again` the first input's gradient gives that input a gradient of zeros, where PyTorch's does: what then
        is asked for second gradients gets zeros, not None.
        """
        self.jvp, self.zero_again = jvp, zero_again
        if joint is not None:
            self.joint = Formula(self, joint)
        for name, fn in formulas.items():
            if name not in self.inputs:
                raise TypeError(f"{self.name}.vjp: no input is called {name!r}; inputs: {', '.join(self.inputs)}.")
            self.formulas[name] = Formula(self, fn)
        self.by_position = [self.formulas.get(name) for name in self.inputs]
        self.kept = set().union(*(f.out for f in (self.joint, *self.formulas.values()) if f is not None))
        self.kept_indices = tuple(sorted(i for i in self.kept if i >= self.differentiable))

    def no_grad(self, reason: str = "its result does not change continuously") -> None:
        """Say that the operation has no gradient, and why."""
        self.no_grad_reason = reason

    def make_plan(self, needs: tuple[bool, ...]) -> Plan:
        """Find what to keep when the inputs in `needs` want gradients: which inputs, the output, the shapes."""
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
        return keep, any(f.out for f in used), shapes

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
            self.named_classes[name] = type(name, (OpNode,), {"__slots__": (), **saved_properties(self)})
        return self.named_classes[name]

    # ---- dtypes ----

    def rule(self, d: DType) -> tuple[DType, Any]:
        """Return (compute dtype, result dtype) for operands of dtype `d`; refuse dtypes that the op does not take."""
        assert self.result is not None
        compute, result = self.result(self, d)
        if compute.kind not in self.dtypes:
            kinds = {"b": "bool", "u": "unsigned integer", "i": "integer", "f": "floating point", "c": "complex"}
            names = ", ".join(kinds[kind] for kind in self.dtypes)
            raise DTypeError(f"{self.name}: not implemented for {d.name}; got {d}. Convert to one of: {names}.")
        if compute is d and self.observer is None:
            self.same_dtype[d] = result
        return compute, result

    def observe(self, observer: Callable[..., None] | None) -> None:
        """Show each call from now on, as `observer(op, operands, attributes, result)`; None ends it.

        Views are not shown: their fast cases ask nothing of the dtype.
        """
        self.observer = observer
        self.same_dtype.clear()  # the fast cases look here first, and leave to `slow` what they do not find

    def __repr__(self) -> str:
        return f"<op {self.name}>"


# ---- the call path ----


def run(op: Op, args: Sequence[Any], attrs: dict[str, Any], result: Any = None) -> Any:
    """Apply an op to operands that are ready: tensors of one device and the compute dtype, numbers, None.

    `result` is the dtype (or dtypes) of the result; None asks the op's rule about the first tensor's dtype.
    """
    first: Any = None
    shapes: list[Any] = []
    buffers, recorded = [], False
    for a in args:
        if isinstance(a, TensorBase):
            if first is None:
                first = a
            shapes.append(a.shape)
            buffers.append(a._data)
            recorded = recorded or a._rg
        else:
            shapes.append(() if a is None or isinstance(a, (int, float, complex)) else a)
            buffers.append(a)
    if first is None:
        raise TypeError(f"{op.name}: expected at least one Tensor; got {', '.join(type(a).__name__ for a in args)}.")
    device = first._device
    if result is None:
        result = op.rule(first.dtype)[1]
    shape = op.shape(op.name, *shapes, **attrs) if op.shape is not None else None
    try:
        out = device.table[op](*buffers, **attrs)
    except MemoryError as error:
        raise out_of_memory(op.name, shape, result, error) from None
    if type(out) is tuple:
        if shape is None:
            shape = tuple([Size(device.backend.shape_of(o)) for o in out])
        elif type(shape) is not tuple:
            shape = (shape,) * len(out)
        results = result if type(result) is tuple else (result,) * len(out)
        t: Any = tuple([make(o, device, d, s) for o, d, s in zip(out, results, shape)])
        if modes.inference:
            for r in t:
                r.__dict__["_inference"] = True
    else:
        t = make(out, device, result, Size(device.backend.shape_of(out)) if shape is None else shape)
        if modes.inference and not op.view:  # a view is what its base is
            t.__dict__["_inference"] = True
    if recorded and modes.grad:
        record(op, [a if isinstance(a, TensorBase) else Const(a) for a in args], attrs, out, t)
    if op.view:
        link_view(t, first, op, attrs)
    return t


def link_view(t: Any, x: Any, op: Op, attrs: dict[str, Any]) -> None:
    """Make `t` share the storage of `x`, of which it is a view."""
    storage = x._storage
    if storage is None:
        storage = x.own_storage()
    t._storage = storage
    t._steps = (x._steps, op, attrs)
    t._viewed = x if x._viewed is None else x._viewed
    t._note = x._note
    storage.add(t)
    if special[0] and not modes.grad and not t._note:
        t._note = "no_grad"


def as_view(op: Op, x: Any, data: Any, size: Size, attrs: Any) -> Any:
    """Wrap the buffer of a view that is already made: the short way for reshape and slices, `link_view` spelled out.

    Attributes may come as a tuple of their values, or as None for the size alone: their dict is made where somebody asks.
    """
    t = new(Tensor)
    t._data = data
    t._device = x._device
    t.dtype = x.dtype
    t.shape = size
    t._rg = False
    t._node = t._leaf = None
    storage = x._storage
    if storage is None:
        storage = x.own_storage()
    t._storage = storage
    t._steps = (x._steps, op, attrs or size)
    t._viewed = x if x._viewed is None else x._viewed
    t._note = x._note
    aliases = storage.aliases
    if aliases.last() is None:  # the usual case: the view before this one has gone
        aliases.last = ref(t)
    else:
        storage.add(t)
    if special[0] and not modes.grad:
        t._note = t._note or "no_grad"
    elif x._rg:
        record_one(op, x, data, t, attrs)
    return t


def advice(value: Any) -> str:
    """Name the type of what is no tensor, and say what to do."""
    asks = hasattr(type(value), "__torch_function__")
    todo = "import mortice.overrides, which lets functions ask its __torch_function__," if asks else "Use mortice.tensor(...)"
    return f"{type(value).__name__}. {todo} first."


def foreign(op: Op, value: Any) -> TypeError:
    """Return the error for an operand that is no tensor and no number."""
    return TypeError(f"{op.name}: expected Tensors or numbers; got {advice(value)}")


def check_device(op: Op, x: Any, y: Any) -> None:
    """Refuse operands of different devices or backends; of one place at different levels they may be."""
    a, b = x._device.base, y._device.base
    if a is not b:
        if a.backend is b.backend:
            raise DeviceError(
                f"{op.name}: Expected all tensors to be on the same device; got {a} and {b}. "
                f"Move one of them with .to('{a}')."
            )
        raise DeviceError(
            f"{op.name}: Expected all tensors to be on the same device and backend; got {a} ({a.backend.name}) and "
            f"{b} ({b.backend.name}). Move one of them with .to(backend='{a.backend.name}')."
        )


def one_place(op: Op, args: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """Return operands of one device; a tensor without dims on the CPU joins elementwise what is elsewhere."""
    home = next((t._device for t in tensors if t.shape or t._device.type != "cpu"), tensors[0]._device)
    moved = []
    for a in args:
        if isinstance(a, TensorBase) and a._device.base is not home.base:
            if not op.scalars or a.shape or a._device.type != "cpu" or home.type == "cpu":
                check_device(op, tensors[0], next(t for t in tensors if t._device.base is not tensors[0]._device.base))
            a = MOVE(a, home.base)
        moved.append(a)
    return moved


# ---- number rules: (op, number, dtype to compute in, position) -> the number as the kernel gets it ----


def hold(name: str, value: Any, d: DType) -> Any:
    """Return a number as dtype `d` holds it, else refuse it; below zero they wrap in unsigned dtypes, as in PyTorch."""
    kind = d.kind
    if kind == "c":
        return complex(value)
    if not isinstance(value, complex):
        if kind == "f":
            value = float(value)
            if -448.0 <= value <= 448.0 or abs(value) <= finfo(d).max or not isfinite(value):  # every float dtype has 448
                return value
            raise RuntimeError(f"{name}: value cannot be converted to type {d.name} without overflow; got {value}.")
        if kind == "b":
            return bool(value)
        limits = _LIMITS.get(d) or _LIMITS.setdefault(d, iinfo(d))
        if (-limits.max if kind == "u" else limits.min) <= value <= limits.max:
            value = int(value)
            return value if value >= limits.min else value + limits.max + 1
    raise RuntimeError(f"{name}: value cannot be converted to type {d.name} without overflow; got {value}.")


def fit_number(op: Op, value: Any, d: DType, position: int = 0) -> Any:
    """Refuse a number that the dtype cannot hold; one that stands for an operand may overflow as a float."""
    if d.kind == "f" and not isinstance(value, complex):
        return float(value)
    return bool(value) if d.kind == "b" else hold(op.name, value, d)


_LIMITS: dict[DType, iinfo] = {}


def wrap_number(op: Op, value: Any, d: DType, position: int = 0) -> Any:
    """Wrap a number in integer dtypes: what is computed modulo a power of 2 comes out the same."""
    if d.kind not in "ui":
        return fit_number(op, value, d)
    value = int(value)
    limits = _LIMITS.get(d) or _LIMITS.setdefault(d, iinfo(d))
    if limits.min <= value <= limits.max:
        return value
    return (value - limits.min) % (1 << limits.bits) + limits.min


def wrap_operand(op: Op, value: Any, d: DType, position: int = 0) -> Any:
    """Wrap a number of at most 64 bits in integer dtypes, as PyTorch does wherever one stands for a tensor."""
    if d.kind in "ui" and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError(f"{op.name}: int too big to convert; got {value}, which takes more than 64 bits.")
    return wrap_number(op, value, d)


def number_of(name: str, argument: str, value: Any) -> Any:
    """Return an argument that is a number, also where it came in a tensor; with dims or a gradient that is refused."""
    if not isinstance(value, TensorBase):
        return value
    if value.shape or value._rg:
        what = f"of shape {tuple(value.shape)}" if value.shape else "that requires grad"
        raise TypeError(f"{name}: expected a number for {argument}; got a Tensor {what}. Use .item() where one is meant.")
    return value.item()  # type: ignore[attr-defined]


def slow(op: Op, args: Sequence[Any], attrs: dict[str, Any], out: Any = None) -> Any:
    """Apply an op to operands as the user gave them: promote, convert numbers, check devices; write `out`."""
    if out is not None:
        written = DIRECTLY(op, out, args, attrs)
        if written is not None:
            return written
    for name, value in attrs.items():
        if isinstance(value, TensorBase):
            attrs[name] = number_of(op.name, name, value)
    tensors, numbers = [], []
    given = args
    args = list(args) if modes.autocast is None or out is not None else modes.autocast.operands(op.name, args)
    for i, a in enumerate(args):
        if isinstance(a, TensorBase):
            tensors.append(a)
        elif isinstance(a, (int, float, complex)):
            numbers.append(a)
        elif a is not None:
            args[i] = converted = as_operand(op, a)
            (tensors if isinstance(converted, TensorBase) else numbers).append(converted)
        elif op.scalars and len(args) == 2:  # neither of two operands may be left out
            raise foreign(op, a)
    if not tensors or (numbers and not op.scalars):
        if op.scalars == "alone" and len(numbers) == len(args):
            return slow(op, [FROM_NUMBER(args[0]), *args[1:]], attrs, out)
        got = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"{op.name}: expected {'a Tensor' if not tensors else 'Tensors'}; got {got}.")
    first = tensors[0]
    kept = [args[i] for i in op.fixed if i < len(args)]
    moving = [t for t in tensors if not any(t is f for f in kept)]
    for t in tensors[1:]:
        if t._device is not first._device:
            return ACROSS_LEVELS(op, one_place(op, args, tensors), attrs, out)
    d = dtype_of_all(moving, numbers)
    if numbers and op.operand is not None:
        for a in (*moving, *numbers):
            op.operand(op, a.dtype if isinstance(a, TensorBase) else scalar_dtype(a))
    compute, result = op.rule(d)
    for i, a in enumerate(args):
        if i in op.fixed:
            continue
        if isinstance(a, TensorBase):
            if a.dtype is not compute:
                args[i] = CAST(a, compute)
        elif a is not None:
            args[i] = op.number(op, a, compute, i)
    if op.check is not None:
        op.check(op.name, *args, **attrs)
    t = run(op, args, attrs, result)
    if out is not None:
        shared = op.view or any([a._data is t._data for a in args if isinstance(a, TensorBase)])
        t = WRITE_OUT(op.name, out, t, op, not shared)
    if op.observer is not None:
        op.observer(op, given, attrs, t)
    return t


def as_operand(op: Op, value: Any) -> Any:
    """Turn an operand of another library into a number, if it is one; refuse the rest."""
    if getattr(value, "shape", ()):
        raise foreign(op, value)
    if hasattr(value, "shape") and hasattr(value, "item"):
        return value.item()
    if hasattr(value, "__index__"):
        return value.__index__()
    if getattr(value, "ndim", None) == 0 and hasattr(value, "__float__"):
        return float(value)
    raise foreign(op, value)


# Filled in by `ops.movement` (the cast, the move to a device), `ops.data` (a tensor of a number), `mutation` (writing into a
# given tensor, at once where it can be) and `levels` (operands of several levels): all are written with ops.
CAST: Callable[..., Any] = slow
MOVE: Callable[..., Any] = slow
FROM_NUMBER: Callable[..., Any] = slow
WRITE_OUT: Callable[..., Any] = slow
DIRECTLY: Callable[..., Any] = slow
ACROSS_LEVELS: Callable[..., Any] = slow


as_view = fast.install(Op, as_view)


def unary(op: Op) -> Callable[..., Any]:
    """Compile an op of one tensor without attributes, whose shape is the tensor's or none."""
    same_dtype = op.same_dtype
    elementwise = op.shape is same

    def call(input: Any, *, out: Any = None) -> Any:
        try:
            result = same_dtype[input.dtype]
            device = input._device
        except (AttributeError, KeyError):
            return slow(op, (input,), {}, out)
        if out is not None or (special[0] and modes.rerouted):
            return slow(op, (input,), {}, out)
        try:
            data = device.table[op](input._data)
        except MemoryError:
            return slow(op, (input,), {})
        t = new(Tensor)
        t._data = data
        t._device = device
        t.dtype = result
        t.shape = input.shape if elementwise else SCALAR
        t._rg = False
        t._node = t._storage = t._leaf = None
        if input._rg and (not special[0] or modes.grad) and op.no_grad_reason is None:
            record_one(op, input, data, t)
        return t

    return fast.stand_before(fast.ONE, op, call, None if elementwise else SCALAR)


def _slow_two(op: Op, x: Any, y: Any, out: Any) -> Any:
    return slow(op, (x, y), {}, out)


def binary(op: Op, fallback: Callable[..., Any] = _slow_two) -> Callable[..., Any]:
    """Compile an op of two operands without attributes; `fallback(op, x, y, out)` takes what is not the fast case."""
    same_dtype = op.same_dtype
    shape_rule: Any = op.shape

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        try:
            device = input._device
            if (
                other._device is not device
                or other.dtype is not input.dtype
                or out is not None
                or (special[0] and modes.rerouted)
            ):
                return fallback(op, input, other, out)
            result = same_dtype[input.dtype]
            if (shape := input.shape) != other.shape or shape_rule is not broadcast:
                shape = shape_rule(op.name, shape, other.shape)
        except (AttributeError, KeyError):
            kind = type(other)
            if (kind is float or kind is int) and out is None and isinstance(input, TensorBase):
                return with_number(input, other, False)
            kind = type(input)
            if (kind is float or kind is int) and out is None and isinstance(other, TensorBase):
                return with_number(other, input, True)
            return fallback(op, input, other, out)
        try:
            data = device.table[op](input._data, other._data)
        except MemoryError:
            return fallback(op, input, other, None)
        t = new(Tensor)
        t._data = data
        t._device = device
        t.dtype = result
        t.shape = shape
        t._rg = False
        t._node = t._storage = t._leaf = None
        if (input._rg or other._rg) and (not special[0] or modes.grad) and op.no_grad_reason is None:
            record_two(op, input, other, data, t)
        return t

    def with_number(x: Any, value: Any, swapped: bool) -> Any:
        d = x.dtype
        result = same_dtype.get(d)
        plain = d.kind == "f" or (d is int64 and type(value) is int and -(1 << 63) <= value < 1 << 63)
        if result is None or not plain or not op.scalars or (special[0] and modes.rerouted):
            return slow(op, (value, x) if swapped else (x, value), {})
        device = x._device
        try:
            data = device.table[op](value, x._data) if swapped else device.table[op](x._data, value)
        except MemoryError:
            return slow(op, (value, x) if swapped else (x, value), {})
        t = make(data, device, result, x.shape)
        if x._rg and (not special[0] or modes.grad) and op.no_grad_reason is None:
            value = Const(value)
            if swapped:
                record_two(op, value, x, data, t)
            else:
                record_two(op, x, value, data, t)
        return t

    return fast.stand_before(fast.TWO, op, call, shape_rule)


def unary_with_attributes(op: Op) -> Callable[..., Any]:
    """Compile an op of one tensor and attributes, with one output and a shape rule."""
    same_dtype = op.same_dtype
    shape_rule: Any = op.shape

    def call(input: Any, *, out: Any = None, **attrs: Any) -> Any:
        try:
            result = same_dtype[input.dtype]
            device = input._device
        except (AttributeError, KeyError):
            return slow(op, (input,), attrs, out)
        if out is not None or (special[0] and modes.rerouted):
            return slow(op, (input,), attrs, out)
        for value in attrs.values():
            if isinstance(value, TensorBase):
                return slow(op, (input,), attrs)
        shape = shape_rule(op.name, input.shape, **attrs)
        try:
            data = device.table[op](input._data, **attrs)
        except MemoryError:
            return slow(op, (input,), attrs)
        t = new(Tensor)
        t._data = data
        t._device = device
        t.dtype = result
        t.shape = shape
        t._rg = False
        t._node = t._storage = t._leaf = None
        if input._rg and (not special[0] or modes.grad) and op.no_grad_reason is None:
            record_one(op, input, data, t, attrs)
        return t

    return fast.stand_before(fast.ATTRIBUTES, op, call, None if shape_rule is same else shape_rule)


def viewing(op: Op) -> Callable[..., Any]:
    """Compile a view of one tensor under attributes, in the tensor's own dtype."""
    shape_rule: Any = op.shape

    def call(input: Any, *, out: Any = None, **attrs: Any) -> Any:
        if out is not None or not isinstance(input, TensorBase) or (special[0] and modes.rerouted):
            return slow(op, (input,), attrs, out)
        shape = shape_rule(op.name, input.shape, **attrs)
        return as_view(op, input, input._device.table[op](input._data, **attrs), shape, attrs)

    return fast.stand_before(fast.VIEW, op, call, shape_rule)


def general(op: Op) -> Callable[..., Any]:
    """Compile any other op: attributes as keywords, any number of operands."""
    fixed = op.fixed
    lead = min({*range(len(op.inputs))} - fixed, default=-1)  # the first operand that takes part in promotion

    def call(*args: Any, out: Any = None, **attrs: Any) -> Any:
        if out is None and op.check is None and lead >= 0 and not (special[0] and modes.autocast is not None):
            try:
                first = args[lead]
                d = first.dtype
                result = op.same_dtype.get(d)
                if result is not None:
                    device = first._device
                    i = 0
                    for a in args:
                        if a is not None and (a._device is not device or (a.dtype is not d and i not in fixed)):
                            break
                        i += 1
                    else:
                        for value in attrs.values():
                            if isinstance(value, TensorBase):
                                return slow(op, args, attrs)
                        return run(op, args, attrs, result)
            except (AttributeError, IndexError):
                pass
        return slow(op, args, attrs, out)

    if op.check is not None or op.shape is None or op.view or lead < 0:
        return call
    return fast.stand_before(fast.ANY, op, call, None if op.shape is same and not lead else op.shape)


def op(
    *,
    result: Rule | None = promote,
    shape: Callable[..., Any] | None = None,
    kernel: str | None = None,
    dtypes: str = "buifc",
    view: bool = False,
    outputs: tuple[str, ...] = (),
    differentiable: int | None = None,
    holomorphic: bool = True,
    check: Callable[..., Any] | None = None,
    grad_name: str | None = None,
    grad_name_of: Callable[[Any], str] | None = None,
    scalars: bool | str | None = None,
    name: str | None = None,
    scatter: Callable[..., Any] | None = None,
    strides: Callable[..., Any] | None = None,
    fixed: tuple[str, ...] = (),
    number: Callable[..., Any] | None = None,
    operand: Callable[..., Any] | None = None,
    keeps_format: int = 0,
) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operation; returns the function that users call, with `.vjp`, `.no_grad` and `.op` on it.

    Args:
        result: the dtype rule (`promote`, `floating`, `comparison`, ...), by default the operands' common dtype.
        shape: the shape rule `(op name, shapes..., **attributes) -> Size`; None asks the backend afterwards.
        kernel: the kernel that the body consists of, when it is only that; it is then called directly.
        dtypes: the kinds (of "buifc") that the op computes in.
        view: the result shares memory with the first operand.
        outputs: names of the outputs, when there are several; the first `differentiable` have gradients.
        holomorphic: False when the formulas treat complex numbers themselves (abs, real, conj, ...).
        check: called as `check(op name, operands..., **attributes)` once dtypes are settled.
        grad_name: the name of the grad_fn, when it is not the op's own.
        grad_name_of: called with a node, returns the name of this one, where PyTorch has several functions for the op.
        scalars: whether Python numbers may stand for operands, by default for elementwise ops; "alone" also for all of them.
        name: the op's name, when the body's is taken.
        scatter: for a view, `scatter(k, x, part, **attributes)` returns x with what the view shows replaced by part.
        strides: for a view, `strides(shape, strides, **attributes)` returns the view's strides.
        fixed: inputs such as indices and conditions that keep their dtype and take no part in promotion.
        number: the rule for Python numbers, by default that integer dtypes take those that they can hold.
        operand: called as `operand(op, dtype)` with the dtypes of a number and of the tensor beside it, to refuse some.
        keeps_format: of how many dims the first operand may be whose memory format the results of as many dims have too.
    """

    def declare(body: Callable[..., Any]) -> Any:
        allow = shape is broadcast if scalars is None else scalars
        made = Op(
            body, result=result, shape=shape, kernel=kernel, dtypes=dtypes, view=view, outputs=outputs or ("out",),
            differentiable=differentiable, holomorphic=holomorphic, check=check, grad_name=grad_name, scalars=allow,
            grad_name_of=grad_name_of, name=name, scatter=scatter, strides=strides, fixed=fixed, number=number,
            operand=operand, keeps_format=keeps_format,
        )  # fmt: skip
        plain = not (made.variadic or outputs or view or check or fixed or shape is None)
        count = len(made.inputs)
        if view and count == 1 and result is promote and made.attrs:
            fn: Any = viewing(made)
        elif plain and made.attrs and count == 1:
            fn = unary_with_attributes(made)
        elif plain and not made.attrs and (count == 2 or (count == 1 and shape in (same, to_scalar))):
            fn = (unary, binary)[count - 1](made)
        else:
            fn = general(made)
        functools.update_wrapper(fn, body, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
        del fn.__wrapped__
        fn.op, fn.vjp, fn.no_grad = made, made.vjp, made.no_grad
        made.fn = fn
        TENSOR_KERNELS.define(kernel or made.name, fn)
        return fn

    return declare
