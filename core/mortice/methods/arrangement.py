"""Methods that move elements: views, copies in another order, reading and writing at positions, the sparse form."""

from __future__ import annotations

from mortice.lazy import family
from mortice.ops import movement
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice import strides
    from mortice.ops import arrange, index, index_rows, inplace, mapped, strided, views
    from mortice.ops import fill as fill_ops
    from mortice.ops import gather as gather_ops
    from mortice.ops import nonzero as nonzero_ops
    from mortice.sparse import compressed, coo
else:
    arrange, index, inplace, mapped = family("ops.arrange"), family("ops.index"), family("ops.inplace"), family("ops.mapped")
    strided, views, gather_ops = family("ops.strided"), family("ops.views"), family("ops.gather")
    index_rows, fill_ops, strides = family("ops.index_rows"), family("ops.fill"), family("strides")
    nonzero_ops, coo, compressed = family("ops.nonzero"), family("sparse.coo"), family("sparse.compressed")


class Arrangement(TensorBase):
    """Shapes and positions."""

    __slots__ = ()

    # ---- movement ----

    view, reshape, permute, transpose, t = (
        movement.view, movement.reshape, movement.permute, movement.transpose, movement.t)  # fmt: skip
    expand, broadcast_to, squeeze, unsqueeze = (
        movement.expand, movement.expand, movement.squeeze, movement.unsqueeze)  # fmt: skip
    clone = movement.clone
    view_as, reshape_as, expand_as, flatten, unflatten, ravel = (
        views.view_as, views.reshape_as, views.expand_as, views.flatten, views.unflatten, views.ravel)  # fmt: skip
    movedim, moveaxis, swapaxes, swapdims, adjoint, select, narrow = (
        views.movedim, views.moveaxis, views.swapaxes, views.swapdims, views.adjoint, views.select, views.narrow)  # fmt: skip
    unbind, split_with_sizes, chunk, tensor_split, hsplit, vsplit, dsplit = (
        views.unbind, views.split_with_sizes, views.chunk, views.tensor_split, views.hsplit, views.vsplit,
        views.dsplit)  # fmt: skip
    unsafe_split, unsafe_chunk, unsafe_split_with_sizes = (
        views.unsafe_split, views.unsafe_chunk, views.unsafe_split_with_sizes)  # fmt: skip
    as_strided_scatter = strided.as_strided_scatter
    diagonal, unfold, as_strided, storage_offset = strided.diagonal, strided.unfold, strided.as_strided, strides.storage_offset
    T, mT = views.property_T.as_property(), views.property_mT.as_property()
    H, mH = views.property_H.as_property(), views.property_mH.as_property()
    flip, fliplr, flipud, roll, rot90, repeat, tile, repeat_interleave = (
        arrange.flip, arrange.fliplr, arrange.flipud, arrange.roll, arrange.rot90, arrange.repeat, arrange.tile,
        arrange.repeat_interleave)  # fmt: skip
    tril, triu, diag, diag_embed, diagflat, diagonal_scatter, sum_to_size = (
        arrange.tril, arrange.triu, arrange.diag, arrange.diag_embed, arrange.diagflat, arrange.diagonal_scatter,
        arrange.sum_to_size)  # fmt: skip
    tril_, triu_ = inplace.tril_, inplace.triu_

    def split(self, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
        """Cut into pieces of a size (the last may be smaller), or of given sizes; views."""
        from mortice.ops import views

        return views.split(self, split_size, dim)

    narrow_copy, as_strided_ = index_rows.narrow_copy, arrange.as_strided_
    squeeze_, unsqueeze_, t_, transpose_, swapaxes_, swapdims_ = (
        arrange.squeeze_, arrange.unsqueeze_, arrange.t_, arrange.transpose_, arrange.swapaxes_, arrange.swapdims_)  # fmt: skip

    # ---- indexing ----

    index_put, index_put_, copy_ = index.index_put, index.index_put_, index.copy_
    gather, scatter, scatter_add, scatter_reduce, index_select, index_add = (
        gather_ops.gather, gather_ops.scatter, gather_ops.scatter_add, gather_ops.scatter_reduce,
        index_rows.index_select, index_rows.index_add)  # fmt: skip
    index_copy, index_fill, index_reduce, take, put, take_along_dim = (
        index_rows.index_copy, index_rows.index_fill, index_rows.index_reduce, index_rows.take, index_rows.put,
        gather_ops.take_along_dim)  # fmt: skip
    masked_fill, masked_select, masked_scatter, nonzero, argwhere = (
        fill_ops.masked_fill, fill_ops.masked_select, fill_ops.masked_scatter, nonzero_ops.nonzero,
        nonzero_ops.argwhere)  # fmt: skip
    select_scatter, slice_scatter = fill_ops.select_scatter, fill_ops.slice_scatter
    scatter_, scatter_add_, scatter_reduce_, index_add_, index_copy_, index_fill_, index_reduce_ = (
        gather_ops.scatter_, gather_ops.scatter_add_, gather_ops.scatter_reduce_, index_rows.index_add_,
        index_rows.index_copy_, index_rows.index_fill_, index_rows.index_reduce_)  # fmt: skip
    put_, masked_fill_, masked_scatter_, fill_, zero_ = (
        index_rows.put_, fill_ops.masked_fill_, fill_ops.masked_scatter_, fill_ops.fill_, fill_ops.zero_)  # fmt: skip
    nonzero_static, fill_diagonal_ = nonzero_ops.nonzero_static, mapped.fill_diagonal_

    # ---- sparse ----

    coalesce, is_coalesced, _coalesced_ = coo.coalesce, coo.is_coalesced, coo._coalesced_
    indices, values, _indices, _values, _nnz = coo.indices, coo.values, coo._indices, coo._values, coo._nnz
    sparse_dim, dense_dim, sparse_mask, to_sparse, to_sparse_coo = (
        coo.sparse_dim, coo.dense_dim, coo.sparse_mask, coo.to_sparse, coo.to_sparse_coo)  # fmt: skip
    sparse_resize_, sparse_resize_and_clear_, resize_as_sparse_, smm, sspaddmm = (
        coo.sparse_resize_, coo.sparse_resize_and_clear_, coo.resize_as_sparse_, coo.smm, coo.sspaddmm)  # fmt: skip
    crow_indices, col_indices, ccol_indices, row_indices = (
        compressed.crow_indices, compressed.col_indices, compressed.ccol_indices, compressed.row_indices)  # fmt: skip
    to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc = (
        compressed.to_sparse_csr, compressed.to_sparse_csc, compressed.to_sparse_bsr, compressed.to_sparse_bsc)  # fmt: skip
