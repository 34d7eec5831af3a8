"""The call path: what happens when an op is called.

It is compiled once per operation: `unary`, `binary` and `general` below return the function that users call. Each starts
with the case that matters (tensors of one backend and one dtype: kernel, wrap, record if needed) and leaves everything
else (Python numbers, promotion, errors, memory that ends) to `slow`. What forwards a tensor's attributes is no tensor.
"""

from __future__ import annotations

from importlib import import_module
from weakref import ref

from mortice import fast
from mortice.dtype import DType, dtype_of_all, float32, scalar_dtype
from mortice.errors import DeviceError
from mortice.formula import Differentiable
from mortice.modes import modes, special
from mortice.node import Const, named, new, record, record_one, record_two
from mortice.rules import holds, number_of, same
from mortice.shape import SCALAR, Size, broadcast, out_of_memory
from mortice.tensor import INFERENCE, TensorBase, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mortice.op import Op

LARGEST = 3.4028234663852886e38  # of float32
inf = float("inf")
Tensor: Any = None  # the public class, set by `methods`; a name of this module, which is read faster than an attribute


def run(op: Op, args: Sequence[Any], attrs: dict[str, Any], result: Any = None) -> Any:
    """Apply an op to operands that are ready: tensors of one device and the compute dtype, numbers, None.

    `result` is the dtype (or dtypes) of the result; None asks the op's rule about the first tensor's dtype.
    """
    if special[0] and modes.dispatch:
        made = DISPATCH(op, args, attrs, None)
        if made is not None:
            other = isinstance(result, DType) and getattr(made, "_dtype", result) is not result and "dtype" not in attrs
            return placed(op, args, attrs, CAST(made, result) if other else made)
    first: Any = None
    shapes: list[Any] = []
    buffers, recorded = [], False
    for a in args:
        if isinstance(a, TensorBase):
            if first is None:
                first = a
            shapes.append(a.shape)
            buffers.append(a._buffer)
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
                r._note = INFERENCE
    else:
        t = make(out, device, result, Size(device.backend.shape_of(out)) if shape is None else shape)
        if modes.inference and not op.view:  # a view is what its base is
            t._note = INFERENCE
    if recorded and modes.grad:
        record(op, [a if isinstance(a, TensorBase) else Const(a) for a in args], attrs, out, t)
    if op.view:
        link_view(t, first, op, attrs)
    return t


def placed(op: Op, args: Sequence[Any], attrs: dict[str, Any], made: Any) -> Any:
    """Give what a dispatch mode has made of an op its place in the graph."""
    if not modes.grad or op.no_grad_reason is not None or not any([a._rg for a in args if isinstance(a, TensorBase)]):
        return made
    # An operand that is handed back has a place already.
    parts = [t._share() if t._rg or any([t is a for a in args]) else t for t in (made if isinstance(made, tuple) else (made,))]
    data = [t._buffer for t in parts]
    t, out = (tuple(parts), tuple(data)) if isinstance(made, tuple) else (parts[0], data[0])
    record(op, [a if isinstance(a, TensorBase) else Const(a) for a in args], attrs, out, t)
    return t


def _unrecorded() -> str:
    """Return the note of a view that is made while nothing is recorded."""
    return "no_grad: inference" if modes.inference else "no_grad"


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
        t._note = _unrecorded()


def as_view(op: Op, x: Any, data: Any, size: Size, attrs: Any, silent: Any = False) -> Any:
    """Wrap the buffer of a view that is already made: the short way for reshape and slices, `link_view` spelled out.

    Attributes may come as a tuple of their values, or as None for the size alone: their dict is made where somebody asks.
    With `silent`, True where it is given, the caller records the view and notes what it is.
    """
    t = new(Tensor)
    t._buffer = data
    t._device = x._device
    t._dtype = x.dtype
    t._shape = size
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
    if silent or (special[0] and not modes.grad):
        t._note = t._note or _unrecorded()
    elif x._rg:
        record_one(op, x, data, t, attrs)
    return t


def advice(value: Any) -> str:
    """Name the type of what is no tensor, and say what to do."""
    return f"{type(value).__name__}. Use mortice.tensor(...) first."


def no_tensor(name: str, argument: str, value: Any) -> TypeError:
    """Return the error for an argument that must be a tensor, in PyTorch's words."""
    return TypeError(f"{name}: argument '{argument}' must be Tensor, not {advice(value)}")


def foreign(op: Op, value: Any, position: int) -> TypeError:
    """Return the error for an operand that is no tensor and no number."""
    inside = op.inputs[min(position, len(op.inputs) - 1)]
    return no_tensor(op.name, {"x": "input", "y": "other"}.get(inside, inside), value)


def check_device(op: Op, x: Any, y: Any) -> None:
    """Refuse operands of different devices or backends; of one place at different levels they may be."""
    a, b = x._device.base, y._device.base
    if a is not b:
        if a.backend is b.backend:
            raise DeviceError(
                f"{op.name}: Expected all tensors to be on the same device; got {a} and {b}. Move one of them with .to('{a}')."
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


def slow(op: Op, args: Sequence[Any], attrs: dict[str, Any], out: Any = None, made: Any = None) -> Any:
    """Apply an op to operands as the user gave them: promote, convert numbers, check devices; write `out`; or place what is `made`."""
    if out is not None:
        written = DIRECTLY(op, out, args, attrs)
        if written is not None:
            return written
    for name, value in attrs.items():
        if isinstance(value, TensorBase):
            attrs[name] = number_of(op.name, name, value)
    tensors, moving, numbers = [], [], []  # `moving` take part in promotion
    given = args
    args = list(args) if modes.autocast is None or out is not None else modes.autocast.operands(op.name, args)
    if special[0] and modes.dispatch:
        found = DISPATCH(op, args, attrs, out, True)
        if found is not None:
            return found
    for i, a in enumerate(args):
        if isinstance(a, TensorBase):
            tensors.append(a)
            if i not in op.fixed:
                moving.append(a)
        elif isinstance(a, (int, float, complex)):
            numbers.append(a)
        elif a is not None:
            if hasattr(type(a), "__torch_function__"):
                answer = ASK(op.fn, given, attrs)
                if answer is not NotImplemented:
                    return answer
            args[i] = converted = as_operand(op, a, i)
            numbers.append(converted)
        elif op.scalars and len(args) == 2:  # neither of two operands may be left out
            raise foreign(op, a, i)
    if not tensors or (numbers and not op.scalars):
        if op.scalars == "alone" and len(numbers) == len(args):
            return slow(op, [FROM_NUMBER(args[0]), *args[1:]], attrs, out)
        got = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"{op.name}: expected {'a Tensor' if not tensors else 'Tensors'}; got {got}.")
    first = tensors[0]
    for t in tensors[1:]:
        if t._device is not first._device and not (made is not None and t._device.base is first._device.base and t._device.inner is None):
            return ACROSS_LEVELS(op, one_place(op, args, tensors), attrs, out)
    d = dtype_of_all(moving, numbers)
    if op.operand is not None:
        for a in (*moving, *numbers):
            op.operand(op, a.dtype if isinstance(a, TensorBase) else scalar_dtype(a))
    compute, result = op.rule(d)
    for i, a in enumerate(args):
        if i in op.fixed:
            continue
        if isinstance(a, TensorBase):
            if a.dtype is not compute and not (made is not None and a._device.is_outline):  # whose class has cast it
                args[i] = CAST(a, compute)
        elif a is not None:
            args[i] = op.number(op, a, compute, i)
    if op.check is not None:
        op.check(op.name, *args, **attrs)
    t = run(op, args, attrs, result) if made is None else placed(op, args, attrs, made)
    if out is not None:
        shared = op.view or any([a._buffer is t._buffer for a in args if isinstance(a, TensorBase)])
        t = WRITE_OUT(op.name, out, t, op, not shared)
    if op.observer is not None:
        op.observer(op, given, attrs, t)
    return t


def as_operand(op: Op, value: Any, position: int) -> Any:
    """Turn an operand of another library into a number, if it is one; refuse the rest."""
    if getattr(value, "shape", ()):
        raise foreign(op, value, position)
    if hasattr(value, "shape") and hasattr(value, "item"):
        number = value.item()
        return float(number) if number is True or number is False else number  # to PyTorch what is not Python's bool is a float
    if hasattr(value, "__index__"):
        return value.__index__()
    if getattr(value, "ndim", None) == 0 and hasattr(value, "__float__"):
        return float(value)
    raise foreign(op, value, position)


# Filled in by `ops.movement` (the cast, the move to a device), `ops.data` (a tensor of a number), `mutation` (writing into a
# given tensor, at once where it can be), `levels` (operands of several levels) and `subclasses.dispatching`: all are written with ops.
# Once a class has `__torch_dispatch__`, `subclasses` stands before `ACROSS_LEVELS` and `placed`, and before the walk of `gradients`.
CAST: Callable[..., Any] = slow
MOVE: Callable[..., Any] = slow
FROM_NUMBER: Callable[..., Any] = slow
WRITE_OUT: Callable[..., Any] = slow
DIRECTLY: Callable[..., Any] = slow
ACROSS_LEVELS: Callable[..., Any] = slow
DISPATCH: Callable[..., Any] = slow


def give(name: str, out: Any, made: Any, op: Any = None, reads: Any = ()) -> Any:
    """Return a result, in the tensor given as `out=` if there is one."""
    return made if out is None else WRITE_OUT(name, out, made, op, reads=reads)


_quiet: set[type] = set()  # types that take no calls over, and hold nothing that does


def ASK(what: Any, args: Any, attrs: Any, first: bool = False) -> Any:
    """Give the call of a function, or of a method by its name, to the class of an operand that is no tensor.

    `asking` does, whose function takes this one's place once such a class is seen.
    """
    values = (*args, *attrs.values()) if attrs else args
    for a in values:
        if type(a) not in _quiet:
            break
    else:
        return NotImplemented
    kinds = {type(v) for a in values for v in (a if type(a) is list or type(a) is tuple else (a,))}
    if not any([hasattr(kind, "__torch_function__") and not issubclass(kind, TensorBase) for kind in kinds]):
        _quiet.update(kinds - {list, tuple})
        return NotImplemented
    import_module("mortice.overrides")
    return ASK(what, args, attrs, True)


def asked(name: str, x: Any, other: Any) -> Any:
    """Give an operator's call to the class of an operand that is no tensor; NotImplemented where that does not answer."""
    try:
        return ASK(name, (x, other), {}) if hasattr(type(other), "__torch_function__") else NotImplemented
    except TypeError as error:
        if isinstance(error, RuntimeError):
            raise
        return NotImplemented


as_view = fast.install(Differentiable, as_view)


def unary(op: Op) -> Callable[..., Any]:
    """Compile an op of one tensor without attributes, whose shape is the tensor's or none."""
    same_dtype = op.same_dtype
    shaped = op.shape is same

    def call(input: Any, *, out: Any = None) -> Any:
        try:
            result = same_dtype[input.dtype]
            device = input._device
        except (AttributeError, KeyError):
            return slow_one(op, input, out)
        if out is not None or not isinstance(input, TensorBase) or (special[0] and modes.rerouted):
            return slow(op, (input,), {}, out)
        try:
            data = device.table[op](input._buffer)
        except MemoryError:
            return slow(op, (input,), {})
        t = new(Tensor)
        t._buffer = data
        t._device = device
        t._dtype = result
        t._shape = input.shape if shaped else SCALAR
        t._rg = False
        t._node = t._storage = t._leaf = None
        if input._rg and (not special[0] or modes.grad) and op.no_grad_reason is None:
            record_one(op, input, data, t)
        return t

    return fast.stand_before(fast.ONE, op, call, None if shaped else SCALAR)


def _only_cast(op: Op, compute: Any, result: Any) -> bool:
    """Tell whether operands of the compute dtype give that result, and nobody is to see them as they came."""
    found = op.same_dtype.get(compute)
    return (found is result or (found is None and op.rule(compute) == (compute, result))) and op.observer is None


def slow_two(op: Op, x: Any, y: Any, out: Any = None) -> Any:
    """Apply an op of two operands that are not the fast case, which they may be once they are cast."""
    if (
        isinstance(x, TensorBase) and isinstance(y, TensorBase) and x._device is y._device
        and op.check is op.operand is None and not (special[0] and modes.rerouted)
    ):  # fmt: skip
        compute, result = op.rule(dtype_of_all((x, y)))
        if _only_cast(op, compute, result) and not x.dtype is y.dtype is compute:
            if x.shape and not y.shape and compute.itemsize == 2 and compute.kind == "f" and 1 in getattr(op.number, "positions", ()):
                # What has no dims counts in full, as numbers do there.
                t = named(CAST(op.fn(CAST(x, float32), CAST(y, float32)), compute), op.grad_name)
                return t if out is None else WRITE_OUT(op.name, out, t, op, False)
            if out is None:
                return op.fn(CAST(x, compute), CAST(y, compute))
    return slow(op, (x, y), {}, out)


def slow_one(op: Op, x: Any, out: Any) -> Any:
    """Do as `slow_two` for an op of one operand."""
    if out is None and isinstance(x, TensorBase) and op.check is op.operand is None and not (special[0] and modes.rerouted):
        compute, result = op.rule(x.dtype)
        if _only_cast(op, compute, result) and x.dtype is not compute:
            return op.fn(CAST(x, compute))
    return slow(op, (x,), {}, out)


def slow_number(op: Op, x: Any, value: Any, swapped: bool) -> Any:
    """Do as `slow_two` for a tensor and a number, which may make floats of integers."""
    if x.dtype.kind in "iu" and op.check is None and op.scalars and not (special[0] and modes.rerouted):
        if op.operand is not None:
            op.operand(op, x.dtype)
        compute, result = op.rule(dtype_of_all((x,), (value,)))
        if compute.kind == "f" and compute.itemsize > 2 and _only_cast(op, compute, result):
            x = CAST(x, compute)
            return op.fn(value, x) if swapped else op.fn(x, value)
    return slow(op, (value, x) if swapped else (x, value), {})


def binary(op: Op, fallback: Callable[..., Any] = slow_two) -> Callable[..., Any]:
    """Compile an op of two operands without attributes; `fallback(op, x, y, out)` takes what is not the fast case."""
    same_dtype = op.same_dtype
    shape_rule: Any = op.shape

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        try:
            device = input._device
            if (
                other._device is not device
                or other.dtype is not input.dtype
                or not (isinstance(input, TensorBase) and isinstance(other, TensorBase))
                or out is not None
                or (special[0] and modes.rerouted)
            ):
                return fallback(op, input, other, out)
            result = same_dtype[input.dtype]
            if (shape := input.shape) != other.shape or shape_rule is not broadcast:
                shape = shape_rule(op.name, shape, other.shape)
        except (AttributeError, KeyError):
            kind = type(other)
            if (kind is float or kind is int) and out is None and op.scalars and isinstance(input, TensorBase):
                return with_number(input, other, False)
            kind = type(input)
            if (kind is float or kind is int) and out is None and op.scalars and isinstance(other, TensorBase):
                return with_number(other, input, True)
            return fallback(op, input, other, out)
        try:
            data = device.table[op](input._buffer, other._buffer)
        except MemoryError:
            return fallback(op, input, other, None)
        t = new(Tensor)
        t._buffer = data
        t._device = device
        t._dtype = result
        t._shape = shape
        t._rg = False
        t._node = t._storage = t._leaf = None
        if (input._rg or other._rg) and (not special[0] or modes.grad) and op.no_grad_reason is None:
            record_two(op, input, other, data, t)
        return t

    def with_number(x: Any, value: Any, swapped: bool) -> Any:
        d = x.dtype
        result: Any = same_dtype.get(d)
        plain = result is not None and op.scalars and not (special[0] and modes.rerouted)
        if plain and d.kind == "f" and d.itemsize == 2:
            value = op.number(op, value, d, 0 if swapped else 1)
        elif d.kind == "f":
            plain = plain and not LARGEST < abs(value) < inf
        else:
            plain = plain and holds(d, value)
        if not plain:
            return slow_number(op, x, value, swapped)
        device = x._device
        try:
            data = device.table[op](value, x._buffer) if swapped else device.table[op](x._buffer, value)
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
        if out is not None or not isinstance(input, TensorBase) or (special[0] and modes.rerouted):
            return slow(op, (input,), attrs, out)
        for value in attrs.values():
            if isinstance(value, TensorBase):
                return slow(op, (input,), attrs)
        shape = shape_rule(op.name, input.shape, **attrs)
        try:
            data = device.table[op](input._buffer, **attrs)
        except MemoryError:
            return slow(op, (input,), attrs)
        t = new(Tensor)
        t._buffer = data
        t._device = device
        t._dtype = result
        t._shape = shape
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
        return as_view(op, input, input._device.table[op](input._buffer, **attrs), shape, attrs)

    return fast.stand_before(fast.VIEW, op, call, shape_rule)


def general(op: Op) -> Callable[..., Any]:
    """Compile any other op: attributes as keywords, any number of operands."""
    fixed = op.fixed
    lead = min({*range(len(op.inputs))} - fixed, default=-1)  # the first operand that takes part in promotion

    def call(*args: Any, out: Any = None, **attrs: Any) -> Any:
        result = None
        if out is None and op.check is None and lead >= 0 and not (special[0] and modes.autocast is not None):
            try:
                first = args[lead]
                d = first.dtype
                result = op.same_dtype.get(d)
                if result is not None:
                    device = first._device
                    i = 0
                    for a in args:
                        if a is not None and not (isinstance(a, TensorBase) and a._device is device and (a.dtype is d or i in fixed)):
                            result = None
                            break
                        i += 1
                    for value in attrs.values():
                        if isinstance(value, TensorBase):
                            result = None
            except (AttributeError, IndexError):
                result = None
        if result is not None:  # outside of the try: what a kernel raises is its own
            return run(op, args, attrs, result)
        return slow(op, args, attrs, out)

    if op.check is not None or op.shape is None or op.view or lead < 0:
        return call
    return fast.stand_before(fast.ANY, op, call, None if op.shape is same and not lead else op.shape)
