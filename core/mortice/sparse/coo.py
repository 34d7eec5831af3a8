"""Sparse tensors in coordinate form: what their buffer is made of, and how values get into one and out again.

A sparse tensor lives on a device that stands above that of its values, as tensors inside vmap do (see `levels`). So the
call path, the graph and in-place writes work as they do anywhere, and dense tensors pay nothing. What operations mean
here is in `rules`; all is computed by operations on the dense tensors inside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import mortice
from mortice.layout import sparse_coo
from mortice.levels import Level, record_crossing
from mortice.modes import no_grad
from mortice.mutation import write_out
from mortice.printing import body, join_suffixes, suffixes
from mortice.shape import Size
from mortice.tensor import TensorBase, make


class Sparse:
    """The buffer of a sparse tensor.

    `indices` (int64, of shape (sparse dims, n)) and `values` (n, and the dense dims) are dense tensors outside the graph.
    Where places repeat, their values add up; `coalesced` says that none does and that they are in order.
    """

    def __init__(self, indices: Any, values: Any, shape: Any, coalesced: bool = False) -> None:
        self.indices, self.values, self.shape, self.coalesced = indices, values, Size(shape), coalesced

    @property
    def sparse_dim(self) -> int:
        """How many dims the indices name."""
        return tuple(self.indices.shape)[0]

    @cached_property
    def numbers(self) -> Any:
        """The number of each place, counted row by row."""
        number = mortice.zeros_like(self.values, dtype=mortice.int64) if not self.sparse_dim else self.indices[0]
        for d in range(1, self.sparse_dim):
            number = number * self.shape[d] + self.indices[d]
        return number

    @cached_property
    def merged(self) -> tuple[Any, Any, Any]:
        """The places without repetition, and in order; where among them each one is; how often each of them came."""
        numbers, where, counts = mortice.unique(self.numbers, return_inverse=True, return_counts=True)
        sizes, rows = tuple(self.shape)[: self.sparse_dim], []
        for size in reversed(sizes[1:]):
            rows.append(numbers % size)
            numbers = numbers // size
        return mortice.stack([numbers, *reversed(rows)]) if sizes else self.indices[:, :1], where, counts

    def with_values(self, values: Any) -> Sparse:
        """Return other values at the same places."""
        made = Sparse(self.indices, values, self.shape, self.coalesced)
        made.__dict__.update({name: self.__dict__[name] for name in ("numbers", "merged") if name in self.__dict__})
        return made


class SparseLevel(Level):
    """What stands between sparse tensors and the devices of their values, for good."""

    name, layout, transforms = "sparse", sparse_coo, False
    mixed: dict[str, Callable[..., Any]]  # from `rules`: what ops mean beside dense tensors

    def above(self, inner: Any) -> Any:
        found = super().above(inner)
        found.table = found.backend.table  # whoever watches kernels, and not for good, sees those of the values
        return found

    def constant(self, data: Any) -> Any:
        raise RuntimeError(f"a sparse tensor: no dense one joins it by index or assignment (copy_() and its kin). {HINT}")

    def lowered(self, t: Any) -> Any:
        raise RuntimeError(f"copy_() between dense and sparse Tensors is not implemented; got {told(t._data)}. {HINT}")

    def moved(self, data: Sparse, source: Any, target: Any, move: Callable[..., Any]) -> Sparse:
        def part(x: Any) -> Any:
            return make(move(x._data, source.inner, target.inner), target.inner, x.dtype, x.shape)

        return Sparse(part(data.indices), part(data.values), data.shape, data.coalesced)

    def meet(self, op: Any, args: Any, attrs: dict[str, Any], out: Any) -> Any:
        given = [a for a in args if isinstance(a, TensorBase)]
        if op.name not in self.mixed or any([a._device.level not in (None, self) for a in given]):
            raise refusal(op.name, *[a._data for a in given])
        made = self.mixed[op.name](*args, **attrs)
        return made if out is None else write_out(op.name, out, made)

    def text(self, t: Any) -> str:
        def part(name: str, x: Any) -> str:
            size = "" if x.numel() else f", size={tuple(x.shape)}"
            return f"{name}=tensor({body(x.detach(), 15 + len(name))}{size})"

        rest, at = suffixes(t), 0 if t.is_cpu else 1
        rest[at:at] = [f"size={tuple(t.shape)}", f"nnz={_nnz(t)}"]
        rest.insert(len(rest) - bool(t._rg), f"layout={self.layout}")
        text = f"tensor({part('indices', t._indices())},\n       {part('values', t._values())}"
        return join_suffixes(text, rest, 7, below=True)

    def pickled(self, t: Any) -> tuple[Any, ...]:
        data = t._data
        return _unpickle, (type(t), data.indices, data.values, tuple(t.shape), data.coalesced, t._rg), t.__dict__ or None

    def no_memory(self, name: str) -> Exception:
        if name == "numpy":
            return TypeError(f"can't convert Sparse layout tensor to numpy. {HINT}")
        return RuntimeError(f"{name}: a sparse tensor has no memory of its own. {HINT}")


LEVEL = SparseLevel()
HINT = "Use .to_dense() first."


def told(data: Any) -> str:
    """Say what kind of tensor a buffer is of."""
    return f"layout {sparse_coo} of shape {tuple(data.shape)}" if type(data) is Sparse else "a dense tensor"


def refusal(name: str, *given: Any) -> NotImplementedError:
    """Return the error for an operation that has no meaning for sparse tensors."""
    got = f"; got {' and '.join([told(a) for a in given if hasattr(a, 'shape')])}" if given else ""
    return NotImplementedError(f"{name}: not implemented for sparse tensors{got}. {HINT}")


def wrap(data: Sparse) -> Any:
    """Return a sparse tensor outside any graph."""
    return make(data, LEVEL.above(data.values._device), data.values.dtype, data.shape)


def _unpickle(cls: Any, indices: Any, values: Any, size: Any, coalesced: bool, requires_grad: bool) -> Any:
    made = wrap(Sparse(indices, values, size, coalesced)).requires_grad_(requires_grad)
    made.__class__ = cls
    return made


# ---- in and out, with gradients both ways: that of a sparse tensor is one ----


def place(like: Sparse, values: Any) -> Any:
    """Return the sparse tensor of values in the graph, at the places of `like`."""
    data = like.with_values(values.detach())
    return record_crossing(wrap(data), (values,), lambda g: (take(g, data),), "SparseCooTensorWithDimsAndTensorsBackward0")


def values_of(t: Any) -> Any:
    """Return the values of a sparse tensor in the graph, over the same memory."""
    data = t._data

    def back(g: Any) -> tuple[Any]:
        if data.coalesced:
            return (place(data, g),)
        indices, where, counts = data.merged  # values of one place have one gradient
        total = mortice.zeros((len(counts), *g.shape[1:]), dtype=g.dtype, device=g.device).index_add(0, where, g)
        each = total / counts.reshape(-1, *[1] * (g.ndim - 1)).to(g.dtype)
        return (place(Sparse(indices, each, data.shape, True), each),)

    return record_crossing(data.values.detach(), (t,), back, "ValuesBackward0")


def take(t: Any, like: Sparse) -> Any:
    """Return what a sparse or dense tensor has at the places of `like`."""
    if type(t._data) is not Sparse:
        return t[tuple(like.indices)] if like.sparse_dim else t.unsqueeze(0)
    if t._data.indices is like.indices and like.coalesced:
        return values_of(t)
    t = coalesce(t)
    found, values = t._data.numbers, values_of(t)
    if not len(found):
        return mortice.zeros((len(like.numbers), *values.shape[1:]), dtype=values.dtype, device=values.device)
    at = mortice.searchsorted(found, like.numbers).clamp(max=len(found) - 1)
    hit = (found[at] == like.numbers).reshape(-1, *[1] * (values.ndim - 1))
    return mortice.where(hit, values.index_select(0, at), mortice.zeros((), dtype=values.dtype, device=values.device))


def coalesce(self: Any) -> Any:
    """Return the same tensor with every place once, and in order; the values of one place are added up."""
    data = buffer_of("coalesce", self)
    if data.coalesced:
        return self
    values, (indices, where, _) = values_of(self), data.merged
    d = values.dtype
    total = mortice.zeros((indices.shape[1], *values.shape[1:]), dtype=mortice.int64 if d is mortice.bool else d, device=values.device)
    total = total.index_add(0, where, values.to(total.dtype)).to(d)
    return place(Sparse(indices, total.detach(), data.shape, True), total)


# ---- methods ----


def buffer_of(name: str, t: Any) -> Sparse:
    """Return the buffer of a sparse tensor; refuse others."""
    if type(t._data) is not Sparse:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {str(t.layout).rpartition('.')[2].title()}")
    return t._data  # type: ignore[no-any-return]


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
    """Return the values of a coalesced tensor; gradients flow back through them."""
    _merged("values", self)
    return values_of(self)


def _indices(self: Any) -> Any:
    return buffer_of("_indices", self).indices.detach()


def _values(self: Any) -> Any:
    return buffer_of("_values", self).values.detach()


def _nnz(self: Any) -> int:
    return tuple(buffer_of("_nnz", self).indices.shape)[1]


def _coalesced_(self: Any, coalesced: bool) -> Any:
    buffer_of("_coalesced_", self).coalesced = bool(coalesced)
    return self


def sparse_dim(self: Any) -> int:
    """Return how many dims the indices name, 0 for a dense tensor."""
    return self._data.sparse_dim if self.is_sparse else 0


def dense_dim(self: Any) -> int:
    """Return how many dims each value has."""
    return self.ndim - sparse_dim(self)


def sparse_mask(self: Any, mask: Any) -> Any:
    """Return what the tensor has at the places of a sparse one."""
    like = buffer_of("sparse_mask", mask)
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask: operands have incompatible sizes; self has size {list(self.shape)} but mask has size {list(mask.shape)}."
        )
    return place(like, take(self, like))


def to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None) -> Any:
    """Return the elements other than 0 as a sparse tensor; with `sparse_dim`, whole parts of the dims after that many."""
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse: expected the layout {sparse_coo}; got {layout}.")
    if self.is_sparse:
        if sparse_dim not in (None, self.sparse_dim()):
            raise RuntimeError(f"to_sparse: expected sparse_dim to be {self.sparse_dim()}, as it is; got {sparse_dim}. {HINT}")
        return self
    n = self.ndim if sparse_dim is None else sparse_dim
    if not (0 < n <= self.ndim or n == self.ndim):
        raise RuntimeError(f"to_sparse: sparse_dim must be in (0, {self.ndim}]; got {n}.")
    with no_grad():
        seen = self.detach() != 0
        places = (seen if n == self.ndim else seen.flatten(n).any(-1)).nonzero().t().contiguous()
        like = Sparse(places, self.detach()[tuple(places)] if n else self.detach().reshape(1)[: places.shape[1]], self.shape, True)
    return place(like, take(self, like)) if n else place(like, self.reshape(1)[: places.shape[1]])


to_sparse_coo = to_sparse


def to_dense(self: Any, dtype: Any = None) -> Any:
    """Return all elements as a dense tensor."""
    data, v = self._data, values_of(self)
    if v.dtype is mortice.bool:
        return to_dense(self.to(mortice.uint8)).to(mortice.bool)
    n = data.sparse_dim
    flat = mortice.zeros((Size(tuple(self.shape)[:n]).numel(), *v.shape[1:]), dtype=v.dtype, device=v.device)
    made = flat.index_add(0, data.numbers, v).reshape(self.shape)
    return made if dtype is None else made.to(dtype)
