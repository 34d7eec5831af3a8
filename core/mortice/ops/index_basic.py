"""Basic indices: ints, slices, None and Ellipsis. What they show is a view."""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Any

from mortice import node as _node
from mortice.layout import strided
from mortice.node import TENSOR_KERNELS
from mortice.op import op
from mortice.shape import Size
from mortice.tensor import TensorBase

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


def _key_start(old: Any, strides: Any, key: Any, shape: Any) -> int:
    dims, start = zip(old, strides), 0
    for k in key:
        if k is not None:
            n, stride = next(dims)
            start += stride * min(k % n if isinstance(k, int) else k.indices(n)[0], max(n - 1, 0))
    return start


def _name_by_key(node: Any) -> str:
    """Return what PyTorch does last for a key, which it takes part by part."""
    key = node.attrs["key"]
    if len(key) != 1 and all([type(k) is slice and k == _ALL for k in key]):
        return "AliasBackward0"
    for k in reversed(key):
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
    start=_key_start,
)
def _slice(k: Any, x: Any, /, *, key: Any, shape: Size) -> Any:
    """Read by ints, slices with any step, None and Ellipsis; a view."""
    return k.getitem(x, key)


_slice.vjp(x=lambda k, g, x_shape, key: k.setitem(k.new_full(g, x_shape, 0), key, g), jvp="linear")


def _same_as_first(name: str, shape: Size, value: Any, *, key: Any) -> Size:
    return shape


@op(shape=_same_as_first, name="setitem", grad_name="CopySlices", float8="moved")
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


def read_sparse(input: Any, key: Any) -> Any:
    """Return what a key shows that a sparse operand has refused: a part of one may be dense, which is asked only then."""
    if input.layout is strided:
        raise
    return import_module("mortice.sparse.coo").read(input, key)


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


def in_ints(s: slice) -> slice:
    """Return a slice whose bounds are ints, of whatever stands for one."""
    bounds = (s.start, s.stop, s.step)
    if not all([v is None or hasattr(v, "__index__") for v in bounds]):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return slice(*[None if v is None else operator.index(v) for v in bounds])


def _slice_of(s: slice, n: int) -> tuple[slice, int]:
    if s.start is None and s.stop is None and s.step is None:
        return s, n
    try:
        start, stop, step = s.indices(n)
    except TypeError:
        start, stop, step = in_ints(s).indices(n)
    except ValueError:
        raise ValueError("slice step cannot be zero") from None
    length = len(range(start, stop, step))
    # Python's own form: a stop before the first element is None when it steps backwards.
    return slice(start, None if step < 0 and stop < 0 else stop, step), length
