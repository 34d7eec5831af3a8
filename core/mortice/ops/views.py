"""Views beyond the basic ones: reshapes by name, reordered dims, pieces of a tensor, shapes of several tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mortice.call import as_view
from mortice.dtype import CLASS_NAMES
from mortice.errors import ShapeError, too_big
from mortice.graph import Node, give_slots, next_seq
from mortice.modes import modes
from mortice.node import TENSOR_KERNELS
from mortice.notice import warn
from mortice.ops.arguments import numpy_names
from mortice.ops.index import _SLICE, getitem
from mortice.ops.movement import _permute, contiguous, expand, permute, reshape, transpose
from mortice.shape import Size, broadcast, check_dim, infer_shape, prod, remembered
from mortice.tensor import INFERENCE, Storage, TensorBase

__all__ = [
    "adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "chunk",
    "detach", "detach_", "dsplit", "flatten", "hsplit", "moveaxis", "movedim", "narrow",
    "ravel", "select", "split", "split_with_sizes", "swapaxes", "swapdims", "tensor_split", "unbind",
    "unflatten", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "vsplit",
]  # fmt: skip

# ---- the same memory ----


def detach(input: Any) -> Any:
    """Return a tensor over the same memory, outside the graph."""
    return input.detach()


def detach_(input: Any) -> Any:
    """Leave the graph in place."""
    return input.detach_()


# ---- reshapes by name ----


def view_as(input: Any, other: Any) -> Any:
    """Show the same memory under another tensor's shape."""
    return input.view(other.shape)


def reshape_as(input: Any, other: Any) -> Any:
    """Give the shape of another tensor: a view where strides allow, else a copy."""
    return reshape(input, other.shape)


def expand_as(input: Any, other: Any) -> Any:
    """Repeat along dims of size 1 to another tensor's shape, without copying."""
    return expand(input, other.shape)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Join a range of dims into one."""
    fixed = start_dim.__class__ is end_dim.__class__ is int
    shape = (_flattened if fixed else _flattened.__wrapped__)(input.shape, start_dim, end_dim)
    return input if shape is None else reshape(input, shape)


@lru_cache(4096)
def _flattened(shape: Size, start_dim: int, end_dim: int) -> Size | None:
    start, end = check_dim("flatten", start_dim, len(shape)), check_dim("flatten", end_dim, len(shape))
    if start > end:
        raise ShapeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim; got {start_dim}, {end_dim}."
        )
    if start == end:
        return None if shape else Size((1,))
    return Size((*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@numpy_names
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """Split one dim into several; one of the sizes may be -1."""
    shape = tuple(input.shape)
    at = check_dim("unflatten", dim, len(shape))
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"unflatten: expected sizes to be a tuple of ints; got {type(sizes).__name__}.")
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty.")
    if not shape:
        raise ShapeError("unflatten: a 0-d tensor has no dim to split.")
    try:
        sizes = infer_shape("unflatten", tuple(map(operator.index, sizes)), shape[at])
    except ShapeError:
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[at]}) in the input tensor."
        ) from None
    return input.view((*shape[:at], *sizes, *shape[at + 1 :]))


def ravel(input: Any) -> Any:
    """Flatten into one row-major dim: a view of a tensor that is row-major, a copy of any other, as a vector with gaps."""
    return reshape(contiguous(input), -1)


# ---- the order of dims ----


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move dims to other places, keeping the order of the rest; a view."""
    fixed = source.__class__ is destination.__class__ is int
    return permute(input, (_moved if fixed else _moved.__wrapped__)(len(input.shape), source, destination))


@lru_cache(256)
def _moved(ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
    """Return the order of dims that moves some of them."""
    given = [list(dims) if isinstance(dims, (tuple, list)) else [dims] for dims in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise ShapeError(
            f"movedim: Invalid source or destination dims: source ({given[0]} dims) should contain the same number of "
            f"dims as destination ({given[1]} dims)"
        )
    src, dst = ([check_dim("movedim", d, ndim) for d in dims] for dims in given)
    for name, told, dims in (("source", given[0], src), ("destination", given[1], dst)):
        if len(set(dims)) < len(dims):
            raise ShapeError(f"movedim: repeated dim in `{name}` ({told})")
    order = [-1] * ndim
    for s, d in zip(src, dst):
        if order:
            order[d] = s
    rest = iter([d for d in range(ndim) if d not in src])
    return tuple([next(rest) if o < 0 else o for o in order])


def moveaxis(input: Any, source: Any, destination: Any) -> Any:
    """Move dims to other places: movedim by NumPy's name."""
    return movedim(input, source, destination)


def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Swap two dims: transpose by NumPy's name."""
    return transpose(input, axis0, axis1)


def swapdims(input: Any, dim0: int, dim1: int) -> Any:
    """Swap two dims: another name of transpose."""
    return transpose(input, dim0, dim1)


def adjoint(input: Any) -> Any:
    """Transpose the last two dims and conjugate."""
    if len(input.shape) < 2:
        raise ShapeError(
            f"adjoint: tensor.adjoint() is only supported on matrices or batches of matrices; got {len(input.shape)}-D tensor."
        )
    flipped = transpose(input, -2, -1)
    return TENSOR_KERNELS.conj(flipped) if input.dtype.is_complex else flipped


def property_T(self: Any) -> Any:
    """Reverse the order of dims."""
    if not self.shape:
        warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.", once=True)
    elif len(self.shape) != 2:
        warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
            "error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            once=True,
        )
    return _permute(self, axes=tuple(range(len(self.shape) - 1, -1, -1)))


def property_mT(self: Any) -> Any:
    """Transpose the last two dims."""
    if len(self.shape) == 1:
        raise ShapeError(
            f"tensor.mT is only supported on matrices or batches of matrices; got {len(self.shape)}-D tensor."
        )
    if self.shape:
        return transpose(self, -2, -1)
    warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.", once=True)
    return self


def property_H(self: Any) -> Any:
    """Transpose a matrix and conjugate."""
    if len(self.shape) not in (0, 2):
        raise ShapeError(f"tensor.H is only supported on matrices (2-D tensors); got {len(self.shape)}-D tensor.")
    if self.shape:
        return adjoint(self)
    warn("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().", once=True)
    return self


def property_mH(self: Any) -> Any:
    """Transpose the last two dims and conjugate."""
    if len(self.shape) < 2:
        raise ShapeError(
            f"tensor.mH is only supported on matrices or batches of matrices; got {len(self.shape)}-D tensor."
        )
    return adjoint(self)


# ---- pieces ----


@numpy_names
def select(input: Any, dim: int, index: Any) -> Any:
    """Take one position along a dim, which goes away; a view."""
    shape = tuple(input.shape)
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, index = check_dim("select", dim, len(shape)), operator.index(index)
    if not -shape[at] <= index < shape[at]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {at}"
        )
    return getitem(input, (*(slice(None),) * at, index % shape[at]))


def cut(x: Any, axis: int, start: int, length: int) -> Any:
    """Take `length` positions from `start` along an axis that is known to hold them; a view."""
    return getitem(x, (*(slice(None),) * axis, slice(start, start + length, 1)))


@numpy_names
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """Take `length` positions from `start` along a dim; a view."""
    shape = tuple(input.shape)
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at = check_dim("narrow", dim, len(shape))
    if isinstance(start, TensorBase) and (start.shape or start.dtype.kind not in "iu"):
        raise RuntimeError("narrow: start must be an 0-dim integral Tensor.")
    start, length, n = operator.index(start), operator.index(length), shape[at]
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative. It is {length}.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"narrow: start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return cut(input, at, start, length)


class PiecesNode(Node):
    """The node of split and unbind: the pieces' gradients are joined in one go, not each padded and added."""

    __slots__ = ("axis", "bounds", "unbound", "count", "whole", "slots")
    axis: int
    bounds: tuple[tuple[int, int], ...]
    unbound: bool
    count: int
    whole: Size
    slots: list[Any]  # weak references

    def place(self, number: int) -> Any:
        return self.slots[number]()

    def name(self) -> str:
        return type(self).__name__

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        k: Any = TENSOR_KERNELS if graph else self.device.backend
        known = [gi for gi in g if gi is not None]
        axis, whole = self.axis, tuple(self.whole)
        parts = []
        for gi, (start, stop) in zip(g, self.bounds):
            if gi is None:
                parts.append(k.new_full(known[0], (*whole[:axis], stop - start, *whole[axis + 1 :]), 0))
            else:
                parts.append(k.expand_dims(gi, axis) if self.unbound else gi)
        return (k.concat(parts, axis=axis),)


_KINDS = {
    name: type(name, (PiecesNode,), {"__slots__": ()})
    for name in (
        "SplitBackward0", "SplitWithSizesBackward0", "UnbindBackward0", "UnsafeSplitBackward0", "UnsafeSplitWithSizesBackward0",
    )
}  # fmt: skip


@lru_cache(256)
def _notes(name: str, count: int) -> tuple[str, ...]:
    return tuple([f"{i} of {name}" for i in range(count)])


_FEW = 64  # pieces: what is worked out for more is not remembered, as it may take much memory


@lru_cache(256)  # shapes recur, and to work it out takes longer than to make a view
def _cuts(shape: tuple[int, ...], axis: int, bounds: tuple[tuple[int, int], ...], unbound: bool) -> list[tuple[Any, Size]]:
    """Return the key of each piece, and its shape."""
    lead, before, after = (slice(None),) * axis, shape[:axis], shape[axis + 1 :]
    if unbound:
        return [((*lead, start), remembered((*before, *after))) for start, _ in bounds]
    return [((*lead, slice(start, stop, 1)), remembered((*before, stop - start, *after))) for start, stop in bounds]


@lru_cache(256)
def _bounds(n: int, size: int) -> tuple[tuple[int, int], ...]:
    return tuple([(i, min(i + size, n)) for i in range(0, n, size)]) if n else ((0, 0),)


def _even(n: int, size: int) -> tuple[tuple[int, int], ...]:
    """Return the bounds of pieces of a size, of which the last may be smaller."""
    return _bounds(n, size) if n <= _FEW * size else _bounds.__wrapped__(n, size)


def _shown(x: Any, cuts: list[tuple[Any, Size]]) -> tuple[Any, ...]:
    getitem, data = x._device.backend.getitem, x._buffer
    return tuple([as_view(_SLICE, x, getitem(data, cut[0]), cut[1], cut, True) for cut in cuts])


def pieces(x: Any, axis: int, bounds: tuple[tuple[int, int], ...], name: str = "SplitBackward0") -> tuple[Any, ...]:
    """Return views that tile an axis; none of them may be written in place while autograd records."""
    unbound = name == "UnbindBackward0"
    cuts = (_cuts if len(bounds) <= _FEW else _cuts.__wrapped__)(tuple(x.shape), axis, bounds, unbound)
    views = _shown(x, cuts)
    if modes.grad and views and x._note != INFERENCE:
        for view, note in zip(views, _notes(name, len(views))):
            view._note = note
    if x._rg and modes.grad and views:
        node = _KINDS[name]()
        node.seq, node.extra = next_seq(), None
        node.edges = (x._node or x.note_use(node.seq),)
        node.device, node.shape, node.dtype, node.whole = x._device, x.shape, x.dtype, x.shape
        node.axis, node.bounds, node.unbound, node.count = axis, bounds, unbound, len(views)
        node.slots = give_slots(node, views)
    return views


@numpy_names
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Return the slices along a dim, each without it; views."""
    if not input.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = check_dim("unbind", dim, len(input.shape))
    return pieces(input, axis, _even(n, 1) if (n := input.shape[axis]) else (), "UnbindBackward0")


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Cut into pieces of a size (the last may be smaller), or of given sizes; views."""
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    if not tensor.shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if not hasattr(split_size_or_sections, "__index__"):
        raise TypeError(f"split: expected an int or a list of ints; got {type(split_size_or_sections).__name__}.")
    axis, size = check_dim("split", dim, len(tensor.shape)), operator.index(split_size_or_sections)
    n = tensor.shape[axis]
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and n != 0:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    return pieces(tensor, axis, _even(n, size))


@numpy_names
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Cut into pieces of given sizes; views."""
    if not input.shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis, sizes = check_dim("split_with_sizes", dim, len(input.shape)), [operator.index(n) for n in split_sizes]
    n = input.shape[axis]
    if any(size < 0 for size in sizes) or sum(sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to have only non-negative entries and to sum exactly to {n} (input "
            f"tensor's size at dimension {axis}), but got split_sizes={sizes}"
        )
    bounds, start = [], 0
    for size in sizes:
        bounds.append((start, start + size))
        start += size
    return pieces(input, axis, tuple(bounds), "SplitWithSizesBackward0")


@numpy_names
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Cut into at most `chunks` pieces of equal size (the last may be smaller); views."""
    if not input.shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    axis = check_dim("chunk", dim, len(input.shape))
    n = input.shape[axis]
    if n == 0:
        return split_with_sizes(input, [0] * chunks, axis)
    return pieces(input, axis, _even(n, -(-n // operator.index(chunks))))


@numpy_names
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Cut like chunk; the pieces share memory, yet each may be written in place."""
    return _on_their_own(chunk(input, chunks, dim))


@numpy_names
def unsafe_split(input: Any, split_size: int, dim: int = 0) -> tuple[Any, ...]:
    """Cut like split; the pieces share memory, yet each may be written in place."""
    return _on_their_own(split(input, split_size, dim))


@numpy_names
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Cut like split_with_sizes; the pieces share memory, yet each may be written in place."""
    return _on_their_own(split_with_sizes(input, split_sizes, dim))


def _on_their_own(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    for part in parts:
        if part._storage is not None and part._note != INFERENCE:
            part.set_storage(Storage(part._storage.aliases), part._steps)  # no view to the graph, writes counted apart
    if parts and parts[0]._rg:
        node = parts[0]._node.parent
        node.__class__ = _KINDS[f"Unsafe{node.name()}"]
    return parts


@numpy_names
def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Cut into a number of nearly equal pieces, or at given positions; views."""
    given = (indices_or_sections, indices, sections, tensor_indices_or_sections)
    where = next((v for v in given if v is not None), None)
    if not input.shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = check_dim("tensor_split", dim, len(input.shape))
    n = input.shape[axis]
    if isinstance(where, TensorBase):
        if where.dtype.name != "int64" or not where.is_cpu:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{CLASS_NAMES[where.dtype.name]} on {where.device}"
            )
        if len(where.shape) > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {len(where.shape)} dims"
            )
        where = where.tolist()
    if isinstance(where, (tuple, list)):
        edges = [slice(None, operator.index(i)).indices(n)[1] for i in where]
        starts, stops = [0, *edges], [*edges, n]
        return tuple([cut(input, axis, a, max(b - a, 0)) for a, b in zip(starts, stops)])
    count = operator.index(where)
    if count <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {count}")
    if count.bit_length() > 63:  # nobody could wait for them
        raise too_big("tensor_split", "indices_or_sections", count)
    small, larger = divmod(n, count)
    out, start = [], 0
    for i in range(count):
        length = small + (i < larger)
        out.append(cut(input, axis, start, length))
        start += length
    return tuple(out)


def _named_split(
    name: str, x: Any, given: tuple[Any, ...], indices: Any, sections: Any, dim: int, least: int
) -> tuple[Any, ...]:
    where = sections if indices is None else indices
    if given:
        where = given[0] if len(given) == 1 else given
    if not isinstance(where, (int, tuple, list)) and not hasattr(where, "__index__"):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: expected an int or a tuple of ints; got "
            f"{type(where).__name__}."
        )
    ndim = len(x.shape)
    if ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} dimensions!"
        )
    if not isinstance(where, (tuple, list)):
        n = x.shape[dim]
        if where == 0 or n % where:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not "
                f"divisible by the split_size {where}!"
            )
    return tensor_split(x, where, dim)


def hsplit(input: Any, *where: Any, indices: Any = None, sections: Any = None) -> tuple[Any, ...]:
    """Cut along dim 1, or along dim 0 of a vector."""
    return _named_split("hsplit", input, where, indices, sections, 0 if len(input.shape) == 1 else 1, 1)


def vsplit(input: Any, *where: Any, indices: Any = None, sections: Any = None) -> tuple[Any, ...]:
    """Cut along dim 0."""
    return _named_split("vsplit", input, where, indices, sections, 0, 2)


def dsplit(input: Any, *where: Any, indices: Any = None, sections: Any = None) -> tuple[Any, ...]:
    """Cut along dim 2."""
    return _named_split("dsplit", input, where, indices, sections, 2, 3)


# ---- shapes of several tensors ----


def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape that shapes broadcast to."""
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    common = [1] * max(map(len, sizes), default=0)
    for i, s in enumerate(sizes):
        for d in range(-1, -len(s) - 1, -1):
            if s[d] != 1 and common[d] not in (1, s[d]):
                raise ShapeError(
                    f"broadcast_shapes: Attempting to broadcast a dimension of length {s[d]} at {d}! Mismatching argument "
                    f"at index {i} had {s}; but expected shape should be broadcastable to {common}."
                )
            if s[d] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            common[d] = s[d] if s[d] != 1 else common[d]
    return Size(common)


def many(name: str, tensors: Sequence[Any]) -> list[Any]:
    """Read tensors given one by one or as one sequence."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    for i, x in enumerate(tensors):
        if not isinstance(x, TensorBase):
            raise TypeError(f"{name}: expected Tensor as argument {i}; got {type(x).__name__}.")
    return list(tensors)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Expand tensors to their common shape."""
    return common("broadcast_tensors", *many("broadcast_tensors", tensors))


def common(name: str, *tensors: Any) -> tuple[Any, ...]:
    """Expand tensors to their common shape, for the function `name`."""
    shape = broadcast(name, *[x.shape for x in tensors]) if tensors else None
    return tuple([x if x.shape == shape else expand(x, shape) for x in tensors])


def _at_least(name: str, tensors: Sequence[Any], lift: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], TensorBase):
        return lift(tensors[0])
    return tuple([lift(x) for x in many(name, tensors)])


def atleast_1d(*tensors: Any) -> Any:
    """Give 0-d tensors a dim."""
    return _at_least("atleast_1d", tensors, lambda x: x if x.shape else reshape(x, 1))


def atleast_2d(*tensors: Any) -> Any:
    """Lift to two dims: a vector becomes a row."""
    return _at_least("atleast_2d", tensors, lambda x: x if len(x.shape) > 1 else reshape(x, (1, prod(x.shape))))


def atleast_3d(*tensors: Any) -> Any:
    """Lift to three dims: a vector becomes (1, n, 1), a matrix (m, n, 1)."""

    def lift(x: Any) -> Any:
        shape = tuple(x.shape)
        return x if len(shape) > 2 else reshape(x, (*shape, 1) if len(shape) == 2 else (1, *(shape or (1,)), 1))

    return _at_least("atleast_3d", tensors, lift)
