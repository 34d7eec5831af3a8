"""Compressed sparse tensors: the four layouts, what is checked, what can be done with them, and their gradients."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import mortice as mt
from mortice import nn

DENSE = [[1.0, 0.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 4.0]]
LAYOUTS = {"csr": (), "csc": (), "bsr": ((1, 2),), "bsc": ((3, 2),)}


def dense() -> Any:
    return mt.tensor(DENSE)


@pytest.fixture(params=LAYOUTS)
def s(request: Any) -> Any:
    return getattr(dense(), f"to_sparse_{request.param}")(*LAYOUTS[request.param])


@pytest.fixture
def a() -> Any:
    return mt.sparse_csr_tensor([0, 2, 2, 4], [0, 2, 1, 3], [1.0, -2.0, 3.0, 4.0], (3, 4))


# ---- what they are ----


def test_a_compressed_tensor_says_what_it_is(a: Any) -> None:
    assert type(a) is mt.Tensor and a.layout is mt.sparse_csr and a.is_sparse_csr and not a.is_sparse
    assert (a.shape, a.dtype, a.device, a._nnz(), a.sparse_dim(), a.dense_dim()) == (
        (3, 4),
        mt.float32,
        mt.ones(1).device,
        4,
        2,
        0,
    )
    assert (
        a.crow_indices().tolist() == [0, 2, 2, 4]
        and a.col_indices().tolist() == [0, 2, 1, 3]
        and a.values().tolist() == [1, -2, 3, 4]
    )
    turned = a.t()
    assert (
        turned.layout is mt.sparse_csc and not turned.is_sparse_csr and turned.ccol_indices().tolist() == [0, 2, 2, 4]
    )
    assert turned.row_indices().tolist() == [0, 2, 1, 3] and turned.to_dense().tolist() == dense().t().tolist()
    assert a.to_dense().tolist() == DENSE and not isinstance(a, mt.FloatTensor)
    for name, kind, x in (("ccol_indices", "column", a), ("row_indices", "column", a), ("crow_indices", "row", turned)):
        got = str(x.layout)[-3:].title()
        with pytest.raises(
            RuntimeError, match=f"^{name} expected sparse {kind} compressed tensor layout but got Sparse{got}$"
        ):
            getattr(x, name)()
    with pytest.raises(
        RuntimeError, match="^col_indices expected sparse row compressed tensor layout but got Strided$"
    ):
        mt.ones(2).col_indices()
    with pytest.raises(RuntimeError, match="^coalesce expected sparse coordinate tensor layout but got SparseCsr$"):
        a.coalesce()
    with pytest.raises(RuntimeError, match="^stride: a sparse tensor has no memory of its own"):
        a.stride()


def test_it_is_printed_as_pytorch_prints_it(a: Any) -> None:
    where = "" if a.is_cpu else f" device={str(a.device)!r},"
    text = "tensor(crow_indices=tensor([0, 2, 2, 4]),\n       "
    text += "col_indices=tensor([0, 2, 1, 3]),\n       values=tensor([ 1., -2.,  3.,  4.]),"
    assert repr(a).startswith(f"{text}{where}") and " ".join(repr(a).split()).endswith(
        "size=(3, 4), nnz=4, layout=mortice.sparse_csr)"
    )
    assert repr(a.requires_grad_()).endswith("requires_grad=True)") and "grad_fn=<MulBackward0>" in repr(a * 2)


def test_all_layouts_turn_into_each_other(s: Any) -> None:
    assert s.to_dense().tolist() == DENSE and s.to_sparse().coalesce().to_dense().tolist() == DENSE
    for name, block in LAYOUTS.items():
        layout = getattr(mt, f"sparse_{name}")
        for x in (s, s.to_sparse_coo(), dense()):
            made = x.to_sparse(layout=layout, blocksize=block[0] if block else None)
            assert made.layout is layout and made.to_dense().tolist() == DENSE
    assert getattr(s, f"to_{str(s.layout)[8:]}")(*LAYOUTS[str(s.layout)[-3:]]) is s
    assert s.to_sparse(layout=mt.strided).tolist() == DENSE
    blocks = dense().to_sparse_bsr((1, 2))
    assert blocks.values().tolist() == [[[1, 0]], [[-2, 0]], [[0, 3]], [[0, 4]]] and blocks.col_indices().tolist() == [
        0,
        1,
        0,
        1,
    ]


def test_batches_and_values_with_dims() -> None:
    x = mt.tensor([[[1.0, 0.0], [2.0, 3.0]], [[0.0, 4.0], [5.0, 6.0]]])
    for name in ("csr", "csc"):
        made = getattr(x, f"to_sparse_{name}")()
        assert (
            made.values().shape == (2, 3)
            and made.to_dense().tolist() == made.transpose(0, 0).to_dense().tolist() == x.tolist()
        )
        assert made[1].to_dense().tolist() == x[1].tolist() and made[1].layout is made.layout
        assert (made @ x).tolist() == (x @ x).tolist() and made.transpose(1, 2).to_dense().tolist() == x.transpose(
            1, 2
        ).tolist()
    wide = mt.stack([x[0], x[0] * 2], -1).to_sparse_csr(dense_dim=1)
    assert (wide.values().shape, wide.dense_dim(), wide.sparse_dim()) == ((3, 2), 1, 2) and wide.to_dense()[
        ..., 1
    ].tolist() == (x[0] * 2).tolist()
    with pytest.raises(RuntimeError, match="Expect the same number of specified elements per batch"):
        mt.tensor([[[1.0, 0.0]], [[1.0, 1.0]]]).to_sparse_csr()
    with pytest.raises(RuntimeError, match="selecting sparse dimensions is not supported for batched"):
        x.to_sparse_csr()[:, 0]


def test_none_at_all() -> None:
    for made in (
        mt.zeros(3, 4, layout=mt.sparse_csr),
        mt.empty((3, 4), layout=mt.sparse_csc),
        mt.zeros(3, 4).to_sparse_bsr((3, 2)),
    ):
        assert (
            made._nnz() == 0 and made.to_dense().tolist() == [[0] * 4] * 3 and (made @ mt.ones(4)).tolist() == [0] * 3
        )
    for shape in ((0, 4), (3, 0), (0, 0), (0, 3, 4)):
        made = mt.zeros(shape).to_sparse_csr()
        assert made.shape == shape and made.to_dense().shape == shape
        assert (made @ mt.ones(*shape[:-2], shape[-1], 2)).shape == (*shape[:-1], 2)
    made = mt.sparse_csr_tensor([0, 0], [], [])
    assert made.shape == (1, 0) and repr(made).count("size=(1, 0)") == 1


# ---- making one ----


def test_index_dtypes_are_kept_and_arrays_are_taken() -> None:
    numpy = pytest.importorskip("numpy")
    starts, places = numpy.array([0, 1, 2], "int32"), numpy.array([1, 0], "int32")
    made = mt.sparse_csr_tensor(starts, places, numpy.array([1.5, 2.5]), size=(2, 2), dtype=mt.float32)
    assert made.dtype is mt.float32 and made.col_indices().dtype is made.to_sparse_csc().row_indices().dtype is mt.int32
    assert (made @ mt.eye(2)).tolist() == [[0, 1.5], [2.5, 0]]
    places[0] = 0
    assert made.to_dense().tolist() == [[0, 1.5], [2.5, 0]]
    by_name = mt.sparse_csc_tensor(ccol_indices=[0, 1, 2], row_indices=[1, 0], values=[1, 2])
    assert by_name.dtype is mt.int64 and by_name.to_dense().tolist() == [[0, 2], [1, 0]]
    assert mt.sparse_compressed_tensor([0, 1], [0], [[[1, 2]]], layout=mt.sparse_bsc).to_dense().tolist() == [[1, 2]]
    unsorted = mt.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2))
    assert unsorted.to_dense().tolist() == [[2, 1]] and (
        unsorted * unsorted.to_sparse_coo().to_sparse_csr()
    ).to_dense().tolist() == [[4, 1]]


ONES = [1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mt.sparse_csr_tensor(mt.tensor(0), [0, 1], ONES, (1, 2)), "crow_indices must have dimensionality >= 1 but got 0"),
        (lambda: mt.sparse_csr_tensor([[0, 2]], [0, 1], ONES, (1, 2)), "dimensionalities must be equal but got 2 and 1, respectively"),
        (lambda: mt.sparse_bsr_tensor([0, 2], [0, 1], ONES, (1, 2)), r"block dimensionalities \(=0 \+ 2\) but got 1"),
        (lambda: mt.sparse_csr_tensor([0, 2], [0, 1], ONES, (2,)), r"dense dimensionalities \(=0 \+ 2 \+ 0\) but got 1"),
        (lambda: mt.sparse_csr_tensor([[0, 2]], [[0, 1]], [ONES], (2, 1, 2)), r"tensor batch dimensions \(=\[2\]\)"),
        (lambda: mt.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]], (1, 3)), r"\(=3\) must be divisible with blocksize\[1\] \(=2\)"),
        (lambda: mt.sparse_csr_tensor([0, 1, 2], [0, 1], ONES, (1, 2)), r"equal to the number of rows \+ 1 \(=2\), but got 3"),
        (lambda: mt.sparse_csc_tensor([0, 1, 2], [0, 1], ONES, (2, 1)), r"equal to the number of columns \+ 1 \(=2\), but got 3"),
        (lambda: mt.sparse_csr_tensor([0, 2], [0, 1, 1], ONES, (1, 2)), r"equal to nnz \(=2\) as defined by values.shape\[0\], but got 3"),
        (lambda: mt.sparse_csr_tensor(mt.tensor([0, 2]).short(), mt.tensor([0, 1]).short(), ONES), "must be Int or Long, but got Short"),
        (lambda: mt.sparse_csr_tensor([1, 2], [0, 1], ONES, (1, 2)), r"`crow_indices\[..., 0\] == 0` is not satisfied"),
        (lambda: mt.sparse_csr_tensor([0, 1], [0, 1], ONES, (1, 2)), r"`crow_indices\[..., -1\] == nnz` is not satisfied"),
        (lambda: mt.sparse_csc_tensor([0, 3, 2], [0, 1], ONES, (2, 2)), r"1:\] - ccol_indices\[..., :-1\] <= nrows`"),
        (lambda: mt.sparse_csr_tensor([0, 2], [0, 2], ONES, (1, 2)), "`0 <= col_indices < ncols` is not satisfied"),
        (lambda: mt.sparse_csr_tensor([0, 2], [1, 0], ONES, (1, 2), check_invariants=True), "are sorted and distinct along"),
        (lambda: mt.sparse_csr_tensor([0, 2], mt.tensor([0, 1]).int(), ONES, check_invariants=True), "must have the same dtype"),
        (lambda: mt.sparse_compressed_tensor([0, 2], [0, 1], ONES), "expected sparse compressed tensor layout but got none"),
        (lambda: mt.sparse_compressed_tensor([0, 2], [0, 1], ONES, layout=mt.strided), "compressed tensor layout but got Strided"),
        (lambda: mt.sparse_csr_tensor([0, 2], [0, 1], ONES, layout=mt.sparse_csc), "layout must be SparseCsr but got SparseCsc"),
        (lambda: mt.ones(2, 2).to_sparse_bsr((2, 3)), r"tensor sparse size \(2,2\) must be divisible by given blocksize \(2,3\)"),
        (lambda: mt.ones(2, 2).to_sparse(layout=mt.sparse_bsr), "to SparseBsr without blocksize argument given is not supported"),
        (lambda: mt.ones(2, 2).to_sparse(layout=mt.sparse_csr, blocksize=(1, 1)), "to SparseCsr with blocksize argument given"),
        (lambda: mt.ones(2).to_sparse().to_sparse_csr(), r"with sparse_dim\(\)!=2 is not supported"),
        (lambda: mt.zeros(2, layout=mt.sparse_csr), "Only batched sparse compressed"),
        (lambda: mt.zeros_like(mt.ones(2, 2).to_sparse_csr(), layout=mt.sparse_csc), "empty_like with different sparse layout"),
    ],
)  # fmt: skip
def test_what_makes_no_compressed_tensor_is_refused(make: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        make()


def test_checks_may_be_asked_for() -> None:
    check = mt.sparse.check_sparse_tensor_invariants

    def wrong() -> Any:
        return mt.sparse_csr_tensor([0, 2], [1, 0], ONES, (1, 2))

    assert not check.is_enabled() and wrong().shape == (1, 2)
    with check():
        assert check.is_enabled()
        with pytest.raises(RuntimeError, match="sorted and distinct"):
            wrong()
        with check(False):
            assert wrong().shape == (1, 2)
    check.enable()
    assert check.is_enabled()
    check.disable()
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        check()(wrong)()
    assert not check.is_enabled()
    with pytest.raises(TypeError, match="expected crow_indices, col_indices, values"):
        mt.sparse_csr_tensor([0, 2], [0, 1])
    with pytest.raises(IndexError, match="at least 2 dims"):
        mt.ones(2).to_sparse_csr()


# ---- what can be done with them ----


def test_arithmetic(s: Any) -> None:
    d = dense()

    def same(made: Any, want: Any) -> None:
        assert made.layout is s.layout and made.to_dense().tolist() == want.tolist()

    for made, want in (
        (s * 2, d * 2),
        (2 * s, d * 2),
        (s / 2, d / 2),
        (-s, -d),
        (s + s, d * 2),
        (s - s * 3, d * -2),
        (s * s, d * d),
        (s * d, d * d),
    ):
        same(made, want)
    for name in ("abs", "sin", "sgn", "floor", "relu", "expm1", "isinf", "isposinf"):
        same(getattr(mt, name)(s), getattr(mt, name)(d))
    same(mt.zeros_like(s), d * 0)
    assert mt.ones_like(s)._nnz() == s._nnz() and mt.zeros_like(d, layout=mt.sparse_csr).is_sparse_csr
    assert mt.zeros_like(s, layout=mt.strided).tolist() == (d * 0).tolist()
    other = mt.tensor([[0.0, 5.0, 1.0, 0.0]] * 3)
    same(
        s
        + other.to_sparse(
            layout=s.layout,
            blocksize=LAYOUTS[str(s.layout)[-3:]][0] if s.layout in (mt.sparse_bsr, mt.sparse_bsc) else None,
        ),
        d + other,
    )
    assert (d + s).tolist() == (s + d).tolist() == (d * 2).tolist() and (other - s).tolist() == (other - d).tolist()
    assert s.sum().item() == 6 and mt.sparse.sum(s).item() == 6 and s.long().sum().dtype is mt.int64
    same(s.clone().mul_(2), d * 2)
    same(s.clone().add_(s), d * 2)
    same(s.clone().zero_(), d * 0)
    for kind in (mt.float64, mt.int32, mt.bool, mt.complex64):
        same(s.to(kind), d.to(kind))
    assert s.to(s.device) is s and s[2].to_dense().tolist() == DENSE[2] and s[:, 1].is_sparse


def test_products(s: Any) -> None:
    d, x = dense(), mt.arange(12.0).reshape(4, 3)
    for made in (s @ x, mt.mm(s, x), mt.sparse.mm(s, x), mt.spmm(s, x), (x.t() @ s.t()).t()):
        assert made.tolist() == (d @ x).tolist() and made.layout is mt.strided
    assert s.mv(x[:, 1]).tolist() == (s @ x[:, 1]).tolist() == (d @ x[:, 1]).tolist()
    assert (mt.ones(2, 5, 3) @ s).tolist() == (mt.ones(2, 5, 3) @ d).tolist()
    assert nn.functional.linear(x.t(), s, mt.ones(3)).tolist() == (x.t() @ d.t() + 1).tolist()
    assert mt.addmm(mt.ones(3, 3), s, x, beta=2, alpha=0.5).tolist() == (d @ x * 0.5 + 2).tolist()
    assert mt.addmm(mt.ones(3, 3), s, s.t(), beta=0).tolist() == (d @ d.t()).tolist()
    both = s @ s.t()
    assert both.is_sparse_csr and both.to_dense().tolist() == (d @ d.t()).tolist()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        s @ mt.ones(3, 3)
    with pytest.raises(NotImplementedError, match="matmul: not implemented for sparse tensors"):
        s @ s.t().to_sparse_coo()


def test_sampled_products(a: Any) -> None:
    x, y = mt.arange(6.0).reshape(3, 2), mt.arange(8.0).reshape(2, 4)
    made = mt.sparse.sampled_addmm(a, x, y, beta=2.0, alpha=0.5)
    assert made.is_sparse_csr and made.to_dense().tolist() == ((x @ y * 0.5 + dense() * 2) * (dense() != 0)).tolist()
    with pytest.raises(RuntimeError, match="Expected input to have sparse csr layout, but got SparseCsc"):
        mt.sparse.sampled_addmm(a.to_sparse_csc(), x, y)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        mt.sparse.sampled_addmm(a, y, x)


def test_sums_along_a_dim_are_of_csr(a: Any) -> None:
    for dim in (0, 1, -1):
        made = a.sum(dim, keepdim=True)
        assert made.is_sparse_csr and made.to_dense().tolist() == dense().sum(dim, keepdim=True).tolist()
    assert a.sum((0, 1), keepdim=True).to_dense().tolist() == [[6]]
    for wrong in (lambda: a.sum(0), lambda: a.to_sparse_csc().sum(0, keepdim=True)):
        with pytest.raises(RuntimeError, match="sum: reduction operations on compressed tensors"):
            wrong()


def test_an_index_for_each_dim_reads_what_lies_there(s: Any) -> None:
    assert [[s[i, j].item() for j in range(4)] for i in range(3)] == DENSE and s[2, -1].layout is mt.strided
    batch = mt.stack([dense(), dense() * 2]).to_sparse_csr()
    assert batch[1, 2, 3].item() == 8


def test_normal_numbers_are_drawn_where_there_are_any(s: Any) -> None:
    mt.manual_seed(0)
    made = mt.randn_like(s, dtype=mt.float64, requires_grad=True)
    assert made.layout is s.layout and made.shape == s.shape and made.dtype is mt.float64 and made.requires_grad
    assert (made.values().shape == s.values().shape) and made.values().unique().numel() == s.values().numel()
    with pytest.raises(NotImplementedError, match="not implemented for sparse tensors"):
        mt.randn_like(dense().to_sparse())


def test_picks_the_values_of_a_dense_tensor(s: Any) -> None:
    made = mt.full((3, 4), 7.0).sparse_mask(s)
    assert made.layout is s.layout and made._nnz() == s._nnz() and made.values().unique().tolist() == [7]


REFUSED = {
    "exp": lambda s: s.exp(), "max": lambda s: s.max(), "eq": lambda s: s == s, "view": lambda s: s.reshape(12),
    "to_host": lambda s: s.tolist(), "getitem": lambda s: s[:1, 1], "norm": lambda s: s.norm(),
    "index_select": lambda s: s.index_select(0, mt.tensor([0])),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused_by_name(name: str, s: Any) -> None:
    with pytest.raises(
        NotImplementedError,
        match=rf"^{name}.*: not implemented for sparse tensors; got layout mortice.{str(s.layout)[8:]} of",
    ):
        REFUSED[name](s)


# ---- gradients ----


def test_gradients_of_a_leaf_have_its_layout(s: Any) -> None:
    x, leaf = mt.arange(8.0).reshape(4, 2).requires_grad_(), s.clone().requires_grad_()
    for times in (1, 2):
        mt.sparse.mm(leaf, x).sum().backward()
        assert leaf.grad.layout is s.layout and leaf.grad._nnz() == s._nnz()
        want = (mt.ones(3, 2) @ x.detach().t()).sparse_mask(s).to_dense() * times
        assert leaf.grad.to_dense().tolist() == want.tolist()
    assert x.grad.tolist() == (dense().t() @ mt.ones(3, 2) * 2).tolist()
    for fn in (
        lambda t: t.t().to_dense(),
        lambda t: (t * t).values(),
        lambda t: t.relu().sum(),
        lambda t: t.to_sparse_coo().coalesce().values(),
        abs,
    ):
        (g,) = mt.autograd.grad(fn(leaf).sum(), leaf)
        assert g.layout is s.layout


def test_gradients_reach_values_and_dense_tensors() -> None:
    places = mt.tensor([0, 2, 2, 4]), mt.tensor([0, 2, 1, 3])
    v = mt.tensor([1.0, -2.0, 3.0, 4.0], dtype=mt.float64, requires_grad=True)
    x = mt.rand(4, 2, dtype=mt.float64, requires_grad=True)

    def made(v: Any) -> Any:
        return mt.sparse_csr_tensor(*places, v, (3, 4))

    assert made(v).grad_fn.name() == "SparseCompressedTensorBackward0"
    assert mt.autograd.gradcheck(lambda v, x: made(v) @ x, (v, x)) and mt.autograd.gradgradcheck(
        lambda v, x: made(v) @ x, (v, x)
    )
    for fn in (
        lambda v: made(v).to_sparse_csc().values(), lambda v: made(v).to_sparse_bsr((1, 2)).values(),
        lambda v: (made(v) * made(v)).to_dense(),
        lambda v: mt.sparse.mm(made(v), made(v).t()).to_dense(), lambda v: made(v).sum(1, keepdim=True).to_dense(),
        lambda v: mt.sparse.sampled_addmm(made(v), x.detach()[:3], x.detach().t(), beta=2.0).values(),
    ):  # fmt: skip
        assert mt.autograd.gradcheck(fn, (v,))
    for name, block in LAYOUTS.items():
        d = dense().double().requires_grad_()
        (getattr(d, f"to_sparse_{name}")(*block) * 3).values().sum().backward()
        assert d.grad[0, 0].item() == 3 and d.grad[2, 3].item() == 3


# ---- files, and names for tensors in coordinate form ----


def test_copies_and_files(s: Any) -> None:
    file = io.BytesIO()
    layer = nn.Module()
    layer.weight = nn.Parameter(s.clone())
    layer.register_buffer("mask", s)
    mt.save({**layer.state_dict(), "leaf": layer.weight}, file)
    file.seek(0)
    loaded = mt.load(file)
    assert type(loaded["leaf"]) is nn.Parameter and loaded["leaf"].requires_grad
    for x in (*loaded.values(), pickle.loads(pickle.dumps(s)), copy.deepcopy(s), copy.copy(s), s.detach(), s.cpu()):
        assert x.layout is s.layout and x.values().shape == s.values().shape and x.to_dense().tolist() == DENSE
    layer.load_state_dict(layer.state_dict())


def test_names_for_tensors_in_coordinate_form() -> None:
    c, x = dense().to_sparse(), mt.arange(8.0).reshape(4, 2)
    for made in (mt.hspmm(c, x), mt.smm(c, x), mt.hsmm(c, x), c.smm(x)):
        assert made.is_sparse and made.to_dense().tolist() == (dense() @ x).tolist()
    assert mt.hspmm(c, x).sparse_dim() == 1 and mt.hspmm(c, x)._nnz() == 2
    base = mt.ones(3, 2).to_sparse()
    for made in (
        mt.sspaddmm(base, c, x, beta=2, alpha=3),
        base.sspaddmm(c, x, beta=2, alpha=3),
        mt.saddmm(base, c, x, beta=2, alpha=3),
    ):
        assert made.is_sparse and made.to_dense().tolist() == (dense() @ x * 3 + 2).tolist()
    assert c.clone().sparse_resize_((4, 5), 2, 0).to_dense()[:3, :4].tolist() == DENSE
    assert mt.sparse_coo_tensor((2, 2)).resize_as_sparse_(c).shape == (3, 4)
    cleared = c.clone().sparse_resize_and_clear_((2, 2, 3), 1, 2)
    assert (cleared._nnz(), cleared.shape, cleared.sparse_dim()) == (0, (2, 2, 3), 1)
    with pytest.raises(RuntimeError, match="shrinking the size"):
        c.clone().sparse_resize_((2, 4), 2, 0)
    with pytest.raises(RuntimeError, match=r"sparse_dim \(1\) \+ dense_dim \(0\), but got 2"):
        c.clone().sparse_resize_((3, 4), 1, 0)
    with pytest.raises(RuntimeError, match=r"changing the number of dense dimensions \(from 0 to 1\)"):
        c.clone().sparse_resize_((3, 4, 1), 2, 1)
    a = c.to_sparse_csr()
    for name in ("crow_indices", "col_indices", "values"):
        assert getattr(mt, f"{name}_copy")(a).tolist() == getattr(a, name)().tolist()
    assert (
        mt.ccol_indices_copy(a.t()).tolist() == a.crow_indices().tolist()
        and mt.indices_copy(c).tolist() == c.indices().tolist()
    )


def test_optimisers_do_not_take_compressed_gradients(s: Any) -> None:
    leaf = s.clone().requires_grad_()
    (leaf @ mt.ones(4)).sum().backward()
    with pytest.raises(RuntimeError, match="sparse"):
        mt.optim.Adam([leaf]).step()


def test_products_of_a_row_may_be_reduced_otherwise(a: Any) -> None:
    x = mt.arange(8.0).reshape(4, 2).requires_grad_()
    leaf = a.clone().requires_grad_()
    want = {"mean": [[-4, -4.5], [0, 0], [15, 18.5]], "amax": [[0, 1], [0, 0], [24, 28]], "amin": [[-8, -10], [0, 0], [6, 9]]}
    for reduce, rows in want.items():
        assert mt.sparse.mm(a, x.detach(), reduce).tolist() == rows
    found, over = mt.autograd.grad(mt.sparse.mm(leaf, x, "amax").sum(), (leaf, x))
    assert found.is_sparse_csr and found.values().tolist() == [1, 0, 0, 13] and over.tolist() == [[1, 1], [0, 0], [0, 0], [4, 4]]
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got most"):
        mt.sparse.mm(a, x, "most")
    for name in ("max", "min"):
        assert mt.equal(mt.sparse.mm(a, x, name), mt.sparse.mm(a, x, "a" + name))
    with pytest.raises(NotImplementedError, match="expected a sparse CSR matrix and a dense one for reduce='mean'"):
        mt.sparse.mm(a.to_sparse_csc(), x, "mean")


def test_sparse_tensors_are_compared_part_by_part(a: Any) -> None:
    c = a.to_sparse_coo()
    mt.testing.assert_close(a, a.clone())
    mt.testing.assert_close(c, mt.sparse_coo_tensor(c.indices(), c.values(), c.shape))
    mt.testing.assert_close(a, dense(), check_layout=False)
    other = mt.sparse_csr_tensor([0, 2, 2, 4], [0, 3, 1, 3], [1.0, -2.0, 3.0, 4.0], (3, 4))
    for x, y, text in (
        (a, a * 2, "^Sparse CSR values are not close!\n\nMismatched elements: 4 / 4"),
        (c, c * 2, "^Sparse COO values are not close!"),
        (a, c, "attribute 'layout' do not match: mortice.sparse_csr != mortice.sparse_coo"),
        (a, other, "^Sparse CSR col_indices are not equal!"),
        (a, mt.ones(3, 4).to_sparse_csr(), "The number of specified values in sparse CSR tensors does not match: 4 != 12"),
    ):
        with pytest.raises(AssertionError, match=text):
            mt.testing.assert_close(x, y)


class Graphs(mt.utils.data.Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        return (dense() * (i + 1)).to_sparse_csr() if i else dense().to_sparse()


def test_loaders_and_pipes_hand_them_over(s: Any) -> None:
    found = list(mt.utils.data.DataLoader(Graphs(), batch_size=None, num_workers=1))
    assert found[0].is_sparse and found[1].is_sparse_csr and found[1].to_dense().tolist() == (dense() * 2).tolist()
    here, there = mt.multiprocessing.Pipe()
    here.send(s)
    got = there.recv()
    assert got.layout is s.layout and got.to_dense().tolist() == DENSE
