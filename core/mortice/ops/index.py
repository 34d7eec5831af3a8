"""Reading and writing by index: slices, integer and boolean tensors, and mixes of them."""

from __future__ import annotations

import operator
from typing import Any

from mortice import call as _call
from mortice import fast
from mortice.call import as_view
from mortice.dtype import bool_, float64, int64, scalar_dtype, uint8
from mortice.errors import DTypeError, ShapeError
from mortice.layout import strided
from mortice.modes import autocasting, modes, special
from mortice.mutation import REAL, assign, assign_number, check_apart, check_writable, into, plain, view_scatter, write
from mortice.node import named
from mortice.notice import warn
from mortice.ops.bounds import where as choose
from mortice.ops.data import is_sequence
from mortice.ops.index_advanced import (
    Advanced,
    _constant,
    _index_add,
    _index_write,
    _take,
    flat_nonzero,
    flat_positions,
    positions,
)
from mortice.ops.index_basic import _ALL, _set_slice, _slice, basic_key, in_ints, read_sparse
from mortice.ops.movement import (
    _inverse,
    cast,
    clone,
    dense_order,
    expand,
    expanded,
    no_view,
    permute,
    reshape,
    transfer,
)
from mortice.rules import hold, holds
from mortice.shape import SCALAR, SIZES, Size, broadcast, contiguous_strides, prod, remembered, spreads_to
from mortice.strides import layout
from mortice.tensor import TensorBase, make, steps_since

__all__ = ["index_put", "index_put_", "where"]

# ---- x[key] and x[key] = value ----


_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def _is_basic(key: tuple[Any, ...]) -> bool:
    return _BASIC.issuperset(map(type, key))


def _holds_indices(key: list[Any]) -> bool:
    """Tell whether a list is read as the tuple of its items, as PyTorch does where one is more than a number; it warns too."""
    if len(key) >= 32 or not any([k is None or k is Ellipsis or isinstance(k, slice) or hasattr(k, "__len__") for k in key]):
        return False
    warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated: it is read as x[tuple(list)] and will come to "
        "mean one index, a tensor of positions. Use x[tuple(list)], or x[tensor(list)]."
    )
    return True


def as_key(key: Any) -> tuple[Any, ...]:
    """Return a key as a tuple; 0-d integer tensors and NumPy integers become ints, 0-d uint8 tensors bools."""
    parts = key if isinstance(key, tuple) else (key,)
    if _is_basic(parts):
        return parts
    if parts is not key and not isinstance(key, TensorBase) and is_sequence(key) and not hasattr(key, "__array__"):
        if _holds_indices(list(key)) and _is_basic(parts := tuple(key)):
            return parts
    out = []
    for k in parts:
        if isinstance(k, TensorBase):
            if not k.shape and k.dtype.kind in "iu" and k._device.level is None:
                number = k._device.backend.item(k._buffer)
                k = bool(number) if k.dtype is uint8 else number
        elif not isinstance(k, (bool, list, tuple)) and not hasattr(k, "__array__") and hasattr(k, "__index__"):
            k = operator.index(k)
        elif hasattr(k, "__index__") and getattr(k, "shape", None) == () and not isinstance(k, bool):
            k = operator.index(k)
        elif isinstance(k, slice):
            k = in_ints(k)
        out.append(k)
    return tuple(out)


def _of_ints(x: Any, key: list[Any]) -> Any:
    """Return a list of ints as the tensor that it stands for, any other one as it is."""
    return _constant(x, key, None) if {*map(type, key)} == {int} else key


def _rows_as_they_lie(x: Any, flat: Any, order: tuple[int, ...]) -> Any:
    """Take rows that each lie in another order than row-major, such as images with channels last, and so lie again."""
    return no_view(permute(_take(permute(x, order), flat, axis=0), _inverse(order)), "IndexBackward0")


def getitem(input: Any, key: Any) -> Any:
    """Read by index; ints, slices (any step), None and Ellipsis give a view, tensors and masks a copy."""
    if key.__class__ is list:
        key = _of_ints(input, key)
    sole = key.__class__ is _call.Tensor and key.shape  # the commonest key that shows no view
    advanced = sole or (type(key) is tuple and _takes_positions(key))
    plain_key = None if advanced or (special[0] and modes.dispatch) else _plain_key(key, input.shape)
    if plain_key is not None:
        key = plain_key
        backend = input._device.backend
        try:
            data = backend.getitem(input._buffer, key)
        except NotImplementedError:
            return read_sparse(input, key)
        shape = backend.shape_of(data)
        shape = SIZES.get(shape) or remembered(shape)
        return as_view(_SLICE, input, data, shape, {"key": key, "shape": shape} if input._rg else (key, shape))
    if sole:
        key = (key,)
    elif not advanced:
        answer = _call.ASK("__getitem__", (input, key), {})
        if answer is not NotImplemented:
            return answer
        key = as_key(key)
        if _is_basic(key):
            key, shape = basic_key(input.shape, key)
            try:
                return _slice(input, key=key, shape=shape)
            except NotImplementedError:
                return read_sparse(input, key)
    found = _side_by_side(input, key)
    if found is not None:
        axis, dims, common, flat = found
        shape = tuple(input.shape)
        if dims != 1:
            joined = (*shape[:axis], prod(shape[axis : axis + dims]), *shape[axis + dims :])
            device, k = input._device, input._device.backend
            if device.base is device is flat._device and not (input._rg or special[0] or _take.op.observer) and len(common) == 1:
                try:  # without the tensor of the joined dims, which nobody sees
                    data = k.take(k.reshape(input._buffer, joined), flat._buffer, axis=axis)
                    return make(data, device, input.dtype, remembered((*shape[:axis], *common, *shape[axis + dims :])))
                except MemoryError:
                    pass  # worded below
            input = reshape(input, joined)
        if len(common) == 1:
            order = None if axis or input._device.backend.is_contiguous(input._buffer) else dense_order(input)
            return _take(input, flat, axis=axis) if order is None or order[0] else _rows_as_they_lie(input, flat, order)
        made = _take(input, flat, axis=axis)
        made = reshape(made, (*shape[:axis], *common, *shape[axis + dims :]))
    else:
        plan = Advanced(input, key)
        made = plan.result(_take(plan.joined(), plan.flat, axis=plan.at))
    return named(made, "IndexBackward0") if made._rg else made


def _takes_positions(key: tuple[Any, ...]) -> bool:
    """Tell whether a key is of tensors that have dims, and full slices beside them."""
    found = False
    for k in key:
        if k.__class__ is _call.Tensor:
            if not k.shape:
                return False
            found = True
        elif type(k) is not slice or k != _ALL:
            return False
    return found


def _side_by_side(x: Any, key: tuple[Any, ...]) -> tuple[int, int, Size, Any] | None:
    """Work out the commonest keys the short way: one mask, or tensors of positions beside each other, among full slices.

    Returns the first dim, how many dims they index, the shape of what they show of those, and the positions over them
    together; None for any other key, and for what is wrong with one.
    """
    shape, device = x.shape, x._device
    start, stop = 0, len(key)
    if key[0] is Ellipsis:
        start = 1
    elif key[-1] is Ellipsis:
        stop -= 1
    while start < stop and type(key[start]) is slice and key[start] == _ALL:
        start += 1
    while start < stop and type(key[stop - 1]) is slice and key[stop - 1] == _ALL:
        stop -= 1
    if stop - start == 1 and start + len(key) - stop < len(shape) and key[0] is not Ellipsis:
        sole = key[start]
        if isinstance(sole, TensorBase) and sole.dtype is int64 and sole._device is device and sole.shape:
            size = tuple.__getitem__(shape, start)
            return start, 1, sole.shape, flat_positions([sole], (size,), (start,), sole.shape)
    given = key[start:stop]
    if not given:
        return None
    dims, axis = len(given), start
    for k in given:
        if type(k) is list:
            key = (*key[:start], *[_constant(x, k, None) if type(k) is list else k for k in given], *key[stop:])
            return _side_by_side(x, key)
        if not isinstance(k, TensorBase) or k._device is not device or not k.shape:
            return None
        if k.dtype is not int64 and (k.dtype is not bool_ or dims != 1):
            return None
    first = given[0]
    if first.dtype is bool_:
        dims = len(first.shape)
    if key[0] is Ellipsis:
        axis = len(shape) - dims - (len(key) - stop)
        if axis < 0 or start != 1:
            return None
    elif axis + dims + (len(key) - stop) > len(shape) + (key[-1] is Ellipsis):
        return None
    sizes = tuple.__getitem__(shape, slice(axis, axis + dims))
    if first.dtype is bool_:
        if first.shape != sizes:
            return None
        flat = flat_nonzero(first)
        return axis, dims, flat.shape, flat
    common = first.shape
    if dims > 1:
        try:
            common = broadcast("index", *[k.shape for k in given])
        except ShapeError:
            return None
    return axis, dims, common, flat_positions(given, sizes, range(axis, axis + dims), common)


_BOUNDS = frozenset((int, type(None)))


def _is_bare(key: slice) -> bool:
    """Tell whether the bounds of a slice are ints as they are, not tensors or others that stand for one."""
    return type(key.start) in _BOUNDS and type(key.stop) in _BOUNDS and type(key.step) in _BOUNDS


def _plain_key(key: Any, shape: Size) -> tuple[Any, ...] | None:
    """Return a key of only slices, ints in range, None and one Ellipsis as any backend reads it; None for any other key."""
    kind = type(key)
    if kind is _call.Tensor and not key.shape and key.dtype is int64 and key._device.level is None:
        key, kind = key._device.backend.item(key._buffer), int
    if kind is int or kind is slice:
        fits = shape and (-tuple.__getitem__(shape, 0) <= key < tuple.__getitem__(shape, 0) if kind is int else _is_bare(key))
        return (key,) if fits else None
    parts = key if kind is tuple else (key,)
    if len(parts) <= len(shape):
        for k, n in zip(parts, shape):
            kind = type(k)
            if not ((kind is slice and _is_bare(k)) or (kind is int and -n <= k < n)):
                break
        else:
            return parts
    used = len(parts) - parts.count(None) if _is_basic(parts) else -1
    dots = [i for i, k in enumerate(parts) if k is Ellipsis] if used >= 0 else []
    used -= len(dots)
    if not 0 <= used <= len(shape) or len(dots) > 1:
        return None
    if dots:
        parts = (*parts[: dots[0]], *(_ALL,) * (len(shape) - used), *parts[dots[0] + 1 :])
    sizes = iter(shape)
    for k in parts:
        if k is not None:
            n = next(sizes)
            if not (_is_bare(k) if type(k) is slice else -n <= k < n):
                return None
    return parts


_SLICE = _slice.op
getitem = fast.stand_before(fast.GETITEM, _SLICE, getitem)


def _set_plainly(input: Any, key: Any, value: Any, spread: bool = False) -> bool:
    """Do the commonest writes, of a number or a tensor of one dtype at a basic key, unrecorded; tell whether it was one.

    With `spread` a mask broadcasts to the tensor.
    """
    kind, d = type(value), input.dtype
    number = kind in REAL or (kind is bool and d is bool_)
    if number:
        # Every float dtype holds these.
        held = kind is bool or (d.stored is d and -60000 < value < 60000 if d.kind == "f" else holds(d, value))
        if not held:
            return False
    elif (
        value.__class__ is not _call.Tensor  # other classes are asked
        or value.dtype is not d
        or value._device is not input._device
        or (value._rg and (not special[0] or modes.grad))
    ):
        return False
    elif value._storage is not None and input._storage is not None and value._storage.aliases is input._storage.aliases:
        # It is written as it is where it is that very part: `x[0] += 1` puts back what it has written.
        steps, part = input._steps, ((_SLICE, {"key": _plain_key(key, input.shape), "shape": value.shape}),)
        if steps_since(steps, value._steps) != (steps, part) or not plain(input):
            return False
        input._storage.version += 1
        return True
    if isinstance(key, TensorBase) and key.shape:
        return key.__class__ is _call.Tensor and _set_at_sole(input, key, value, spread)
    if type(key) is tuple and _takes_positions(key):
        device = input._device
        if device.base is not device or not plain(input):
            return False
        if number:
            value = make(device.backend.full((), value, dtype=d, device=device), device, d, SCALAR)
        return _put_beside(input, key, value, False)
    plain_key = _plain_key(key, input.shape)
    key = key if type(key) is tuple else (key,)
    if (plain_key is None and not _is_basic(key)) or not plain(input):
        return False
    backend, data = input._device.backend, input._buffer
    if plain_key is not None:
        key = plain_key
        if number:
            backend.setitem(data, key, value)
            input._storage.version += 1
            return True
    else:
        key = basic_key(input.shape, key)[0]
    shown = backend.getitem(data, key)
    if not number:
        shape = backend.shape_of(shown)
        if value.shape != shape and not spreads_to(value.shape, shape):
            return False
        value = value._buffer
    backend.setitem(shown, (...,), value)
    input._storage.version += 1
    return True


def _set_at_sole(x: Any, key: Any, value: Any, spread: bool) -> bool:
    """Do the commonest writes at a tensor of positions or a mask; tell whether it was one."""
    device, number = x._device, not isinstance(value, TensorBase)
    if key._device is not device or not x.shape or device.base is not device or not plain(x):
        return False
    k, data = device.backend, x._buffer
    wanted = () if number else value.shape
    if key.dtype is bool_:
        mask, own = key._buffer, tuple(key.shape)
        if wanted or own != x.shape and (
            broadcast("masked_fill_", x.shape, own) != x.shape if spread
            else own != x.shape[: len(own)] or x.numel() > 65536  # of large ones only the rows are written
        ):  # fmt: skip
            return False
        if not spread:
            mask = k.reshape(mask, own + (1,) * (x.ndim - len(own)))
    elif key.dtype is not int64 or len(key.shape) != 1 or k.flat_index is None:
        return False
    values = k.full((), value, dtype=x.dtype, device=device) if number else value._buffer
    if key.dtype is bool_:
        write(x, k.where(mask, values, data), k.is_contiguous(data))  # else the memory keeps its order
        return True
    size, *rest = x.shape
    at, shown = k.flat_index(key._buffer, sizes=(size,)), (*key.shape, *rest)
    if at is None or not (wanted == shown or spreads_to(wanted, shown)):
        return False
    values = values if wanted == shown else k.broadcast_to(values, shown)
    if not k.put_rows(data, at, values, axis=0, add=False):
        return False
    x._storage.version += 1
    return True


def setitem(input: Any, key: Any, value: Any) -> None:
    """Write by index, in place; the value broadcasts and is cast to the tensor's dtype.

    Differs from torch: a value that overlaps its place is read whole first, where PyTorch may read what it has just written.
    """
    given = key
    if key.__class__ is list:
        key = _of_ints(input, key)
    if _set_plainly(input, key, value):
        return
    simple = key.__class__ is _call.Tensor and value.__class__ in (float, int)
    if not simple and _call.ASK("__setitem__", (input, given, value), {}) is not NotImplemented:
        return
    if input._device.level is not None and input.layout is not strided:
        raise TypeError("setitem: Cannot assign to a sparse tensor")
    key = as_key(key)
    if not isinstance(value, TensorBase):
        from mortice.ops.data import tensor

        if type(value) is float and input.dtype.kind == "f":
            value = hold("setitem", value, input.dtype, ())
        value = tensor(value, device=input._device, dtype=input.dtype)
    elif value._device is not input._device:
        if value.shape:
            _call.check_device(_slice.op, input, value)
        value = transfer(value, input._device)
    basic = _is_basic(key)
    if value.dtype is not input.dtype:
        loses = value.dtype.is_complex and input.dtype.kind in "uif"
        if not (basic or (value.numel() == 1 and not loses and _mask(key))):
            _fitted(Advanced(input, key).result_shape(), value)  # for their errors, which come first
            raise _other_dtype("setitem", input, value)
        value = cast(value, input.dtype)
    if basic:
        key, shape = basic_key(input.shape, key)
        check_writable("setitem", input)
        assign_view(_slice(input, key=key, shape=shape), value)
        return
    check_writable("setitem", input)
    _write_at(input, key, value, False)


def _mask(key: tuple[Any, ...]) -> Any:
    """Return the dtype of the one mask that a key selects by; None for other keys."""
    from mortice.ops.data import as_tensor

    chosen = [part for part in key if part is not None and part is not Ellipsis and type(part) not in (int, slice)]
    found = as_tensor(chosen[0]).dtype if len(chosen) == 1 else None
    return found if found is bool_ or found is uint8 else None


def _other_dtype(name: str, input: Any, values: Any) -> DTypeError:
    return DTypeError(
        f"{name}: Index put requires the source and destination dtypes match; got {input.dtype} and "
        f"{getattr(values, 'dtype', type(values).__name__)}. Convert the values with .to({input.dtype})."
    )


def assign_view(target: Any, value: Any) -> None:
    """Write a value into a view, dropping leading dims of 1 that the value has too many."""
    lead = len(value.shape) - len(target.shape)
    if lead > 0 and all(n == 1 for n in tuple(value.shape)[:lead]):
        value = reshape(value, tuple(value.shape)[lead:])
    copy_(target, value if value.shape == target.shape else expanded("setitem", value, target.shape))


def copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Copy the values of `other` into this tensor, broadcasting and casting; gradients flow to `other`."""
    check_apart(self, (other,))
    if (
        isinstance(other, TensorBase)
        and other is not self
        and other.dtype is self.dtype
        and other._device is self._device
        and other.shape == self.shape
        and not (other._rg and (not special[0] or modes.grad))
        and plain(self)
    ):
        self._device.backend.setitem(self._buffer, (...,), other._buffer)
        self._storage.version += 1
        return self
    check_writable("copy_", self)
    if other is self:
        return self
    if not isinstance(other, TensorBase):
        if not isinstance(other, (int, float, complex)):
            raise TypeError(f"copy_: expected a Tensor or a number; got {type(other).__name__}.")
        from mortice.ops.data import tensor

        d = scalar_dtype(other)
        if (d.kind == "f" and self.dtype is not d) or abs(other) >= 1 << 63:
            d = float64 if float64 in self._device.backend.dtypes(self._device) else d
        other = tensor(other, dtype=d, device=self._device)
    if other._device is not self._device and self.layout is strided is not other.layout:
        raise RuntimeError(f"copy_() between dense and sparse Tensors is not implemented; got {other.layout}. Use .to_dense() first.")
    src = cast(transfer(other, self._device, non_blocking), self.dtype)
    if src.shape != self.shape:
        src = into("copy_", self, expand(src, broadcast("copy_", self.shape, src.shape)))
    recorded = modes.grad and (self._rg or src._rg)
    return assign(self, view_scatter(self, src, steps=()) if recorded else src, False)


def _fitted(shape: Size, value: Any) -> Any:
    """Return values without leading dims of 1 that are too many; refuse those that do not broadcast to what a key shows."""
    if value.shape == shape:
        return value
    lead = len(value.shape) - len(shape)
    if lead > 0 and all(n == 1 for n in tuple(value.shape)[:lead]):
        value = reshape(value, tuple(value.shape)[lead:])
    if not spreads_to(value.shape, shape):
        raise ShapeError(
            f"index_put: shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing "
            f"result of shape {list(shape)}"
        )
    return value


def _put(plan: Advanced, value: Any, accumulate: bool) -> Any:
    """Return a tensor like the plan's with the values at its key replaced or added to."""
    write = _index_add if accumulate else _index_write
    changed = plan.unjoin(write(plan.joined(), plan.flat, plan.rows(value), axis=plan.at))
    return _set_slice(plan.x, changed, key=plan.key) if plan.x is not plan.seen else changed


def _put_in_place(x: Any, plan: Advanced, value: Any, accumulate: bool) -> bool:
    """Write at a key into x's own memory, where that can be; tell whether it was done."""
    if not plan.adjacent or not may_write_rows(x, plan.seen, value):
        return False
    return _put_joined(x, plan.seen, plan.at, len(plan.dims), plan.common, plan.flat, value, accumulate)


def _put_joined(
    x: Any, shown: Any, axis: int, dims: int, common: Size, flat: Any, value: Any, accumulate: bool
) -> bool:
    """Write at positions over dims that lie beside each other into the memory of x, of which `shown` is a view."""
    data, backend, shape = shown._buffer, x._device.backend, tuple(shown.shape)
    before, after = shape[:axis], shape[axis + dims :]
    if dims > 1:
        if backend.strides_of(data) != contiguous_strides(shape):
            return False
        data = backend.reshape(data, (*before, prod(shape[axis : axis + dims]), *after))
    values, wanted = value._buffer, (*before, *common, *after)
    if value.shape != wanted:
        values = backend.broadcast_to(values, wanted)
    if len(common) != 1:
        values = backend.reshape(values, (*before, prod(common), *after))
    return write_rows(x, data, flat, values, axis, accumulate)


def _put_beside(x: Any, key: tuple[Any, ...], value: Any, accumulate: bool) -> bool:
    """Write at one of the commonest keys into x's own memory, where that can be; tell whether it was done."""
    found = _side_by_side(x, key)
    if found is None:
        return False
    axis, dims, common, flat = found
    shape = tuple(x.shape)
    value = _fitted(Size((*shape[:axis], *common, *shape[axis + dims :])), value)
    return _put_joined(x, x, axis, dims, common, flat, value, accumulate)


def may_write_rows(x: Any, shown: Any, value: Any) -> bool:
    """Tell whether `write_rows` may be asked: nothing records the write, and what x shows is memory to write into."""
    backend = x._device.backend
    if (
        not backend.mutable
        or x._device.base is not x._device
        or value._device is not x._device
        or value.dtype.stored is not x.dtype
        or (modes.grad and (x._rg or value._rg))
    ):
        return False
    strides = backend.strides_of(shown._buffer)
    # An element that is shown several times is refused where the whole is written.
    return strides is not None and not any(s == 0 and n > 1 for s, n in zip(strides, shown.shape))


def write_rows(x: Any, data: Any, index: Any, values: Any, axis: int, add: bool) -> bool:
    """Write buffers at positions along an axis of the one that x shows: of a large tensor few rows take no copy of the whole."""
    if index._device is not x._device or not x._device.backend.put_rows(data, index._buffer, values, axis=axis, add=add):
        return False
    (x._storage or x.own_storage()).version += 1
    return True


@autocasting
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return a copy with the values at tensors of indices replaced, or added to."""
    if not isinstance(values, TensorBase) or values.dtype is not input.dtype:
        raise _other_dtype("index_put", input, values)
    key = tuple(slice(None) if k is None else k for k in indices)
    if key and may_write_rows(input, input, values) and _put_beside(made := clone(input), key, values, accumulate):
        return made
    plan = Advanced(input, key)
    return named(_put(plan, _fitted(plan.result_shape(), values), accumulate), "IndexPutBackward0")


def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write the values at tensors of indices in place."""
    check_writable("index_put_", input)
    return _write_at(input, tuple(slice(None) if k is None else k for k in indices), values, accumulate)


def _write_at(input: Any, key: tuple[Any, ...], values: Any, accumulate: bool) -> Any:
    mask = _mask(key) if values.numel() == 1 else None
    if mask is None:
        check_apart(input, (values, *key), False)
    elif mask is uint8 and not accumulate:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask}")
    if values.dtype is not input.dtype:  # one number fills what a mask chooses, of any dtype, as masked_fill_ does
        if mask is None or accumulate or (values.dtype.kind == "c" and input.dtype.kind != "c"):
            raise _other_dtype("index_put_", input, values)
        values = values.to(input.dtype)
    if (
        len(key) == 1 and not accumulate and key[0].__class__ is _call.Tensor and not values._rg
        and values._device is input._device and _set_at_sole(input, key[0], values, False)
    ):  # fmt: skip
        return input
    if may_write_rows(input, input, values) and _put_beside(input, key, values, accumulate):
        return input
    plan, one = Advanced(input, key), values.numel() == 1
    values = _fitted(plan.result_shape(), values)
    if _put_in_place(input, plan, values, accumulate):
        return input
    changed = _put(plan, values, accumulate)
    changed = named(changed if changed.shape == input.shape else reshape(changed, input.shape), "IndexPutBackward0")
    # The memory keeps its order: what came out of a permutation is copied in.
    fresh = layout(changed) == layout(input)
    if one and not accumulate:
        return assign_number("index_put_", input, changed, fresh)
    return assign(input, changed, fresh)


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Choose `input` where the condition holds, else `other`; with a condition alone, return where it is true."""
    if input is None and other is None:
        if not condition.shape:  # one element lies somewhere, as nonzero has it
            condition = reshape(condition, 1)
        mask = condition if condition.dtype is bool_ else condition != 0
        return tuple(positions(condition, mask, 0))
    return choose(condition, input, other, out=out)
