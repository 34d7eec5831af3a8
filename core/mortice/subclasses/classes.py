"""Tensors of classes that have `__torch_dispatch__`: those are told of every operator below autograd.

A mode of `dispatching` tells them. Each public function enters it that gets such a tensor, and backward while there is a graph
of some. A wrapper has a shape, a dtype and a device alone; what its elements are is its class's affair.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Any
from weakref import WeakValueDictionary

from mortice import Tensor, asking, call, empty, empty_strided, fast, levels, ones_like, zeros_like
from mortice import node as nodes
from mortice._ops import aten
from mortice.asking import _state
from mortice.autograd import gradients
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.graph import Slot
from mortice.levels import record_crossing
from mortice.methods import _disabled_torch_function_impl
from mortice.methods.conversion import slots_of
from mortice.modes import modes, no_grad, set_recording, settle
from mortice.mutation import before_rebase, check_writable, rebase
from mortice.node import TENSOR_KERNELS, Const, record
from mortice.op import OPS
from mortice.refused import forbidden_view
from mortice.shape import contiguous_strides
from mortice.subclasses import dispatching
from mortice.subclasses.dispatching import _tensors, _told
from mortice.tensor import TensorBase

told: set[type] = set()  # the classes that are told
_looked: set[type] = {list, tuple}  # they, and those of what may hold their tensors
_graphs: WeakValueDictionary[int, Any] = WeakValueDictionary()  # nodes of their operators, and leaves
_of_plain = call.placed, call.ACROSS_LEVELS, gradients._start, gradients.walk, nodes.give_slots, call.WRITE_OUT


def tell(cls: type) -> None:
    """Tell a class of operators from now on; as in PyTorch it is asked of functions only where it says how."""
    told.add(cls)
    _looked.add(cls)
    asked = getattr(cls.__torch_function__, "__func__", None)  # type: ignore[attr-defined]
    if asked in (Tensor.__torch_function__.__func__, asking._computed):  # type: ignore[attr-defined]
        cls.__torch_function__ = _disabled_torch_function_impl  # type: ignore[attr-defined]
    cls.note_use, cls._share = _noted, _twin  # type: ignore[attr-defined]
    asking.follow(cls)


@cache
def _place(base: Device, meta: Device) -> Device:
    made = object.__new__(Device)
    made.type, made.index, made.backend, made.table = base.type, base.index, meta.backend, meta.table
    made.base, made.inner, made.level = base, None, None
    return made


def wrapper(
    cls: Any, size: Any, strides: Any = None, storage_offset: Any = None, memory_format: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Make a tensor of a class that has no elements of its own: `Tensor._make_wrapper_subclass`."""
    if cls not in told:
        raise TypeError(f"_make_wrapper_subclass: {cls} must define __torch_dispatch__, and derive from Tensor.")
    outline = empty_strided(size, contiguous_strides(size) if strides is None else strides, dtype=dtype, device="meta")
    return _of_class(cls, outline._buffer, _place(resolve(device or "cpu"), outline._device), outline, requires_grad)


def _of_class(cls: Any, data: Any, device: Device, like: Any, requires_grad: bool = False) -> Any:
    t = object.__new__(cls)
    t._buffer, t._device, t._dtype, t._shape, t._rg = data, device, like._dtype, like._shape, requires_grad
    t._node = t._storage = t._leaf = None
    return t


def attributes(t: Any) -> dict[str, Any]:
    """Return what a tensor's class has made of it, by name."""
    return {**t.__dict__, **slots_of(t)}


def _with(t: Any, state: Any) -> Any:
    for name, value in state.items():
        setattr(t, name, value)
    return t


def _twin(t: Any, storage: Any = None) -> Any:
    """Return another tensor of the same class and attributes, outside the graph."""
    return _with(_of_class(type(t), t._buffer, t._device, t), attributes(t)) if type(t) in told else t._share()


def pickled(t: Any) -> Any:
    """Return what a wrapper is rebuilt from."""
    named = {"strides": t.stride(), "dtype": t._dtype, "device": str(t._device), "requires_grad": t._rg}
    return _rebuilt, (type(t), tuple(t._shape), named, attributes(t))


def _rebuilt(cls: Any, size: Any, named: Any, state: Any) -> Any:
    return _with(wrapper(cls, size, **named), state)


def saved(t: Any) -> Any:
    """Return what PyTorch's files rebuild a wrapper from, and its attributes; for the place of its layout None."""
    return (type(t), t._dtype, tuple(t._shape), t.stride(), 0, None, t._device.base, t._rg), attributes(t)


def loaded(kind: Any, args: Any, state: Any) -> Any:
    """Make a wrapper of what a file has of it; None where it would set what is no plain attribute."""
    parts = {name: value for part in (state if isinstance(state, tuple) else (state,)) for name, value in (part or {}).items()}
    # An attribute may have a method's name, as `t` and `diag` are, but not be called in its stead.
    bad = [not isinstance(n, str) or n.startswith("__") or (callable(v) and callable(getattr(kind, n, None))) for n, v in parts.items()]
    if kind not in told or any(bad) or len(args) != 8:
        return None
    _, dtype, size, stride, _, _, device, requires_grad = args
    return _with(wrapper(kind, size, stride, dtype=dtype, device=device, requires_grad=requires_grad), parts)


def _any_told(values: Any) -> bool:
    return any([type(t) in told for t in _tensors(values)])


class _Classes:
    """The mode that tells the classes of operands, derived ones first, or computes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found: list[Any] = []
        if any([t._device.level is not None for t in _tensors((*args, *(kwargs or {}).values()))]):
            args = _plainly(args)  # beside what a function transform runs through, whose tangents or lanes no class would see
            kwargs = dict(zip(kwargs or {}, _plainly((kwargs or {}).values())))
        for kind in dict.fromkeys([type(t) for t in _tensors((*args, *(kwargs or {}).values())) if type(t) in told]):
            found.insert(next((i for i, other in enumerate(found) if issubclass(kind, other)), len(found)), kind)
        recording = modes.grad
        try:
            set_recording(recording and not found)
            for kind in found:
                made = kind.__torch_dispatch__(func, tuple(found), args, kwargs or {})
                if made is not NotImplemented:
                    if func._schema.is_mutable and type(args[0]) in told:
                        args[0].own_storage().version += 1
                    return made
        finally:
            modes.grad, modes.quiet = recording, False
            settle()
        if found:
            names = ", ".join([f"tensor subclass {kind}" for kind in found])
            raise TypeError(f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented: {names}")
        return dispatching.computed(func)(*args, **(kwargs or {}))


def _plainly(values: Any) -> tuple[Any, ...]:
    plain = lambda v: [plain(part) for part in v] if isinstance(v, (list, tuple)) else _values(v) if type(v) in told else v  # noqa: E731
    return tuple([plain(v) for v in values])


mode = _Classes()


def telling(values: Any = None) -> Any:
    """Return a block in which classes are told, if there are any among the values."""
    if mode in modes.dispatch or _state.untold or not (values is None or _any_told(values)):
        return contextlib.nullcontext(False)
    return _told((mode, *modes.dispatch))


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Compute with tensors as they are in the block, and tell nobody of operators."""
    _state.untold += 1
    try:
        with _told():
            yield
    finally:
        _state.untold -= 1


def reach(asks: Any, values: Any, args: Any, kwargs: Any) -> Any:
    """Call a public function, or the method of it, in the mode where it is needed."""
    if _looked.isdisjoint(map(type, values)):
        return asks.__wrapped__(*args, **kwargs)
    with telling(values) as entered:
        return asks.__wrapped__(*args, **kwargs) if entered is False else asks(*args, **kwargs)


def step(kernel: str, lists: Any, changed: Any, numbers: Any) -> None:
    """Take an optimiser's step in operators, and copy what comes out into parameters and state."""
    with telling(), no_grad():
        results = getattr(TENSOR_KERNELS, kernel)(*lists, **numbers)
        for t, value in [pair for group in zip(changed, results) for pair in zip(*group)]:
            aten.copy_.default(t, value)


def _noted(t: Any, seq: int) -> Any:
    _graphs[id(t)] = t
    return TensorBase.note_use(t, seq)


def read(attribute: Any, name: str, t: Any) -> Any:
    """Read an attribute that is computed with operators."""
    if type(t) not in told:
        return attribute.__get__(t)
    return t.detach() if name == "data" else reach(asking.Overridable(attribute.fget, ""), (t,), (t,), {})


def records(args: Any) -> bool:
    """Tell whether a call is recorded in which a class takes part."""
    return modes.grad and _any_told(args) and any([t._rg for t in _tensors(args)])


def _across(op: Any, args: Any, attrs: Any, out: Any) -> Any:
    with telling(args) as entered:
        return (_of_plain[1] if entered is False else call.slow)(op, args, attrs, out)


def _placed(op: Any, args: Any, attrs: Any, made: Any) -> Any:
    """Do what `call.placed` does; what the node keeps is of the class too."""
    tensors = _tensors(args)
    if not _any_told((made, *tensors)):
        return _of_plain[0](op, args, attrs, made)
    if not modes.grad or op.no_grad_reason is not None or not any([t._rg for t in tensors]):
        return _linked(op, args, attrs, made)
    parts = [_twin(t) if t._rg or any([t is a for a in tensors]) else t for t in (made if isinstance(made, tuple) else (made,))]
    kept = [partial(_twin, _twin(t)) if type(t) in told else t._buffer for t in parts]
    t, out = (tuple(parts), tuple(kept)) if isinstance(made, tuple) else (parts[0], kept[0])
    args = [_cast(a) if type(a) in told and a._rg and a._dtype is not parts[0]._dtype else a for a in args]
    record(op, [a if isinstance(a, TensorBase) else Const(a) for a in args], attrs, out, t)
    node = parts[0]._node.parent if isinstance(parts[0]._node, Slot) else parts[0]._node
    if node is not None:  # as of a cast to integers
        node.device = node.device.base
        _graphs[id(node)] = node
    return _linked(op, args, attrs, t)


def _cast(a: Any) -> Any:
    """Return an operand, which its class has cast, as one whose gradient is cast back."""
    return crossed(a, (a,), lambda g: (g if g._dtype is a._dtype else g.to(a._dtype),), "ToCopyBackward0")


def _linked(op: Any, args: Any, attrs: Any, t: Any) -> Any:
    """Let what a class has made as a view be known as one: what is written there takes its place in the graph of the base."""
    if op.view and modes.grad and type(t) in told and type(args[0]) in told and t._storage is None:
        call.link_view(t, args[0], op, attrs)
    return t


# ---- what is told as one operator, and recorded otherwise ----


def crossed(t: Any, sources: Any, back: Any, name: str) -> Any:
    """Give what a class has made of tensors its place in the graph; `back` takes a gradient to theirs."""
    made = record_crossing(_twin(t), sources, back, name)
    if made._node is not None:
        made._node.device = made._node.device.base
        _graphs[id(made._node)] = made._node
    return made


class _Writing:
    """A mode: where a function computes of the stand-in of a tensor, the operator is told that writes the tensor."""

    def __init__(self, name: str, old: Any, t: Any) -> None:
        self.name, self.old, self.t, self.done = name, old, t, False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet = func.overloadpacket
        if self.done or not args or args[0] is not self.old or f"{packet.__name__}_" != self.name:
            return func(*args, **(kwargs or {}))
        op, self.done = OPS.get(packet.__name__), True
        if op is None or op.variadic or op.plans[tuple([isinstance(a, TensorBase) and a._rg for a in args[: len(op.inputs)]])][0][0]:
            copy = aten.clone.default(self.old)  # which the gradient asks for
            _with(self.old, attributes(copy))._buffer = copy._buffer
        dispatching._overload(self.name, (self.t, *args[1:]))(self.t, *args[1:], **(kwargs or {}))
        return self.t


def written(name: str, args: Any, kwargs: Any) -> Any:
    """Tell of an operator that writes its first operand, and give that the place of what it holds then in the graph."""
    t, rest = args[0], args[1:]
    check_writable(name, t)
    t.own_storage()
    if t._note and t._viewed is not None:
        raise RuntimeError(forbidden_view(t._note))
    base, old, value = before_rebase(t), _twin(t), None
    old._rg, old._node = t._rg, t._node
    if name == "index_put_":
        aten.index_put_.default(t, *rest, **kwargs)
        values = rest[1] if len(rest) > 1 else kwargs["values"]
        value = crossed(t, (old, values), lambda g: _put_back(g, *rest, **kwargs), "IndexPutBackward0")
    elif name != "copy_" and hasattr(Tensor, name[:-1]):
        writing = _Writing(name, old, t)
        with _told((*modes.dispatch, writing)):
            value = getattr(Tensor, name[:-1])(old, *rest, **kwargs)
        if not writing.done:
            aten.copy_.default(t, value)
    else:
        dispatching._overload(name, args)(t, *rest, **kwargs)
        sources = (old, *[a for a in rest[:1] if isinstance(a, TensorBase)])
        back = lambda g: (zeros_like(g), *[g.sum_to_size(s.shape).to(s.dtype) for s in sources[1:]])  # noqa: E731
        value = crossed(t, sources, back, "CopyBackwards")
    node = value._node
    if node is not None:
        node.note_storage(node.number if type(node) is Slot else 0, t._storage)
    rebase(t, value, base)
    return t


def _put_back(g: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    kept = g if accumulate else aten.index_put.default(g, indices, zeros_like(values))
    return kept, dispatching.indexed(g, indices).sum_to_size(values.shape)


def _give_slots(node: Any, results: Any) -> Any:
    return (fast.replaced.get("give_slots", _of_plain[4]) if _any_told(results) else _of_plain[4])(node, results)


def _start(name: str, tensors: Any, grads: Any, create_graph: bool, inputs: Any = None) -> Any:
    if not _graphs:
        return _of_plain[2](name, tensors, grads, create_graph, inputs)
    outs = gradients.as_tuple(tensors)
    given = (None,) * len(outs) if grads is None else gradients.as_tuple(grads)
    grads = [ones_like(t) if g is None and type(t) in told and t.numel() == 1 else g for t, g in zip(outs, given)]
    return *_of_plain[2](name, outs, grads, True, inputs)[:2], True


def _write_out(name: str, out: Any, value: Any, *args: Any, **options: Any) -> Any:
    if not _any_told((out, value)) or (modes.grad and (value._rg or out._rg)):
        return _of_plain[5](name, out, value, *args, **options)
    with telling((out, value)):
        return aten.copy_.default(out, value)


def _values(t: Any) -> Any:
    if type(t) not in told:
        raise NotImplementedError("this function reads values itself, and its tensor, of a class that alone knows them, has none.")
    made = empty(t.shape, dtype=t.dtype, device=t.device)
    with telling((t,)), no_grad():
        aten.copy_.default(made, t)
    return record_crossing(made, (t,), lambda g: (g,), "CopyBackwards")


def _zeros(t: Any) -> Any:
    with telling((t,)):
        return aten.zeros_like.default(t)


def indexed(what: Any, args: Any) -> Any:
    """Tell of reading or writing a plain tensor at tensors of classes, which asks nobody; NotImplemented for all else."""
    if what not in ("__getitem__", "__setitem__") or mode in modes.dispatch or _state.untold or not _any_told(args):
        return NotImplemented
    with telling():
        if what == "__getitem__":
            return dispatching._read(*args)
        return dispatching._write(*args, records(args))


def _walk(roots: Any, grads: Any, **options: Any) -> Any:
    with telling() if _graphs else contextlib.nullcontext():
        return _of_plain[3](roots, grads, **options)


asking.CLASSES = sys.modules[__name__]
call.placed, call.ACROSS_LEVELS, gradients._start, gradients.walk = _placed, _across, _start, _walk  # type: ignore
nodes.give_slots, call.WRITE_OUT, levels.OF_OUTLINE, gradients.OUTLINE_ZEROS = _give_slots, _write_out, _values, _zeros


# ---- what libraries take from torch.utils._python_dispatch ----


def transform_subclass(t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None) -> Any:
    """Return a wrapper of what `callback(name, tensor)` makes of each tensor that one wraps."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size, stride = t.size() if outer_size is None else outer_size, t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return what an operator's result is to its caller: of one that writes the tensor written, of others `out`."""
    if func._schema.is_mutable and isinstance(args[0], TensorBase):
        return args[0]
    return (kwargs or {}).get("out", out)


def _get_current_dispatch_mode() -> Any:
    return modes.dispatch[-1] if modes.dispatch else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return list(modes.dispatch)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Tell whether a mode is told of operators here."""
    return any([entered is not mode for entered in modes.dispatch])


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Leave the innermost mode for a block, which gets it."""
    *others, innermost = modes.dispatch
    with _told(tuple(others)):
        yield innermost
