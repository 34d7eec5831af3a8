"""vmap elsewhere: on other backends, through layers and containers, what outlives it, and where samples lie in memory."""

from __future__ import annotations

import collections
import importlib
from typing import Any

import pytest
from vmap_sweep import draw, f64, same

import mortice as mt
from mortice import nn
from mortice.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from mortice.utils import _pytree

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
