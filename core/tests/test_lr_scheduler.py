"""Schedules: their closed forms, what they set, how they combine and resume; averages of weights."""

from __future__ import annotations

import math
import pickle
import warnings

import pytest

import mortice as mt
from mortice.optim import SGD, Adam, swa_utils
from mortice.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)


def optimizer(lr=1.0, kind=SGD, **options):
    return kind([mt.ones(1, requires_grad=True)], lr=lr, **options)


def rates(make, steps, **options):
    """Return the learning rates of the first epochs."""
    o = optimizer(**options)
    schedule = make(o)
    seen = []
    for _ in range(steps):
        seen.append(o.param_groups[0]["lr"])
        o.step()
        schedule.step()
    return seen


def cosine(share):
    return (1 + math.cos(math.pi * share)) / 2


FORMS = {
    "StepLR": (lambda o: StepLR(o, 3, 0.1), lambda e: 0.1 ** (e // 3)),
    "MultiStepLR": (lambda o: MultiStepLR(o, [2, 5, 5], 0.5), lambda e: 0.5 ** ((e >= 2) + 2 * (e >= 5))),
    "ConstantLR": (lambda o: ConstantLR(o, 0.25, 4), lambda e: 0.25 if e < 4 else 1.0),
    "LinearLR": (lambda o: LinearLR(o, 0.2, 0.8, 10), lambda e: 0.2 + 0.06 * min(e, 10)),
    "ExponentialLR": (lambda o: ExponentialLR(o, 0.9), lambda e: 0.9**e),
    "PolynomialLR": (lambda o: PolynomialLR(o, 15, 2.0), lambda e: (1 - min(e, 15) / 15) ** 2),
    "CosineAnnealingLR": (lambda o: CosineAnnealingLR(o, 8, 0.1), lambda e: 0.1 + 0.9 * cosine(e / 8)),
    "LambdaLR": (lambda o: LambdaLR(o, lambda e: 1 / (1 + e)), lambda e: 1 / (1 + e)),
    "MultiplicativeLR": (lambda o: MultiplicativeLR(o, lambda e: 1 / e), lambda e: 1 / math.factorial(e)),
    "CosineAnnealingWarmRestarts": (
        lambda o: CosineAnnealingWarmRestarts(o, 2, 2),
        lambda e: cosine(e / 2) if e < 2 else cosine((e - 2) / 4) if e < 6 else cosine((e - 6) / 8) if e < 14 else cosine((e - 14) / 16),
    ),
    "CyclicLR": (
        lambda o: CyclicLR(o, 0.1, 1.1, 4, 6, cycle_momentum=False),
        lambda e: 0.1 + (e % 10 / 4 if e % 10 <= 4 else (10 - e % 10) / 6),
    ),
    "SequentialLR": (
        lambda o: SequentialLR(o, [LinearLR(o, 0.5, 1.0, 5), ExponentialLR(o, 0.5)], [5]),
        lambda e: 0.5 + 0.1 * e if e < 5 else 0.5 ** (e - 5),
    ),
    "ChainedScheduler": (
        lambda o: ChainedScheduler([ConstantLR(o, 0.1, 3), ExponentialLR(o, 0.5)]),
        lambda e: (0.1 if e < 3 else 1.0) * 0.5**e,
    ),
    "SWALR": (
        lambda o: swa_utils.SWALR(o, 0.2, anneal_epochs=4, anneal_strategy="linear"),
        lambda e: max(0.2, 1 - 0.2 * e),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_the_learning_rate_is_the_closed_form(name):
    make, form = FORMS[name]
    assert rates(make, 20) == pytest.approx([form(e) for e in range(20)], rel=1e-9, abs=1e-12)


def test_one_cycle_goes_up_then_down_and_momentum_the_other_way():
    o = optimizer(momentum=0.9)
    schedule = OneCycleLR(o, max_lr=1.0, total_steps=11, pct_start=0.5, anneal_strategy="linear", div_factor=10.0)
    seen = []
    for _ in range(10):
        seen.append((o.param_groups[0]["lr"], o.param_groups[0]["momentum"]))
        o.step()
        schedule.step()
    assert seen[0] == pytest.approx((0.1, 0.95))
    top = max(range(10), key=lambda i: seen[i][0])
    assert top in (4, 5) and seen[top][1] == min(m for _, m in seen)
    assert o.param_groups[0]["lr"] == pytest.approx(0.1 / 1e4)
    o.step()
    schedule.step()
    with pytest.raises(ValueError, match="Tried to step 12 times. The specified number of total steps is 11"):
        schedule.step()


def test_momentum_may_be_the_first_beta():
    o = optimizer(kind=Adam)
    schedule = CyclicLR(o, 0.1, 0.5, 2, base_momentum=0.7, max_momentum=0.95)
    assert o.param_groups[0]["betas"] == (0.95, 0.999)
    for _ in range(2):
        o.step()
        schedule.step()
    assert o.param_groups[0]["betas"] == pytest.approx((0.7, 0.999))


@pytest.mark.parametrize(
    ("mode", "tops"), [("triangular", [1.0, 1.0, 1.0]), ("triangular2", [1.0, 0.5, 0.25]), ("exp_range", [0.81, 0.9**6, 0.9**10])]
)  # fmt: skip
def test_cycles_shrink_as_their_mode_says(mode, tops):
    seen = rates(lambda o: CyclicLR(o, 0.0, 1.0, 2, mode=mode, gamma=0.9, cycle_momentum=False), 12)
    assert [seen[i] for i in (2, 6, 10)] == pytest.approx(tops)


def test_a_plateau_reduces_after_patience_and_waits_through_its_cooldown():
    o = optimizer()
    schedule = ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=2, min_lr=0.2)
    seen = []
    for loss in [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, mt.tensor(0.5)]:
        schedule.step(loss)
        seen.append(o.param_groups[0]["lr"])
    assert seen == [1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2]
    assert schedule.get_last_lr() == [0.2]


def test_plateaus_of_ones_own_say_what_is_better_and_how_to_reduce():
    class Own(ReduceLROnPlateau):
        def is_better(self, a: float, best: float) -> bool:
            return a > best

        def _reduce_lr(self, epoch: int) -> None:
            self.reduced = epoch

    own = Own(optimizer(), patience=0)
    own.best = -1.0
    for loss in (1.0, 2.0, 1.5):
        own.step(loss)
    assert own.best == 2.0 and own.reduced == 3


def test_groups_added_later_get_the_plateaus_least_rate():
    o = optimizer()
    schedule = ReduceLROnPlateau(o, patience=0, min_lr=0.5)
    o.add_param_group({"params": [mt.ones(1, requires_grad=True)], "lr": 4.0})
    schedule.step(1.0)
    schedule.step(1.0)
    assert [g["lr"] for g in o.param_groups] == [0.5, 0.5]
    strict = ReduceLROnPlateau(o, patience=0, min_lr=[0.1, 0.1])
    o.add_param_group({"params": [mt.ones(1, requires_grad=True)]})
    strict.step(1.0)
    with pytest.raises(RuntimeError, match="differs from when `ReduceLROnPlateau` was initialized"):
        strict.step(1.0)


def test_a_learning_rate_that_is_a_tensor_stays_the_same_tensor():
    lr = mt.tensor(1.0)
    o = optimizer(lr)
    schedule = ExponentialLR(o, 0.5)
    o.step()
    schedule.step()
    assert o.param_groups[0]["lr"] is lr and lr.item() == 0.5
    (last,) = schedule.get_last_lr()
    assert last is not lr and last.item() == 0.5
    o.step()
    schedule.step()
    assert last.item() == 0.5 and schedule.base_lrs[0].item() == 1.0


def test_steps_in_the_wrong_order_warn_once():
    o = optimizer()
    schedule = StepLR(o, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
        fine = StepLR(o, 2)
        o.step()
        fine.step()


def test_epochs_and_get_lr_are_for_step():
    o = optimizer()
    schedule = ExponentialLR(o, 0.5)
    o.step()
    with pytest.warns(UserWarning, match="epoch parameter in `scheduler.step\\(\\)` was not necessary"):
        schedule.step(3)
    assert schedule.get_last_lr() == [0.125]
    with pytest.warns(UserWarning, match="please use `get_last_lr\\(\\)`"):
        assert schedule.get_lr() == [0.0625]


def test_restarts_take_parts_of_epochs():
    o = optimizer()
    schedule = CosineAnnealingWarmRestarts(o, 4, 2)
    for epoch, share in [(1.0, 1 / 4), (3.5, 3.5 / 4), (4.0, 0.0), (10.0, 6 / 8), (13.0, 1 / 16)]:
        schedule.step(epoch)
        assert schedule.get_last_lr() == pytest.approx([cosine(share)])
        assert schedule.last_epoch == math.floor(epoch)


def test_a_schedule_begins_where_training_stopped():
    straight = rates(lambda o: CosineAnnealingLR(o, 6), 12)
    o = optimizer()
    schedule = CosineAnnealingLR(o, 6)
    for _ in range(5):
        o.step()
        schedule.step()
    saved = pickle.loads(pickle.dumps((o.state_dict(), schedule.state_dict())))
    again = optimizer()
    resumed = CosineAnnealingLR(again, 99)
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert resumed.T_max == 6
    seen = []
    for _ in range(7):
        seen.append(again.param_groups[0]["lr"])
        again.step()
        resumed.step()
    assert seen == pytest.approx(straight[5:])
    with pytest.raises(KeyError, match="'initial_lr' is not specified in param_groups\\[0\\]"):
        StepLR(optimizer(), 2, last_epoch=5)


def test_states_of_callable_objects_are_saved_and_functions_are_not():
    class Power:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    schedule = LambdaLR(optimizer(), Power(0.5))
    state = schedule.state_dict()
    assert state["lr_lambdas"] == [{"base": 0.5}]
    other = LambdaLR(optimizer(), Power(0.9))
    other.load_state_dict(state)
    assert other.lr_lambdas[0].base == 0.5
    assert LambdaLR(optimizer(), lambda e: 1).state_dict()["lr_lambdas"] == [None]
    cyclic = CyclicLR(optimizer(), 0.1, 0.5, scale_fn=Power(0.5), cycle_momentum=False)
    other = CyclicLR(optimizer(), 0.1, 0.5, scale_fn=Power(0.9), cycle_momentum=False)
    other.load_state_dict(cyclic.state_dict())
    assert other.scale_fn(2) == 0.25


def test_combined_schedules_save_those_in_them():
    def make(o, gamma):
        return SequentialLR(o, [ChainedScheduler([ExponentialLR(o, gamma), StepLR(o, 2)]), ConstantLR(o)], [4])

    o = optimizer()
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule = make(o, 0.5)
    state = schedule.state_dict()
    assert state["_schedulers"][0]["_schedulers"][0]["gamma"] == 0.5
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        other = make(optimizer(), 0.9)
    other.load_state_dict(state)
    assert other._schedulers[0]._schedulers[0].gamma == 0.5


def test_a_schedule_of_ones_own_only_says_get_lr():
    class Halves(LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    assert rates(Halves, 4) == [1.0, 0.5, 0.25, 0.125]


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda o: StepLR(3, 2), TypeError, "int is not an Optimizer"),
        (lambda o: ConstantLR(o, factor=2), ValueError, "expected to be between 0 and 1"),
        (lambda o: LinearLR(o, start_factor=0), ValueError, "greater than 0 and less or equal to 1"),
        (lambda o: OneCycleLR(o, 1.0), ValueError, "either total_steps OR"),
        (lambda o: CyclicLR(o, 0.1, [0.2, 0.3]), ValueError, "max_lr must have the same length"),
        (lambda o: SequentialLR(o, [StepLR(o, 1)], [1]), ValueError, "one more than the number of milestone"),
        (lambda o: ChainedScheduler([ReduceLROnPlateau(o)]), ValueError, "does not support `ReduceLROnPlateau`"),
        (lambda o: ChainedScheduler([StepLR(o, 1), StepLR(optimizer(), 1)]), ValueError, "at index 1 has SGD"),
        (lambda o: ReduceLROnPlateau(o, factor=1.5), ValueError, "Factor should be < 1.0."),
        (lambda o: swa_utils.SWALR(o, 0.1, anneal_strategy="x"), ValueError, "instead got x"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(make, kind, text):
    with pytest.raises(kind, match=text):
        make(optimizer(momentum=0.9))


# ---- averages of weights ----


def grow(model, to):
    with mt.no_grad():
        for p in model.parameters():
            p.fill_(to)


def averages(values, **options):
    model = mt.nn.Linear(1, 1)
    average = swa_utils.AveragedModel(model, **options)
    for value in values:
        grow(model, value)
        average.update_parameters(model)
    assert average.n_averaged.item() == len(values)
    return average.module.weight.item()


def test_averages_are_equal_or_exponential():
    assert averages([1.0, 2.0, 6.0]) == pytest.approx(3.0)
    assert averages([1.0, 2.0, 6.0], avg_fn=lambda a, p, n: a + p) == pytest.approx(9.0)
    for options in ({"avg_fn": swa_utils.get_ema_avg_fn(0.5)}, {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)}):
        assert averages([1.0, 2.0, 6.0], **options) == pytest.approx(3.75)


def test_averages_go_with_the_state_dict():
    model = mt.nn.Linear(1, 1)
    average = swa_utils.AveragedModel(model)
    for value in (1.0, 3.0):
        grow(model, value)
        average.update_parameters(model)
    other = swa_utils.AveragedModel(mt.nn.Linear(1, 1))
    other.load_state_dict(average.state_dict())
    grow(model, 5.0)
    other.update_parameters(model)
    assert other.module.weight.item() == pytest.approx(3.0) and other.n_averaged.item() == 3


def test_buffers_are_copied_or_averaged():
    norm = mt.nn.BatchNorm1d(1)
    copying, averaging = swa_utils.AveragedModel(norm), swa_utils.AveragedModel(norm, use_buffers=True)
    for value in (1.0, 3.0):
        norm.running_mean.fill_(value)
        copying.update_parameters(norm)
        averaging.update_parameters(norm)
    assert (copying.module.running_mean.item(), averaging.module.running_mean.item()) == (3.0, 2.0)


def test_update_bn_takes_the_statistics_of_all_batches():
    norm = mt.nn.BatchNorm1d(1, momentum=0.3).eval()
    swa_utils.update_bn([mt.tensor([[1.0], [3.0]]), (mt.tensor([[5.0], [7.0]]), "label")], norm)
    assert (norm.running_mean.item(), norm.running_var.item()) == (4.0, 2.0)
    assert norm.momentum == 0.3 and not norm.training
    swa_utils.update_bn([mt.ones(1)], mt.nn.Linear(1, 1))


def test_a_step_put_in_the_optimiser_s_place_counts_as_one():
    def made(before):
        p = mt.nn.Parameter(mt.ones(1))
        optimizer = mt.optim.SGD([p], lr=0.1)
        if before:
            optimizer.step = lambda: None
        schedule = mt.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        if not before:
            optimizer.step = lambda: None
        return optimizer, schedule

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer, schedule = made(before=True)
        optimizer.step()
        schedule.step()
    optimizer, schedule = made(before=False)
    optimizer.step()
    with pytest.warns(UserWarning, match="has been overridden after learning rate scheduler"):
        schedule.step()
    _, schedule = made(before=True)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
        schedule.step()
