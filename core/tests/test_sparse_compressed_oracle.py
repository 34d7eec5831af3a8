"""Compressed sparse tensors beside PyTorch's: values, places, gradients, texts and files, over layouts, dtypes and shapes."""

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
    pytest.mark.filterwarnings("ignore:.*[Ss]parse"),
    pytest.mark.filterwarnings("ignore:.*nvariant"),
    pytest.mark.filterwarnings("ignore:Casting complex"),
]
LAYOUTS = {"csr": None, "csc": None, "bsr": (2, 2), "bsc": (2, 2)}
SHAPES = [(4, 6), (6, 2), (0, 4), (2, 0), (2, 4, 6), (2, 3, 2, 4)]
FIELDS = ("crow_indices", "col_indices", "ccol_indices", "row_indices", "values")


def numbers(shape: tuple[int, ...], kind: str, seed: int = 0, empty: bool = False) -> Any:
    """Draw elements of which half are 0, equally many in each matrix, and with rows that are empty."""
    rng = np.random.default_rng(seed)
    found = rng.integers(1, 9, shape) * (1 if kind[0] in "ub" else rng.choice([-1, 1], shape))
    mask = np.broadcast_to(rng.random(shape[-2:]) < (0 if empty else 0.5), shape).copy()
    mask[..., :1, :] = False
    found = found * mask
    return (found * (1 + 0.5j) if kind[0] == "c" else found).astype(kind)


def pair(name: str, shape: tuple[int, ...], kind: str = "float64", index: str = "int64", **named: Any) -> list[Any]:
    """Return a tensor of both libraries: (the library, one made by its constructor from PyTorch's parts, the dense one)."""
    whole, block = numbers(shape, kind, **named), LAYOUTS[name]
    theirs = torch.tensor(whole).to_sparse(layout=getattr(torch, f"sparse_{name}"), blocksize=block)
    parts = [
        getattr(theirs, f).__call__().numpy()
        for f in FIELDS
        if hasattr(theirs, f) and (f[:3] in ("val", *_kinds(name)))
    ]
    made = []
    for t in (torch, mt):
        starts, plain, values = (t.tensor(p) for p in parts)
        kept = [p.to(getattr(t, index)) for p in (starts, plain)]
        made.append((t, getattr(t, f"sparse_{name}_tensor")(*kept, values, shape), t.tensor(whole)))
    return made


def _kinds(name: str) -> tuple[str, str]:
    return ("cro", "col") if name in ("csr", "bsr") else ("cco", "row")


def array(x: Any) -> Any:
    x = x.detach()
    return np.array((x if "strided" in str(x.layout) else x.to_dense()).tolist())


def same(mine: Any, want: Any, places: bool = True) -> None:
    assert str(mine.layout).partition(".")[2] == str(want.layout).partition(".")[2]
    assert (
        tuple(mine.shape) == tuple(want.shape)
        and str(mine.dtype).partition(".")[2] == str(want.dtype).partition(".")[2]
    )
    np.testing.assert_allclose(array(mine), array(want), rtol=2e-6, atol=1e-9)
    kind = str(want.layout)[-3:]
    if kind in LAYOUTS and places:
        assert (mine._nnz(), mine.sparse_dim(), mine.dense_dim()) == (want._nnz(), want.sparse_dim(), want.dense_dim())
        for field in FIELDS:
            if field[:3] in ("val", *_kinds(kind)):
                ours, theirs = getattr(mine, field)().detach(), getattr(want, field)().detach()
                assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2] and tuple(
                    ours.shape
                ) == tuple(theirs.shape)
                np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=2e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", LAYOUTS)
def test_conversions(name: str, shape: tuple[int, ...]) -> None:
    for empty in (False, True):
        for kind in ("float64", "int64", "complex128", "bool", "float32", "uint8"):
            made = pair(name, shape, kind, empty=empty)
            block, want = LAYOUTS[name], made[0][1]
            same(made[1][1], want)
            same(made[1][2].to_sparse(layout=getattr(mt, f"sparse_{name}"), blocksize=block), want)
            same(made[1][1].to_dense(), want.to_dense())
            ours, theirs = made[1][1].to_sparse_coo(), want.to_sparse_coo()
            assert name != "csr" or ours.is_coalesced() and theirs.is_coalesced()
            ours, theirs = ours.coalesce(), theirs.coalesce()
            assert (
                ours.indices().tolist() == theirs.indices().tolist()
                and ours.values().tolist() == theirs.values().tolist()
            )
            for t, s, _ in made[1:]:
                other = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}[name]
                turned = s.to_sparse(layout=getattr(t, f"sparse_{other}"), blocksize=block)
                same(turned, want.to_sparse(layout=getattr(torch, f"sparse_{other}"), blocksize=block))
            same(made[1][1].transpose(-2, -1), want.transpose(-2, -1))
            same(made[1][1].clone().to(mt.complex64), want.clone().to(torch.complex64))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_text_and_files(name: str, index: str) -> None:
    for shape, kind, empty in [
        ((4, 6), "float32", False), ((2, 4, 6), "float64", False), ((4, 6), "int64", False), ((4, 6), "complex64", False),
        ((40, 80), "float32", False),
        ((4, 6), "float32", True), ((0, 4), "float32", False), ((0, 4), "int64", False), ((2, 0), "float64", False),
        ((4, 6), "bool", False),
    ]:  # fmt: skip
        (_, theirs, _), (_, ours, _) = pair(name, shape, kind, index, empty=empty)
        assert repr(ours).replace("mortice", "torch") == repr(theirs)
        if kind[0] == "f":
            assert repr(ours.clone().requires_grad_() * 2).replace("mortice", "torch") == repr(
                theirs.clone().requires_grad_() * 2
            )
        for here, there, s, want in ((torch, mt, theirs, ours), (mt, torch, ours, theirs), (mt, mt, ours, ours)):
            file = io.BytesIO()
            here.save({"adj": s}, file)
            file.seek(0)
            got = there.load(file)["adj"]
            assert repr(got) == repr(want)


UNARY = (
    "abs angle asin asinh atan atanh ceil conj deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p neg positive "
    "rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc zeros_like ones_like clone sum"
).split()


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("fn", UNARY)
def test_functions_of_one(fn: str, name: str) -> None:
    for kind in ("float64", "int64", "complex128", "bool"):
        for shape in ((4, 6), (2, 4, 6)):
            (_, theirs, _), (_, ours, _) = pair(name, shape, kind)
            if fn == "erfinv" and kind == "float64":
                theirs, ours = theirs * 0.1, ours * 0.1
            try:
                want = getattr(torch, fn)(theirs)
            except (RuntimeError, TypeError, IndexError) as error:
                if "SparseCs" not in str(error) and "sparse" not in str(error):
                    with pytest.raises((type(error), TypeError, NotImplementedError)):
                        getattr(mt, fn)(ours)
                continue
            same(getattr(mt, fn)(ours), want, places=fn != "zeros_like")


OPS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "matmul": lambda t, s, x, d: s @ x,
    "sparse.mm": lambda t, s, x, d: t.sparse.mm(s, x),
    "mv": lambda t, s, x, d: s.mv(x[:, 0]),
    "from the right": lambda t, s, x, d: x.t() @ s.t(),
    "a vector from the left": lambda t, s, x, d: x[: s.shape[0], 0].repeat(s.shape[0])[: s.shape[0]] @ s,
    "addmm": lambda t, s, x, d: t.sparse.addmm(x[:1].expand(s.shape[0], x.shape[1]), s, x, beta=0.5, alpha=2.0),
    "addmv": lambda t, s, x, d: t.addmv(x[:1, 0].expand(s.shape[0]), s, x[:, 0], beta=0.5, alpha=2.0),
    "linear": lambda t, s, x, d: t.nn.functional.linear(x.t(), s),
    "of two sparse": lambda t, s, x, d: s @ s.t(),
    "addmm of sparse": lambda t, s, x, d: t.addmm(s @ s.t(), s, s.t(), beta=2.0, alpha=0.5),
    "dense + sparse": lambda t, s, x, d: d * 2 + s,
    "sparse + dense": lambda t, s, x, d: s + d * 2,
    "sparse + sparse": lambda t, s, x, d: s + s * 2,
    "times a number": lambda t, s, x, d: 2.5 * s,
    "times a tensor": lambda t, s, x, d: s * t.tensor(2.0, dtype=s.dtype),
    "times itself": lambda t, s, x, d: s * s,
    "times dense": lambda t, s, x, d: s * (d + 2),
    "in place": lambda t, s, x, d: s.detach().clone().mul_(3).add_(s.detach()),
    "abs": lambda t, s, x, d: s.abs(),
    "relu": lambda t, s, x, d: s.relu(),
    "transposed": lambda t, s, x, d: s.t() @ d,
    "values": lambda t, s, x, d: (s * 2).values(),
    "to_dense": lambda t, s, x, d: s.to_dense(),
    "to_sparse": lambda t, s, x, d: s.to_sparse(),
    "a row": lambda t, s, x, d: s.detach()[1],
    "a column": lambda t, s, x, d: s.detach()[:, 1],
    "sum": lambda t, s, x, d: s.sum(),
    "sum of rows": lambda t, s, x, d: s.detach().sum(1, keepdim=True),
    "sum of columns": lambda t, s, x, d: s.detach().sum(0, keepdim=True),
    "sampled_addmm": lambda t, s, x, d: t.sparse.sampled_addmm(s, d, d.t() @ d, beta=0.5, alpha=2.0),
    "sparse_mask": lambda t, s, x, d: (d.detach() + 1).sparse_mask(s.detach()),
    "from dense": lambda t, s, x, d: (d * 2).to_sparse_csr(),
    "float": lambda t, s, x, d: s.detach().to(t.complex64),
}


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 6), (6, 2), (3, 3), (1, 4)], ids=str)
@pytest.mark.parametrize("fn", OPS)
@pytest.mark.parametrize("name", ["csr", "csc"])
def test_values_and_gradients(name: str, fn: str, shape: tuple[int, int], kind: str) -> None:
    results, leaves = [], []
    right = np.random.default_rng(1).standard_normal((shape[1], 3)).astype(kind)
    for t, s, d in pair(name, shape, kind, seed=3):
        leaf, x, d = s.requires_grad_(), t.tensor(right).requires_grad_(), d.requires_grad_()
        try:
            results.append(OPS[fn](t, leaf, x, d))
        except (RuntimeError, IndexError) as error:
            if t is torch:
                return  # what PyTorch lacks
            raise AssertionError(f"PyTorch has this: {error}") from error
        leaves.append((leaf, x, d))
    want, mine = results
    same(mine, want, places=fn not in ("of two sparse", "addmm of sparse", "sparse + sparse"))
    if not want.requires_grad:
        return
    up = np.random.default_rng(2).standard_normal(tuple(want.shape)).astype(kind)
    found = []
    for t, r, of in zip((torch, mt), results, leaves):
        try:
            dense = r if "strided" in str(r.layout) else r.to_dense()
            found.append(t.autograd.grad(dense, of, t.tensor(up, dtype=r.dtype), allow_unused=True))
        except (RuntimeError, NotImplementedError) as error:
            if t is torch:
                return
            raise AssertionError(f"PyTorch has this: {error}") from error
    for theirs, ours, leaf in zip(*found, leaves[0]):
        assert (ours is None) == (theirs is None)
        if ours is not None:  # PyTorch's gradient of a sparse leaf is dense at times
            where = np.ones(tuple(leaf.shape)) if "strided" in str(leaf.layout) else array(leaf) != 0
            np.testing.assert_allclose(array(ours) * where, array(theirs) * where, rtol=1e-6, atol=1e-9)
            assert str(ours.layout).partition(".")[2] == str(leaf.layout).partition(".")[2]


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_refused_has_pytorchs_class_and_words(name: str) -> None:
    block = [[[1.0]], [[2.0]], [[3.0]]] if name[0] == "b" else [1.0, 2.0, 3.0]
    starts, plain = [0, 2, 3], [0, 1, 1]
    wrong: list[tuple[Any, Any, Any, Any]] = [
        (0, plain, block, (2, 2)), ([starts], plain, block, (2, 2)), (starts, plain, 1.0, (2, 2)), (starts, plain, block, (2,)),
        ([starts], [plain], [block], (2, 2, 2)), (starts, plain, block, (3, 3)), (starts, [0, 1], block, (2, 2)),
        ([1, 2, 3], plain, block, (2, 2)),
        ([0, 2, 2], plain, block, (2, 2)), ([0, 3, 3], plain, block, (2, 2)), ([0, 4, 3], plain, block, (2, 2)),
        (starts, [0, -1, 1], block, (2, 2)),
        (starts, [0, 2, 1], block, (2, 2)), (starts, [1, 0, 1], block, (2, 2)), (starts, [1, 1, 1], block, (2, 2)),
    ]  # fmt: skip
    for one, other, values, size in wrong:
        said = []
        for t in (torch, mt):
            with pytest.raises(RuntimeError) as caught:
                make = getattr(t, f"sparse_{name}_tensor")
                make(t.tensor(one), t.tensor(other), t.tensor(values), size, check_invariants=True)
            said.append(str(caught.value))
        assert said[1] == said[0]


def test_a_graph_network_with_scipys_matrices_learns_alike() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    m = sparse.random(20, 20, 0.2, format="csr", random_state=0)
    x, y, weights = (
        rng.standard_normal((20, 6)),
        rng.integers(0, 3, 20),
        [rng.standard_normal(n) * 0.3 for n in ((6, 8), (8, 3))],
    )
    losses = []
    for t in (torch, mt):
        adj = t.sparse_csr_tensor(m.indptr, m.indices, m.data, size=m.shape)
        params = [t.nn.Parameter(t.tensor(w)) for w in weights]
        made, seen = t.optim.Adam(params, lr=0.05), []
        for _ in range(10):
            loss = t.nn.functional.cross_entropy(adj @ (adj @ t.tensor(x) @ params[0]).relu() @ params[1], t.tensor(y))
            made.zero_grad()
            loss.backward()
            made.step()
            seen.append(loss.item())
        losses.append(seen)
        back = sparse.csr_matrix(
            (adj.values().numpy(), adj.col_indices().numpy(), adj.crow_indices().numpy()), adj.shape
        )
        assert (back != m).nnz == 0
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9)


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_new_ones_of_the_layout(name: str) -> None:
    one = FIELDS[0] if name == "csr" else FIELDS[2]
    for shape in ((2, 3), (2, 5, 4)):
        assert pair(name, (4, 6))[1][1].new_empty(shape).layout is getattr(mt, f"sparse_{name}")
        theirs, ours = [s.new_zeros(shape, dtype=t.float32) for t, s, _ in pair(name, (4, 6))]
        assert str(ours.layout)[8:] == str(theirs.layout)[6:] and ours.shape == shape and ours.dtype is mt.float32
        assert getattr(ours, one)().tolist() == getattr(theirs, one)().tolist() and ours._nnz() == 0


@pytest.mark.parametrize("name", LAYOUTS)
def test_filling_writes_where_there_are_values(name: str) -> None:
    theirs, ours = [s.clone().fill_(3) for _, s, _ in pair(name, (4, 6))]
    assert ours.values().tolist() == theirs.values().tolist() and array(ours).tolist() == array(theirs).tolist()
    for t, s, _ in pair(name, (4, 6)):
        drawn = [t.randn_like(s), s.clone().normal_(5, 0.5)]
        assert all(d.layout is s.layout and d._nnz() == s._nnz() and d.values().unique().numel() > 3 for d in drawn)
