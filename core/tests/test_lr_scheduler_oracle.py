"""Schedules and averages of weights beside PyTorch's: the same rates for fifty steps, and states that carry over."""

from __future__ import annotations

import copy
import inspect
import math
import warnings

import numpy as np
import pytest
from side_by_side import P, as_if_in, declared, outcome

import mortice

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")

pytestmark = pytest.mark.oracle
BOTH = (mortice, torch)


SCHEDULES = {
    "lambda": lambda L, o: L.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (e + 1)]),
    "multiplicative": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.95 if e % 2 else 1.01),
    "step": lambda L, o: L.StepLR(o, 7, 0.5),
    "multistep": lambda L, o: L.MultiStepLR(o, [3, 10, 10, 30], 0.3),
    "constant": lambda L, o: L.ConstantLR(o, 0.3, 8),
    "constant-1": lambda L, o: L.ConstantLR(o, 0.5, 1),
    "constant-0": lambda L, o: L.ConstantLR(o, 0.5, 0),
    "linear": lambda L, o: L.LinearLR(o, 0.2, 0.7, 20),
    "linear-default": lambda L, o: L.LinearLR(o),
    "exponential": lambda L, o: L.ExponentialLR(o, 0.93),
    "polynomial": lambda L, o: L.PolynomialLR(o, 30, 2.0),
    "polynomial-default": lambda L, o: L.PolynomialLR(o),
    "cosine": lambda L, o: L.CosineAnnealingLR(o, 7, 0.01),
    "cosine-long": lambda L, o: L.CosineAnnealingLR(o, 100),
    "cosine-1": lambda L, o: L.CosineAnnealingLR(o, 1, 0.001),
    "restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "restarts-equal": lambda L, o: L.CosineAnnealingWarmRestarts(o, 6),
    "cyclic": lambda L, o: L.CyclicLR(o, 0.01, 0.3, 5, 8),
    "cyclic-triangular2": lambda L, o: L.CyclicLR(o, [0.01, 0.02], [0.3, 0.5], 4, mode="triangular2", base_momentum=0.5),
    "cyclic-exp": lambda L, o: L.CyclicLR(o, 0.01, 0.3, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "cyclic-own": lambda L, o: L.CyclicLR(o, 0.01, 0.3, 4, scale_fn=lambda x: 0.9**x, scale_mode="iterations"),
    "cyclic-own-cycle": lambda L, o: L.CyclicLR(o, 0.01, 0.3, 4, scale_fn=lambda x: 0.9**x),
    "onecycle": lambda L, o: L.OneCycleLR(o, 0.9, 60),
    "onecycle-linear": lambda L, o: L.OneCycleLR(
        o, [0.9, 0.7], epochs=6, steps_per_epoch=10, pct_start=0.25, anneal_strategy="linear", three_phase=True,
        base_momentum=0.6, div_factor=10.0, final_div_factor=100.0,
    ),
    "onecycle-no-momentum": lambda L, o: L.OneCycleLR(o, 0.9, 51, pct_start=0.1, cycle_momentum=False),
    "chained": lambda L, o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 6), L.ExponentialLR(o, 0.9)]),
    "chained-3": lambda L, o: L.ChainedScheduler(
        [L.StepLR(o, 4), L.CosineAnnealingLR(o, 9), L.LinearLR(o, 0.5, 1.0, 10)], optimizer=o
    ),
    "sequential": lambda L, o: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 5), L.CosineAnnealingLR(o, 20, 0.001), L.ExponentialLR(o, 0.9)], [5, 30]
    ),
    "sequential-4": lambda L, o: L.SequentialLR(
        o, [L.ConstantLR(o, 0.1, 3), L.StepLR(o, 3, 0.5), L.MultiplicativeLR(o, lambda e: 0.9), L.PolynomialLR(o, 10)],
        [4, 12, 25],
    ),
    "sequential-restarts": lambda L, o: L.SequentialLR(
        o,
        [L.ConstantLR(o, 0.1, 3), L.CosineAnnealingWarmRestarts(o, 4), L.LambdaLR(o, lambda e: 1 / (1 + e)),
         L.MultiStepLR(o, [2, 5])],
        [4, 12, 25],
    ),
    "sequential-of-chained": lambda L, o: L.SequentialLR(
        o, [L.ChainedScheduler([L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.8)]), L.ExponentialLR(o, 0.9)], [8]
    ),
    "sequential-of-sequential": lambda L, o: L.SequentialLR(
        o, [L.SequentialLR(o, [L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.8)], [4]), L.ExponentialLR(o, 0.9)], [10]
    ),
    "sequential-cyclic": lambda L, o: L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 5), L.CyclicLR(o, 0.01, 0.3, 5)], [5]),
    "sequential-onecycle": lambda L, o: L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 5), L.OneCycleLR(o, 0.5, 100)], [5]),
    "swa": lambda L, o: swa(L).SWALR(o, [0.05, 0.7]),
    "swa-linear": lambda L, o: swa(L).SWALR(o, 0.05, anneal_epochs=5, anneal_strategy="linear"),
    "swa-at-once": lambda L, o: swa(L).SWALR(o, 0.05, anneal_epochs=0),
}  # fmt: skip
CHAINABLE = [name for name in SCHEDULES if name.split("-")[0] not in ("chained", "sequential")]
METRICS = [1.0, 0.9, 0.95, 0.89, 0.9, 0.9, 0.9, 0.85, 0.85, 0.85, 0.85, *[0.3] * 5, 0.31, 0.32, 0.33, 0.4]
METRICS += [0.2 + 0.01 * (i % 5) for i in range(30)]
PLATEAUS = [
    dict(patience=2), dict(patience=0, threshold=0.1, eps=1e-3, min_lr=0.002), dict(mode="max", patience=1),
    dict(patience=1, factor=0.5, cooldown=3, mode="max", threshold_mode="abs", threshold=0.05, min_lr=[0.01, 0.2]),
]  # fmt: skip


def swa(L):
    return torch.optim.swa_utils if L is torch.optim.lr_scheduler else mortice.optim.swa_utils


def scheduled(t, name="SGD", tensor=False):
    """Return an optimiser of two groups."""
    rates = [t.tensor(r, dtype=t.float64) if tensor else r for r in (0.1, 0.5)]
    options = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(t.optim, name)([{"params": [P(t)], "lr": r} for r in rates], lr=0.1, **options)


def plain(value):
    """Return a state without tensors and parameters."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "params"}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    return value.item() if hasattr(value, "item") else value


def alike(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-11, abs_tol=1e-15)
    return a == b


def followed(t, make, optimizer="SGD", tensor=False, steps=50, epochs=None, early=False, last=None):
    """Follow a schedule; return rates and groups at each step, the state after, what was raised, what was warned of."""
    o = scheduled(t, optimizer, tensor)
    if last is not None:
        for group in o.param_groups:
            group["initial_lr"] = group["lr"] * 2
    seen, raised = [], None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            schedule = make(t.optim.lr_scheduler, o)
            for i in range(steps):
                if not early:
                    o.step()
                schedule.step(*(() if epochs is None else (epochs(i),)))
                seen.append(plain((schedule.get_last_lr(), o.param_groups)))
            seen.append(plain(schedule.state_dict()))
        except Exception as error:
            raised = type(error)
    return seen, raised, [(w.category, str(w.message)[:50]) for w in warned]


def same_way(make, **options):
    (ours, *what), (theirs, *their_what) = [followed(t, make, **options) for t in BOTH]
    assert what == their_what
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert alike(a, b), (i, a, b)


@pytest.mark.parametrize("tensor", [False, True], ids=["number", "tensor"])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_fifty_steps_equal_torchs(name, optimizer, tensor):
    same_way(SCHEDULES[name], optimizer=optimizer, tensor=tensor)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_step_before_the_optimizers_warns_as_in_torch(name):
    same_way(SCHEDULES[name], early=True, steps=4)


@pytest.mark.parametrize("name", CHAINABLE)
def test_jumps_to_an_epoch_equal_torchs(name):
    same_way(SCHEDULES[name], epochs=lambda i: i // 2 * 3, steps=8)


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_plateaus_equal_torchs(options, sign):
    for tensor in (False, True):
        make = lambda L, o: L.ReduceLROnPlateau(o, **options)
        same_way(make, epochs=lambda i: sign * METRICS[i], tensor=tensor)


RESUMED = {
    "StepLR": dict(step_size=3), "ExponentialLR": dict(gamma=0.9), "CosineAnnealingLR": dict(T_max=6), "LinearLR": {},
    "ConstantLR": {}, "PolynomialLR": {}, "MultiStepLR": dict(milestones=[2, 7]), "LambdaLR": dict(lr_lambda=lambda e: 0.9**e),
    "MultiplicativeLR": dict(lr_lambda=lambda e: 0.9), "CosineAnnealingWarmRestarts": dict(T_0=3, T_mult=2),
    "CyclicLR": dict(base_lr=0.1, max_lr=0.4), "OneCycleLR": dict(max_lr=0.3, total_steps=30),
}  # fmt: skip


@pytest.mark.parametrize("last", [0, 3, 5, 8])
@pytest.mark.parametrize("name", RESUMED)
def test_a_schedule_begun_at_an_epoch_equals_torchs(name, last):
    make = lambda L, o: getattr(L, name)(o, last_epoch=last, **RESUMED[name])
    same_way(make, last=last, steps=12)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_from_torchs_state_and_back(name):
    for here, there in (BOTH, BOTH[::-1]):
        optimizers, schedules = [], []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for t in (there, here):
                optimizers.append(scheduled(t))
                schedules.append(SCHEDULES[name](t.optim.lr_scheduler, optimizers[-1]))
            for _ in range(11):
                schedules[0].step()
            optimizers[1].load_state_dict(as_if_in(here, optimizers[0].state_dict()))
            schedules[1].load_state_dict(copy.deepcopy(schedules[0].state_dict()))
            for _ in range(20):
                rates = []
                for schedule in schedules:
                    schedule.step()
                    rates.append(plain(schedule.get_last_lr()))
                assert alike(*rates)


SCHEDULE_MISUSE = {
    "no optimizer": lambda t, L: L.StepLR(3, 2),
    "no optimizer, cyclic": lambda t, L: L.CyclicLR(3, 0.1, 0.2),
    "resumed without initial_lr": lambda t, L: L.StepLR(scheduled(t), 2, last_epoch=3),
    "three lambdas": lambda t, L: L.LambdaLR(scheduled(t), [abs] * 3),
    "three factors": lambda t, L: L.MultiplicativeLR(scheduled(t), [abs] * 3),
    "no function": lambda t, L: L.MultiplicativeLR(scheduled(t), 3),
    "factor 2": lambda t, L: L.ConstantLR(scheduled(t), factor=2),
    "start 0": lambda t, L: L.LinearLR(scheduled(t), start_factor=0),
    "end 2": lambda t, L: L.LinearLR(scheduled(t), end_factor=2),
    "T_0 0": lambda t, L: L.CosineAnnealingWarmRestarts(scheduled(t), 0),
    "T_0 2.5": lambda t, L: L.CosineAnnealingWarmRestarts(scheduled(t), 2.5),
    "T_mult 0": lambda t, L: L.CosineAnnealingWarmRestarts(scheduled(t), 2, 0),
    "eta_min a": lambda t, L: L.CosineAnnealingWarmRestarts(scheduled(t), 2, eta_min="a"),
    "restart at -1": lambda t, L: L.CosineAnnealingWarmRestarts(scheduled(t), 2).step(-1),
    "cyclic without momentum": lambda t, L: L.CyclicLR(t.optim.Rprop([P(t)]), 0.1, 0.5),
    "cyclic mode": lambda t, L: L.CyclicLR(scheduled(t), 0.1, 0.5, mode="x"),
    "cyclic lengths": lambda t, L: L.CyclicLR(scheduled(t), [0.1, 0.2, 0.3], 0.5),
    "cyclic max lengths": lambda t, L: L.CyclicLR(scheduled(t), 0.2, [0.5]),
    "onecycle without length": lambda t, L: L.OneCycleLR(scheduled(t), 0.5),
    "onecycle epochs only": lambda t, L: L.OneCycleLR(scheduled(t), 0.5, epochs=3),
    "onecycle -1": lambda t, L: L.OneCycleLR(scheduled(t), 0.5, -1),
    "onecycle 2.5": lambda t, L: L.OneCycleLR(scheduled(t), 0.5, 2.5),
    "onecycle no epochs": lambda t, L: L.OneCycleLR(scheduled(t), 0.5, epochs=0, steps_per_epoch=2),
    "onecycle no steps": lambda t, L: L.OneCycleLR(scheduled(t), 0.5, epochs=2, steps_per_epoch=0),
    "onecycle share": lambda t, L: L.OneCycleLR(scheduled(t), 0.5, 10, pct_start=2),
    "onecycle strategy": lambda t, L: L.OneCycleLR(scheduled(t), 0.5, 10, anneal_strategy="x"),
    "onecycle without momentum": lambda t, L: L.OneCycleLR(t.optim.Rprop([P(t)]), 0.5, 10),
    "onecycle lengths": lambda t, L: L.OneCycleLR(scheduled(t), [0.5], 10),
    "onecycle over": lambda t, L: [L.OneCycleLR(scheduled(t), 0.5, 3)._update_lr() for _ in range(1)],
    "plateau factor": lambda t, L: L.ReduceLROnPlateau(scheduled(t), factor=1.0),
    "plateau no optimizer": lambda t, L: L.ReduceLROnPlateau(3),
    "plateau mode": lambda t, L: L.ReduceLROnPlateau(scheduled(t), mode="x"),
    "plateau threshold": lambda t, L: L.ReduceLROnPlateau(scheduled(t), threshold_mode="x"),
    "plateau lengths": lambda t, L: L.ReduceLROnPlateau(scheduled(t), min_lr=[1]),
    "plateau epoch": lambda t, L: L.ReduceLROnPlateau(scheduled(t)).step(1.0, 3),
    "chained none": lambda t, L: L.ChainedScheduler([]),
    "chained plateau": lambda t, L: L.ChainedScheduler([L.ReduceLROnPlateau(scheduled(t))]),
    "chained two": lambda t, L: L.ChainedScheduler([L.ConstantLR(scheduled(t)), L.ConstantLR(scheduled(t))]),
    "chained other": lambda t, L: L.ChainedScheduler([L.ConstantLR(scheduled(t))], 3),
    "sequential none": lambda t, L: L.SequentialLR(scheduled(t), [], []),
    "sequential 3": lambda t, L: L.SequentialLR(scheduled(t), [3], []),
    "sequential plateau": lambda t, L: (lambda o: L.SequentialLR(o, [L.ReduceLROnPlateau(o)], []))(scheduled(t)),
    "sequential two": lambda t, L: L.SequentialLR(scheduled(t), [L.ConstantLR(scheduled(t))], []),
    "sequential lengths": lambda t, L: (lambda o: L.SequentialLR(o, [L.ConstantLR(o)], [1]))(scheduled(t)),
    "get_lr outside": lambda t, L: L.ExponentialLR(scheduled(t), 0.5).get_lr(),
    "swa strategy": lambda t, L: swa(L).SWALR(scheduled(t), 0.1, anneal_strategy="x"),
    "swa epochs": lambda t, L: swa(L).SWALR(scheduled(t), 0.1, anneal_epochs=-1),
    "swa lengths": lambda t, L: swa(L).SWALR(scheduled(t), [0.1]),
    "average of two": lambda t, L: swa(L).AveragedModel(t.nn.Linear(1, 1), avg_fn=abs, multi_avg_fn=abs),
    "decay": lambda t, L: swa(L).get_ema_avg_fn(2),
}


@pytest.mark.parametrize("what", SCHEDULE_MISUSE)
def test_misuse_of_schedules_is_refused_as_torch_refuses_it(what):
    (ours, warned), (theirs, their_warned) = [
        outcome(t, lambda t: SCHEDULE_MISUSE[what](t, t.optim.lr_scheduler)) for t in BOTH
    ]
    assert warned == their_warned
    if what == "resumed without initial_lr":  # its advice is our own
        ours, theirs = [(kind, text[:90]) for kind, text in (ours, theirs)]
    assert ours == theirs


def test_schedules_and_averages_are_declared_as_in_torch():
    for name in (*torch.optim.lr_scheduler.__all__, "_LRScheduler"):
        assert declared(getattr(mortice.optim.lr_scheduler, name)) == declared(getattr(torch.optim.lr_scheduler, name))
    assert set(mortice.optim.lr_scheduler.__all__) == set(torch.optim.lr_scheduler.__all__)
    for name in torch.optim.swa_utils.__all__:
        ours, theirs = [getattr(m, name) for m in (mortice.optim.swa_utils, torch.optim.swa_utils)]
        assert [p[::2] for p in declared(ours)] == [p[::2] for p in declared(theirs)] if inspect.isclass(ours) else (
            list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
        )


def averaged(t, buffers, choose):
    utils = t.optim.swa_utils
    model = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.BatchNorm1d(2))
    with t.no_grad():
        for p in model.parameters():
            p.fill_(0.3)
    average = utils.AveragedModel(model, use_buffers=buffers, **choose(utils))
    for i in range(5):
        with t.no_grad():
            for j, p in enumerate(model.parameters()):
                p.mul_(1.1 + 0.2 * j).add_(i)
            model[1].num_batches_tracked += 5
            model[1].running_mean += i
        average.update_parameters(model)
    x = t.tensor([[0.1, 0.2], [0.5, -0.3], [1.0, 0.0]])
    before = {name: value.tolist() for name, value in average.state_dict().items()}
    utils.update_bn([x, (x * 2, 3)], average)
    after = {name: value.tolist() for name, value in average.state_dict().items()}
    return before, after, average(x).tolist(), average.module[1].momentum, average.training, repr(average)


@pytest.mark.parametrize("buffers", [False, True])
@pytest.mark.parametrize(
    "choose",
    [
        lambda u: {}, lambda u: {"avg_fn": u.get_ema_avg_fn(0.7)}, lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.7)},
        lambda u: {"avg_fn": u.get_swa_avg_fn()}, lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    ],
    ids=["default", "ema", "ema-multi", "swa", "swa-multi"],
)  # fmt: skip
def test_averaged_models_equal_torchs(choose, buffers, request):
    if buffers and "swa-multi" in request.node.callspec.id:
        pytest.skip("PyTorch cannot average counts so")
    ours, theirs = averaged(mortice, buffers, choose), averaged(torch, buffers, choose)
    for a, b in zip(ours[:2], theirs[:2]):
        assert list(a) == list(b)
        for name in a:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-3, atol=1e-5)
    assert ours[3:] == theirs[3:]


