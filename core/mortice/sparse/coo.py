"""Sparse tensors in coordinate form: what their buffer is made of, and how values get into one and out again.

Compressed tensors (see `compressed`) have a buffer that can tell the coordinates, so that what is here serves them too.

A sparse tensor lives on a device that stands above that of its values, as tensors inside vmap do (see `levels`). So the
call path, the graph and in-place writes work as they do anywhere, and dense tensors pay nothing. What operations mean
here is in `rules`; all is computed by operations on the dense tensors inside.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

import mortice
from mortice.call import no_tensor
from mortice.dtype import no_float8
from mortice.layout import sparse_coo, sparse_csr, strided
from mortice.levels import Level, record_crossing
from mortice.modes import no_grad
from mortice.mutation import write_out
from mortice.printing import body, join_suffixes, suffixes
from mortice.shape import Size, check_dims, prod
from mortice.tensor import TensorBase, make


class Sparse:
    """The buffer of a sparse tensor.

    `indices` (int64, of shape (sparse dims, n)) and `values` (n, and the dense dims) are dense tensors outside the graph.
    Where places repeat, their values add up; `coalesced` says that none does and that they are in order.
    """

    batch = 0  # how many dims stand before the rows and columns of a compressed tensor
    layout, node = sparse_coo, "SparseCooTensorWithDimsAndTensorsBackward0"

    def __init__(self, indices: Any, values: Any, shape: Any, coalesced: bool = False) -> None:
        self.indices, self.values, self.shape = indices, values, Size(shape)
        self.coalesced = coalesced or not self.nnz

    @property
    def distinct(self) -> bool:
        """Whether no place is known to come twice, in whatever order they are."""
        return self.coalesced

    @property
    def stored_shape(self) -> Any:
        """The shape in which users see the values."""
        return self.values.shape

    @property
    def parts(self) -> dict[str, Any]:
        """The tensors inside, as they are printed."""
        return {"indices": self.indices.detach(), "values": self.values.detach()}

    def pieces(self) -> tuple[Any, ...]:
        """Return what the buffer is made from."""
        return self.indices, self.values, self.shape, self.coalesced

    @property
    def sparse_dim(self) -> int:
        """How many dims the indices name."""
        return tuple(self.indices.shape)[0]

    @property
    def nnz(self) -> int:
        """How many values there are."""
        return tuple(self.indices.shape)[1]

    @cached_property
    def numbers(self) -> Any:
        """The number of each place, counted row by row."""
        number = self.indices[0] if self.sparse_dim else self.indices.new_zeros(self.indices.shape[1])
        for d in range(1, self.sparse_dim):
            number = number * self.shape[d] + self.indices[d]
        return number

    @cached_property
    def merged(self) -> tuple[Any, Any, Any]:
        """The places without repetition, and in order; where among them each one is; how often each of them came."""
        numbers, where, counts = mortice.unique(self.numbers, return_inverse=True, return_counts=True)
        sizes = tuple(self.shape)[: self.sparse_dim]
        return places(numbers, sizes) if sizes else self.indices[:, :1], where, counts

    def emptied(self) -> Sparse:
        """Return it without any value."""
        return Sparse(self.indices[:, :0], self.values[:0], self.shape, True)

    def with_values(self, values: Any) -> Sparse:
        """Return other values at the same places."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, values=values)
        return made


def places(numbers: Any, sizes: Any) -> Any:
    """Return the places that numbers, counted row by row, have among so many."""
    rows = []
    for size in reversed(tuple(sizes)[1:]):
        rows.append(numbers % max(size, 1))
        numbers = numbers // max(size, 1)
    return mortice.stack([numbers, *reversed(rows)])


class SparseLevel(Level):
    """What stands between sparse tensors and the devices of their values, for good."""

    name, transforms = "sparse", False
    mixed: dict[str, Callable[..., Any]]  # from `rules`: what ops mean beside dense tensors
    merging: frozenset[str]  # also from there: the in-place operations that would have to merge places

    def layout(self, data: Any) -> Any:
        return data.layout

    def above(self, inner: Any) -> Any:
        found = super().above(inner)
        found.table = found.backend.table  # whoever watches kernels, and not for good, sees those of the values
        return found

    def constant(self, data: Any) -> Any:
        raise RuntimeError(f"a sparse tensor: no dense one joins it by index or assignment (copy_() and its kin). {HINT}")

    def lowered(self, t: Any) -> Any:
        return t.to_dense()  # as dense.mul_(sparse) takes it; copy_ refuses

    def detach(self, t: Any, storage: Any = None) -> Any:
        made = make(t._buffer, t._device, t.dtype, t.shape)  # the parts are shared, which part it has is its own affair
        made.own_storage()
        return made

    def check_writable(self, name: str, t: Any) -> None:
        if name in self.merging and not t._buffer.distinct:
            raise RuntimeError(f"{name} requires coalesced input. Call .coalesce() first.")

    def moved(self, data: Sparse, source: Any, target: Any, move: Callable[..., Any]) -> Sparse:
        def part(x: Any) -> Any:
            return make(move(x._buffer, source.inner, target.inner), target.inner, x.dtype, x.shape) if isinstance(x, TensorBase) else x

        kept = data.emptied() if target.type == "meta" else data
        return type(data)(*map(part, kept.pieces()))

    def meet(self, op: Any, args: Any, attrs: dict[str, Any], out: Any) -> Any:
        given = [a for a in args if isinstance(a, TensorBase)]
        if op.name not in self.mixed or any([a._device.level not in (None, self) for a in given]):
            raise refusal(op.name, *[a._buffer for a in given])
        made = self.mixed[op.name](*args, **attrs)
        return made if out is None else write_out(op.name, out, made)

    def text(self, t: Any) -> str:
        def part(name: str, x: Any) -> str:
            size = "" if x.numel() and not x.is_meta else f", size={tuple(x.shape)}"
            return f"{name}=tensor({body(x.detach(), 15 + len(name))}{size})"

        unsaid = (f"dtype={mortice.int64}", f"dtype={mortice.bool}")
        rest, at = [s for s in suffixes(t) if s[:5] != "size=" and s not in unsaid], 0 if t.is_cpu else 1
        rest[at:at] = [f"size={tuple(t.shape)}", *([] if t.is_meta else [f"nnz={_nnz(t)}"])]
        rest.insert(len(rest) - bool(t._rg), f"layout={t.layout}")
        text = "tensor(" + ",\n       ".join([part(name, x) for name, x in t._buffer.parts.items()])
        return join_suffixes(text, rest, 7, force_newline=t.is_sparse)

    def pickled(self, t: Any) -> tuple[Any, ...]:
        return _unpickle, (type(t), *t._buffer.pieces(), t._rg), t.__dict__ or None

    def no_memory(self, name: str) -> Exception:
        if name == "numpy":
            return TypeError(f"can't convert Sparse layout tensor to numpy. {HINT}")
        return NotImplementedError(f"{name}: a sparse tensor has no memory of its own. {HINT}")


LEVEL = SparseLevel()
HINT = "Use .to_dense() first."


def told(data: Any) -> str:
    """Say what kind of tensor a buffer is of."""
    return f"layout {data.layout} of shape {tuple(data.shape)}" if isinstance(data, Sparse) else "a dense tensor"


def refusal(name: str, *given: Any) -> NotImplementedError:
    """Return the error for an operation that has no meaning for sparse tensors."""
    got = f"; got {' and '.join([told(a) for a in given if hasattr(a, 'shape')])}" if given else ""
    return NotImplementedError(f"{name}: not implemented for sparse tensors{got}. {HINT}")


def wrap(data: Sparse) -> Any:
    """Return a sparse tensor outside any graph."""
    return make(data, LEVEL.above(data.values._device), data.values.dtype, data.shape)


def _unpickle(cls: Any, *pieces: Any) -> Any:
    kind = Sparse if len(pieces) == 5 else import_module("mortice.sparse.compressed").Compressed
    made = wrap(kind(*pieces[:-1])).requires_grad_(pieces[-1])
    made.__class__ = cls
    return made


# ---- in and out, with gradients both ways: that of a sparse tensor is one ----


def place(like: Sparse, values: Any) -> Any:
    """Return the sparse tensor of values in the graph, at the places of `like`."""
    data = like.with_values(values.detach())
    return record_crossing(wrap(data), (values,), lambda g: (take(g, data),), data.node)


def values_of(t: Any) -> Any:
    """Return the values of a sparse tensor in the graph, over the same memory."""
    data = t._buffer

    def back(g: Any) -> tuple[Any]:
        if data.distinct:
            return (place(data, g),)
        indices, where, counts = data.merged  # values of one place have one gradient
        total = add_up(g, where, len(counts))
        each = total / counts.reshape(-1, *[1] * (g.ndim - 1)).to(g.dtype)
        return (place(Sparse(indices, each, data.shape, True), each),)

    return record_crossing(data.values.detach(), (t,), back, "ValuesBackward0")


def take(t: Any, like: Sparse) -> Any:
    """Return what a sparse or dense tensor has at the places of `like`."""
    if not isinstance(t._buffer, Sparse):
        return t[tuple(like.indices)] if like.sparse_dim else t.unsqueeze(0)
    if t._buffer.indices is like.indices and like.distinct:
        return values_of(t)
    t = merge(t)
    found, values = t._buffer.numbers, values_of(t)
    if not len(found):
        return mortice.zeros((len(like.numbers), *values.shape[1:]), dtype=values.dtype, device=values.device)
    at = mortice.searchsorted(found, like.numbers).clamp(max=len(found) - 1)
    hit = (found[at] == like.numbers).reshape(-1, *[1] * (values.ndim - 1))
    return mortice.where(hit, values.index_select(0, at), mortice.zeros((), dtype=values.dtype, device=values.device))


def read(t: Any, key: Any) -> Any:
    """Return what lies at one place: an index with a whole number for each sparse dim leaves none of them."""
    data, n = t._buffer, t._buffer.sparse_dim
    dims = [d for d, i in enumerate(key) if i is not None][:n]
    if len(dims) < n or not all([isinstance(key[d], int) for d in dims]):
        raise refusal("getitem with this index", data)
    at = mortice.tensor([[key[d] % size] for d, size in zip(dims, data.shape)], device=data.values.device)
    here = (data.indices == at).all(0).nonzero().flatten()
    return values_of(t).index_select(0, here).sum(0).to(t.dtype)[tuple([i for d, i in enumerate(key) if d not in dims])]


def all_values(t: Any, dim: Any, keepdim: bool) -> Any:
    """Return the values of all places, for a reduction over them that a sparse operand has refused; others stay refused."""
    if t.layout is not sparse_coo or len(check_dims("norm", dim, t.ndim)) < t.ndim or keepdim:
        raise
    return values_of(merge(t))


def add_up(values: Any, where: Any, many: int) -> Any:
    """Add up what comes to each of so many positions."""
    d = values.dtype
    sums = mortice.zeros(many, *values.shape[1:], dtype=mortice.int64 if d is mortice.bool else d, device=values.device)
    return sums.index_add(0, where, values.to(sums.dtype)).to(d)


def coalesce(self: Any) -> Any:
    """Return the same tensor with every place once, and in order; the values of one place are added up."""
    buffer_of("coalesce", self)
    return merge(self)


def merge(self: Any) -> Any:
    """Coalesce a sparse tensor of any layout, which makes it one of coordinates where it was not in order."""
    data = self._buffer
    if data.coalesced:
        return self
    indices, where, _ = data.merged
    total = add_up(values_of(self), where, indices.shape[1])
    return place(Sparse(indices, total.detach(), data.shape, True), total)


# ---- methods ----


def buffer_of(name: str, t: Any) -> Sparse:
    """Return the buffer of a sparse tensor; refuse others."""
    if not isinstance(t, TensorBase):
        raise no_tensor(name, "input", t)
    if type(t._buffer) is not Sparse:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {layout_name(t.layout)}")
    return t._buffer  # type: ignore[no-any-return]


def layout_name(layout: Any) -> str:
    """Return what PyTorch's errors call a layout."""
    return str(layout).rpartition(".")[2].title().replace("_", "").removesuffix("Coo")


def _merged(name: str, t: Any) -> Sparse:
    data = buffer_of(name, t)
    if not data.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
    return data


def is_coalesced(self: Any) -> bool:
    """Tell whether every place is known to come once, in order."""
    return buffer_of("is_coalesced", self).coalesced


def indices(self: Any) -> Any:
    """Return the places of a coalesced tensor: one row for each sparse dim."""
    return _merged("indices", self).indices.detach()


def values(self: Any) -> Any:
    """Return the values of a coalesced or compressed tensor; gradients flow back through them."""
    data = self._buffer
    if not isinstance(data, Sparse):
        raise RuntimeError(f"values expected sparse tensor layout but got {layout_name(self.layout)}")
    if not data.distinct:
        _merged("values", self)
    found = values_of(self)
    return found if found.shape == data.stored_shape else found.reshape(data.stored_shape)


def _indices(self: Any) -> Any:
    return buffer_of("_indices", self).indices.detach()


def _values(self: Any) -> Any:
    return buffer_of("_values", self).values.detach()


def _nnz(self: Any) -> int:
    return (self._buffer if isinstance(self._buffer, Sparse) else buffer_of("_nnz", self)).nnz


def _coalesced_(self: Any, coalesced: bool) -> Any:
    buffer_of("_coalesced_", self).coalesced = bool(coalesced)
    return self


def sparse_dim(self: Any) -> int:
    """Return how many dims the indices name, 0 for a dense tensor."""
    data = self._buffer
    return data.sparse_dim - data.batch if isinstance(data, Sparse) else 0


def dense_dim(self: Any) -> int:
    """Return how many dims each value has."""
    data = self._buffer
    return data.values.ndim - 1 if isinstance(data, Sparse) else self.ndim


def sparse_mask(self: Any, mask: Any) -> Any:
    """Return what the tensor has at the places of a sparse one."""
    like = mask._buffer if isinstance(mask._buffer, Sparse) else buffer_of("sparse_mask", mask)
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask: operands have incompatible sizes; self has size {list(self.shape)} but mask has size {list(mask.shape)}."
        )
    data = self._buffer
    if isinstance(data, Sparse) and data.sparse_dim != like.sparse_dim:
        if data.nnz:
            raise RuntimeError(
                "sparse_mask: the number of sparse dimensions in `self` should match that of the `mask`. "
                f"Got {data.sparse_dim} != {like.sparse_dim}."
            )
        self = self.to_dense()
    return place(like, take(self, like))


def to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """Return the elements other than 0 as a sparse tensor; with `sparse_dim`, whole parts of the dims after that many."""
    if self.dtype.stored is not self.dtype:
        raise no_float8("to_sparse", self.dtype)
    if layout is strided:
        return self.to_dense()
    if layout not in (None, sparse_coo):
        if sparse_dim is not None:
            raise RuntimeError(f"to_sparse: expected sparse_dim or a layout other than {sparse_coo}; got both.")
        return import_module("mortice.sparse.compressed").to_layout(self, layout, blocksize, dense_dim)
    if blocksize is not None:
        raise RuntimeError(f"to_sparse: conversion to {sparse_coo} with blocksize argument given is not supported; got {blocksize}.")
    data = self._buffer
    if isinstance(data, Sparse):
        if sparse_dim not in (None, self.sparse_dim()):
            raise RuntimeError(f"to_sparse: expected sparse_dim to be {self.sparse_dim()}, as it is; got {sparse_dim}. {HINT}")
        return self if type(data) is Sparse else to_coordinates(self)
    if dense_dim is not None:
        sparse_dim = self.ndim - dense_dim
    n = self.ndim if sparse_dim is None else sparse_dim
    if not (0 < n <= self.ndim or n == self.ndim):
        raise RuntimeError(f"to_sparse: sparse_dim must be in (0, {self.ndim}]; got {n}.")
    with no_grad():
        seen = self.detach() != 0
        places = (seen if n == self.ndim else seen.flatten(n).any(-1)).nonzero().t().contiguous()
        like = Sparse(places, self.detach()[tuple(places)] if n else self.detach().reshape(1)[: places.shape[1]], self.shape, True)
    return place(like, take(self, like)) if n else place(like, self.reshape(1)[: places.shape[1]])


def to_sparse_coo(self: Any) -> Any:
    """Return it as a sparse tensor in coordinate form."""
    return to_sparse(self)


def to_coordinates(t: Any) -> Any:
    """Return a compressed tensor in coordinate form, in its own order."""
    data = t._buffer
    return place(Sparse(data.indices, data.values, data.shape, data.layout is sparse_csr and data.coalesced), values_of(t))


def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Change the shape in place, and drop all values."""
    return _resized("sparse_resize_and_clear_", self, size, sparse_dim, dense_dim, True)


def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Change the shape in place: where there are values it may grow only, and dims remain."""
    return _resized("sparse_resize_", self, size, sparse_dim, dense_dim, False)


def resize_as_sparse_(self: Any, the_template: Any) -> Any:
    """Change the shape in place to that of another sparse tensor."""
    like = buffer_of("resize_as_sparse_", the_template)
    return sparse_resize_(self, like.shape, like.sparse_dim, the_template.dense_dim())


def _resized(name: str, t: Any, size: Any, sparse_dim: int, dense_dim: int, clear: bool) -> Any:
    data, shape = buffer_of(name, t), Size([int(s) for s in size])
    if t._rg:
        raise RuntimeError(f"{name}: cannot resize variables that require grad")
    if sparse_dim + dense_dim != len(shape):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(shape)}"
        )
    indices, values = data.indices, data.values
    if clear or not data.nnz:
        indices, values = indices.new_zeros((sparse_dim, 0)), values.new_zeros((0, *shape[sparse_dim:]))
    else:
        n = data.sparse_dim
        for kind, old, new in (("sparse", data.shape[:n], shape[:sparse_dim]), ("dense", data.shape[n:], shape[sparse_dim:])):
            problem = (
                f"changing the number of {kind} dimensions (from {len(old)} to {len(new)})" if len(old) != len(new)
                else f"shrinking the size of {kind} dimensions (from {list(old)} to {list(new)})"
                if any([a > b for a, b in zip(old, new)]) else ""
            )  # fmt: skip
            if problem:
                raise RuntimeError(
                    f"{name}: {problem} on a non-empty sparse tensor is not supported. Make an empty one, sparse_coo_tensor(size), "
                    "or a new one of these indices and values."
                )
        size = (data.nnz, *shape[n:])  # the memory grows, as that of a dense tensor does: numbers follow one another as they did
        values = mortice.nn.functional.pad(values.reshape(-1), (0, prod(size) - values.numel())).reshape(size)
    t._buffer, t._shape = Sparse(indices, values, shape, data.coalesced or not tuple(indices.shape)[1]), shape
    return t


def narrow_copy(self: Any, dim: int, start: Any, length: int) -> Any:
    """Take `length` positions from `start` along a dim: neither is counted from behind, as in PyTorch."""
    data, values, n = self._buffer, values_of(self), self._buffer.sparse_dim
    if not 0 <= dim < self.ndim:
        raise RuntimeError(f"narrow_copy: Dimension {dim} out of range. Expecting 0 <= dim < {self.ndim}.")
    size, start, length = self.shape[dim], operator.index(start), operator.index(length)
    if length < 0:
        raise RuntimeError(f"narrow_copy: length must be non-negative; got {length}.")
    if start < 0 or start + length > size:
        raise RuntimeError(
            "narrow_copy: Invalid range to narrow. range(start, start+length) must be a subset of "
            f"range(0, {size}); got start={start} and length={length}."
        )
    shape, indices = [length if d == dim else s for d, s in enumerate(self.shape)], data.indices
    if dim >= n:
        values = values.narrow(dim - n + 1, start, length).clone()
    else:
        here = ((indices[dim] >= start) & (indices[dim] < start + length)).nonzero().flatten()
        rows = [row - start if d == dim else row for d, row in enumerate(indices.index_select(1, here))]
        indices, values = mortice.stack(rows), values.index_select(0, here)
    return place(Sparse(indices, values.detach(), shape, data.coalesced), values)


def hspmm(mat1: Any, mat2: Any) -> Any:
    """Multiply a sparse matrix with a dense one; the rows of the product that have anything are the values of a sparse tensor."""
    rows = buffer_of("hspmm", mat1).indices[0].unique()
    product = mortice.mm(mat1, mat2)
    made = Sparse(rows.unsqueeze(0), mat2, (mat1.shape[0], mat2.shape[-1]), True)
    return place(made, product.index_select(0, rows))


def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Compute beta * input + alpha * (mat1 @ mat2), where input and mat1 are sparse, and so is the result."""
    data = hspmm(mat1, mat2)._buffer
    rows, columns = data.indices[0], mortice.arange(data.shape[1], device=data.values.device)
    places = mortice.stack([rows.repeat_interleave(len(columns)), columns.repeat(len(rows))])
    product = wrap(Sparse(places, data.values.reshape(-1) * alpha, data.shape, True))
    return product if input is None else input * beta + product


def smm(input: Any, mat: Any) -> Any:
    """Multiply a sparse matrix with a dense one; the result is sparse."""
    return sspaddmm(None, input, mat)


def to_dense(self: Any, dtype: Any = None) -> Any:
    """Return all elements as a dense tensor."""
    data, v = self._buffer, values_of(self)
    if v.dtype is mortice.bool:
        return to_dense(self.to(mortice.uint8)).to(mortice.bool)
    n = data.sparse_dim
    flat = mortice.zeros((Size(tuple(self.shape)[:n]).numel(), *v.shape[1:]), dtype=v.dtype, device=v.device)
    made = flat.index_add(0, data.numbers, v).reshape(self.shape)
    return made if dtype is None else made.to(dtype)
