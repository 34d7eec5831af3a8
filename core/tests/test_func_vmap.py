"""vmap: every op of the kit against a loop, dims and nests, randomness, in-place writes, gradients in and out, errors."""

from __future__ import annotations

import collections
import copy
import importlib
import warnings
from typing import Any

import pytest
import vmap_sweep

import mortice as mt
from mortice import nn
from mortice.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from mortice.levels import mapped_rules
from mortice.utils import _pytree

f64 = mt.float64


def draw(*shape: int) -> mt.Tensor:
    return mt.randn(*shape, dtype=f64)


def same(a: Any, b: Any, atol: float = 1e-10) -> bool:
    return a.shape == b.shape and mt.allclose(a, b, rtol=1e-8, atol=atol)


# ---- every op ----

# A batch cannot be written into, or picked by, what only some samples know.
REFUSED = {"view_scatter": "inplace arithmetic", "masked index": "dynamic shape"}


def test_every_op_of_the_kit_gives_for_a_batch_what_a_loop_gives(capsys: pytest.CaptureFixture[str]) -> None:
    counts, failed = vmap_sweep.sweep(vmap_sweep.check_vmap)
    assert {key: REFUSED[key] for key in failed if key in REFUSED and REFUSED[key] in failed[key]} == REFUSED
    assert {key: text for key, text in failed.items() if key not in REFUSED} == {}
    kinds = vmap_sweep.kinds()
    with capsys.disabled():
        print(f"\nvmap: {counts['samples']} samples; ops by rule: {dict(kinds)}")
    assert counts["samples"] > 250
    assert kinds["loop"] == 0, mapped_rules._looped


def test_gradients_of_every_op_inside_vmap_and_through_it() -> None:
    counts, failed = vmap_sweep.sweep(vmap_sweep.check_gradients)
    assert {key: text for key, text in failed.items() if key not in REFUSED} == {}
    assert counts["samples"] > 230


def test_an_op_without_a_rule_takes_the_samples_one_by_one_and_says_so_once() -> None:
    from mortice.op import OPS, op

    @op(shape=lambda name, shape: shape, name="test_reads_a_value")
    def reads(k: Any, x: Any, /) -> Any:
        """Multiply by a number that is read from x."""
        return k.multiply(x, k.item(k.max(x, axis=None)))

    reads.no_grad("it is a test")
    x = draw(3, 4)
    try:
        with pytest.warns(UserWarning, match="no rule that computes test_reads_a_value"):
            got = vmap(reads)(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vmap(reads)(x)
    finally:
        del OPS["test_reads_a_value"]
    assert same(got, x * x.amax(1, keepdim=True))


# ---- dims and nests ----


def test_in_dims_and_out_dims() -> None:
    x, y = draw(2, 3, 4), draw(4, 3)
    got = vmap(lambda a, b: a @ b, in_dims=(2, 0), out_dims=1)(x, y)
    assert same(got, mt.stack([x[:, :, i] @ y[i] for i in range(4)], 1))
    assert same(vmap(lambda a: a.sum(), in_dims=-1)(x), x.sum((0, 1)))
    out, shared = vmap(lambda a, b: (a * b, b + 1), in_dims=(0, None), out_dims=(0, None))(draw(3), y)
    assert out.shape == (3, 4, 3) and same(shared, y + 1)


def test_nests_of_inputs_and_outputs() -> None:
    x, y = draw(3, 2), draw(2, 3)

    def f(tree: Any, scale: float) -> Any:
        return {"sum": tree["a"] + tree["b"][0], "pair": (tree["a"] * scale, [tree["b"][1]])}

    got = vmap(f, in_dims=({"a": 0, "b": [1, None]}, None))({"a": x, "b": [y, draw(2)]}, 2.0)
    assert same(got["sum"], x + y.T) and same(got["pair"][0], x * 2) and got["pair"][1][0].shape == (3, 2)
    assert isinstance(got["pair"], tuple) and isinstance(got["pair"][1], list)


def test_nested_vmap_and_chunks() -> None:
    x, y = draw(3), draw(4)
    outer = vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))
    assert same(outer(x, y), mt.outer(x, y))
    table = draw(7, 3)
    for size in (1, 2, 3, 7, 100):
        assert same(vmap(lambda r: r.cumsum(0), chunk_size=size, out_dims=1)(table), table.cumsum(1).T)
    assert vmap(lambda r: r.sum())(table[:0]).shape == (0,)
    assert mt.vmap is vmap


def test_tensors_from_outside_are_shared_by_all_samples() -> None:
    x, w = draw(5, 3), draw(3, 2)
    assert same(vmap(lambda r: (r @ w).sin() + w[0])(x), (x @ w).sin() + w[0])
    assert same(vmap(lambda r, i: w[i] + r[:2])(x, mt.tensor([0, 1, 2, 0, 1])), w[[0, 1, 2, 0, 1]] + x[:, :2])


# ---- randomness ----


def test_randomness() -> None:
    x = draw(4, 3)
    for f in (lambda r: r + mt.randn(3), lambda r: nn.functional.dropout(r), lambda r: mt.randn_like(r), mt.bernoulli):
        with pytest.raises(RuntimeError, match="random operation while in randomness error mode"):
            vmap(f)(x.sigmoid())
    alike = vmap(lambda r: mt.rand(3) + 0 * r, randomness="same")(x)
    assert same(alike[0], alike[1])
    unlike = vmap(lambda r: mt.rand(3), randomness="different")(x)
    assert unlike.shape == (4, 3) and len(set(unlike.flatten().tolist())) == 12
    masks = vmap(lambda r: nn.functional.dropout(r, 0.5), randomness="different")(mt.ones(50, 40))
    assert 0.3 < float((masks == 0).double().mean()) < 0.7 and not (masks[0] == masks[1]).all()
    mt.manual_seed(3)
    first = vmap(lambda r: r + mt.randn(3), randomness="different")(x)
    mt.manual_seed(3)
    assert same(first, vmap(lambda r: r + mt.randn(3), randomness="different")(x))
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(lambda r: r, randomness="maybe")


# ---- writes in place ----


def test_writes_in_place_reach_the_input_and_views_of_it() -> None:
    x = draw(4, 3)
    before = x.clone()

    def f(r: Any) -> Any:
        r.mul_(2)
        r[0] = 1.0
        r[1:].add_(r[1])
        return r.sum()

    want = before * 2
    want[:, 0] = 1.0
    want[:, 1:] += want[:, 1:2].clone()
    assert same(vmap(f)(x), want.sum(1)) and same(x, want)


@pytest.mark.parametrize("in_dim, out_dim", [(0, 0), (1, 0), (2, 1)])
@pytest.mark.parametrize(
    "view",
    [
        lambda t: t,
        lambda t: t[0],
        lambda t: t.t(),
        lambda t: t.exp_(),
        lambda t: t.t().add_(1)[1:],
        lambda t: t.detach().diagonal(),
        vmap(lambda row: row[::2]),
        vmap(lambda row: row.mul_(3), out_dims=1),
    ],
)
def test_an_output_that_is_a_view_of_an_input_is_one_outside_too(view: Any, in_dim: int, out_dim: int) -> None:
    shape = [4, 5]
    shape.insert(in_dim, 3)
    x = mt.arange(60.0).reshape(shape) / 30
    y = x.clone()
    out = vmap(view, in_dim, out_dim)(x)
    lanes = [view(y.select(in_dim, i)) for i in range(3)]
    assert same(out, mt.stack(lanes, out_dim))
    out.mul_(2)
    for lane in lanes:
        lane.mul_(2)
    assert same(x, y)


def test_a_change_of_shape_reaches_the_input() -> None:
    x = mt.zeros(3, 2, 4)
    row = x[0]
    vmap(lambda sample: sample.add_(1).t_())(x)
    assert x.shape == (3, 4, 2) and x.stride() == (8, 1, 4)
    assert row.tolist() == [[1.0] * 4] * 2
    vmap(vmap(lambda sample: sample.unsqueeze_(0).add_(1)))(x)
    assert x.shape == (3, 4, 1, 2) and bool((x == 2).all())


def test_an_output_that_no_sample_decides_shows_the_same_memory_for_each() -> None:
    shared = mt.arange(3.0, requires_grad=True)
    out = vmap(lambda sample: shared[1:])(mt.ones(4))
    assert out.shape == (4, 2) and out.stride() == (0, 1) and out[3].tolist() == [1.0, 2.0]
    out.sum().backward()
    assert shared.grad.tolist() == [0.0, 4.0, 4.0]
    out = vmap(lambda sample: shared.detach())(mt.ones(4))
    assert out._is_view()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        out.add_(1)


def test_outputs_with_gradients_are_no_views() -> None:
    x = mt.ones(3, 2, requires_grad=True)
    out = vmap(lambda t: t.detach())(x)
    assert not out.requires_grad and vmap(lambda t: t[0])(x).requires_grad
    out.zero_()
    assert x.sum() == 6
    bits = vmap(lambda t: t.view(mt.int32))(mt.ones(3, 2))
    assert bits.dtype is mt.int32 and bits.shape == (3, 2)


def test_writes_in_place_into_new_tensors() -> None:
    x = draw(4, 3)

    def f(r: Any) -> Any:
        made = mt.zeros_like(r)
        made[1:] = r[:2]
        made += r
        counts = r.new_zeros(3)
        counts.index_add_(0, mt.tensor([0, 0, 2]), r)
        return made, counts

    made, counts = vmap(f)(x)
    assert same(made[:, 1:], x[:, 1:] + x[:, :2]) and same(counts[:, 0], x[:, 0] + x[:, 1])
    with pytest.raises(RuntimeError, match="inplace arithmetic.* is not possible"):
        vmap(lambda r: mt.zeros(3, dtype=f64).add_(r))(x)


# ---- gradients ----


def test_gradients_for_each_sample_of_a_module() -> None:
    model = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)).double()
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, y = draw(6, 5), mt.randint(0, 3, (6,))

    def loss(params: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    got = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(6):
        want = grad(loss)(params, x[i], y[i])
        assert all(same(got[name][i], want[name]) for name in params)
    whole = grad(lambda p: nn.functional.cross_entropy(functional_call(model, p, (x,)), y))(params)
    assert all(same(got[name].mean(0), whole[name]) for name in params)


@pytest.mark.parametrize("padding_idx", [None, 1])
def test_gradients_for_each_sample_of_convolution_and_embedding(padding_idx: int | None) -> None:
    conv = nn.Conv2d(2, 4, 3, padding=1, groups=2).double()
    table = nn.Embedding(7, 3, padding_idx=padding_idx).double()
    x, at = draw(3, 1, 2, 5, 5), mt.randint(0, 7, (3, 4))

    def f(w: Any, b: Any, e: Any, x: Any, at: Any) -> Any:
        y = nn.functional.conv2d(x, w, b, padding=1, groups=2).relu()
        y = nn.functional.max_pool2d(y, 2)
        return (y * y).sum() + nn.functional.embedding(at, e, padding_idx=padding_idx).sin().sum()

    args = conv.weight.detach(), conv.bias.detach(), table.weight.detach()
    got = vmap(grad(f, argnums=(0, 1, 2, 3)), in_dims=(None, None, None, 0, 0))(*args, x, at)
    for i in range(3):
        for g, want in zip(got, grad(f, argnums=(0, 1, 2, 3))(*args, x[i], at[i])):
            assert same(g[i], want)


def test_an_ensemble_of_models() -> None:
    models = [nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double() for _ in range(3)]
    params, buffers = stack_module_state(models)
    base = copy.deepcopy(models[0])
    x = draw(5, 4)
    got = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
    assert same(got, mt.stack([m(x) for m in models]))
    got.sum().backward()
    models[1](x).sum().backward()
    assert same(params["0.weight"].grad[1], models[1][0].weight.grad)


def test_backward_through_vmap_from_outside() -> None:
    x, w = draw(5, 3).requires_grad_(), draw(3, 2).requires_grad_()
    unused = draw(2).requires_grad_()
    (vmap(lambda r: (r @ w).tanh().sum())(x) * mt.arange(5)).sum().backward()
    got = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    ((x @ w).tanh().sum(1) * mt.arange(5)).sum().backward()
    assert same(got[0], x.grad) and same(got[1], w.grad) and unused.grad is None
    assert mt.autograd.gradcheck(lambda x, w: vmap(lambda r: (r @ w).exp().cumsum(0))(x), (x, w))
    assert mt.autograd.gradgradcheck(lambda x, w: vmap(lambda r: (r @ w).exp().cumsum(0))(x), (x, w))


def test_a_value_overwritten_after_vmap_is_noticed_by_backward() -> None:
    x, w = draw(3, 2), draw(2).requires_grad_()
    y = vmap(lambda r: (r * w).sum())(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_hooks_and_no_grad_inside() -> None:
    x = draw(3, 2)
    seen = []

    def f(r: Any) -> Any:
        r = r.requires_grad_()
        y = r * 2
        y.register_hook(lambda g: seen.append(tuple(g.shape)) or g * 10)
        with mt.no_grad():
            assert not (y * 2).requires_grad
        (g,) = mt.autograd.grad(y.sum(), r)
        return g

    assert same(vmap(f)(x), mt.full((3, 2), 20.0, dtype=f64)) and seen == [(2,)]


# ---- with the other transforms ----


def test_jacobians_of_all_sorts_agree() -> None:
    w, x = draw(3, 4), draw(2, 3)
    f = lambda r: (r @ w).sin() * r.sum()
    leaves = [r.clone().requires_grad_() for r in x]
    want = mt.stack([mt.stack([mt.autograd.grad(f(r)[i], r)[0] for i in range(4)]) for r in leaves])
    for jac in (jacrev(f), jacfwd(f), jacrev(f, chunk_size=1), jacrev(f, chunk_size=3)):
        assert same(vmap(jac)(x), want)
    g = lambda r: f(r).pow(2).sum()
    forms = [hessian(g), jacrev(jacrev(g)), jacrev(jacfwd(g)), jacfwd(jacfwd(g)), jacfwd(jacrev(g))]
    first = forms[0](x[0])
    assert all(same(form(x[0]), first) for form in forms)
    assert all(same(vmap(form)(x)[0], first) for form in forms)
    third = jacfwd(jacrev(jacfwd(g)))(x[0])
    assert same(third, jacrev(jacfwd(jacrev(g)))(x[0]))


def test_jacobians_through_vmap() -> None:
    x = draw(3, 2)
    f = lambda x: vmap(lambda r: (r.sin() * r.sum()))(x)
    assert same(jacrev(f)(x), jacfwd(f)(x))
    g = lambda x: vmap(lambda r: (r.sin() * r.sum()).sum())(x).pow(2).sum()
    assert same(hessian(g)(x), jacrev(jacrev(g))(x))
    h = lambda x: jvp(lambda x: vmap(grad(lambda r: r.sin().prod()))(x), (x,), (x.cos(),))[1]
    assert same(jacrev(h)(x), jacfwd(h)(x))


def test_vmap_over_vjp_and_jvp() -> None:
    x, vs = draw(3), draw(4, 3)
    out, pull = vjp(lambda x: x.sin() * x.sum(), x)
    rows = vmap(lambda v: pull(v)[0])(vs)
    assert same(rows, mt.stack([pull(v)[0] for v in vs]))
    columns = vmap(lambda t: jvp(lambda x: x.sin() * x.sum(), (x,), (t,))[1])(vs)
    assert same(columns, mt.stack([jvp(lambda x: x.sin() * x.sum(), (x,), (t,))[1] for t in vs]))


def test_gradients_in_batches_without_func() -> None:
    x = draw(3).requires_grad_()
    y = x.sin() * x.sum()
    (rows,) = mt.autograd.grad(y, x, mt.eye(3, dtype=f64), is_grads_batched=True)
    assert same(rows, jacrev(lambda x: x.sin() * x.sum())(x.detach()))


def test_custom_functions() -> None:
    class Cube(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * g * x**2

    class Told(Cube):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            assert info.batch_size == 4 and in_dims == (0,)
            return Told.apply(x) + 100, 0

    x = draw(4, 2)
    assert same(vmap(Cube.apply)(x), x**3) and same(vmap(Told.apply)(x), x**3 + 100)
    assert same(vmap(grad(lambda r: Cube.apply(r).sum()))(x), 3 * x**2)
    assert same(jacrev(Cube.apply)(x[0]), mt.diag(3 * x[0] ** 2))


# ---- errors, and looking inside ----


def test_what_depends_on_values_is_refused() -> None:
    x = draw(3, 2)
    for f in (lambda r: r.sum().item(), lambda r: float(r[0]), lambda r: r if r.sum() > 0 else -r, lambda r: r.tolist()):
        with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor"):
            vmap(f)(x)
    for f in (mt.nonzero, lambda r: r[r > 0], mt.unique):
        with pytest.raises(RuntimeError, match="can output dynamic shape"):
            vmap(f)(x)
    assert vmap(lambda r: r if mt.ones(()) else -r)(x).shape == (3, 2)


def test_misuse() -> None:
    x = draw(3, 2)
    first = lambda a, *rest: a
    for call, error, text in (
        (lambda: vmap(first)(x, x[:2]), ValueError, r"same size in the mapped dimension, got sizes \[3, 2\]"),
        (lambda: vmap(first, in_dims=None)(x), ValueError, "expected `in_dims` to be int or"),
        (lambda: vmap(first, in_dims=(None,))(x), ValueError, "at least one Tensor"),
        (lambda: vmap(first, in_dims=(0, 0))(x), ValueError, "in_dims is not compatible with the structure"),
        (lambda: vmap(first)(x, 2), ValueError, "We cannot vmap over non-Tensor arguments"),
        (lambda: vmap(first, in_dims=2)(x), ValueError, "-2 <= in_dim < 2"),
        (lambda: vmap(lambda: x)(), ValueError, "got no inputs"),
        (lambda: vmap(lambda a: 1.0)(x), ValueError, "must only return Tensors, got type <class 'float'>"),
        (lambda: vmap(first, out_dims=(0, 0))(x), ValueError, "out_dims is not compatible"),
        (lambda: vmap(first, out_dims="lol")(x), ValueError, "must be an int, None or a python collection of ints"),
        (lambda: vmap(first, out_dims=None)(x), ValueError, "can not return a BatchedTensor when out_dim is None"),
        (lambda: vmap(first, out_dims=3)(x), IndexError, "Dimension out of range"),
        (lambda: vmap(first, chunk_size=0)(x), ValueError, "chunk_size"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_a_tensor_that_escapes_is_refused() -> None:
    kept: list[Any] = []
    vmap(lambda r: kept.append(r) or r)(draw(3, 2))
    with pytest.raises(RuntimeError, match="used outside of it|not possible"):
        vmap(lambda r: r + kept[0])(draw(3, 2))


def test_printing_and_device() -> None:
    shown: list[Any] = []
    vmap(lambda r: shown.append((repr(r), r.device, mt.func.debug_unwrap(r).shape)) or r)(mt.zeros(2, 3))
    text, device, shape = shown[0]
    assert text.startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 0., 0.],") and shape == (2, 3)
    assert device is mt.zeros(1).device
    assert repr(mt.zeros(2)).startswith("tensor([0., 0.]")


# ---- elsewhere, and memory ----


@pytest.mark.parametrize("device", ["strict", "strict_f32"])
def test_on_a_backend_without_mutation(device: str) -> None:
    pytest.importorskip("mortice_conformance")
    with mt.use_backend("strict"), mt.device(device):
        x, w = mt.randn(4, 3), mt.randn(3, 2)

        def f(r: Any, w: Any) -> Any:
            y = (r @ w).sin()
            y[0] = y[1] * 2
            return (y.softmax(0) * r[:2]).sum()

        got = vmap(grad(f), in_dims=(0, None))(x, w)
        want = mt.stack([grad(f)(x[i], w) for i in range(4)])
        assert got.device == x.device and mt.allclose(got, want, atol=1e-5)
        h = vmap(hessian(f), in_dims=(0, None))(x, w)
        assert mt.allclose(h[0], jacrev(jacrev(f))(x[0], w), atol=1e-4)


def test_no_graph_and_no_tensor_outlives_a_transform() -> None:
    import gc
    import weakref

    x, w = draw(4, 3), draw(3, 3).requires_grad_()
    kept: list[Any] = []

    def f(r: Any) -> Any:
        y = (r @ w).sin()
        kept.append(weakref.ref(y))
        return (y * y).sum()

    gc.disable()
    try:
        vmap(grad(f))(x)
        hessian(f)(x[0])
        vmap(f)(x).sum().backward()
        jvp(f, (x[0],), (x[1],))
        assert len(kept) == 4 and all(ref() is None for ref in kept)
    finally:
        gc.enable()


def test_the_vmap_of_an_operator_may_return_a_list() -> None:
    @mt.library.custom_op("tests::halves", mutates_args=())
    def halves(x: mt.Tensor) -> list[mt.Tensor]:
        return [part.clone() for part in x.chunk(2, -1)]

    halves.register_vmap(lambda info, in_dims, x: (halves(x.movedim(in_dims[0], 0)), 0))
    x = mt.arange(12.0).reshape(2, 6)
    first, second = vmap(halves)(x)
    assert same(first, x[:, :3]) and same(second, x[:, 3:])
    of_one = vmap(vmap(lambda d, x: halves(x)[1], (0, None)))(mt.ones(2, 1), x)
    assert same(of_one, x[:, None, 3:])
    halves.register_vmap(lambda info, in_dims, x: (halves(x), [0]))
    with pytest.raises(RuntimeError, match="incompatible .output, out_dims. tuple"):
        vmap(halves)(x)


def test_running_statistics_of_two_levels_move_each_in_its_own() -> None:
    x, means, var = mt.arange(12.0).sin().reshape(4, 3), mt.zeros(2, 3), mt.ones(3)
    mean, other = mt.zeros(3), mt.ones(3)
    expected = mt.nn.functional.batch_norm(x, mean, other, training=True)
    made = vmap(lambda m: mt.nn.functional.batch_norm(x, m, var, training=True))(means)
    assert same(made[0] if made.ndim == 3 else made, expected, 1e-6)
    assert all(same(m, mean, 1e-6) for m in means) and same(var, other, 1e-6)


def test_draws_that_reject_candidates_run_in_a_batch() -> None:
    rates = mt.tensor([[0.5, 40.0, 3.0], [2.0, 0.1, 90.0]])
    drawn = vmap(mt.poisson, randomness="different")(rates.expand(2, 3))
    assert drawn.shape == (2, 3) and (drawn >= 0).all() and (drawn == drawn.round()).all()
    counts = mt.tensor([4.0, 60.0, 9.0])
    drawn = vmap(lambda n: mt.binomial(n, n * 0 + 0.25), randomness="different")(counts.expand(5, 3).contiguous())
    assert drawn.shape == (5, 3) and (drawn <= counts).all()


@pytest.mark.parametrize("engine", ["philox", "mt19937"])
@pytest.mark.parametrize("draws", [lambda x: mt.poisson(x), lambda x: mt.binomial(x, x * 0 + 0.5), lambda x: mt._standard_gamma(x)])
def test_counts_are_drawn_for_each_sample_also_of_what_samples_share(engine: str, draws: Any) -> None:
    rates, seen = mt.full((20,), 7.0), mt.zeros(3)
    before = mt.random.get_engine()
    mt.random.set_engine(engine)
    try:
        mt.manual_seed(3)
        apart = vmap(lambda _: draws(rates), randomness="different")(seen)
        assert not mt.equal(apart[0], apart[1]) and not mt.equal(apart[0], apart[2])
        together = vmap(lambda _: draws(rates), randomness="same")(seen)
        assert mt.equal(together[0], together[1])
        if engine == "mt19937":  # all samples at once, as in PyTorch
            mt.manual_seed(3)
            assert mt.equal(draws(rates.expand(3, 20)), apart)
            mt.manual_seed(3)
            assert mt.equal(vmap(draws, in_dims=1, randomness="different")(rates.expand(3, 20).t().contiguous()), apart)
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(lambda _: draws(rates))(seen)
    finally:
        mt.random.set_engine(before)


def test_chunks_draw_the_same_where_samples_do() -> None:
    x = draw(7)
    noisy = [vmap(lambda v: v + mt.rand(()), randomness="same", chunk_size=size) for size in (None, 1, 3)]
    found = []
    for f in noisy:
        mt.manual_seed(3)
        found.append(f(x) - x)
    assert all(same(f, found[0]) for f in found) and same(found[0], found[0][:1].expand(7))


def test_what_is_no_tensor_is_returned_as_it_is_where_out_dims_is_none() -> None:
    x = draw(3)
    doubled, word, nothing = vmap(lambda v: (v * 2, "word", None), out_dims=(0, None, None))(x)
    assert same(doubled, x * 2) and word == "word" and nothing is None
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda v: (v, "word"))(x)


def test_the_vmap_of_a_function_is_told_of_tensors_inside_lists_too() -> None:
    class Weighted(mt.autograd.Function):
        @staticmethod
        def forward(parts: Any, factor: Any, by: float) -> Any:
            return sum(parts) * factor * by

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, parts: Any, factor: Any, by: float) -> Any:
            assert in_dims == ([0, None], 0, None) and info.batch_size == 2
            return (parts[0] + parts[1]) * factor.unsqueeze(1) * by, 0

    x, y, w = draw(2, 3), draw(3), draw(2)
    found = vmap(lambda x, w: Weighted.apply([x, y], w, 3.0))(x, w)
    assert same(found, (x + y) * w.unsqueeze(1) * 3)
    Weighted.vmap = staticmethod(lambda info, in_dims, parts, factor, by: (factor, (0,)))  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="returned an incompatible"):
        vmap(lambda x, w: Weighted.apply([x, y], w, 3.0))(x, w)


def test_checks_of_values_look_at_all_samples() -> None:
    x, w = mt.tensor([[0, 1], [2, 2]]), mt.tensor([[1.0, 2.0], [3.0, 4.0]])
    for dims, expected in (((0, 0), [[1, 2, 0], [0, 0, 7]]), ((0, None), [[1, 2, 0], [0, 0, 3]]), ((None, 0), [[1, 2, 0], [3, 4, 0]])):
        given = [t if d == 0 else t[0] for t, d in zip((x, w), dims)]
        assert vmap(lambda x, w: mt.bincount(x, w, 3), in_dims=dims)(*given).tolist() == expected
    assert vmap(lambda x, q: x.quantile(q))(w, mt.tensor([0.0, 1.0])).tolist() == [1.0, 4.0]
    with pytest.raises(RuntimeError, match="must be in the range"):
        vmap(lambda x, q: x.quantile(q))(w, mt.tensor([0.0, 2.0]))
    a = mt.tensor([[[1.0], [0.0]], [[0.0], [2.0]]])
    assert vmap(lambda a: mt.linalg.lstsq(a, mt.ones(2, 1), driver="gelsd").residuals)(a).tolist() == [[1.0], [1.0]]
    with pytest.raises(RuntimeError, match="has no room for the result"):
        vmap(lambda i: mt.zeros(2, requires_grad=False).index_fill_(0, i, 1.0))(mt.tensor([0, 1]))


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_jacobians_are_of_real_functions(transform: Any) -> None:
    z = mt.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Expected all inputs to be real"):
        transform(lambda z: z * 2)(z.to(mt.complex64))
    with pytest.raises(RuntimeError, match="Expected all outputs to be real"):
        transform(lambda z: z * 2j)(z)
    with pytest.raises(RuntimeError, match="non-empty output"):
        transform(lambda z: ())(z)


class OnTheHost(mt.autograd.Function):
    """A cube, and its slope, of numbers that are read out: no transform can look inside."""

    @staticmethod
    def forward(x: Any) -> Any:
        numbers = x.detach().tolist()
        return mt.tensor([n**3 for n in numbers]), mt.tensor([3 * n**2 for n in numbers])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0], output[1])

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, slope = ctx.saved_tensors
        return g * slope + 6 * h * x

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        x, slope = ctx.saved_tensors
        return slope * t, 6 * x * t

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        cubes = OnTheHost.apply(x.reshape(-1))
        return tuple(c.reshape(x.shape) for c in cubes), (in_dims[0], in_dims[0])


def test_a_custom_function_with_rules_of_its_own_nests() -> None:
    def cube(x: Any) -> Any:
        return OnTheHost.apply(x)[0]

    x, v = mt.tensor([1.0, 2.0]), mt.tensor([[1.0, 0.0], [0.0, 1.0]])
    # What all samples share has a gradient in each of them.
    assert vmap(lambda v: grad(lambda x: (cube(x) * v).sum())(x))(v).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert [t.tolist() for t in vmap(lambda x, v: jvp(cube, (x,), (v,)))(v, v)] == [v.tolist(), (3 * v).tolist()]
    assert jacfwd(cube)(x).tolist() == jacrev(cube)(x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert hessian(lambda x: cube(x).sum())(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert jvp(lambda x: jvp(cube, (x,), (x,))[1], (x,), (x,))[1].tolist() == [9.0, 72.0]


def test_a_custom_function_inside_vmap_moves_by_rules_of_its_own() -> None:
    class Scaled(mt.autograd.Function):
        """A product whose derivative by the second operand is ten times too large: not what forward does."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return Scaled.apply(g, y), Scaled.apply(g, x) * 10

        @staticmethod
        def jvp(ctx: Any, t: Any, u: Any) -> Any:
            x, y = ctx.saved_tensors
            return t * y + 10 * x * u

    def whole(w: Any) -> Any:
        return vmap(lambda x: Scaled.apply(x, w))(x)

    x, w = mt.arange(1.0, 7.0).reshape(3, 2), mt.tensor([1.0, 2.0], requires_grad=True)
    whole(w).sum().backward()
    w = w.detach()
    assert grad(lambda w: whole(w).sum())(w).tolist() == [90.0, 120.0]
    assert jvp(whole, (w,), (w,))[1].tolist() == (10 * x * w).tolist()
    assert jacfwd(whole)(w).tolist() == jacrev(whole)(w).tolist()
    assert jvp(lambda w: vmap(vmap(lambda x: Scaled.apply(x, w)), in_dims=1)(x[..., None])[0], (w,), (w,))[1].tolist() == (
        10 * x[:, :1] * w
    ).tolist()
    assert hessian(lambda w: (whole(w) ** 2).sum())(w).tolist() == [[7000.0, 0.0], [0.0, 11200.0]]


def test_a_custom_function_may_write_to_its_input_unseen() -> None:
    class Doubled(mt.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            x.data.mul_(2)  # counted as no write
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return Doubled.apply(x), in_dims[0]

    def doubled(x: Any) -> Any:
        x = x.clone()
        return Doubled.apply(x) + x

    x = mt.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert vmap(vmap(doubled))(x).tolist() == (4 * x).tolist()
    assert vmap(vmap(grad(doubled)))(x).tolist() == [[4.0, 4.0], [4.0, 4.0]]
    x = mt.tensor([1.0]).mul(1)
    before = x._version
    assert Doubled.apply(x) is x and x._version == before + 1


def test_libraries_ask_whether_a_transform_runs() -> None:
    active = mt._C._are_functorch_transforms_active
    seen = []
    vmap(lambda x: seen.append(active()) or x)(mt.ones(2))
    grad(lambda x: seen.append(active()) or x)(mt.tensor(1.0))
    assert seen == [True, False] and not active()  # grad hands plain tensors


def test_libraries_ask_whether_a_tensor_is_a_sample() -> None:
    batched = mt._C._functorch.is_batchedtensor
    seen = []
    vmap(lambda x: seen.append((batched(x), batched(mt.ones(2)))) or x)(mt.ones(2))
    mt.func.jvp(lambda x: seen.append(batched(x)) or x, (mt.ones(2),), (mt.ones(2),))
    assert seen == [(True, False), False] and not batched(mt.ones(2))
    assert not mt._C._functorch.is_legacy_batchedtensor(mt.ones(2))


@pytest.mark.parametrize("jump", [mt.relu, nn.functional.leaky_relu, lambda x: nn.functional.max_pool1d(x[None], 2)[0]])
def test_a_jacobian_through_what_has_kinks_can_be_differentiated_again(jump: Any) -> None:
    """The zeros that a kink gives its operand again are of the operand's level, not of the gradient's."""
    x = mt.tensor([0.5, -1.2, 0.8, 0.3], dtype=f64)
    f = lambda x: jump(x * x - 0.1).cumsum(0)
    expected = jacfwd(jacfwd(f))(x)
    assert same(jacrev(jacrev(f))(x), expected)
    assert same(grad(lambda x: jacrev(f)(x).sum())(x), expected.sum((0, 1)))
    assert same(vmap(grad(lambda x: jacrev(f, chunk_size=3)(x).sum()))(x[None]), expected.sum((0, 1))[None])
    out, pull = vjp(jacrev(lambda x: jump(x).sum()), x)
    assert pull(mt.ones_like(out))[0].tolist() == [0, 0, 0, 0]


def test_a_container_with_steps_of_its_own_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = importlib.import_module("mortice._functorch.vmap")

    class Box:
        def __init__(self, t: Any) -> None:
            self.t = t

    def process(in_dims: Any, args: Any, func: Any) -> tuple[int, list[Any], list[Any], Any]:
        flat, spec = steps.tree_flatten(args)
        dims = steps._broadcast_to_and_flatten(in_dims, spec)
        return next(getattr(a, "t", a).shape[d] for a, d in zip(flat, dims) if d is not None), dims, flat, spec

    def create(dims: Any, flat: Any, level: int, spec: Any) -> Any:
        def lanes(arg: Any, dim: Any) -> Any:
            if dim is None:
                return arg
            return Box(steps._add_batch_dim(arg.t, dim, level)) if isinstance(arg, Box) else steps._add_batch_dim(arg, dim, level)

        return steps.tree_unflatten([lanes(*pair) for pair in zip(flat, dims)], spec)

    def unwrap(out: Any, out_dims: Any, level: int, size: int, func: Any) -> Any:
        return Box(steps._maybe_remove_batch_dim("f", out.t, level, size, out_dims))

    for name, step in {"process_batched_inputs": process, "create_batched_inputs": create, "unwrap_batched": unwrap}.items():
        monkeypatch.setitem(vars(steps), f"_{name}", step)
    x, w = draw(2, 3).requires_grad_(), draw(3)
    out = vmap(lambda box, w: Box(box.t @ w * mt.ones(4, dtype=f64)), (1, None), 1)(Box(x.T), w)
    assert same(out.t, (x @ w).expand(4, 2))
    out.t.sum().backward()
    assert same(x.grad, (4 * w).expand(2, 3))
    inner = vmap(lambda box: vmap(lambda b: Box(b.t * 2))(box))(Box(x))
    assert same(inner.t, 2 * x)


@pytest.mark.parametrize("device", ["cpu", "strict"])
def test_a_mapped_gradient_of_tanh_is_that_of_each_alone(device: str) -> None:
    x = (mt.arange(64.0, device=device) / 8).requires_grad_()
    out = x.tanh()
    gs = mt.eye(64, device=device)
    alone = mt.stack([mt.autograd.grad(out, x, g, retain_graph=True)[0] for g in gs])
    (mapped,) = mt.vmap(lambda g: mt.autograd.grad(out, x, g, retain_graph=True))(gs)
    assert mt.equal(alone, mapped)


class Pair:
    """What `register_pytree_node` makes a container."""

    def __init__(self, a, b):
        self.a, self.b = a, b


_pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))


def test_transforms_see_into_registered_containers():
    x, y = mt.arange(4.0), mt.ones(4)
    assert mt.vmap(lambda p: p.a * p.b)(Pair(x, y)).tolist() == x.tolist()
    out = mt.vmap(lambda a: Pair(a, a + 1), out_dims=Pair(0, 0))(x)
    assert out.b.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert mt.vmap(lambda p: p.a + p.b, in_dims=(Pair(0, None),))(Pair(x, y)).shape == (4, 4)
    with pytest.raises(ValueError, match="not compatible"):
        mt.vmap(lambda p: p.a, in_dims=([0, 0],))(Pair(x, y))
    g = mt.func.grad(lambda p: (p.a * p.b).sum())(Pair(x, y))
    assert g.a.tolist() == y.tolist() and g.b.tolist() == x.tolist()
    value, tangent = mt.func.jvp(lambda p: p.a * p.b, (Pair(x, y),), (Pair(y, y),))
    assert tangent.tolist() == (x + y).tolist() and value.tolist() == x.tolist()
    assert mt.vmap(lambda d: d[0] + d[1])(collections.deque([x, y])).tolist() == (x + y).tolist()
    assert mt.vmap(lambda a: collections.deque([a], 3))(x).maxlen == 3


def test_lengths_and_repeats_may_be_mapped_over():
    x = mt.arange(6.0).reshape(2, 3)
    repeats, lengths = mt.tensor([[1, 2, 1], [2, 0, 2]]), mt.tensor([[1, 2], [3, 0]])
    assert mt.vmap(mt.repeat_interleave)(x, repeats).tolist() == [[0.0, 1.0, 1.0, 2.0], [3.0, 3.0, 5.0, 5.0]]
    assert mt.vmap(mt.repeat_interleave)(repeats).tolist() == [[0, 1, 1, 2], [0, 0, 2, 2]]
    assert mt.vmap(lambda a, n: mt.segment_reduce(a, "sum", lengths=n))(x, lengths).tolist() == [[0.0, 3.0], [12.0, 0.0]]
    scores = mt.linspace(-3, 0, 80).reshape(2, 5, 2, 4).log_softmax(-1)
    labels, long, short = mt.tensor([[1, 2, 3], [3, 1, 1]]), mt.tensor([[5, 4], [4, 5]]), mt.tensor([[3, 2], [1, 3]])
    loss = mt.vmap(lambda s, n, m: mt.nn.functional.ctc_loss(s, labels, n, m))(scores, long, short)
    each = [mt.nn.functional.ctc_loss(s, labels, n, m) for s, n, m in zip(scores, long, short)]
    mt.testing.assert_close(loss, mt.stack(each))


# ---- where samples lie in memory ----


def test_a_sample_has_the_strides_of_the_batch_and_contiguous_copies_what_has_gaps() -> None:
    x, seen = draw(2, 3, 4), []

    def f(t: Any) -> Any:
        seen.append((t.stride(), t.is_contiguous(), t.storage_offset(), t.t().stride()))
        return t.contiguous().add_(1)

    before = x.clone()
    got = [vmap(f, in_dims=d)(x) for d in (1, 2)]
    assert seen == [((12, 1), False, 0, (1, 12)), ((12, 4), False, 0, (4, 12))]
    assert same(x, before) and all(same(y, x.movedim(d, 0) + 1) for d, y in zip((1, 2), got))
    seen.clear()
    part = x[:, 1:]
    whole = vmap(f)(part)
    assert seen == [((4, 1), True, 4, (1, 4))]
    assert same(part, before[:, 1:] + 1) and same(whole, part)
    with pytest.raises(RuntimeError, match="spans across two contiguous subspaces"):
        vmap(lambda t: t.view(-1), in_dims=1)(x)


def test_as_strided_of_a_sample_goes_by_the_memory_of_the_batch() -> None:
    x = draw(6, 3)
    flat = x.reshape(-1)
    got = vmap(lambda t: t.as_strided((2, 2), (1, 2), 0), in_dims=-1)(x)
    assert same(got, mt.stack([flat[i : i + 4].as_strided((2, 2), (1, 2)) for i in range(3)]))
    y = x[:, 1:]
    assert same(vmap(lambda t: t.as_strided((2,), (1,), 1))(y), y)
    with pytest.raises(RuntimeError, match=r"memory in range \[0, 10\], but `tensor` can only access some memory in range \[0, 3\]"):
        vmap(lambda t: t.as_strided((2, 5), (1, 2), 0))(x)
    w = x.clone().requires_grad_()
    vmap(lambda t: t.as_strided((2,), (3,)), in_dims=1)(w).sum().backward()
    assert w.grad.sum(1).tolist() == [3.0, 3.0, 0, 0, 0, 0]


def test_windows_that_are_written_and_returned_have_the_new_values() -> None:
    for view in (lambda t: t.unfold(0, 2, 2), lambda t: t.as_strided((2,), (2,), 1)):
        x = draw(3, 6)
        want = mt.stack([view(row.clone()) for row in x]) * 10
        assert same(vmap(lambda t: view(t).mul_(10))(x), want)  # noqa: B023
        assert same(mt.stack([view(row.clone()) for row in x]), want)


def test_an_input_that_goes_out_again_is_the_tensor_itself() -> None:
    x = draw(3, 2)
    assert vmap(lambda t: t)(x) is x and vmap(lambda t: t.add_(1))(x) is x
    assert vmap(lambda t, s: (s, t), in_dims=(1, None), out_dims=(None, 1))(x, 2.0)[1] is x
    assert vmap(lambda t: t, in_dims=1)(x).shape == (2, 3)


def test_anomaly_mode_looks_at_all_samples() -> None:
    with mt.autograd.set_detect_anomaly(True):
        assert same(vmap(grad(lambda t: t.sin().sum()))(x := draw(3, 2)), x.cos())
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
            vmap(grad(lambda t: (t.sqrt() * 0).sum()))(mt.tensor([1.0, 0.0], dtype=f64))


def test_chunk_vmap_and_nonzero_static_take_the_samples_in_turn() -> None:
    chunk_vmap = importlib.import_module("mortice.functorch.experimental").chunk_vmap
    x, sizes = draw(5, 2), []
    assert same(chunk_vmap(lambda t: sizes.append(mt.func.debug_unwrap(t).shape[0]) or t * 2, chunks=3)(x), x * 2)
    assert sizes == [2, 2, 1]
    with pytest.raises(RuntimeError, match="`chunks` to be greater than 0, got: 0"):
        chunk_vmap(mt.sin, chunks=0)
    flags = mt.tensor([[0, 1, 1], [3, 0, 0]])
    assert vmap(lambda t: mt.nonzero_static(t, size=2))(flags).tolist() == [[[1], [2]], [[0], [-1]]]


def test_derivatives_over_an_empty_batch_and_of_what_cannot_have_them() -> None:
    assert jacfwd(lambda t: nn.functional.unfold(t, (2, 2)))(mt.zeros(0, 1, 3, 3)).shape == (0, 4, 4, 0, 1, 3, 3)
    for fn in (lambda: jacrev(lambda t: t.long())(draw(2)), lambda: vjp(lambda t: t.long(), draw(2))):
        with pytest.raises(RuntimeError, match="outputs of f must be floating-point or complex Tensors, got Tensor with dtype"):
            fn()
    push = mt.func.linearize(mt.sin, draw(2))[1]
    for wrong, what in ((draw(3), "shape"), (mt.ones(2), "dtype")):
        with pytest.raises(RuntimeError, match=f"tangent:0 with {what} .* doesn't match the {what}"):
            push(wrong)


def test_a_tangent_reaches_the_padding_of_an_embedding_that_gradients_leave_out() -> None:
    w, at = draw(4, 2), mt.tensor([0, 2, 3])

    def look(t: Any) -> Any:
        return nn.functional.embedding(at, t, padding_idx=2)

    assert same(jvp(look, (w,), (w,))[1], w[at])
    assert grad(lambda t: look(t).sum())(w).sum(1).tolist() == [2, 0, 0, 2]
