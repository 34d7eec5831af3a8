"""The recorded side of an Op: its node, how it is recorded, and the kernel namespace that speaks Tensors.

`op.py` says what an operation is and `call.py` calls it; here is what stays behind for backward.
"""

from __future__ import annotations

import functools
from importlib import import_module

from mortice import graph
from mortice.backends.backend import any_channels_last, channels_last, with_channels_last
from mortice.backends.kernels import FreeKernels
from mortice.catalog import TENSOR_KERNELS as CATALOG
from mortice.device import Device
from mortice.dtype import DType, float32
from mortice.graph import RELEASED, SECOND_BACKWARD, Algebra, Extra, Node, Slot, give_slots, next_seq
from mortice.lazy import look_up
from mortice.modes import modes, special
from mortice.shape import Size, broadcast
from mortice.strides import layout
from mortice.tensor import TensorBase, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mortice.op import Op


def _not_yet(*args: Any) -> Any:
    raise RuntimeError("mortice: tensors cannot be written before the package is imported.")


# Filled in by `mutation`, which is written with ops.
WRITE: Callable[..., Any] = _not_yet


class Const:
    """A saved operand that is no tensor: a Python number or None."""

    __slots__ = ("_buffer",)
    _storage = _node = None
    _rg = False
    shape = ()

    def __init__(self, value: Any) -> None:
        self._buffer = value

    def is_inference(self) -> bool:
        return False


def _saved_tensor(s: Any) -> Any:
    return s._buffer if type(s) is Const else s if isinstance(s, TensorBase) else s.tensor()  # of a `saved.PackedValue`


class Meta(tuple):  # type: ignore[type-arg]
    """The shape and dtype of each output of a node that has several, and weak references to their Slots."""

    slots: list[Any]


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
        return type(self.seen()).__name__

    def seen(self) -> Node:
        op = self.op
        if op.grad_name_of is not None and type(self) is op.node_class and (name := op.grad_name_of(self)) != op.grad_name:
            self.__class__ = op.class_named(name)
        return self

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that gradients go to next, each with its output number; none for indices and conditions."""
        found, fixed = Node.next_functions.fget(self), self.op.fixed  # type: ignore[attr-defined]
        if self.op.parts is not None:
            extra = self.more()
            extra.parts = extra.parts or self.op.parts(self, *found)  # always the same ones: tools tell nodes by identity
            return extra.parts
        return tuple([f for i, f in enumerate(found) if i not in fixed or f[0] is not None])

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
        return not any([s is not None and s._buffer is g for s in self.saved] + [o is g for o in self.out or ()])

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

    def input_tensor(self, number: int) -> Any:
        """Return a kept operand as a Tensor in the graph, a number as it is; None where it was not kept."""
        s = self.saved[number]
        return None if s is None else _saved_tensor(s)

    def out_tensor(self, number: int) -> Any:
        """Return the kept output as a Tensor in the graph; made anew so that the node never owns its output."""
        shape, d = (self.shape, self.dtype) if self.meta is None else self.meta[number]
        kept = self.out[number]
        t = kept() if type(kept) is functools.partial else make(kept, self.device, d, shape)  # of a class that says what it is
        if number < self.op.differentiable:
            node = self if self.extra is None or self.extra.origin is None else self.extra.origin
            t._rg, t._node = True, node.place(number)
        return t

    def place(self, number: int) -> Any:
        if self.op.differentiable == 1:
            return self
        shape, d = self.meta[number]
        return self.meta.slots[number]() or Slot(self, number, self.device, shape, d)

    def watch(self, t: Any) -> None:
        """Do what few recordings ask for: keep the line being run (anomaly detection), hand saved values to hooks."""
        from mortice.saved import watch

        watch(self, t)

    def check(self) -> None:
        """Refuse to use values that were freed, or written since they were saved."""
        if self.saved is RELEASED:
            raise RuntimeError(SECOND_BACKWARD)
        for i, s in enumerate(self.saved):
            if s is not None and s._storage is not None:
                expected = 0 if self.versions is None else self.versions[i]
                if s._version != expected:
                    from mortice.saved import modified_in_place

                    raise RuntimeError(modified_in_place(s.dtype, s.shape, s._version, expected, s._node))
        for number, (storage, version) in self.extra.storages.items() if self.extra else ():
            if storage._version != version:
                from mortice.saved import modified_in_place

                shape, d = (self.shape, self.dtype) if self.meta is None else self.meta[number]
                raise RuntimeError(modified_in_place(d, shape, storage._version, version, self, number))

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        saved, extra = self.saved, self.extra
        if saved is RELEASED or extra is not None:
            self.check()
            if extra is not None and extra.packed:
                try:
                    for packed in extra.packed:  # in the order they were packed
                        packed.load()
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
        if graph or self.meta is not None or op.joint is not None or self.dtype.is_complex or op.fixed:
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

    def pull_told(self, g: Any) -> Sequence[Any]:
        if self.device.level is not None:
            return self.pull(g, False)
        # The formulas run on tensors, so that modes are told of them; autocast is for the forward.
        tensor: Any = lambda b: b if b is None else raw_algebra.wrap_any(b, self.device)
        casting, modes.autocast = modes.autocast, None
        try:
            pulled = self.pull([tensor(b) for b in g] if isinstance(g, list) else tensor(g), True)
        finally:
            modes.autocast = casting
        return [p if p is None else p._buffer for p in pulled]

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
            return self._in_own_dtypes(k, [p if e is not None else None for p, e in zip(pulled, self.edges)])
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
                again = graph and modes.grad and not i and (op.zero_again(self) if callable(op.zero_again) else op.zero_again)
                out.append(_zero_again(p, edge) if again else p)
            i += 1
        return self._in_own_dtypes(k, out)

    def _in_own_dtypes(self, k: Any, pulled: list[Any]) -> list[Any]:
        """Cast gradients of operands that kept a dtype of their own, such as the float32 weight of a bfloat16 norm."""
        for i in self.op.fixed:
            edge = self.edges[i] if i < len(pulled) else None
            if edge is not None and pulled[i] is not None and k.dtype_of(pulled[i]) is not edge.dtype:
                pulled[i] = k.astype(pulled[i], edge.dtype)
        return pulled

    def _all_outputs(self, g: list[Any], graph: bool) -> tuple[Any, ...]:
        """Return every output's gradient, zeros for those that none flowed into."""
        algebra = graph_algebra if graph else raw_algebra
        found = []
        for (shape, d), gi in zip(self.meta, g):
            found.append(algebra.zeros(shape, d, self.device) if gi is None else gi)
        return tuple(found)


def named(t: Any, name: str) -> Any:
    """Give the node of a result, which must have been made just now, the name of PyTorch's function for what was done."""
    node = t._node
    if node is not None:
        node = node.parent if type(node) is Slot else node
        if isinstance(node, OpNode):
            node.__class__ = node.op.class_named(name)
    return t


def node_name(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function made of several ops: the nodes of what it returns have the name of PyTorch's one function."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            made = fn(*args, **kwargs)
            for t in made if isinstance(made, tuple) else (made,):
                named(t, name)
            return made

        return call

    return decorate


def numbered(name: str, i: int) -> Callable[[Any], str]:
    """Return the rule of ops that are functions 0 and 1 of PyTorch's name: 1 where operand i is a tensor with a gradient."""
    return lambda node: f"{name}Backward{int(node.edges[i] is not None)}"


class ZeroNode(Node):
    """The node of a gradient that depends on an operand of the op only where it jumps: that one's gradient is zeros."""

    __slots__ = ()

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        x = self.edges[1]  # which may be of a level below that of the gradient
        zeros = x.device.backend.full(x.shape, 0, dtype=x.dtype, device=x.device)
        return g, make(zeros, x.device, x.dtype, x.shape) if graph else zeros


def _zero_again(p: Any, edge: Any) -> Any:
    node = ZeroNode()
    node.seq, node.extra = next_seq(), None
    node.edges = ((p._node or p.note_use(node.seq)) if p._rg else None, edge)
    node.device, node.shape, node.dtype = p._device, p.shape, p.dtype
    made = make(p._buffer, p._device, p.dtype, p.shape)
    made._rg, made._node = True, node
    return made


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
        d = like.dtype if like.dtype.stored is like.dtype else float32
        return make(g, like._device if isinstance(like, TensorBase) else like.device, d, like.shape)

    def wrap_any(self, g: Any, device: Any) -> Any:
        k = device.backend
        return make(g, device, k.dtype_of(g), Size(k.shape_of(g)))

    def unwrap(self, g: Any) -> Any:
        return g._buffer

    def fresh(self, g: Any, device: Any) -> Any:
        return device.backend.copy(g)

    def add_into(self, total: Any, g: Any) -> Any:
        WRITE(total, total._device.backend.add(total._buffer, g), True)
        return total

    def has_nan(self, g: Any, like: Any) -> bool:
        k = (like._device if isinstance(like, TensorBase) else like.device).backend
        while hasattr(k, "_parts"):  # of all lanes of a batch
            k, g = k.inner, k._parts(g)
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
        return raw_algebra.has_nan(g._buffer, g)


raw_algebra, graph_algebra = _Raw(), _Graph()
graph.install(raw_algebra, graph_algebra)


# ---- recording ----

new = object.__new__
_NOTHING = (None, None)


def record(op: Op, args: Sequence[Any], attrs: Any, out: Any, t: Any) -> None:
    """Give the result `t` (a tensor, or a tuple of them) of buffers `out` a node. Plain numbers come as Const."""
    if op.no_grad_reason is not None or (type(t) is not tuple and t.dtype.kind not in "fc"):
        return
    node = (op.node_class or op.make_node_class())()
    node.seq = next_seq()
    node.op = op
    node.attrs = attrs
    node.extra = node.versions = node.shapes = node.meta = None
    node.edges = tuple([a._node or a.note_use(node.seq) if a._rg else None for a in args])
    keep, keep_out, shapes = op.plans[() if op.variadic else tuple([a._rg for a in args])]
    node.saved = saved = tuple([a if k else None for a, k in zip(args, keep)])
    _check_kept(saved)
    for s in saved:
        if s is not None and s._storage is not None:
            node.versions = tuple([0 if v is None or v._storage is None else v._version for v in saved])
            break
    if shapes is not False or op.shape is broadcast:
        node.shapes = _shapes(op, args, attrs)
    if type(t) is tuple:
        node.meta = Meta([(r.shape, r.dtype) for r in t])
        node.device = t[0]._device
        # Only the outputs that formulas ask for: the first, that of a normalisation, may be big and be written in place.
        node.out = tuple([o if i in op.kept else None for i, o in enumerate(out)]) if keep_out else None
        node.shape, node.dtype = node.meta[0]
        if keep_out:
            for i in op.kept_indices:  # no node of their own tells of writes to them
                node.more().storages[i] = (t[i], 0)
        if op.differentiable == 1:
            t[0]._rg, t[0]._node = True, node
        else:
            node.meta.slots = give_slots(node, t[: op.differentiable])
    else:
        node.device, node.shape, node.dtype = t._device, t.shape, t.dtype
        node.out = (out,) if keep_out else None
        t._rg, t._node = True, node
    if special[0] and modes.watched:
        node.watch(t)


def record_two(op: Op, x: Any, y: Any, out: Any, t: Any) -> None:
    """Do what `record` does, for the commonest case: two operands, one output, no attributes."""
    xr, yr = x._rg, y._rg
    plan = (op.plan_both if yr else op.plan_first) if xr else op.plan_second
    (keep_x, keep_y), keep_out, shapes = plan or op.find_plan_two(xr, yr)
    node = (op.node_class or op.make_node_class())()
    node.seq = next_seq()
    node.op = op
    node.edges = (
        None if not xr else x._node or x.note_use(node.seq), None if not yr else y._node or y.note_use(node.seq)
    )  # fmt: skip
    if keep_x or keep_y:
        node.saved = (x if keep_x else None, y if keep_y else None)
        if not (xr and yr):
            _check_kept(node.saved)
        of_x, of_y = x._storage if keep_x else None, y._storage if keep_y else None
        if of_x is None and of_y is None:
            node.versions = None
        else:
            node.versions = (of_x.version if of_x is not None else 0, of_y.version if of_y is not None else 0)
    else:
        node.saved, node.versions = _NOTHING, None
    node.shapes = (x.shape, y.shape) if shapes or x.shape != y.shape else None
    node.attrs = node.extra = node.meta = None
    node.device = t._device
    node.shape = t.shape
    node.dtype = t.dtype
    node.out = (out,) if keep_out else None
    t._rg = True
    t._node = node
    if special[0] and modes.watched:
        node.watch(t)


def record_one(op: Op, x: Any, out: Any, t: Any, attrs: Any = None) -> None:
    """Do what `record` does, for one operand and one output."""
    (keep_x,), keep_out, shapes = op.plan_one or op.find_plan_one()
    node = (op.node_class or op.make_node_class())()
    node.seq = next_seq()
    node.op = op
    node.edges = (x._node or x.note_use(node.seq),)
    node.saved = (x if keep_x else None,)
    node.versions = (x._version,) if keep_x and x._storage is not None else None
    node.shapes = _shapes(op, (x,), attrs) if shapes is not False else None
    node.attrs = attrs
    node.extra = node.meta = None
    node.device = t._device
    node.shape = t.shape
    node.dtype = t.dtype
    node.out = (out,) if keep_out else None
    t._rg = True
    t._node = node
    if special[0] and modes.watched:
        node.watch(t)


def _shapes(op: Op, args: Sequence[Any], attrs: Any) -> tuple[Any, ...]:
    """Return the operands' shapes, and whether their gradients have the channels last where that is asked."""
    if not op.format_asked:
        return tuple([a.shape for a in args])
    k = args[0]._device.backend
    buffers = [a._buffer for a in args[:2]]
    plain = k.is_contiguous(buffers[0]) and (len(buffers) == 1 or buffers[1] is None or k.is_contiguous(buffers[1]))
    return *[a.shape for a in args], not plain and any_channels_last(op, k, buffers, attrs)


def in_operand_format(pulled: Any, k: Any, node: Any) -> Any:
    """Return what a formula gives for one of the first two operands, or for all, in the format that `_shapes` has found.

    Never in that of the gradient that came in: programs `view` what they get for rows in order.
    """
    if type(pulled) is tuple:
        return in_operand_format(pulled[0], k, node), *pulled[1:]
    ndim = len(node.shapes[0])
    if pulled is None or node.shapes[-1]:
        return pulled if pulled is None else with_channels_last(k, pulled, ndim)
    shape, strides = k.shape_of(pulled), k.strides_of(pulled)
    return k.contiguous(pulled) if len(shape) == ndim > 2 and strides and channels_last(shape, strides) else pulled


def _check_kept(saved: Any) -> None:
    """Refuse to keep for backward what was made under inference_mode: writes to it would not be counted."""
    for s in saved:
        if s is not None and not s._rg and s.is_inference() and not modes.inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
                "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
                "autograd, or use `no_grad()` instead of `inference_mode()`."
            )


ONE = (True,)


# ---- kernels that speak Tensors ----


class _OfOp:
    """A kernel over Tensors whose op is imported when it is first asked for."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __get__(self, kernels: Any, owner: Any = None) -> Any:
        import_module(self.module)
        return kernels.__dict__[self.name]


_OfOps = type("_OfOps", (), {name: _OfOp(*where) for name, where in look_up(CATALOG).items()})


class TensorKernels(_OfOps, FreeKernels):  # type: ignore[misc,valid-type]
    """The kernel namespace over Tensors: ops by kernel name, and default bodies for what has no op of its own."""

    name = "tensor"
    has_values = True

    def define(self, kernel: str, fn: Callable[..., Any]) -> None:
        """Let `fn` stand for that kernel."""
        self.__dict__.setdefault(kernel, fn)

    def replace(self, kernel: str, fn: Callable[..., Any]) -> None:
        """Let `fn` stand for that kernel, where the op's own function takes its attributes otherwise."""
        self.__dict__[kernel] = fn

    def shape_of(self, x: Any) -> Size:
        return x.shape  # type: ignore[no-any-return]

    def strides_of(self, x: Any) -> tuple[int, ...]:
        return layout(x)

    def dtype_of(self, x: Any) -> DType:
        return x.dtype  # type: ignore[no-any-return]

    def device_of(self, x: Any) -> Device:
        return x._device if x._device.inner is not None else x._device.base  # type: ignore[no-any-return]

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Device) -> Any:
        return make(device.backend.full(shape, value, dtype=dtype, device=device), device, dtype, Size(shape))

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Device) -> Any:
        data = device.backend.arange(start, stop, step, dtype=dtype, device=device)
        return make(data, device, dtype, Size(device.backend.shape_of(data)))

    def into(self, target: Any, kernel: Any, /, *operands: Any, **attrs: Any) -> Any:
        return kernel(*operands, **attrs)


TENSOR_KERNELS = graph_algebra.kernels = TensorKernels()
