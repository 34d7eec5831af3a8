"""Rearranged copies: flips, rolls, repeats, triangles, diagonal matrices and grids."""

from __future__ import annotations

import itertools
import math
import operator
from array import array
from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice import node as _node
from mortice.dtype import DType, dtype_of_all, get_default_dtype, int64
from mortice.errors import DTypeError, ShapeError, too_big
from mortice.layout import contiguous_format
from mortice.levels import lane_by_lane
from mortice.modes import enable_grad, modes
from mortice.mutation import check_writable
from mortice.node import TENSOR_KERNELS, named, node_name
from mortice.notice import warn
from mortice.op import op
from mortice.ops.arguments import numpy_names
from mortice.ops.creation import empty, filled, finish, resolve
from mortice.ops.data import check_dtype, range_of, tensor
from mortice.ops.index_advanced import _take
from mortice.ops.joining import cat, stack
from mortice.ops.movement import cast, clone, contiguous, expand, permute, reshape, squeeze, transpose, unsqueeze
from mortice.ops.movement import t as movement_t
from mortice.ops.nn_resize import pad
from mortice.ops.strided import as_strided, diagonal, diagonal_write, two_dims
from mortice.ops.views import atleast_2d, flatten, many
from mortice.rules import same
from mortice.shape import Size, as_sizes, check_dim, check_dims, check_region, out_of_memory, prod, spreads_to
from mortice.tensor import TensorBase, make

__all__ = [
    "as_strided_", "block_diag", "cartesian_prod", "combinations", "diag", "diag_embed", "diagflat", "diagonal_scatter", "flip",
    "fliplr", "flipud", "meshgrid", "repeat_interleave", "roll", "rot90", "tile", "tril", "tril_indices", "triu", "triu_indices",
    "unravel_index",
]  # fmt: skip

# ---- reversing and rolling ----


@op(shape=same, name="flip")
def _flip(k: Any, x: Any, /, *, axis: Any) -> Any:
    """Reverse along axes, into memory of its own."""
    made = k.flip(x, axis)
    return made if k.owns(made) else k.copy(made)


_flip.vjp(x=lambda k, g, axis: k.flip(g, axis), jvp="linear")
TENSOR_KERNELS.replace("flip", lambda x, axis: _flip(x, axis=axis))


def flip(input: Any, *axes: Any, dims: Any = None) -> Any:
    """Reverse the order along dims; a copy."""
    dims = axes if dims is None else (dims,)
    if not dims:
        raise TypeError("flip: missing 1 required positional argument: 'dims'.")
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    axes = check_dims("flip", dims, len(input.shape)) if dims else ()
    return _flip(input, axis=axes) if axes and input.shape else clone(input)


def fliplr(input: Any) -> Any:
    """Reverse the order of columns."""
    if len(input.shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input: Any) -> Any:
    """Reverse the order of rows."""
    if len(input.shape) < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@op(shape=same, kernel="roll", name="roll", float8="moved")
def _roll(k: Any, x: Any, /, *, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Shift along axes."""


def _roll_back(k: Any, g: Any, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return k.roll(g, shifts=tuple([-s for s in shifts]), axes=axes)


_roll.vjp(x=_roll_back, jvp="linear")


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Shift elements along dims; what falls off comes in at the other end. Without dims the tensor counts as flat."""
    shifts = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    dims = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return named(reshape(roll(reshape(input, -1), shifts, 0), input.shape), "RollBackward0")
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not input.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axes = tuple([check_dim("roll", d, len(input.shape)) for d in dims])
    return _roll(contiguous(input), shifts=tuple(map(operator.index, shifts)), axes=axes)


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turn a plane by 90 degrees, k times, from the first dim towards the second."""
    ndim = len(input.shape)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = dims
    if a == b or abs(a - b) == ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")
    for d in dims:
        if not -ndim <= d < ndim:
            raise RuntimeError(f"Rotation dim out of range, dim = {d}")
    k %= 4
    if k == 1:
        return named(transpose(flip(input, b), a, b), "Rot90Backward0")
    if k == 2:
        return named(flip(input, a, b), "Rot90Backward0")
    return named(transpose(flip(input, a), a, b) if k == 3 else clone(input), "Rot90Backward0")


# ---- repeating ----


def _repeated(name: str, shape: Size, *, reps: tuple[int, ...]) -> Size:
    return Size([n * r for n, r in zip((1,) * (len(reps) - len(shape)) + tuple(shape), reps)])


def _interleaved(shape: tuple[int, ...], reps: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape with a dim of 1 before each dim, and with the repeats there."""
    shape = (1,) * (len(reps) - len(shape)) + shape
    return tuple(v for n in shape for v in (1, n)), tuple(v for n, r in zip(shape, reps) for v in (r, n))


@op(shape=_repeated, name="repeat", float8="moved")
def _repeat(k: Any, x: Any, /, *, reps: tuple[int, ...]) -> Any:
    """Lay copies side by side."""
    shape = tuple(k.shape_of(x))
    narrow, wide = _interleaved(shape, reps)
    whole = k.contiguous(k.broadcast_to(k.reshape(x, narrow), wide))
    return k.reshape(whole, tuple(_repeated("repeat", Size(shape), reps=reps)))


def _repeat_back(k: Any, g: Any, x_shape: Any, reps: tuple[int, ...]) -> Any:
    _, wide = _interleaved(tuple(x_shape), reps)
    if 0 in wide:
        return k.new_full(g, x_shape, 0)
    return k.reshape(k.sum(k.reshape(g, wide), axis=tuple(range(0, len(wide), 2)), keepdims=False), tuple(x_shape))


_repeat.vjp(x=_repeat_back, jvp="linear")


def repeat(input: Any, *sizes: Any, repeats: Any = None) -> Any:
    """Lay copies side by side: so many along each dim, new dims in front."""
    reps = tuple(as_sizes("repeat", sizes if repeats is None else (repeats,), "repeats"))
    if len(reps) < len(input.shape):
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor; got "
            f"{list(reps)} for {list(input.shape)}."
        )
    for r in reps:
        if r < 0:
            raise ShapeError(f"repeat: Trying to create tensor with negative dimension; got repeats {list(reps)}.")
        if r.bit_length() > 63:
            raise too_big("repeat", "repeats", r)
    return _repeat(input, reps=reps) if reps else clone(input)


def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """Lay copies side by side; fewer numbers than dims count from the last."""
    reps = tuple(as_sizes("tile", sizes if dims is None else (dims,), "dims"))
    return repeat(input, (1,) * (len(input.shape) - len(reps)) + reps)


@numpy_names
@lane_by_lane
def repeat_interleave(
    input: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Any:
    """Repeat each element (or slice along a dim) in place: so many times, or as many times as `repeats` says for each.

    Called with repeats alone, return the indices that do this.
    """
    if input is None or repeats is None:
        counts = input if repeats is None else repeats
        if not isinstance(counts, TensorBase):
            raise TypeError(f"repeat_interleave: expected repeats to be a Tensor where there is no input; got {type(counts).__name__}.")
        if len(counts.shape) != 1 or counts.dtype.name not in ("int64", "int32"):
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat, of dtype int64 or int32.")
        return _spread_indices(counts, len(counts.shape) and counts.shape[0], output_size)
    if dim is None:
        input, axis = reshape(input, -1), 0
    else:
        axis = check_dim("repeat_interleave", dim, len(input.shape))
        input = input if input.shape else reshape(input, 1)
    n = input.shape[axis]
    if isinstance(repeats, (tuple, list)):
        repeats = tensor(repeats, dtype=int64, device=input._device)
    if isinstance(repeats, TensorBase):
        if repeats.dtype.name not in ("int64", "int32") or len(repeats.shape) > 1:
            raise RuntimeError("repeat_interleave: repeats must be 0-dim or 1-dim tensor of dtype int64 or int32.")
        if len(repeats.shape) == 1 and repeats.shape[0] not in (1, n):
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} and "
                f"input.size({axis}) = {n}"
            )
        if repeats.shape and (repeats.shape[0] == n):
            return _take(input, _spread_indices(repeats, n, output_size), axis=axis)
        repeats = repeats.item()
    count = operator.index(repeats)
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = list(input.shape)
    wide = expand(unsqueeze(input, axis + 1), (*shape[: axis + 1], count, *shape[axis + 1 :]))
    return reshape(clone(wide, memory_format=contiguous_format), (*shape[:axis], n * count, *shape[axis + 1 :]))


def _spread_indices(counts: Any, n: int, output_size: int | None) -> Any:
    wide, device = cast(counts, int64), counts._device
    if output_size is not None and not device.backend.has_values:
        return make(device.backend.spread_indices(wide._buffer, total=output_size), device, counts.dtype, Size((output_size,)))
    lowest, highest = (n and range_of(wide)) or (0, 0)
    if lowest < 0:
        raise RuntimeError("repeats can not be negative")
    if highest * n >= 2**63:  # the sum would wrap around
        raise RuntimeError(f"repeat_interleave: Storage size calculation overflowed with repeats up to {highest}")
    total = wide.sum().item()
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: output_size must be the sum of repeats; got {output_size} for {total}.")
    data = device.backend.spread_indices(wide._buffer, total=total)
    return cast(make(data, device, int64, Size((total,))), counts.dtype)


# ---- triangles and diagonals ----


def _at_least_matrix(name: str, x: Any) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions; got {list(x.shape)}.")


@op(shape=same, kernel="tril", name="tril")
def _tril(k: Any, x: Any, /, *, diagonal: int) -> Any:
    """Keep the lower triangles."""


_tril.vjp(x=lambda k, g, diagonal: k.tril(g, diagonal=diagonal), jvp="linear")


@op(shape=same, kernel="triu", name="triu")
def _triu(k: Any, x: Any, /, *, diagonal: int) -> Any:
    """Keep the upper triangles."""


_triu.vjp(x=lambda k, g, diagonal: k.triu(g, diagonal=diagonal), jvp="linear")
TENSOR_KERNELS.replace("tril", lambda x, *, diagonal=0: _tril(x, diagonal=diagonal))
TENSOR_KERNELS.replace("triu", lambda x, *, diagonal=0: _triu(x, diagonal=diagonal))


def tril(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:
    """Keep the lower triangle of each matrix, from a diagonal down; zero elsewhere."""
    _at_least_matrix("tril", input)
    return _tril(contiguous(input), diagonal=operator.index(diagonal), out=out)


def triu(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:
    """Keep the upper triangle of each matrix, from a diagonal up; zero elsewhere."""
    _at_least_matrix("triu", input)
    return _triu(contiguous(input), diagonal=operator.index(diagonal), out=out)


def _climbed(n: int, first: int) -> int:
    """Return the sum of n numbers, each one more than the one before it, of which those below 0 count as 0."""
    n, first = (n, first) if first >= 0 else (max(n + first, 0), 0)
    return n * first + n * (n - 1) // 2


def _triangle(
    name: str, upper: bool, row: int, col: int, offset: int, dtype: DType, device: Any, requires_grad: bool,
    pin_memory: bool,
) -> Any:  # fmt: skip
    row, col, offset = operator.index(row), operator.index(col), operator.index(offset) + (not upper)
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: row and col must be non-negative; got {row} and {col}.")
    where = resolve(device)
    if dtype.kind not in "iu":
        raise DTypeError(f"{name}: not implemented for {dtype}. Use an integer dtype.")
    check_dtype(name, dtype, where, computes=True)
    # Each row ends, or begins, one column later than the one before.
    left = _climbed(row, offset) - _climbed(row, offset - col)
    total = row * col - left if upper else left
    k, shape, row = where.backend, Size((2, total)), row if total else 0
    try:
        edges = k.minimum(k.maximum(k.arange(offset, offset + row, 1, dtype=int64, device=where), 0), col)
        counts = k.subtract(col, edges) if upper else edges
        rows = k.spread_indices(counts, total=total)
        before = k.subtract(k.cumulative_sum(counts, axis=0), col if upper else counts)  # less the column where a row begins
        columns = k.subtract(k.arange(0, total, 1, dtype=int64, device=where), k.take(before, rows, axis=0))
        data = k.concat([k.reshape(part, (1, total)) for part in (rows, columns)], axis=0)
    except (MemoryError, ValueError, OverflowError) as error:
        raise out_of_memory(name, shape, dtype, error) from None
    return finish(cast(make(data, where, int64, shape), dtype), requires_grad, pin_memory)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None, layout: Any = None,
    pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return the positions of the lower triangle of a row by col matrix: 2 by n."""
    return _triangle("tril_indices", False, row, col, offset, dtype or int64, device, requires_grad, pin_memory)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None, layout: Any = None,
    pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return the positions of the upper triangle of a row by col matrix: 2 by n."""
    return _triangle("triu_indices", True, row, col, offset, dtype or int64, device, requires_grad, pin_memory)


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Return, for flat positions in a shape, the index along each dim."""
    if not isinstance(indices, TensorBase) or indices.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices))}")
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not hasattr(n, "__index__") or isinstance(n, TensorBase):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"unravel_index: 'shape' cannot have negative values, but got {tuple(sizes)}")
    indices = cast(indices, int64)
    out: list[Any] = []
    for n in reversed(sizes):
        out.insert(0, indices % n if n else indices)
        indices = indices // n if n else indices
    return tuple(out)


@lru_cache(4096)  # shapes recur
def _embedded(name: str, shape: Size, *, offset: int, axis1: int, axis2: int) -> Size:
    *batch, n = tuple(shape)
    size = n + abs(offset)
    for a in sorted((axis1, axis2)):
        batch.insert(a, size)
    return Size(batch)


@op(shape=_embedded, name="diag_embed", float8="moved")
def _diag_embed(k: Any, x: Any, /, *, offset: int, axis1: int, axis2: int) -> Any:
    """Put the last axis on a diagonal of zeros."""
    shape = _embedded("diag_embed", k.shape_of(x), offset=offset, axis1=axis1, axis2=axis2)
    *batch, count = k.shape_of(x)
    n, start = shape[axis1], offset if offset >= 0 else -offset * shape[axis1]
    made = k.new_full(x, (*batch, n * n), 0)
    if count:
        made = k.setitem(made, (..., slice(start, start + (count - 1) * (n + 1) + 1, n + 1)), x)
    made = k.reshape(made, (*batch, n, n))
    rest = iter(range(len(batch)))
    axes = {axis1: len(batch), axis2: len(batch) + 1}
    order = tuple([axes[d] if d in axes else next(rest) for d in range(len(shape))])
    return made if order == tuple(range(len(shape))) else k.contiguous(k.permute_dims(made, order))


_diag_embed.vjp(
    x=lambda k, g, offset, axis1, axis2: k.diagonal(g, offset=offset, axis1=axis1, axis2=axis2), jvp="linear"
)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Put the last dim on a diagonal of new matrices over dims dim1 and dim2."""
    ndim = len(input.shape) + 1
    a, b = check_dim("diag_embed", dim1, ndim), check_dim("diag_embed", dim2, ndim)
    if a == b:
        raise ShapeError(f"diag_embed: diagonal dimensions cannot be identical {dim1}, {dim2}.")
    if not input.shape:
        raise ShapeError("diag_embed: expected a tensor of at least 1 dimension; got a 0-d tensor.")
    # With the dims the other way round the diagonal lies on the other side.
    offset = operator.index(offset)
    return _diag_embed(input, offset=offset, axis1=a, axis2=b)


def diag(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:
    """Make a matrix with a vector on its diagonal, or take the diagonal of a matrix."""
    if len(input.shape) not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {len(input.shape)}D")
    made = diag_embed(input, diagonal) if len(input.shape) == 1 else named(clone(_diagonal_of(input, diagonal)), "DiagonalBackward0_copy")
    return _call.give("diag", out, made)


_diagonal_of = diagonal


def diagflat(input: Any, offset: int = 0) -> Any:
    """Make a matrix with all elements on its diagonal."""
    return diag_embed(reshape(input, -1), offset)


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a copy with a diagonal replaced."""
    axis1, axis2 = two_dims("diagonal_scatter", input, dim1, dim2)
    check_region("diagonal_scatter", src.shape, diagonal(input.detach(), offset, dim1, dim2).shape)
    return diagonal_write(input, cast(src, input.dtype), offset=operator.index(offset), axis1=axis1, axis2=axis2)


# ---- grids ----


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Spread vectors into grids of coordinates; `indexing` "ij" (the default) or "xy"."""
    parts = many("meshgrid", tensors)
    if not parts:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in parts:
        if len(x.shape) > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x!r}")
        if x.dtype is not parts[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
        _call.check_device(_take.op, parts[0], x)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", once=True)
    swap = indexing == "xy" and len(parts) >= 2
    if swap:
        parts[0], parts[1] = parts[1], parts[0]
    shape = tuple([prod(x.shape) for x in parts])
    grids = [
        expand(reshape(x, tuple(-1 if i == j else 1 for j in range(len(parts)))) if prod(x.shape) else
               reshape(x, tuple(0 if i == j else 1 for j in range(len(parts)))), shape)
        for i, x in enumerate(parts)
    ]  # fmt: skip
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of one element of each vector, one a row."""
    parts = many("cartesian_prod", tensors)
    for x in parts:
        if len(x.shape) != 1:
            raise RuntimeError(f"torch.cartesian_prod: Expect a 1D vector, but got shape {list(x.shape)}")
    if len(parts) == 1:
        return parts[0]
    return stack([flatten(g) for g in meshgrid(*parts, indexing="ij")], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return all ways to choose r elements of a vector, one a row."""
    if not isinstance(input, TensorBase):
        raise TypeError(f"combinations: expected a Tensor; got {type(input).__name__}.")
    if len(input.shape) != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return filled("combinations", Size((0,)), 0, input.dtype, input._device)
    n = input.shape[0]
    of = n + r - 1 if with_replacement and n else n
    if r <= of and math.lgamma(of + 1) - math.lgamma(r + 1) - math.lgamma(of - r + 1) > 63 * math.log(2):
        raise RuntimeError(f"combinations: Storage size calculation overflowed with {r} of {n} elements")
    count = math.comb(of, r)
    index = empty(count, r, dtype=int64, device=input._device)  # too large a one is refused here, before the work
    if r == 2:
        index = permute(triu_indices(n, n, 0 if with_replacement else 1, device=input._device), (1, 0))
    elif count:
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        index = tensor(array("q", itertools.chain.from_iterable(choose(range(n), r))), device=input._device)
    return reshape(_take(input, reshape(index, -1), axis=0), (count, r))


@node_name("BlockDiagBackward0")
def block_diag(*tensors: Any) -> Any:
    """Put matrices on the diagonal of one of zeros."""
    parts = many("block_diag", tensors)
    if not parts:
        return filled("block_diag", Size((1, 0)), 0, get_default_dtype(), resolve(None))
    for i, x in enumerate(parts):
        if len(x.shape) > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {len(x.shape)} dimensions"
            )
        _call.check_device(_take.op, parts[0], x)
    d = dtype_of_all(parts)
    parts = [atleast_2d(cast(x, d)) for x in parts]
    width = sum(x.shape[1] for x in parts)
    rows, left = [], 0
    for x in parts:
        w = x.shape[1]
        rows.append(pad(x, (left, width - left - w)))
        left += w
    return cat(rows, 0)


# ---- changes of a tensor's own shape ----


def become(name: str, t: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Turn a tensor into a view of itself: same memory, other shape."""
    check_writable(name, t)
    leaf = t._node is None
    # A leaf stays one; of what was computed the change is recorded under no_grad too, or gradients had the old shape.
    if leaf or modes.grad:
        view = fn(t, *args, **kwargs)
    else:
        with enable_grad():
            view = fn(t, *args, **kwargs)
    storage = t._storage or t.own_storage()
    storage.version += 1  # what has kept t for backward would read it in another shape
    if view._storage is None or view is t:
        return t
    if t._viewed is None and len(storage.aliases) > 1:  # there are others than t and this view of it
        # Views of t stay views of what t was.
        stand_in = None
        for other in storage.live():
            if other is not view and other is not t and other._viewed is t:
                if stand_in is None:
                    stand_in = make(t._buffer, t._device, t.dtype, t.shape)
                    stand_in._rg, stand_in._node = t._rg, t._node
                    stand_in.set_storage(storage, t._steps)
                other._viewed = stand_in
    t._buffer, t._shape, t._steps = view._buffer, view.shape, _shortened(view._steps, None if t._viewed is None else t._viewed._steps)
    if not leaf:
        t._rejoin(view._rg, view._node)
    return t


def _shortened(steps: Any, base: Any) -> Any:
    """Return steps of which the last two are one where both reorder dims, and none where those are then as before, back to `base`."""
    before, op, attrs = steps
    if before is base or op is not before[1] or op.name != "permute":
        return steps
    first, then = [at["axes"] if type(at) is dict else at[0] for at in (before[2], attrs)]
    axes = tuple([first[d] for d in then])
    return before[0] if axes == tuple(range(len(axes))) else (before[0], op, {"axes": axes})


def sum_to_size(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Sum dims so that the result has a size which broadcasts to this tensor's."""
    wanted = as_sizes("sum_to_size", sizes if size is None else (size,))
    if not spreads_to(wanted, input.shape):
        raise ShapeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(input.shape)}}}.")
    return input.sum() if not wanted else _node.unbroadcast(TENSOR_KERNELS, input, wanted)


def _in_place(name: str, fn: Any) -> Any:
    def method(input: Any, *args: Any, **kwargs: Any) -> Any:
        return become(name, input, fn, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__module__, method.__doc__ = __name__, f"Do `{name[:-1]}` to the tensor itself: same memory, other shape."
    return method


squeeze_, unsqueeze_ = _in_place("squeeze_", squeeze), _in_place("unsqueeze_", unsqueeze)
transpose_, t_ = _in_place("transpose_", transpose), _in_place("t_", movement_t)
as_strided_ = _in_place("as_strided_", as_strided)
swapaxes_, swapdims_ = _in_place("swapaxes_", transpose), _in_place("swapdims_", transpose)
