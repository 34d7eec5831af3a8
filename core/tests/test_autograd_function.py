"""Function: both forms, what ctx keeps and checks, several outputs, writes, views, double backward, misuse."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt
from mortice import autograd
from mortice.autograd import Function
from mortice.autograd.function import once_differentiable

f64 = mt.float64


def leaf(*values: float) -> mt.Tensor:
    return mt.tensor(values, dtype=f64, requires_grad=True)


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        (y,) = ctx.saved_tensors
        return g * y


class Scale(Function):
    """The form with setup_context, and an argument that is no tensor."""

    @staticmethod
    def forward(x: mt.Tensor, factor: float = 3.0) -> mt.Tensor:
        return x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: mt.Tensor) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor) -> tuple[Any, ...]:
        return g * ctx.factor, None


class SplitProduct(Function):
    """Two outputs and a saved input."""

    @staticmethod
    def forward(ctx: Any, x: mt.Tensor, y: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor, h: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h


def make(forward: Any, backward: Any, **more: Any) -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (Function,), members | {k: staticmethod(v) for k, v in more.items()})


# ---- both forms ----


def test_forward_with_ctx() -> None:
    x = leaf(0.0, 1.0)
    y = Exp.apply(x)
    assert y.grad_fn.name() == "ExpBackward" and "grad_fn=<ExpBackward>" in repr(y)
    assert repr(y.grad_fn).startswith("<mortice.autograd.function.ExpBackward object at 0x")
    y.sum().backward()
    assert x.grad.tolist() == x.exp().tolist()


def test_forward_with_setup_context_and_numbers() -> None:
    x = leaf(1.0, 2.0)
    Scale.apply(x, 2.0).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    Scale.apply(x, factor=5.0).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        Exp.apply(x=x)


def test_nothing_is_recorded_without_need() -> None:
    assert not Exp.apply(mt.ones(2)).requires_grad
    with mt.no_grad():
        assert Exp.apply(leaf(1.0)).grad_fn is None


def test_forward_runs_without_recording_and_backward_too() -> None:
    seen = []

    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        seen.append(mt.is_grad_enabled())
        return x * 2

    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        seen.append(mt.is_grad_enabled())
        return g * 2

    made = make(forward, backward)
    made.apply(leaf(1.0)).sum().backward()
    x = leaf(1.0)
    autograd.grad(made.apply(x).sum(), x, create_graph=True)
    assert seen == [False, False, False, True]


def test_needs_input_grad() -> None:
    seen = []

    def backward(ctx: Any, g: mt.Tensor) -> tuple[Any, ...]:
        seen.append(ctx.needs_input_grad)
        return g, g, None

    make(lambda ctx, x, y, n: x + y, backward).apply(leaf(1.0), mt.ones(1, dtype=f64), 3).sum().backward()
    assert seen == [(True, False, False)]


# ---- outputs ----


def test_several_outputs_and_zeros_for_those_without_gradient() -> None:
    x, y = leaf(2.0), leaf(3.0)
    product, total = SplitProduct.apply(x, y)
    assert product.grad_fn is total.grad_fn
    product.sum().backward(retain_graph=True)
    assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)
    (product * total).sum().backward()
    assert (x.grad.item(), y.grad.item()) == (3.0 + 15 + 6, 2.0 + 10 + 6)


def test_missing_gradients_are_none_on_request() -> None:
    seen = []

    def forward(ctx: Any, x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append((g is None, h is None))
        return g * 2

    x = leaf(1.0)
    make(forward, backward).apply(x)[0].sum().backward()
    assert seen == [(False, True)] and x.grad.item() == 2.0


def test_non_differentiable_and_integer_outputs() -> None:
    def forward(ctx: Any, x: mt.Tensor) -> tuple[Any, ...]:
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        return a, b, (x > 0).long(), "text"

    def backward(ctx: Any, *grads: Any) -> Any:
        assert grads[1].tolist() == [0.0] and grads[3] is None
        return grads[0] * 2

    x = leaf(1.0)
    a, b, c, text = make(forward, backward).apply(x)
    assert a.requires_grad and not b.requires_grad and not c.requires_grad and text == "text"
    a.sum().backward()
    assert x.grad.item() == 2.0


def test_input_returned_as_is_becomes_another_tensor() -> None:
    x = leaf(1.0)
    y = make(lambda ctx, x: x, lambda ctx, g: g * 4).apply(x)
    assert y is not x and x.is_leaf
    (y * 2).sum().backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="Output 0 of Made is a view .*created inside a custom Function"):
        make(lambda ctx, x: x, lambda ctx, g: g).apply(leaf(1.0) * 1).mul_(2)


@pytest.mark.parametrize("dirty", [False, True])
def test_input_returned_without_grad_mode_does_not_require_grad(dirty: bool) -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
            if dirty:
                ctx.mark_dirty(x.mul_(2))
            return x

    x = leaf(1.0)
    with mt.no_grad():
        y = Same.apply(x)
    assert y is not x and not y.requires_grad and x.requires_grad
    assert y.tolist() == x.tolist() == [2.0 if dirty else 1.0]
    with mt.no_grad():
        y.add_(1)
    assert y.tolist() == x.tolist()


def test_view_of_an_input() -> None:
    x = leaf(1.0, 2.0)
    y = make(lambda ctx, x: x[:1], lambda ctx, g: mt.cat([g * 5, g * 0])).apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 0.0]


# ---- writes ----


class AddOne(Function):
    @staticmethod
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        return g * 7


def test_mark_dirty_rejoins_the_graph() -> None:
    x = leaf(1.0)
    y = x * 2
    z = AddOne.apply(y)
    assert z is y and z.grad_fn.name() == "AddOneBackward" and z.tolist() == [3.0]
    z.sum().backward()
    assert x.grad.item() == 14.0


def test_mark_dirty_of_a_view_reaches_the_base() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    AddOne.apply(y[:1])
    assert y.tolist() == [2.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 1.0]


def test_mark_dirty_refusals() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        AddOne.apply(leaf(1.0))

    def forgets(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        ctx.mark_dirty(x)
        return x + 1

    def strange(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        y = x + 1
        ctx.mark_dirty(y)
        return y

    with pytest.raises(RuntimeError, match="were not returned as output"):
        make(forgets, None).apply(leaf(1.0) * 1)
    with pytest.warns(UserWarning, match="Only input Variables should be given to ctx.mark_dirty"):
        y = make(strange, lambda ctx, g: 3 * g).apply(x := leaf(1.0))
    y.backward()
    assert x.grad.tolist() == [3.0]


def test_a_sparse_gradient_of_backward_is_added_up_with_others() -> None:
    rows = mt.sparse_coo_tensor(mt.tensor([[0, 2]]), mt.ones(2, 2, dtype=f64), (3, 2))
    x = mt.ones(3, 2, dtype=f64, requires_grad=True)
    make(lambda ctx, x: x * 1, lambda ctx, g: rows).apply(x * 2).sum().backward(retain_graph=True)
    assert x.grad.to_dense().tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]
    sparse = make(lambda ctx, x: x * 1, lambda ctx, g: rows)
    (sparse.apply(x) + sparse.apply(x) + x).sum().backward()
    assert x.grad.to_dense().tolist() == [[5.0, 5.0], [1.0, 1.0], [5.0, 5.0]]


def test_a_tensor_returned_twice_is_one_output() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
            y = x * 2
            ctx.save_for_backward(y)
            return y, y

        @staticmethod
        def backward(ctx: Any, g: mt.Tensor, h: mt.Tensor) -> mt.Tensor:
            seen.append((g.tolist(), h.tolist()))
            return (g + 3 * h) * ctx.saved_tensors[0]

    seen: list[Any] = []
    x = leaf(1.0)
    y, z = Twice.apply(x)
    assert y is z and y.output_nr == 1
    (g,) = autograd.grad((y * 5 + z).sum(), x, create_graph=True)
    assert g.tolist() == [36.0]
    assert autograd.grad(g.sum(), x)[0].tolist() == [108.0]
    assert seen == [([0.0], [6.0]), ([0.0], [18.0])]


def test_setup_context_sees_the_default_arguments_of_forward() -> None:
    x = leaf(2.0)
    Scale.apply(x).backward()
    assert x.grad.tolist() == [3.0]


# ---- saved tensors ----


def test_saved_tensors_are_checked_for_writes() -> None:
    x, y = leaf(2.0) * 1, leaf(3.0)
    product, _ = SplitProduct.apply(x, y)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*is at version 1; expected version 0"):
        product.sum().backward()
    z = Exp.apply(leaf(1.0))
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*output 0 of Exp"):
        z.sum().backward()


def test_saved_tensors_are_freed_and_then_refused() -> None:
    z = Exp.apply(leaf(1.0)).sum()
    z.backward(retain_graph=True)
    z.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.backward()


def test_a_function_that_saves_nothing_can_run_again() -> None:
    x = leaf(1.0)
    y = Scale.apply(x, 2.0)
    y.backward(mt.ones(1, dtype=f64))
    y.backward(mt.ones(1, dtype=f64))
    assert x.grad.item() == 4.0


def test_only_tensors_are_saved() -> None:
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        ctx.save_for_backward(x, kept)
        return x * 1

    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        assert ctx.saved_tensors[1] is None
        return g

    kept = None
    make(forward, backward).apply(leaf(1.0)).sum().backward()
    kept = 3  # type: ignore[assignment]
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        make(forward, backward).apply(leaf(1.0))
    # Nothing is kept where nothing is recorded, so nothing is refused either.
    assert make(forward, backward).apply(mt.ones(1)).tolist() == [1.0]


def test_grad_fn_shows_what_ctx_holds() -> None:
    y = Scale.apply(leaf(1.0), 2.0)
    assert y.grad_fn.factor == 2.0 and y.grad_fn.apply(mt.ones(()))[0].tolist() == 2.0
    assert Exp.apply(leaf(0.0)).grad_fn.saved_tensors[0].tolist() == [1.0]
    with pytest.raises(AttributeError):
        _ = y.grad_fn.nothing


def test_ctx_attributes_may_have_any_name() -> None:
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        ctx.shape, ctx.dtype, ctx.edges, ctx.seq, ctx.extra, ctx.op = "a", "b", "c", "d", "e", "f"
        return x * 2

    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        assert (ctx.shape, ctx.dtype, ctx.edges, ctx.seq, ctx.extra, ctx.op) == ("a", "b", "c", "d", "e", "f")
        return g * 2

    make(forward, backward).apply(leaf(1.0)).sum().backward()


# ---- higher order ----


def test_double_backward_through_saved_output_and_input() -> None:
    x = leaf(0.5)
    (g,) = autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x, create_graph=True)
    (t,) = autograd.grad(h.sum(), x)
    assert g.item() == h.item() == t.item() == x.exp().item()
    assert autograd.gradgradcheck(Exp.apply, (leaf(0.1, 0.2),))
    assert autograd.gradgradcheck(SplitProduct.apply, (leaf(0.1, 0.2), leaf(0.3, 0.4)))


def test_once_differentiable_refuses_the_second_time() -> None:
    made = make(lambda ctx, x: x * 2, once_differentiable(lambda ctx, g: g * 2))
    x = leaf(1.0)
    made.apply(x).sum().backward()
    assert x.grad.item() == 2.0
    y = made.apply(x)
    seed = mt.ones(1, dtype=f64, requires_grad=True)
    (g,) = autograd.grad(y, x, seed, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        g.sum().backward()


def test_vjp_is_another_name_for_backward() -> None:
    made = type("V", (Function,), {
        "forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda ctx, g: g * 2),
        "jvp": staticmethod(lambda ctx, t: t * 2),
    })  # fmt: skip
    x = leaf(1.0)
    made.apply(x).sum().backward()
    assert x.grad.item() == 2.0


# ---- gradients of the wrong form ----


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda g: (g, None, g), RuntimeError, r"returned an incorrect number of gradients \(expected 2, got 4\)"),
        (lambda g: (1.0,), RuntimeError, r"expected Variable or None \(got float\)"),
        (lambda g: (mt.ones(3, dtype=f64),), RuntimeError, r"at index 0 - got \[3\] but expected shape compatible with \[2\]"),
    ],
)  # fmt: skip
def test_misuse_of_backward(result: Any, error: type, text: str) -> None:
    made = make(lambda ctx, x, n: x * 1, lambda ctx, g: (*result(g), None))
    with pytest.raises(error, match=text):
        made.apply(leaf(1.0, 2.0), 3).sum().backward()


def test_gradient_for_a_number_is_refused_and_extra_nones_are_not() -> None:
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2"):
        make(lambda ctx, x, n: x * 1, lambda ctx, g: (g, g)).apply(leaf(1.0), 3).sum().backward()
    x = leaf(1.0)
    make(lambda ctx, x: x * 1, lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    assert x.grad.item() == 1.0


def test_gradients_are_summed_and_cast_to_the_input() -> None:
    x = mt.ones(1, 2, requires_grad=True)
    y = make(lambda ctx, x: x.expand(3, 2) * 1, lambda ctx, g: mt.ones(3, 2, dtype=f64)).apply(x)
    y.sum().backward()
    assert x.grad.dtype is mt.float32 and x.grad.tolist() == [[3.0, 3.0]]


def test_functions_are_classes_to_apply() -> None:
    with pytest.raises(RuntimeError, match="non-static forward method is deprecated"):
        Exp()
    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Function.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="either the backward or vjp"):
        type("F", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2)}).apply(leaf(1.0)).sum().backward()


def test_gradient_kept_by_backward_does_not_become_the_leafs() -> None:
    kept = []

    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        kept.append(g * 2)
        return kept[0]

    x = leaf(1.0, 2.0)
    make(lambda ctx, x: x * 2, backward).apply(x).sum().backward()
    x.grad[0] = 100.0
    assert kept[0].tolist() == [2.0, 2.0]


def test_the_class_of_a_node_is_named_after_its_function() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Again(Twice):
        pass

    x = mt.ones(1, requires_grad=True)
    names = [type(f.apply(x).grad_fn).__name__ for f in (Twice, Again, Twice)]
    assert names == ["TwiceBackward", "AgainBackward", "TwiceBackward"]
    assert type(Twice.apply(x).grad_fn) is type(Twice.apply(x).grad_fn)


def test_next_functions_are_those_of_tensors() -> None:
    scaled = make(lambda ctx, x, number, y, z: x * number + y * z, lambda ctx, g: (g, None, g, g))
    node = scaled.apply(leaf(1.0), 2, mt.ones(1), leaf(3.0)).grad_fn
    assert [found and found.name() for found, _ in node.next_functions] == [
        "torch::autograd::AccumulateGrad", None, "torch::autograd::AccumulateGrad",
    ]  # fmt: skip


def test_backward_hooks_of_modules_stand_in_the_graph_under_pytorchs_name() -> None:
    layer = mt.nn.ReLU()
    layer.register_full_backward_hook(lambda *_: None)
    assert layer(leaf(1.0)).grad_fn.name() == "BackwardHookFunctionBackward"


def test_a_tangent_of_another_size_is_refused() -> None:
    class First(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t[:1] * 2

    with pytest.raises(RuntimeError, match=r"Tensor is of size \[3\] while the given forward gradient is of size \[1\]"):
        mt.func.jvp(First.apply, (mt.ones(3),), (mt.ones(3),))
