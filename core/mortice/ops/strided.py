"""Views by strides: diagonals, sliding windows, as_strided; copies where a mutable backend has no such views."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

from mortice.backends.kernels import FreeKernels
from mortice.backends.movement import diagonal_place
from mortice.errors import ShapeError
from mortice.node import TENSOR_KERNELS
from mortice.op import op
from mortice.ops.creation import empty
from mortice.ops.movement import _view, cast, contiguous, is_row_major, permute, reshape
from mortice.ops.reinterpret import view_dtype
from mortice.rules import same
from mortice.shape import Size, check_dim, prod
from mortice.strides import layout
from mortice.strides import storage_offset as offset_of
from mortice.tensor import make

__all__ = ["as_strided", "as_strided_scatter", "diagonal", "empty_permuted", "empty_strided"]

TENSOR_KERNELS.replace("constant", lambda x: x.detach())

def _shares(x: Any, kernel: str) -> bool:
    """Tell whether the backend's kernel may count as a view: it is its own, or nothing there is ever written."""
    backend = x._device.backend
    return not backend.mutable or getattr(type(backend), kernel) is not getattr(FreeKernels, kernel)


@lru_cache(4096)  # shapes recur
def _diagonal_shape(name: str, shape: Size, *, offset: int, axis1: int, axis2: int) -> Size:
    sizes = tuple(shape)
    _, count = diagonal_place(sizes[axis1], sizes[axis2], offset)
    return Size((*(n for i, n in enumerate(sizes) if i not in (axis1, axis2)), count))


def _diagonal_strides(shape: Any, strides: Any, offset: int, axis1: int, axis2: int) -> tuple[int, ...]:
    rest = [s for i, s in enumerate(strides) if i not in (axis1, axis2)]
    return (*rest, strides[axis1] + strides[axis2])


def _diagonal_start(shape: Any, strides: Any, offset: int, axis1: int, axis2: int) -> Any:
    return strides[axis2] * offset if offset >= 0 else -offset * strides[axis1]


def _diagonal_back(k: Any, g: Any, x_shape: Any, offset: int, axis1: int, axis2: int) -> Any:
    return k.diagonal_write(k.new_full(g, x_shape, 0), g, offset=offset, axis1=axis1, axis2=axis2)


@op(
    shape=_diagonal_shape, kernel="diagonal", name="diagonal", view=True,
    scatter=lambda k, x, part, **attrs: k.diagonal_write(x, part, **attrs), strides=_diagonal_strides, start=_diagonal_start,
)  # fmt: skip
def _diagonal(k: Any, x: Any, /, *, offset: int, axis1: int, axis2: int) -> Any:
    """Show a diagonal over two dims; it comes last."""


_diagonal.vjp(x=_diagonal_back, jvp="linear")


@op(shape=_diagonal_shape, name="diagonal_copy", float8="moved")
def _diagonal_copy(k: Any, x: Any, /, *, offset: int, axis1: int, axis2: int) -> Any:
    """Copy a diagonal over two dims, where the backend cannot show it."""
    return k.diagonal(x, offset=offset, axis1=axis1, axis2=axis2)


_diagonal_copy.vjp(x=_diagonal_back, jvp="linear")


@op(shape=same, kernel="diagonal_write", grad_name="DiagonalScatterBackward0", float8="moved")
def diagonal_write(k: Any, x: Any, part: Any, /, *, offset: int, axis1: int, axis2: int) -> Any:
    """Return x with a diagonal replaced."""


diagonal_write.vjp(
    x=lambda k, g, part_shape, offset, axis1, axis2: k.diagonal_write(
        g, k.new_full(g, part_shape, 0), offset=offset, axis1=axis1, axis2=axis2
    ),
    part=lambda k, g, offset, axis1, axis2: k.diagonal(g, offset=offset, axis1=axis1, axis2=axis2),
    jvp="linear",
)


def two_dims(name: str, x: Any, dim1: int, dim2: int) -> tuple[int, int]:
    """Check two dims that must differ."""
    a, b = check_dim(name, dim1, len(x.shape)), check_dim(name, dim2, len(x.shape))
    if a == b:
        raise ShapeError(f"{name}: diagonal dimensions cannot be identical {dim1}, {dim2}.")
    return a, b


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Show the diagonals over two dims; they come last. A view.

    On a mutable backend without strided views of its own the result is a copy.
    """
    axis1, axis2 = two_dims("diagonal", input, dim1, dim2)
    fn = _diagonal if _shares(input, "diagonal") else _diagonal_copy
    return fn(input, offset=operator.index(offset), axis1=axis1, axis2=axis2)


def _window_shape(name: str, shape: Size, *, axis: int, size: int, step: int) -> Size:
    sizes = tuple(shape)
    if not sizes:
        return Size((size,))
    return Size((*sizes[:axis], (sizes[axis] - size) // step + 1, *sizes[axis + 1 :], size))


def _window_strides(shape: Any, strides: Any, axis: int, size: int, step: int) -> tuple[int, ...]:
    if not strides:
        return (1,)
    return (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis])


def _joined(k: Any, part: Any, shape: Any, axis: int, size: int, step: int) -> tuple[Any, Any]:
    """Return where along the axis the elements of windows lie, and these joined there."""
    count = (shape[axis] - size) // step + 1
    joined = k.reshape(k.moveaxis(part, -1, axis + 1), (*shape[:axis], count * size, *shape[axis + 1 :]))
    down = k.reshape(k.new_arange(part, 0, count), (count, 1))
    places = k.add(k.multiply(down, step), k.reshape(k.new_arange(part, 0, size), (1, size)))
    return k.reshape(places, (count * size,)), joined


def _window_back(k: Any, g: Any, x_shape: Any, axis: int, size: int, step: int) -> Any:
    shape = tuple(x_shape)
    return k.index_add(k.new_full(g, shape, 0), *_joined(k, g, shape, axis, size, step), axis=axis) if shape else k.reshape(g, ())


def _write_windows(k: Any, x: Any, part: Any, axis: int, size: int, step: int) -> Any:
    shape = tuple(k.shape_of(x))
    return k.index_write(x, *_joined(k, part, shape, axis, size, step), axis=axis) if shape else k.reshape(part, ())


@op(
    shape=_window_shape, kernel="sliding_window", name="unfold", view=True,
    scatter=_write_windows, strides=_window_strides,
)  # fmt: skip
def _unfold(k: Any, x: Any, /, *, axis: int, size: int, step: int) -> Any:
    """Show windows along an axis; their elements come last."""


_unfold.vjp(x=_window_back, jvp="linear")


@op(shape=_window_shape, name="unfold_copy", float8="moved")
def _unfold_copy(k: Any, x: Any, /, *, axis: int, size: int, step: int) -> Any:
    """Copy windows along an axis, where the backend cannot show them."""
    return k.sliding_window(x, axis=axis, size=size, step=step)


_unfold_copy.vjp(x=_window_back, jvp="linear")


def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """Show windows of a size along a dim, `step` apart; their elements come last. A view."""
    axis, n = check_dim("unfold", dimension, len(input.shape)), input.shape[dimension] if input.shape else 1
    if size < 0:
        raise RuntimeError(f"unfold: size is {size} but must be >= 0.")
    if step <= 0:
        raise RuntimeError(f"unfold: step is {step} but must be > 0.")
    if size > n:
        raise RuntimeError(f"unfold: maximum size for tensor at dimension {dimension} is {n} but size is {size}.")
    if not input.shape:
        return reshape(input, (1,))[:size]
    return _windows(input, axis=axis, size=operator.index(size), step=operator.index(step))


def _strided_shape(name: str, old: Size, *, shape: Size, steps: Any, offset: int) -> Size:
    return shape


def _strided_back(k: Any, g: Any, x_shape: Any, shape: Any, steps: Any, offset: int) -> Any:
    places = k.reshape(k.strided_places(g, shape, steps, offset), (-1,))
    return k.index_add(k.new_full(g, x_shape, 0), places, k.reshape(g, (-1,)), axis=0)


def _write_strided(k: Any, x: Any, part: Any, shape: Any, steps: Any, offset: int) -> Any:
    places = k.reshape(k.strided_places(x, shape, steps, offset), (-1,))
    return k.index_write(x, places, k.reshape(part, (-1,)), axis=0)


@op(
    shape=_strided_shape, name="as_strided", view=True, scatter=_write_strided,
    strides=lambda old, strides, shape, steps, offset: steps, start=lambda old, strides, shape, steps, offset: offset,
)  # fmt: skip
def _strided(k: Any, x: Any, /, *, shape: Size, steps: Any, offset: int) -> Any:
    """Show a 1-D row-major tensor with any strides."""
    return k.strided(x, shape=shape, strides=steps, offset=offset)


_strided.vjp(x=_strided_back, jvp="linear")


@op(shape=_strided_shape, name="as_strided_copy", float8="moved")
def _strided_copy(k: Any, x: Any, /, *, shape: Size, steps: Any, offset: int) -> Any:
    """Copy with any strides, where the backend cannot show it."""
    return k.strided(x, shape=shape, strides=steps, offset=offset)


_strided_copy.vjp(x=_strided_back, jvp="linear")


def _strided_view(x: Any, **attrs: Any) -> Any:
    return (_strided if _shares(x, "strided") else _strided_copy)(x, **attrs)


def _windows(x: Any, **attrs: Any) -> Any:
    return (_unfold if _shares(x, "sliding_window") else _unfold_copy)(x, **attrs)


TENSOR_KERNELS.replace("sliding_window", _windows)
TENSOR_KERNELS.replace(
    "strided", lambda x, *, shape, strides, offset: _strided_view(contiguous(x), shape=Size(shape), steps=strides, offset=offset)
)


def whole(x: Any) -> Any:
    """Return all the memory that a tensor sees a part of as a 1-D tensor over it, outside the graph."""
    device, storage = x._device, x.own_storage()
    if device.level is not None:
        raise device.level.no_memory("storage")
    storage.pinned = True
    backend = device.backend
    if backend.rooted:
        root = make(storage.root, device, backend.dtype_of(storage.root), Size(backend.shape_of(storage.root)))
        root.set_storage(storage)
        return _view(root, shape=Size((prod(root.shape),))).detach()
    if x._steps is None and is_row_major(x):
        data = backend.reshape(x._buffer, (prod(x.shape),))
    else:
        data, _ = backend.whole(x._buffer)
    flat = make(data, device, x.dtype, Size(backend.shape_of(data)))
    flat.set_storage(storage)
    return flat


@lru_cache(4096)  # shapes recur
def _reaching(size: Size, stride: tuple[int, ...]) -> tuple[Size, tuple[int, ...], int]:
    """Check sizes and strides; return them, and how far apart the ends lie, -1 without elements."""
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape; got {list(size)} and {list(stride)}.")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"as_strided: sizes must not be negative; got {list(size)}.")
    return size, stride, sum((n - 1) * s for n, s in zip(size, stride)) if prod(size) else -1


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Show the tensor's memory with any sizes and strides; a view.

    Differs from torch: the memory of a tensor that was itself made as a view reaches as far as that of its base.
    """
    size, stride, reach = _reaching(Size(size), tuple(map(operator.index, stride)))
    own = offset_of(input)
    start = own if storage_offset is None else operator.index(storage_offset)
    if start < 0:
        raise RuntimeError(f"as_strided: the storage offset must not be negative; got {start}.")
    last = start + reach if reach >= 0 else -1
    x, offset = input, start - own
    reach = last - own
    count = max(prod(input.shape), 1)
    if not (row_major := is_row_major(input)) or not 0 <= offset <= max(reach, offset) or reach >= count:
        row_major, strides = False, layout(input)
        order = sorted(range(len(strides)), key=lambda d: -strides[d])
        dense = permute(input, order)
        if is_row_major(dense) and offset >= 0 and reach < count:
            x = dense
        elif input._base is not None and input._base.dtype is input.dtype:
            x, at = input._base, offset_of(input._base)
            offset, reach = start - at, last - at
        elif not input._rg and input._device.level is None:
            x, offset, reach = view_dtype(whole(input), input.dtype), start, last
    if not row_major and (not is_row_major(x) or offset < 0 or reach >= max(prod(x.shape), 1)):
        if (shown := getattr(input._device.level, "strided", None)) is not None:
            end = own + sum((n - 1) * s for n, s in zip(input.shape, strides))
            if own <= start and last <= end:
                return shown(as_strided, input, size, stride, start)
            raise RuntimeError(
                f"result = tensor.as_strided({list(size)}, {list(stride)}, {start}) can access memory outside of `tensor`. "
                f"`result` can access some memory in range [{start}, {last + 1}], but `tensor` can only access some memory in "
                f"range [{own}, {end + 1}]. This is not supported inside of vmap, please try to rewrite the `as_strided` call "
                "as a sequence of PyTorch view operations"
            )
        raise _out_of_bounds(size, stride, start, x.shape)
    flat = x if len(x.shape) == 1 else _view(x, shape=Size((prod(x.shape),)))
    return _strided_view(flat, shape=size, steps=stride, offset=offset)


def _out_of_bounds(size: Size, stride: Any, start: int, shape: Size) -> RuntimeError:
    return RuntimeError(
        f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start} are out of bounds for "
        f"storage of size {prod(shape)}, counted in elements."
    )


def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Return a copy with what `as_strided` would show replaced."""
    size, stride = Size(size), tuple(map(operator.index, stride))
    if src.shape != size:
        raise ShapeError(
            f"as_strided_scatter: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(size)}"
        )
    order = sorted(range(len(input.shape)), key=lambda d: -layout(input)[d])
    dense = input if is_row_major(input) else permute(input, order)
    shape = dense.shape
    start = 0 if storage_offset is None else operator.index(storage_offset)
    last = start + sum((n - 1) * s for n, s in zip(size, stride)) if prod(size) else -1
    if start < 0 or last >= max(prod(shape), 1):
        raise _out_of_bounds(size, stride, start, shape)
    places = TENSOR_KERNELS.strided_places(dense, size, stride, start)
    written = TENSOR_KERNELS.index_write(reshape(dense, -1), reshape(places, -1), reshape(cast(src, input.dtype), -1), axis=0)
    made = reshape(written, shape)
    return made if dense is input else permute(made, [order.index(d) for d in range(len(order))])


def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool | None = False) -> Any:  # fmt: skip
    """Make a tensor of any values with the given sizes and strides."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"empty_strided: dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    last = sum((n - 1) * s for n, s in zip(size, stride)) if prod(size) else -1
    made = as_strided(empty(last + 1, dtype=dtype, device=device, pin_memory=pin_memory), size, stride)
    return made.detach().requires_grad_(requires_grad)


def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False, pin_memory: bool | None = False) -> Any:  # fmt: skip
    """Make a tensor of any values whose dims lie in memory in the given order, the outermost first."""
    if len(size) != len(physical_layout):
        raise RuntimeError(
            "empty_permuted: Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    order = [check_dim("empty_permuted", d, len(size)) for d in physical_layout]
    if len(set(order)) < len(order):
        raise RuntimeError(f"empty_permuted: Duplicate dim not allowed; got {list(physical_layout)}.")
    made = empty([size[d] for d in order], dtype=dtype, device=device, pin_memory=pin_memory)
    return permute(made, [order.index(d) for d in range(len(order))]).detach().requires_grad_(requires_grad)


def new_empty_strided(self: Any, size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None,
                      pin_memory: bool | None = False, requires_grad: bool = False) -> Any:  # fmt: skip
    """Make a tensor of any values with the given sizes and strides, of this one's dtype and device unless told."""
    dtype, device = self.dtype if dtype is None else dtype, self._device if device is None else device
    return empty_strided(size, stride, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
