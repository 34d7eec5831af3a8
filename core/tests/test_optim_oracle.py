"""Optimisers and schedules beside PyTorch's: the same steps from the same state, which each hands to the other."""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle

import numpy as np
import pytest
from side_by_side import P, as_if_in, declared, outcome

import mortice

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")

pytestmark = pytest.mark.oracle
BOTH = (mortice, torch)


# ---- optimisers ----

OPTIONS = {
    "SGD": [
        dict(lr=0.1, momentum=m, weight_decay=w, nesterov=n, maximize=x, dampening=d)
        for m, w, n, x, d in itertools.product((0, 0.9), (0, 0.01), (False, True), (False, True), (0, 0.3))
        if not n or (m and not d)
    ],
    "Adam": [
        *[dict(lr=0.1, weight_decay=w, amsgrad=a, maximize=x)
          for w, a, x in itertools.product((0, 0.1), (False, True), (False, True))],
        dict(decoupled_weight_decay=True, weight_decay=0.1), dict(betas=(0.3, 0.5), eps=1e-2), dict(betas=[0.3, 0.5]),
        dict(foreach=True), dict(fused=True), dict(lr="tensor"),
    ],
    "AdamW": [dict(lr=0.1, amsgrad=a, maximize=x) for a, x in itertools.product((False, True), (False, True))],
    "ASGD": [dict(), dict(lr=0.1, lambd=0.1, alpha=0.5, t0=3, weight_decay=0.1), dict(maximize=True, t0=2.0)],
    "Adadelta": [dict(), dict(lr=0.5, rho=0.5, eps=1e-3, weight_decay=0.1), dict(maximize=True)],
    "Adafactor": [
        dict(), dict(lr=0.5, beta2_decay=-0.5, eps=(1e-3, 1e-2), d=2.0, weight_decay=0.1), dict(maximize=True),
    ],
    "Adagrad": [
        dict(), dict(lr=0.5, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.3, eps=1e-3),
        dict(maximize=True),
    ],
    "Adamax": [dict(), dict(lr=0.5, betas=(0.5, 0.6), eps=1e-3, weight_decay=0.1), dict(maximize=True)],
    "NAdam": [
        dict(), dict(lr=0.5, betas=(0.5, 0.6), eps=1e-3, weight_decay=0.1, momentum_decay=0.1), dict(maximize=True),
        dict(weight_decay=0.1, decoupled_weight_decay=True),
    ],
    "RAdam": [
        dict(), dict(lr=0.5, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1), dict(maximize=True),
        dict(weight_decay=0.1, decoupled_weight_decay=True),
    ],
    "RMSprop": [
        dict(), dict(alpha=0.5, momentum=0.9, centered=True, weight_decay=0.1, maximize=True), dict(alpha=0.9, centered=True),
        dict(alpha=0.9, momentum=0.5, lr="tensor"),
    ],
    "Rprop": [dict(), dict(lr=0.5, etas=(0.3, 1.5), step_sizes=(0.1, 1.0)), dict(maximize=True)],
    "Muon": [
        dict(lr=0.1), dict(lr=0.1, nesterov=False, momentum=0.5, weight_decay=0.0, ns_steps=3),
        dict(lr=0.1, adjust_lr_fn="match_rms_adamw"),
    ],
}  # fmt: skip
NAMES = [*OPTIONS, "LBFGS", "SparseAdam"]
BOUND = {"float64": 1e-11, "complex128": 1e-11, "float32": 1e-5}
CASES = [
    (name, options, dtype)
    for name, several in OPTIONS.items() for options in several for dtype in BOUND
    if dtype != "complex128" or not (name in ("Muon", "Adafactor") or "fused" in options)  # PyTorch refuses these
]  # fmt: skip
MUON = 5e-3  # it rounds to bfloat16 on the way, here and there in another order


def draw(rng, shape, dtype):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if dtype.startswith("complex") else real


def given(t, options):
    """Return options with a learning rate that is a tensor, where that is asked for."""
    lr = {"lr": t.tensor(0.125)} if options.get("lr") == "tensor" else {}
    return {**options, **lr}


def parameters(t, name, dtype):
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5, 2)] if name == "Muon" else [(3, 4), (5, 2), (4,), ()]
    params = [t.tensor(draw(rng, s, dtype).tolist(), dtype=getattr(t, dtype)) for s in shapes]
    for p in params:
        p.requires_grad = True
    return params


def take_steps(t, optimizer, dtype, start, stop):
    """Step by gradients of number and value; every other parameter gets its first one later."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for i in range(start, stop):
        rng = np.random.default_rng(i)
        for j, p in enumerate(params):
            g = t.tensor(draw(rng, tuple(p.shape), dtype).tolist(), dtype=p.dtype)
            if i >= 3 * (j % 2):
                p.grad = g + p.detach() * 0.1
        optimizer.step()


def array(tensor):
    return np.array(tensor.detach().tolist())


def agree(ours, theirs, bound):
    """Compare parameters, and state by name, kind, dtype, shape and value."""
    for a, b in zip(*[[p for g in o.param_groups for p in g["params"]] for o in (ours, theirs)]):
        np.testing.assert_allclose(array(a), array(b), rtol=bound, atol=bound)
    a, b = ours.state_dict(), theirs.state_dict()
    assert list(a["state"]) == list(b["state"])
    for i in a["state"]:
        assert list(a["state"][i]) == list(b["state"][i])
        for name, value in a["state"][i].items():
            other = b["state"][i][name]
            assert str(value.dtype).split(".")[-1] == str(other.dtype).split(".")[-1], name
            np.testing.assert_allclose(array(value), array(other), rtol=bound, atol=bound, err_msg=name)


@pytest.mark.parametrize(("name", "options", "dtype"), CASES)
def test_steps_and_state_equal_torchs_and_each_goes_on_from_the_others_state(name, options, dtype):
    bound = MUON if name == "Muon" else BOUND[dtype]
    if "fused" in options or options.get("lr") == "tensor":
        bound = max(bound, 1e-6)  # PyTorch computes with numbers of float32 then
    made = []
    for t in BOTH:
        made.append(getattr(t.optim, name)(parameters(t, name, dtype), **given(t, options)))
        take_steps(t, made[-1], dtype, 0, 5)
    agree(*made, bound)
    # Both go on from what the other saved: ten steps more.
    saved = [(o.state_dict(), [p.detach() for p in o.param_groups[0]["params"]]) for o in made]
    saved = [as_if_in(t, pair) for t, pair in zip(BOTH, saved[::-1])]
    later = []
    for t, (state, values) in zip(BOTH, saved):
        later.append(getattr(t.optim, name)([v.requires_grad_() for v in values], **given(t, options)))
        later[-1].load_state_dict(state)
        take_steps(t, later[-1], dtype, 5, 15)
    agree(*later, bound)


def rosenbrock(t):
    """Return parameters and a function of them that is hard to descend."""
    p = t.tensor([-1.2, 1.0, 0.5, 2.0], dtype=t.float64, requires_grad=True)
    q = t.tensor([[0.5, -0.3]], dtype=t.complex128, requires_grad=True)
    unused = t.ones(2, dtype=t.float64, requires_grad=True)

    def loss():
        valley = (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()
        return valley + ((q * t.tensor([1.0, 3.0], dtype=t.float64) - 1).abs() ** 2).sum()

    return [p, q, unused], loss


@pytest.mark.parametrize(
    "options",
    [
        dict(), dict(lr=0.5, max_iter=4, history_size=2), dict(max_iter=1, lr=0.01), dict(line_search_fn="strong_wolfe"),
        dict(line_search_fn="strong_wolfe", max_iter=5, max_eval=6), dict(line_search_fn="strong_wolfe", tolerance_grad=1e-2),
    ],
)  # fmt: skip
def test_lbfgs_takes_torchs_path(options):
    seen = []
    for t in BOTH:
        params, loss = rosenbrock(t)
        optimizer = t.optim.LBFGS(params, **options)

        def closure(optimizer=optimizer, loss=loss):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        losses = [optimizer.step(closure).item() for _ in range(10)]
        (state,) = optimizer.state_dict()["state"].values()
        seen.append((losses, [array(p) for p in params], state))
    (losses, params, state), (other_losses, other_params, other_state) = seen
    np.testing.assert_allclose(losses, other_losses, rtol=1e-6, atol=1e-9)
    for a, b in zip(params, other_params):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    assert set(state) == set(other_state)
    for name in ("n_iter", "func_evals"):
        assert state[name] == other_state[name]
    for name in ("old_dirs", "old_stps", "ro", "al"):
        assert len(state[name]) == len(other_state[name])


@pytest.mark.parametrize("options", [dict(max_iter=4, max_eval=4), dict(lr=1e-3, max_iter=8, max_eval=5), dict(lr=0.3)])
def test_a_line_search_probes_torchs_points_to_the_last_bit(options):
    def probed(t):
        p = t.tensor([-1.7], requires_grad=True)  # one number: there is no order of a sum to differ by
        optimizer = t.optim.LBFGS([p], line_search_fn="strong_wolfe", **options)
        seen = []

        def closure():
            optimizer.zero_grad()
            loss = (p * p * p * p * 0.1 - p * p + p * 0.3).sum()
            loss.backward()
            seen.append((p.item(), loss.item()))
            return loss

        for _ in range(4):
            optimizer.step(closure)
        return seen

    ours, theirs = map(probed, BOTH)
    assert ours == theirs


def test_lbfgs_goes_on_from_torchs_state():
    (ours, loss), (theirs, their_loss) = rosenbrock(mortice), rosenbrock(torch)
    first, second = torch.optim.LBFGS(theirs, max_iter=3), mortice.optim.LBFGS(ours, max_iter=3)

    def closure_of(optimizer, loss):
        def closure():
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        return closure

    closure = closure_of(first, their_loss)
    first.step(closure)
    first.step(closure)
    with mortice.no_grad():
        for p, q in zip(ours, theirs):
            p.copy_(mortice.tensor(q.tolist(), dtype=p.dtype))
    second.load_state_dict(as_if_in(mortice, first.state_dict()))
    for _ in range(3):
        first.step(closure)
        second.step(closure_of(second, loss))
    np.testing.assert_allclose(array(ours[0]), array(theirs[0]), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_constructor_groups_and_repr_are_torchs(name):
    assert declared(getattr(mortice.optim, name)) == declared(getattr(torch.optim, name))
    ours, theirs = [getattr(t.optim, name)(parameters(t, "Muon", "float32")) for t in BOTH]
    groups = [{k: v for k, v in o.param_groups[0].items() if k != "params"} for o in (ours, theirs)]
    assert groups[0] == groups[1]
    assert repr(ours) == repr(theirs)
    assert ours.state_dict()["param_groups"] == theirs.state_dict()["param_groups"]


BAD_OPTIONS = [
    dict(lr=-1), dict(eps=-1), dict(eps=(-1, 1e-3)), dict(eps=(None, -1)), dict(weight_decay=-1), dict(betas=(1.0, 0.9)),
    dict(betas=(0.9, 1.0)), dict(momentum=-1), dict(alpha=-1), dict(rho=2), dict(lr_decay=-1),
    dict(initial_accumulator_value=-1), dict(momentum_decay=-1), dict(etas=(1.5, 1.2)), dict(d=0.5), dict(beta2_decay=0.1),
    dict(nesterov=True), dict(adjust_lr_fn="x"), dict(fused=True, foreach=True), dict(fused=True, differentiable=True),
    dict(lr=-1, eps=-1), dict(alpha=-1, lr=-1),
]  # fmt: skip


def refusable():
    """Yield each optimiser with the bad options that it has."""
    for name, options in itertools.product(NAMES, BAD_OPTIONS):
        known = inspect.signature(getattr(torch.optim, name).__init__).parameters
        pair = isinstance(known["eps"].default, tuple) if "eps" in known else False
        if set(options) <= set(known) and isinstance(options.get("eps"), tuple) == (pair and "eps" in options):
            yield name, options


@pytest.mark.parametrize(("name", "options"), list(refusable()), ids=str)
def test_bad_options_are_refused_as_torch_refuses_them(name, options):
    ours, theirs = [outcome(t, lambda t: getattr(t.optim, name)([P(t, 2, 2)], **options)) for t in BOTH]
    assert ours == theirs


@pytest.mark.parametrize("name", [n for n in NAMES if "fused" in inspect.signature(getattr(torch.optim, n).__init__).parameters])
@pytest.mark.parametrize("place", [dict(dtype="complex64"), dict(device="meta"), dict(dtype="float16"), dict(dtype="float64")], ids=str)
def test_fused_steps_refuse_the_parameters_that_torch_refuses(name, place):
    said = []
    for t in BOTH:
        p = t.nn.Parameter(t.zeros(2, device=place.get("device", "cpu"), dtype=getattr(t, place.get("dtype", "float32"))))
        p.grad = t.zeros_like(p)
        try:
            said.append(getattr(t.optim, name)([p], fused=True).step())
        except RuntimeError as error:
            said.append(str(error)[:75])
    assert said[0] == said[1]


def loaded(t, state):
    t.optim.Adam([P(t)]).load_state_dict(state)


def stepped(t, optimizer, *args):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = t.ones_like(p)
    optimizer.step(*args)


MISUSE = {
    "lr of two elements": lambda t: t.optim.Adagrad([P(t)], lr=t.tensor([0.1, 0.2])),
    "lr tensor with foreach": lambda t: t.optim.Adam([P(t)], lr=t.tensor(0.1), foreach=True),
    "beta tensor with foreach": lambda t: t.optim.Adam([P(t)], betas=(t.tensor(0.1), t.tensor(0.1)), foreach=True),
    "one beta a tensor": lambda t: t.optim.Adam([P(t)], betas=(t.tensor(0.1), 0.1)),
    "no parameters": lambda t: t.optim.SGD([]),
    "an empty group": lambda t: t.optim.SGD([{"params": []}]),
    "strings": lambda t: t.optim.SGD(["a"]),
    "a dict": lambda t: t.optim.SGD({"a": P(t)}),
    "a group that is a set": lambda t: t.optim.SGD([{"params": {P(t)}}]),
    "a group without parameters": lambda t: t.optim.SGD([{"lr": 0.1}]),
    "a group that is a list": lambda t: t.optim.SGD([P(t)]).add_param_group([P(t)]),
    "a parameter in two groups": lambda t: (lambda p: t.optim.SGD([{"params": p}, {"params": [p]}]))(P(t)),
    "no leaf": lambda t: t.optim.SGD([P(t) * 2]),
    "no leaf, differentiable": lambda t: t.optim.SGD([P(t) * 2], differentiable=True),
    "some names missing": lambda t: t.optim.SGD([("w", P(t)), P(t)]),
    "the first name missing": lambda t: t.optim.SGD([P(t), ("w", P(t))]),
    "a group without names": lambda t: t.optim.SGD([("w", P(t))]).add_param_group({"params": [P(t)]}),
    "a group with names": lambda t: t.optim.SGD([P(t)]).add_param_group({"params": [("w", P(t))]}),
    "a vector for Muon": lambda t: t.optim.Muon([t.ones(2, 2), t.ones(3, 1, 1)][:1] + [t.ones(2, 2)]),
    "complex for Muon": lambda t: stepped(t, t.optim.Muon([P(t, 2, 2, dtype=t.complex64)])),
    "many steps for Muon": lambda t: stepped(t, t.optim.Muon([P(t, 2, 2)], ns_steps=100)),
    "two coefficients for Muon": lambda t: stepped(t, t.optim.Muon([P(t, 2, 2)], ns_coefficients=(1, 2))),
    "complex for Adafactor": lambda t: stepped(t, t.optim.Adafactor([P(t, 2, 2, dtype=t.complex64)])),
    "dense for SparseAdam": lambda t: stepped(t, t.optim.SparseAdam([P(t)])),
    "complex for SparseAdam": lambda t: t.optim.SparseAdam([P(t, 2, 2, dtype=t.complex64)]),
    "sparse parameters for SparseAdam": lambda t: t.optim.SparseAdam([{"params": [P(t), P(t).to_sparse().detach()]}]),
    "no eps for SparseAdam": lambda t: t.optim.SparseAdam([P(t)], eps=0.0),
    "SparseAdam without gradient": lambda t: t.optim.SparseAdam([P(t)]).step(),
    "groups for LBFGS": lambda t: t.optim.LBFGS([{"params": [P(t)]}, {"params": [P(t)]}]),
    "no closure for LBFGS": lambda t: t.optim.LBFGS([P(t)]).step(),
    "another search for LBFGS": lambda t: t.optim.LBFGS([P(t)], line_search_fn="x").step(
        lambda: (lambda p: (p.sum().backward(), p.sum())[1])(P(t))
    ),
    "a leaf, differentiable": lambda t: stepped(t, t.optim.SGD([P(t)], differentiable=True)),
    "no step": lambda t: t.optim.Optimizer([P(t)], {}).step(),
    "too few groups in the state": lambda t: loaded(t, {"state": {}, "param_groups": []}),
    "a larger group in the state": lambda t: loaded(t, {"state": {}, "param_groups": [{"params": [0, 1]}]}),
}


@pytest.mark.parametrize("what", MISUSE)
def test_misuse_is_refused_as_torch_refuses_it(what):
    assert outcome(mortice, MISUSE[what]) == outcome(torch, MISUSE[what])


def test_a_group_is_the_dict_that_was_given():
    def body(m):
        first, second = {"params": iter([m.nn.Parameter(m.ones(2))]), "lr": 0.5}, {"params": m.nn.Parameter(m.ones(2))}
        optimizer = m.optim.SGD([first], lr=0.1)
        optimizer.add_param_group(second)
        first["lr"] = 0.25
        sum(p.sum() for g in (first, second) for p in g["params"]).backward()
        optimizer.step()
        same = [mine is given for mine, given in zip(optimizer.param_groups, (first, second))]
        return same, list(second), [g["params"][0].tolist() for g in (first, second)]

    assert body(mortice) == body(torch)


def test_a_parameter_twice_in_a_group_warns():
    twice = lambda t: (lambda p: t.optim.SGD([p, p]))(P(t))
    assert outcome(mortice, twice)[1] == outcome(torch, twice)[1] == [UserWarning]


@pytest.mark.parametrize("name", [n for n in OPTIONS if "differentiable" in inspect.signature(getattr(torch.optim, n)).parameters])
def test_a_differentiable_step_has_torchs_gradients(name):
    found = []
    for t in BOTH:
        w = t.tensor([0.5, -1.5], dtype=t.float64, requires_grad=True)
        p = w.clone()
        optimizer = getattr(t.optim, name)([p], differentiable=True)
        for i in range(1 if name in ("Adamax", "Rprop") else 3):  # which PyTorch cannot go back through
            p.grad = w**2 + 0.1 * i
            optimizer.step()
        (p**2).sum().backward()
        found.append(array(w.grad))
    np.testing.assert_allclose(*found, rtol=1e-7)


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_a_differentiable_step_is_recorded_and_refuses_a_leaf_where_gradients_are_off_as_torchs(name):
    found = []
    for t in BOTH:
        w = t.tensor([0.5, -1.5], dtype=t.float64, requires_grad=True)
        p = w.clone()
        with t.no_grad():
            p.grad = 2 * w
            getattr(t.optim, name)([p], differentiable=True).step()
        found.append(array(t.autograd.grad((p**2).sum(), w)[0]))
        w.grad = t.ones_like(w)
        with t.no_grad(), pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
            getattr(t.optim, name)([w], differentiable=True).step()
    np.testing.assert_allclose(*found, rtol=1e-7)


@pytest.mark.parametrize("name", ["Adam", "NAdam", "RAdam", "SGD"])
def test_a_differentiable_step_has_the_gradient_of_its_learning_rate(name):
    found = []
    for t in BOTH:
        lr = t.tensor(0.1, dtype=t.float64, requires_grad=True)
        p = t.tensor([0.5, -1.5], dtype=t.float64, requires_grad=True).clone()
        p.grad = t.tensor([0.3, 0.4], dtype=t.float64)
        getattr(t.optim, name)([p], lr=lr, differentiable=True).step()
        (p**2).sum().backward()
        found.append(lr.grad.item())
    assert found[0] == pytest.approx(found[1], rel=1e-4)  # PyTorch corrects the bias in float32


def test_hooks_see_what_torchs_see():
    def trace(t):
        seen = []
        p = P(t)
        o = t.optim.SGD([p], lr=0.5)
        o.register_step_pre_hook(lambda opt, args, kwargs: seen.append(("pre", opt is o, len(args), list(kwargs))))
        o.register_step_post_hook(lambda opt, args, kwargs: seen.append(("post", opt is o, len(args), list(kwargs))))
        o.register_step_pre_hook(lambda opt, args, kwargs: (args, {"closure": lambda: seen.append("closure")}))
        o.register_state_dict_pre_hook(lambda opt: seen.append("saving"))
        o.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
        o.register_state_dict_post_hook(lambda opt, state: seen.append("first"), prepend=True)
        o.register_load_state_dict_pre_hook(lambda opt, state: seen.append(sorted(state)))
        o.register_load_state_dict_post_hook(lambda opt: seen.append("loaded"))
        p.grad = t.ones(2)
        o.step()
        o.step(closure=None)
        o.load_state_dict(o.state_dict())
        return seen, p.tolist()

    assert trace(mortice) == trace(torch)


def test_a_state_of_older_kinds_and_of_fewer_options_loads():
    for name in ("Adam", "AdamW", "NAdam", "RMSprop"):
        results = []
        for t in BOTH:
            o = getattr(t.optim, name)([P(t)])
            stepped(t, o)
            state = copy.deepcopy(o.state_dict())
            state["state"][0]["step"] = 4
            for option in ("maximize", "foreach", "differentiable", "capturable"):
                state["param_groups"][0].pop(option, None)
            o.load_state_dict(state)
            stepped(t, o)
            results.append((array(o.param_groups[0]["params"][0]), o.state_dict()["state"][0]["step"].item()))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
        assert results[0][1] == results[1][1]


def test_pickled_optimizers_go_on():
    o = mortice.optim.Adam([P(mortice)])
    stepped(mortice, o)
    for again in (pickle.loads(pickle.dumps(o)), copy.deepcopy(o)):
        stepped(mortice, again)
        assert again.state_dict()["state"][0]["step"].item() == 2
        assert again.param_groups[0]["params"][0] is not o.param_groups[0]["params"][0]
