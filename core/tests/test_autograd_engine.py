"""backward and grad: leaves, accumulation, hooks, retained gradients, inputs=, errors, modes."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pytest

import mortice as mt
from mortice import autograd
from mortice.modes import special

f64 = mt.float64


def leaf(*values: float) -> mt.Tensor:
    return mt.tensor(values, dtype=f64, requires_grad=True)


# ---- the examples everyone meets first ----


def test_blitz_example_gives_four_and_a_half() -> None:
    x = mt.ones(2, 2, requires_grad=True)
    z = (x + 2) * (x + 2) * 3
    z.mean().backward()
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]


def test_gradients_accumulate_until_cleared() -> None:
    x = leaf(1.0)
    seen = []
    for _ in range(3):
        (x * 2).sum().backward()
        seen.append(x.grad.item())
    assert seen == [2.0, 4.0, 6.0]
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.item() == 2.0


def test_vector_jacobian_product() -> None:
    x = leaf(1.0, 2.0)
    (x * x).backward(mt.tensor([1.0, 10.0], dtype=f64))
    assert x.grad.tolist() == [2.0, 40.0]


def test_backward_of_scalar_is_backward_with_one() -> None:
    x, y = leaf(3.0), leaf(3.0)
    (x * x).sum().backward()
    (y * y).sum().backward(mt.tensor(1.0, dtype=f64))
    assert x.grad.tolist() == y.grad.tolist()


def test_grad_fn_is_named_after_the_op_and_none_on_leaves() -> None:
    x = leaf(1.0)
    assert x.grad_fn is None and x.is_leaf
    y = x * 2
    assert y.grad_fn.name() == "MulBackward0" and not y.is_leaf
    assert "MulBackward0" in repr(y)
    assert y.view(-1).requires_grad and not y.view(-1).is_leaf


def test_retained_graphs_add_up_as_in_the_two_losses_example() -> None:
    a = leaf(2.0)
    d, e = (a * a).sum(), (a * a * 2).sum()
    d.backward(retain_graph=True)
    e.backward(retain_graph=True)
    d.backward()
    assert a.grad.item() == 6 * 2.0 - 12 + 4 + 8 + 4
    e.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        e.backward()


def test_second_backward_names_the_remedy() -> None:
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time.*retain_graph=True"):
        y.backward()


def test_second_backward_without_saved_values_is_fine() -> None:
    x = leaf(1.0, 2.0)
    y = (x + 2).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


# ---- errors ----


def test_non_scalar_backward_asks_for_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (leaf(1.0, 2.0) * 2).backward()


def test_backward_of_a_constant_is_refused() -> None:
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        mt.ones(2).sum().backward()


def test_gradient_of_wrong_shape_or_kind_is_refused() -> None:
    y = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        y.backward(mt.ones(3, dtype=f64))
    with pytest.raises(RuntimeError, match="Mismatch in dtype"):
        y.backward(mt.ones(2, dtype=mt.complex128))
    with pytest.raises(TypeError, match="Tensors or None"):
        y.backward([1.0])


def test_requires_grad_setter_refusals() -> None:
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables.*detach"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        mt.tensor([1, 2]).requires_grad_()
    with pytest.raises(RuntimeError, match="bool"):
        mt.ones(1).requires_grad = 1
    assert mt.ones(1).requires_grad_() .requires_grad


def test_a_misspelt_flag_does_not_turn_tracking_on() -> None:
    x = mt.ones(1)
    try:
        x.require_grad = True
    except AttributeError:
        pass
    assert not x.requires_grad


def test_grad_setter_checks_shape_dtype_and_type() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"a gradient of size '\[3\]' to a tensor of size '\[2\]'"):
        x.grad = mt.ones(3, dtype=f64)
    with pytest.raises(RuntimeError, match="float32"):
        x.grad = mt.ones(2)
    with pytest.raises(TypeError, match="Tensor or None"):
        x.grad = 1.0
    x.grad = mt.ones(2, dtype=f64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_unused_inputs_of_grad() -> None:
    x, y = leaf(1.0), leaf(1.0)
    with pytest.raises(RuntimeError, match="index 1 appears to not have been used in the graph. Set allow_unused=True"):
        autograd.grad((x * 2).sum(), [x, y])
    assert autograd.grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    assert autograd.grad((x * 2).sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        autograd.grad((x * 2).sum(), [mt.ones(1)])


def test_inputs_may_have_names(device):
    x, y = (mt.ones(2, device=device, requires_grad=True) for _ in "xy")
    out = x * x * y
    names = {"y": y, "x": x}
    assert {n: g.tolist() for n, g in autograd.grad(out.sum(), names, retain_graph=True).items()} == {"y": [1, 1], "x": [2, 2]}
    both = autograd.grad(out, names, mt.eye(2, device=device), retain_graph=True, is_grads_batched=True)
    assert list(both) == ["y", "x"] and both["x"].tolist() == [[2, 0], [0, 2]]
    more = {"x": x, "z": mt.ones(3, device=device, requires_grad=True)}
    assert autograd.grad(out.sum(), more, retain_graph=True, allow_unused=True)["z"] is None
    assert autograd.grad(out.sum(), more, retain_graph=True, materialize_grads=True)["z"].tolist() == [0, 0, 0]
    out.sum().backward(retain_graph=True, inputs={"x": x})
    assert x.grad.tolist() == [2, 2] and y.grad is None
    walks = {
        "grad": lambda inputs: autograd.grad(out.sum(), inputs, retain_graph=True),
        "backward": lambda inputs: autograd.backward(out.sum(), inputs=inputs, retain_graph=True),
    }
    for name, walk in walks.items():
        with pytest.raises(RuntimeError, match=f"`inputs` argument to `{name}\\(\\)` cannot be empty"):
            walk({})
        with pytest.raises(TypeError, match=f"`inputs` argument to `{name}\\(\\)` must be a dict, not OrderedDict"):
            walk(OrderedDict(x=x))


# ---- what .grad may share ----


def test_grad_never_shares_memory_with_the_given_gradient() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    g = mt.ones(2, 2, dtype=f64)
    x.view(2, 2).backward(g)
    x.grad.mul_(5)
    assert g.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    (x + 0).view(2, 2).backward(g)
    x.grad[0] = 100.0
    assert g.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_grads_of_two_leaves_do_not_share_memory() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(mt.ones(2, dtype=f64))
    x.grad[0] = 7.0
    x.grad.mul_(2)
    assert y.grad.tolist() == [1.0, 1.0]
    mt.cat([x, y]).sum().backward()
    x.grad.zero_()
    assert y.grad.tolist() == [2.0, 2.0]


def test_grad_of_an_expanded_gradient_can_be_written() -> None:
    x = leaf(1.0, 2.0)
    x.sum().backward()
    x.grad[0] = 5.0
    assert x.grad.tolist() == [5.0, 1.0]


def test_accumulation_keeps_the_identity_of_grad() -> None:
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    kept = x.grad
    view = kept[0]
    (x * 2).sum().backward()
    assert x.grad is kept and view.item() == 4.0


def test_grad_keeps_dtype_and_shape_of_the_leaf() -> None:
    x = mt.tensor([1.0, 2.0], requires_grad=True)
    y = mt.tensor([[1.0], [2.0], [3.0]], dtype=f64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype is mt.float32 and x.grad.shape == (2,)
    assert y.grad.dtype is f64 and y.grad.shape == (3, 1)


def test_casting_to_integers_leaves_the_graph() -> None:
    x = leaf(1.5)
    assert not x.long().requires_grad and not (x > 1).requires_grad


def test_complex_gradient_is_the_conjugate_convention() -> None:
    z = mt.tensor([1 + 2j], dtype=mt.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [2 + 4j]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        (z * z).sum().backward()


def test_real_leaf_in_complex_arithmetic_gets_a_real_gradient() -> None:
    x = leaf(2.0)
    (x * (1 + 3j)).sum().real.backward()
    assert x.grad.dtype is f64 and x.grad.tolist() == [1.0]


# ---- higher order ----


def test_create_graph_gives_second_and_third_derivatives() -> None:
    x = leaf(2.0)
    y = (x * x * x * x).sum()
    (g,) = autograd.grad(y, x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x, create_graph=True)
    (t,) = autograd.grad(h.sum(), x)
    assert (g.item(), h.item(), t.item()) == (32.0, 48.0, 48.0)
    assert not t.requires_grad


def test_backward_with_create_graph_leaves_a_grad_with_a_graph() -> None:
    x = leaf(3.0)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (x * x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (g,) = autograd.grad(x.grad.sum(), x)
    assert g.item() == 18.0
    kept = x.grad
    (x * x).sum().backward()
    assert x.grad is kept


def test_grad_through_an_output_kept_by_its_own_node() -> None:
    x = leaf(0.5)
    y = x.exp()
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    (by_y,) = autograd.grad(g.sum(), y)
    assert by_y.item() == 1.0


# ---- what is asked for ----


def test_backward_with_inputs_touches_nothing_else() -> None:
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    calls = []
    w.register_hook(calls.append)
    (y * 3).sum().backward(inputs=[x, y])
    assert x.grad.item() == 6.0 and w.grad is None and not calls
    assert y.retains_grad and y.grad.item() == 3.0
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * 2).sum().backward(inputs=[])


def test_grad_leaves_dot_grad_alone_and_takes_duplicates() -> None:
    x = leaf(1.0)
    a, b = autograd.grad((x * 2).sum(), [x, x])
    assert a.item() == b.item() == 2.0 and x.grad is None


def test_grad_by_an_intermediate_and_by_the_output_itself() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    gy, gx = autograd.grad((y * y).sum(), [y, x])
    assert gy.tolist() == [6.0, 12.0] and gx.tolist() == [18.0, 36.0]
    assert autograd.grad(y, y, mt.ones(2, dtype=f64))[0].tolist() == [1.0, 1.0]


def test_batched_grads_are_stacked() -> None:
    x = leaf(1.0, 2.0)
    (j,) = autograd.grad(x * x, x, mt.eye(2, dtype=f64), is_grads_batched=True)
    assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_several_roots_are_summed() -> None:
    x = leaf(1.0, 2.0)
    autograd.backward([(x * 2).sum(), x * 3], [None, mt.tensor([1.0, 0.0], dtype=f64)])
    assert x.grad.tolist() == [5.0, 2.0]
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        autograd.backward([x * 2], [mt.ones(2), mt.ones(2)])


def test_outputs_of_one_node_arrive_together() -> None:
    x = mt.tensor([[3.0, 1.0], [2.0, 5.0]], dtype=f64, requires_grad=True)
    a, b = x.unbind(0)
    (a * 2).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [[2.0, 2.0], [0.0, 0.0]]
    (a * b).sum().backward()
    assert x.grad.tolist() == [[4.0, 7.0], [3.0, 1.0]]
    assert a.grad_fn is b.grad_fn


# ---- hooks ----


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("leaf", [False, True])
def test_hooks_of_a_tensor_see_one_object(graph, leaf):
    seen = []
    x = mt.ones(2, requires_grad=True)
    y = x if leaf else x * 1
    y.register_hook(seen.append)
    y.register_hook(lambda g: setattr(g, "note", "left by a hook"))
    replaced = mt.full((2,), 5.0)
    y.register_hook(lambda g: replaced)
    y.register_hook(seen.append)
    (y * 3).sum().backward(create_graph=graph)
    assert seen[0].note == "left by a hook" and seen[0].tolist() == [3.0, 3.0]
    assert seen[1] is replaced and x.grad.tolist() == [5.0, 5.0]


def test_tensor_hooks_run_in_order_and_replace_the_gradient() -> None:
    x = leaf(1.0)
    y = x * 2
    order = []
    y.register_hook(lambda g: order.append(("a", g.item())) or g * 10)
    y.register_hook(lambda g: order.append(("b", g.item())))
    x.register_hook(lambda g: order.append(("leaf", g.item())) or g + 1)
    (y * 3).sum().backward()
    assert order == [("a", 3.0), ("b", 30.0), ("leaf", 60.0)]
    assert x.grad.item() == 61.0


def test_hooks_can_be_removed_even_while_they_run() -> None:
    x = leaf(1.0)
    calls = []
    handles = []

    def once(g: mt.Tensor) -> None:
        calls.append("once")
        handles[0].remove()

    handles.append(x.register_hook(once))
    x.register_hook(lambda g: calls.append("always"))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert calls == ["once", "always", "always"]
    with x.register_hook(lambda g: g * 0):
        (x * 2).sum().backward()
    assert x.grad.item() == 4.0


def test_hook_results_are_checked() -> None:
    for bad, error in ((lambda g: 1, TypeError), (lambda g: g.view(1, 1), RuntimeError), (lambda g: g.float(), RuntimeError)):
        x = leaf(1.0)
        x.register_hook(bad)
        with pytest.raises(error, match="hook '<lambda>'|but hook returned 'int'"):
            (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        mt.ones(1).register_hook(print)


def test_post_accumulate_hooks_see_the_accumulated_grad() -> None:
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [2.0, 4.0]
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_node_hooks_see_gradients_of_inputs_and_outputs() -> None:
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    seen = []
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 10,))
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].item(), ins[1].item(), outs[0].item())))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] + 1, ins[1]))
    y.sum().backward()
    assert seen == [(20.0, 10.0, 10.0)] and x.grad.item() == 21.0 and w.grad.item() == 10.0


@pytest.mark.parametrize("before", [True, False])
def test_node_hooks_keep_the_number_of_gradients(before: bool) -> None:
    def grad(answer: object) -> object:
        x = leaf(1.0)
        y = x.exp()
        if before:
            y.grad_fn.register_prehook(lambda outs: answer)
        else:
            y.grad_fn.register_hook(lambda ins, outs: answer)
        y.sum().backward()
        return x.grad

    for wrong, error in (((), RuntimeError), ((mt.ones(1),) * 2, RuntimeError), (mt.ones(1), TypeError)):
        with pytest.raises(error, match="hook '<lambda>'"):
            grad(wrong)
    assert grad((None,)) is None


def test_tensor_hooks_run_before_node_prehooks() -> None:
    x = leaf(1.0)
    y = x * 2
    order = []
    y.grad_fn.register_prehook(lambda outs: order.append("node"))
    y.register_hook(lambda g: order.append("tensor"))
    y.retain_grad()
    y.sum().backward()
    assert order == ["tensor", "node"]


def test_hooks_on_one_of_several_outputs() -> None:
    x = leaf(1.0, 2.0)
    a, b = x.unbind(0)
    a.register_hook(lambda g: g * 5)
    (a + b).backward()
    assert x.grad.tolist() == [5.0, 1.0]


def test_retain_grad_adds_up_and_is_a_copy() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward(retain_graph=True)
    assert y.grad.item() == 30.0
    (y * 3).sum().backward()
    assert y.grad.item() == 60.0 and x.grad.item() == 120.0
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        mt.ones(1).retain_grad()


def test_reading_grad_of_a_non_leaf_warns() -> None:
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_multi_grad_hook_sees_all_gradients_once() -> None:
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    handle = autograd.graph.register_multi_grad_hook([x, y, z], lambda gs: seen.append([g and g.item() for g in gs]))
    (x * y).sum().backward()
    (x * z).sum().backward()
    assert seen == [[2.0, 1.0, None], [3.0, None, 1.0]]
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 2


@pytest.mark.parametrize("selective", [False, True])
def test_multi_grad_hook_runs_at_the_last_gradient_that_comes(selective: bool) -> None:
    x, unused = leaf(1.0), leaf(5.0)
    y = x * 2
    z = y.exp()
    order = []
    autograd.graph.register_multi_grad_hook([z, y, unused], lambda gs: order.append([g is not None for g in gs]))
    y.register_hook(lambda g: order.append("y"))
    x.register_hook(lambda g: order.append("x"))
    if selective:
        autograd.grad((z * unused).sum(), [y])
    else:
        (z + y).sum().backward()
    assert order == [[True, True, False], "y", *["x"] * (not selective)]


def test_nodes_show_what_they_have_saved() -> None:
    x, y = mt.tensor([1.0, 2.0], requires_grad=True), mt.tensor([3.0, 4.0])
    z = x * y
    names = [name for name in dir(z.grad_fn) if name.startswith("_saved_")]
    assert names == ["_saved_other", "_saved_self"]
    assert z.grad_fn._saved_other is y and z.grad_fn._saved_self is None
    assert x.exp().grad_fn._saved_result.tolist() == x.exp().tolist()
    assert x.softmax(0).grad_fn._saved_dim == 0
    z.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        assert z.grad_fn._saved_other
    with pytest.raises(AttributeError, match="_saved_nothing"):
        assert z.grad_fn._saved_nothing


def test_what_nodes_have_saved_has_pytorch_s_names() -> None:
    x, images = mt.ones(2, 2, requires_grad=True), mt.ones(1, 2, 3, 3, requires_grad=True)
    functional = mt.nn.functional
    cases = (
        (x @ x, "self mat2"), (functional.linear(x, x, x[0]), "mat1 mat2"),
        (functional.conv2d(images, images), "input weight stride"), (functional.layer_norm(x, (2,), x[0]), "input result1 result2 weight"),
        (functional.max_pool2d(images, 2), "result1 kernel_size"),
        (x.gather(0, mt.tensor([[0]])), "index"), (functional.mse_loss(x, x * 2), "self target"),
    )  # fmt: skip
    for made, names in cases:
        missing = [n for n in names.split() if not hasattr(made.grad_fn, f"_saved_{n}")]
        assert not missing, (made.grad_fn, missing, dir(made.grad_fn))


def test_an_edge_of_the_graph_stands_for_a_tensor() -> None:
    x = mt.tensor([1.0, 2.0], requires_grad=True)
    graph, grad = autograd.graph, autograd.grad
    y = x * 2
    z = (y * y).sum()
    at_x, at_y, at_z = (graph.get_gradient_edge(t) for t in (x, y, z))
    found = grad(z, [at_y, at_x, y], retain_graph=True)
    assert [g.tolist() for g in found] == [[4.0, 8.0], [8.0, 16.0], [4.0, 8.0]]
    assert grad(at_z, x, mt.tensor(2.0), retain_graph=True)[0].tolist() == [16.0, 32.0]
    autograd.backward(z, inputs=[at_x, at_y], retain_graph=True)
    assert x.grad.tolist() == [8.0, 16.0]
    with pytest.raises(RuntimeError, match="cannot be used when the given input is a GradientEdge"):
        grad(x.sum(), at_y, materialize_grads=True)
    first, second = x.unbind()
    ends = [graph.GradientEdge(t.grad_fn, t.output_nr) for t in (first, second)]
    assert [g.item() for g in grad(first * second, ends)] == [2.0, 1.0]
    y.mul_(3)  # an edge stays where it is
    assert grad(y.sum(), [at_y, y])[0].tolist() == [3.0, 3.0]
    assert isinstance(at_x.node, graph.Node) and at_x.node.variable is x


def test_next_functions_lead_to_the_leaf() -> None:
    x = leaf(1.0)
    accumulate, number = (x * 2).grad_fn.next_functions[0]
    assert accumulate.variable is x and number == 0
    assert (x.exp() * 2).grad_fn.next_functions[0][0].name() == "ExpBackward0"


# ---- modes ----


def test_modes_nest_and_survive_exceptions() -> None:
    x = leaf(1.0)
    with mt.no_grad():
        assert not (x * 2).requires_grad
        with mt.enable_grad():
            assert (x * 2).requires_grad
        assert not mt.is_grad_enabled()
    with pytest.raises(KeyError), mt.no_grad():
        raise KeyError
    assert mt.is_grad_enabled() and x.requires_grad


def test_modes_as_decorators_with_and_without_parentheses() -> None:
    @mt.no_grad()
    def a() -> bool:
        return mt.is_grad_enabled()

    @mt.no_grad
    def b() -> bool:
        return mt.is_grad_enabled()

    @mt.set_grad_enabled(False)
    def c() -> bool:
        return mt.is_grad_enabled()

    @mt.inference_mode()
    def d() -> bool:
        return mt.is_inference_mode_enabled()

    assert (a(), b(), c(), d()) == (False, False, False, True)
    assert mt.is_grad_enabled() and not mt.is_inference_mode_enabled()
    assert a.__name__ == "a"


def test_a_decorated_generator_keeps_the_mode_to_itself() -> None:
    @mt.no_grad()
    def steps():
        try:
            got = yield mt.is_grad_enabled()
            yield got
        except ValueError:
            yield ("thrown", mt.is_grad_enabled())
        finally:
            closed.append(mt.is_grad_enabled())

    closed = []
    g = steps()
    assert next(g) is False and mt.is_grad_enabled()
    assert g.send("sent") == "sent" and mt.is_grad_enabled()
    assert g.throw(ValueError()) == ("thrown", False) and mt.is_grad_enabled()
    g.close()
    assert closed == [False]


def test_set_grad_enabled_as_call_and_as_context() -> None:
    x = leaf(1.0)
    try:
        mt.set_grad_enabled(False)
        assert not (x * 2).requires_grad and not x[0].requires_grad
        with mt.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    finally:
        mt.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_modes_belong_to_their_thread() -> None:
    seen = []
    with mt.no_grad():
        thread = threading.Thread(target=lambda: seen.append((leaf(1.0) * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_the_fast_path_is_restored_after_every_kind_of_block() -> None:

    x = leaf(1.0)
    before = special[0]
    with mt.set_grad_enabled(False):
        pass
    with mt.inference_mode(), mt.enable_grad():
        pass
    with autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        (x * 2).sum().backward()
    with autograd.set_detect_anomaly(True):
        (x * 2).sum().backward()
    mt.set_grad_enabled(True)
    assert special[0] == before


def test_an_interrupt_at_the_end_of_backward_leaves_recording_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from mortice import backward

    settle, arrived = backward.settle, []

    def interrupted() -> None:
        if not arrived:
            arrived.append(1)
            raise KeyboardInterrupt
        settle()

    x = mt.ones(3, requires_grad=True)
    y = (x * x).sum()
    monkeypatch.setattr(backward, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        y.backward()
    assert mt.is_grad_enabled() and (x * 2).requires_grad


def test_inference_tensors() -> None:
    x = leaf(1.0)
    with mt.inference_mode():
        y = x * 2
        assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
        y.requires_grad = True
    for write in (lambda: y.add_(1), lambda: mt.add(y, 1, out=y)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write()
    z = y.clone()
    assert not z.is_inference()
    z.requires_grad_()


def test_operations_inside_hooks_are_not_recorded() -> None:
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append((g * x).requires_grad))
    (x * 2).sum().backward()
    assert seen == [False]


def test_a_leaf_that_no_longer_wants_a_gradient_gets_none() -> None:
    x = leaf(1.0)
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None


def test_a_leaf_has_its_gradient_as_soon_as_nothing_adds_to_it() -> None:
    events: list[str] = []
    early = mt.ones(3, requires_grad=True)
    late = mt.full((3,), 2.0, requires_grad=True)
    early.register_post_accumulate_grad_hook(lambda p: events.append("early has its gradient"))
    late.register_post_accumulate_grad_hook(lambda p: events.append("late has its gradient"))
    hidden = early * 3.0
    hidden.register_hook(lambda g: events.append("hidden is reached"))
    (hidden * late).sum().backward()
    assert events == ["late has its gradient", "hidden is reached", "early has its gradient"]


def test_a_leaf_used_twice_waits_for_both() -> None:
    seen: list[list[float]] = []
    x = mt.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    for _ in range(2):
        x.grad = None
        y = x * 2.0
        z = (y * y) * x
        z.sum().backward()
    assert seen == [[12.0, 12.0]] * 2


def test_a_module_hook_sees_the_gradients_of_its_parameters() -> None:
    net = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.Tanh(), mt.nn.Linear(3, 1))
    missing: list[str] = []
    for name, layer in net.named_children():
        layer.register_full_backward_hook(
            lambda m, gi, go, name=name: missing.extend(name for p in m.parameters() if p.grad is None)
        )
    net(mt.ones(4, 2, requires_grad=True)).sum().backward()
    assert missing == []


def test_prehooks_of_what_accumulates_come_after_the_tensors_hooks_and_only_there() -> None:
    x, seen = mt.tensor(1.0, requires_grad=True), []
    y = x * 3
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate.register_prehook(lambda gs: seen.append(("node", gs[0].item())))
    x.register_hook(lambda g: seen.append(("tensor", g.item())) or g * 10)
    autograd.grad(y, x, retain_graph=True)
    assert seen == [("tensor", 3.0)]
    y.backward()
    assert seen[1:] == [("tensor", 3.0), ("node", 30.0)] and x.grad.item() == 30.0


def test_zeros_for_what_has_no_influence_can_be_differentiated_on() -> None:
    x = mt.tensor(2.0, requires_grad=True)
    (unused,) = autograd.grad((mt.ones(1, requires_grad=True) * 1).sum(), x, create_graph=True, materialize_grads=True)
    assert unused.requires_grad and autograd.grad(unused, x, materialize_grads=True)[0].item() == 0
    with pytest.raises(RuntimeError, match="cannot be empty"):
        autograd.grad(x * 2, [])


def test_hooks_on_saved_tensors_that_a_backward_enters_end_with_it() -> None:
    packed = []
    hooks = autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t)
    x = mt.ones(2, requires_grad=True)
    y = (x * x).sum()
    x.register_hook(lambda g: hooks.__enter__())
    y.backward()
    (x * x).sum()
    assert packed == []


def test_the_other_spelling_of_grad_is_the_same_gradient():
    x = leaf(1.0, 2.0)
    x._grad = mt.ones(2, dtype=f64)
    assert x.grad is x._grad
    (x * 3).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_hooks_lie_in_ordered_dictionaries():
    t = mt.ones(2, requires_grad=True)
    assert t._backward_hooks is None and (t * 2)._backward_hooks is None
    calls = []
    first = t.register_hook(lambda g: calls.append("first"))
    second = t.register_hook(lambda g: calls.append("second"))
    assert isinstance(t._backward_hooks, OrderedDict) and list(t._backward_hooks) == [first.id, second.id]
    t._backward_hooks.move_to_end(first.id)
    y = t * 2
    inner = y.register_hook(lambda g: calls.append("inner"))
    assert list(y._backward_hooks) == [inner.id] and isinstance(inner, mt.utils.hooks.RemovableHandle)
    y.sum().backward()
    assert calls == ["inner", "second", "first"]
    del t._backward_hooks[first.id]
    second.remove()
    t.sum().backward()
    assert len(calls) == 3 and len(t._backward_hooks) == 0

    layer = mt.nn.Linear(2, 2)
    one, two = layer.register_forward_hook(print), layer.register_forward_hook(print)
    assert isinstance(layer._forward_hooks, OrderedDict)
    layer._forward_hooks.move_to_end(two.id, last=False)
    assert list(layer._forward_hooks) == [two.id, one.id]
    assert str(layer._forward_hooks) == f"OrderedDict({list(layer._forward_hooks.items())})"
    assert str(layer._forward_pre_hooks) == "OrderedDict()"
    assert isinstance(mt.optim.SGD(layer.parameters(), lr=1.0)._optimizer_step_pre_hooks, OrderedDict)


def test_a_linear_layer_shows_the_nodes_of_its_parts():
    layer, x = mt.nn.Linear(2, 3), mt.ones(4, 5, 2)
    node = layer(x).grad_fn
    assert node.name() == "ViewBackward0"
    ((product, _),) = node.next_functions
    assert node.next_functions[0][0] is product
    assert len({f for _ in range(2) for f, _ in product.next_functions if f is not None}) == 2  # the same ones when asked again
    assert type(product).__name__ == product.name() == "AddmmBackward0"
    bias, flat, turned = [f for f, _ in product.next_functions]
    assert bias.variable is layer.bias and flat is None and type(turned).__name__ == "TBackward0"
    assert turned.next_functions[0][0].variable is layer.weight
    with pytest.raises(NotImplementedError, match="TBackward0: expected a node that runs"):
        turned.register_hook(print)


@pytest.mark.needs("strides")
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_a_gradient_lies_in_memory_as_its_tensor_does(order):
    shape = [(2, 3, 4, 5)[d] for d in order]
    x = mt.arange(120.0).reshape(shape).permute([order.index(d) for d in range(4)]).detach().requires_grad_()
    strides = x.stride()
    assert x.shape == (2, 3, 4, 5) and not x.is_contiguous()
    for function in (lambda x: x.sum(), lambda x: (x * x.contiguous()).sum(), lambda x: x[:, 1:].relu().sum()):
        x.grad = None
        function(x).backward()
        assert x.grad.stride() == strides
    assert x.grad[1, 2, 3, 4] == 1 and x.grad[1, 0, 3, 4] == 0
    gaps = mt.arange(12.0).reshape(3, 4)[:, ::2].detach().requires_grad_()
    gaps.sum().backward()
    assert gaps.grad.is_contiguous()


def test_gradients_of_a_step_do_not_read_the_graph_of_the_steps_before():
    class Unread(tuple):
        def __iter__(self):
            raise AssertionError("the graph below what is wanted was read")

    x = mt.tensor(2.0, requires_grad=True)
    before = x * 3
    state = before + x
    before._node.edges = Unread(before._node.edges)
    (slope,) = mt.autograd.grad(state * state * before.detach() + state, state, create_graph=True)
    assert slope == 97
    (slope,) = mt.autograd.grad(state**3, [state, state])[:1]
    assert slope == 192


@pytest.mark.parametrize("fail", [False, True])
def test_backwards_within_backwards_are_not_limited_by_the_stack(fail: bool) -> None:
    """Each hook calls backward, as checkpoints within checkpoints do; threads take turns, with the modes of the first."""
    left = 300
    seen: set[tuple[bool, bool]] = set()

    def again(g: mt.Tensor) -> None:
        nonlocal left
        left -= 1
        seen.add((mt.is_grad_enabled(), mt.is_autocast_enabled("cpu")))
        if left:
            with mt.enable_grad():
                nested()
        elif fail:
            raise KeyError("the last")

    def nested() -> None:
        x = leaf(1.0)
        y = x * 2
        y.register_hook(again)
        y.sum().backward()
        assert x.grad.tolist() == [2.0]

    threads = threading.active_count()
    with mt.autocast("cpu"):
        if fail:
            with pytest.raises(KeyError, match="the last"):
                nested()
        else:
            nested()
        assert mt.is_autocast_enabled("cpu") and mt.is_grad_enabled()
    assert left == 0 and threading.active_count() == threads and seen == {(False, True)}


def test_a_gradient_that_is_the_same_number_everywhere_is_found_at_an_edge() -> None:
    x = mt.ones(2, requires_grad=True) * 2
    (found,) = mt.autograd.grad(x.clone().sum(), mt.autograd.graph.get_gradient_edge(x))
    assert found.tolist() == [1, 1] and found.is_contiguous()
