"""Writing in place: the one path by which a tensor's memory changes, with its place in the graph kept right.

On a mutable backend the memory itself is written. Elsewhere the new value replaces the buffer, and every tensor that
shares the memory is derived from it anew. Either way the graph of a view's base records the write as `view_scatter`.
"""

from __future__ import annotations

import functools
import math

from mortice import call as _call
from mortice import fast
from mortice import node as _node
from mortice.call import LARGEST
from mortice.dtype import C_NAMES, CLASS_NAMES, DType, bool_, can_cast, int64
from mortice.errors import DTypeError, ShapeError
from mortice.graph import RELEASED, Node, Slot, next_seq
from mortice.modes import modes, no_grad, special
from mortice.node import TENSOR_KERNELS, named, record, unbroadcast
from mortice.op import op
from mortice.rules import floating, holds, logical, promote, same
from mortice.shape import broadcast
from mortice.strides import OVERLAP, layout, overlaps, span
from mortice.tensor import FROM_FUNCTION, INFERENCE, TensorBase, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Steps = tuple[tuple[Any, dict[str, Any]], ...]

REAL = {int, float}
NO_ATTRIBUTES: dict[str, Any] = {}


def replay(k: Any, x: Any, steps: Steps) -> Any:
    """Take the view steps from x again."""
    for step, attrs in steps:
        x = step.body(k, x, **attrs)
    return x


def put(k: Any, x: Any, steps: Steps, part: Any) -> Any:
    """Return x with what the view steps show replaced by `part`."""
    seen = [x]
    for step, attrs in steps[:-1]:
        seen.append(step.body(k, seen[-1], **attrs))
    shown = part
    for i in range(len(steps) - 1, -1, -1):
        (step, attrs), x = steps[i], seen[i]
        if i == len(steps) - 1 or step.name != "expand" or tuple(k.shape_of(seen[i + 1])) == tuple(k.shape_of(x)):
            shown = step.scatter(k, x, shown, **attrs)
            continue
        # Of the copies of an element that expand shows, at most one was written: that one counts.
        wrote = k.not_equal(put(k, k.full_like(seen[i + 1], 0), steps[i + 1 :], k.full_like(part, 1)), 0)
        here = tuple(k.shape_of(x))
        total = unbroadcast(k, k.where(wrote, shown, 0), here)
        shown = k.where(k.not_equal(unbroadcast(k, k.astype(wrote, k.dtype_of(x)), here), 0), total, x)
    return shown


# The formulas move values and nothing else, so complex ones need no conjugation.
@op(result=promote, shape=same, grad_name="CopySlices", holomorphic=False, float8="moved")
def view_scatter(k: Any, x: Any, part: Any, /, *, steps: Steps) -> Any:
    """Replace what a view of x shows."""
    return put(k, x, steps, part)


view_scatter.vjp(
    x=lambda k, g, steps: put(k, g, steps, k.full_like(replay(k, g, steps), 0)),
    part=lambda k, g, steps: replay(k, g, steps),
    jvp="linear",
)


def check_writable(name: str, t: Any) -> None:
    """Refuse in-place operations that autograd or the tensor's level could not follow."""
    if t._device.level:
        t._device.level.check_writable(name, t)
    if t.is_inference() and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )
    if not modes.grad:
        return
    base = t._base
    if base is not None:
        if t._note and (t._rg or base._rg):
            from mortice.refused import forbidden_view

            raise RuntimeError(forbidden_view(t._note))
        leaf = base._node is None and (t._rg or base._rg)
    else:
        leaf = t._rg and t._node is None
    if leaf:
        from mortice.refused import writes_leaf

        raise writes_leaf("a leaf" if base is None else "a view of a leaf")


# Filled in by `levels`: the value at the level of the tensor that receives it.
INTO_LEVEL: Callable[[Any, Any], Any] = lambda t, value: value


def assign(t: Any, value: Any, fresh: bool) -> Any:
    """Write the tensor `value`, of t's shape and dtype, into t's memory; the graph of t becomes that of `value`.

    `fresh` says that nobody else holds the buffer of `value`, so that t may simply take it over.
    """
    if value._device is not t._device:
        value = INTO_LEVEL(t, value)
    recording = modes.grad and (t._rg or value._rg)
    if recording and t._storage is not None and t._note and t._viewed is not None:
        from mortice.refused import forbidden_view

        raise RuntimeError(forbidden_view(t._note))
    old = before_rebase(t) if recording else None
    write(t, value._buffer, fresh)
    if recording:
        node = value._node
        if fresh and node is not None:
            # What the op has kept of its output may from now on be t's own memory.
            node.note_storage(node.number if type(node) is Slot else 0, t._storage)
        rebase(t, value, old)
    return t


def before_rebase(t: Any) -> Any:
    """Return a stand-in for the base of the view `t` with its present place in the graph; None if t is no view."""
    base = t._base
    if base is None:
        return None
    old = make(base._buffer, base._device, base.dtype, base.shape)
    old._rg, old._node = base._rg, base._node
    return old


def rebase(t: Any, value: Any, old: Any) -> None:
    """Give t, whose memory now holds `value`, the value's place in the graph; `old` is from `before_rebase`."""
    base = t
    skip = len(t.view_steps)
    if old is None:
        t._rejoin(value._rg, value._node)
    else:
        base = t._base
        skip = len(base.view_steps)
        written = make(base._buffer, base._device, base.dtype, base.shape)
        record(view_scatter.op, (old, value), {"steps": t.view_steps[skip:]}, None, written)
        base._rejoin(True, written._node)
    for view in base.own_storage().live():
        if view._viewed is base:
            if view._note.startswith(("no_grad", FROM_FUNCTION)):
                from mortice.refused import RefusedNode

                view._rejoin(True, RefusedNode(view))
            else:
                again = replay(TENSOR_KERNELS, base, view.view_steps[skip:])
                view._rejoin(again._rg, again._node)


def may_rebind(t: Any) -> bool:
    """Tell whether nobody else sees t's memory, so that a write may as well give it another buffer."""
    storage = t._storage
    return storage is None or (not storage.pinned and t._steps is None and storage.lonely())


PARTLY = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
    "Please clone() the tensor before performing the operation."
)


def check_apart(t: Any, operands: Iterable[Any], itself: bool = True) -> None:
    """Refuse, as PyTorch does, to write into t what is read from a part of its memory, or in another order; `itself` allows all of it.

    Views with gaps or repetitions are not looked at: what they are read for is computed before anything is written.
    """
    storage = t._storage if isinstance(t, TensorBase) else None
    for a in operands:
        if a is t:
            mine = other = not itself and t.numel()
        elif storage is not None and isinstance(a, TensorBase) and a._storage is not None and a._storage.aliases is storage.aliases:
            mine, other = span(t), span(a)
        else:
            continue
        if mine and other and (mine is other or (mine[0] < other[1] and other[0] < mine[1] and not (itself and mine == other))):
            check_writable("", t)
            raise RuntimeError(PARTLY)


def write(t: Any, data: Any, fresh: bool) -> None:
    """Change t's memory to the buffer `data` and count the change."""
    backend = t._device.backend
    storage = t._storage or t.own_storage()
    aliases = storage.aliases
    if (
        fresh
        and ((t._steps is None and not aliases.pinned and len(aliases) == 1 and aliases.last() is None) or may_rebind(t))
        and backend.strides_of(data) == backend.strides_of(t._buffer)  # what lies in another order is copied in
    ):
        t._buffer, storage.reshapes = data, False
        if backend.rooted:
            storage.root = data
        storage.version += 1
        return
    if overlaps(t):
        raise RuntimeError(OVERLAP)
    if backend.mutable:
        backend.setitem(t._buffer, (...,), data)
    else:
        storage.root = put(backend, storage.root, t.view_steps, data)
        for shared in storage.live():
            shared._buffer = replay(backend, storage.root, shared.view_steps)
    storage.version += 1


def written(tensors: Any, buffers: Any) -> None:
    """Change tensors to what a kernel gave for them: their own buffers where it has written in place."""
    for t, data in zip(tensors, buffers):
        if data is t._buffer:
            (t._storage or t.own_storage()).version += 1
        else:
            write(t, data, True)


def assign_number(name: str, t: Any, value: Any, fresh: bool) -> Any:
    """Do as `assign` with a value that is t's own but for one number at some places.

    As in PyTorch memory that shows elements several times may take it, with a warning: one changes where any of its places does.
    """
    device = t._device
    if not overlaps(t) or device.base is not device or (modes.grad and (t._rg or value._rg)):
        return assign(t, value, fresh)
    from mortice.notice import warn

    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
        "This also applies to advanced indexing e.g. tensor[indices] = tensor"
    )
    k, data, target = device.backend, value._buffer, t
    for d, (step, n) in enumerate(zip(layout(t), t.shape)):
        if step == 0 and n > 1:
            changed = k.astype(k.not_equal(data, target._buffer), int64)
            data = k.take_along_axis(data, k.argmax(changed, axis=d, keepdims=True), axis=d)
            target = TENSOR_KERNELS.getitem(target, (*(slice(None),) * d, slice(1)))
    write(target, data, False)
    return t


def into(name: str, t: Any, value: Any) -> Any:
    """Return `value` as it can be written into t: broadcast is refused, a cast must not lose the kind."""
    if value.shape != t.shape:
        raise ShapeError(
            f"{name}: output with shape {list(t.shape)} doesn't match the broadcast shape {list(value.shape)}."
        )
    return cast_into(name, t.dtype, value)


def cast_into(name: str, d: DType, value: Any) -> Any:
    """Cast a result to the dtype of the tensor that receives it."""
    if value.dtype is d:
        return value
    if not can_cast(value.dtype, d):
        raise DTypeError(
            f"{name}: result type {CLASS_NAMES[value.dtype.name]} can't be cast to the desired output type {CLASS_NAMES[d.name]}. "
            "Use the operation that is not in place, or convert first."
        )
    return _call.CAST(value, d)


def stand_in(t: Any) -> Any:
    """Return another tensor with t's value and place in the graph, for operations to keep when t is overwritten."""
    old = make(t._buffer, t._device, t.dtype, t.shape)
    old._rg, old._node = t._rg, t._node
    base = t._base
    if base is not None and t._node is not None and t._node.extra is not None and t._node.extra.tensor_hooks:
        # Hooks of a view see the gradient of what it was, which after the write nothing but the base has.
        old._node = replay(TENSOR_KERNELS, base, t.view_steps[len(base.view_steps) :])._node
    return old


def keep_saved(value: Any, old: Any, since: int) -> None:
    """Copy what nodes newer than `since` have kept of `old`, whose memory is about to be overwritten."""
    stack, seen = [value._node], set()
    while stack:
        node = stack.pop()
        if not isinstance(node, Node) or node.seq <= since or node.seq in seen:
            continue
        seen.add(node.seq)
        stack.extend(node.edges)
        saved = getattr(node, "saved", None)
        for s in () if saved is None or saved is RELEASED else saved:
            if s is old or (isinstance(s, TensorBase) and s._storage is not None and s._storage is old._storage):
                s._buffer = s._device.backend.copy(s._buffer)


def plain(t: Any) -> bool:
    """Tell whether a write into t's memory is only that: nothing records or forbids it, and each element lies alone.

    A storage is made then, whose version the writer counts up.
    """
    backend = t._device.backend
    recording = not special[0] or modes.grad
    if not backend.mutable or (recording and t._rg) or (special[0] and modes.inference):
        return False
    if t._storage is None:
        t.own_storage()
    if t._note == INFERENCE or (recording and t._viewed is not None and t._viewed._rg):
        return False
    strides, shape = backend.strides_of(t._buffer), t.shape  # which a lazy parameter refuses
    return strides is not None and (0 not in strides or all([s or n < 2 for s, n in zip(strides, shape)]))


write, plain = fast.writes(write, plain)


def land(op: Any, t: Any, buffers: Sequence[Any], attrs: dict[str, Any] = NO_ATTRIBUTES, cast: bool = False) -> bool:
    """Run an op that gives t's shape, and its dtype but where `cast`, and that nothing records, into t; tell whether that could be."""
    storage = t._storage or t.own_storage()
    alone = not t._note and t._viewed is None and t._steps is None and storage.lonely()
    if (special[0] and modes.inference) if alone else not plain(t):
        return False
    mine, backend = t._buffer, t._device.backend
    if cast:
        return landed(t, backend.astype(t._device.table[op](*buffers, **attrs), t.dtype), buffers, alone)
    data = backend.into(mine, t._device.table[op], *buffers, **attrs)
    if data is mine:
        storage.version += 1
        return True
    return landed(t, data, buffers, alone)


def landed(t: Any, data: Any, buffers: Sequence[Any], alone: bool = True) -> bool:
    """Give t, which may be alone with its memory, what an op has made elsewhere; tell whether that could be."""
    owned = t._device.backend.owns(data) and not any([b is data for b in buffers])
    if alone and not owned:
        return False
    write(t, data, owned)
    return True


def _takes(d: DType, number: float) -> bool:
    """Tell whether a kernel takes an int or float beside d as it is."""
    if d.kind == "f":
        return d.itemsize > 2 and not LARGEST < abs(number) < math.inf
    return holds(d, number)


def _answers(op: Any, d: DType) -> bool:
    """Tell whether an op reads each operand of a dtype as a truth value, and gives those."""
    return op.result is logical and op.observer is None and d.stored is d and d is not bool_


def quickly_one(op: Any, t: Any) -> bool:
    """Do as `quickly` for an elementwise op of one operand."""
    d = t.dtype
    if op.shape is not same or (t._rg and (not special[0] or modes.grad)):
        return False
    if _answers(op, d):
        return land(op, t, (t._device.backend.astype(t._buffer, bool_),), cast=True)
    return op.same_dtype.get(d) is d and land(op, t, (t._buffer,))


def quickly(op: Any, t: Any, other: Any) -> bool:
    """Do the commonest write, that of an op of two operands which nothing records; tell whether it was one."""
    d = t.dtype
    truths = _answers(op, d)
    found = bool_ if truths else op.same_dtype.get(d)
    if found is not d and found is not bool_:
        return False
    if type(other) in REAL and op.scalars and not truths and _takes(d, other):
        value, recorded = other, t._rg
    elif (
        isinstance(other, TensorBase) and other.dtype is d and other._device is t._device
        and (other.shape == t.shape or not other.shape)
    ):  # fmt: skip
        value, recorded = other._buffer, t._rg or other._rg
    else:
        return False
    if recorded and (not special[0] or modes.grad):
        return False
    buffers = [t._buffer, value]
    if truths:
        buffers = [t._device.backend.astype(b, bool_) for b in buffers]
    return land(op, t, buffers, cast=found is not d)


def directly(op: Any, out: Any, operands: Sequence[Any], attrs: dict[str, Any] = NO_ATTRIBUTES) -> Any:
    """Write an op's result into `out` where that is only a write: nothing to convert, to record or to refuse.

    Returns what `out` stands for, or None: then the op is to be called.
    """
    t = out.tensor if out.__class__ is Into else out
    rule = op.shape
    if t is out and (rule is broadcast or rule is same) and op.name not in _LOOSE:
        check_apart(t, operands)
    if not isinstance(t, TensorBase) or rule is None or op.view or op.check is not None or (special[0] and modes.rerouted):
        return None
    d: Any = None
    device, shape, recorded, fixed = t._device, t.shape, t._rg, op.fixed
    whole, numbers, buffers = rule is broadcast or rule is same, False, []
    for i, a in enumerate(operands):
        if a is None or a.__class__ in REAL:
            buffers.append(a)
            numbers = numbers or a is not None
            continue
        if not isinstance(a, TensorBase) or a._device is not device:
            return None
        if i not in fixed:
            if d is None:
                d = a.dtype
            elif a.dtype is not d:
                return None
        buffers.append(a._buffer)
        whole = whole and a.shape == shape
        recorded = recorded or a._rg
    if d is None or op.same_dtype.get(d) is not t.dtype or (recorded and (not special[0] or modes.grad)):
        return None
    if numbers and not (op.scalars and all([_takes(d, a) for a in operands if a.__class__ in REAL])):
        return None
    if not whole:
        shapes = [a.shape if isinstance(a, TensorBase) else () for a in operands]
        if rule(op.name, *shapes, **attrs) != shape:
            return None
    return t if land(op, t, buffers, attrs) else None


# What PyTorch lets read a part of what it writes, of the functions of one shape.
_LOOSE = frozenset("log_softmax logsigmoid softmax tril triu".split())


class Into:
    """What an in-place method gives its function as `out`: the tensor to write into, by the rules of such methods."""

    __slots__ = ("name", "operands", "tensor")

    def __init__(self, name: str, tensor: Any, operands: Sequence[Any]) -> None:
        self.name, self.tensor, self.operands = name, tensor, operands

    def take(self, value: Any) -> Any:
        """Write `value`, which nothing records, into the tensor."""
        t, data = self.tensor, value._buffer
        if value.dtype is t.dtype and value.shape == t.shape and value._device is t._device:
            owned = value._storage is None and value is not t and t._device.backend.owns(data)
            write(t, data, owned and not any([a._buffer is data for a in self.operands]))
            return t
        made = into(self.name, t, value)
        fresh = made is not value and made._device is t._device and made._storage is None and made._device.backend.owns(made._buffer)
        return assign(t, made, fresh)


def inplace(
    fn: Callable[..., Any], name: str | None = None, short: Callable[..., Any] | None = None, takes_out: bool = False,
    number: bool = False, itself: bool | None = True,
) -> Callable[..., Any]:  # fmt: skip
    """Make the in-place method of a function: `add_` from `add`.

    A function that has an `op` gives its `out` to that; `takes_out` says that another does so, `number` that it puts one
    number in some places, `itself` whether operands may be what it writes, of which they must not lie in a part (None: they may).
    `short` may return an op, its operands and attributes for a call's arguments: where these need no more than a write the
    function is not asked.
    """
    own = name or fn.__name__.strip("_") + "_"
    op = getattr(fn, "op", None)
    count = len(op.inputs) if op is not None and not op.attrs and op.check is None else 0
    takes_out = takes_out or (op is not None and (fn is op.fn or "out" in (fn.__kwdefaults__ or ())))

    def method(input: Any, *args: Any, **kwargs: Any) -> Any:
        if itself is not None and (args or kwargs):
            check_apart(input, (*args, *kwargs.values()), itself)
        if count == 2 and len(args) == 1 and not kwargs:
            if quickly(op, input, args[0]):
                return input
        elif count == 1 and not args and not kwargs:
            if quickly_one(op, input):
                return input
        elif short is not None and isinstance(input, TensorBase):
            try:
                found = short(input, *args, **kwargs)
            except TypeError as error:
                if isinstance(error, RuntimeError):
                    raise
                found = None  # arguments that the function does not take, in whose name that is said
            if found is not None and directly(found[0], input, *found[1:]) is not None:
                return input
        values = (*args, *kwargs.values())
        tensors = [a for a in values if isinstance(a, TensorBase)]
        if len(tensors) < len(values) and any([hasattr(type(a), "__torch_function__") for a in values if a.__class__ not in REAL]):
            answer = _call.ASK(own, (input, *args), kwargs)  # in this name: `slow` would ask for the function's
            if answer is not NotImplemented:
                return answer
        if isinstance(input, TensorBase) and not (tensors and any([a._rg for a in tensors])) and plain(input):
            target = Into(own, input, tensors)
            # What comes in another dtype cannot be made in the tensor's memory: the plain call is faster.
            there = takes_out and (op is None or op.same_dtype.get(input.dtype) is input.dtype)
            value = fn(input, *args, out=target, **kwargs) if there else fn(input, *args, **kwargs)
            return value if there or value is NotImplemented else target.take(value)
        check_writable(own, input)
        old: Any = None
        since = 0
        if modes.grad and (input._rg or any([a._rg for a in tensors])):
            old, since = stand_in(input), next_seq()
        value = fn(input if old is None else old, *args, **kwargs)
        if value is NotImplemented:  # an operator's answer to what is no tensor
            return value
        value = into(own, input, value)
        # A function may return an operand, or memory that it shares with one.
        fresh = value._storage is None and value._device.backend.owns(value._buffer) and value is not input
        if fresh and any([isinstance(a, TensorBase) and a._buffer is value._buffer for a in args]):
            fresh = False
        if old is not None and op is not None and op.no_grad_reason is not None and old._rg:
            if op.name.startswith("logical_"):  # in PyTorch these leave the graph as it was
                with no_grad():
                    return assign(input, value, fresh)
            # What a comparison overwrites has a gradient of zero.
            value, fresh = view_scatter(old, value, steps=()), False
            named(value, op.grad_name.replace("0", "1") if tensors else op.grad_name)
        if old is not None and not (fresh and may_rebind(input)):
            keep_saved(value, old, since)
        return assign_number(own, input, value, fresh) if number else assign(input, value, fresh)

    functools.update_wrapper(method, fn, assigned=("__module__", "__doc__"), updated=())
    del method.__wrapped__
    method.__name__ = method.__qualname__ = own
    quick = op if count == 2 or (count == 1 and op.shape is same) else None
    return method if quick is short is None else fast.stand_before(fast.INTO, quick, method, landed, short)


# Which results PyTorch casts into the dtype of `out=`, besides those of ops that broadcast or give integers a float dtype:
# all others must find a tensor of their own dtype.
_CAST = frozenset(
    "abs addr all angle any bernoulli cat cholesky_inverse cholesky_solve clamp diff geqrf kron linalg.cond linalg.eig linalg.eigvals "
    "linalg.householder_product linalg.lstsq linalg.matrix_rank linalg.pinv "
    "linalg.tensorinv linalg.tensorsolve logical_not lu nanmean normal square stack std var".split()
)
_NEVER_CAST = frozenset("clamp complex heaviside where".split())  # among those that broadcast


def casts_out(name: str, op: Any) -> bool:
    """Tell whether a result may be of another dtype than the tensor given as `out=`, if it can be cast to it."""
    if op is not None and (op.shape is broadcast or op.result is floating):
        return name not in _NEVER_CAST
    return name in _CAST or name.startswith("fft.")


def write_out(name: str, out: Any, value: Any, op: Any = None, fresh: bool = False, aloud: bool = True, reads: Any = ()) -> Any:
    """Put a result, of that op if it is one, into the tensor given as `out=`, resizing it when its shape differs.

    `fresh` says that nobody else holds its buffer, `aloud` that a size other than the result's is told; `reads` are operands that
    must lie apart from it.
    """
    if type(out) is Into:
        return out.take(value)
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}: expected out to be a Tensor; got {type(out).__name__}.")
    if modes.grad and (value._rg or out._rg):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if out._device.base is not value._device.base:
        raise RuntimeError(f"{name}: expected out on {value.device}; got {out.device}. Make it there.")
    check_apart(out, reads, False)
    made = value
    if value.dtype is not out.dtype:
        if not casts_out(name, op):
            want, have = (C_NAMES[d.name] for d in (value.dtype, out.dtype))
            wanted, given = (CLASS_NAMES[d.name] for d in (value.dtype, out.dtype))
            raise DTypeError(
                f"{name}: Expected out tensor to have dtype {want}, but got {have} instead: "
                f"Expected object of scalar type {wanted} but got scalar type {given} for argument 'out'"
            )
        value = cast_into(name, out.dtype, value)
    with no_grad():
        check_writable(name, out)
        if out.shape != value.shape:
            if aloud and out.numel():
                from mortice.notice import warn

                warn(
                    f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does "
                    f"not match the required output shape {list(value.shape)}. This behavior is deprecated: "
                    "give a tensor of that shape, or one without elements, as out.resize_(0) makes of any."
                )
            value = INTO_LEVEL(out, value)
            out._take_memory(value._device.backend.copy(value._buffer), value.shape)
            return out
        return assign(out, value, fresh and value is made)


_call.WRITE_OUT, _call.DIRECTLY, _node.WRITE = write_out, directly, write
