"""The seed inventory, rows AG: what tracks gradients, backward, freeing, detaching, in-place errors. One test a row."""

import pytest

import mortice as mt

nn = mt.nn


def _pair():
    """Return two layers over shared features, and two losses of them."""
    mt.manual_seed(0)
    shared, one, two = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    features = shared(mt.rand(5, 3))
    return shared, one, two, one(features).pow(2).mean(), two(features).abs().sum()


def test_AG01_results_of_tracked_operations_have_a_grad_fn():
    x = mt.ones(2, requires_grad=True)
    y = (x * 3).sum()
    assert y.requires_grad and y.grad_fn is not None
    y.backward()
    assert x.grad.tolist() == [3, 3]


def test_AG02_three_ways_to_track():
    assert mt.ones(2, requires_grad=True).requires_grad
    x = mt.randn(2, 2)
    assert x.requires_grad_(True) is x and x.requires_grad
    y = mt.ones(1)
    y.requires_grad = True
    assert y.requires_grad


def test_AG03_the_first_example_of_the_tutorial():
    x = mt.ones(2, 2, requires_grad=True)
    y = x + 2
    out = (y * y * 3).mean()
    out.backward()
    assert out.item() == 27
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]


def test_AG04_backward_of_a_scalar_starts_with_one():
    grads = []
    for start in ((), (mt.tensor(1.0),)):
        x = mt.tensor([2.0, 3.0], requires_grad=True)
        (x * x).sum().backward(*start)
        grads.append(x.grad.tolist())
    assert grads == [[4, 6], [4, 6]]


def test_AG05_backward_of_a_vector_takes_v():
    x = mt.ones(3, requires_grad=True)
    y = x * 2
    while y.data.norm() < 1000:
        y = y * 2
    v = mt.tensor([0.1, 1.0, 0.0001], dtype=mt.float)
    y.backward(v)
    assert y[0].item() == 1024
    assert mt.allclose(x.grad, v * 1024)


def test_AG06_backward_of_a_vector_without_v():
    x = mt.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()


def test_AG07_grad_fn_is_named_after_the_operation():
    x = mt.ones(1, requires_grad=True)
    assert x.grad_fn is None
    assert (x * 2).grad_fn.name() == "MulBackward0"
    assert "ExpBackward0" in repr(x.exp().grad_fn)


def test_AG08_backward_reaches_every_tracked_leaf():
    a, b = mt.tensor(2.0, requires_grad=True), mt.tensor(3.0, requires_grad=True)
    c = mt.tensor(5.0)
    (a * b * c + b).backward()
    assert [a.grad.item(), b.grad.item(), c.grad] == [15, 11, None]


def test_AG09_tracking_is_off_by_default():
    assert not mt.ones(2).requires_grad and not mt.tensor([1.0]).requires_grad


def test_AG10_no_grad():
    x = mt.ones(1, requires_grad=True)

    @mt.no_grad()
    def double():
        return x * 2

    with pytest.raises(ZeroDivisionError), mt.no_grad():
        with mt.no_grad():
            pass
        assert not (x * 2).requires_grad and x.requires_grad
        1 / 0  # noqa: B018
    assert not double().requires_grad
    assert mt.is_grad_enabled() and (x * 2).requires_grad


def test_AG11_one_tracked_input_is_enough():
    parameter = nn.Parameter(mt.ones(2))
    assert (mt.ones(2) + parameter).requires_grad
    assert parameter.exp().requires_grad
    assert not (mt.ones(2) + mt.ones(2)).requires_grad


def test_AG12_the_flag_of_a_result_cannot_be_turned_off():
    a = mt.randn(2, 2) + mt.randn(2, 2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"(?s)you can only change requires_grad flags of leaf variables.*detach\(\)"
    ):
        a.requires_grad = False


def test_AG13_part_of_a_gradient_is_zeroed_after_backward():
    low, high = nn.Linear(2, 3), nn.Linear(3, 1)
    high(low(mt.ones(4, 2))).sum().backward()
    before = low.weight.grad.clone()
    high.weight.grad[:, 0] = 0
    assert high.weight.grad[0, 0].item() == 0 and high.weight.grad[0, 1].item() != 0
    assert mt.equal(low.weight.grad, before)


def test_AG14_gradients_can_be_changed_by_hand():
    x = mt.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g * 10)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [30, 30]
    handle.remove()
    x.grad = mt.tensor([1.0, 2.0])
    x.grad.mul_(2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7]


def test_AG15_gradients_accumulate():
    x = mt.tensor([1.0], requires_grad=True)
    y = x * 2
    found = []
    for keep in (True, True, False):
        y.backward(retain_graph=keep)
        found.append(x.grad.item())
    assert found == [2, 4, 6]
    x.grad = None
    (x * 2).backward()
    assert x.grad.item() == 2


def test_AG16_backward_through_a_freed_graph():
    x = mt.tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="(?s)backward through the graph a second time.*Specify retain_graph=True"):
        y.backward()


def test_AG17_two_results_over_one_graph():
    a = mt.autograd.Variable(mt.rand(1, 4), requires_grad=True)
    c = a**2 * 2
    d, e = c.mean(), c.sum()
    d.backward(retain_graph=True)
    e.backward(retain_graph=True)
    d.backward()
    with pytest.raises(RuntimeError, match="second time"):
        e.backward()
    assert mt.allclose(a.grad, 6 * a)


def test_AG18_two_losses_over_shared_layers_add_up():
    shared, _, _, loss1, loss2 = _pair()
    loss1.backward(retain_graph=True)
    first = shared.weight.grad.clone()
    loss2.backward()
    shared_again, _, _, loss1, loss2 = _pair()
    (loss1 + loss2).backward()
    assert mt.allclose(shared.weight.grad, shared_again.weight.grad)
    assert not mt.allclose(first, shared.weight.grad)
    with pytest.raises(RuntimeError):
        loss2.backward()


def test_AG19_detach_keeps_a_loss_out_of_a_model():
    model1, model2 = nn.Linear(2, 2), nn.Linear(2, 1)
    hidden = model1(mt.ones(1, 2))
    loss1 = hidden.pow(2).sum()
    alone = mt.autograd.grad(loss1, model1.weight, retain_graph=True)[0]
    summed = mt.autograd.grad(loss1 + model2(hidden).sum(), model1.weight, retain_graph=True)[0]
    (loss1 + model2(hidden.detach()).sum()).backward()
    assert not mt.allclose(summed, alone)
    assert mt.equal(model1.weight.grad, alone) and model2.weight.grad is not None


def test_AG20_without_retain_graph_the_other_loss_cannot_go_backward():
    *_, loss1, loss2 = _pair()
    *_, other, _ = _pair()
    loss1.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss2.backward()
    other.backward()


@pytest.mark.seed("GN07")
def test_AG21_a_step_between_two_backwards_is_caught():
    def losses():
        d, g = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), nn.Linear(2, 2)
        steps = mt.optim.SGD(d.parameters(), lr=0.1), mt.optim.SGD(g.parameters(), lr=0.1)
        score = d(g(mt.ones(4, 2)))
        return d, g, *steps, (score + 1).pow(2).mean(), (score - 1).pow(2).mean()

    _, _, d_step, _, d_loss, g_loss = losses()
    d_loss.backward(retain_graph=True)
    d_step.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        g_loss.backward()

    _, g, d_step, g_step, d_loss, g_loss = losses()
    d_loss.backward(retain_graph=True)
    g.zero_grad()
    g_loss.backward()
    d_step.step()
    g_step.step()


@pytest.mark.parametrize("cut, after_pq, after_w", [(True, None, 48), (False, 8, 56)])
def test_AG22_detach_keeps_one_branch_out(cut, after_pq, after_w):
    x = mt.tensor([1.0], requires_grad=True)
    z = 2 * x**2
    w = z**3
    p = z.detach() if cut else z
    q = mt.tensor([2.0], requires_grad=True)
    (p * q).backward(retain_graph=True)
    assert (None if x.grad is None else x.grad.item()) == after_pq
    w.backward()
    assert x.grad.item() == after_w


def test_AG23_detach_shares_storage():
    x = mt.ones(2, requires_grad=True)
    y = x.detach()
    assert not y.requires_grad and y is not x
    y[0] = 5
    assert x.tolist() == [5, 1]
    assert mt.detach(x).tolist() == [5, 1]


def test_AG24_clone_is_a_copy_in_the_graph():
    x = mt.ones(2, requires_grad=True)
    y = x.clone()
    assert y.requires_grad and not y.is_leaf
    with mt.no_grad():
        y[0] = 5
    assert x.tolist() == [1, 1]
    x.clone().sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_AG25_data_is_invisible_to_the_version_counter():
    x = mt.ones(2, requires_grad=True)
    y = x.exp()
    assert not x.data.requires_grad
    y.data.mul_(2)
    y.sum().backward()
    y = x.exp()
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    x.data = mt.zeros(2)
    assert x.tolist() == [0, 0] and x.requires_grad


def test_AG26_Variable_makes_a_tensor():
    x = mt.autograd.Variable(mt.ones(1), requires_grad=True)
    assert type(x) is mt.Tensor and x.requires_grad
    assert isinstance(mt.ones(1), mt.autograd.Variable)


@pytest.mark.seed("GN08")
def test_AG27_values_that_backward_needs_may_not_be_overwritten():
    def fails(change):
        x = mt.tensor([1.0, 2.0], requires_grad=True)
        b = x * 1
        out = change(b)
        with pytest.raises(RuntimeError, match="(?s)one of the variables needed for gradient computation has been modified"
                                               " by an inplace operation.*is at version 1; expected version 0"):  # fmt: skip
            out.sum().backward()

    def overwrite(result, target):
        target.add_(1)
        return result

    def of_output(name):
        def change(b):
            y = getattr(b, name)()
            z = y * 1
            return overwrite(z, y)

        return change

    for name in ("exp", "sigmoid", "tanh", "sqrt"):
        fails(of_output(name))
    fails(lambda b: overwrite(b * b, b))
    fails(lambda b: overwrite(b * b, b.view(2, 1)))
    fails(lambda b: overwrite(b * b, b[:1]))
    leaf = mt.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf.add_(1)

    net, criterion, label = nn.Linear(2, 1), nn.BCEWithLogitsLoss(), mt.ones(3, 1)
    output = net(mt.ones(3, 2))
    real = criterion(output, label)
    output = net(mt.zeros(3, 2))
    (real + criterion(output, label)).backward()


def test_AG28_backward_per_term_equals_backward_of_the_sum():
    x = mt.tensor([1.0, 2.0], requires_grad=True)
    (x**2).sum().backward()
    (x**3).sum().backward()
    apart = x.grad
    x.grad = None
    ((x**2).sum() + (x**3).sum()).backward()
    assert x.grad.tolist() == apart.tolist() == [5, 16]


def test_AG29_gradients_agree_with_finite_differences_and_chains_may_be_deep():
    x = mt.tensor([[0.3, -0.7], [1.2, 0.4]], dtype=mt.float64, requires_grad=True)
    functions = [lambda t: t.sigmoid() * t.exp(), lambda t: t.matmul(t.t()).tanh(), lambda t: mt.logsumexp(t, 1)]
    assert all(mt.autograd.gradcheck(f, (x,)) for f in functions)
    y = x
    for _ in range(3000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]
    del y


def test_AG30_view_of_a_tracked_tensor_is_tracked():
    y = mt.ones(2, 2, requires_grad=True).view(-1)
    assert y.requires_grad and not y.is_leaf


def test_AG31_only_leaves_collect_gradients():
    x = mt.ones(2, requires_grad=True)
    y, z = x * 2, x * 3
    z.retain_grad()
    (y + z).sum().backward()
    assert x.grad.tolist() == [5, 5] and z.grad.tolist() == [1, 1]
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    with pytest.raises(RuntimeError, match="floating point"):
        mt.tensor([1], requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point"):
        mt.tensor([1]).requires_grad_()


def test_AG32_a_misspelt_flag_does_not_turn_tracking_on():
    x = mt.ones(1)
    try:
        x.require_grad = True
    except AttributeError:
        pass
    assert not x.requires_grad
