"""Steps of optimisers: in place, equal to the rules of the default bodies to the last bit, on every layout of parameters."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mortice as mt
from mortice.backends import Backend

pytestmark = pytest.mark.usefixtures("modern")
PLAIN = {"maximize": False, "weight_decay": 0.0}
DECAY = {"maximize": True, "weight_decay": 0.1}
BETAS = {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-8}


def of_adam(**more: Any) -> dict[str, Any]:
    return {**BETAS, "decoupled_weight_decay": False, "step": 3.0, **PLAIN, **more}


# kernel, which lists of state there are, numbers
STEPS = [
    ("sgd", (0,), dict(lr=0.1, momentum=0, dampening=0, nesterov=False, first=False, **PLAIN)),
    ("sgd", (0,), dict(lr=0.1, momentum=0, dampening=0, nesterov=False, first=False, **DECAY)),
    ("sgd", (1,), dict(lr=0.1, momentum=0.9, dampening=0, nesterov=False, first=True, **DECAY)),
    ("sgd", (1,), dict(lr=0.1, momentum=0.9, dampening=0.3, nesterov=False, first=False, **DECAY)),
    ("sgd", (1,), dict(lr=1, momentum=0.9, dampening=0, nesterov=True, first=False, **PLAIN)),
    ("sgd", (1,), dict(lr=1, momentum=0.9, dampening=0, nesterov=True, first=True, **PLAIN)),
    ("asgd", (1,), dict(lambd=1e-2, eta=0.1, mu=1.0, **PLAIN)),
    ("asgd", (1,), dict(lambd=1e-2, eta=0.1, mu=0.25, **DECAY)),
    ("adam", (1, 1, 0), of_adam()),
    ("adam", (1, 1, 1), of_adam(**DECAY)),
    ("adam", (1, 1, 0), of_adam(**{**DECAY, "decoupled_weight_decay": True})),
    ("adamax", (1, 1), dict(**BETAS, step=2.0, **PLAIN)),
    ("adamax", (1, 1), dict(**BETAS, step=2.0, **DECAY)),
    ("nadam", (1, 1), of_adam(mu=0.9, next_mu=0.91, mu_product=0.8)),
    ("nadam", (1, 1), of_adam(**DECAY, mu=0.9, next_mu=0.91, mu_product=0.8)),
    ("radam", (1, 1), of_adam(step=2.0)),
    ("radam", (1, 1), of_adam(**{**DECAY, "step": 50.0, "decoupled_weight_decay": True})),
    ("rmsprop", (1, 0, 0), dict(lr=0.1, alpha=0.9, eps=1e-8, momentum=0, **PLAIN)),
    ("rmsprop", (1, 1, 1), dict(lr=0.1, alpha=0.9, eps=1e-2, momentum=0.5, **DECAY)),
    ("adagrad", (1,), dict(lr=0.1, lr_decay=0.01, eps=1e-8, step=4.0, **DECAY)),
    ("adadelta", (1, 1), dict(lr=0.1, rho=0.9, eps=1e-6, **DECAY)),
    ("rprop", (1, 1), dict(etas=(0.5, 1.2), step_sizes=(1e-6, 0.5), maximize=False)),
]
SHAPES = [(), (1,), (3,), (17,), (5, 7), (0,), (2, 3, 4)]


def lists(shapes: list[tuple[int, ...]], states: tuple[int, ...], dtype: Any) -> list[list[Any]]:
    """Return tensors: parameters, gradients and state, of which squares are not negative."""
    g = mt.Generator().manual_seed(len(shapes))

    def draw(shape: tuple[int, ...]) -> Any:
        return mt.randn(*shape, generator=g).to(dtype) if shape else mt.randn(1, generator=g).to(dtype)[0].clone()

    made = [[draw(s) for s in shapes], [draw(s) for s in shapes]]
    for i, there in enumerate(states):  # the third may be a mean whose square must not exceed the mean square
        made.append([draw(s) * 0.1 if i == 2 else (lambda t: t * t + 0.5)(draw(s)) for s in shapes] if there else [])
    return made


def raw(tensors: list[list[Any]]) -> list[list[Any]]:
    return [[t._buffer for t in group] for group in tensors]


def read(k: Any, groups: Any) -> list[Any]:
    return [[k.to_host(x).tolist() for x in group] for group in groups]


def run(k: Any, name: str, given: list[list[Any]], numbers: dict[str, Any]) -> Any:
    return getattr(k, f"{name}_step")(*given, **numbers)


def by_rule(k: Any, name: str, given: list[list[Any]], numbers: dict[str, Any]) -> Any:
    """Run the default body, which changes nothing."""
    return getattr(Backend, f"{name}_step")(k, *given, **numbers)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name,states,numbers", STEPS, ids=[f"{i}-{s[0]}" for i, s in enumerate(STEPS)])
def test_steps_are_in_place_and_equal_the_rules_to_the_last_bit(
    k: Any, name: str, states: tuple[int, ...], numbers: dict[str, Any], dtype: str
) -> None:
    tensors = lists(SHAPES, states, getattr(mt, dtype))
    given = raw(tensors)
    want = read(k, by_rule(k, name, given, numbers))
    grads = read(k, [given[1]])
    got = run(k, name, given, numbers)
    assert read(k, got) == want
    assert read(k, [given[1]]) == grads
    for made, old in zip(got, [given[0], *given[2:]]):
        assert all(a is b for a, b in zip(made, old))


@pytest.mark.parametrize("name,states,numbers", STEPS, ids=[f"{i}-{s[0]}" for i, s in enumerate(STEPS)])
def test_long_parameters_step_in_parts(k: Any, name: str, states: tuple[int, ...], numbers: dict[str, Any]) -> None:
    given = raw(lists([(70001,), (3,), (200, 100), (16384,), (16385,)], states, mt.float32))
    want = read(k, by_rule(k, name, given, numbers))
    assert read(k, run(k, name, given, numbers)) == want


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name,states,numbers", STEPS, ids=[f"{i}-{s[0]}" for i, s in enumerate(STEPS)])
def test_halves_step_in_float32_and_are_rounded_once(
    k: Any, name: str, states: tuple[int, ...], numbers: dict[str, Any], dtype: str
) -> None:
    tensors = lists(SHAPES, states, getattr(mt, dtype))
    wide = [[t.to(mt.float32) for t in group] for group in tensors]
    want = [[t.to(getattr(mt, dtype)) for t in group] for group in (run(k, name, raw(wide), numbers), wide)[1]]
    got = run(k, name, raw(tensors), numbers)
    assert read(k, got) == read(k, [raw([g])[0] for i, g in enumerate(want) if i != 1])


def test_complex_parameters_step_as_pairs_of_reals(k: Any) -> None:
    given = raw(lists([(3,), (2, 5)], (1, 1, 0), mt.complex64))
    want = read(k, by_rule(k, "adam", given, of_adam()))
    assert read(k, run(k, "adam", given, of_adam())) == want


@pytest.mark.parametrize("mixed", [False, True])
def test_parameters_may_have_any_strides(k: Any, mixed: bool) -> None:
    def turned(x: Any) -> Any:
        return k.permute_dims(x, (1, 0))

    given = raw(lists([(6, 5)], (1, 1, 0), mt.float32))
    want = read(k, by_rule(k, "adam", [[turned(x) for x in group] for group in given], of_adam()))
    seen = [[turned(x) for x in group] for group in given]
    if mixed:
        seen[1] = [k.copy(seen[1][0])]
        seen[3] = [k.copy(seen[3][0])]
    got = run(k, "adam", seen, of_adam())
    assert read(k, got) == want and got[0][0] is seen[0][0]
    assert read(k, [[turned(given[0][0])]]) == [want[0]]


def test_a_part_of_a_parameter_steps_in_place(k: Any) -> None:
    whole = mt.ones(6, 6)
    part = k.getitem(whole._buffer, (slice(1, 3), slice(None, None, 2)))
    g = mt.ones(2, 3)._buffer
    k.sgd_step(
        [part], [g], [], lr=1.0, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False, first=False
    )
    assert whole.sum().item() == 30.0 and whole[1, 2].item() == 0.0 and whole[1, 1].item() == 1.0


def test_counts_and_held_numbers_change_in_place(k: Any) -> None:
    for dtype in (mt.float32, mt.float64):
        t = mt.tensor(2.0, dtype=dtype)
        assert k.count_step([t._buffer])[0][0] is t._buffer and t.item() == 3.0
        k.hold_step([t._buffer], value=0.5)
        assert t.item() == 0.5


def test_nan_reaches_the_maxima(k: Any) -> None:
    given = raw(lists([(3,)], (1, 1, 1), mt.float32))
    given[1] = [mt.tensor([math.nan, 1.0, 2.0])._buffer]
    assert math.isnan(read(k, run(k, "adam", given, of_adam()))[3][0][0])


def test_wrong_operands_are_refused(k: Any) -> None:
    p, g = mt.ones(3)._buffer, mt.ones(4)._buffer
    numbers = dict(lr=1.0, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False, first=False)
    for lists_ in (
        ([p], [g], []),
        ([p], [], []),
        ([p], [p, p], []),
        (p, [p], []),
        ([mt.arange(3)._buffer], [p], []),
        ([1], [p], []),
    ):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            k.sgd_step(*lists_, **numbers)
    with pytest.raises(TypeError):
        k.sgd_step([p], [p], [])
    with pytest.raises(TypeError):
        k.adam_step([p], [p], [p], [p], [], **{**of_adam(), "betas": 3})
