"""Forward mode: every op's tangents, dual levels, nesting, in-place writes, custom Functions, functional and func."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import pytest
import vmap_sweep

import mortice as mt
from mortice import nn
from mortice.autograd import forward_ad, functional
from mortice.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vmap

f64 = mt.float64


def draw(*shape: int, dtype: Any = f64) -> mt.Tensor:
    return mt.randn(*shape, dtype=dtype)


def same(a: Any, b: Any, atol: float = 1e-9) -> bool:
    return a.shape == b.shape and mt.allclose(a, b, rtol=1e-7, atol=atol)


def slope(f: Any, x: Any, t: Any, step: float = 1e-6) -> Any:
    """Return the difference quotient."""
    return (f(x + step * t) - f(x - step * t)) / (2 * step)


# ---- every op ----


@pytest.mark.seed("AG29")
def test_the_tangent_of_every_op_is_the_transpose_of_its_gradient() -> None:
    counts, failed = vmap_sweep.sweep(vmap_sweep.check_jvp)
    assert failed == {}
    assert counts["samples"] > 230


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sin() * x + x / (x * x + 1), lambda x: (x @ x.mT).exp(), lambda x: nn.functional.softmax(x, -1),
        lambda x: x.sort(0)[0].cumsum(1), lambda x: nn.functional.layer_norm(x, (4,)), lambda x: x.logsumexp(0),
        lambda x: x[1:, ::2].mean(0), lambda x: mt.cat([x, x * 2]), lambda x: mt.where(x > 0, x, x * x),
        lambda x: nn.functional.pad(x, (1, 1), value=3.0), lambda x: mt.linalg.inv(x[:, :3] + 3 * mt.eye(3, dtype=f64)),
        lambda x: nn.functional.conv1d(x.reshape(1, 3, 4), x.reshape(2, 3, 2), x[0, :2]), lambda x: x.clamp(-0.5, 0.5),
        lambda x: nn.functional.cross_entropy(x, mt.tensor([0, 3, 1])), lambda x: mt.einsum("ij,kj->ik", x, x),
        lambda x: nn.functional.max_pool1d(x.unsqueeze(0), 2), lambda x: x.prod(1), lambda x: x.norm(),
    ],
)  # fmt: skip
def test_tangents_are_what_differences_say(f: Any) -> None:
    mt.manual_seed(1)
    x, t = draw(3, 4), draw(3, 4)
    value, pushed = jvp(f, (x,), (t,))
    assert same(value, f(x)) and mt.allclose(pushed, slope(f, x, t), rtol=1e-5, atol=1e-6)


def test_complex_tangents() -> None:
    z, t = draw(5, dtype=mt.complex128), draw(5, dtype=mt.complex128)
    for f in (lambda z: z * z.exp(), lambda z: z.abs() * z.conj(), lambda z: z.angle() + z.real, lambda z: z / z.abs(), mt.sgn):
        assert mt.allclose(jvp(f, (z,), (t,))[1], slope(f, z, t), atol=1e-6)


# ---- dual levels ----


def test_dual_numbers_in_a_module() -> None:
    layer = nn.Linear(3, 2).double()
    x, t = draw(4, 3), draw(2, 3)
    with forward_ad.dual_level():
        weight = layer.weight
        del layer.weight
        layer.weight = forward_ad.make_dual(weight.detach(), t)
        out = layer(x)
        primal, tangent = forward_ad.unpack_dual(out)
        assert same(tangent, x @ t.mT) and same(primal, x @ weight.mT + layer.bias)
        assert forward_ad.unpack_dual(x).tangent is None
        assert "tangent=tensor(" in repr(forward_ad.make_dual(x, x))
        assert forward_ad.unpack_dual(out.detach()).tangent is None


def test_levels_open_and_close() -> None:
    x = draw(3)
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, x)
    assert forward_ad.enter_dual_level() == 0
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        forward_ad.enter_dual_level()
    dual = forward_ad.make_dual(x, x)
    with pytest.raises(RuntimeError, match="that already has a forward gradient at the same level 0"):
        forward_ad.make_dual(dual, x)
    with pytest.raises(ValueError, match="floating point or complex"):
        forward_ad.make_dual(mt.arange(3), mt.arange(3))
    with pytest.raises(RuntimeError, match=r"different size than .* is of size \[3\] while the given forward gradient is of size \[2\]"):
        forward_ad.make_dual(x, x[:2])
    forward_ad.exit_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        forward_ad.exit_dual_level()
    assert forward_ad.unpack_dual(x).tangent is None
    with forward_ad.dual_level():  # one level's tangents are not another's
        assert forward_ad.unpack_dual(dual).tangent is None
        assert same(forward_ad.unpack_dual(forward_ad.make_dual(dual, 2 * x)).tangent, 2 * x)


@pytest.mark.parametrize("in_place", [False, True])
def test_what_outlives_its_level_goes_on_without_its_tangent(in_place: bool) -> None:
    x, total = mt.tensor([1.0, 2.0]), mt.zeros(())
    for n in range(3):
        with forward_ad.dual_level():
            loss = (forward_ad.make_dual(x, mt.ones(2)) ** 2).sum()
            if n and in_place:
                total += loss
            else:
                total = total + loss
            assert forward_ad.unpack_dual(total).tangent.item() == 6.0
    assert total.item() == 15.0 and "tangent" not in repr(total)


def test_writes_in_place_carry_tangents() -> None:
    x, t = draw(4), draw(4)

    def f(x: Any) -> Any:
        y = mt.zeros_like(x)
        y[1:] = x[:3] * 2
        y.mul_(x)
        y[0].add_(x.sum())
        return y

    assert same(jvp(f, (x,), (t,))[1], slope(f, x, t), atol=1e-6)
    z = x.clone()
    jvp(lambda x: x.mul_(3), (z,), (t,))
    assert same(z, x * 3)


@pytest.mark.needs("strides")
def test_a_memory_format_keeps_tangents() -> None:
    x, t = draw(2, 3, 2, 2), draw(2, 3, 2, 2)
    for f in (
        lambda x: x.contiguous(memory_format=mt.channels_last), lambda x: x.to(mt.float32, memory_format=mt.channels_last),
        lambda x: x.clone(memory_format=mt.channels_last),
    ):  # fmt: skip
        out, moved = jvp(f, (x,), (t,))
        assert not out._is_view() and out.is_contiguous(memory_format=mt.channels_last)
        assert mt.equal(moved, t.to(moved.dtype))


def test_values_may_decide_in_forward_mode() -> None:
    f = lambda x: x.sin() if x.sum() > 0 else x.cos()
    x = mt.ones(2, dtype=f64)
    assert same(jvp(f, (x,), (x,))[1], x.cos()) and jvp(lambda x: x * x[0].item(), (x,), (x,))[1].tolist() == [1, 1]


def test_running_statistics_move_in_forward_mode() -> None:
    norm = nn.BatchNorm1d(3).double()
    x, t = draw(6, 3), draw(6, 3)
    pushed = jvp(norm, (x,), (t,))[1]
    assert int(norm.num_batches_tracked) == 1 and norm.running_mean.abs().sum() > 0
    assert same(pushed, slope(lambda x: nn.functional.batch_norm(x, None, None, training=True), x, t), atol=1e-6)


# ---- nesting: perturbations are not confused ----


def test_perturbations_are_not_confused() -> None:
    d = lambda f: lambda x: jvp(f, (x,), (mt.ones_like(x),))[1]
    x = mt.tensor(2.0, dtype=f64)
    # d/dx (x * d/dy (x + y)) is 1, and 2 where the levels are mixed up.
    assert d(lambda x: x * d(lambda y: x + y)(mt.ones((), dtype=f64)))(x).item() == 1.0
    assert d(d(d(lambda x: x**4)))(x).item() == 48.0
    assert d(lambda x: grad(lambda y: x * y * y)(x))(x).item() == pytest.approx(8.0)
    assert grad(lambda x: d(lambda y: x * y * y)(x))(x).item() == pytest.approx(8.0)
    assert grad(grad(d(lambda x: x.exp())))(x).item() == pytest.approx(math.exp(2))


def test_reverse_over_forward_and_forward_over_reverse() -> None:
    x, t = draw(4), draw(4)
    f = lambda x: (x.sin() * x.exp()).cumsum(0).prod()
    h = jacrev(jacrev(f))(x)
    assert same(jvp(grad(f), (x,), (t,))[1], h @ t)
    assert same(grad(lambda x: jvp(f, (x,), (t,))[1])(x), h @ t)
    assert same(hessian(f)(x), h) and same(jacfwd(jacfwd(f))(x), h) and same(jacrev(jacfwd(f))(x), h)
    v = t.clone().requires_grad_()
    pushed = jvp(f, (x,), (v,))[1]
    assert same(mt.autograd.grad(pushed, v)[0], grad(f)(x))


def test_the_graph_outside_reaches_through_a_tangent() -> None:
    w = draw(3).requires_grad_()
    x = draw(3)
    pushed = jvp(lambda x: (x * w).sin(), (x,), (mt.ones_like(x),))[1]
    (got,) = mt.autograd.grad(pushed.sum(), w)
    want = (x * w.detach()).cos() - w.detach() * x * (x * w.detach()).sin()
    assert same(got, want)
    assert not jvp(lambda x: x.sin(), (x,), (x,))[1].requires_grad


# ---- the functions ----


def test_jvp_with_nests_and_aux() -> None:
    x, y = draw(3), draw(3)
    out, pushed, aux = jvp(lambda d, y: ({"a": d["x"] * y}, y.sum()), ({"x": x}, y), ({"x": y}, x), has_aux=True)
    assert same(out["a"], x * y) and same(pushed["a"], y * y + x * x) and same(aux, y.sum())
    assert jvp(lambda x: mt.ones(2), (x,), (x,))[1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="is independent of the inputs"):
        jvp(lambda x: mt.ones(2), (x,), (x,), strict=True)


def test_a_tangent_has_the_dtype_of_its_primal() -> None:
    assert jvp(mt.sin, (mt.zeros(2),), (mt.ones(2, dtype=mt.float64),))[1].dtype is mt.float32


@pytest.mark.parametrize("f", [mt.prod, mt.linalg.det, lambda x: mt.linalg.slogdet(x)[1]])
def test_a_result_that_hangs_on_nothing_has_a_tangent_of_zeros(f: Any) -> None:
    with forward_ad.dual_level():
        x = mt.ones(0, 0, dtype=mt.float64)
        tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, x))).tangent
        assert tangent.item() == 0 and tangent.dtype is mt.float64


def test_misuse_of_jvp() -> None:
    x = draw(3)
    for call, error, text in (
        (lambda: jvp(mt.sin, x, x), RuntimeError, "Expected primals to be a tuple"),
        (lambda: jvp(mt.sin, (x,), (x, x)), RuntimeError, "same python structure"),
        (lambda: jvp(mt.sin, (x,), (x[:2],)), RuntimeError, "Trying to set a forward gradient that has a different size"),
        (lambda: jvp(mt.sin, (mt.arange(3),), (mt.arange(3),)), ValueError, "floating point or complex"),
        (lambda: jvp(lambda x: x, (x,), (x,), has_aux=True), RuntimeError, r"\(output, aux\) if has_aux"),
        (lambda: jvp(lambda x: 3, (x,), (x,)), RuntimeError, "to return only tensors, got unsupported type <class 'int'>"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_jacfwd_of_several_inputs_and_outputs() -> None:
    x, y = draw(2), draw(3)
    f = lambda x, y: {"outer": mt.outer(x, y), "sum": x.sum() * y}
    a, b = jacfwd(f, argnums=(0, 1))(x, y), jacrev(f, argnums=(0, 1))(x, y)
    for name in a:
        assert all(same(p, q) for p, q in zip(a[name], b[name]))
    value, aux = jacfwd(lambda x: (x.sin(), x.sum()), has_aux=True)(x)
    assert same(value, mt.diag(x.cos())) and same(aux, x.sum())
    assert jacfwd(lambda x: x.sum())(draw(0)).shape == (0,)


def test_linearize_runs_the_function_once() -> None:
    calls = []
    x = draw(3)
    out, push = linearize(lambda x: calls.append(1) or x.sin() * x.sum(), x)
    for t in (draw(3), draw(3)):
        assert same(push(t), jvp(lambda x: x.sin() * x.sum(), (x,), (t,))[1])
    assert len(calls) == 1 and same(out, x.sin() * x.sum())


def test_autograd_functional_in_forward_mode() -> None:
    x, t = draw(3), draw(3)
    f = lambda x: x.sin() * x.sum()
    want = jacrev(f)(x)
    for settings in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        assert same(functional.jacobian(f, x, **settings), want)
    assert same(functional.jvp(f, x, t)[1], want @ t) and same(functional.jvp(f, x, t, strict=True)[1], want @ t)
    g = lambda x: f(x).pow(2).sum()
    h = hessian(g)(x)
    for settings in ({}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}):
        assert same(functional.hessian(g, x, **settings), h)
    assert same(functional.hvp(g, x, t)[1], h @ t) and same(functional.vhp(g, x, t)[1], h @ t)
    x.requires_grad_()
    pushed = functional.jvp(f, x, t, create_graph=True)[1]
    assert same(mt.autograd.grad(pushed.sum(), x)[0], grad(lambda x: jvp(f, (x,), (t,))[1].sum())(x.detach()))
    with pytest.raises(RuntimeError, match="not supported together"):
        functional.jacobian(f, x, vectorize=True, strict=True)


def test_custom_functions_push_by_their_jvp_or_by_backward() -> None:
    class Exp(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * y

    class Told(Exp):
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            (y,) = ctx.saved_tensors
            return t * y * 10

    x, t = draw(3), draw(3)
    assert same(jvp(Exp.apply, (x,), (t,))[1], t * x.exp())
    assert same(jvp(Told.apply, (x,), (t,))[1], 10 * t * x.exp())
    assert same(hessian(lambda x: Exp.apply(x).sum())(x), mt.diag(x.exp()))
    assert same(grad(lambda x: jvp(Exp.apply, (x,), (t,))[1].sum())(x), t * x.exp())
    assert mt.autograd.gradcheck(Exp.apply, (x.requires_grad_(),), check_forward_ad=True)


@pytest.mark.parametrize("second", [lambda x: x.clone(), lambda x: x.long(), lambda x: "text"])
def test_a_jvp_gives_no_tangent_to_what_is_not_differentiable(second: Any) -> None:
    class Two(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = second(x)
            if isinstance(out, mt.Tensor):
                ctx.mark_non_differentiable(out)
            return x * 2, out

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2, (t if wrong else None)

    x, t = mt.tensor([1.0, 2.0]), mt.ones(2)
    for wrong in (False, True):
        with forward_ad.dual_level(), pytest.raises(RuntimeError, match="(?s)position 1.*return None") if wrong else nullcontext():
            first, _ = Two.apply(forward_ad.make_dual(x, t))
            assert forward_ad.unpack_dual(first).tangent.tolist() == [2.0, 2.0]


# ---- writes of tangents into memory that was made without ----


def test_a_custom_function_that_writes_to_its_input_writes_to_it_inside_transforms() -> None:
    class Double(mt.autograd.Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x.mul_(2), x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_dirty(inputs[0])
            ctx.x, ctx.y = output[0], inputs[1]

        @staticmethod
        def jvp(ctx: Any, t: Any, u: Any) -> Any:
            t.mul_(2)
            return t, t * ctx.y + ctx.x * u

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            return (x.mul_(2), x * y), (in_dims[0], 0)

    def written(x: Any, y: Any) -> Any:
        x = x.clone()
        first, product = Double.apply(x, y)
        same.append(first is x)
        return x, product

    same: list[bool] = []
    x, y = mt.tensor([1.0, 2.0]), mt.tensor([3.0, 4.0])
    (value, product), (moved, pushed) = jvp(written, (x, y), (x, y))
    assert (value.tolist(), product.tolist()) == ([2.0, 4.0], [6.0, 16.0])
    assert (moved.tolist(), pushed.tolist()) == ([2.0, 4.0], [12.0, 32.0])
    value, product = vmap(written)(x, y)
    assert (value.tolist(), product.tolist()) == ([2.0, 4.0], [6.0, 16.0])
    assert same == [True, True] and x.tolist() == [1.0, 2.0]


def test_a_result_is_filled_in_element_by_element() -> None:
    def f(x: mt.Tensor) -> mt.Tensor:
        out = mt.zeros(2, 3, dtype=x.dtype)
        for i in range(3):
            out[0, i] = x[i].square()
        tail = out[1, 1:]
        tail += x[1:]
        tail.mul_(x[0])
        return out

    x, v = draw(3), draw(3)
    out, pushed = jvp(f, (x,), (v,))
    zero = mt.zeros(1, dtype=x.dtype)
    assert same(out, mt.stack([x * x, mt.cat([zero, x[1:] * x[0]])]))
    assert same(pushed, mt.stack([2 * x * v, mt.cat([zero, x[1:] * v[0] + v[1:] * x[0]])]))
    assert same(jacfwd(f)(x), jacrev(f)(x))
    assert same(jacfwd(jacfwd(f))(x), jacrev(jacrev(f))(x))
    assert same(vmap(lambda v: jvp(f, (x,), (v,))[1])(mt.stack([v, 2 * v])), mt.stack([pushed, 2 * pushed]))


def test_memory_from_outside_holds_the_values_when_the_level_ends() -> None:
    memory, x, v = mt.zeros(3, dtype=f64), draw(3), draw(3)
    front = memory[:2]
    with forward_ad.dual_level():
        memory.copy_(forward_ad.make_dual(x, v))
        memory.mul_(2)
        back = memory[1:]
        assert same(forward_ad.unpack_dual(front).tangent, 2 * v[:2]) and same(forward_ad.unpack_dual(back).tangent, 2 * v[1:])
    assert same(memory, 2 * x) and same(front, 2 * x[:2]) and same(back, 2 * x[1:])
    front.fill_(0)
    assert memory[:2].tolist() == [0, 0] and memory._version == front._version
    with pytest.raises(ValueError, match="stop"), forward_ad.dual_level():
        memory.copy_(forward_ad.make_dual(x, v))
        raise ValueError("stop")
    assert same(memory, x) and forward_ad.unpack_dual(memory).tangent is None


def test_what_only_some_samples_know_has_no_room_there() -> None:
    x = draw(3)

    def f(sample: mt.Tensor) -> mt.Tensor:
        def inner(x: mt.Tensor) -> mt.Tensor:
            out = mt.zeros(3, dtype=x.dtype)
            out.copy_(x)
            out.mul_(sample)
            return out

        return jvp(inner, (x,), (sample,))[1]

    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(f)(draw(2, 3))


def test_an_embedding_that_shortens_its_rows_leaves_their_tangents_alone():
    weight, at = mt.tensor([[3.0, 4.0], [0.5, 0.0]]), mt.tensor([0, 1, 0])
    look_up = lambda w: mt.nn.functional.embedding(at, w, max_norm=1.0)  # noqa: E731
    found, tangent = mt.func.jvp(look_up, (weight.clone(),), (mt.tensor([[1.0, 2.0], [3.0, 4.0]]),))
    mt.testing.assert_close(found, mt.tensor([[0.6, 0.8], [0.5, 0.0], [0.6, 0.8]]))
    assert tangent.tolist() == [[1, 2], [3, 4], [1, 2]]
    assert look_up(weight).shape == (3, 2)
    mt.testing.assert_close(weight[0], mt.tensor([0.6, 0.8]))


@pytest.mark.parametrize("ask", [mt.Tensor.to, mt.Tensor.double, mt.Tensor.contiguous, mt.clone])
def test_a_tensor_brought_into_a_memory_format_keeps_its_tangent(ask: Any) -> None:
    x = mt.ones(2, 3, 2, 3)
    tangent = jvp(lambda x: ask(x, memory_format=mt.channels_last), (x,), (x * 3,))[1]
    assert (tangent == 3).all()


def test_detach_in_place_leaves_forward_mode_too():
    def f(x):
        y = x * 1.0
        y.detach_()
        return x * y

    assert jvp(f, (mt.tensor([2.0, 3.0]),), (mt.ones(2),))[1].tolist() == [2.0, 3.0]


def _multiplied(c, z):
    c.mul_(z)


def _set(c, z):
    c[:1] = z[:1]


def _in_a_view(c, z):
    c[1:].add_(z[1:])


@pytest.mark.parametrize("write", [_multiplied, _set, _in_a_view, mt.Tensor.copy_], ids=lambda f: f.__name__)
def test_the_gradient_of_forward_mode_passes_what_was_written_into_a_constant(write):
    a, t = mt.tensor([1.5, 2.0], dtype=mt.float64), mt.tensor([3.0, 5.0], dtype=mt.float64)

    def f(z):
        c = mt.tensor([7.0, 11.0], dtype=mt.float64)
        write(c, z)
        return (c * c * c).sum()

    found = grad(lambda a: jvp(f, (a,), (t,))[1])(a)
    assert found.abs().sum() > 0 and found.tolist() == pytest.approx(jvp(grad(f), (a,), (t,))[1].tolist())


def test_the_gradient_of_a_dual_tensor_is_that_of_its_value_inside_the_level_and_after_it():
    a, t = mt.tensor([1.0, 2.0], dtype=f64, requires_grad=True), mt.tensor([3.0, 5.0], dtype=f64)
    layer = nn.Linear(2, 1, dtype=f64)

    def of(y, *given):
        return mt.autograd.grad(y, a, *given, retain_graph=True)[0].tolist()

    with forward_ad.dual_level():
        z = forward_ad.make_dual(a, t)
        y = z * z * z
        assert of(y.sum()) == [3, 12] and of(y, mt.tensor([1.0, 10.0], dtype=f64)) == [3, 120] and of(y, z) == [3, 24]
        total, tangent = y.sum(), forward_ad.unpack_dual(y).tangent
        out = layer(z).square().sum()
        out.backward()
        pushed = forward_ad.unpack_dual(out).tangent
    assert of(total) == of((y / 2 + y / 2).sum()) == [3, 12] and of(tangent.sum()) == [18, 60]
    slope = 2 * (layer.weight @ a + layer.bias)
    assert layer.weight.grad.tolist() == [pytest.approx((slope * a).tolist())] and layer.bias.grad.tolist() == pytest.approx(slope.tolist())
    assert pushed.item() == pytest.approx((slope * (layer.weight @ t)).item())
    assert jvp(grad(lambda x: (x**3).sum()), (a.detach(),), (t,))[1].tolist() == [18, 60]


@pytest.mark.parametrize("draw", [
    lambda t: t.clone().uniform_(), lambda t: t.clone().normal_(), lambda t: t.clone().exponential_(), lambda t: t.clone().bernoulli_(),
    mt.poisson, mt.bernoulli, lambda t: mt.normal(0.0, t),
], ids="uniform_ normal_ exponential_ bernoulli_ poisson bernoulli normal".split())  # fmt: skip
def test_draws_have_a_tangent_of_zero(draw: Any) -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(mt.tensor([0.5]), mt.tensor([2.0]))
        assert forward_ad.unpack_dual(draw(dual)).tangent.tolist() == [0.0]


def test_what_has_no_derivative_refuses_a_tangent_as_backward_refuses_it() -> None:
    x = mt.tensor([0.1, 0.2, 0.4])
    for name, f in {
        "histogram": lambda t: mt.histogram(t, 3)[0], "histogram ": lambda t: mt.histogram(x, 3, weight=t)[1],
        "histogram  ": lambda t: mt.histogram(x, t)[0], "_histogramdd_from_bin_cts": lambda t: mt.histogramdd(t[:, None], [3])[0],
        "binomial": lambda t: mt.binomial(t.detach() * 10, t),
    }.items():  # fmt: skip
        with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=f"with aten::{name.strip()} that does not support"):
            f(forward_ad.make_dual(x, mt.ones(3)))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD"):
            mt.func.jvp(f, (x,), (mt.ones(3),))
        with forward_ad.dual_level():
            f(forward_ad.make_dual(x, mt.ones(3)).detach())
