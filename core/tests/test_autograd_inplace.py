"""Writes in place and the graph: views, views of views, several views, detach and .data, version checks, refusals."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable

import pytest

import mortice as mt

f64 = mt.float64
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


def leaf(*values: float) -> mt.Tensor:
    return mt.tensor(values, dtype=f64, requires_grad=True)


# ---- gradients through writes ----


def test_write_into_a_view_reaches_its_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1:].mul_(10)
    assert y.tolist() == [1.0, 20.0, 30.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]
    assert y.grad_fn.name() == "CopySlices"


def test_write_into_a_base_reaches_its_views() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    v = y[:2]
    y.mul_(2)
    assert v.tolist() == [2.0, 4.0]
    v.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 0.0]


def test_write_into_one_view_reaches_the_others() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    first, grid = y[:2], y.view(2, 2)
    grid[0].mul_(3)
    first.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


def test_write_through_views_of_views() -> None:
    x = mt.arange(12, dtype=f64).reshape(3, 4).requires_grad_()
    y = x * 1
    y.t()[1:3].permute(1, 0)[0].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 5.0, 5.0, 1.0], [1.0] * 4, [1.0] * 4]


def test_write_through_more_views_than_the_stack_is_deep() -> None:
    x = mt.ones(4, requires_grad=True)
    base = view = x * 1
    for _ in range(3000):
        view = view.view(4)
    view[1:].mul_(3)
    base.sum().backward()
    assert base.tolist() == x.grad.tolist() == [1, 3, 3, 3]


def test_assignment_by_index_differentiates_both_sides() -> None:
    x, v = leaf(1.0, 2.0, 3.0), leaf(7.0)
    y = x * 1
    y[0] = v[0] * 2
    y[y.detach() > 2.5] = 0.0
    (y * mt.tensor([1.0, 10.0, 100.0], dtype=f64)).sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 0.0] and v.grad.tolist() == [0.0]


def test_write_makes_a_constant_part_of_the_graph() -> None:
    w = leaf(2.0)
    out = mt.zeros(3, dtype=f64)
    row = out[1:2]
    row.copy_(w)
    assert out.requires_grad and not out.is_leaf
    out.sum().backward()
    assert w.grad.tolist() == [1.0]


def test_in_place_ops_that_need_their_input_or_result() -> None:
    for name, want in (("exp_", 1.6487212707001282), ("sin_", 0.8775825618903728), ("tanh_", 0.7864477329659274)):
        x = leaf(0.5)
        y = x * 1
        getattr(y, name)()
        y.sum().backward()
        assert abs(x.grad.item() - want) < 1e-12


def test_in_place_product_by_a_tensor_that_wants_the_old_value() -> None:
    for shared in (False, True):
        x, w = leaf(3.0, 4.0), leaf(5.0, 6.0)
        y = x * 1
        view = y[:] if shared else None
        y.mul_(w)
        y.sum().backward()
        assert x.grad.tolist() == [5.0, 6.0] and w.grad.tolist() == [3.0, 4.0]
        assert view is None or view.tolist() == [15.0, 24.0]


def test_division_may_be_followed_by_a_write() -> None:
    x, y = leaf(6.0), leaf(2.0)
    z = x / y
    z += 1
    z.sum().backward()
    assert (x.grad.item(), y.grad.item()) == (0.5, -1.5)


def test_rebinding_a_name_is_no_write() -> None:
    x = leaf(1.0)
    output = x.exp()
    output = output + 1
    output.sum().backward()
    assert x.grad is not None


def test_retained_grad_follows_the_tensor_through_writes() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.item() == 5.0 and x.grad.item() == 30.0


def test_write_under_no_grad_changes_values_and_not_the_graph() -> None:
    x = leaf(1.0, 2.0)
    with mt.no_grad():
        x.mul_(3)
        x[0] = 7.0
    assert x.is_leaf and x.tolist() == [7.0, 6.0]
    (x * x).sum().backward()
    assert x.grad.tolist() == [14.0, 12.0]


# ---- refusals ----


def test_write_to_a_leaf_that_requires_grad_is_refused() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation."):
        x.add_(1)
    for write in (lambda: x[:1].add_(1), lambda: x.view(2, 1).zero_(), lambda: x.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation."):
            write()
    assert x.tolist() == [1.0, 2.0]


def test_saved_input_overwritten() -> None:
    b = leaf(1.0) * 2
    y = b * b
    b.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED + r".*which is output 0 of Add, is at version 1; expected version 0"):
        y.sum().backward()


def test_saved_output_overwritten_names_the_op() -> None:
    for name, shown in (("exp", "Exp"), ("sigmoid", "Sigmoid"), ("tanh", "Tanh")):
        y = getattr(leaf(1.0, 2.0), name)()
        y.add_(1)
        with pytest.raises(RuntimeError, match=rf"{MODIFIED}.*\[2\]\], which is output 0 of {shown}, is at version 1"):
            y.sum().backward()


def test_saved_value_overwritten_through_a_view_slice_or_detached_tensor() -> None:
    def by_view(t: mt.Tensor) -> None:
        t[:1].mul_(2)

    def by_index(t: mt.Tensor) -> None:
        t[0] = 3.0

    def by_detached(t: mt.Tensor) -> None:
        t.detach().mul_(2)

    for write in (by_view, by_index, by_detached):
        for make in (lambda t: t.exp(), lambda t: t * 2):
            y = make(leaf(1.0, 2.0))
            z = y * y
            write(y)
            with pytest.raises(RuntimeError, match=MODIFIED):
                z.sum().backward()


def test_saved_output_of_an_in_place_op_overwritten() -> None:
    for shared in (False, True):
        y = leaf(1.0, 2.0) * 1
        view = y[:1] if shared else None
        y.exp_()
        y[1] = 0.0
        with pytest.raises(RuntimeError, match=MODIFIED + ".*output 0 of Exp"):
            y.sum().backward()
        del view


def test_optimizer_step_between_forward_and_backward_is_noticed() -> None:
    w = leaf(1.0)
    h = leaf(2.0) * w
    loss = (h * w).sum()
    with mt.no_grad():
        w.sub_(0.1)
    with pytest.raises(RuntimeError, match=MODIFIED + ".* is at version 1; expected version 0"):
        loss.backward()


def test_write_to_a_view_made_under_no_grad_is_refused() -> None:
    y = leaf(1.0, 2.0) * 1
    with mt.no_grad():
        v = y[:1]
    assert not v.requires_grad
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        v.mul_(2)
    constant = mt.zeros(2, dtype=f64)
    with mt.no_grad():
        v = constant[:1]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v.copy_(y[:1])
    assert constant.tolist() == [0.0, 0.0]


def test_views_made_under_inference_mode_are_told_of_by_that_name_and_pieces_are_what_their_base_is() -> None:
    y = leaf(1.0, 2.0) * 1
    with mt.inference_mode():
        views = (y[:1], y.view(2), *y.split(1))
        whole = mt.ones(2)
        made = whole.split(1)[0]
    later = (*whole.split(1), *whole.unbind(), *whole.chunk(2), whole[:1])
    for v in views:
        with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"):
            v.mul_(2)
    for v in (made, *later):
        assert v.is_inference()
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            v.add_(1)


def test_what_was_made_under_inference_mode_is_not_kept_for_backward() -> None:
    x, index = leaf(1.0, 2.0), mt.tensor([1])
    with mt.inference_mode():
        made = mt.ones(2, dtype=f64)
        part = made[:1]
    kept = (lambda: x * made, lambda: made / x, lambda: x[:1] * part, lambda: mt.lerp(x, x, made), lambda: mt.einsum("i,j->ij", x, made))
    for fn in kept:
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            fn()
    for fn in (lambda: x + made, lambda: mt.cat([x, made]), lambda: x * made.clone(), lambda: x.index_add(0, index, part)):
        assert fn().requires_grad
    with mt.no_grad():
        assert (x * made).tolist() == [1, 2]


def test_under_inference_mode_what_requires_grad_may_be_resized() -> None:
    with mt.inference_mode():
        x = mt.ones(1, 2, 3, requires_grad=True)
        assert x.resize_(1, 2).shape == (1, 2) and x.requires_grad
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        leaf(1.0, 2.0).resize_(1)


def test_view_made_under_no_grad_cannot_be_used_after_its_base_was_written() -> None:
    y = leaf(1.0, 2.0) * 1
    with mt.no_grad():
        v = y[:1]
    y.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        (v * 3).sum().backward()


def test_write_to_one_of_several_views_is_refused() -> None:
    y = leaf(1.0, 2.0, 3.0, 4.0) * 1
    for views in (y.split(2), y.chunk(2), y.view(2, 2).unbind(0)):
        with pytest.raises(RuntimeError, match="Output 0 of .* is a view and is being modified inplace. .*multiple views"):
            views[0].mul_(2)


def test_several_views_follow_a_write_to_their_base() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    a, _ = y.split(1)
    y.mul_(3)
    a.sum().backward()
    assert x.grad.tolist() == [3.0, 0.0]


def test_a_function_s_view_has_no_gradient_once_its_base_was_written() -> None:
    class Flat(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g.view(2, 2) * 5

    base = leaf(1.0, 2.0, 3.0, 4.0).view(2, 2).clone()
    flat = Flat.apply(base)
    base.add_(1)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace. This view was c"):
        flat.sum().backward()


def test_write_into_memory_that_expand_repeats_is_refused() -> None:
    x = mt.ones(1, 3).expand(2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x.add_(1)
    x[0].add_(1)
    assert x.tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element"):  # which of the numbers an element gets is left open
        x[mt.tensor([0, 1])] = mt.ones(2, 3)
    with pytest.raises(RuntimeError, match="more than one element"):
        x.index_put_((mt.tensor([0, 1]),), mt.ones(()), accumulate=True)


@pytest.mark.parametrize("write", [
    lambda x, mask: x.masked_fill_(mask, 7.0), lambda x, mask: x.masked_fill_(mask, mt.tensor(7.0)),
    lambda x, mask: x.__setitem__(mask, 7.0),
    lambda x, mask: x.__setitem__((mt.tensor([1, 0]), mt.tensor([2, 0])), 7.0),
    lambda x, mask: x.index_put_((mt.tensor([1, 0]), mt.tensor([2, 0])), mt.tensor(7.0)),
    lambda x, mask: x.index_fill_(1, mt.tensor([0, 2]), 7.0),
])  # fmt: skip
def test_a_number_is_written_where_expand_repeats_memory_with_a_warning(write: Callable[..., object]) -> None:
    base = mt.zeros(1, 3)
    x, mask = base.expand(2, 3), mt.tensor([[True, False, False], [False, False, True]])
    with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
        write(x, mask)
    assert base.tolist() == [[7.0, 0.0, 7.0]] and x.tolist() == [[7.0, 0.0, 7.0]] * 2 and base._version == 1
    whole = mt.zeros(()).expand(2, 3)
    with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
        write(whole, mask)
    assert whole.tolist() == [[7.0] * 3] * 2


def test_result_that_does_not_fit_is_refused() -> None:
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        mt.ones(1, 3).add_(mt.ones(2, 3))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        mt.tensor([1, 2]).mul_(1.5)


# ---- detach, .data, clone ----


def test_detach_shares_memory_and_version() -> None:
    x = leaf(1.0, 2.0)
    d = x.detach()
    assert not d.requires_grad and d.is_leaf
    d.mul_(2)
    assert x.tolist() == [2.0, 4.0] and x._version == d._version == 1


def test_detach_example() -> None:
    x = leaf(2.0)
    y = x * x * x
    (y.detach() * y.detach() * 0 + x * 4 * 12).sum().backward()
    assert x.grad.item() == 48.0


def test_data_shares_memory_and_hides_writes() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    x.data.mul_(10)
    assert x.tolist() == [10.0, 20.0] and x._version == 0
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 40.0]


def test_data_counts_its_own_versions() -> None:
    w, d = leaf(1.0, 2.0), mt.ones(2, dtype=f64).data
    y = d * w
    d.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED + ".* is at version 1; expected version 0"):
        y.sum().backward()


def test_assigning_data_keeps_identity_version_and_flags() -> None:
    x, other = leaf(1.0, 2.0), mt.tensor([5.0, 6.0, 7.0], dtype=f64)
    other.add_(1)
    y = x * 2
    x.data = other
    assert x.requires_grad and x.tolist() == [6.0, 7.0, 8.0] and x._version == 0
    y.sum().backward(inputs=[y])
    other.mul_(2)
    assert x.tolist() == [12.0, 14.0, 16.0]
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = mt.tensor([1])


def test_clone_stays_in_the_graph_and_shares_nothing() -> None:
    x = leaf(1.0, 2.0)
    y = x.clone()
    y.mul_(3)
    assert x.tolist() == [1.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_detach_in_place() -> None:
    y = leaf(1.0) * 2
    assert y.detach_() is y and y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (leaf(1.0, 2.0) * 2)[:1].detach_()


def test_versions_count_writes() -> None:
    x = mt.zeros(3)
    assert x._version == 0
    x.add_(1)
    x[0] = 2.0
    assert x._version == 2 == x.view(3)._version and x.clone()._version == 0
    mt.autograd.graph.increment_version(x)
    assert x._version == 3
    x.unsqueeze_(0).t_()
    assert x._version == 5
    w = leaf(1.0, 2.0)
    y = w * 2
    z = y.exp() * y
    y.unsqueeze_(0)  # the product has kept it
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_views_know_their_base() -> None:
    x = mt.zeros(4)
    assert x.view(2, 2)[0]._base is x and x._base is None
    assert not x[mt.tensor([0, 1])]._is_view() and not x.clone()._is_view()


def test_what_is_laid_out_otherwise_is_a_copy_and_no_view() -> None:
    x = mt.arange(120.0).reshape(2, 3, 4, 5).requires_grad_()
    y = x.contiguous(memory_format=mt.channels_last)
    taken = y.transpose(1, 2)[mt.tensor([0, 1])]
    for made, name in ((y, "Clone"), (x.clone(memory_format=mt.channels_last), "Clone"), (taken, "Index")):
        assert not made._is_view() and made._base is None and type(made.grad_fn).__name__ == name + "Backward0"
    y.mul_(2)
    assert type(y.grad_fn).__name__ == "MulBackward0" and x[0, 0, 0, 1] == 1
    y[:, 0].add_(1.0)
    (y * y).sum().backward()
    assert x.grad.flatten()[:3].tolist() == [4, 12, 20] and x.grad[1, 1, 0, 0] == 640


# ---- copies ----


def test_deepcopy_and_pickle_of_leaves() -> None:
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad and y.is_leaf and y.grad.tolist() == [2.0, 2.0]
    y.grad.zero_()
    with mt.no_grad():
        y.add_(1)
    assert x.tolist() == [1.0, 2.0] and x.grad.tolist() == [2.0, 2.0]
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]
    z = pickle.loads(pickle.dumps(x[:1].detach().requires_grad_()))
    assert z.tolist() == [1.0] and z.requires_grad and z.is_leaf


def test_deepcopy_of_a_non_leaf_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf(1.0) * 2)


@pytest.mark.parametrize(
    "pick",
    [
        lambda x: mt.max(x, 1), lambda x: mt.sort(x, 1), lambda x: mt.topk(x, 2, 1), lambda x: mt.cummax(x, 1),
        lambda x: mt.nn.functional.max_pool1d(x, 2, return_indices=True),
    ],
)  # fmt: skip
def test_indices_that_backward_reads_may_not_be_written(pick):
    x = mt.tensor([[3.0, 1.0, 2.0, 5.0]], requires_grad=True)
    values, at = pick(x)
    values.sum().backward()
    values, at = pick(x)
    at.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        values.sum().backward()
    with mt.no_grad():
        pick(x)[1].zero_()


def test_a_new_shape_in_place_under_no_grad_leaves_what_requires_grad() -> None:
    for around in (mt.no_grad, mt.inference_mode):
        w = mt.ones(2, 3, requires_grad=True)
        y = w * 2
        with mt.no_grad():
            w.t_()
            y.unsqueeze_(0)
        assert w.requires_grad and w.is_leaf and y.requires_grad and y.shape == (1, 2, 3)
        with around():
            v = mt.ones(2, 3, requires_grad=True)
            assert v.transpose_(0, 1).requires_grad
    (mt.arange(6.0).reshape(3, 2) * w).sum().backward()
    assert w.grad.tolist() == [[0, 1], [2, 3], [4, 5]]
    w = mt.ones(2, 3, requires_grad=True)
    y = w * 2
    with mt.no_grad():
        y.t_()
    (y * mt.arange(6.0).reshape(3, 2)).sum().backward()
    assert w.grad.tolist() == [[0, 4, 8], [2, 6, 10]]


def test_a_saved_tensor_that_took_another_size_is_noticed() -> None:
    w = mt.ones(3, requires_grad=True)
    for change in (lambda x: x.resize_(2), lambda x: mt.add(mt.ones(2), 1, out=x)):
        x = mt.arange(3.0)
        y = (x * w).sum()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            change(x)
        assert x._version == 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


# ---- writes that nothing records ----

WRITES = {
    "add_": lambda x, y, z: x.add_(y), "add_(alpha)": lambda x, y, z: x.add_(y, alpha=-0.5),
    "sub_(alpha)": lambda x, y, z: x.sub_(y, alpha=2), "subtract_": lambda x, y, z: x.subtract_(y, alpha=0.5),
    "mul_": lambda x, y, z: x.mul_(0.5), "iadd": lambda x, y, z: x.__iadd__(3), "div_": lambda x, y, z: x.div_(y),
    "lerp_": lambda x, y, z: x.lerp_(y, 0.25), "lerp_(tensor)": lambda x, y, z: x.lerp_(y, z),
    "addcmul_": lambda x, y, z: x.addcmul_(y, z), "addcmul_(value)": lambda x, y, z: x.addcmul_(y, x, value=0.5),
    "addcdiv_": lambda x, y, z: x.addcdiv_(y, z, value=-2), "clamp_": lambda x, y, z: x.clamp_(-0.5, 0.5),
    "clamp_(min)": lambda x, y, z: x.clamp_(min=0), "clamp_(tensors)": lambda x, y, z: x.clamp_(y, z), "relu_": lambda x, y, z: x.relu_(),
    "neg_": lambda x, y, z: x.neg_(), "pow_": lambda x, y, z: x.pow_(2), "out": lambda x, y, z: mt.add(x, y, out=x),
    "out(alpha)": lambda x, y, z: mt.add(y, z, alpha=3, out=x), "out(product)": lambda x, y, z: mt.addcmul(y, z, x, value=0.5, out=x),
    "out(sum)": lambda x, y, z: mt.sum(z.expand(2, 300), 0, out=x), "out(matmul)": lambda x, y, z: mt.mv(mt.outer(y, z), z, out=x),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_a_write_gives_what_the_function_gives_and_all_who_share_the_memory_see_it(name: str) -> None:
    write = WRITES[name]
    for d in (mt.float32, f64, mt.float16):
        x, y, z = (mt.randn(300).to(d) for _ in range(3))
        want = write(x.clone(), y, z)
        for t in (x.clone(), x.repeat(2)[:300], mt.stack([x, x], 1)[:, 0]):  # all of its memory, a part, every other
            view, before = t[:100], t._version
            assert write(t, y, z) is t
            assert mt.equal(t, want) and mt.equal(view, want[:100]) and t._version == before + 1


def test_a_write_reads_its_operands_before_they_change() -> None:
    x = mt.arange(600.0).reshape(300, 2)[:, 0]
    x[1:].add_(x[:-1])
    assert x[:4].tolist() == [0.0, 2.0, 6.0, 10.0] and x[299] == 1194.0
    x = mt.arange(2.0, 602.0).reshape(300, 2)[:, 0]
    assert x.mul_(x[1]).tolist() == [8.0 * i for i in range(1, 301)]
    x = mt.arange(20.0).reshape(10, 2)[:, 0]
    assert x.scatter_add_(0, mt.arange(9), x[1:]).tolist() == [*range(2, 38, 4), 18.0]
    order = mt.arange(5).repeat_interleave(2).view(5, 2)[:, 0]
    assert order.scatter_(0, order[:], order.flip(0)).tolist() == [4, 3, 2, 1, 0]
    places = mt.tensor([0, 1])
    for _ in range(2):  # the first call goes another way than those after it
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            places.scatter_(0, places, places * 2)
    mask = mt.tensor([True, False, True])
    for part in (lambda: mask[1:].masked_fill_(mask[:-1], False), lambda: places.index_fill_(0, places, 7)):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            part()
    assert mask.masked_fill_(mask, False).tolist() == [False] * 3 and places.tolist() == [0, 1]


def test_writes_without_gradients_into_what_was_kept_for_backward_are_told() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    with mt.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_results_of_another_shape_or_kind_are_not_written() -> None:
    x = mt.ones(3)
    for wrong in (
        lambda: x.add_(mt.ones(2, 3)), lambda: x.add_(mt.ones(2, 3), alpha=2), lambda: x.addcmul_(mt.ones(2, 3), x),
        lambda: mt.ones(3, dtype=mt.int64).mul_(0.5), lambda: mt.ones(3, dtype=mt.int64).add_(x, alpha=0.5), lambda: x.lerp_(2.0, 0.5),
        lambda: x.sub_(x, alpha=True), lambda: (x > 0).square_(), lambda: x.clamp_(), lambda: x.addcmul_(x, x, value=1j),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, TypeError)):
            wrong()
    assert x.tolist() == [1.0, 1.0, 1.0] and x._version == 0


def test_alpha_has_one_place_in_the_graph_and_the_gradient_of_both() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    mt.sub(x, y, alpha=3).backward(mt.tensor([1.0, 10.0], dtype=f64))
    assert x.grad.tolist() == [1.0, 10.0] and y.grad.tolist() == [-3.0, -30.0]
    with pytest.raises(RuntimeError, match="^add: "):
        mt.add(mt.ones(2), mt.ones(3), alpha=2)


DRAWS = {
    "normal_": (), "uniform_": (), "bernoulli_": (0.5,), "exponential_": (), "cauchy_": (), "log_normal_": (), "geometric_": (0.5,),
    "random_": (5,),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_in_place_stays_in_the_graph_and_gives_what_was_there_no_gradient(name: str) -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    getattr(y[1:], name)(*DRAWS[name])
    getattr(z := x * 2, name)(*DRAWS[name])
    assert y.requires_grad and z.requires_grad and not z.is_leaf
    (y.sum() + z.sum()).backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(x, name)(*DRAWS[name])
    with mt.no_grad():
        getattr(x, name)(*DRAWS[name])
    assert x.requires_grad and x.is_leaf


def test_a_tensor_of_no_dims_is_written_with_as_a_number_is():
    x = mt.tensor([[2.0, 3.0], [4.0, 5.0]])
    x.mul_(x[0, 0].clone()).add_(mt.tensor(1.0))
    assert x.tolist() == [[5.0, 7.0], [9.0, 11.0]] and x._version == 2
    weight = mt.tensor(2.0, requires_grad=True)
    y = mt.ones(2, 2)
    y.mul_(weight)
    y.sum().backward()
    assert weight.grad.item() == 4.0
    empty = mt.ones(0, 3)
    assert empty.mul_(mt.tensor(2.0)).shape == (0, 3)
    with pytest.raises(RuntimeError):
        mt.ones(()).mul_(mt.ones(2))


def test_the_rows_a_loop_gives_may_be_written():
    x = mt.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    whole = x * 2
    first, second, third = whole
    assert {type(row.grad_fn).__name__ for row in (first, second, third)} == {"UnbindBackward0"}
    first[mt.tensor([True, False])] = 5.0
    second.mul_(x[2])
    (whole.sum() + third.sum()).backward()
    assert x.grad.tolist() == [[0.0, 2.0], [8.0, 10.0], [8.0, 10.0]]
    with mt.no_grad():
        row = next(iter(x))
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        row.zero_()


def test_the_rows_of_what_must_not_be_written_must_not_either():
    class Tenfold(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(2, 2)

        @staticmethod
        def backward(ctx, g):
            return 10 * g.reshape(4)

    class BackwardTenfold(Tenfold):
        """Its name has the word that a node's name ends with."""

    x = mt.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="Output 0 of BackwardTenfold is a view"):
        BackwardTenfold.apply(x * 1).mul_(2)
    for whole in (Tenfold.apply(x * 1), (x * 1).view(2, 1, 2).unbind(0)[0]):
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            next(iter(whole)).mul_(2)
