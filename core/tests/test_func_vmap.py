"""vmap: every op of the kit against a loop, dims and nests, randomness, in-place writes, gradients in and out, errors."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import vmap_sweep
from vmap_sweep import draw, f64, same

import mortice as mt
from mortice import nn
from mortice.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from mortice.levels import mapped_rules

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
        with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor.*data-dependent control flow"):
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
    uses = (
        lambda t: vmap(lambda r: r + t)(draw(3, 2)), lambda t: t + 1, lambda t: t.sum(), lambda t: t + draw(3, 2), lambda t: t.view(-1),
        lambda t: t @ t, lambda t: t.clone(), lambda t: t.add_(1), lambda t: mt.stack([t, t]), lambda t: mt.func.grad(lambda x: x.sum())(t),
        lambda t: t[0].exp(),
    )  # fmt: skip
    vmap(mt.func.grad(lambda r: kept.append(r * 2) or (r * r).sum()))(draw(3, 2))
    for t in kept:
        assert t.shape == (2,) and repr(t).startswith("BatchedTensor")
        for use in uses:
            with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped.*Return it from the function"):
                use(t)


def test_a_graph_that_a_vmap_left_is_followed_after_it() -> None:
    x, w = draw(3, 2).requires_grad_(), draw(2).requires_grad_()
    for create_graph in (False, True):
        out = vmap(lambda r: (r * w).sin().sum())(x)
        got = mt.autograd.grad(out.sum(), (x, w), create_graph=create_graph)
        want = mt.autograd.grad((x * w).sin().sum(), (x, w), create_graph=create_graph)
        mt.testing.assert_close(got, want)
    mt.testing.assert_close(*[mt.autograd.grad(g[0].sum() + g[1].sum(), (x, w)) for g in (got, want)])


def test_printing_and_device() -> None:
    shown: list[Any] = []
    vmap(lambda r: shown.append((repr(r), r.device, mt.func.debug_unwrap(r).shape)) or r)(mt.zeros(2, 3))
    text, device, shape = shown[0]
    assert text.startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 0., 0.],") and shape == (2, 3)
    assert device is mt.zeros(1).device
    assert repr(mt.zeros(2)).startswith("tensor([0., 0.]")
