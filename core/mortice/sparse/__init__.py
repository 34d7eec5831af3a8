"""mortice.sparse: sparse tensors in coordinate form (COO) and compressed ones (CSR, CSC, BSR, BSC), with PyTorch's names."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import graph
from mortice.backward import arrive
from mortice.call import no_tensor
from mortice.dtype import CLASS_NAMES
from mortice.errors import ShapeError
from mortice.graph import Node, next_seq
from mortice.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from mortice.methods.typed import TypedClass
from mortice.modes import modes
from mortice.notice import warn
from mortice.shape import check_dim, check_dims, check_sizes, prod
from mortice.sparse import rules
from mortice.sparse.compressed import (
    Compressed, check_sparse_tensor_invariants, compress, sparse_bsc_tensor, sparse_bsr_tensor,
    sparse_compressed_tensor, sparse_csc_tensor, sparse_csr_tensor,
)
from mortice.sparse.coo import (
    LEVEL, Sparse, add_up, buffer_of, coalesce, hspmm, layout_name, place, resize_as_sparse_, smm, sspaddmm, values_of,
    wrap,
)
from mortice.tensor import TensorBase, make

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum",
]  # fmt: skip


def nothing(
    name: str, size: Any, dtype: Any, device: Any, requires_grad: bool, dense: int = 0, layout: Any = sparse_coo
) -> Any:  # fmt: skip
    """Make a sparse tensor without values, of so many dense dims: what `zeros` and `empty` are in this layout."""
    shape = check_sizes(name, (size,))
    like = mortice.zeros(0, dtype=dtype, device=device)
    if layout is not sparse_coo and (len(shape) < 2 or layout in (sparse_bsr, sparse_bsc)):
        raise RuntimeError(
            f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(shape)} of "
            f"{layout_name(layout)}"
        )
    if layout is sparse_coo:
        data = rules.nothing(shape, like.dtype, like._device, dense)
    else:
        batch = shape[:-2]
        starts = mortice.zeros(*batch, shape[-2 if layout is sparse_csr else -1] + 1, dtype=mortice.int64, device=like.device)
        data = Compressed(layout, starts, starts.new_zeros(*batch, 0), like, shape)
    return wrap(data).requires_grad_(requires_grad)


def like(t: Any, value: Any, dtype: Any, device: Any, layout: Any) -> Any:
    """Make what `zeros_like` makes: nothing at all in coordinate form, numbers at the same places in a compressed layout."""
    layout, data = t.layout if layout is None else layout, t._buffer
    if layout is strided:
        return mortice.full(t.shape, value, dtype=dtype, device=device or t.device)
    if t.layout is strided or t.layout is layout is sparse_coo:
        if value != 0:
            raise NotImplementedError(f"full_like: expected 0 for the layout {layout}; got {value}.")
        return nothing("zeros_like", t.shape, dtype, device or t.device, False, dense=t.dense_dim() if t.is_sparse else 0, layout=layout)
    if layout is not t.layout:
        told = f"(self is {layout_name(t.layout)} but you requested {layout_name(layout)})"
        raise RuntimeError(f"empty_like with different sparse layout is not supported {told}")
    made = wrap(data.with_values(mortice.full_like(data.values, value, dtype=dtype)))
    return made if device is None else made.to(device)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """Return a gradcheck for functions whose results are sparse too: it looks at all their elements."""

    def checked(func: Any, inputs: Any, masked: bool = False, **options: Any) -> Any:
        def dense(*args: Any) -> Any:
            made = func(*args)
            return [o.to_dense() if isinstance(o, TensorBase) else o for o in (made if isinstance(made, tuple) else [made])]

        vars(checked)["masked"] = masked
        return gradcheck(dense, inputs, masked=masked, **options)

    vars(checked)["masked"] = False
    return checked


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool | None = False, requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """Make a sparse tensor of the values at some places: `indices` has a row for each sparse dim. Values of one place add up.

    `sparse_coo_tensor(size)` has no values yet. Places are checked against the size, as they are in PyTorch when
    `check_invariants` asks for it.
    """
    if values is None:
        if indices is None and size is None:
            raise TypeError("sparse_coo_tensor: expected indices and values, or a size; got neither.")
        return nothing("sparse_coo_tensor", indices if size is None else size, dtype, device, requires_grad)
    values = mortice.as_tensor(values, dtype=dtype, device=device)
    values = values if values.ndim else values.reshape(1)
    places = mortice.as_tensor(indices, device=values.device).to(mortice.int64).detach()
    name = "sparse_coo_tensor"
    if places.ndim != 2:
        raise RuntimeError(f"{name}: indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    if places.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"{name}: indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: "
            f"{values.shape[0]}"
        )
    n, many = tuple(places.shape)
    if size is None:
        shape = mortice.Size([*((places.amax(1) + 1).tolist() if many else [0] * n), *values.shape[1:]])
    else:
        shape = mortice.Size([int(s) for s in size])
    if len(shape) != n + values.ndim - 1:
        raise RuntimeError(
            f"{name}: number of dimensions must be sparse_dim ({n}) + dense_dim ({values.ndim - 1}), but got {len(shape)}"
        )
    if prod(shape) >= 2**63:
        raise RuntimeError(f"{name}: numel: integer multiplication overflow; got size {list(shape)}.")
    if shape[n:] != values.shape[1:]:
        raise RuntimeError(f"{name}: values has incorrect size, expected {[many, *shape[n:]]}, got {list(values.shape)}")
    if many and n and not places.is_meta:
        low, high = places.amin(1).tolist(), places.amax(1).tolist()
        for d in range(n):
            if low[d] < 0:
                raise RuntimeError(f"{name}: found negative index {low[d]} for dim {d}")
            if high[d] >= shape[d]:
                raise RuntimeError(f"{name}: size is inconsistent with indices: for dim {d}, size is {shape[d]} but found index {high[d]}")
    if requires_grad:
        values = values.detach()
    made = place(Sparse(places, values.detach(), shape, many < 2 if is_coalesced is None else is_coalesced), values)
    return made.requires_grad_() if requires_grad else made


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """Multiply a sparse matrix with a dense one, or with a sparse one, which gives a sparse one."""
    reduce = {"min": "amin", "max": "amax"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"sparse.mm: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduce != "sum":
        if mat1.layout is not sparse_csr or mat2.layout is not strided or mat1.ndim != 2 or mat2.ndim != 2:
            raise NotImplementedError(f"sparse.mm: expected a sparse CSR matrix and a dense one for reduce={reduce!r}.")
        rows, columns = mat1._buffer.indices
        parts = mat2.index_select(0, columns) * values_of(mat1).unsqueeze(1)
        empty = mortice.zeros(mat1.shape[0], mat2.shape[1], dtype=parts.dtype, device=parts.device)
        return empty.index_reduce(0, rows, parts, reduce, include_self=False)
    if mat1.is_sparse and mat2.is_sparse:  # gradients at the places of each, and no others
        mat1, mat2 = place(mat1._buffer, values_of(mat1)), place(mat2._buffer, values_of(mat2))
    return mortice.mm(mat1, mat2)


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """Make a sparse matrix whose diagonals are the rows of `diagonals`, each shifted from the main one by its offset."""
    rows, places = mortice.atleast_2d(diagonals), offsets.reshape(-1)
    problem = (
        f"Output shape must be 2d; got {list(shape)}" if len(shape) != 2
        else f"Diagonals must be vector or matrix; got {diagonals.ndim} dims" if rows.ndim != 2
        else f"Offsets must be scalar or vector; got {offsets.ndim} dims" if offsets.ndim > 1
        else f"Number of diagonals ({len(rows)}) does not match the number of offsets ({len(places)})" if len(rows) != len(places)
        else f"Offset Tensor must have dtype Long but got {offsets.dtype}" if offsets.dtype is not mortice.int64
        else "Offset tensor contains duplicate values" if len(set(places.tolist())) < len(places)
        else f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}"
        if layout not in (None, sparse_coo, sparse_csr, sparse_csc) else ""
    )  # fmt: skip
    if problem:
        raise RuntimeError(f"spdiags: {problem}")
    columns = mortice.arange(rows.shape[1], device=rows.device).expand(rows.shape)
    lines = columns - places.unsqueeze(1)
    kept = (lines >= 0) & (lines < shape[0]) & (columns < shape[1])
    made = mortice.sparse_coo_tensor(mortice.stack([lines[kept], columns[kept]]), rows[kept], shape)
    return made if layout in (None, sparse_coo) else made.to_sparse(layout=layout)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Compute beta * mat + alpha * (mat1 @ mat2), where mat1 is sparse."""
    return mortice.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None) -> Any:
    """Compute beta * input + alpha * (mat1 @ mat2) at the places of `input`, a sparse CSR tensor, and nowhere else."""
    data = input._buffer
    if input.layout is not sparse_csr:
        raise RuntimeError(f"sampled_addmm: Expected input to have sparse csr layout, but got {layout_name(input.layout)}")
    if mat1.layout is not strided or mat2.layout is not strided:
        raise RuntimeError(f"sampled_addmm: Expected mat1 and mat2 to be strided; got {mat1.layout} and {mat2.layout}")
    if (*mat1.shape[:-1], mat2.shape[-1]) != tuple(input.shape) or mat1.shape[-1] != mat2.shape[-2] or mat1.shape[:-2] != mat2.shape[:-2]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied to those of input; got {tuple(mat1.shape)} @ "
            f"{tuple(mat2.shape)} for {tuple(input.shape)}."
        )
    if not mat1.dtype is mat2.dtype is input.dtype:
        raise RuntimeError(f"sampled_addmm: expected one dtype; got {input.dtype}, {mat1.dtype} and {mat2.dtype}.")
    *outer, rows, columns = data.indices
    found = (mat1[(*outer, rows)] * mat2.transpose(-2, -1)[(*outer, columns)]).sum(-1) * alpha
    made = place(data, found if beta == 0 else found + values_of(input) * beta)
    return made if out is None else out.copy_(made)


def spmm(input: Any, mat2: Any) -> Any:
    """Multiply two matrices, of which the first may be sparse: another name of mm."""
    return mortice.mm(input, mat2)


dsmm, hsmm, saddmm = spmm, hspmm, sspaddmm


def _copying(name: str) -> Any:
    def copied(self: Any) -> Any:
        if not isinstance(self, TensorBase):
            raise no_tensor(f"{name}_copy", "self", self)
        return getattr(self, name)().clone()

    copied.__name__ = copied.__qualname__ = f"{name}_copy"
    copied.__doc__ = f"Return a copy of what `{name}()` shows."
    return copied


values_copy, indices_copy, crow_indices_copy, col_indices_copy, ccol_indices_copy, row_indices_copy = map(
    _copying, ("values", "indices", "crow_indices", "col_indices", "ccol_indices", "row_indices")
)


def sum(input: Any, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:
    """Add up all values of a sparse tensor, or those along dims: the result is dense where no sparse dim remains."""
    if isinstance(input._buffer, Compressed) and dim is not None and dim != ():
        return _compressed_sum(input if dtype is None else input.to(dtype), [dim] if isinstance(dim, int) else dim, keepdim)
    if not isinstance(input._buffer, Compressed):
        buffer_of("sum", input)
    n = input._buffer.sparse_dim
    if dtype is not None:
        input = input.to(dtype)
    axes = sorted(check_dims("sparse.sum", dim, input.ndim))
    if keepdim:
        made = sum(input, axes)
        for d in axes:
            made = made.unsqueeze(d)
        return made
    if set(range(n)) <= set(axes):
        return values_of(input).sum([0, *[d - n + 1 for d in axes if d >= n]])
    # Each dim that goes leaves places that repeat, whose values coalescing adds up.
    data, values = input._buffer, values_of(input)
    inner = [d - n + 1 for d in axes if d >= n]
    values = values.sum(inner) if inner else values
    kept = [d for d in range(n) if d not in axes]
    shape = [s for d, s in enumerate(input.shape) if d not in axes]
    if len(kept) == n:
        return place(Sparse(data.indices, values.detach(), shape, data.coalesced), values)
    return coalesce(place(Sparse(mortice.stack([data.indices[d] for d in kept]), values.detach(), shape), values))


def _compressed_sum(t: Any, dims: Any, keepdim: bool) -> Any:
    data, axes = t._buffer, {d % t.ndim for d in dims}
    if not keepdim or t.layout is not sparse_csr or t.ndim != 2:
        raise RuntimeError(
            "sum: reduction operations on compressed tensors along dims are of CSR matrices with keepdim=True; got "
            f"{layout_name(t.layout)} of shape {tuple(t.shape)} and keepdim={keepdim}."
        )
    places = mortice.stack([mortice.zeros_like(at) if d in axes else at for d, at in enumerate(data.indices)])
    values = values_of(t).to(mortice.int64) if t.dtype.kind in "bui" else values_of(t)
    shape = [1 if d in axes else n for d, n in enumerate(t.shape)]
    return compress(place(Sparse(places, values.detach(), shape), values), sparse_csr)  # which adds up what is in one place


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Normalise along a dim: what is not there counts as minus infinity."""
    return _normalised(input, dim, dtype, False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the logarithm of `softmax`."""
    return _normalised(input, dim, dtype, True)


def _normalised(t: Any, dim: int, dtype: Any, log: bool) -> Any:
    name = "log_softmax" if log else "softmax"
    buffer_of(name, t)
    t = coalesce(t if dtype is None else t.to(dtype))
    data, values, axis = t._buffer, values_of(t), check_dim(name, dim, t.ndim)
    n = data.sparse_dim
    if axis >= n:
        return place(data, getattr(mortice, name)(values, axis - n + 1))
    others = [d for d in range(n) if d != axis]
    rows = mortice.stack([data.indices[d] for d in others]) if others else data.indices[:0]
    _, where, counts = Sparse(rows, values.detach(), [t.shape[d] for d in others]).merged
    if not len(counts):
        return place(data, values)
    of = where.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    zeros = mortice.zeros(len(counts), *values.shape[1:], dtype=values.dtype, device=values.device)
    shifted = values - zeros.scatter_reduce(0, of, values.detach(), "amax", include_self=False)[where]
    total = zeros.index_add(0, where, shifted.exp())[where]
    return place(data, shifted - total.log() if log else shifted.exp() / total)


# ---- sparse gradients of dense tables ----


class _Gradients(graph.Algebra):
    """How the engine treats sparse gradients that arrive at dense leaves: they come as Tensors."""

    def wrap(self, g: Any, like: Any) -> Any:
        return g

    def unwrap(self, g: Any) -> Any:
        return g

    def fresh(self, g: Any, device: Any) -> Any:
        return g.clone()

    def add_into(self, total: Any, g: Any) -> Any:
        return total.add_(g)


_gradients = _Gradients()


class SparseRows(Node):
    """The node of a look-up in a table whose gradient is sparse."""

    __slots__ = ("table", "at", "padding")
    table: Any
    at: Any
    padding: int

    def name(self) -> str:
        return "EmbeddingBackward0"

    def pull(self, g: Any, as_tensor: bool) -> Any:
        """Give a leaf its sparse gradient when the backward is done; hand on a dense one to whoever wants something else."""
        g = g if as_tensor else make(g, self.device, self.dtype, self.shape)
        at = self.at.reshape(-1)
        rows = g.reshape(len(at), g.shape[-1])
        if self.padding >= 0:
            kept = (at != self.padding).nonzero().flatten()
            at, rows = at.index_select(0, kept), rows.index_select(0, kept)
        table = self.table
        run = modes.running
        if as_tensor or run is None or run.selective:
            dense = add_up(rows, at, table.shape[0])
            return (dense if as_tensor else dense._buffer,)
        made = wrap(Sparse(at.reshape(1, -1), rows, table.shape))
        run.after.append(lambda: arrive(table, made, True, _gradients, True))
        return (None,)


def embedding(table: Any, at: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """Return the rows of a table, a leaf, so that backward gives it a sparse gradient."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding: scale_grad_by_freq not supported with sparse gradients")
    with mortice.no_grad():
        t = mortice.embedding(table, at)
    node = SparseRows()
    node.seq, node.extra, node.table, node.at, node.padding = next_seq(), None, table, at.clone(), padding_idx
    node.edges = (table.note_use(node.seq),)
    node.device, node.shape, node.dtype = t._device, t.shape, t.dtype
    t._rg, t._node = True, node
    return t


def _convert_indices_from_coo_to_csr(input: Any, size: int, *, out_int32: bool = False) -> Any:
    """Return where the entries of each row begin among row numbers in order, and where the last row's end."""
    if input.ndim != 1:
        raise ShapeError(f"_convert_indices_from_coo_to_csr: expected the input to be a vector; got {input.ndim} dims.")
    rows = mortice.arange(size + 1, dtype=input.dtype, device=input.device)
    return mortice.searchsorted(input, rows, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(crow_indices: Any, col_indices: Any, *, out_int32: bool = False, transpose: bool = False) -> Any:
    """Return the coordinates of entries, a row for each dim, those of a batch first; `transpose` exchanges rows and columns."""
    if crow_indices.ndim != col_indices.ndim:
        raise ShapeError(
            "_convert_indices_from_csr_to_coo: crow_indices and col_indices are supposed to have the same dimensionality; got "
            f"{crow_indices.ndim} and {col_indices.ndim} dims."
        )
    counts = crow_indices.diff(dim=-1)
    at = mortice.repeat_interleave(counts.flatten().long())  # the number of its row among all rows of the batch
    *batch, rows = mortice.unravel_index(at, counts.shape)
    both = (col_indices.flatten(), rows) if transpose else (rows, col_indices.flatten())
    return mortice.stack([x.to(mortice.int32 if out_int32 else mortice.int64) for x in (*batch, *both)])


# ---- the old typed classes ----


def old_style(args: Any, dtype: Any, device: Any) -> Any:
    """Make a sparse tensor as the old constructors do: of indices and values, and of a size perhaps, or of a size alone."""
    if args and isinstance(args[0], TensorBase) and len(args) > 1:
        return sparse_coo_tensor(*args, dtype=dtype, device=device)
    if args and not isinstance(args[0], (int, tuple, list)):
        raise TypeError(f"new: expected a size, or indices and values; got {type(args[0]).__name__}.")
    return sparse_coo_tensor(args[0] if args and not isinstance(args[0], int) else args or (0,), dtype=dtype, device=device)


class SparseClass(TypedClass):
    """The type of a typed class: calling it makes a sparse tensor."""

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        elements = bool(args) and isinstance(args[0], TensorBase)
        given = ("indices, values, shape" if len(args) > 2 else "indices, values") if elements else "shape"
        warn(
            f"torch.sparse.SparseTensor({given}, *, device=) is deprecated.  Please use "
            f"torch.sparse_coo_tensor({given}, dtype=, device=).",
            once=True,
        )
        return old_style(args, cls.dtype, device)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, TensorBase) and x._device.level is LEVEL and x.dtype is cls.dtype and x.device.type == "cpu"


def __getattr__(name: str) -> Any:
    dtype = next((d for d, kind in CLASS_NAMES.items() if f"{kind}Tensor" == name), None)
    if dtype is None:
        raise AttributeError(f"module 'mortice.sparse' has no attribute {name!r}")
    made = SparseClass(name, (), {"__module__": "mortice.sparse", "dtype": getattr(mortice, dtype)})
    return globals().setdefault(name, made)
