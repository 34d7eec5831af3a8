"""Sparse tensors: what they hold, what can be done with them, what is refused, and the gradients that flow through them."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import mortice as mt
from mortice import nn, notice

INDICES = [[0, 1, 1, 0], [2, 0, 2, 2]]


@pytest.fixture
def s() -> Any:
    return mt.sparse_coo_tensor(INDICES, [3.0, 4.0, 5.0, 1.0], (2, 3))


DENSE = [[0.0, 0.0, 4.0], [4.0, 0.0, 5.0]]


# ---- what they are ----


def test_a_sparse_tensor_says_what_it_is(s: Any) -> None:
    assert isinstance(s, mt.Tensor) and type(s) is mt.Tensor and mt.is_tensor(s)
    assert s.is_sparse and s.layout is mt.sparse_coo and not s.is_sparse_csr and not mt.ones(1).is_sparse
    assert (s.shape, s.dtype, s.device, s.numel(), s.dim(), len(s)) == ((2, 3), mt.float32, mt.ones(1).device, 6, 2, 2)
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), s.is_coalesced()) == (4, 2, 0, False)
    assert s.type() == "mortice.sparse.FloatTensor" and not isinstance(s, mt.FloatTensor)
    assert isinstance(s, mt.sparse.FloatTensor) is s.is_cpu and not isinstance(s, mt.sparse.LongTensor)
    assert s._indices().tolist() == INDICES and s._values().tolist() == [3, 4, 5, 1] and s.to_dense().tolist() == DENSE


def test_coalescing_adds_up_what_is_in_one_place(s: Any) -> None:
    c = s.coalesce()
    assert c.is_coalesced() and c.coalesce() is c and c._nnz() == 3
    assert c.indices().tolist() == [[0, 1, 1], [2, 0, 2]] and c.values().tolist() == [4, 4, 5]
    for name in ("indices", "values"):
        with pytest.raises(RuntimeError, match=f"^Cannot get {name} on an uncoalesced tensor, please call .coalesce"):
            getattr(s, name)()
        kind = "sparse coordinate" if name == "indices" else "sparse"
        with pytest.raises(RuntimeError, match=f"^{name} expected {kind} tensor layout but got Strided$"):
            getattr(mt.ones(1), name)()
    masks = mt.sparse_coo_tensor([[0, 0, 2]], [False, True, False], (3,)).coalesce()
    assert masks.values().tolist() == [True, False] and masks.to_dense().tolist() == [True, False, False]


def test_it_is_printed_as_pytorch_prints_it(s: Any) -> None:
    where = "" if s.is_cpu else f"device={str(s.device)!r}, "
    assert repr(s) == (
        "tensor(indices=tensor([[0, 1, 1, 0],\n                       [2, 0, 2, 2]]),\n       values=tensor([3., 4., 5., 1.]),\n"
        f"       {where}size=(2, 3), nnz=4, layout=mortice.sparse_coo)"
    )
    assert "dtype=mortice.float16" in repr(s.half()) and "layout=mortice.sparse_coo" in repr(s.half())
    assert repr(s.requires_grad_()).endswith("requires_grad=True)") and repr(s * 2).endswith("grad_fn=<MulBackward0>)")
    assert "tensor(indices=tensor([], size=(1, 0)),\n       values=tensor([], size=(0,)),\n" in repr(mt.zeros(2).to_sparse())


def test_ways_to_make_one() -> None:
    notice.told.clear()  # told once in a program
    with pytest.warns(UserWarning, match=r"SparseTensor\(indices, values, shape, \*, device=\) is deprecated"):
        made = mt.sparse.FloatTensor(mt.tensor(INDICES), mt.ones(4), mt.Size([2, 3]))
    assert made.to_dense().tolist() == [[0, 0, 2], [1, 0, 1]]
    with pytest.warns(UserWarning, match=r"Please use torch.sparse_coo_tensor\(shape, dtype=, device=\)"):
        assert mt.sparse.DoubleTensor(2, 3).dtype is mt.float64 and mt.sparse.FloatTensor(2, 3).shape == (2, 3)
    for made in (mt.sparse_coo_tensor((2, 3)), mt.zeros(2, 3, layout=mt.sparse_coo), mt.empty((2, 3), layout=mt.sparse_coo)):
        assert made.is_sparse and made._nnz() == 0 and made.to_dense().tolist() == [[0] * 3] * 2
    assert mt.sparse_coo_tensor([[0, 4]], [1, 2]).shape == (5,) and mt.sparse_coo_tensor([[0]], [1]).dtype is mt.int64
    assert mt.sparse_coo_tensor([[0]], [1], dtype=mt.float64, requires_grad=True).requires_grad
    d = mt.tensor([[0.0, 2.0], [0.0, 0.0]])
    assert d.to_sparse().indices().tolist() == [[0], [1]] and d.to_sparse_coo().is_coalesced()
    part = d.to_sparse(1)
    assert (part.sparse_dim(), part.dense_dim(), part.values().tolist()) == (1, 1, [[0, 2]])
    assert mt.tensor(3.0).to_sparse().to_dense().item() == 3 and mt.tensor(0.0).to_sparse()._nnz() == 0
    assert d.sparse_mask(mt.sparse_coo_tensor([[0], [1]], [7.0], (2, 2))).coalesce().values().tolist() == [2]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mt.sparse_coo_tensor(INDICES, [1.0, 2.0], (2, 3)), "same nnz, but got nnz from indices: 4, nnz from values: 2"),
        (lambda: mt.sparse_coo_tensor(INDICES, mt.ones(4), (2, 2)), "for dim 1, size is 2 but found index 2"),
        (lambda: mt.sparse_coo_tensor([[-1]], [1.0], (2,)), "found negative index -1 for dim 0"),
        (lambda: mt.sparse_coo_tensor([0, 1], [1.0, 2.0]), r"indices must be sparse_dim x nnz, but got: \[2\]"),
        (lambda: mt.sparse_coo_tensor(INDICES, mt.ones(4), (2,)), r"sparse_dim \(2\) \+ dense_dim \(0\)"),
        (lambda: mt.sparse_coo_tensor(INDICES, mt.ones(4, 2), (2, 3, 1)), r"values has incorrect size, expected \[4, 1\], got \[4, 2\]"),
        (lambda: mt.sparse_coo_tensor([[0, 1]], 1.0, (3,)), "same nnz, but got nnz from indices: 2, nnz from values: 1"),
        (lambda: mt.ones(2).to_sparse(2), r"sparse_dim must be in \(0, 1\]; got 2"),
    ],
)
def test_what_makes_no_sparse_tensor_is_refused(make: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        make()


# ---- arithmetic ----


def test_arithmetic(s: Any) -> None:
    def full(x: Any) -> Any:
        assert x.is_sparse
        return x.to_dense().tolist()

    assert full(s * 2) == full(2 * s) == full(s + s) == [[0, 0, 8], [8, 0, 10]] and full(s / 2) == [[0, 0, 2], [2, 0, 2.5]]
    assert full(-s) == [[0, 0, -4], [-4, 0, -5]] and full(s - s) == [[0] * 3] * 2 and full(s * s) == [[0, 0, 16], [16, 0, 25]]
    assert full(s * mt.tensor([1.0, 2.0, 3.0])) == full(mt.tensor([1.0, 2.0, 3.0]) * s) == [[0, 0, 12], [4, 0, 15]]
    assert full(s / mt.tensor(2.0)) == [[0, 0, 2], [2, 0, 2.5]] and full(s.add(s, alpha=3)) == [[0, 0, 16], [16, 0, 20]]
    other = mt.sparse_coo_tensor([[1, 0], [1, 2]], [7.0, 1.0], (2, 3))
    assert full(s + other) == [[0, 0, 5], [4, 7, 5]] and full(s * other) == [[0, 0, 4], [0, 0, 0]]
    assert full((-s).abs()) == DENSE and full(s**2) == [[0, 0, 16], [16, 0, 25]] and full(nn.functional.relu(-s)) == [[0] * 3] * 2
    dense = mt.ones(2, 3)
    assert (dense + s).tolist() == [[1, 1, 5], [5, 1, 6]] and (dense - s).tolist() == [[1, 1, -3], [-3, 1, -4]]
    assert (dense + s.long()).dtype is mt.float32 and not (dense + s).is_sparse
    assert full(s.t()) == full(s.T) == full(s.transpose(0, 1)) == [[0, 4], [0, 0], [4, 5]]
    assert [full(mt.tensor(v).to_sparse().t()) for v in (2, [0, 3])] == [2, [0, 3]]
    assert full(s[1]) == DENSE[1] and full(s[:, 2]) == [4, 5] and [full(row) for row in s] == DENSE
    assert full(s.select(0, 1)) == DENSE[1] and full(s.index_select(0, mt.tensor([1, 1, 0]))) == [DENSE[1], DENSE[1], DENSE[0]]
    assert full(s.index_select(0, mt.tensor([-1, -2, 1], dtype=mt.int32))) == [DENSE[1], DENSE[0], DENSE[1]]
    with pytest.raises(IndexError, match="index_select: index -3 is out of bounds for dimension 0 with size 2"):
        s.index_select(0, mt.tensor([-3]))
    assert full(mt.cat([s, s])) == DENSE * 2 and full(mt.cat([s, s], 1)) == [row * 2 for row in DENSE]
    for d in (mt.float64, mt.int32, mt.bool, mt.float16):
        assert s.to(d).dtype is d and s.to(d).is_sparse
    assert s.long().sum().dtype is mt.int64 and full(s.clone()) == full(s.detach()) == DENSE and s.to(s.device) is s


def test_sums(s: Any) -> None:
    assert s.sum().item() == mt.sum(s).item() == mt.sparse.sum(s).item() == 13 and not s.sum().is_sparse
    for made in (s.sum(0), s.sum(-2), mt.sparse.sum(s, 0), mt.sparse.sum(s, [0])):
        assert made.is_sparse and made.to_dense().tolist() == [4, 0, 9]
    assert s.sum(1).to_dense().tolist() == [4, 9] and mt.sparse.sum(s, (0, 1), mt.float64).dtype is mt.float64
    blocks = mt.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    assert blocks.sum(0).tolist() == [4, 6] and blocks.sum(1).to_dense().tolist() == [3, 0, 7] and not blocks.sum(0).is_sparse
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
        mt.sparse.sum(s, 2)


def test_an_index_for_each_dim_reads_what_lies_there(s: Any) -> None:
    read = [[s[i, j] for j in range(3)] for i in (0, -1)]
    assert [[t.item() for t in row] for row in read] == DENSE and all(t.layout is mt.strided for row in read for t in row)
    assert s[1][2].item() == s.select(0, 1).select(0, -1).item() == 5 and [t.item() for t in s[1]] == DENSE[1]
    assert s.long()[1, 2].dtype is mt.int64 and s.bool()[1, 2].item() is True and s[1, 2, None].tolist() == [5]
    values = mt.tensor([3.0, 4.0, 5.0, 1.0], requires_grad=True)
    (mt.sparse_coo_tensor(INDICES, values, (2, 3))[1, 2] * 2).backward()
    assert values.grad.tolist() == [0, 0, 2, 0]
    rows = mt.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    assert [rows[i].tolist() for i in range(3)] == [[1, 2], [0, 0], [3, 4]] and rows[2, 0].item() == 3
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        s[0, 3]


def test_dims_of_one_element_are_put_in(s: Any) -> None:
    for key, shown in (((None,), (1, 2, 3)), ((slice(None), None), (2, 1, 3)), ((..., None), (2, 3, 1)), ((None, 1), (1, 3))):
        assert s[key].is_sparse and s[key].shape == shown and s[key].to_dense().tolist() == mt.tensor(DENSE)[key].tolist()
    assert s.unsqueeze(1).to_dense().tolist() == [[row] for row in DENSE]
    assert mt.stack([s, s * 2], 1).to_dense().tolist() == mt.stack([mt.tensor(DENSE), mt.tensor(DENSE) * 2], 1).tolist()
    assert s.sum(1, keepdim=True).to_dense().tolist() == [[4], [9]] and s.sum((0, 1), keepdim=True).tolist() == [[13]]
    leaf = s.coalesce().requires_grad_()
    mt.sparse.sum(mt.stack([leaf, leaf]).unsqueeze(0), (0, 1, 2)).to_dense().square().sum().backward()
    assert leaf.grad.to_dense().tolist() == [[0, 0, 72], [32, 0, 72]]


@pytest.mark.parametrize("dtype", [mt.bool, mt.int8, mt.uint8, mt.int32])
def test_integers_add_up_in_int64_along_dims_too(dtype: Any) -> None:
    full = mt.tensor([[100, 0], [100, 1]]).to(dtype)
    s = full.to_sparse()
    for keywords in ({"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": (0, 1)}):
        made, want = s.sum(**keywords), full.sum(**keywords)
        assert made.dtype == mt.int64 and (made.to_dense() if made.is_sparse else made).tolist() == want.tolist()
    assert s.sum(0, dtype=mt.int16).dtype == mt.int16 and mt.sparse.sum(s, 0).dtype == dtype
    assert full.to_sparse_csr().sum(1, keepdim=True).dtype == mt.int64


@pytest.mark.parametrize("dims", [(0, 3), (0, -1), (0, 2), (1, 3)])
def test_gradients_through_sums_that_keep_dims_of_one_element(dims: tuple[int, ...]) -> None:
    x = mt.arange(1.0, 13).reshape(3, 2, 1, 2)
    leaf, full = x.to_sparse().requires_grad_(), x.clone().requires_grad_()
    for t in (leaf, full):
        made = t.sum(dims, keepdim=True) * 2
        (made.to_dense() if made.is_sparse else made).square().sum().backward()
    assert leaf.grad.sparse_dim() == 4 and leaf.grad.to_dense().tolist() == full.grad.tolist()
    assert (column := mt.ones(2, 1).to_sparse().requires_grad_()).unsqueeze(0).to_dense().sum().backward() is None
    assert column.grad.sparse_dim() == 2


def test_reductions_of_all_values(s: Any) -> None:
    assert s.any().item() is True and s.bool().any().item() is True and mt.zeros(2).to_sparse().any().item() is False
    assert s.norm(1).item() == 13 and s.norm(float("inf")).item() == 5 and s.norm().item() == pytest.approx(57**0.5)


def test_products(s: Any) -> None:
    x = mt.arange(12.0).reshape(3, 4)
    want = [[32, 36, 40, 44], [40, 49, 58, 67]]
    for made in (s @ x, mt.mm(s, x), mt.spmm(s, x), mt.dsmm(s, x), mt.sparse.mm(s, x), mt.matmul(s, x), s.mm(x), (x.t() @ s.t()).t()):
        assert made.tolist() == want and not made.is_sparse
    assert s.mv(mt.ones(3)).tolist() == (s @ mt.ones(3)).tolist() == [4, 9]
    assert mt.sparse.addmm(mt.ones(2, 4), s, x, beta=2, alpha=0.5).tolist() == [[18, 20, 22, 24], [22, 26.5, 31, 35.5]]
    assert nn.functional.linear(s, x.t(), mt.ones(4)).tolist() == [[33, 37, 41, 45], [41, 50, 59, 68]]
    both = mt.sparse.mm(s, s.t())
    assert both.is_sparse and both.to_dense().tolist() == [[16, 20], [20, 41]]
    batch = mt.sparse_coo_tensor([[0, 1], [1, 0], [0, 2]], [2.0, 3.0], (2, 2, 3))
    assert (batch @ mt.ones(2, 3, 1)).tolist() == [[[0], [2]], [[3], [0]]]
    assert (mt.sparse_coo_tensor((2, 3)) @ x).tolist() == [[0] * 4] * 2
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied \(2x3 and 2x2\); got \(2, 3\) @ \(2, 2\)"):
        s @ mt.ones(2, 2)


def test_softmax_is_over_what_is_there(s: Any) -> None:
    made = mt.sparse.softmax(s, 1)
    assert made.values().tolist() == pytest.approx([1, 0.2689414, 0.7310586])
    assert mt.sparse.log_softmax(s, 0).values().tolist() == pytest.approx([-1.3132616, 0, -0.3132616])
    blocks = mt.sparse_coo_tensor([[0, 2]], [[1.0, 1.0], [3.0, 3.0]], (3, 2))
    assert mt.sparse.softmax(blocks, 1).values().tolist() == [[0.5, 0.5]] * 2
    assert mt.sparse.softmax(mt.sparse_coo_tensor((2, 3)), 0)._nnz() == 0


def test_writing_in_place(s: Any) -> None:
    seen = s.clone()
    assert seen.mul_(2) is seen and seen.to_dense().tolist() == [[0, 0, 8], [8, 0, 10]] and seen.add_(s).to_dense().tolist()[1][2] == 15
    assert seen.zero_()._nnz() == 0 and seen.copy_(s).to_dense().tolist() == DENSE
    s._values().mul_(10)
    assert s.to_dense().tolist() == [[0, 0, 40], [40, 0, 50]]
    d = mt.ones(2, 3)
    assert d.add_(s.detach(), alpha=0.1).tolist() == [[1, 1, 5], [5, 1, 6]]
    x, d = mt.ones(2, 3, requires_grad=True), mt.full((2, 3), 3.0)
    d *= s.detach()  # which takes what is nowhere stored for zero
    y = x * 2
    y.mul_(s.detach()).sum().backward()
    dense = s.detach().to_dense()
    assert mt.equal(d, dense * 3) and mt.equal(y, dense * 2) and mt.equal(x.grad, dense * 2)
    with pytest.raises(RuntimeError, match=r"^copy_\(\) between dense and sparse Tensors is not implemented"):
        d.copy_(s)
    for write in (lambda: s.copy_(d), lambda: s[mt.tensor([0])]):
        with pytest.raises(RuntimeError, match=r"^a sparse tensor: no dense one joins it by index or assignment"):
            write()


REFUSED = {
    "exp": lambda s, d: s.exp(), "max": lambda s, d: s.max(), "mean": lambda s, d: s.mean(1), "view": lambda s, d: s.view(6),
    "eq": lambda s, d: s == s, "where": lambda s, d: mt.where(d > 0, s, d), "cat": lambda s, d: mt.cat([s, d]),
    "to_host": lambda s, d: s.tolist(), "expand": lambda s, d: s.expand(2, 2, 3),
    "index_add": lambda s, d: d.index_add(0, mt.tensor([0, 1]), s),
    "pow": lambda s, d: s**-1, "norm": lambda s, d: s.norm(2, 0), "any": lambda s, d: s.any(0), "all": lambda s, d: s.all(),
    "getitem": lambda s, d: s[0, :2], "sort": lambda s, d: s.sort(),
    "linalg_vector_norm": lambda s, d: mt.linalg.vector_norm(s),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_sparse_meaning_is_refused_by_name(name: str, s: Any) -> None:
    with pytest.raises(NotImplementedError, match=rf"^{name}.*: not implemented for sparse tensors; got .*Use \.to_dense\(\) first\.$"):
        REFUSED[name](s, mt.ones(2, 3))


def test_other_refusals(s: Any) -> None:
    for call in (lambda: s + mt.ones(2, 3), lambda: s - mt.ones(2, 3), lambda: s + 1):
        with pytest.raises(RuntimeError, match=r"^add\(sparse, dense\) is not supported. Use add\(dense, sparse\) instead"):
            call()
    with pytest.raises(RuntimeError, match="Sparse division requires a scalar or zero-dim dense tensor divisor"):
        s / mt.ones(2, 3)
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
        s.numpy()
    with pytest.raises(RuntimeError, match="^data_ptr: a sparse tensor has no memory of its own"):
        s.data_ptr()
    with pytest.raises(RuntimeError, match="expected sparse tensors of one shape and sparse_dim"):
        s + mt.sparse_coo_tensor((1, 3))
    with pytest.raises(RuntimeError, match="incompatible sizes"):
        mt.ones(3, 3).sparse_mask(s)
    with pytest.raises(NotImplementedError, match="matmul: not implemented for sparse tensors"):
        mt.func.vmap(lambda x: s @ x)(mt.ones(4, 3))
    for part, text in (((0, 1, 9), "Invalid range to narrow"), ((1, 0, -1), "length must be non-negative")):
        with pytest.raises(RuntimeError, match=text):
            s.narrow_copy(*part)


# ---- gradients ----


def test_gradients_of_a_product_with_a_sparse_leaf(s: Any) -> None:
    s.requires_grad_()
    x = mt.ones(3, 2, requires_grad=True)
    for times in (1, 2):
        (mt.sparse.mm(s, x) * mt.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        assert s.grad.is_sparse and s.grad.indices().tolist() == [[0, 1, 1], [2, 0, 2]]
        assert s.grad.values().tolist() == [3 * times, 7 * times, 7 * times]
        assert (x.grad / times).tolist() == [[12, 16], [0, 0], [19, 28]]
    (g,) = mt.autograd.grad((s * 2).sum(), s)
    assert g.is_sparse and g.to_dense().tolist() == [[0, 0, 2], [2, 0, 2]]
    assert s.is_leaf and s.detach().requires_grad is False and (s @ x).grad_fn is not None


def test_gradients_reach_the_values() -> None:
    v = mt.tensor([3.0, 4.0, 5.0, 1.0], requires_grad=True)
    x = mt.arange(6.0).reshape(3, 2)

    def grads(fn: Any) -> Any:
        return mt.autograd.grad(fn(mt.sparse_coo_tensor(INDICES, v, (2, 3))), v)[0].tolist()

    assert grads(lambda s: (s @ x).sum()) == [9, 1, 9, 9] and grads(lambda s: s.sum()) == [1] * 4
    assert grads(lambda s: s.coalesce().values()[0]) == [1, 0, 0, 1] and grads(lambda s: (s * s).sum()) == [8, 8, 10, 8]
    assert grads(lambda s: s.to_dense()[1, 2]) == [0, 0, 1, 0] and grads(lambda s: (s.t() * 2 - s.t()).sum()) == [1] * 4
    assert grads(lambda s: (mt.ones(2, 3) + s)[0].sum()) == [1, 0, 0, 1]
    assert grads(lambda s: mt.sparse.mm(s, s.t()).sum()) == [18, 8, 18, 18]
    assert grads(lambda s: mt.sparse.sum(s, 0).to_dense()[2]) == [1, 0, 1, 1]


def test_second_gradients() -> None:
    def product(v: Any, x: Any) -> Any:
        return mt.sparse.mm(mt.sparse_coo_tensor(INDICES, v, (2, 3)), x)

    v, x = mt.rand(4, dtype=mt.float64, requires_grad=True), mt.rand(3, 2, dtype=mt.float64, requires_grad=True)
    assert mt.autograd.gradcheck(product, (v, x)) and mt.autograd.gradgradcheck(product, (v, x))
    weights = mt.rand(2, 3, dtype=v.dtype)

    def softened(v: Any) -> Any:
        return (mt.sparse.softmax(mt.sparse_coo_tensor(INDICES, v, (2, 3)), 1).to_dense() * weights).sum()

    assert mt.autograd.gradcheck(softened, (v,))


def test_a_function_of_ones_own_may_take_one(s: Any) -> None:
    class Product(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, _ = ctx.saved_tensors
            return None, a.t() @ g

    x = mt.ones(3, 1, requires_grad=True)
    Product.apply(s, x).sum().backward()
    assert x.grad.tolist() == [[4], [0], [9]]


def test_anomaly_detection_reads_sparse_gradients(s: Any) -> None:
    v = mt.ones(4, requires_grad=True)
    with pytest.warns(UserWarning, match="Error detected in Mul"), mt.autograd.set_detect_anomaly(True):
        (mt.sparse_coo_tensor(INDICES, v, (2, 3)) * 2).sum().backward()
        with pytest.raises(RuntimeError, match="'MulBackward0' returned nan values in its 0th output"):
            (mt.sparse_coo_tensor(INDICES, v, (2, 3)) * float("nan")).sum().backward()


def test_a_gradient_has_its_values_to_itself(s: Any) -> None:
    kept: list[Any] = []
    s.requires_grad_()
    turned = s.t()
    turned.register_hook(kept.append)
    (turned * 3).sum().backward()
    s.grad.coalesce().values()
    s.grad._values().mul_(2)
    assert s.grad._values().tolist() == [6.0] * s.grad._nnz() and kept[0]._values().tolist() == [3.0] * s.grad._nnz()
    table = looked_up()
    other = mt.ones(1, 2, requires_grad=True)
    (table(mt.tensor([1])) + other).sum().backward()
    table.weight.grad._values().mul_(2)
    assert other.grad.tolist() == [[1, 1]] and table.weight.grad._values().tolist() == [[2, 2]]


# ---- gradients of tables ----


def looked_up(**options: Any) -> Any:
    table = nn.Embedding(5, 2, sparse=True, **options)
    with mt.no_grad():
        table.weight.copy_(mt.arange(10.0).reshape(5, 2))
    return table


def test_gradients_of_a_table_stand_side_by_side_until_they_are_coalesced() -> None:
    table, at = looked_up(), mt.tensor([3, 1])
    for _ in range(2):
        table(at).sum().backward()
    g = table.weight.grad
    assert g._indices().tolist() == [[3, 1, 3, 1]] and g._values().tolist() == [[1, 1]] * 4
    assert g.coalesce().values().tolist() == [[2, 2]] * 2


def test_gradient_of_a_table_stays_where_it_was_looked_up_though_the_index_is_overwritten() -> None:
    table, at = looked_up(), mt.tensor([3, 1])
    out = table(at)
    at[0] = 2
    out.sum().backward()
    at[1] = 4
    assert table.weight.grad._indices().tolist() == [[3, 1]]


def test_a_table_gets_a_sparse_gradient() -> None:
    table = looked_up(padding_idx=0)
    seen: list[Any] = []
    table.weight.register_hook(lambda g: seen.append(g.is_sparse))
    out = table(mt.tensor([[1, 3], [1, 0]]))
    assert out.tolist() == [[[2, 3], [6, 7]], [[2, 3], [0, 1]]]
    out.sum().backward()
    g = table.weight.grad
    assert g.is_sparse and g._nnz() == 3 and g.to_dense().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1], [0, 0]] and seen == [True]
    table(mt.tensor([4])).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad.coalesce().indices().tolist() == [[1, 3, 4]]
    table.weight.sum().backward()  # a dense one beside it
    assert table.weight.grad.to_dense().tolist() == [[1, 1], [3, 3], [1, 1], [2, 2], [2, 2]]
    table.zero_grad()
    (table(mt.tensor([1])).sum() + table.weight.sum()).backward()
    assert not table.weight.grad.is_sparse and table.weight.grad.tolist() == [[1, 1], [2, 2], [1, 1], [1, 1], [1, 1]]
    (g,) = mt.autograd.grad(table(mt.tensor([2])).sum(), table.weight)
    assert g.to_dense().tolist() == [[0, 0], [0, 0], [1, 1], [0, 0], [0, 0]]
    with mt.no_grad():
        assert not table(mt.tensor([2])).requires_grad
    bag = nn.EmbeddingBag(5, 2, mode="mean", sparse=True)
    bag(mt.tensor([[1, 3]])).sum().backward()
    assert bag.weight.grad.is_sparse and bag.weight.grad.coalesce().values().tolist() == [[0.5, 0.5]] * 2
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        looked_up(scale_grad_by_freq=True)(mt.tensor([1])).sum().backward()


@pytest.mark.parametrize("name", ["SGD", "SparseAdam", "Adagrad"])
def test_a_step_moves_the_rows_of_the_gradient_alone(name: str) -> None:
    table, head = looked_up(), nn.Linear(2, 1)
    before = table.weight.tolist()
    groups = [table.weight] if name == "SparseAdam" else [table.weight, *head.parameters()]
    made = getattr(mt.optim, name)(groups, lr=0.1)
    for _ in range(2):
        made.zero_grad()
        head(table(mt.tensor([1, 4]))).sum().backward()
        made.step()
    moved = [row != old for row, old in zip(table.weight.tolist(), before)]
    assert moved == [False, True, False, False, True]
    copy.deepcopy(made).step()
    made.load_state_dict(made.state_dict())


def test_gradients_of_a_table_are_gathered_and_made_anew_as_optimisers_do() -> None:
    table = looked_up()
    table(mt.tensor([1, 3, 1])).sum().backward()
    g = table.weight.grad.coalesce()
    gathered = mt.zeros_like(g)
    assert gathered.sparse_dim() == 1 and gathered.dense_dim() == 1 and gathered._values().shape == (0, 2)
    gathered.add_(g).add_(g)
    twice = g.new(g._indices(), g._values() * 2, g.size())
    assert twice.is_sparse and twice.dtype == g.dtype
    assert gathered.to_dense().tolist() == twice.to_dense().tolist() == [[0, 0], [4, 4], [0, 0], [2, 2], [0, 0]]
    assert g.new(g._indices(), g._values()).shape == (4, 2) and g.new(3, 4).shape == (3, 4)


def test_optimisers_without_a_sparse_step_say_so() -> None:
    for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "NAdam"):
        table = looked_up()
        table(mt.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError, match=f"^{name} does not support sparse gradients"):
            getattr(mt.optim, name)(table.parameters()).step()


def test_scaled_gradients_and_gradients_set_to_zero() -> None:
    table = looked_up()
    made, scaler = mt.optim.SGD(table.parameters(), lr=1.0, momentum=0.5), mt.amp.GradScaler("cpu", init_scale=8.0)
    for wrong in (1.0, float("inf")):
        made.zero_grad(set_to_none=False)
        scaler.scale(table(mt.tensor([1])).sum() * wrong).backward()
        scaler.step(made)
        scaler.update()
    assert table.weight[1].tolist() == [1, 2] and table.weight.grad.is_sparse and scaler.get_scale() == 4
    table.weight.grad = mt.sparse_coo_tensor([[0]], mt.ones(1, 2), (5, 2))
    with pytest.raises(RuntimeError, match=r"attempting to assign a gradient of size '\[5, 3\]'"):
        table.weight.grad = mt.sparse_coo_tensor((5, 3))
    with pytest.raises(RuntimeError, match="attempting to assign a gradient that does not match its tensor"):
        table.weight.grad.requires_grad_().grad = mt.ones(5, 2)


# ---- modules, files ----


def test_copies_and_files(s: Any) -> None:
    c = s.coalesce()
    file = io.BytesIO()
    mt.save({"adj": c, "n": nn.Parameter(s)}, file)
    file.seek(0)
    loaded = mt.load(file)
    assert type(loaded["n"]) is nn.Parameter and loaded["n"].requires_grad and not loaded["n"].is_coalesced()
    assert type(pickle.loads(pickle.dumps(nn.Parameter(s)))) is nn.Parameter
    for x in (loaded["adj"], pickle.loads(pickle.dumps(c)), copy.deepcopy(c), copy.copy(c)):
        assert x.is_sparse and x.is_coalesced() and x.to_dense().tolist() == DENSE


def test_a_module_keeps_one_as_a_buffer(s: Any) -> None:
    net = nn.Linear(3, 2)
    net.register_buffer("adj", s)
    net.to(s.device).half().float()
    assert net.adj.is_sparse and net.state_dict()["adj"].is_sparse
    other = nn.Linear(3, 2)
    other.register_buffer("adj", mt.sparse_coo_tensor((2, 3)))
    other.load_state_dict(net.state_dict())
    assert other.adj.to_dense().tolist() == DENSE


def test_a_size_alone_has_no_values() -> None:
    empty = mt.sparse_coo_tensor(size=(2, 3))
    assert tuple(empty.shape) == (2, 3) and empty._nnz() == 0
    with pytest.raises(TypeError, match="expected indices and values, or a size; got neither"):
        mt.sparse_coo_tensor()


def test_where_rows_begin_among_sorted_row_numbers() -> None:
    starts = mt._convert_indices_from_coo_to_csr(mt.tensor([0, 0, 1, 3, 3]), 5)
    assert starts.tolist() == [0, 2, 3, 3, 5, 5] and starts.dtype is mt.int64
    assert mt._convert_indices_from_coo_to_csr(mt.tensor([], dtype=mt.int64), 1, out_int32=True).dtype is mt.int32
    assert mt._segment_reduce(mt.tensor([1.0, 2.0, 4.0]), "sum", offsets=mt.tensor([0, 2, 3])).tolist() == [3.0, 4.0]
    with pytest.raises(RuntimeError, match="expected the input to be a vector; got 2 dims"):
        mt._convert_indices_from_coo_to_csr(mt.ones(1, 1), 1)
    columns = mt.tensor([1, 3, 0, 2, 3])
    places = mt._convert_indices_from_csr_to_coo(mt.tensor([0, 2, 3, 3, 5]), columns)
    assert places.tolist() == [[0, 0, 1, 3, 3], columns.tolist()] and places.dtype is mt.int64
    batch = mt.tensor([[0, 2, 3], [0, 0, 3]]), columns[:3].expand(2, 3)
    swapped = mt._convert_indices_from_csr_to_coo(*batch, out_int32=True, transpose=True)
    assert swapped.tolist() == [[0, 0, 0, 1, 1, 1], [1, 3, 0, 1, 3, 0], [0, 0, 1, 1, 1, 1]] and swapped.dtype is mt.int32
    with pytest.raises(RuntimeError, match="supposed to have the same dimensionality; got 1 and 2 dims"):
        mt._convert_indices_from_csr_to_coo(mt.tensor([0, 1]), mt.ones(1, 1))


def test_unsigned_sparse_numbers_are_subtracted_in_the_common_dtype() -> None:
    x, y = mt.tensor([1, 2], dtype=mt.int8), mt.tensor([0, 3], dtype=mt.uint8).to_sparse()
    assert (x - y).tolist() == [1, -1] and (x - y).dtype == mt.int16
    with pytest.raises(RuntimeError, match="bool tensor is not supported"):
        x - (y.to_dense() > 0).to_sparse()


@pytest.mark.parametrize("rows", [0, 10])
def test_a_table_of_no_columns_has_a_sparse_gradient(rows: int) -> None:
    table = nn.Embedding(rows, 0, sparse=True)
    table(mt.tensor([[0, 2]] if rows else [], dtype=mt.int64)).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad.shape == (rows, 0)


def test_parts_that_are_resized_later_leave_the_tensor_alone() -> None:
    places, values = mt.tensor([[0], [1]]), mt.tensor([5.0])
    s = mt.sparse_coo_tensor(places, values, (1, 2))
    places.resize_(2, 3)
    values.resize_(4)
    assert s.coalesce().indices().tolist() == [[0], [1]] and s.to_dense().tolist() == [[0, 5]]


def test_resizing_like_another() -> None:
    s = mt.eye(3).to_sparse()
    like = s.new(2, 4)
    assert s.new().resize_as_(like).shape == (2, 4) and s.resize_as_(mt.zeros(4, 5).to_sparse()).shape == (4, 5)
    assert s.to_dense()[:3, :3].tolist() == mt.eye(3).tolist()
