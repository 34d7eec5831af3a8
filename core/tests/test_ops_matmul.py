"""Products: shapes of every rank, dtypes that do not promote, einsum's syntax, gradients."""

import math
from typing import Any

import pytest

import mortice as mt
from mortice.autograd import gradcheck, gradgradcheck


def _seq(*shape):
    return (mt.arange(math.prod(shape), dtype=mt.float64).reshape(shape) / 5 - 0.7).requires_grad_()


@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((4, 2, 3), (3, 2)), ((4, 2, 3), (3,)),
     ((3,), (4, 3, 2)), ((1, 2, 3), (4, 3, 2)), ((2, 1, 2, 3), (4, 3, 2)), ((2, 3), (4, 3, 2))],
)  # fmt: skip
def test_matmul_gradients_for_every_rank(a, b):
    assert gradcheck(mt.matmul, (_seq(*a), _seq(*b))) and gradgradcheck(mt.matmul, (_seq(*a), _seq(*b)))


def test_matmul_does_not_promote():
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype"):
        mt.matmul(mt.ones(2, 2), mt.ones(2, 2, dtype=mt.float64))
    assert (mt.ones(2, 2) @ mt.ones(2, 2, dtype=mt.float64)).dtype is mt.float64  # as the array API standard has it
    with pytest.raises(RuntimeError, match=r"matmul: mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\); got \(2, 3\) @ \(4, 5\)"):
        mt.ones(2, 3) @ mt.ones(4, 5)
    with pytest.raises(RuntimeError):
        mt.mv(mt.ones(2, 2), mt.ones(2, 2))


def test_what_beta_zero_leaves_out_may_be_nan():
    x = mt.full((2, 2), math.nan)
    assert mt.addmm(x, mt.eye(2), mt.eye(2), beta=0).tolist() == [[1, 0], [0, 1]]
    assert mt.addmm(mt.ones(2), mt.eye(2), mt.eye(2), beta=2, alpha=3).tolist() == [[5, 2], [2, 5]]


@pytest.mark.parametrize(("beta", "left"), [(1, 2), (0, 0)])
def test_what_alpha_zero_leaves_out_may_be_infinite(beta, left):
    x = mt.full((2, 2), math.inf)
    given = {"beta": beta, "alpha": 0}
    batch, two = x.expand(3, 2, 2), mt.full((2,), 2.0)
    for name, of in (("addmm", (x, x)), ("addmv", (x, x[0])), ("addbmm", (batch, batch)), ("baddbmm", (batch, batch))):
        assert (getattr(mt, name)(two, *of, **given) == left).all(), name


def test_sums_with_products_refuse_mixed_dtypes_in_pytorchs_words():
    x, batch = mt.ones(2, 2), mt.ones(1, 2, 2)
    with pytest.raises(RuntimeError, match="baddbmm: Input dtypes must be the same, but got float64 and float32"):
        mt.baddbmm(batch.double(), batch, batch)
    with pytest.raises(RuntimeError, match="addbmm: self and mat2 must have the same dtype, but got float64 and float32"):
        mt.addbmm(x.double(), batch, batch)


@pytest.mark.parametrize(
    ("equation", "shapes", "plain"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], lambda a, b: a @ b),
        ("ij,jk", [(2, 3), (3, 4)], lambda a, b: a @ b),
        ("bij,bjk->bik", [(2, 2, 3), (2, 3, 4)], lambda a, b: a @ b),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 4)], lambda a, b: a @ b),
        ("ii->i", [(3, 3)], lambda a: a.diagonal()),
        ("ii", [(3, 3)], lambda a: a.trace()),
        ("i,j->ij", [(2,), (3,)], mt.outer),
        ("ij->ji", [(2, 3)], lambda a: a.t()),
        ("i,ij,j->", [(2,), (2, 3), (3,)], lambda a, b, c: a @ b @ c),
        ("ij,kj->", [(2, 3), (4, 3)], lambda a, b: (a @ b.t()).sum()),
        ("b...,b...->b", [(2, 3, 4), (2, 3, 4)], lambda a, b: (a * b).sum((1, 2))),
        ("ij,ij->j", [(2, 3), (2, 3)], lambda a, b: (a * b).sum(0)),
        ("ij,kj->i", [(2, 3), (4, 3)], lambda a, b: (a @ b.t()).sum(1)),
        ("ij,ij->ij", [(1, 3), (2, 3)], lambda a, b: a * b),
        ("ij,ij->i", [(2, 1), (2, 3)], lambda a, b: (a * b).sum(1)),
        ("ij,jk->", [(2, 1), (3, 2)], lambda a, b: a.sum() * b.sum()),
    ],
)
def test_einsum(equation, shapes, plain):
    operands = [_seq(*s) for s in shapes]
    assert mt.allclose(mt.einsum(equation, *operands), plain(*operands))
    assert gradgradcheck(lambda *x: mt.einsum(equation, *x), operands)


@pytest.mark.parametrize(
    ("equation", "stride"),  # PyTorch's; what follows, such as dropout's draws, depends on them
    [("nqk,nck->ncq", (15, 3, 1)), ("nqk,nkc->cnq", (3, 15, 1)), ("qmk,ck->mcq", (15, 1, 5)), ("qmk,ck->qcm", (30, 1, 5)),
     ("cm,nqm->nqc", (15, 5, 1)), ("q,c->cq", (3, 1))],
)  # fmt: skip
def test_einsum_multiplies_in_the_order_of_its_output(equation, stride):
    sizes = dict(zip("nqkcm", (2, 3, 4, 5, 6)))
    x, y = (mt.rand([sizes[v] for v in labels]) for labels in equation.split("->")[0].split(","))
    assert mt.einsum(equation, x, y).stride() == stride


@pytest.mark.parametrize("equation", ["bij->ij", "bij->ji", "bij->i", "bij->"])
def test_what_einsum_sums_is_no_view_of_its_operand(equation):
    x = _seq(1, 2, 1)
    before = x.clone()
    mt.einsum(equation, x).fill_(7)
    assert mt.equal(x, before)


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
def test_a_chain_of_one_matrix_is_no_view_of_it():
    x = _seq(2, 3)
    before = x.clone()
    mt.chain_matmul(x).fill_(7)
    assert mt.equal(x, before)


@pytest.mark.parametrize(
    ("equation", "shapes", "stride"),  # PyTorch's
    [("bildsk,biokl->bolsd", ((2, 3, 6, 1, 4, 3), (2, 3, 16, 3, 6)), (384, 1, 64, 16, 16)), ("acf->fa", ((4, 3, 2),), (4, 1)),
     ("b,eafc->bcae", ((3,), (3, 2, 4, 2)), (12, 6, 3, 1)), ("ecbd,e->de", ((4, 2, 2, 3), (4,)), (4, 1))],
)  # fmt: skip
def test_einsum_lays_its_result_as_pytorch_where_dims_are_1_or_summed_alone(equation, shapes, stride):
    assert mt.einsum(equation, *[mt.rand(s) for s in shapes]).stride() == stride


def test_einsum_takes_lists_of_dims():
    a, b = _seq(2, 3), _seq(3, 4)
    assert mt.equal(mt.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    with pytest.raises(RuntimeError, match="does not broadcast"):
        mt.einsum("ij,jk->ik", a, a)
    with pytest.raises(RuntimeError, match="more than once in the output"):
        mt.einsum("ij->ii", a)
    assert mt.equal(mt.einsum(" i j , j k -> i k ", a, b), a @ b)
    for equation in (". ..", "ij - > ij"):
        with pytest.raises(RuntimeError, match="not part of any ellipsis|invalid subscript"):
            mt.einsum(equation, a)


@pytest.mark.parametrize("argument", ["beta", "alpha"])
def test_addr_takes_bools_for_bools_only(argument):
    for dtype in (mt.float32, mt.int64):
        with pytest.raises(RuntimeError, match=f"Boolean {argument} only supported"):
            mt.addr(mt.ones(2, 2, dtype=dtype), mt.ones(2, dtype=dtype), mt.ones(2, dtype=dtype), **{argument: True})
    true = mt.ones(2, dtype=mt.bool)
    assert mt.addr(mt.ones(2, 2, dtype=mt.bool), true, true, **{argument: True}).all()


def test_addr_scales_the_vector_before_the_product_is_made():
    x = mt.full((2,), 1e30)
    assert mt.isfinite(mt.addr(mt.zeros(2, 2), x, x, alpha=1e-30)).all()


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_gradients_of_distances_are_those_of_the_norms_of_differences(p):
    def grads(distances: Any, *xs: Any) -> Any:
        return mt.func.grad(lambda *xs: (distances(*xs) * mt.arange(1.0, 31, dtype=mt.float64)[:, None]).sum(), (0, 1))(*xs)

    # So many numbers that some rows of x have their turn after others.
    mt.manual_seed(0)
    for lead, count in (((), 200), ((2,), 7)):
        x, y = mt.randn(*lead, 30, 50, dtype=mt.float64), mt.randn(count, 50, dtype=mt.float64)
        y[0] = x[..., 1, :].reshape(-1, 50)[0]  # a distance of 0
        found = grads(lambda x, y: mt.cdist(x, y, p, "donot_use_mm_for_euclid_dist"), x, y)
        mt.testing.assert_close(found, grads(lambda x, y: mt.norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1), x, y))
    y = mt.cat([mt.randn(99, 50, dtype=mt.float64), y[:1], y[:1]])
    row, other = mt.triu_indices(101, 101, 1)
    weights = mt.rand(len(row), dtype=mt.float64)
    found = mt.func.grad(lambda y: (mt.nn.functional.pdist(y, p) * weights).sum())(y)
    mt.testing.assert_close(found, mt.func.grad(lambda y: (mt.norm(y[row] - y[other], p, -1) * weights).sum())(y))



def test_products_of_other_kinds():
    a, b = _seq(2, 3), _seq(3, 2)
    assert mt.allclose(mt.tensordot(a, b, ([0, 1], [1, 0])), (a * b.t()).sum())
    assert mt.kron(mt.eye(2), mt.ones(1, 2)).tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert mt.inner(mt.tensor(2.0), mt.ones(2), out=mt.empty(2, dtype=mt.float64)).tolist() == [2, 2]  # of no dims: mul, as there
    with pytest.warns(UserWarning, match="without specifying the dim arg is deprecated"):
        assert mt.cross(mt.tensor([1, 0, 0]), mt.tensor([0, 1, 0])).tolist() == [0, 0, 1]
    with pytest.warns(UserWarning, match="torch.meshgrid: in an upcoming release"):
        assert mt.meshgrid(a[0], b[0])[0].shape == (3, 2)
    with pytest.warns(UserWarning, match=r"cov\(\): degrees of freedom"):
        assert mt.cov(mt.tensor([1.0])).isnan()
    assert mt.allclose(mt.linalg.multi_dot([a, b, a]), a @ b @ a)
    given = [a[0], b, a[:, 0]]
    assert mt.allclose(mt.linalg.multi_dot(tuple(given)), mt.linalg.multi_dot(given)) and given[0].shape == a[0].shape
    assert mt.cov(mt.tensor([[1.0, 2, 3], [2, 4, 6]])).tolist() == [[1, 2], [2, 4]]


def test_distances_have_no_nan_gradient_at_zero():
    x = _seq(3, 2)
    mt.cdist(x, x).sum().backward()
    assert mt.isfinite(x.grad).all()
    far = mt.cdist(_seq(30, 2), x.detach())
    near = mt.cdist(_seq(30, 2), x.detach(), compute_mode="donot_use_mm_for_euclid_dist")
    assert mt.allclose(far, near, atol=1e-6)


def test_distances_by_a_product_are_as_near_as_pytorchs():
    x = mt.linspace(0, 30, 1001)[:, None]
    # Adding both squares first would be off by 0.0029, which is a tenth of the way from one row to the next.
    assert (mt.cdist(x, x) - (x - x.T).abs()).abs().max() < 2e-3


def test_complex_factors_do_not_make_real_sums_complex():
    x = mt.ones(2, 2)
    for factors in ({"beta": 1j}, {"alpha": 2j}):
        with pytest.raises(RuntimeError, match="alpha and beta to be real beside float32 operands"):
            mt.addmm(x, x, x, **factors)
    z = x * 1j
    assert mt.addmm(z, z, z, beta=1j).tolist() == [[-3, -3], [-3, -3]]
    with pytest.raises(ValueError, match="at least one operand"):
        mt.einsum("i")


def test_einsum_that_sums_one_element_multiplies_dtypes_as_mul_does():
    for d, want in ((mt.bfloat16, mt.bfloat16), (mt.bool, mt.uint8), (mt.float32, mt.float32)):
        for equation, shapes in (("ij,kj->ik", ((2, 1), (3, 1))), ("ijk,lkj->il", ((1, 1, 1), (1, 1, 1)))):
            x, y = mt.ones(shapes[0], dtype=mt.uint8), mt.ones(shapes[1], dtype=d)
            assert mt.einsum(equation, x, y).dtype is want
    x, y = mt.rand(2, 1, 4, requires_grad=True), mt.rand(3, 1, 4)
    out = mt.einsum("abc,dbc->ad", x, y)
    mt.testing.assert_close(out, x[:, 0] @ y[:, 0].T)
    mt.testing.assert_close(mt.autograd.grad(out.sum(), x)[0], y.sum((0, 1)).expand(2, 1, 4))
    with pytest.raises(RuntimeError, match="same dtype"):
        mt.einsum("ij,kj->ik", mt.ones(2, 2, dtype=mt.uint8), mt.ones(3, 2))


def test_bytes_are_multiplied_into_int32():
    x, y = mt.full((2, 3), 100, dtype=mt.int8), mt.full((3, 4), -90, dtype=mt.int8)
    made = mt._int_mm(x, y)
    assert made.dtype is mt.int32 and made.tolist() == [[-27000] * 4] * 2
    assert mt._int_mm(x, y, out=(out := mt.empty_like(made))) is out
    with pytest.raises(RuntimeError, match="_int_mm: Expected mat2 dtype to be of type int8; got mortice.float32"):
        mt._int_mm(x, y.float())


@pytest.mark.parametrize("dtype", [mt.bfloat16, mt.float16])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [("addmm", ((8, 5), (8, 16), (16, 5))), ("addmv", ((40,), (40, 16), (16,))), ("baddbmm", ((2, 8, 5), (2, 8, 16), (2, 16, 5))),
     ("addbmm", ((8, 5), (2, 8, 16), (2, 16, 5)))],
)  # fmt: skip
def test_sums_with_products_are_rounded_once(dtype, name, shapes):
    mt.manual_seed(0)
    operands = [mt.randn(s).to(dtype) for s in shapes]
    found = getattr(mt, name)(*operands, beta=0.7, alpha=1.3)
    wanted = getattr(mt, name)(*[x.double() for x in operands], beta=0.7, alpha=1.3)
    # What float32 rounded before may fall on the other side of a tie; rounding thrice misses a third of the numbers.
    assert found.dtype is dtype and (found != wanted.to(dtype)).sum() <= found.numel() // 30
