"""Reading and writing by index: slices, integer and boolean tensors, and mixes of them."""

from __future__ import annotations

import operator
import warnings
from typing import Any

from mortice import fast
from mortice import node as _node
from mortice import op as _op
from mortice.dtype import bool_, int64, uint8
from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting, modes, special
from mortice.mutation import assign, check_writable, layout, view_scatter
from mortice.node import TENSOR_KERNELS
from mortice.op import TensorBase, as_view, op
from mortice.ops.data import range_of
from mortice.ops.elementwise import where as choose
from mortice.ops.movement import cast, expand, permute, reshape, transfer, unsqueeze
from mortice.shape import SIZES, Size, broadcast, contiguous_strides, prod, remembered
from mortice.tensor import make

# ---- basic indices: ints, slices, None, Ellipsis ----


def _key_shape(name: str, old: Size, *, key: Any, shape: Size) -> Size:
    return shape


def _key_strides(old: Any, strides: Any, key: Any, shape: Any) -> tuple[int, ...]:
    out, i = [], 0
    for k in key:
        if k is None:
            out.append(1)
            continue
        if isinstance(k, slice):
            out.append(strides[i] * (k.step or 1))
        i += 1
    return (*out, *strides[i:])


@op(
    shape=_key_shape,
    view=True,
    name="getitem",
    grad_name="SliceBackward0",
    scatter=lambda k, x, part, key, shape: k.setitem(k.copy(x), key, part),
    strides=_key_strides,
)
def _slice(k: Any, x: Any, /, *, key: Any, shape: Size) -> Any:
    """Read by ints, slices with any step, None and Ellipsis; a view."""
    return k.getitem(x, key)


_slice.vjp(x=lambda k, g, x_shape, key: k.setitem(k.new_full(g, x_shape, 0), key, g), jvp="linear")


def _same_as_first(name: str, shape: Size, value: Any, *, key: Any) -> Size:
    return shape


@op(shape=_same_as_first, name="setitem", grad_name="CopySlices")
def _set_slice(k: Any, x: Any, value: Any, /, *, key: Any) -> Any:
    """Return x with the region at a basic key replaced."""
    return k.setitem(k.copy(x), key, value)


_set_slice.vjp(
    x=lambda k, g, key: k.setitem(k.copy(g), key, 0),
    value=lambda k, g, key, value_shape: _node.unbroadcast(k, k.getitem(g, key), value_shape),
    jvp="linear",
)


def _kernel_getitem(x: Any, key: Any) -> Any:
    key, shape = basic_key(x.shape, key if isinstance(key, tuple) else (key,))
    return _slice(x, key=key, shape=shape)


def _kernel_setitem(x: Any, key: Any, value: Any) -> Any:
    if not isinstance(value, TensorBase):
        value = TENSOR_KERNELS.new_full(x, (), value)
    return _set_slice(x, value, key=key if isinstance(key, tuple) else (key,))


TENSOR_KERNELS.replace("getitem", _kernel_getitem)
TENSOR_KERNELS.replace("setitem", _kernel_setitem)


def basic_key(shape: Size, key: tuple[Any, ...]) -> tuple[tuple[Any, ...], Size]:
    """Normalise a basic key: Ellipsis filled in, ints and bounds checked and wrapped; return it with the shape."""
    used = 0
    dots = -1
    for i, k in enumerate(key):
        if k is Ellipsis:
            if dots >= 0:
                raise IndexError("an index can only have a single ellipsis ('...').")
            dots = i
        elif k is not None:
            used += 1
    ndim = len(shape)
    if used > ndim == 0:
        raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number.")
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}; got {used}.")
    if dots >= 0:
        key = (*key[:dots], *(slice(None),) * (ndim - used), *key[dots + 1 :])
    out: list[Any] = []
    sizes: list[int] = []
    sizes_in = iter(shape)
    for k in key:
        if k is None:
            out.append(None)
            sizes.append(1)
            continue
        n = next(sizes_in)
        if isinstance(k, slice):
            k, length = _slice_of(k, n)
            out.append(k)
            sizes.append(length)
            continue
        if not -n <= k < n:
            raise IndexError(f"index {k} is out of bounds for dimension {ndim - 1 - len(list(sizes_in))} with size {n}")
        out.append(k + n if k < 0 else k)
    sizes.extend(sizes_in)
    return tuple(out), Size(sizes)


def _slice_of(s: slice, n: int) -> tuple[slice, int]:
    if s.start is None and s.stop is None and s.step is None:
        return s, n
    try:
        start, stop, step = s.indices(n)
    except TypeError:
        s = slice(*(None if v is None else operator.index(v) for v in (s.start, s.stop, s.step)))
        start, stop, step = s.indices(n)
    except ValueError:
        raise ValueError("slice step cannot be zero") from None
    length = len(range(start, stop, step))
    # Python's own form: a stop before the first element is None when it steps backwards.
    return slice(start, None if step < 0 and stop < 0 else stop, step), length


# ---- integer tensors ----


def _taken(name: str, shape: Size, indices: Size, *, axis: int) -> Size:
    return Size((*tuple(shape)[:axis], *indices, *tuple(shape)[axis + 1 :]))


@op(shape=_taken, fixed=("indices",), kernel="take", name="take", grad_name="IndexSelectBackward0")
def _take(k: Any, x: Any, indices: Any, /, *, axis: int) -> Any:
    """Pick positions (1-D) along an axis."""
    return k.take(x, indices, axis=axis)


_take.vjp(
    x=lambda k, g, x_shape, indices, axis: k.index_add(k.new_full(g, x_shape, 0), indices, g, axis=axis), jvp="linear"
)


def _unchanged(name: str, shape: Size, *rest: Any, **attrs: Any) -> Size:
    return shape


@op(shape=_unchanged, fixed=("indices",), kernel="index_add", name="index_add")
def _index_add(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Add slices of `values` at positions (1-D) along an axis; repeated positions add up."""
    return k.index_add(x, indices, values, axis=axis)


_index_add.vjp(
    x=lambda k, g: g, values=lambda k, g, indices, axis: k.take(g, indices, axis=axis), jvp="linear"
)


@op(shape=_unchanged, fixed=("indices",), kernel="index_write", name="index_write", grad_name="IndexPutBackward0")
def _index_write(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Replace slices at positions (1-D) along an axis; of a repeated position the last write stays."""
    return k.index_write(x, indices, values, axis=axis)


_index_write.vjp(
    x=lambda k, g, indices, values_shape, axis: k.index_write(g, indices, k.new_full(g, values_shape, 0), axis=axis),
    values=lambda k, g, indices, axis: k.take(g, indices, axis=axis),
    jvp="linear",
)


def check_range(name: str, indices: Any, n: int, dim: int) -> Any:
    """Refuse indices outside [-n, n) and wrap negative ones; reads the indices once."""
    if not prod(indices.shape):
        return indices
    # Where they cannot be read, any may be negative.
    low, high = range_of(indices) or (-n, n - 1)
    if low < -n or high >= n:
        bad = low if low < -n else high
        raise IndexError(f"{name}: index {bad} is out of bounds for dimension {dim} with size {n}")
    return choose(indices < 0, indices + n, indices) if low < 0 else indices


class Advanced:
    """An advanced index worked out: x with the indexed dims in front and joined, and the positions to take there."""

    def __init__(self, x: Any, key: tuple[Any, ...]) -> None:
        x, key = expand_key(x, key)
        # First the basic part: full slices stand where tensors index, bools (0-d) count as a new dim of 0 or 1.
        basic = tuple(slice(None) if isinstance(k, TensorBase) else k for k in key)
        self.key, shape = basic_key(x.shape, basic)
        if not any([isinstance(k, TensorBase) for k in key]):
            raise ShapeError("index_put: expected at least one Tensor of indices; got none.")
        self.x = x
        self.seen = x if shape == x.shape else _slice(x, key=self.key, shape=shape)
        places, dim = [], 0
        for k in key:
            if isinstance(k, TensorBase):
                places.append((dim, k))
            if not isinstance(k, int):
                dim += 1
        dims = [d for d, _ in places]
        try:
            common = broadcast("index", *[k.shape for _, k in places])
        except ShapeError:
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + ", ".join(str(list(k.shape)) for _, k in places)
            ) from None
        self.dims, self.common = dims, common
        flat: Any = None
        for d, k in places:
            n = shape[d]
            k = check_range("index", cast(k, int64), n, d)
            flat = k if flat is None else flat * n + k
        self.flat = reshape(expand(flat, common), -1) if prod(flat.shape) != 1 or common else reshape(flat, 1)
        rest = [d for d in range(len(shape)) if d not in dims]
        self.order = (*dims, *rest)
        self.front = prod(shape[d] for d in dims)
        self.rest_shape = tuple(shape[d] for d in rest)
        adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
        self.at = dims[0] if adjacent else 0

    def joined(self) -> Any:
        """Return x with the indexed dims in front, as one."""
        return reshape(permute(self.seen, self.order), (self.front, *self.rest_shape))

    def unjoin(self, rows: Any) -> Any:
        """Undo `joined`."""
        back = [0] * len(self.order)
        for i, d in enumerate(self.order):
            back[d] = i
        shape = tuple(self.seen.shape)
        return permute(reshape(rows, tuple(shape[d] for d in self.order)), back)

    def result_shape(self) -> Size:
        """Return the shape of what the key shows."""
        return Size((*self.rest_shape[: self.at], *self.common, *self.rest_shape[self.at :]))

    def result(self, rows: Any) -> Any:
        """Give rows (picked, *rest) the result's shape and order of dims."""
        n = len(self.common)
        rows = reshape(rows, (*self.common, *self.rest_shape))
        ndim = n + len(self.rest_shape)
        order = (*range(n, n + self.at), *range(n), *range(n + self.at, ndim))
        return rows if self.at == 0 else permute(rows, order)

    def rows(self, values: Any) -> Any:
        """Undo `result`."""
        n, ndim = len(self.common), len(self.common) + len(self.rest_shape)
        shape = self.result_shape()
        values = expand(values, shape) if tuple(values.shape) != shape else values
        if self.at:
            values = permute(values, (*range(self.at, self.at + n), *range(self.at), *range(self.at + n, ndim)))
        return reshape(values, (prod(self.common), *self.rest_shape))


def expand_key(x: Any, key: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Turn every part of a key into an int, slice, None or integer tensor on x's device; Ellipsis is filled in.

    A 0-d mask gets an axis of x of its own, so x is returned with the key.
    """
    out: list[Any] = []
    used = 0
    for k in key:
        if k is None or isinstance(k, slice) or k is Ellipsis:
            used += isinstance(k, slice)
            out.append(k)
            continue
        if isinstance(k, bool):
            k = _constant(x, k, bool_)
        elif isinstance(k, (list, tuple, range)) or (not isinstance(k, TensorBase) and hasattr(k, "__array__")):
            k = _constant(x, k, None)
        elif not isinstance(k, TensorBase):
            if not hasattr(k, "__index__"):
                raise IndexError(
                    "only integers, slices (`:`), ellipsis (`...`), None and integer or bool tensors are valid indices; "
                    f"got {type(k).__name__}."
                )
            out.append(operator.index(k))
            used += 1
            continue
        if k.dtype is bool_ or k.dtype is uint8:
            if k.dtype is uint8:
                warnings.warn("indexing with dtype uint8 is now deprecated, please use a dtype bool instead.", stacklevel=4)
            out.append(k)
            used += len(k.shape)
        elif k.dtype.kind in "iu":
            out.append(k)
            used += 1
        else:
            raise IndexError(f"tensors used as indices must be integer or bool tensors; got {k.dtype}.")
    if Ellipsis in [k for k in out if not isinstance(k, TensorBase)]:
        at = next(i for i, k in enumerate(out) if k is Ellipsis)
        out[at : at + 1] = [slice(None)] * (len(x.shape) - used)
    final: list[Any] = []
    dim = 0
    for k in out:
        if isinstance(k, TensorBase) and k.dtype in (bool_, uint8):
            if not k.shape:
                x = unsqueeze(x, dim)
                k = unsqueeze(k, 0)
            final += positions(x, k, dim)
            dim += len(k.shape)
        else:
            final.append(transfer(k, x._device) if isinstance(k, TensorBase) else k)
            dim += k is not None
    return x, tuple(final)


def _constant(x: Any, value: Any, dtype: Any) -> Any:
    from mortice.ops.data import tensor

    made = tensor(value, dtype=dtype, device=x._device)
    return cast(made, int64) if made.dtype.kind == "f" and not prod(made.shape) else made


def positions(x: Any, mask: Any, dim: int) -> list[Any]:
    """Return, for a boolean mask from `dim` on, the positions that are true: one int64 tensor per dim of the mask.

    Differs from torch: a dim of size 0 in a mask matches any size, as the array API standard has it.
    """
    shape = mask.shape
    for i, n in enumerate(shape):
        # A size of 0 selects nothing, whatever it stands beside.
        if dim + i >= len(x.shape) or n not in (x.shape[dim + i], 0):
            raise IndexError(
                f"The shape of the mask {list(shape)} at index {i} does not match the shape of the indexed tensor "
                f"{list(x.shape)} at index {dim + i}"
            )
    return along_dims(flat_nonzero(transfer(mask, x._device)), shape)


def along_dims(flat: Any, shape: Any) -> list[Any]:
    """Return, for flat positions in a shape, the index along each dim."""
    out: list[Any] = []
    for n in reversed(tuple(shape)[1:]):
        row = flat // n if n else flat
        out.insert(0, flat - row * n)
        flat = row
    return [flat, *out] if shape else out


def flat_nonzero(x: Any) -> Any:
    """Return the flat positions of nonzero elements; how many depends on the data, so it is read once."""
    k = x._device.backend
    data = k.flat_nonzero(x._data)
    return make(data, x._device, int64, Size(k.shape_of(data)))


# ---- x[key] and x[key] = value ----


def _is_basic(key: tuple[Any, ...]) -> bool:
    for k in key:
        kind = type(k)
        if kind is int or kind is slice or k is None or k is Ellipsis:
            continue
        return False
    return True


def _holds_indices(key: list[Any]) -> bool:
    """Tell whether a list is read as the tuple of its items, as PyTorch does where one is more than a number; it warns too."""
    if len(key) >= 32 or not any([k is None or k is Ellipsis or isinstance(k, slice) or hasattr(k, "__len__") for k in key]):
        return False
    warnings.warn(
        "a list of indices is read as x[tuple(list)], which is deprecated: it will come to mean one index, a tensor of "
        "positions. Use x[tuple(list)], or x[tensor(list)].",
        stacklevel=4,
    )
    return True


def as_key(key: Any) -> tuple[Any, ...]:
    """Return a key as a tuple; 0-d integer tensors and NumPy integers become ints."""
    if isinstance(key, tuple):
        parts = key
    else:
        parts = tuple(key) if type(key) is list and _holds_indices(key) else (key,)
    if _is_basic(parts):
        return parts
    out = []
    for k in parts:
        if isinstance(k, TensorBase):
            if not k.shape and k.dtype.kind in "iu" and k.dtype is not uint8 and k._device.level is None:
                k = k._device.backend.item(k._data)
        elif not isinstance(k, (bool, list, tuple)) and not hasattr(k, "__array__") and hasattr(k, "__index__"):
            k = operator.index(k)
        elif hasattr(k, "__index__") and getattr(k, "shape", None) == () and not isinstance(k, bool):
            k = operator.index(k)
        elif isinstance(k, slice):
            k = slice(*(None if v is None else operator.index(v) for v in (k.start, k.stop, k.step)))
        out.append(k)
    return tuple(out)


def getitem(input: Any, key: Any) -> Any:
    """Read by index; ints, slices (any step), None and Ellipsis give a view, tensors and masks a copy."""
    # A sole slice, the commonest key, needs no check but that there is something to cut.
    if (type(key) is slice and input.shape and _is_bare(key)) or _is_plain(key, input.shape):
        key = key if type(key) is tuple else (key,)
        backend = input._device.backend
        data = backend.getitem(input._data, key)
        shape = backend.shape_of(data)
        shape = SIZES.get(shape) or remembered(shape)
        return as_view(_SLICE, input, data, shape, {"key": key, "shape": shape} if input._rg else (key, shape))
    key = as_key(key)
    if _is_basic(key):
        key, shape = basic_key(input.shape, key)
        return _slice(input, key=key, shape=shape)
    found = _one_tensor(input, key)
    if found is not None:
        return found
    plan = Advanced(input, key)
    return plan.result(_take(plan.joined(), plan.flat, axis=0))


_ALL = slice(None)


def _one_tensor(x: Any, key: tuple[Any, ...]) -> Any:
    """Read the commonest keys the short way: one vector of positions beside full slices, one mask of x's shape."""
    axis = len(key) - 1
    at = key[axis]
    if axis >= len(x.shape) or any([k is not _ALL and (type(k) is not slice or k != _ALL) for k in key[:axis]]):
        return None
    if type(at) is list:
        at = _constant(x, at, None)
    if not isinstance(at, TensorBase) or at._device is not x._device:
        return None
    if at.dtype is int64 and at.shape:
        at = check_range("index", at, x.shape[axis], axis)
        if len(at.shape) == 1:
            return _take(x, at, axis=axis)
        shape = tuple(x.shape)
        return reshape(_take(x, reshape(at, -1), axis=axis), (*shape[:axis], *at.shape, *shape[axis + 1 :]))
    if at.dtype is bool_ and axis == 0 and at.shape == x.shape:
        return _take(reshape(x, -1), flat_nonzero(at), axis=0)
    return None


_BOUNDS = frozenset((int, type(None)))


def _is_bare(key: slice) -> bool:
    """Tell whether the bounds of a slice are ints as they are, not tensors or others that stand for one."""
    return type(key.start) in _BOUNDS and type(key.stop) in _BOUNDS and type(key.step) in _BOUNDS


def _is_plain(key: Any, shape: Size) -> bool:
    """Tell whether a key is only slices and ints in range, so that any backend reads it the same way."""
    kind = type(key)
    if kind is slice:
        return bool(shape) and _is_bare(key)
    if kind is int:
        return bool(shape) and -shape[0] <= key < shape[0]
    if kind is not tuple or len(key) > len(shape):
        return False
    for k, n in zip(key, shape):
        kind = type(k)
        if (kind is slice and _is_bare(k)) or (kind is int and -n <= k < n):
            continue
        return False
    return True


_SLICE = _slice.op
getitem = fast.stand_before(fast.GETITEM, _SLICE, getitem)


def _set_number(input: Any, key: Any, value: Any) -> bool:
    """Do the commonest write, that of a number into a tensor that no view shows; tell whether it was one."""
    kind = type(value)
    if (
        (kind is not float and kind is not int)
        or input.dtype.kind != "f"
        or not -60000 < value < 60000  # every float dtype holds these
        or input._rg
        or not _is_plain(key, input.shape)
        or not input._device.backend.mutable
        or (special[0] and modes.inference)
    ):
        return False
    storage = input._storage or input.own_storage()
    if input._note or input._viewed is not None or input._steps is not None:
        return False
    input._device.backend.setitem(input._data, key if type(key) is tuple else (key,), value)
    storage.version += 1
    return True


def setitem(input: Any, key: Any, value: Any) -> None:
    """Write by index, in place; the value broadcasts and is cast to the tensor's dtype."""
    if _set_number(input, key, value):
        return
    key = as_key(key)
    if not isinstance(value, TensorBase):
        from mortice.ops.data import tensor

        value = tensor(value, device=input._device, dtype=input.dtype)
    elif value._device is not input._device:
        if value.shape:
            _op.check_device(_slice.op, input, value)
        value = transfer(value, input._device)
    value = cast(value, input.dtype)
    if _is_basic(key):
        key, shape = basic_key(input.shape, key)
        check_writable("setitem", input)
        assign_view(_slice(input, key=key, shape=shape), value)
        return
    check_writable("setitem", input)
    _write_at(input, key, value, False)


def assign_view(target: Any, value: Any) -> None:
    """Write a value into a view, dropping leading dims of 1 that the value has too many."""
    lead = len(value.shape) - len(target.shape)
    if lead > 0 and all(n == 1 for n in tuple(value.shape)[:lead]):
        value = reshape(value, tuple(value.shape)[lead:])
    if value.shape != target.shape:
        if broadcast("setitem", target.shape, value.shape) != target.shape:
            raise ShapeError(
                f"setitem: shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing "
                f"result of shape {list(target.shape)}"
            )
        value = expand(value, target.shape)
    copy_(target, value)


def copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Copy the values of `other` into this tensor, broadcasting and casting; gradients flow to `other`."""
    check_writable("copy_", self)
    if other is self:
        return self
    src = cast(transfer(other, self._device, non_blocking), self.dtype)
    if src.shape != self.shape:
        src = expand(src, self.shape)
    recorded = modes.grad and (self._rg or src._rg)
    return assign(self, view_scatter(self, src, steps=()) if recorded else src, False)


def _fitted(shape: Size, value: Any) -> Any:
    """Return values without leading dims of 1 that are too many; refuse those that do not broadcast to what a key shows."""
    lead = len(value.shape) - len(shape)
    if lead > 0 and all(n == 1 for n in tuple(value.shape)[:lead]):
        value = reshape(value, tuple(value.shape)[lead:])
    try:
        fits = broadcast("index_put", shape, value.shape) == shape
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"index_put: shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing "
            f"result of shape {list(shape)}"
        )
    return value


def _put(plan: Advanced, value: Any, accumulate: bool) -> Any:
    """Return a tensor like the plan's with the values at its key replaced or added to."""
    write = _index_add if accumulate else _index_write
    changed = plan.unjoin(write(plan.joined(), plan.flat, plan.rows(value), axis=0))
    return _set_slice(plan.x, changed, key=plan.key) if plan.x is not plan.seen else changed


def _put_in_place(x: Any, plan: Advanced, value: Any, accumulate: bool) -> bool:
    """Write at a key into x's own memory, where that can be; tell whether it was done."""
    at, n, backend = plan.at, len(plan.dims), x._device.backend
    if plan.dims != list(range(at, at + n)) or not may_write_rows(x, plan.seen, value):
        return False
    data, before, after = plan.seen._data, plan.rest_shape[:at], plan.rest_shape[at:]
    if n > 1:
        if backend.strides_of(data) != contiguous_strides(plan.seen.shape):
            return False
        data = backend.reshape(data, (*before, plan.front, *after))
    value = expand(value, plan.result_shape())
    if len(plan.common) != 1:
        value = reshape(value, (*before, prod(plan.common), *after))
    return write_rows(x, data, plan.flat, value, at, accumulate)


def _put_mask(x: Any, mask: Any, value: Any) -> bool:
    """Write where a mask of x's leading dims is true into x's own memory, where that can be; tell whether it was done."""
    if (
        not isinstance(mask, TensorBase)
        or mask.dtype is not bool_
        or not mask.shape
        or mask._device is not x._device
        or tuple(mask.shape) != tuple(x.shape)[: len(mask.shape)]
        or not may_write_rows(x, x, value)
        or x._device.backend.strides_of(x._data) != contiguous_strides(x.shape)
    ):
        return False
    index, rest = flat_nonzero(mask), tuple(x.shape)[len(mask.shape) :]
    shape = Size((index.shape[0], *rest))
    value = expand(_fitted(shape, value), shape)
    return write_rows(x, x._device.backend.reshape(x._data, (prod(mask.shape), *rest)), index, value, 0, False)


def may_write_rows(x: Any, shown: Any, value: Any) -> bool:
    """Tell whether `write_rows` may be asked: nothing records the write, and what x shows is memory to write into."""
    backend = x._device.backend
    if (
        not backend.mutable
        or x._device.base is not x._device
        or value._device is not x._device
        or value.dtype is not x.dtype
        or (modes.grad and (x._rg or value._rg))
    ):
        return False
    strides = backend.strides_of(shown._data)
    # An element that is shown several times is refused where the whole is written.
    return strides is not None and not any(s == 0 and n > 1 for s, n in zip(strides, shown.shape))


def write_rows(x: Any, data: Any, index: Any, value: Any, axis: int, add: bool) -> bool:
    """Write at positions along an axis into the buffer that x shows: of a large tensor few rows take no copy of the whole."""
    if not x._device.backend.put_rows(data, index._data, value._data, axis=axis, add=add):
        return False
    (x._storage or x.own_storage()).version += 1
    return True


@autocasting
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return a copy with the values at tensors of indices replaced, or added to."""
    if not isinstance(values, TensorBase) or values.dtype is not input.dtype:
        raise DTypeError(
            f"index_put: Index put requires the source and destination dtypes match; got {input.dtype} and "
            f"{getattr(values, 'dtype', type(values).__name__)}."
        )
    key = tuple(slice(None) if k is None else k for k in indices)
    plan = Advanced(input, key)
    return _put(plan, _fitted(plan.result_shape(), values), accumulate)


def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write the values at tensors of indices in place."""
    check_writable("index_put_", input)
    return _write_at(input, tuple(slice(None) if k is None else k for k in indices), values, accumulate)


def _write_at(input: Any, key: tuple[Any, ...], values: Any, accumulate: bool) -> Any:
    if len(key) == 1 and not accumulate and _put_mask(input, key[0], values):
        return input
    plan = Advanced(input, key)
    values = _fitted(plan.result_shape(), values)
    if _put_in_place(input, plan, values, accumulate):
        return input
    changed = _put(plan, values, accumulate)
    changed = changed if changed.shape == input.shape else reshape(changed, input.shape)
    # The memory keeps its order: what came out of a permutation is copied in.
    return assign(input, changed, layout(changed) == layout(input))


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Choose `input` where the condition holds, else `other`; with a condition alone, return where it is true."""
    if input is None and other is None:
        mask = condition if condition.dtype is bool_ else condition != 0
        return tuple(positions(condition, mask, 0))
    return choose(condition, input, other, out=out)
