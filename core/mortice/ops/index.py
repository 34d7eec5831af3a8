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
from mortice.mutation import OVERLAP, assign, check_writable, layout, plain, view_scatter, write
from mortice.node import TENSOR_KERNELS, named
from mortice.op import TensorBase, as_view, hold, op
from mortice.ops.data import range_of
from mortice.ops.elementwise import where as choose
from mortice.ops.movement import cast, expand, permute, reshape, transfer, unsqueeze
from mortice.shape import SIZES, Size, broadcast, contiguous_strides, prod, remembered
from mortice.tensor import make

# ---- basic indices: ints, slices, None, Ellipsis ----

_ALL = slice(None)


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


def _name_by_key(node: Any) -> str:
    """Return what PyTorch does last for a key, which it takes part by part."""
    for k in reversed(node.attrs["key"]):
        if k is None:
            return "UnsqueezeBackward0"
        if not isinstance(k, slice):
            return "SelectBackward0"
        if k != _ALL:
            break
    return "SliceBackward0"


@op(
    shape=_key_shape,
    view=True,
    name="getitem",
    grad_name="SliceBackward0",
    grad_name_of=_name_by_key,
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


@op(shape=_taken, fixed=("indices",), kernel="take", name="take", grad_name="IndexBackward0")
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


def flat_positions(indices: list[Any], sizes: Any, dims: Any, common: Size) -> Any:
    """Return the positions over dims of those sizes together that int64 tensors, broadcast to `common`, tell for each.

    They come as a vector; those outside are refused, negative ones are wrapped.
    """
    device = indices[0]._device
    if device.backend.flat_index is not None and all([k._device is device for k in indices]):
        data = device.backend.flat_index(*[k._data for k in indices], sizes=sizes)
        if data is not None:  # all are in range
            sole = indices[0]
            return sole if data is sole._data else make(data, device, int64, Size((prod(common),)))
    flat: Any = None
    for k, n, d in zip(indices, sizes, dims):
        k = check_range("index", k, n, d)
        flat = k if flat is None else flat * n + k
    return reshape(expand(flat, common), -1) if prod(flat.shape) != 1 or common else reshape(flat, 1)


class Advanced:
    """An advanced index worked out: x with the indexed dims joined, and the positions to take there.

    Where they are not beside each other they come in front, and so does what they show.
    """

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
        self.flat = flat_positions([cast(k, int64) for _, k in places], [shape[d] for d in dims], dims, common)
        self.adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
        self.at = dims[0] if self.adjacent else 0
        rest = [d for d in range(len(shape)) if d not in dims]
        self.order = (*dims, *rest)
        self.front = prod(shape[d] for d in dims)
        self.before, self.after = tuple([shape[d] for d in rest[: self.at]]), tuple([shape[d] for d in rest[self.at :]])

    def joined(self) -> Any:
        """Return x with the indexed dims as one, where they are or in front."""
        seen = self.seen if self.adjacent else permute(self.seen, self.order)
        return reshape(seen, (*self.before, self.front, *self.after))

    def unjoin(self, rows: Any) -> Any:
        """Undo `joined`."""
        shape = tuple(self.seen.shape)
        if self.adjacent:
            return reshape(rows, shape)
        back = [0] * len(self.order)
        for i, d in enumerate(self.order):
            back[d] = i
        return permute(reshape(rows, tuple(shape[d] for d in self.order)), back)

    def result_shape(self) -> Size:
        """Return the shape of what the key shows."""
        return Size((*self.before, *self.common, *self.after))

    def result(self, rows: Any) -> Any:
        """Give what was taken along the joined dims the result's shape."""
        return reshape(rows, self.result_shape())

    def rows(self, values: Any) -> Any:
        """Undo `result`."""
        values = expand(values, self.result_shape())
        return reshape(values, (*self.before, prod(self.common), *self.after))


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


_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def _is_basic(key: tuple[Any, ...]) -> bool:
    return _BASIC.issuperset(map(type, key))


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
    sole = isinstance(key, TensorBase) and key.shape  # the commonest key that shows no view
    plain_key = None if sole else _plain_key(key, input.shape)
    if plain_key is not None:
        key = plain_key
        backend = input._device.backend
        data = backend.getitem(input._data, key)
        shape = backend.shape_of(data)
        shape = SIZES.get(shape) or remembered(shape)
        return as_view(_SLICE, input, data, shape, {"key": key, "shape": shape} if input._rg else (key, shape))
    key = (key,) if sole else as_key(key)
    if not sole and _is_basic(key):
        key, shape = basic_key(input.shape, key)
        return _slice(input, key=key, shape=shape)
    found = _side_by_side(input, key)
    if found is not None:
        axis, dims, common, flat = found
        shape = tuple(input.shape)
        if dims != 1:
            input = reshape(input, (*shape[:axis], prod(shape[axis : axis + dims]), *shape[axis + dims :]))
        made = _take(input, flat, axis=axis)
        if len(common) == 1:
            return made
        made = reshape(made, (*shape[:axis], *common, *shape[axis + dims :]))
    else:
        plan = Advanced(input, key)
        made = plan.result(_take(plan.joined(), plan.flat, axis=plan.at))
    return named(made, "IndexBackward0") if made._rg else made


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
    given = [_constant(x, k, None) if type(k) is list else k for k in key[start:stop]]
    if not given:
        return None
    first, dims, axis = given[0], len(given), start
    for k in given:
        if not isinstance(k, TensorBase) or k._device is not device or not k.shape:
            return None
        if k.dtype is not int64 and (k.dtype is not bool_ or dims != 1):
            return None
    if first.dtype is bool_:
        dims = len(first.shape)
    if key[0] is Ellipsis:
        axis = len(shape) - dims - (len(key) - stop)
        if axis < 0 or start != 1:
            return None
    elif axis + dims + (len(key) - stop) > len(shape) + (key[-1] is Ellipsis):
        return None
    sizes = tuple(shape)[axis : axis + dims]
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


def _set_plainly(input: Any, key: Any, value: Any) -> bool:
    """Do the commonest writes, of a number or a tensor of one dtype at a basic key, unrecorded; tell whether it was one."""
    kind, d = type(value), input.dtype
    if kind is float or kind is int:
        # Every float dtype holds these.
        if not (d.kind == "f" and -60000 < value < 60000) and not (d is int64 and kind is int and -(1 << 63) <= value < 1 << 63):
            return False
    elif (
        not isinstance(value, TensorBase)
        or value.dtype is not d
        or value._device is not input._device
        or (value._rg and (not special[0] or modes.grad))
    ):
        return False
    if isinstance(key, TensorBase) and key.shape:
        return _set_at_sole(input, key, value)
    plain_key = _plain_key(key, input.shape)
    key = key if type(key) is tuple else (key,)
    if (plain_key is None and not _is_basic(key)) or not plain(input):
        return False
    backend, data = input._device.backend, input._data
    if plain_key is not None:
        key = plain_key
        if kind is float or kind is int:
            backend.setitem(data, key, value)
            input._storage.version += 1
            return True
    else:
        key = basic_key(input.shape, key)[0]
    shown = backend.getitem(data, key)
    if kind is not float and kind is not int:
        shape = backend.shape_of(shown)
        if value.shape != shape:
            try:
                if len(value.shape) > len(shape) or broadcast("setitem", shape, value.shape) != shape:
                    return False
            except ShapeError:
                return False
        value = value._data
    backend.setitem(shown, (...,), value)
    input._storage.version += 1
    return True


def _set_at_sole(x: Any, key: Any, value: Any) -> bool:
    """Do the commonest writes at a tensor of positions or a mask; tell whether it was one."""
    device, number = x._device, not isinstance(value, TensorBase)
    if key._device is not device or not x.shape or device.base is not device or not plain(x):
        return False
    k, data = device.backend, x._data
    wanted = () if number else value.shape
    if key.dtype is bool_:
        if wanted or key.shape != x.shape:
            return False
    elif key.dtype is not int64 or len(key.shape) != 1 or k.flat_index is None:
        return False
    values = k.full((), value, dtype=x.dtype, device=device) if number else value._data
    if key.dtype is bool_:
        write(x, k.where(key._data, values, data), k.is_contiguous(data))  # else the memory keeps its order
        return True
    size, *rest = x.shape
    at = k.flat_index(key._data, sizes=(size,))
    if at is None or wanted not in ((), (*key.shape, *rest)):
        return False
    values = values if wanted else k.broadcast_to(values, (*key.shape, *rest))
    if not k.put_rows(data, at, values, axis=0, add=False):
        return False
    x._storage.version += 1
    return True


def setitem(input: Any, key: Any, value: Any) -> None:
    """Write by index, in place; the value broadcasts and is cast to the tensor's dtype."""
    if _set_plainly(input, key, value):
        return
    key = as_key(key)
    if not isinstance(value, TensorBase):
        from mortice.ops.data import tensor

        value = tensor(value, device=input._device, dtype=input.dtype)
        if not value.shape and _put_mask(input, key, value):
            return
    elif value._device is not input._device:
        if value.shape:
            _op.check_device(_slice.op, input, value)
        value = transfer(value, input._device)
    basic = _is_basic(key)
    if value.dtype is not input.dtype:
        loses = value.dtype.is_complex and input.dtype.kind in "uif"
        if not (basic or (value.numel() == 1 and not loses and _is_mask(key))):
            raise _other_dtype("setitem", input, value)
        value = cast(value, input.dtype)
    if basic:
        key, shape = basic_key(input.shape, key)
        check_writable("setitem", input)
        assign_view(_slice(input, key=key, shape=shape), value)
        return
    check_writable("setitem", input)
    _write_at(input, key, value, False)


def _is_mask(key: tuple[Any, ...]) -> bool:
    """Tell whether a key selects by one mask."""
    from mortice.ops.data import as_tensor

    chosen = [part for part in key if not isinstance(part, (int, slice)) and part is not None and part is not Ellipsis]
    return len(chosen) == 1 and as_tensor(chosen[0]).dtype in (bool_, uint8)


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
    if (
        isinstance(other, TensorBase)
        and other is not self
        and other.dtype is self.dtype
        and other._device is self._device
        and other.shape == self.shape
        and not (other._rg and (not special[0] or modes.grad))
        and plain(self)
    ):
        self._device.backend.setitem(self._data, (...,), other._data)
        self._storage.version += 1
        return self
    check_writable("copy_", self)
    if other is self:
        return self
    if not isinstance(other, TensorBase):
        if not isinstance(other, (int, float, complex)):
            raise TypeError(f"copy_: expected a Tensor or a number; got {type(other).__name__}.")
        from mortice.ops.data import tensor

        other = tensor(hold("copy_", other, self.dtype), dtype=self.dtype, device=self._device)
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
    data, backend, shape = shown._data, x._device.backend, tuple(shown.shape)
    before, after = shape[:axis], shape[axis + dims :]
    if dims > 1:
        if backend.strides_of(data) != contiguous_strides(shape):
            return False
        data = backend.reshape(data, (*before, prod(shape[axis : axis + dims]), *after))
    values, wanted = value._data, (*before, *common, *after)
    if value.shape != wanted:
        values = backend.broadcast_to(values, wanted)
    if len(common) != 1:
        values = backend.reshape(values, (*before, prod(common), *after))
    return write_rows(x, data, flat, values, axis, accumulate)


def _put_mask(x: Any, key: tuple[Any, ...], value: Any) -> bool:
    """Write a 0-d value where a mask of x's shape is true, unrecorded; tell whether it was done."""
    if len(key) != 1 or not isinstance(key[0], TensorBase):
        return False
    mask, device = key[0], x._device
    if mask.dtype is not bool_ or mask.shape != x.shape or not x.shape or mask._device is not device or not plain(x):
        return False
    data = device.backend.where(mask._data, value._data, x._data)
    write(x, data, device.backend.is_contiguous(x._data))  # else the memory keeps its order
    return True


def _put_side_by_side(x: Any, key: tuple[Any, ...], value: Any, accumulate: bool) -> bool:
    """Write at one of the commonest keys into x's own memory, where that can be; tell whether it was done."""
    if not may_write_rows(x, x, value):
        return False
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
        or value.dtype is not x.dtype
        or (modes.grad and (x._rg or value._rg))
    ):
        return False
    strides = backend.strides_of(shown._data)
    # An element that is shown several times is refused where the whole is written.
    return strides is not None and not any(s == 0 and n > 1 for s, n in zip(strides, shown.shape))


def write_rows(x: Any, data: Any, index: Any, values: Any, axis: int, add: bool) -> bool:
    """Write buffers at positions along an axis of the one that x shows: of a large tensor few rows take no copy of the whole."""
    if index._device is not x._device or not x._device.backend.put_rows(data, index._data, values, axis=axis, add=add):
        return False
    (x._storage or x.own_storage()).version += 1
    return True


@autocasting
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return a copy with the values at tensors of indices replaced, or added to."""
    if not isinstance(values, TensorBase) or values.dtype is not input.dtype:
        raise _other_dtype("index_put", input, values)
    key = tuple(slice(None) if k is None else k for k in indices)
    plan = Advanced(input, key)
    return named(_put(plan, _fitted(plan.result_shape(), values), accumulate), "IndexPutBackward0")


def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write the values at tensors of indices in place."""
    check_writable("index_put_", input)
    return _write_at(input, tuple(slice(None) if k is None else k for k in indices), values, accumulate)


def _write_at(input: Any, key: tuple[Any, ...], values: Any, accumulate: bool) -> Any:
    if _put_side_by_side(input, key, values, accumulate):
        return input
    plan, one = Advanced(input, key), values.numel() == 1
    values = _fitted(plan.result_shape(), values)
    if _put_in_place(input, plan, values, accumulate):
        return input
    changed = _put(plan, values, accumulate)
    changed = changed if changed.shape == input.shape else reshape(changed, input.shape)
    try:
        # The memory keeps its order: what came out of a permutation is copied in.
        return assign(input, changed, layout(changed) == layout(input))
    except RuntimeError as error:
        if accumulate or not one:
            raise
        return written_once("index_put_", error, input, lambda: changed)


def written_once(name: str, error: RuntimeError, input: Any, made: Any, *args: Any) -> Any:
    """Write made(...), which is one number in some places, where `error` says that memory shows elements several times.

    As in PyTorch that warns, and an element changes where any of its places does. Other errors are raised again.
    """
    device = input._device
    if error.args != (OVERLAP,) or device.base is not device or (modes.grad and input._rg):
        raise error
    value = made(*args)
    if modes.grad and value._rg:
        raise error
    warnings.warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
        "This also applies to advanced indexing e.g. tensor[indices] = tensor",
        UserWarning, stacklevel=3,
    )  # fmt: skip
    k, data, target = device.backend, value._data, input
    for d, (step, n) in enumerate(zip(layout(input), input.shape)):
        if step == 0 and n > 1:
            changed = k.astype(k.not_equal(data, target._data), int64)
            data = k.take_along_axis(data, k.argmax(changed, axis=d, keepdims=True), axis=d)
            target = getitem(target, (*(slice(None),) * d, slice(1)))
    write(target, data, False)
    return input


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Choose `input` where the condition holds, else `other`; with a condition alone, return where it is true."""
    if input is None and other is None:
        mask = condition if condition.dtype is bool_ else condition != 0
        return tuple(positions(condition, mask, 0))
    return choose(condition, input, other, out=out)
