"""Advanced indices: integer and boolean tensors, and mixes of them with slices. What they take is a copy."""

from __future__ import annotations

import operator
from typing import Any

from mortice.dtype import bool_, int32, int64, uint8
from mortice.errors import ShapeError
from mortice.notice import warn
from mortice.op import op
from mortice.ops.bounds import where as choose
from mortice.ops.data import is_sequence, refuse_outside
from mortice.ops.index_basic import _slice, basic_key
from mortice.ops.movement import cast, expand, permute, reshape, transfer, unsqueeze
from mortice.rules import same
from mortice.shape import Size, broadcast, prod, remembered
from mortice.tensor import TensorBase, make


def _taken(name: str, shape: Size, indices: Size, *, axis: int) -> Size:
    return Size((*tuple(shape)[:axis], *indices, *tuple(shape)[axis + 1 :]))


@op(shape=_taken, fixed=("indices",), kernel="take", name="take", grad_name="IndexBackward0", float8="moved")
def _take(k: Any, x: Any, indices: Any, /, *, axis: int) -> Any:
    """Pick positions (1-D) along an axis."""


_take.vjp(
    x=lambda k, g, x_shape, indices, axis: k.index_add(k.new_full(g, x_shape, 0), indices, g, axis=axis), jvp="linear"
)


@op(shape=same, fixed=("indices",), kernel="index_add", name="index_add")
def _index_add(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Add slices of `values` at positions (1-D) along an axis; repeated positions add up."""


_index_add.vjp(
    x=lambda k, g: g, values=lambda k, g, indices, axis: k.take(g, indices, axis=axis), jvp="linear"
)


@op(shape=same, fixed=("indices",), kernel="index_write", name="index_write", grad_name="IndexPutBackward0", float8="moved")
def _index_write(k: Any, x: Any, indices: Any, values: Any, /, *, axis: int) -> Any:
    """Replace slices at positions (1-D) along an axis; of a repeated position the last write stays."""


_index_write.vjp(
    x=lambda k, g, indices, values_shape, axis: k.index_write(g, indices, k.new_full(g, values_shape, 0), axis=axis),
    values=lambda k, g, indices, axis: k.take(g, indices, axis=axis),
    jvp="linear",
)


def check_range(name: str, indices: Any, n: int, dim: int) -> Any:
    """Refuse indices outside [-n, n) and wrap negative ones; reads the indices once."""
    if not prod(indices.shape):
        return indices
    if not n:
        raise IndexError(f"{name}: index is out of bounds for dimension with size 0; got {tuple(indices.shape)} for dimension {dim}.")
    wrong = lambda bad: IndexError(f"{name}: index {bad} is out of bounds for dimension {dim} with size {n}")
    ends = refuse_outside(indices, -n, n - 1, wrong)
    # Where they were not read, any may be negative.
    return choose(indices < 0, indices + n, indices) if ends is None or ends[0] < 0 else indices


def flat_positions(indices: list[Any], sizes: Any, dims: Any, common: Size, name: str = "index") -> Any:
    """Return the positions over dims of those sizes together that int64 tensors, broadcast to `common`, tell for each.

    They come as a vector; those outside are refused, negative ones are wrapped.
    """
    sole = indices[0]
    device = sole._device
    read = device.backend.flat_index
    if read is not None and all([k._device is device for k in indices]):
        data = read(*[k._buffer for k in indices], sizes=sizes)
        if data is not None:  # all are in range
            return sole if data is sole._buffer else make(data, device, int64, remembered((prod(common),)))
    flat: Any = None
    for k, n, d in zip(indices, sizes, dims):
        k = check_range(name, k, n, d)
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
        elif not isinstance(k, TensorBase) and (is_sequence(k) or hasattr(k, "__array__")):
            k = _constant(x, k, None)
        elif not isinstance(k, TensorBase):
            if not hasattr(k, "__index__"):
                raise (TypeError if isinstance(k, str) else IndexError)(
                    "only integers, slices (`:`), ellipsis (`...`), None and integer or bool tensors are valid indices; "
                    f"got {type(k).__name__}."
                )
            out.append(operator.index(k))
            used += 1
            continue
        if k.dtype is bool_ or k.dtype is uint8:
            if k.dtype is uint8:
                warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
            out.append(k)
            used += len(k.shape)
        elif k.dtype in (int64, int32) or (k.dtype.kind in "iu" and not k.shape):  # a number may come in any integer dtype
            out.append(k)
            used += 1
        else:
            raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors; got {k.dtype}. Use .long().")
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
    counted = made.dtype.kind == "i" or (made.dtype.kind == "u" and made.dtype is not uint8)  # a uint8 is a mask
    return cast(made, int64) if counted or (made.dtype.kind == "f" and not prod(made.shape)) else made


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
    if x.dtype.stored is not x.dtype:
        x = cast(x, bool_)  # -0 is another code than 0
    data = k.flat_nonzero(x._buffer)
    return make(data, x._device, int64, Size(k.shape_of(data)))
