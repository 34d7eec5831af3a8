"""Derivatives of whole functions: autograd.functional, mortice.func, gradcheck, dual numbers."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt
from mortice import func
from mortice.autograd import Function, GradcheckError, forward_ad, functional, gradcheck, gradgradcheck

f64 = mt.float64


def t(*values: Any) -> mt.Tensor:
    return mt.tensor(values, dtype=f64)


def close(x: mt.Tensor, want: Any) -> bool:
    want = mt.tensor(want, dtype=f64)
    return tuple(x.shape) == tuple(want.shape) and bool(((x - want).abs() < 1e-9).all().item())


# ---- autograd.functional ----


def test_jacobian_of_several_inputs_and_outputs() -> None:
    def f(x: mt.Tensor, y: mt.Tensor) -> Any:
        return x * y, x.sum()

    for strategy in ("reverse-mode", "forward-mode"):
        (xx, xy), (sx, sy) = functional.jacobian(f, (t(1.0, 2.0), t(3.0, 4.0)), vectorize=True, strategy=strategy)
        assert close(xx, [[3.0, 0.0], [0.0, 4.0]]) and close(xy, [[1.0, 0.0], [0.0, 2.0]])
        assert close(sx, [1.0, 1.0]) and close(sy, [0.0, 0.0])


def test_jacobian_stays_in_the_graph_on_request() -> None:
    x = t(2.0).requires_grad_()
    j = functional.jacobian(lambda x: x * x * x, x, create_graph=True)
    j.sum().backward()
    assert x.grad.item() == 12.0
    assert not functional.jacobian(lambda x: x * x, x).requires_grad
    whole = functional.jacobian(lambda x, y: (x * y, y.reshape(1)), (x.detach().sum(), t(3.0).sum()))
    assert [(tuple(p.shape), p.tolist()) for row in whole for p in row] == [((), 3.0), ((), 2.0), ((1,), [0.0]), ((1,), [1.0])]


def test_hessian_and_its_products() -> None:
    def f(x: mt.Tensor) -> mt.Tensor:
        return (x * x * x).sum() + x[0] * x[1]

    x, v = t(1.0, 2.0), t(1.0, -1.0)
    assert close(functional.hessian(f, x), [[6.0, 1.0], [1.0, 12.0]])
    for product in (functional.hvp, functional.vhp):
        value, got = product(f, x, v)
        assert close(value, 11.0) and close(got, [5.0, -11.0])


def test_jvp_and_vjp_agree_with_the_jacobian() -> None:
    def f(x: mt.Tensor) -> mt.Tensor:
        return mt.stack([x[0] * x[1], x[0].sin(), x[1] * 3])

    x, v, u = t(1.0, 2.0), t(0.5, -1.0), t(1.0, 2.0, 3.0)
    j = functional.jacobian(f, x)
    assert close(functional.jvp(f, x, v)[1] - (j * v).sum(1), [0.0] * 3)
    assert close(functional.vjp(f, x, u)[1] - (j * u.view(3, 1)).sum(0), [0.0] * 2)


def test_strict_refuses_independent_outputs() -> None:
    def constant(x: mt.Tensor) -> mt.Tensor:
        return mt.ones(2, dtype=f64)

    assert close(functional.jacobian(constant, t(1.0)), [[0.0], [0.0]])
    with pytest.raises(RuntimeError, match="does not require gradients.*strict mode"):
        functional.jacobian(constant, t(1.0), strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1. This is not allowed in strict mode"):
        functional.vjp(lambda x, y: x * 2, (t(1.0), t(1.0)), t(1.0), strict=True)


def test_misuse_of_functional() -> None:
    with pytest.raises(TypeError, match="inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        functional.jacobian(lambda x: x, [1.0])
    with pytest.raises(RuntimeError, match="should contain a single element"):
        functional.hessian(lambda x: x * 2, t(1.0, 2.0))
    for of_a_number in (functional.vhp, functional.hvp, functional.hessian):  # a tuple is none, of one tensor either
        with pytest.raises(RuntimeError, match=f"given to {of_a_number.__name__} should return a single Tensor"):
            of_a_number(lambda x: (x.sum(),), t(1.0, 2.0), *[t(1.0, 2.0)][of_a_number is functional.hessian :])
    with pytest.raises(RuntimeError, match="v has invalid size"):
        functional.vjp(lambda x: x * 2, t(1.0, 2.0), t(1.0))


# ---- mortice.func ----


def test_grad_of_grad() -> None:
    def cube(x: mt.Tensor) -> mt.Tensor:
        return x * x * x

    x = mt.tensor(2.0, dtype=f64)
    assert func.grad(cube)(x).item() == 12.0
    assert func.grad(func.grad(cube))(x).item() == 12.0
    assert func.grad(func.grad(func.grad(cube)))(x).item() == 6.0
    assert not func.grad(cube)(x).requires_grad and not x.requires_grad


def test_grad_with_argnums_trees_and_aux() -> None:
    def f(p: Any, x: mt.Tensor) -> Any:
        return (p["w"] * x).sum() + p["b"][0], {"x": x * 2}

    p = {"w": t(1.0, 2.0), "b": [mt.tensor(3.0, dtype=f64)]}
    (gp, gx), aux = func.grad(f, argnums=(0, 1), has_aux=True)(p, t(3.0, 4.0))
    assert close(gp["w"], [3.0, 4.0]) and close(gp["b"][0], 1.0) and close(gx, [1.0, 2.0])
    assert close(aux["x"], [6.0, 8.0]) and not aux["x"].requires_grad
    gradient, value = func.grad_and_value(lambda x: (x * x).sum())(t(1.0, 2.0))
    assert close(gradient, [2.0, 4.0]) and value.item() == 5.0


def test_grad_keeps_the_graph_of_what_it_closes_over() -> None:
    w = t(1.0, 2.0).requires_grad_()
    g = func.grad(lambda x: (x * x * w).sum())(t(3.0, 4.0))
    g.sum().backward()
    assert close(w.grad, [6.0, 8.0])


def test_jacrev_jacfwd_and_hessian_agree() -> None:
    def f(x: mt.Tensor) -> mt.Tensor:
        return x.sin() * x.sum()

    x = t(0.5, 1.0, 1.5)
    assert close(func.jacrev(f)(x) - func.jacfwd(f)(x), [[0.0] * 3] * 3)
    assert close(func.hessian(lambda x: (x * x * x).sum())(t(1.0, 2.0)), [[6.0, 0.0], [0.0, 12.0]])
    a, b = func.jacrev(lambda x, y: x * y, argnums=(0, 1))(t(1.0, 2.0), t(3.0, 4.0))
    assert close(a, [[3.0, 0.0], [0.0, 4.0]]) and close(b, [[1.0, 0.0], [0.0, 2.0]])


def test_vjp_jvp_and_linearize() -> None:
    out, pull = func.vjp(lambda x, y: (x * y, x), t(1.0, 2.0), t(3.0, 4.0))
    gx, gy = pull((t(1.0, 1.0), t(10.0, 10.0)))
    assert close(gx, [13.0, 14.0]) and close(gy, [1.0, 2.0]) and not out[0].requires_grad
    value, tangent = func.jvp(lambda x: x * x, (t(3.0),), (t(2.0),))
    assert close(value, [9.0]) and close(tangent, [12.0])
    value, push = func.linearize(lambda x: x * x, t(3.0))
    assert close(push(t(1.0)), [6.0]) and close(push(t(2.0)), [12.0])


def test_misuse_of_func() -> None:
    with pytest.raises(RuntimeError, match="Expected f.* to return a scalar Tensor"):
        func.grad(lambda x: x * 2)(t(1.0, 2.0))
    with pytest.raises(RuntimeError, match="Got argnum=3, but only 1 positional inputs"):
        func.grad(lambda x: x.sum(), argnums=3)(t(1.0))


# ---- gradcheck ----


class Wrong(Function):
    @staticmethod
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        return g * 2.01


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_accepts_right_gradients_and_refuses_wrong_ones(fast: bool) -> None:
    x, y = t(0.3, 0.7).requires_grad_(), t(1.3, -0.4).requires_grad_()
    assert gradcheck(lambda x, y: (x.sin() * y, x / (y * y + 1)), (x, y), fast_mode=fast, check_forward_ad=True)
    assert gradgradcheck(lambda x, y: x.exp() * y * y, (x, y), fast_mode=fast)
    with pytest.raises(GradcheckError, match="Jacobian .*mismatch for output 0 with respect to input 0,\nnumerical:.*"):
        gradcheck(Wrong.apply, (x,), fast_mode=fast)
    assert not gradcheck(Wrong.apply, (x,), fast_mode=fast, raise_exception=False)
    assert issubclass(GradcheckError, RuntimeError)


def test_gradcheck_of_complex_functions() -> None:
    z = mt.tensor([0.5 + 0.2j, -0.3 + 0.7j], dtype=mt.complex128, requires_grad=True)
    x = t(0.4, -0.8).requires_grad_()
    assert gradcheck(lambda z: z * z * z, (z,))
    assert gradcheck(lambda z: (z * z.conj()).real, (z,))
    assert gradcheck(lambda x, z: x * z, (x, z))
    assert gradgradcheck(lambda z: z * z * z, (z,))
    assert gradcheck(lambda z: z * z.conj(), (z,), fast_mode=True)


def test_gradcheck_leaves_its_inputs_as_they_were() -> None:
    x = t(0.3, 0.7).requires_grad_()
    gradcheck(lambda x: x * x, (x,))
    assert x.tolist() == [0.3, 0.7] and x.grad is None


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_notices_what_is_not_reproducible(fast_mode: bool) -> None:
    calls = []

    class Drifts(Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
            calls.append(1)
            return g * (2 + 1e-7 * len(calls))

    x = t(1.0).requires_grad_()
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Drifts.apply, (x,), fast_mode=fast_mode)
    assert gradcheck(Drifts.apply, (x,), nondet_tol=1e-3, fast_mode=fast_mode)


def test_gradcheck_runs_backward_inside_vmap_where_asked() -> None:
    class Reads(Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
            return g * 2 if g.sum().item() else g * 2

    x = t(1.0, 2.0).requires_grad_()
    assert gradcheck(Reads.apply, (x,)) and gradcheck(lambda x: x.sin() * x, (x,), check_batched_grad=True)
    assert gradgradcheck(lambda x: x.sin() * x, (x,), check_batched_grad=True)
    with pytest.raises(GradcheckError, match="failed while testing batched gradient"):
        gradcheck(Reads.apply, (x,), check_batched_grad=True)
    with pytest.raises(AssertionError, match="requires check_backward_ad"):
        gradcheck(mt.sin, (x,), check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)


def test_gradcheck_runs_forward_mode_inside_vmap_where_asked() -> None:
    class Reads(Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, tangent: mt.Tensor) -> mt.Tensor:
            return tangent * 2 if tangent.sum().item() else tangent * 2

    x, y = t(1.0, 2.0).requires_grad_(), t(0.5, 3.0).requires_grad_()
    both = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(Reads.apply, (x,), check_forward_ad=True)
    assert gradcheck(lambda x, y: ((x * y).sin(), x.sum()), (x, y), **both)
    with pytest.raises(GradcheckError, match="failed while testing batched gradient"):
        gradcheck(Reads.apply, (x,), **both)
    with pytest.raises(AssertionError, match="requires check_forward_ad"):
        gradcheck(mt.sin, (x,), check_batched_forward_grad=True)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_what_is_no_tensor_is_named(name: str) -> None:
    call, x = getattr(functional, name), t(1.0)
    for fn, inputs, v, what in (
        (mt.sum, (x, 1), None, "value at index 1 of the inputs"), (lambda x: (x.sum(), "a"), x, x, "value at index 1 of the outputs"),
        (mt.sum, x, (x, 1), "value at index 1 of the v"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"given to {name} must be .* the given {what}"):
            call(fn, inputs, v)


def test_misuse_of_gradcheck() -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (t(1.0),))
    with pytest.warns(UserWarning, match="not a double precision"), pytest.raises(GradcheckError):
        gradcheck(lambda x: x.sin(), (mt.tensor([0.3], requires_grad=True),))


# ---- dual numbers ----


def test_dual_numbers() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(1.0, 2.0), t(1.0, 10.0))
        y = x * x
        value, tangent = forward_ad.unpack_dual(y)
        assert close(value, [1.0, 4.0]) and close(tangent, [2.0, 40.0])
        assert forward_ad.unpack_dual(t(1.0)).tangent is None
        assert close(forward_ad.unpack_dual(x).tangent, [1.0, 10.0])
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(t(1.0), t(1.0))


def test_the_tangent_that_was_given_comes_back_until_the_tensor_is_written() -> None:
    given = t(1.0, 10.0)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(1.0, 2.0), given)
        assert forward_ad.unpack_dual(x).tangent is given
        x.mul_(2)
        assert close(forward_ad.unpack_dual(x).tangent, [2.0, 20.0])
        wide = forward_ad.make_dual(mt.ones(2, dtype=mt.float64), mt.ones(2))
        assert forward_ad.unpack_dual(wide * wide).tangent.dtype == mt.float64


# ---- no_grad around a transform ----


def test_what_a_transform_gives_under_no_grad_is_a_constant_outside() -> None:
    def slope(x: mt.Tensor) -> mt.Tensor:
        return func.grad(lambda v: (v**5).sum() / 5)(x)

    def f(x: mt.Tensor) -> mt.Tensor:
        with mt.no_grad():
            constant = slope(x)
        return (x**2 + constant).sum()

    x = t(2.0, 3.0).requires_grad_()
    first = func.grad(f)(x)
    assert close(first.detach(), [4.0, 6.0])
    assert close(mt.autograd.grad(first.sum(), x)[0], [2.0, 2.0])
    with mt.no_grad():
        for made in (slope(x), *func.grad_and_value(f)(x), func.jacrev(lambda v: v * v)(x), func.linearize(mt.sin, x)[0]):
            assert not made.requires_grad


MIXED = {
    "grad": lambda x, y: func.grad(lambda y: func.grad(lambda x: (x * y).sin().sum())(x).sum())(y),
    "jacrev": lambda x, y: func.jacrev(func.grad(lambda x, y: (x * y).sin().sum()), 1)(x, y),
    "vjp": lambda x, y: func.vjp(lambda y: func.vjp(lambda x: (x * y).sin(), x)[1](y)[0], y)[1](x)[0],
    "linearize": lambda x, y: func.linearize(lambda y: func.grad(lambda x: (x * y).sin().sum())(x), y)[1](x),
}


@pytest.mark.parametrize("which", MIXED)
def test_the_inputs_of_a_transform_inside_leave_no_graph(which: str) -> None:
    x, y = t(0.5, 2.0), t(1.0, 3.0)
    assert not MIXED[which](x, y).requires_grad
    w = mt.ones(2, dtype=x.dtype, requires_grad=True)
    made = MIXED[which](x, y * w)
    assert made.requires_grad and mt.autograd.grad(made.sum(), w)[0].abs().sum() > 0


def test_a_vjp_is_recorded_where_it_is_called() -> None:
    x, v = t(3.0).requires_grad_(), t(1.0)
    out, pull = func.vjp(lambda x: x * x, x)
    with mt.no_grad():
        quiet, quiet_pull = func.vjp(lambda x: x * x, x)
        assert not pull(v)[0].requires_grad
    assert out.requires_grad and not quiet.requires_grad
    assert close(mt.autograd.grad(quiet_pull(v)[0], x)[0], [2.0])


def test_a_function_that_gives_no_tensor_is_refused() -> None:
    x = t(1.0)
    for transform in (lambda f: func.vjp(f, x), lambda f: func.jacrev(f)(x), lambda f: func.linearize(f, x)):
        for out in (None, 1.0, ()):
            with pytest.raises(RuntimeError, match="[Ee]xpected f"):
                transform(lambda x, out=out: out)
    with pytest.raises(RuntimeError, match="must be int"):
        func.grad(mt.sum, argnums=("0",))(x)


# ---- second gradients ----


@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "hardtanh", "hardshrink", "softshrink", "max_pool1d", "avg_pool1d"])
def test_second_gradients_of_straight_lines_are_zeros_where_pytorchs_are(name: str) -> None:
    f = getattr(mt.nn.functional, name)
    line = mt.nn.Linear(4, 4)
    x = mt.rand(3, 4, requires_grad=True)
    out = f(line(x)) if "pool" not in name else f(line(x), 2)
    (g,) = mt.autograd.grad(out.sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert line.weight.grad.any()
    assert line.bias.grad.equal(mt.zeros(4)) and x.grad.equal(mt.zeros(3, 4))
    # Gradients that are constants stay in the graph of what they were taken at.
    out = f(x) if "pool" not in name else f(x, 2)
    (slope,) = mt.autograd.grad(out.sum(), x, create_graph=True)
    (again,) = mt.autograd.grad(slope.sum(), x)
    assert again.equal(mt.zeros(3, 4))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: mt.nn.functional.pad(x, (1, 1), mode="reflect"), lambda x: mt.nn.functional.pad(x, (1, 1), mode="replicate"),
        lambda x: mt.nn.functional.adaptive_avg_pool1d(x, 2), lambda x: mt.nn.functional.nll_loss(x, mt.tensor([0, 1, 2])),
    ],
)  # fmt: skip
def test_linear_functions_have_second_gradients_of_zeros_where_pytorchs_have(function: Any) -> None:
    x = mt.rand(3, 4, requires_grad=True)
    (slope,) = mt.autograd.grad(function(x).sum(), x, create_graph=True)
    (again,) = mt.autograd.grad(slope.sum(), x)
    assert again.equal(mt.zeros(3, 4))
    (slope,) = mt.autograd.grad(mt.nn.functional.pad(x, (1, 1)).sum(), x, create_graph=True)
    assert not slope.requires_grad


@pytest.mark.parametrize("vectorize", [False, True])
def test_one_number_has_a_jacobian_and_a_hessian_without_dimensions(vectorize):
    x = mt.tensor(2.0)
    for made, value in (
        (mt.autograd.functional.jacobian(lambda y: y**3, x, vectorize=vectorize), 12),
        (mt.autograd.functional.hessian(lambda y: y**3, x, vectorize=vectorize), 12),
    ):
        assert made.shape == () and made.item() == value
