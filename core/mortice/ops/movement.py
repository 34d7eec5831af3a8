"""Shapes and memory order: casts, copies, views, memory formats. Values move, none is computed."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from mortice import call as _call
from mortice import node as _node
from mortice.backends.backend import channels_last as channels_lie_last
from mortice.call import as_view, run
from mortice.dtype import DType, as_dtype, bool_, float32
from mortice.errors import DTypeError, ShapeError, too_big
from mortice.graph import Node, next_seq
from mortice.layout import channels_last, channels_last_3d, contiguous_format, preserve_format
from mortice.levels import chain, raise_to, with_levels
from mortice.modes import modes, special
from mortice.node import TENSOR_KERNELS, named, record_one
from mortice.op import op
from mortice.rules import same
from mortice.shape import (
    SIZES,
    Size,
    as_sizes,
    check_dim,
    check_dims,
    contiguous_strides,
    infer_shape,
    missing,
    prod,
    remembered,
    view_strides,
)
from mortice.strides import OVERLAP, layout
from mortice.tensor import TensorBase, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["broadcast_to", "clone", "permute", "reshape", "squeeze", "t", "transpose", "unsqueeze"]

# ---- casts and copies ----


@op(shape=same, holomorphic=False, grad_name="ToCopyBackward0")
def _cast(k: Any, x: Any, /, *, dtype: DType, source: DType) -> Any:
    """Convert to a dtype; complex to real drops the imaginary part."""
    return k.astype(x, dtype)


def _cast_back(k: Any, g: Any, dtype: DType, source: DType) -> Any:
    if dtype.is_complex and not source.is_complex:
        g, dtype = k.real(g), dtype.to_real()
    dtype, source = [d if d.stored is d else float32 for d in (dtype, source)]  # gradients of float8, which has no sums
    return g if dtype is source else k.astype(g, source)


_cast.vjp(x=_cast_back, jvp="linear")
_CAST = _cast.op


def cast(x: Any, dtype: DType) -> Any:
    """Convert a tensor to a dtype; the tensor itself when it has that dtype."""
    if x.dtype is dtype:
        return x
    if dtype.__class__ is not DType:
        return cast(x, as_dtype("to", dtype))
    if x.dtype.is_complex and not dtype.is_complex and dtype is not bool_:
        from mortice.notice import warn

        warn("Casting complex values to real discards the imaginary part", once=True)
    supported = x._device.backend.dtypes(x._device)
    if dtype not in supported or x._dtype not in supported:
        if dtype.stored not in supported:
            raise DTypeError(
                f"to: {x.device} of backend {x._device.backend.name} has no {dtype.name}; it has "
                f"{', '.join(sorted(d.name for d in supported))}."
            )
        t = import_module("mortice.ops.float8").converted(x, dtype)
        if x._rg and modes.grad and dtype.kind in "fc":
            record_one(_CAST, x, t._buffer, t, {"dtype": dtype, "source": x.dtype})
        return t
    if not (special[0] and modes.rerouted):
        try:
            t = make(x._device.table[_CAST](x._buffer, dtype=dtype, source=x.dtype), x._device, dtype, x.shape)
        except MemoryError:
            pass  # worded below
        else:
            if x._rg and modes.grad and dtype.kind in "fc":
                record_one(_CAST, x, t._buffer, t, {"dtype": dtype, "source": x.dtype})
            return t
    return run(_CAST, (x,), {"dtype": dtype, "source": x.dtype}, dtype)


_call.CAST = cast
TENSOR_KERNELS.define("astype", cast)


@op(shape=same, kernel="copy", grad_name="CloneBackward0", float8="moved")
def _clone(k: Any, x: Any, /) -> Any:
    """Copy into memory of its own; gradients pass through."""


_clone.vjp(x=lambda k, g: g, jvp="linear")


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """Copy into memory of its own; gradients pass through."""
    if memory_format is contiguous_format and not is_row_major(input):
        return _row_major_copy(input)
    if keeps(memory_format) or (memory_format is contiguous_format and layout(input) == contiguous_strides(input.shape)):
        return _clone(input)
    return _laid(input, memory_format)


def _transfer(data: Any, source: Any, device: Any, later: bool = False) -> Any:
    if source.backend is device.backend:
        return device.backend.copy_to(data, device)
    if source.level is not None:
        return source.level.moved(data, source, device, _transfer)
    move = device.backend.from_host_later if later else device.backend.from_host
    return move(source.backend.to_host(data), device)


class TransferNode(Node):
    """The node of a move to another device: the gradient moves back."""

    __slots__ = ("source",)

    def name(self) -> str:
        return "ToCopyBackward0"

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        if graph:
            return (transfer(g, self.source),)
        return (_transfer(g, self.device, self.source),)


def transfer(x: Any, device: Any, later: bool = False) -> Any:
    """Move a tensor to another device or backend, possibly `later`; the tensor itself when it is there."""
    if x._device.base is device.base:
        # Where it is already; at most a level of vmap or forward mode lies between.
        return x if x._device is device or len(chain(x._device)) > len(chain(device)) else raise_to(x, device)
    supported = device.backend.dtypes(device)
    if x.dtype.stored not in supported:
        raise DTypeError(
            f"to: {device} of backend {device.backend.name} has no {x.dtype.name}; convert first, e.g. with .float()."
        )
    device = with_levels(device, x._device)
    t = make(_transfer(x._buffer, x._device, device, later), device, x.dtype, x.shape)
    if x._rg and modes.grad:
        t._node = node = TransferNode()
        node.seq, node.extra = next_seq(), None
        node.edges = (x._node or x.note_use(node.seq),)
        node.device, node.shape, node.dtype, node.source = device, x.shape, x.dtype, x._device
        t._rg = True
    return t


_call.MOVE = transfer


# ---- views ----


def _view_shape(name: str, old: Size, *, shape: Size, axis: Any = None) -> Size:
    return shape


def _reshape_back(k: Any, g: Any, x_shape: Any) -> Any:
    return k.reshape(g, x_shape)


@op(
    shape=_view_shape,
    view=True,
    grad_name="ViewBackward0",
    scatter=lambda k, x, part, shape, axis=None: k.reshape(part, k.shape_of(x)),
    strides=lambda old, strides, shape, axis=None: view_strides(old, strides, shape) or contiguous_strides(shape),
)
def _view(k: Any, x: Any, /, *, shape: Size, axis: Any = None) -> Any:
    """Show the same memory under another shape; `axis` tells where sizes of 1 come, or, a tuple, go."""
    if axis is None:
        return k.reshape(x, shape)
    return k.expand_dims(x, axis) if axis.__class__ is int else k.squeeze(x, axis)


_view.vjp(x=_reshape_back, jvp="linear")


@op(shape=_view_shape, grad_name="UnsafeViewBackward0", float8="moved")
def _reshape(k: Any, x: Any, /, *, shape: Size) -> Any:
    """Copy into another shape, where strides do not allow a view."""
    return k.reshape(x, shape)


_reshape.vjp(x=_reshape_back, jvp="linear")


def is_row_major(x: Any) -> bool:
    backend = x._device.backend
    if not backend.rooted:  # its buffers tell
        return backend.is_contiguous(x._buffer)
    return 0 in x.shape or _row_major(x.shape, layout(x))


def _row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    step = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n != 1 and s != step:
            return False
        step *= n
    return True


def _new_sizes(name: str, x: Any, sizes: tuple[Any, ...]) -> Size:
    wanted = as_sizes(name, sizes)
    return infer_shape(name, wanted, prod(x.shape))


def view(input: Any, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """Show the same memory under another shape, or (given a dtype) reinterpret its bytes.

    Differs from torch: viewed as the dtype that it has, a tensor keeps its gradient.

    Raises:
        ShapeError: when the strides need a copy; `reshape` makes one.
    """
    if size is not None or dtype is not None:
        shape = (dtype if size is None else size,)
    wanted = shape[0] if len(shape) == 1 else shape or missing("view")
    if wanted.__class__ is DType or isinstance(wanted, type):
        from mortice.ops.reinterpret import view_as_bool, view_dtype

        wanted = as_dtype("view", wanted)
        shown = (view_as_bool if wanted is bool_ else view_dtype)(input, wanted)
        return shown if shown is not input else _view(input, shape=input.shape, axis=())
    storage, backend = input._storage, input._device.backend
    if (storage is not None and storage.reshapes and input._steps is None) or (
        backend.reshape_view is not None and backend.is_contiguous(input._buffer)
    ):
        try:
            return reshape(input, shape=wanted)
        except (TypeError, RuntimeError):
            pass  # what is wrong is said below, in view's name
    wanted = _new_sizes("view", input, shape)
    if not is_row_major(input) and view_strides(input.shape, layout(input), wanted) is None:
        error = ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
        error.add_note(f"Got {list(input.shape)} with strides {list(layout(input))} for {list(wanted)}.")
        raise error
    return _view(input, shape=wanted)


def _sizes_seen(size: tuple[int, ...], wanted: Any) -> Size:
    """Return the sizes that a backend gave for those asked for; NumPy, for one, reads any negative size as unknown."""
    if size != wanted and (wanted if wanted.__class__ is int else min(wanted, default=0)) < -1:
        raise ValueError
    return remembered(size)


@lru_cache(4096)  # shapes recur
def _resized(shape: Size, strides: Any, wanted: tuple[int, ...]) -> tuple[Size, bool]:
    """Return the sizes that those asked for stand for, and whether strides let them be seen without a copy."""
    size = infer_shape("reshape", Size(wanted), prod(shape))
    return size, _row_major(shape, strides) or view_strides(shape, strides, size) is not None


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """Give another shape: a view where strides allow, else a copy."""
    if not special[0] or not (modes.inference or modes.dispatch):
        if shape is None:
            shape = sizes[0] if len(sizes) == 1 else sizes or missing("reshape", "shape")
        if shape.__class__ is list:
            shape = tuple(shape)
        # The backend works out -1; what it refuses gets its error below.
        try:
            backend = input._device.backend
            storage = input._storage or input.own_storage()
            if (storage.reshapes and input._steps is None) or (
                backend.reshape_view is not None and backend.is_contiguous(input._buffer)
            ):
                seen = backend.reshape_view(input._buffer, shape)
                return as_view(_VIEW, input, seen, SIZES.get(shape) or _sizes_seen(seen.shape, shape), None)
        except (AttributeError, OverflowError, TypeError, ValueError):
            pass
    if not isinstance(input, TensorBase):
        raise TypeError(f"reshape: expected a Tensor; got {type(input).__name__}.")
    wanted = sizes if shape is None else (shape,) if shape.__class__ is int else shape
    strides = input._device.backend.strides_of(input._buffer)
    if strides is not None and 0 not in input.shape and isinstance(wanted, tuple) and all([n.__class__ is int for n in wanted]):
        size, shown = _resized(input.shape, strides, tuple(wanted))
        return _view(input, shape=size) if shown else _reshape(input, shape=size)
    size = _new_sizes("reshape", input, sizes if shape is None else (shape,))
    if is_row_major(input) or view_strides(input.shape, layout(input), size) is not None:
        return _view(input, shape=size)
    return _reshape(input, shape=size)


_VIEW = _view.op
TENSOR_KERNELS.replace("reshape", reshape)


@lru_cache(4096)
def _permuted(name: str, shape: Size, *, axes: Any) -> Size:
    return Size([shape[a] for a in axes])


def _inverse(axes: Any) -> tuple[int, ...]:
    back = [0] * len(axes)
    for i, a in enumerate(axes):
        back[a] = i
    return tuple(back)


@op(
    shape=_permuted,
    view=True,
    kernel="permute_dims",
    name="permute",
    scatter=lambda k, x, part, axes: k.permute_dims(part, _inverse(axes)),
    strides=lambda shape, strides, axes: tuple([strides[a] for a in axes]),
)
def _permute(k: Any, x: Any, /, *, axes: Any) -> Any:
    """Reorder the dims; a view."""


_permute.vjp(x=lambda k, g, axes: k.permute_dims(g, axes=_inverse(axes)), jvp="linear")


def permute(input: Any, *axes: Any, dims: Any = None) -> Any:
    """Reorder the dims; a view."""
    if dims is None:
        dims = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes or missing("permute", "dims")
    for d in dims:
        if d.__class__ is not int:
            return _permute(input, axes=_ordered.__wrapped__(len(input.shape), dims))
    return _permute(input, axes=_ordered(len(input.shape), tuple(dims)))


@lru_cache(4096)
def _ordered(ndim: int, dims: Any) -> tuple[int, ...]:
    if len(dims) != ndim:
        raise ShapeError(
            f"permute: number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions; got input.dim() = {ndim} and {len(dims)} dims."
        )
    order = tuple([check_dim("permute", d, ndim) for d in dims])
    if len(set(order)) != ndim:
        raise ShapeError(f"permute: duplicate dims are not allowed; got {tuple(dims)}.")
    return order


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Swap two dims; a view."""
    fixed = dim0.__class__ is dim1.__class__ is int
    made = _permute(input, axes=(_swapped if fixed else _swapped.__wrapped__)(len(input.shape), dim0, dim1))
    return named(made, "TransposeBackward0") if made._rg else made


@lru_cache(4096)
def _swapped(ndim: int, dim0: int, dim1: int) -> tuple[int, ...]:
    a, b = check_dim("transpose", dim0, ndim), check_dim("transpose", dim1, ndim)
    axes = list(range(ndim))
    if ndim:
        axes[a], axes[b] = axes[b], axes[a]
    return tuple(axes)


def t(input: Any) -> Any:
    """Transpose a matrix; vectors and 0-d tensors stay as they are."""
    if len(input.shape) > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(input.shape)}D.")
    made = _permute(input, axes=((), (0,), (1, 0))[len(input.shape)])
    return named(made, "TBackward0") if made._rg else made


def _expanded(name: str, old: Size, *, shape: Size) -> Size:
    return shape


@op(
    shape=_expanded,
    view=True,
    kernel="broadcast_to",
    name="expand",
    scatter=lambda k, x, part, shape: part if tuple(k.shape_of(x)) == tuple(shape) else _refuse_overlap(k, x, part),
    strides=lambda old, strides, shape: tuple(
        [0] * (len(shape) - len(old))
        + [0 if o == 1 and n != 1 else s for o, n, s in zip(old, shape[len(shape) - len(old) :], strides)]
    ),
)
def _expand(k: Any, x: Any, /, *, shape: Size) -> Any:
    """Repeat along dims of size 1 without copying."""


_expand.vjp(x=lambda k, g, x_shape: _node.unbroadcast(k, g, x_shape), jvp="linear")


def _refuse_overlap(k: Any, x: Any, part: Any) -> Any:
    """Return the part without the dims of size 1 that expand put in front; refuse repeated elements."""
    if prod(k.shape_of(x)) != prod(k.shape_of(part)):
        raise RuntimeError(OVERLAP)
    return k.reshape(part, k.shape_of(x))


@lru_cache(4096)
def _sizes_to(name: str, wanted: Size, shape: Size) -> Size:
    lead = len(wanted) - len(shape)
    if lead < 0:
        raise ShapeError(
            f"{name}: the number of sizes provided ({len(wanted)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)}); got {list(wanted)} for {list(shape)}."
        )
    out = []
    for i in range(len(wanted) - 1, -1, -1):  # the last that is wrong is told, as in PyTorch
        n, have = wanted[i], 1 if i < lead else tuple.__getitem__(shape, i - lead)
        if n == -1:
            if i < lead:
                raise ShapeError(
                    f"{name}: the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension "
                    f"{i}; got {list(wanted)} for {list(shape)}."
                )
            n = have
        elif n < 0 or (have != 1 and have != n):
            raise ShapeError(
                f"{name}: The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}. Target sizes: {list(wanted)}. Tensor sizes: {list(shape)}."
            )
        elif n.bit_length() > 63:
            raise too_big(name, "size", n)
        out.append(n)
    return Size(out[::-1])


def expand(input: Any, *sizes: Any, size: Any = None, implicit: bool = False) -> Any:
    """Repeat along dims of size 1 without copying; -1 keeps a dim, new dims go in front."""
    return _expand(input, shape=_sizes_to("expand", as_sizes("expand", sizes if size is None else (size,)), input.shape))


def expanded(name: str, input: Any, shape: Size) -> Any:
    """Expand a tensor to a shape as `expand` does, which a frame more would slow, for the function `name`."""
    return _expand(input, shape=_sizes_to(name, shape, input.shape))


def broadcast_to(input: Any, size: Any) -> Any:
    """Repeat along dims of size 1 without copying; the method takes the sizes one by one too."""
    return expand(input, size)


TENSOR_KERNELS.replace("broadcast_to", lambda x, shape: _expand(x, shape=Size(shape)))
TENSOR_KERNELS.replace("permute_dims", lambda x, axes: _permute(x, axes=tuple(axes)))


@lru_cache(4096)
def _squeezed(shape: Size, dim: Any) -> tuple[Size, tuple[int, ...]]:
    dims = () if isinstance(dim, (tuple, list)) and not dim else check_dims("squeeze", dim, len(shape))
    drop = tuple([i for i in dims if shape and shape[i] == 1])
    return Size([n for i, n in enumerate(shape) if i not in drop]), drop


def squeeze(input: Any, dim: Any = None, *more: int, axis: Any = None) -> Any:
    """Drop dims of size 1: all of them, or those given; a view."""
    dim = axis if dim is None else (dim, *more) if more else dim
    seen = dim is None or dim.__class__ is int
    shape, drop = (_squeezed if seen else _squeezed.__wrapped__)(input.shape, dim)
    made = _view(input, shape=shape, axis=drop)
    return named(made, f"SqueezeBackward{0 if dim is None else 1 + isinstance(dim, (tuple, list))}") if made._rg else made


def unsqueeze(input: Any, dim: int | None = None, *, axis: int | None = None) -> Any:
    """Insert a dim of size 1; a view."""
    at = check_dim("unsqueeze", axis if dim is None else dim, len(input.shape) + 1)
    shape = list(input.shape)
    shape.insert(at, 1)
    made = _view(input, shape=remembered(tuple(shape)), axis=at)
    if type(made._node) is _VIEW.node_class:
        made._node.__class__ = _VIEW.class_named("UnsqueezeBackward0")
    return made


# ---- memory formats: orders of strides; values never change ----


@op(shape=same, kernel="contiguous", name="contiguous", grad_name="CloneBackward0", float8="moved")
def _row_major_copy(k: Any, x: Any, /) -> Any:
    """Copy into row-major order."""


_row_major_copy.vjp(x=lambda k, g: g, jvp="linear")
# The dims in the order in which they lie in memory, the outermost first.
_ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def is_contiguous(self: Any, memory_format: Any = contiguous_format) -> bool:
    """Tell whether the elements lie in row-major order, or in that of a memory format."""
    if memory_format not in _ORDERS:
        return is_row_major(self)
    order, strides = _ORDERS[memory_format], layout(self)
    return len(order) == len(strides) and _row_major([self.shape[d] for d in order], [strides[d] for d in order])


def format_of(x: Any) -> Any:
    """Return the memory format of which a tensor lies in the order, row-major where it is of none."""
    return next((f for f in _ORDERS if is_contiguous(x, f)), contiguous_format)


def dense_order(x: Any) -> tuple[int, ...] | None:
    """Return the dims as they lie in memory, the outermost first, for a result without gaps; None where it is row-major."""
    if is_row_major(x):
        return None
    shape, strides = x.shape, layout(x)
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    if _row_major([shape[d] for d in order], [strides[d] for d in order]):
        return tuple(order)
    # With gaps or overlaps as PyTorch's TensorIterator: a stride of 0 tells nothing, equal ones leave it to the sizes.
    order = list(range(len(strides)))
    for i in reversed(range(len(order) - 1)):
        for j in range(i + 1, len(order)):
            a, b = order[i], order[j]
            if strides[a] > strides[b] > 0:
                break
            if 0 < strides[a] < strides[b] or (strides[a] == strides[b] > 0 and shape[b] > shape[a]):
                order[i], order[j], i = b, a, j
    return None if order == sorted(order) else tuple(order)


def no_view(made: Any, name: str) -> Any:
    """Return a permuted copy as a tensor of its own, which is no view of the copy; `name` is for its node."""
    if not made._rg:
        return made._share()
    made._viewed = None
    return named(made, name)


def in_order(made: Any, order: tuple[int, ...]) -> Any:
    """Return a tensor whose dims are those of a result in the order of memory as that result."""
    return _permute(made, axes=_inverse(order)).detach()


def format_strides(name: str, shape: Any, memory_format: Any) -> tuple[int, ...]:
    """Return the strides of a shape in a memory format, row-major for None."""
    order = _ORDERS.get(memory_format, tuple(range(len(shape))))
    if len(order) != len(shape):
        raise RuntimeError(f"{name}: required rank {len(order)} tensor to use {memory_format.name} format; got shape {list(shape)}.")
    steps = contiguous_strides([shape[d] for d in order])
    return tuple([steps[i] for i in _inverse(order)])


def contiguous(self: Any, memory_format: Any = contiguous_format) -> Any:
    """Return it in row-major order, or in that of a memory format; self if it is."""
    if memory_format is contiguous_format or memory_format is preserve_format:
        return self if is_row_major(self) else _row_major_copy(self)
    return self if is_contiguous(self, memory_format) else _laid(self, memory_format)


def _laid(x: Any, memory_format: Any) -> Any:
    """Copy into a memory format, with its strides also along dims of one element."""
    if memory_format is contiguous_format:
        return _row_major_copy(x)
    order = _ORDERS.get(memory_format)
    if order is None:
        raise TypeError(f"contiguous: expected memory_format to be a mortice.memory_format; got {memory_format!r}.")
    format_strides("contiguous", x.shape, memory_format)  # refuses another rank
    return no_view(_permute(_row_major_copy(_permute(x, axes=order)), axes=_inverse(order)), "CloneBackward0")


def in_format(x: Any, memory_format: Any, made_anew: bool = False) -> Any:
    """Return it in the memory format that an argument asks for; None and preserve_format ask for none."""
    if keeps(memory_format):
        return x
    if made_anew:
        lies = contiguous_format if layout(x) == contiguous_strides(x.shape) else None
    else:
        lies = suggested_format(x)
    return x if memory_format is lies else _laid(x, memory_format)


def suggested_format(x: Any) -> Any:
    """Return the memory format that the strides speak for."""
    ndim = len(x.shape)
    if ndim not in (4, 5) or not channels_lie_last(x.shape, layout(x)):
        return contiguous_format
    return channels_last if ndim == 4 else channels_last_3d


def keeps(memory_format: Any) -> bool:
    """Tell whether a `memory_format` argument asks for the order that the input has."""
    return memory_format is None or memory_format is preserve_format


def in_format_like(made: Any, like: Any, memory_format: Any) -> Any:
    """Return what a function has made in the order that is asked for, by default that of the tensor which it is like."""
    order = dense_order(like) if keeps(memory_format) else None
    return in_format(made, memory_format) if order is None else in_order(_row_major_copy(_permute(made, axes=order)), order)
