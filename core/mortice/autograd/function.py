"""Function: an operation with a gradient written by the user; its context, its node, and `once_differentiable`."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from mortice import call as _call
from mortice.autograd import function_levels
from mortice.autograd.gradients import laid_out, zeros_for
from mortice.graph import SECOND_BACKWARD, Node, Slot, next_seq
from mortice.modes import modes, no_grad, saved_hooks, set_recording, settle, special
from mortice.mutation import before_rebase, rebase
from mortice.node import TENSOR_KERNELS, unbroadcast
from mortice.notice import warn
from mortice.refused import writes_leaf
from mortice.saved import PackedValue, forward_trace, modified_in_place
from mortice.tensor import FROM_FUNCTION, TensorBase, make


class _Saved:
    """A saved tensor and the version it had, or what hooks have packed it into; of an output, its number too."""

    __slots__ = ("t", "version", "number", "packed")

    def __init__(self, t: Any, number: int, hooks: Any) -> None:
        # An output is kept as another tensor over its memory: the node must not own what it has made.
        self.t = t if number < 0 else t._share()
        self.version, self.number, self.packed = t._version, number, None
        if hooks is not None:
            self.packed = PackedValue(self.t, self.t._node or self.t, *hooks)
            self.t = None


class FunctionCtx:
    """What a Function's `forward` leaves for its `backward`: saved tensors, marks, and attributes of the user's."""

    needs_input_grad: tuple[bool, ...] = ()
    _materialize = True
    _to_save: tuple[Any, ...] = ()
    _for_jvp: tuple[Any, ...] | None = None
    _pushing = False  # whether `jvp` runs
    _dirty: tuple[Any, ...] = ()
    _non_differentiable: tuple[Any, ...] = ()
    _saved: list[Any] | None = None
    _node: Any = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `saved_tensors`; writes to them in place are then noticed."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`, where they are found in `saved_tensors` too."""
        self._for_jvp = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs `forward` has written in place; each must also be returned."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether gradients that did not arrive are zeros (the default) or None."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`, in `jvp` those given to `save_for_forward`."""
        if self._pushing and self._for_jvp is not None:
            return self._for_jvp
        if self._saved is None:
            if self._node is not None:
                raise RuntimeError(SECOND_BACKWARD)
            return self._to_save
        return tuple([self._load(s) for s in self._saved])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    def _load(self, s: Any) -> Any:
        if s is None:
            return None
        node = self._node()
        if s.packed is None and s.t._version != s.version:
            maker = node if s.number >= 0 else s.t._node
            raise RuntimeError(
                modified_in_place(s.t.dtype, s.t.shape, s.t._version, s.version, maker, max(s.number, 0))
            )
        if s.number < 0:
            return s.t if s.packed is None else s.packed.tensor()
        t = s.t._share() if s.packed is None else s.packed.tensor()
        place = node and node.place(s.number)
        if place is not None:
            t._rg, t._node = True, place
        return t


class FunctionNode(Node):
    """The node of a Function: calls its `backward`."""

    __slots__ = ("function", "ctx", "count", "inputs", "outputs", "several", "slots")
    function: Any
    ctx: FunctionCtx
    count: int
    inputs: list[Any]  # per argument (shape, dtype, device), None for what is no tensor
    outputs: list[Any]  # per output likewise
    several: bool
    slots: dict[int, Any]

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that gradients go to next, each with its output number; none for what is no tensor."""
        found = Node.next_functions.fget(self)  # type: ignore[attr-defined]
        return tuple([f for f, given in zip(found, self.inputs) if given is not None])

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{self.name()} object at {id(self):#x}>"

    def __getattr__(self, name: str) -> Any:
        # `y.grad_fn` is PyTorch's ctx, so what was set on it is found here too.
        if name.startswith("_") or name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def apply(self, *grads: Any) -> Any:
        """Return what the Function's `backward` makes of gradients."""
        return _backward_of(self.function)(self.ctx, *grads)

    def place(self, number: int) -> Any:
        """Return where the gradient of an output arrives: this node, or a Slot; None if it has no gradient."""
        if number not in self.slots:
            return None
        return self.slots[number]() or self._slot(number) if self.several else self

    def _slot(self, number: int) -> Slot:
        shape, dtype, device = self.outputs[number]
        slot = Slot(self, number, device, shape, dtype)
        self.slots[number] = weakref.ref(slot)
        return slot

    def release(self) -> None:
        if self.ctx._saved:
            self.ctx._saved = None

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        grads: list[Any] = []
        for gi, meta in zip(g if self.several else [g], self.outputs):
            if gi is None:
                zero = meta is not None and self.ctx._materialize
                grads.append(zeros_for(_Like(*meta)) if zero else None)
            else:
                grads.append(laid_out(gi if graph else make(gi, meta[2], meta[1], meta[0])))
        try:
            result = self.apply(*grads)
        finally:
            for s in self.ctx._saved or ():
                if s is not None and s.packed is not None:
                    s.packed.cache = None
        given = list(result) if isinstance(result, tuple) else [result]
        n = len(self.inputs)
        if len(given) > n and all(r is None for r in given[n:]):
            given = given[:n]
        if len(given) != n:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {n}, got {len(given)})"
            )
        pulled = [self._fitted(i, r) for i, r in enumerate(given)]
        return pulled if graph else [None if r is None else r._buffer for r in pulled]

    def _fitted(self, i: int, r: Any) -> Any:
        """Return the gradient of argument `i` in the argument's shape and dtype."""
        if r is None:
            return None
        if not isinstance(r, TensorBase):
            raise RuntimeError(f"expected Variable or None (got {type(r).__name__})")
        if self.inputs[i] is None:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                "corresponding forward input was not a Tensor"
            )
        if self.edges[i] is None:
            return None
        shape, dtype, device = self.inputs[i]
        if r._device.level is not None and not r._device.level.transforms:  # sparse, which the engine does not add up
            r = r.to_dense()  # type: ignore[attr-defined]
        at = f"Function {self.name()} returned an invalid gradient at index {i} -"
        if r._device.base is not device.base:
            raise RuntimeError(f"{at} expected device {device} but got {r.device}")
        if r.shape != shape:
            lead = len(r.shape) - len(shape)
            if lead < 0 or any(want not in (1, have) for want, have in zip(shape, tuple(r.shape)[lead:])):
                raise RuntimeError(f"{at} got {list(r.shape)} but expected shape compatible with {list(shape)}")
            r = unbroadcast(TENSOR_KERNELS, r, shape)
        if r.dtype is not dtype:
            if r.dtype.is_complex and not dtype.is_complex:
                r = TENSOR_KERNELS.real(r)
            r = _call.CAST(r, dtype)
        return r


def _node_class(function: Any) -> Any:
    """Return the class of a Function's nodes, one for each, since who draws a graph reads the name of a node's class."""
    found = function.__dict__.get("_node")
    if found is None:
        body = {"__slots__": (), "__module__": FunctionNode.__module__}
        found = function._node = type(f"{function.__name__}Backward", (FunctionNode,), body)
    return found


class _Like:
    """A shape, dtype and device, where a tensor would give them."""

    def __init__(self, shape: Any, dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self._device = shape, dtype, device


def _backward_of(function: Any) -> Callable[..., Any]:
    backward, vjp = function.backward, function.vjp
    if backward is Function.backward:
        return vjp  # type: ignore[no-any-return]
    if vjp is not Function.vjp:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
        )
    return backward  # type: ignore[no-any-return]


_NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
)


class Function:
    """A differentiable operation: subclass it, write `forward` and `backward` as static methods, call `apply`.

    Example:
        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                (y,) = ctx.saved_tensors
                return g * y
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method: write static methods and call .apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: `forward(ctx, *inputs)`, or `forward(*inputs)` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep what backward needs, when `forward` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradient of each input, given those of the outputs."""
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Push tangents forward; where it is not given, the product follows from `backward`, run twice."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute a batch: return (output, out_dims); where it is not given, `forward` runs over the batch as it is."""
        raise NotImplementedError("vmap is not implemented for this custom autograd.Function.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record it."""
        separate = cls.setup_context is not Function.setup_context
        if kwargs or (separate and getattr(cls.forward, "__defaults__", None)):
            args = _bound(cls, args, kwargs, separate)
        for a in args:
            if isinstance(a, TensorBase) and a._device.level is not None and a._device.level.transforms:
                return function_levels.apply(cls, Function, args)
        return cls._run(args)[0]

    @classmethod
    def _run_below(cls, args: tuple[Any, ...]) -> tuple[Any, FunctionCtx]:
        """Do what `_run` does where arguments may be of a vmap, for which the Function has a rule of its own."""
        if cls.vmap is Function.vmap or cls.setup_context is Function.setup_context:
            return cls._run(args)
        output, ctx = cls.apply(*args), FunctionCtx()
        ctx.needs_input_grad = tuple([isinstance(a, TensorBase) and a._rg for a in args])
        with no_grad():
            cls.setup_context(ctx, args, output)
        return output, ctx

    @classmethod
    def _run(cls, args: tuple[Any, ...]) -> tuple[Any, FunctionCtx]:
        """Return the outputs, in the graph, and the ctx."""
        separate = cls.setup_context is not Function.setup_context
        ctx = FunctionCtx()
        ctx.needs_input_grad = needs = tuple([isinstance(a, TensorBase) and a._rg for a in args])
        before = modes.grad
        try:
            set_recording(False)
            if separate:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        finally:
            modes.grad, modes.quiet = before, False
            settle()
        return _finish(cls, ctx, args, output, before and True in needs), ctx


def _bound(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], separate: bool) -> tuple[Any, ...]:
    """Return arguments in the order of `forward`, which must be one that takes no ctx."""
    if not separate:
        raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
    import inspect

    found = inspect.signature(cls.forward).bind(*args, **kwargs)
    found.apply_defaults()
    return found.args


def _meta(x: Any) -> Any:
    return (x.shape, x.dtype, x._device) if isinstance(x, TensorBase) else None


def _node_of(cls: Any, ctx: FunctionCtx, args: tuple[Any, ...], outs: list[Any]) -> FunctionNode:
    node: FunctionNode = _node_class(cls)()
    node.seq, node.extra, node.function, node.ctx = 0, None, cls, ctx
    node.inputs = [_meta(a) for a in args]
    node.outputs = [_meta(o) for o in outs]
    node.count, node.several, node.slots = len(outs), len(outs) > 1, {}
    return node


def _record(node: FunctionNode, args: tuple[Any, ...], outs: list[Any]) -> None:
    node.seq = next_seq()
    node.edges = tuple([(a._node or a.note_use(node.seq)) if isinstance(a, TensorBase) and a._rg else None for a in args])
    node.device, node.shape, node.dtype = next(
        ((o._device, o.shape, o.dtype) for o in outs if isinstance(o, TensorBase)), (None, None, None)
    )
    node.ctx._node = weakref.ref(node)


def _finish(cls: Any, ctx: FunctionCtx, args: tuple[Any, ...], output: Any, recording: bool) -> Any:
    """Give the outputs their place in the graph and take over what `forward` has saved."""
    outs = list(output) if isinstance(output, tuple) else [output]
    if isinstance(output, TensorBase) and not (ctx._dirty or ctx._non_differentiable or any([a is output for a in args])):
        # The usual case: one result of its own. What follows does the same for it, and more.
        if not recording:
            return output._share() if output._rg else output
        if output.dtype.kind in "fc" and not output._rg:
            node = _node_of(cls, ctx, args, outs)
            _record(node, args, outs)
            node.slots[0] = None
            if output._base is not None:
                output._note = FROM_FUNCTION + f"0 of {node.name()}"
            output._rg, output._node = True, node
            _save(ctx, node, outs, outs)
            if special[0] and modes.anomaly:
                node.more().trace = forward_trace()
            return output
    inputs = {id(a) for a in args if isinstance(a, TensorBase)}
    dirty = {id(t) for t in ctx._dirty} & inputs
    # Where the gradient arrives of a tensor that is returned twice; an input that is becomes two views.
    last = {id(o): i for i, o in enumerate(outs) if id(o) not in inputs or id(o) in dirty}
    _check_dirty(ctx, inputs, outs, recording)
    fixed = {id(t) for t in ctx._non_differentiable}
    returned = list(outs)
    node = _node_of(cls, ctx, args, outs)
    places: dict[int, Any] = {}
    if recording:
        _record(node, args, outs)
        for i, o in enumerate(outs):
            if isinstance(o, TensorBase) and o.dtype.kind in "fc" and id(o) not in fixed and last.get(id(o), i) == i:
                if node.several:
                    places[i] = node._slot(i)
                else:
                    places[i] = node
                    node.slots[i] = None
    for i, o in enumerate(outs):
        if isinstance(o, TensorBase) and last.get(id(o), i) == i:
            returned[i] = _place(o, places.get(i), id(o) in inputs, id(o) in dirty, f"{i} of {node.name()}")
    returned = [returned[last.get(id(o), i)] for i, o in enumerate(outs)]
    if places:
        _save(ctx, node, outs, returned)
        if modes.anomaly:
            node.more().trace = forward_trace()
    return tuple(returned) if isinstance(output, tuple) else returned[0]


def _check_dirty(ctx: FunctionCtx, inputs: set[int], outs: list[Any], recording: bool) -> None:
    given = {id(o) for o in outs}
    for t in ctx._dirty:
        if id(t) not in inputs:
            warn(
                "Only input Variables should be given to ctx.mark_dirty(). If a Variable is not an input, there is no "
                "need to pass it to mark_dirty()."
            )
            continue
        if id(t) not in given:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        if recording and t._rg and t._node is None:
            raise writes_leaf(how="has been")
        if recording and len(outs) > 1 and t._base is not None and t._base._rg:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
                "more than one Tensor. Give it a clone of the view, or let it return one Tensor."
            )
        t.own_storage().version += 1  # `forward` may have written to it where the library does not see it


def _place(o: Any, place: Any, is_input: bool, is_dirty: bool, which: str) -> Any:
    """Return output `o` at its place in the graph (None: it has no gradient)."""
    if place is None:
        return o._share() if o._rg else o
    if is_dirty:
        value = make(o._buffer, o._device, o.dtype, o.shape)
        value._rg, value._node = True, place
        rebase(o, value, before_rebase(o))
        return o
    if is_input or o._rg:
        t = o._share()
        t._viewed, t._note = o if o._viewed is None else o._viewed, FROM_FUNCTION + which
    else:
        t = o
        if t._base is not None:
            t._note = FROM_FUNCTION + which
    t._rg, t._node = True, place
    return t


def _save(ctx: FunctionCtx, node: FunctionNode, outs: list[Any], returned: list[Any]) -> None:
    """Keep the tensors given to `save_for_backward`, through the hooks in force if there are any."""
    hooks = saved_hooks() if special[0] else None
    kept: list[Any] = []
    for at, t in enumerate(ctx._to_save):
        if t is not None and not isinstance(t, TensorBase):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {at} is of type {type(t).__name__}. "
                "Set other values as attributes of ctx."
            )
        number = -1
        for i, o in enumerate(outs):
            if o is t and returned[i] is t:
                number = i
        kept.append(None if t is None else _Saved(t, number, hooks))
    ctx._saved, ctx._to_save = kept, ()


class _OnceNode(Node):
    """Raises where the result of a once_differentiable backward is differentiated."""

    __slots__ = ()

    def name(self) -> str:
        return "DelayedErrorBackward"

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a Function's `backward` compute without recording; differentiating its result is then an error."""

    @functools.wraps(fn)
    def backward(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            result = fn(ctx, *grads)
        if not modes.grad or not any(isinstance(g, TensorBase) and g._rg for g in grads):
            return result
        refused = []
        for r in result if isinstance(result, tuple) else (result,):
            if isinstance(r, TensorBase) and r.dtype.kind in "fc":
                r = r._share()
                node = _OnceNode()
                node.seq, node.extra = next_seq(), None
                node.edges = tuple([g._node or g.note_use(node.seq) for g in grads if isinstance(g, TensorBase) and g._rg])
                node.device, node.shape, node.dtype = r._device, r.shape, r.dtype
                r._rg, r._node = True, node
            refused.append(r)
        return tuple(refused) if isinstance(result, tuple) else refused[0]

    return backward


class InplaceFunction(Function):
    """PyTorch's base class for Functions that can write in place; a plain Function here."""
