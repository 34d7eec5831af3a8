"""Sparse tensors beside PyTorch's: values, gradients and files over many shapes, with repeated places and without any."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mortice as mt

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:log1p_backward"),
    pytest.mark.filterwarnings("ignore:.*sparse.*invariant"),
    pytest.mark.filterwarnings("ignore:.*nvariant"),
]
SHAPES = [(4, 5, 8), (3, 3, 20), (6, 2, 0), (1, 7, 5), (5, 1, 3)]  # rows, columns, how many values


def pair(shape: tuple[int, ...], many: int, dense: int = 0, kind: str = "float64", seed: int = 0) -> list[Any]:
    """Return the same places and values in both libraries, the values as leaves."""
    rng = np.random.default_rng(seed)
    n = len(shape) - dense
    places = np.stack([rng.integers(0, size, many) for size in shape[:n]])
    values = 3 * rng.standard_normal((many, *shape[n:]))
    made = []
    for t in (torch, mt):
        v = t.tensor(values).to(getattr(t, kind))
        v.requires_grad_(v.is_floating_point())
        made.append((v, t.sparse_coo_tensor(t.tensor(places), v, shape)))
    return made


def array(x: Any) -> Any:
    x = x.detach()
    return np.asarray((x.to_dense() if x.is_sparse else x).cpu().to("cpu").tolist())


def same(mine: Any, want: Any) -> None:
    assert mine.is_sparse == want.is_sparse and tuple(mine.shape) == tuple(want.shape)
    assert str(mine.dtype).partition(".")[2] == str(want.dtype).partition(".")[2]
    if want.is_sparse:
        assert (mine.sparse_dim(), mine.dense_dim()) == (want.sparse_dim(), want.dense_dim())
        mine, want = mine.coalesce(), want.coalesce()
        assert mine.indices().tolist() == want.indices().tolist()
    np.testing.assert_allclose(array(mine), array(want), rtol=2e-6, atol=1e-9)


OPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sparse.mm": lambda t, s, x: t.sparse.mm(s, x),
    "matmul": lambda t, s, x: s @ x,
    "mm from the right": lambda t, s, x: t.mm(x.t(), s.t()),
    "mv": lambda t, s, x: s.mv(x[:, 0]),
    "spmm": lambda t, s, x: t.spmm(s, x),
    "addmm": lambda t, s, x: t.sparse.addmm(x[:1].expand(s.shape[0], x.shape[1]), s, x, beta=0.5, alpha=2.0),
    "linear": lambda t, s, x: t.nn.functional.linear(s, x.t()),
    "of two sparse": lambda t, s, x: t.sparse.mm(s, s.t()),
    "dense + sparse": lambda t, s, x: (x[:, :1].t() * 2).expand(s.shape) + s,
    "dense - sparse": lambda t, s, x: (x[:, :1].t() * 2).expand(s.shape) - s,
    "sum": lambda t, s, x: t.sparse.sum(s),
    "sum over rows": lambda t, s, x: t.sparse.sum(s, 0),
    "sum over columns": lambda t, s, x: s.detach().sum(-1),
    "sum in another dtype": lambda t, s, x: t.sparse.sum(s, 1, dtype=t.float32),
    "times a number": lambda t, s, x: (2.5 * s) / 3 - s,
    "times a tensor": lambda t, s, x: s * t.tensor(2.0, dtype=t.float64),
    "times itself": lambda t, s, x: s.coalesce() * s.coalesce(),
    "other places": lambda t, s, x: s * 3 + s.coalesce().t().coalesce().t(),
    "neg": lambda t, s, x: -s,
    "abs": lambda t, s, x: s.detach().abs(),
    "pow": lambda t, s, x: s.detach() ** 2,
    "pow of complex numbers": lambda t, s, x: s.detach().to(t.complex128) ** 2,
    "complex and back": lambda t, s, x: s.to(t.complex128).to_dense().abs(),
    "tanh": lambda t, s, x: s.detach().tanh(),
    "log1p": lambda t, s, x: (s * 0.1).log1p(),
    "sqrt": lambda t, s, x: s.detach().abs().sqrt(),
    "softmax": lambda t, s, x: t.sparse.softmax(s, 1),
    "log_softmax": lambda t, s, x: t.sparse.log_softmax(s, 0),
    "coalesce": lambda t, s, x: s.coalesce().values(),
    "to_dense": lambda t, s, x: s.to_dense(),
    "sparse_mask": lambda t, s, x: (x[:, :1].t()).expand(s.shape).sparse_mask(s.detach().coalesce()),
    "clone": lambda t, s, x: s.clone().to_dense(),
    "detach": lambda t, s, x: s.detach() @ x,
    "cat": lambda t, s, x: t.cat([s.detach(), s.detach()]),
    "cat of columns": lambda t, s, x: t.cat([s.detach(), s.detach() * 2], 1),
    "a row": lambda t, s, x: s.detach()[0],
    "a column": lambda t, s, x: s.detach()[:, 0],
    "index_select": lambda t, s, x: s.detach().index_select(1, t.tensor([0, s.shape[1] - 1, 0])),
    "index_select from the end": lambda t, s, x: s.detach().index_select(1, t.tensor([-1, 0, -s.shape[1]])),
    "float": lambda t, s, x: s.detach().float(),
    "long": lambda t, s, x: s.detach().long(),
    "permute": lambda t, s, x: s.permute(1, 0),
    "an element": lambda t, s, x: s[0, 0],
    "a new dim": lambda t, s, x: s.detach().unsqueeze(1),
    "stack": lambda t, s, x: t.stack([s, s * 2], 2),
    "norm": lambda t, s, x: s.detach().norm(),
    "any": lambda t, s, x: s.detach().any(),
    "sum that keeps its dim": lambda t, s, x: s.detach().sum(0, keepdim=True),
    "floor division": lambda t, s, x: s.detach() // 2,
    "division rounded to zero": lambda t, s, x: t.div(s.detach(), t.tensor(2.0, dtype=t.float64), rounding_mode="trunc"),
    "times more dims": lambda t, s, x: s.detach() * x.detach()[:, :1].t().expand(2, *s.shape),
    "narrow_copy": lambda t, s, x: s.detach().narrow_copy(0, 1, s.shape[0] - 1),
    "narrow_copy of a column": lambda t, s, x: s.detach().narrow_copy(1, s.shape[1] - 1, 1),
    "times what broadcasts": lambda t, s, x: x.detach().to_sparse(1) * x.detach()[:, :1].to_sparse(1),
    "cat of dense dims": lambda t, s, x: t.cat([x.detach().to_sparse(1), x.detach().to_sparse(1) * 2], 1),
    "norm over both dims": lambda t, s, x: s.detach().norm(dim=(0, 1)),
    "itself twice": lambda t, s, x: s + s,
    "copy_": lambda t, s, x: s.detach().clone().copy_(s.t().t() * 3),
    "sum that keeps all dims": lambda t, s, x: s.detach().sum((0, 1), keepdim=True),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_values_and_gradients(name: str, shape: tuple[int, int, int]) -> None:
    numbers = np.random.default_rng(1).standard_normal((shape[1], 3))
    results, leaves = [], []
    for t, (v, s) in zip((torch, mt), pair(shape[:2], shape[2])):
        x = t.tensor(numbers, requires_grad=True)
        results.append(OPS[name](t, s, x))
        leaves.append((v, x))
    want, mine = results
    same(mine, want)
    if not want.requires_grad:
        assert not mine.requires_grad
        return
    dense = [r.to_dense() if r.is_sparse else r for r in results]
    up = np.random.default_rng(2).standard_normal(tuple(want.shape))
    grads = [
        t.autograd.grad(r, of, t.tensor(up, dtype=r.dtype) if up.shape else t.tensor(float(up), dtype=r.dtype), allow_unused=True)
        for t, r, of in zip((torch, mt), dense, leaves)
    ]
    for theirs, ours in zip(*grads):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            same(ours, theirs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["sparse.mm", "addmm", "to_dense", "sum", "softmax", "times a number", "coalesce", "of two sparse"])
def test_the_gradient_of_a_sparse_leaf_is_sparse(name: str, shape: tuple[int, int, int]) -> None:
    found = []
    for t, (_, s) in zip((torch, mt), pair(shape[:2], shape[2])):
        leaf = s.detach().requires_grad_()
        made = OPS[name](t, leaf, t.ones(shape[1], 2, dtype=t.float64))
        made = made.to_dense() if made.is_sparse else made
        (made * t.arange(1.0, made.numel() + 1, dtype=t.float64).reshape(made.shape)).sum().backward()
        found.append(leaf.grad)
    assert found[1].is_sparse and tuple(found[1].shape) == tuple(found[0].shape)
    np.testing.assert_allclose(array(found[1]), array(found[0]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("many", [0, 1, 6])
def test_values_with_dims_of_their_own(many: int) -> None:
    for name, run in {
        "sum": lambda t, s: t.sparse.sum(s, 2), "sum of rows": lambda t, s: t.sparse.sum(s, (0, 2)), "scale": lambda t, s: s * 2 + s,
        "softmax": lambda t, s: t.sparse.softmax(s, 1), "inner softmax": lambda t, s: t.sparse.softmax(s, 2),
        "all": lambda t, s: t.sparse.sum(s, (0, 1)), "coalesce": lambda t, s: s.coalesce(), "dense": lambda t, s: s.to_dense(),
        "back": lambda t, s: s.to_dense().to_sparse(2), "turn": lambda t, s: s.transpose(0, 1),
        "pick": lambda t, s: s.index_select(2, t.tensor([1, 0, 1])), "part": lambda t, s: s.narrow_copy(2, 1, 1),
        "more dims": lambda t, s: t.arange(6.0, dtype=t.float64).reshape(3, 1, 1, 2).expand(3, 3, 4, 2) * s,
    }.items():  # fmt: skip
        (_, theirs), (_, ours) = pair((3, 4, 2), many, dense=1)
        assert name and same(run(mt, ours), run(torch, theirs)) is None


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "float32", "float16", "bool", "complex64"])
def test_dtypes(kind: str) -> None:
    (_, theirs), (_, ours) = pair((4, 3), 7, kind=kind)
    for run in (lambda s: s.coalesce(), lambda s: s.to_dense(), lambda s: s.t(), lambda s: s.clone(), lambda s: s.sum()):
        if kind not in ("float16", "bool") or run(ours).is_sparse:
            same(run(ours.detach()), run(theirs.detach()))


def test_text() -> None:
    for many, dense, kind in [(3, 0, "float32"), (0, 0, "float32"), (3, 1, "float64"), (3, 0, "int64"), (2, 0, "complex64")]:
        for change in (lambda s: s.detach(), lambda s: s.detach().coalesce(), lambda s: s):
            theirs, ours = [change(s) for _, s in pair((3, 4, 2), many, dense, kind)]
            assert repr(ours).replace("mortice", "torch") == repr(theirs)
        if kind[0] == "f":
            assert repr(ours.detach().requires_grad_()).replace("mortice", "torch") == repr(theirs.detach().requires_grad_())


def test_a_sum_of_one_tensor_twice_has_no_more_places() -> None:
    for dense in (0, 1):
        (_, theirs), (_, ours) = pair((3, 4, 2), 6, dense)
        assert (ours + ours)._nnz() == (theirs + theirs)._nnz() == 6


def test_what_is_coalesced_without_asking() -> None:
    for t in (torch, mt):
        none, one, two = [t.sparse_coo_tensor(t.zeros(2, n, dtype=t.int64), t.zeros(n), (2, 3)) for n in range(3)]
        assert [s.is_coalesced() for s in (none, none.t(), one, one.t(), two)] == [True, True, True, False, False]
        assert t.sparse_coo_tensor(t.zeros(3, 0), t.zeros(0, 2, 4)).shape == (0, 0, 0, 2, 4)


WRONG: dict[str, tuple[type[Exception], str, Callable[[Any, Any], Any]]] = {
    "more values": (RuntimeError, "values has incorrect size", lambda t, s: t.sparse_coo_tensor([[0]], t.ones(1, 2), (2, 3))),
    "no such dim": (IndexError, "Dimension out of range", lambda t, s: t.sparse.softmax(s, 2)),
    "no such last dim": (IndexError, "Dimension out of range", lambda t, s: t.sparse.log_softmax(s, -3)),
    "a write": (TypeError, "Cannot assign to a sparse tensor", lambda t, s: s.__setitem__((0, 0), 1.0)),
    "a write into rows": (TypeError, "Cannot assign to a sparse tensor", lambda t, s: s.to_sparse_csr().__setitem__(0, t.ones(3))),
    "storage": (NotImplementedError, "storage", lambda t, s: s.untyped_storage()),
    "floor": (RuntimeError, "Sparse floor division requires", lambda t, s: s // s),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    kind, text, run = WRONG[name]
    for t, (_, s) in zip((torch, mt), pair((2, 3), 2)):
        with pytest.raises(kind, match=text):
            run(t, s.detach().coalesce())


META: dict[str, Callable[[Any], Any]] = {
    "made": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), device="meta"),
    "made of parts": lambda t: t.sparse_coo_tensor(t.zeros(1, 2, dtype=t.int64, device="meta"), t.zeros(2, device="meta"), (3,)),
    "none": lambda t: t.sparse_coo_tensor((2, 3), device="meta"),
    "empty": lambda t: t.empty(2, 4, 3, layout=t.sparse_csr, device="meta"),
    "zeros": lambda t: t.zeros(4, 3, layout=t.sparse_csc, device="meta"),
    "csr": lambda t: t.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 3), device="meta"),
    "moved": lambda t: t.eye(3).to_sparse().to("meta"),
    "repeated": lambda t: t.sparse_coo_tensor([[1, 1]], [[1.0], [2.0]], (3, 1)).to("meta").coalesce(),
    "moved blocks": lambda t: t.eye(4).to_sparse_bsr((2, 2)).to("meta"),
    "sum": lambda t: t.eye(3).to_sparse_csr().to("meta") + t.eye(3).to_sparse_csr().to("meta"),
    "like": lambda t: t.zeros_like(t.eye(3).to_sparse_csc(), device="meta"),
    "dense": lambda t: t.eye(3).to_sparse_csr().to("meta").to_dense(),
    "neg": lambda t: -t.eye(3).to_sparse_csr().to("meta"),
}


@pytest.mark.parametrize("name", META)
def test_without_memory(name: str) -> None:
    with mt.sparse.check_sparse_tensor_invariants():
        assert repr(META[name](mt)).replace("mortice", "torch") == repr(META[name](torch))


def trained(t: Any, optimiser: str, options: dict[str, Any], layer: str, uses: int) -> list[Any]:
    rng = np.random.default_rng(0)
    table = getattr(t.nn, layer.partition(" ")[0])(
        10, 3, sparse=True, padding_idx=2, **({"mode": layer.partition(" ")[2]} if " " in layer else {})
    )
    with t.no_grad():
        table.weight.copy_(t.tensor(rng.standard_normal((10, 3)), dtype=t.float32))
    made, seen = getattr(t.optim, optimiser)(table.parameters(), **options), []
    for _ in range(4):
        made.zero_grad()
        for _ in range(uses):
            out = table(t.tensor(rng.integers(0, 10, (2, 4))))
            ((out - t.tensor(rng.standard_normal(tuple(out.shape)), dtype=t.float32)) ** 2).sum().backward()
        assert table.weight.grad.is_sparse
        seen.append(array(table.weight.grad))
        made.step()
        seen.append(array(table.weight))
    return seen


@pytest.mark.parametrize("uses", [1, 2])
@pytest.mark.parametrize("layer", ["Embedding", "EmbeddingBag sum", "EmbeddingBag mean"])
@pytest.mark.parametrize(
    ("optimiser", "options"),
    [
        ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "maximize": True}), ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}), ("Adagrad", {"lr": 0.1}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2, "maximize": True}), ("SparseAdam", {"lr": 0.01}),
        ("SparseAdam", {"lr": 0.01, "betas": (0.8, 0.9), "maximize": True, "eps": 1e-4}),
    ],
    ids=str,
)  # fmt: skip
def test_optimisers_step_alike(optimiser: str, options: dict[str, Any], layer: str, uses: int) -> None:
    theirs, ours = [trained(t, optimiser, options, layer, uses) for t in (torch, mt)]
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("optimiser", ["Adam", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"])
def test_other_optimisers_refuse_alike(optimiser: str) -> None:
    for t in (torch, mt):
        with pytest.raises(RuntimeError, match=f"{optimiser} does not support sparse gradients"):
            trained(t, optimiser, {}, "Embedding", 1)


@pytest.mark.parametrize("made", ["a + b", "a - b", "a + a", "t.add(a, b, alpha=3)", "a.clone().add_(b)", "a + t.zeros_like(a)"])
@pytest.mark.parametrize("dense", [(), (2,)])
def test_a_sum_of_coalesced_tensors_is_coalesced(made: str, dense: tuple[int, ...]) -> None:
    found = []
    for t in (torch, mt):
        a, b = [t.sparse_coo_tensor([[0, n], [n, 1]], t.ones(2, *dense), (4, 3, *dense)).coalesce() for n in (1, 2)]
        s = eval(made, {"t": t, "a": a, "b": b})  # noqa: S307
        found.append((s.is_coalesced(), s._nnz(), s._indices().tolist(), s._values().tolist()))
    assert found[0] == found[1] and found[0][0]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_by_sparse_inputs_are_checked(layout: str, masked: bool) -> None:
    for t in (torch, mt):
        options = {"blocksize": (1, 1)} if layout[7] == "b" else {}
        x = t.tensor([[0.0, 2.0], [3.0, 0.0]], dtype=t.float64).to_sparse(layout=getattr(t, layout), **options).requires_grad_()
        assert t.autograd.gradcheck(lambda x: x.to_dense(masked_grad=masked) * 2, (x,), masked=masked)
        assert t.sparse.as_sparse_gradcheck(t.autograd.gradcheck)(lambda x: x, (x,), masked=masked)
        assert not t.autograd.gradcheck(lambda x: x.to_dense() * x.detach().to_dense(), (x,), masked=masked, raise_exception=False)
        with pytest.raises(ValueError, match="^Sparse output is not supported at gradcheck yet"):
            t.autograd.gradcheck(lambda x: x, (x,))
        assert layout != "sparse_coo" or x.new_tensor([1, 2]).layout is t.strided  # PyTorch's has no layout for the others


@pytest.mark.parametrize(
    "made",
    [
        "z + h", "h + z", "z - h", "h - z", "z * h", "h * z", "x * n", "n * x", "n * n", "t.nan_to_num(x / 0)", "(x / 0).nan_to_num_(1.0)",
        "t.sparse_coo_tensor([[1], [0]], t.tensor(3.0), (2, 2))", "t.sparse_coo_tensor([[1], [0]], 3.0, (2, 2))",
    ],
)  # fmt: skip
def test_what_has_nothing_or_no_dims_joins_alike(made: str) -> None:
    found = []
    for t in (torch, mt):
        names = {"t": t, "z": t.zeros(2, 2).to_sparse(), "h": t.ones(2, 2).to_sparse(1), "n": t.tensor(2.0).to_sparse()}
        s = eval(made, names | {"x": t.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()})  # noqa: S307
        found.append((s.to_dense().tolist(), tuple(s.shape)))
    assert found[0] == found[1]


def test_files_go_both_ways() -> None:
    for here, there in ((torch, mt), (mt, torch), (mt, mt)):
        for s in (here.eye(3).to_sparse(), here.sparse_coo_tensor([[1, 1]], here.tensor([2.0, 3.0]), (4,)), here.zeros(2, 2).to_sparse(1)):
            file = io.BytesIO()
            here.save({"adj": s.cpu()}, file)
            file.seek(0)
            got = there.load(file, map_location="cpu")["adj"]
            assert got.is_coalesced() == s.is_coalesced() and got.sparse_dim() == s.sparse_dim()
            np.testing.assert_array_equal(array(got), array(s))


def test_a_graph_network_learns_alike() -> None:
    rng = np.random.default_rng(0)
    places, x, y = rng.integers(0, 20, (2, 60)), rng.standard_normal((20, 6)), rng.integers(0, 3, 20)
    weights = [rng.standard_normal(n) * 0.3 for n in ((6, 8), (8, 3))]
    losses = []
    for t in (torch, mt):
        params = [t.nn.Parameter(t.tensor(w)) for w in weights]
        adj = t.sparse_coo_tensor(t.tensor(places), t.ones(60, dtype=t.float64) / 4, t.Size((20, 20)))
        features, made, seen = t.tensor(x).to_sparse(), t.optim.Adam(params, lr=0.05), []
        for _ in range(10):
            hidden = t.nn.functional.relu(t.spmm(adj, t.mm(features, params[0])))
            loss = t.nn.functional.cross_entropy(t.sparse.mm(adj, hidden @ params[1]), t.tensor(y))
            made.zero_grad()
            loss.backward()
            made.step()
            seen.append(loss.item())
        losses.append(seen)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9)


def test_places_of_no_sparse_dims_and_square_blocks() -> None:
    found = []
    for m in (torch, mt):
        values = m.ones(3, 2, dtype=m.float64, requires_grad=True)
        x = m.sparse_coo_tensor(m.zeros(0, 3, dtype=m.int64), values, (2,), check_invariants=True)
        merged = (x + x).coalesce().values()
        (merged.tanh() + x.to_dense()).sum().backward()
        found.append((merged.tolist(), values.grad.tolist(), m.eye(4).to_sparse_bsr(2).values().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("make", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("shape", [(9, 4), (4, 9)], ids=["tall", "wide"])
def test_low_rank_parts_of_sparse_matrices_are_those_of_dense_ones(make, shape):
    values = torch.where(torch.rand(shape, dtype=torch.float64) < 0.6, torch.randn(shape, dtype=torch.float64), 0.0)
    less = torch.randn(1, shape[1], dtype=torch.float64)
    sparse = getattr(mt.tensor(values.numpy()), make)()
    for given, dense in ((None, values), (less, values - less)):
        u, s, v = mt.svd_lowrank(sparse, q=4, M=None if given is None else mt.tensor(given.numpy()))
        assert s.layout is u.layout is v.layout is mt.strided
        torch.testing.assert_close(torch.tensor((u * s @ v.T).tolist(), dtype=torch.float64), dense)
    if make == "to_sparse":
        s, expected = (lib.pca_lowrank(x, q=4)[1].tolist() for lib, x in ((mt, sparse), (torch, values.to_sparse())))
        assert s == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("layout", [None, "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 3)])
def test_matrices_of_diagonals(shape, layout):
    rows, offsets = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], [-1, 2, 0]
    made = [
        lib.sparse.spdiags(lib.tensor(rows), lib.tensor(offsets), shape, layout and getattr(lib, layout)) for lib in (torch, mt)
    ]
    assert made[1].to_dense().tolist() == made[0].to_dense().tolist()
    assert str(made[1].layout).split(".")[1] == str(made[0].layout).split(".")[1]
    for wrong in ([0, 0, 1], [1], [[0, 1, 2]]):
        for lib in (torch, mt):
            with pytest.raises(RuntimeError):
                lib.sparse.spdiags(lib.tensor(rows), lib.tensor(wrong), shape)
    narrow = mt.sparse.spdiags(mt.tensor(rows), mt.tensor(offsets), (5, 2))  # where PyTorch writes outside its memory
    assert narrow.to_dense().tolist() == [[7, 0], [1, 8], [0, 2], [0, 0], [0, 0]]
    with pytest.raises(RuntimeError, match="Only output layouts"):
        mt.sparse.spdiags(mt.tensor(rows), mt.tensor(offsets), shape, mt.strided)


@pytest.mark.parametrize("name", ["asin_", "log1p_", "relu_", "neg_", "zero_", "abs_", "mul_", "sign_"])
def test_what_is_written_in_place_merges_no_places(name):
    """Only what keeps the sum of a place is written where places may repeat; the others ask for coalesced tensors."""
    told = []
    for lib in (torch, mt):
        made = []
        for x in (lib.sparse_coo_tensor([[1, 0, 1]], [0.5, 0.25, 0.125], (3,)), lib.tensor([0.0, 0.5]).to_sparse()):
            for kind in (lib.float32, lib.int16):
                x = x.to(kind)
                try:
                    getattr(x, name)(*((3,) if name == "mul_" else ()))
                    made.append((x._indices().tolist(), [round(v, 5) for v in x._values().tolist()], x.is_coalesced()))
                except RuntimeError as error:
                    made.append(f"{name} requires coalesced input" in str(error))
        told.append(made)
    assert told[0] == told[1]


@pytest.mark.parametrize("part", [(-1, 0, 3), (2, 0, 1), (0, 4, 1), (0, -1, 1), (0, 1, 3), (0, 1, -1), (1, 3, 2), (0, 1, 2), (1, 2, 0)])
def test_narrow_copy_counts_nothing_from_behind_and_keeps_the_order(part):
    told = []
    for lib in (torch, mt):
        x = lib.sparse_coo_tensor([[2, 0, 2, 1], [3, 1, 3, 2]], [1.0, 2.0, 3.0, 4.0], (3, 5))
        for t in (x, x.coalesce()):
            try:
                made = t.narrow_copy(*part)
                known = made.is_coalesced() or not made._nnz()
                told.append((lib, made._indices().tolist(), made._values().tolist(), tuple(made.shape), known))
            except RuntimeError as error:
                told.append((lib, "Invalid range" in str(error), "out of range. Expecting 0 <= dim < 2." in str(error)))
    assert [t[1:] for t in told if t[0] is torch] == [t[1:] for t in told if t[0] is mt]


@pytest.mark.parametrize(
    "size", [((3, 3), (1, 1)), ((2, 4), (1, 1)), ((2, 2, 2), (1, 2)), ((2, 2, 2), (2, 1)), ((1, 3), (1, 1)), ((2, 1), (1, 1))], ids=str
)
def test_what_is_resized_keeps_its_numbers_one_after_another(size):
    """As the memory of a dense tensor does."""
    told = []
    for lib in (torch, mt):
        x, like = lib.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 2)), lib.empty(0).to_sparse()
        like.sparse_resize_(size[0], *size[1])
        try:
            x.resize_as_(like)
            told.append((tuple(x.shape), x._values().reshape(-1).tolist()[:4], x._values().numel(), x.is_coalesced()))
        except RuntimeError as error:
            told.append(str(error).removeprefix("sparse_resize_: ").partition(" on a non-empty")[0])
    assert told[0] == told[1]


def test_refusals_of_sizes_dims_and_old_constructors():
    for lib in (torch, mt):
        x = lib.sparse_coo_tensor([[0]], [1.0], (2,))
        assert x.new().layout is x.new(2, 3).layout is x.new(lib.Size([3])).layout is lib.sparse_coo
        for wrong in (lib.ones(2), lib.ones(2).untyped_storage()):
            with pytest.raises(TypeError):
                x.new(wrong)
        with pytest.raises(RuntimeError, match="integer multiplication overflow"):
            lib.sparse_coo_tensor([[1, 0]] * 4, [1.0, 2.0], (100001,) * 4)
        with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
            lib.sparse.sum(lib.ones(2, 2).to_sparse(), [0, 0])
        with pytest.raises(RuntimeError, match="^values expected sparse tensor layout but got Strided$"):
            lib.ones(2).values()


def test_masks_have_the_sparse_dims_of_what_they_mask():
    for lib in (torch, mt):
        rows, eye = lib.sparse_coo_tensor([[0]], [[1.0, 2.0]], (2, 2)), lib.eye(2).to_sparse()
        for x, mask in ((rows, eye), (eye, rows)):
            with pytest.raises(RuntimeError, match="the number of sparse dimensions in `self` should match that of the `mask`"):
                x.sparse_mask(mask)
        assert lib.sparse_coo_tensor((2, 2)).sparse_mask(rows)._values().tolist() == [[0, 0]]


def test_a_dense_gradient_that_meets_a_sparse_grad_gives_a_dense_one() -> None:
    found = []
    for t in (torch, mt):
        p = t.tensor([1.5, 2.5]).requires_grad_()
        sparse = p.grad = t.sparse_coo_tensor(t.tensor([[1, 1]]), t.tensor([1.0, 1.0]), (2,))
        p.backward(t.tensor([1.5, 0.5]))
        found.append((str(p.grad.layout).split(".")[-1], p.grad.tolist(), p.grad is sparse, sparse.to_dense().tolist()))
    assert found[0] == found[1]
