"""Optimisers: options, state, and trajectories equal to PyTorch's."""

import itertools

import pytest

import mortice as mt
from mortice import optim

SETTINGS = [
    ("SGD", dict(lr=0.1, momentum=m, weight_decay=w, nesterov=n, maximize=x, dampening=d))
    for m, w, n, x, d in itertools.product((0, 0.9), (0, 0.01), (False, True), (False, True), (0, 0.3))
    if not n or (m and not d)
]
SETTINGS += [
    (name, dict(lr=0.1, weight_decay=w, amsgrad=a, maximize=x))
    for name, w, a, x in itertools.product(("Adam", "AdamW"), (0, 0.1), (False, True), (False, True))
]


def trajectory(t, optimizer, options, steps=20):
    """Run an optimiser on fixed gradients; the second parameter gets its first gradient later."""
    params = [t.tensor([[0.5, -1.0], [2.0, 0.0]], dtype=t.float64), t.tensor([1.0, 2.0, 3.0], dtype=t.float64)]
    for p in params:
        p.requires_grad = True
    made = optimizer(params, **options)
    for i in range(steps):
        for j, p in enumerate(params):
            if i >= 3 * j:
                p.grad = (p.detach() * 0.3 + (i % 5) * 0.1 - j).clone()
        made.step()
        made.zero_grad()
    return [p.tolist() for p in params], made.state_dict()


def flat(nested):
    return [v for item in nested for v in flat(item)] if isinstance(nested, list) else [nested]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), SETTINGS)
def test_a_trajectory_equals_pytorchs(name, options):
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    ours, our_state = trajectory(mt, getattr(optim, name), options)
    theirs, their_state = trajectory(torch, getattr(torch.optim, name), options)
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-12)
    assert our_state["param_groups"][0].keys() == their_state["param_groups"][0].keys()
    assert {k: sorted(v) for k, v in our_state["state"].items()} == {k: sorted(v) for k, v in their_state["state"].items()}


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_step_goes_downhill_and_resumes_from_its_state(name):
    def run(split):
        p = mt.tensor([3.0, -2.0], requires_grad=True)
        options = dict(lr=0.1, momentum=0.9) if name == "SGD" else dict(lr=0.1)
        made = getattr(optim, name)([p], **options)
        for i in range(10):
            if i == split:
                state = made.state_dict()
                made = getattr(optim, name)([p], **options)
                made.load_state_dict(state)
            made.zero_grad()
            (p * p).sum().backward()
            made.step()
        return p.tolist()

    assert run(None) == run(5)
    assert sum(v * v for v in run(None)) < 13


def test_parameters_keep_their_memory_and_count_the_write():
    p = mt.ones(3, requires_grad=True)
    alias = p.detach()
    y = (p * p).sum()
    p.grad = mt.ones(3)
    optim.SGD([p], lr=1.0).step()
    assert alias.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_parameters_without_gradient_stay():
    p, q = mt.ones(2, requires_grad=True), mt.ones(2, requires_grad=True)
    p.grad = mt.ones(2)
    optim.Adam([p, q]).step()
    assert q.tolist() == [1, 1] and p.tolist() != [1, 1]


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda p: optim.SGD([], lr=1), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD(p, lr=1), TypeError, "should be an iterable of Tensors or dicts"),
        (lambda p: optim.SGD([p * 2], lr=1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda p: optim.SGD([p], lr=1, nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda p: optim.Adam([{"params": p}, {"params": [p]}]), ValueError, "more than one parameter group"),
    ],
)
def test_bad_arguments_are_refused(make, kind, text):
    with pytest.raises(kind, match=text):
        make(mt.ones(2, requires_grad=True))


def test_groups_have_options_of_their_own():
    p, q = mt.ones(1, requires_grad=True), mt.ones(1, requires_grad=True)
    made = optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.0)
    for t in (p, q):
        t.grad = mt.ones(1)
    made.step()
    assert (p.item(), q.item()) == (1.0, 0.5)
    assert "Parameter Group 1" in repr(made)
