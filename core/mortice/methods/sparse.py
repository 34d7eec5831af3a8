"""Methods of sparse tensors, and of dense ones that become sparse."""

from __future__ import annotations

from mortice.lazy import family
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mortice.sparse import coo
else:
    coo = family("sparse.coo")


class SparseForms(TensorBase):
    """The parts of a sparse tensor, and ways to make one."""

    __slots__ = ()

    coalesce, is_coalesced, _coalesced_ = coo.coalesce, coo.is_coalesced, coo._coalesced_
    indices, values, _indices, _values, _nnz = coo.indices, coo.values, coo._indices, coo._values, coo._nnz
    sparse_dim, dense_dim, sparse_mask, to_sparse, to_sparse_coo = (
        coo.sparse_dim, coo.dense_dim, coo.sparse_mask, coo.to_sparse, coo.to_sparse_coo)  # fmt: skip
