"""Op and `@op`: one block holds an operation's body, dtype rule, shape rule and gradient formulas.

The call path is compiled once per operation: `unary`, `binary` and `general` below return the function that users call.
Each starts with the case that matters (tensors of one backend and one dtype: kernel, wrap, record if needed) and leaves
everything else (Python numbers, promotion, errors) to `slow`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from mortice import graph
from mortice.backends.kernels import FreeKernels
from mortice.device import Device
from mortice.dtype import (
    DType,
    bool_,
    get_default_dtype,
    iinfo,
    int64,
    promote_scalar,
    promote_types,
    scalar_dtype,
)
from mortice.errors import DeviceError, DTypeError
from mortice.graph import RELEASED, SECOND_BACKWARD, Algebra, Extra, Node, PackedValue, Slot, next_seq
from mortice.modes import modes, saved_hooks, special
from mortice.shape import SCALAR, Size, broadcast, reduced_shape
from mortice.tensor import TensorBase, make

OPS: dict[str, Op] = {}

# ---- dtype rules: (op, dtype of the operands together) -> (dtype to compute in, dtype of the result) ----

Rule = Callable[["Op", DType], tuple[DType, Any]]


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


def reduced(name: str, shape: Size, *, axis: Any, keepdims: bool, **attrs: Any) -> Size:
    """Without the reduced axes, or with them as 1."""
    if axis is None and not keepdims:
        return SCALAR
    dims = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return reduced_shape(shape, dims, keepdims)


class Const:
    """A saved operand that is no tensor: a Python number or None."""

    __slots__ = ("_data",)
    _storage = _node = None
    _rg = False
    shape = ()

    def __init__(self, value: Any) -> None:
        self._data = value


def _saved_tensor(s: Any) -> Any:
    return s._data if type(s) is Const else s.tensor() if type(s) is PackedValue else s


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


Plan = tuple[tuple[bool, ...], bool, bool]


class Plans(dict[Any, Plan]):
    """What an op keeps for backward, by which inputs want gradients; found at first use."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __missing__(self, needs: tuple[bool, ...]) -> Plan:
        found = self[needs] = self.op.make_plan(needs)
        return found


class Op:
    """An operation: everything the core knows about it."""

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
        scalars: bool,
        name: str | None,
        scatter: Callable[..., Any] | None,
        strides: Callable[..., Any] | None,
        fixed: tuple[str, ...],
    ) -> None:
        self.name = (name or body.__name__).strip("_")
        self.body, self.result, self.shape, self.kernel, self.dtypes = body, result, shape, kernel, dtypes
        self.view, self.outputs, self.holomorphic, self.check, self.scalars = view, outputs, holomorphic, check, scalars
        self.differentiable = len(outputs) if differentiable is None else differentiable
        self.grad_name = grad_name or "".join(p.capitalize() for p in self.name.split("_")) + "Backward0"
        self.doc = body.__doc__
        self.scatter, self.strides = scatter, strides
        positional, star, self.attrs = signature(body)
        self.variadic = bool(star)
        self.inputs = positional[1:] + star
        self.fixed = frozenset(i for i, n in enumerate(self.inputs) if n in fixed)
        self.formulas: dict[str, Formula] = {}
        self.by_position: list[Any] = []
        self.joint: Formula | None = None
        self.kept: set[int] = set()  # numbers of the outputs that formulas ask for
        self.no_grad_reason: str | None = None
        self.jvp: Any = None
        self.plans = Plans(self)
        self.plan_one: Plan | None = None
        self.node_class: Any = None
        self.same_dtype: dict[DType, Any] = {}
        self.fn: Any = None
        if self.name in OPS:
            raise TypeError(f"op {self.name!r} is defined twice.")
        OPS[self.name] = self

    # ---- gradients ----

    def vjp(self, joint: Callable[..., Any] | None = None, /, *, jvp: Any = None, **formulas: Callable[..., Any]) -> None:
        """Give one formula per input by its name, or one function that returns all gradients as a tuple."""
        self.jvp = jvp
        if joint is not None:
            self.joint = Formula(self, joint)
        for name, fn in formulas.items():
            if name not in self.inputs:
                raise TypeError(f"{self.name}.vjp: no input is called {name!r}; inputs: {', '.join(self.inputs)}.")
            self.formulas[name] = Formula(self, fn)
        self.by_position = [self.formulas.get(name) for name in self.inputs]
        self.kept = set().union(*(f.out for f in (self.joint, *self.formulas.values()) if f is not None))

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

    def make_node_class(self) -> Any:
        """Make the class of the op's nodes: users look at `type(t.grad_fn).__name__`."""
        self.node_class = type(self.grad_name, (OpNode,), {"__slots__": ()})
        return self.node_class

    # ---- dtypes ----

    def rule(self, d: DType) -> tuple[DType, Any]:
        """Return (compute dtype, result dtype) for operands of dtype `d`; refuse dtypes that the op does not take."""
        assert self.result is not None
        compute, result = self.result(self, d)
        if compute.kind not in self.dtypes:
            kinds = {"b": "bool", "u": "unsigned integer", "i": "integer", "f": "floating point", "c": "complex"}
            names = ", ".join(kinds[kind] for kind in self.dtypes)
            raise DTypeError(f"{self.name}: not implemented for {d.name}; got {d}. Convert to one of: {names}.")
        if compute is d:
            self.same_dtype[d] = result
        return compute, result

    def __repr__(self) -> str:
        return f"<op {self.name}>"


class Meta(tuple[Any, ...]):
    """The shape and dtype of each output of a node that has several, and weak references to their Slots."""

    slots: list[Any]


class PackedOut:
    """The kept outputs of a node in the care of saved tensor hooks, read like the tuple of buffers."""

    def __init__(self, values: dict[int, PackedValue]) -> None:
        self.values = values

    def __getitem__(self, number: int) -> Any:
        return self.values[number]._data


class OpNode(Node):
    """The node of a recorded Op. `shape` and `dtype` are the gradient's; `meta` has every output's, if several."""

    __slots__ = ("op", "saved", "out", "attrs", "shapes", "versions", "meta")
    op: Op
    saved: Any  # per input a Tensor or Const, None where no formula asks for it
    out: Any  # the output buffers, None where no formula asks for them
    attrs: Any
    shapes: Any
    versions: Any  # of `saved` when recorded; None while nobody had written or shared them
    meta: Any

    @property
    def count(self) -> int:
        """How many outputs have gradients."""
        return self.op.differentiable

    def name(self) -> str:
        return self.op.grad_name

    def needs(self) -> tuple[bool, ...]:
        """Return which inputs want a gradient."""
        return tuple([e is not None for e in self.edges])

    def release(self) -> None:
        # A node that kept nothing can run again, as in PyTorch.
        if self.out is not None:
            self.saved = self.out = RELEASED
            return
        for s in self.saved:
            if s is not None:
                self.saved = self.out = RELEASED
                return

    def note_storage(self, number: int, storage: Any) -> None:
        if self.out is not None and self.out is not RELEASED and number in self.op.kept:
            self.more().storages[number] = (storage, storage.version)

    def owns(self, g: Any, pulled: Sequence[Any]) -> bool:
        if not self.device.backend.owns(g) or sum([p is g for p in pulled]) > 1 or (self.extra and self.extra.packed):
            return False
        return not any([s is not None and s._data is g for s in self.saved] + [o is g for o in self.out or ()])

    def without(self, keep: tuple[bool, ...]) -> Node:
        edges = tuple([e if k else None for e, k in zip(self.edges, keep)])
        if edges == self.edges:
            return self
        twin = new(OpNode)
        for name in ("seq", "device", "shape", "dtype", "op", "saved", "out", "attrs", "shapes", "versions", "meta"):
            setattr(twin, name, getattr(self, name))
        twin.edges = edges
        twin.extra = Extra()
        twin.extra.origin = self
        if self.extra is not None:
            twin.extra.storages, twin.extra.packed = self.extra.storages, self.extra.packed
        return twin

    def out_tensor(self, number: int) -> Any:
        """Return the kept output as a Tensor in the graph; made anew so that the node never owns its output."""
        shape, d = (self.shape, self.dtype) if self.meta is None else self.meta[number]
        t = make(self.out[number], self.device, d, shape)
        if number < self.op.differentiable:
            node = self if self.extra is None or self.extra.origin is None else self.extra.origin
            t._rg, t._node = True, node
            if self.op.differentiable > 1:
                t._node = self.meta.slots[number]() or Slot(node, number, self.device, shape, d)
        return t

    def check(self) -> None:
        """Refuse to use values that were freed, or written since they were saved."""
        if self.saved is RELEASED:
            raise RuntimeError(SECOND_BACKWARD)
        for i, s in enumerate(self.saved):
            if s is not None and s._storage is not None:
                expected = 0 if self.versions is None else self.versions[i]
                if s._version != expected:
                    raise RuntimeError(modified_in_place(s.dtype, s.shape, s._version, expected, s._node))
        for number, (storage, version) in self.extra.storages.items() if self.extra else ():
            if storage.version != version:
                shape, d = (self.shape, self.dtype) if self.meta is None else self.meta[number]
                raise RuntimeError(modified_in_place(d, shape, storage.version, version, self, number))

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        saved, extra = self.saved, self.extra
        if saved is RELEASED or extra is not None:
            self.check()
            if extra is not None and extra.packed:
                try:
                    return self._pull_any(g, graph)
                finally:
                    for packed in extra.packed:
                        packed.cache = None
        else:
            for s in saved:
                if s is not None and s._storage is not None:
                    self.check()
                    break
        op = self.op
        if graph or self.meta is not None or op.joint is not None or self.dtype.is_complex:
            return self._pull_any(g, graph)
        # What follows is `_pull` spelled out for the usual case: buffers, one formula an input, one real output.
        k = self.device.backend
        formulas, shapes = op.by_position, self.shapes
        out: list[Any] = []
        i = 0
        for edge in self.edges:
            if edge is None:
                out.append(None)
            else:
                formula = formulas[i]
                p = formula.raw(formula.fn, k, g, self)
                if shapes is not None and op.shape is broadcast and shapes[i] != self.shape and p is not None:
                    p = unbroadcast(k, p, shapes[i])
                out.append(p)
            i += 1
        return out

    def _pull_any(self, g: Any, graph: bool) -> Sequence[Any]:
        op = self.op
        k: Any = TENSOR_KERNELS if graph else self.device.backend
        if self.meta is not None:
            if op.differentiable > 1:
                g = self._all_outputs(g, graph)
            return self._pull(k, g, graph)
        if self.dtype.is_complex and op.holomorphic:
            # Formulas are J^T g; for a holomorphic op the gradient is J^H g = conj(J^T conj(g)).
            return [p if p is None else k.conj(p) for p in self._pull(k, k.conj(g), graph)]
        return self._pull(k, g, graph)

    def _pull(self, k: Any, g: Any, graph: bool) -> Sequence[Any]:
        op = self.op
        if op.joint is not None:
            formula = op.joint
            pulled = (formula.graph if graph else formula.raw)(formula.fn, k, g, self)
            return [p if e is not None else None for p, e in zip(pulled, self.edges)]
        shapes = self.shapes if op.shape is broadcast else None
        out: list[Any] = []
        i = 0
        for edge in self.edges:
            if edge is None:
                out.append(None)
            else:
                formula = op.by_position[i]
                p = formula.graph(formula.fn, k, g, self) if graph else formula.raw(formula.fn, k, g, self)
                if shapes is not None and shapes[i] != self.shape and p is not None:
                    p = unbroadcast(k, p, shapes[i])
                out.append(p)
            i += 1
        return out

    def _all_outputs(self, g: list[Any], graph: bool) -> tuple[Any, ...]:
        """Return every output's gradient, zeros for those that none flowed into."""
        algebra = graph_algebra if graph else raw_algebra
        found = []
        for (shape, d), gi in zip(self.meta, g):
            found.append(algebra.zeros(shape, d, self.device) if gi is None else gi)
        return tuple(found)


def modified_in_place(d: Any, shape: Any, version: int, expected: int, node: Any = None, number: int = 0) -> str:
    """Return PyTorch's message about an overwritten saved value; `node` is the one that made it."""
    maker = ""
    if node is not None:
        number = node.number if isinstance(node, Slot) else number
        maker = f", which is output {number} of {node.name().partition('Backward')[0] or node.name()},"
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{d} {list(shape)}]{maker} is at version {version}; expected version {expected} instead. Hint: enable anomaly "
        "detection to find the operation that failed to compute its gradient, with "
        "mortice.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def unbroadcast(k: Any, g: Any, shape: Size) -> Any:
    """Sum a gradient back to the shape that was broadcast."""
    have = k.shape_of(g)
    if have == shape:
        return g
    lead = len(have) - len(shape)
    if not shape and lead:
        return k.sum(g, axis=None, keepdims=False)
    axes = tuple(i for i in range(len(have)) if i < lead or (shape[i - lead] == 1 and have[i] != 1))
    if axes:
        g = k.sum(g, axis=axes, keepdims=True)
    return k.reshape(g, shape) if lead else g


# ---- the two algebras of the engine ----


class _Raw(Algebra):
    def add(self, like: Any, x: Any, y: Any) -> Any:
        if isinstance(x, list):
            return [b if a is None else a if b is None else like.device.backend.add(a, b) for a, b in zip(x, y)]
        device = like._device if isinstance(like, TensorBase) else like.device
        return device.backend.add(x, y)

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        return device.backend.full(shape, 0, dtype=dtype, device=device)

    def wrap(self, g: Any, like: Any) -> Any:
        return make(g, like._device if isinstance(like, TensorBase) else like.device, like.dtype, like.shape)

    def wrap_any(self, g: Any, device: Any) -> Any:
        k = device.backend
        return make(g, device, k.dtype_of(g), Size(k.shape_of(g)))

    def unwrap(self, g: Any) -> Any:
        return g._data

    def fresh(self, g: Any, device: Any) -> Any:
        return device.backend.copy(g)

    def add_into(self, total: Any, g: Any) -> Any:
        WRITE(total, total._device.backend.add(total._data, g), True)
        return total

    def has_nan(self, g: Any, like: Any) -> bool:
        k = (like._device if isinstance(like, TensorBase) else like.device).backend
        return bool(k.item(k.any(k.isnan(g))))


class _Graph(Algebra):
    def add(self, like: Any, x: Any, y: Any) -> Any:
        if isinstance(x, list):
            return [b if a is None else a if b is None else a + b for a, b in zip(x, y)]
        return x + y

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        return make(raw_algebra.zeros(shape, dtype, device), device, dtype, shape)

    def wrap(self, g: Any, like: Any) -> Any:
        return g

    def wrap_any(self, g: Any, device: Any) -> Any:
        return g

    def unwrap(self, g: Any) -> Any:
        return g

    def fresh(self, g: Any, device: Any) -> Any:
        return TENSOR_KERNELS.copy(g)

    def add_into(self, total: Any, g: Any) -> Any:
        return total + g

    def has_nan(self, g: Any, like: Any) -> bool:
        return raw_algebra.has_nan(g._data, g)


raw_algebra, graph_algebra = _Raw(), _Graph()
graph.install(raw_algebra, graph_algebra)


# ---- recording ----

new = object.__new__


def record(op: Op, args: Sequence[Any], attrs: Any, out: Any, t: Any) -> None:
    """Give the result `t` (a tensor, or a tuple of them) of buffers `out` a node. Plain numbers come as Const."""
    if op.no_grad_reason is not None or (type(t) is not tuple and t.dtype.kind not in "fc"):
        return
    node = new(op.node_class or op.make_node_class())
    node.seq = next_seq()
    node.op = op
    node.attrs = attrs
    node.extra = node.versions = node.shapes = node.meta = None
    node.edges = tuple([None if not a._rg else a if a._node is None else a._node for a in args])
    keep, keep_out, shapes = op.plans[() if op.variadic else tuple([a._rg for a in args])]
    node.saved = saved = tuple([a if k else None for a, k in zip(args, keep)])
    for s in saved:
        if s is not None and s._storage is not None:
            node.versions = tuple([0 if v is None or v._storage is None else v._version for v in saved])
            break
    if shapes or op.shape is broadcast:
        node.shapes = tuple([a.shape for a in args])
    if type(t) is tuple:
        node.meta = Meta([(r.shape, r.dtype) for r in t])
        node.device = t[0]._device
        # Only the outputs that formulas ask for: the first, that of a normalisation, may be big and be written in place.
        node.out = tuple([o if i in op.kept else None for i, o in enumerate(out)]) if keep_out else None
        node.shape, node.dtype = node.meta[0]
        if op.differentiable == 1:
            t[0]._rg, t[0]._node = True, node
        else:
            slots = node.meta.slots = []
            for i in range(op.differentiable):
                r = t[i]
                r._rg, r._node = True, Slot(node, i, r._device, r.shape, r.dtype)
                slots.append(ref(r._node))
    else:
        node.device, node.shape, node.dtype = t._device, t.shape, t.dtype
        node.out = (out,) if keep_out else None
        t._rg, t._node = True, node
    if special[0] and modes.watched:
        watch_node(node, t)


def record_two(op: Op, x: Any, y: Any, out: Any, t: Any) -> None:
    """Do what `record` does, for the commonest case: two operands, one output, no attributes."""
    xr, yr = x._rg, y._rg
    keep, keep_out, shapes = op.plans[xr, yr]
    node = new(op.node_class or op.make_node_class())
    node.seq = next_seq()
    node.op = op
    node.edges = (None if not xr else x._node or x, None if not yr else y._node or y)
    keep_x, keep_y = keep
    node.saved = (x if keep_x else None, y if keep_y else None)
    if (keep_x and x._storage is not None) or (keep_y and y._storage is not None):
        node.versions = tuple([0 if s is None or s._storage is None else s._version for s in node.saved])
    else:
        node.versions = None
    node.shapes = (x.shape, y.shape) if shapes or x.shape != y.shape else None
    node.attrs = node.extra = node.meta = None
    node.device = t._device
    node.shape = t.shape
    node.dtype = t.dtype
    node.out = (out,) if keep_out else None
    t._rg = True
    t._node = node
    if special[0] and modes.watched:
        watch_node(node, t)


def record_one(op: Op, x: Any, out: Any, t: Any, attrs: Any = None) -> None:
    """Do what `record` does, for one operand and one output."""
    (keep_x,), keep_out, shapes = op.plan_one or op.find_plan_one()
    node = new(op.node_class or op.make_node_class())
    node.seq = next_seq()
    node.op = op
    node.edges = (x._node or x,)
    node.saved = (x if keep_x else None,)
    node.versions = (x._version,) if keep_x and x._storage is not None else None
    node.shapes = (x.shape,) if shapes else None
    node.attrs = attrs
    node.extra = node.meta = None
    node.device = t._device
    node.shape = t.shape
    node.dtype = t.dtype
    node.out = (out,) if keep_out else None
    t._rg = True
    t._node = node
    if special[0] and modes.watched:
        watch_node(node, t)


ONE = (True,)


def watch_node(node: OpNode, t: Any) -> None:
    """Do what few recordings ask for: keep the line being run (anomaly detection), hand saved values to hooks."""
    if modes.anomaly:
        node.more().trace = graph.forward_trace()
    hooks = saved_hooks()
    if hooks is None:
        return
    packed: list[PackedValue] = []

    def pack(s: Any, target: Any) -> PackedValue:
        packed.append(PackedValue(s, target, *hooks))
        return packed[-1]

    node.saved = tuple([pack(s, s._node or s) if isinstance(s, TensorBase) else s for s in node.saved])
    if node.out is not None:
        op = node.op
        formulas = [op.joint] if op.joint else [f for f, e in zip(op.by_position, node.edges) if f and e is not None]
        outs = t if type(t) is tuple else (t,)
        numbers = set().union(*(f.out for f in formulas))
        node.out = None  # the outputs are shown to the hook without being watched
        node.out = PackedOut({i: pack(outs[i], None) for i in sorted(numbers)})
    if packed:
        node.more().packed = packed


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
    out = device.table[op](*buffers, **attrs)
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
    storage.aliases.append(ref(t))
    if len(storage.aliases) > storage.pruned:
        storage.prune()
    if special[0] and not modes.grad and not t._note:
        t._note = "no_grad"


def as_view(op: Op, x: Any, data: Any, shape: Any, attrs: Any) -> Any:
    """Wrap the buffer of a view that is already made: the short way for reshape and slices, `link_view` spelled out.

    `attrs` None stands for {"shape": shape}, which is then made only where somebody asks.
    """
    t = new(TensorBase.cls)
    t._data = data
    t._device = x._device
    t.dtype = x.dtype
    t.shape = size = Size(shape)
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
    if aliases[-1]() is None:  # the usual case: the view before this one has gone
        aliases[-1] = ref(t)
    else:
        aliases.append(ref(t))
        if len(aliases) > storage.pruned:
            storage.prune()
    if x._rg:
        if not special[0] or modes.grad:
            record_one(op, x, data, t, attrs)
        elif not t._note:
            t._note = "no_grad"
    elif special[0] and not modes.grad and not t._note:
        t._note = "no_grad"
    return t


def foreign(op: Op, value: Any) -> TypeError:
    """Return the error for an operand that is no tensor and no number."""
    return TypeError(f"{op.name}: expected Tensors or numbers; got {type(value).__name__}. Use mortice.tensor(...) first.")


def check_device(op: Op, x: Any, y: Any) -> None:
    """Refuse operands of different devices or backends."""
    a, b = x._device, y._device
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


def fit_number(op: Op, value: Any, d: DType) -> Any:
    """Return a Python number as the compute dtype takes it."""
    kind = d.kind
    if kind == "f":
        return float(value) if not isinstance(value, complex) else value
    if kind == "c":
        return complex(value)
    if kind == "b":
        return bool(value)
    value = int(value)
    limits = _LIMITS.get(d) or _LIMITS.setdefault(d, iinfo(d))
    if kind == "u" and -limits.max <= value < 0:
        return value + limits.max + 1  # PyTorch lets negative numbers wrap in unsigned types
    if not limits.min <= value <= limits.max:
        raise RuntimeError(f"{op.name}: value cannot be converted to type {d.name} without overflow; got {value}.")
    return value


_LIMITS: dict[DType, iinfo] = {}


def slow(op: Op, args: Sequence[Any], attrs: dict[str, Any], out: Any = None) -> Any:
    """Apply an op to operands as the user gave them: promote, convert numbers, check devices; write `out`."""
    tensors, numbers = [], []
    args = list(args)
    for i, a in enumerate(args):
        if isinstance(a, TensorBase):
            tensors.append(a)
        elif isinstance(a, (int, float, complex)):
            numbers.append(a)
        elif a is not None:
            args[i] = converted = as_operand(op, a)
            (tensors if isinstance(converted, TensorBase) else numbers).append(converted)
    if not tensors or (numbers and not op.scalars):
        got = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"{op.name}: expected {'a Tensor' if not tensors else 'Tensors'}; got {got}.")
    first = tensors[0]
    kept = [args[i] for i in op.fixed if i < len(args)]
    moving = [t for t in tensors if not any(t is f for f in kept)]
    d = moving[0].dtype if moving else scalar_dtype(numbers[0])
    for t in tensors[1:]:
        check_device(op, first, t)
    for t in moving[1:]:
        if t.dtype is not d:
            d = promote_types(d, t.dtype)
    for value in numbers:
        d = promote_scalar(d, value)
    compute, result = op.rule(d)
    for i, a in enumerate(args):
        if i in op.fixed:
            continue
        if isinstance(a, TensorBase):
            if a.dtype is not compute:
                args[i] = CAST(a, compute)
        elif a is not None:
            args[i] = fit_number(op, a, compute)
    if op.check is not None:
        op.check(op.name, *args, **attrs)
    t = run(op, args, attrs, result)
    return t if out is None else WRITE_OUT(op.name, out, t)


def as_operand(op: Op, value: Any) -> Any:
    """Turn an operand of another library into a number, if it is one; refuse the rest."""
    if hasattr(value, "__index__"):
        return value.__index__()
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    if getattr(value, "ndim", None) == 0 and hasattr(value, "__float__"):
        return float(value)
    raise foreign(op, value)


# Filled in by `ops.movement` (the cast) and `mutation` (writing into a given tensor): both are written with ops.
CAST: Callable[..., Any] = slow
WRITE_OUT: Callable[..., Any] = slow
WRITE: Callable[..., Any] = slow


def unary(op: Op) -> Callable[..., Any]:
    """Compile an op of one tensor without attributes, whose shape is the tensor's or none."""
    same_dtype = op.same_dtype
    elementwise = op.shape is same

    def call(input: Any, *, out: Any = None) -> Any:
        try:
            result = same_dtype.get(input.dtype)
            device = input._device
        except AttributeError:
            return slow(op, (input,), {}, out)
        if result is None or out is not None or (special[0] and modes.inference):
            return slow(op, (input,), {}, out)
        data = device.table[op](input._data)
        t = new(TensorBase.cls)
        t._data = data
        t._device = device
        t.dtype = result
        t.shape = input.shape if elementwise else SCALAR
        t._rg = False
        t._node = t._storage = t._leaf = None
        if input._rg and (not special[0] or modes.grad) and op.no_grad_reason is None:
            record_one(op, input, data, t)
        return t

    return call


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
                or (result := same_dtype.get(input.dtype)) is None
                or out is not None
                or (special[0] and modes.inference)
            ):
                return fallback(op, input, other, out)
            if (shape := input.shape) != other.shape or shape_rule is not broadcast:
                shape = shape_rule(op.name, shape, other.shape)
        except AttributeError:
            kind = type(other)
            if (kind is float or kind is int) and out is None and isinstance(input, TensorBase):
                return with_number(input, other, False)
            kind = type(input)
            if (kind is float or kind is int) and out is None and isinstance(other, TensorBase):
                return with_number(other, input, True)
            return fallback(op, input, other, out)
        data = device.table[op](input._data, other._data)
        t = new(TensorBase.cls)
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
        result = same_dtype.get(x.dtype)
        if result is None or x.dtype.kind != "f" or not op.scalars or (special[0] and modes.inference):
            return slow(op, (value, x) if swapped else (x, value), {})
        device = x._device
        data = device.table[op](value, x._data) if swapped else device.table[op](x._data, value)
        t = make(data, device, result, x.shape)
        if x._rg and (not special[0] or modes.grad) and op.no_grad_reason is None:
            value = Const(value)
            if swapped:
                record_two(op, value, x, data, t)
            else:
                record_two(op, x, value, data, t)
        return t

    return call


def unary_with_attributes(op: Op) -> Callable[..., Any]:
    """Compile an op of one tensor and attributes, with one output and a shape rule."""
    same_dtype = op.same_dtype
    shape_rule: Any = op.shape

    def call(input: Any, *, out: Any = None, **attrs: Any) -> Any:
        try:
            result = same_dtype.get(input.dtype)
            device = input._device
        except AttributeError:
            return slow(op, (input,), attrs, out)
        if result is None or out is not None or (special[0] and modes.inference):
            return slow(op, (input,), attrs, out)
        shape = shape_rule(op.name, input.shape, **attrs)
        data = device.table[op](input._data, **attrs)
        t = new(TensorBase.cls)
        t._data = data
        t._device = device
        t.dtype = result
        t.shape = shape
        t._rg = False
        t._node = t._storage = t._leaf = None
        if input._rg and (not special[0] or modes.grad) and op.no_grad_reason is None:
            record_one(op, input, data, t, attrs)
        return t

    return call


def general(op: Op) -> Callable[..., Any]:
    """Compile any other op: attributes as keywords, any number of operands."""
    fixed = op.fixed

    def call(*args: Any, out: Any = None, **attrs: Any) -> Any:
        if out is None and op.check is None:
            try:
                first = args[0]
                d = first.dtype
                result = None if 0 in fixed else op.same_dtype.get(d)
                if result is not None:
                    device = first._device
                    i = 0
                    for a in args[1:]:
                        i += 1
                        if a is not None and (a._device is not device or (a.dtype is not d and i not in fixed)):
                            break
                    else:
                        return run(op, args, attrs, result)
            except (AttributeError, IndexError):
                pass
        return slow(op, args, attrs, out)

    return call


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
    scalars: bool | None = None,
    name: str | None = None,
    scatter: Callable[..., Any] | None = None,
    strides: Callable[..., Any] | None = None,
    fixed: tuple[str, ...] = (),
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
        scalars: whether Python numbers may stand for operands; by default for elementwise ops.
        name: the op's name, when the body's is taken.
        scatter: for a view, `scatter(k, x, part, **attributes)` returns x with what the view shows replaced by part.
        strides: for a view, `strides(shape, strides, **attributes)` returns the view's strides.
        fixed: inputs such as indices and conditions that keep their dtype and take no part in promotion.
    """

    def declare(body: Callable[..., Any]) -> Any:
        allow = shape is broadcast if scalars is None else scalars
        made = Op(
            body, result=result, shape=shape, kernel=kernel, dtypes=dtypes, view=view, outputs=outputs or ("out",),
            differentiable=differentiable, holomorphic=holomorphic, check=check, grad_name=grad_name, scalars=allow,
            name=name, scatter=scatter, strides=strides, fixed=fixed,
        )  # fmt: skip
        plain = not (made.variadic or outputs or view or check or fixed or shape is None)
        count = len(made.inputs)
        if plain and made.attrs and count == 1:
            fn: Any = unary_with_attributes(made)
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


# ---- kernels that speak Tensors ----


class TensorKernels(FreeKernels):
    """The kernel namespace over Tensors: ops by kernel name, and default bodies for what has no op of its own."""

    name = "tensor"

    def define(self, kernel: str, fn: Callable[..., Any]) -> None:
        """Let `fn` stand for that kernel."""
        self.__dict__.setdefault(kernel, fn)

    def replace(self, kernel: str, fn: Callable[..., Any]) -> None:
        """Let `fn` stand for that kernel, where the op's own function takes its attributes otherwise."""
        self.__dict__[kernel] = fn

    def shape_of(self, x: Any) -> Size:
        return x.shape  # type: ignore[no-any-return]

    def dtype_of(self, x: Any) -> DType:
        return x.dtype  # type: ignore[no-any-return]

    def device_of(self, x: Any) -> Device:
        return x._device  # type: ignore[no-any-return]

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Device) -> Any:
        return make(device.backend.full(shape, value, dtype=dtype, device=device), device, dtype, Size(shape))

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Device) -> Any:
        data = device.backend.arange(start, stop, step, dtype=dtype, device=device)
        return make(data, device, dtype, Size(device.backend.shape_of(data)))


TENSOR_KERNELS = TensorKernels()
