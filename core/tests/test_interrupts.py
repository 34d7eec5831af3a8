"""Whatever an interrupt breaks off, at whichever call, is as it was before: recording, transforms, an optimiser's state."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import mortice as mt
from mortice.levels import stack
from mortice.modes import modes, special


class Doubled(mt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


@mt.no_grad()
def decorated(x: Any) -> Any:
    return x + 1


def switched(mode: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> None:
        with mode():
            x * 2

    return run


def cast(x: Any) -> None:
    with mt.autocast("cpu", mt.bfloat16):
        mt.nn.functional.cosine_similarity(x, x, dim=0)


BLOCKS = {
    "no_grad": switched(mt.no_grad),
    "inference_mode": switched(mt.inference_mode),
    "a decorated function": decorated,
    "a Function": lambda x: Doubled.apply(x).sum().backward(),
    "a function in autocast": cast,
    "vmap": lambda x: mt.func.vmap(mt.sin)(x),
    "grad": lambda x: mt.func.grad(lambda t: t.sin().sum())(x.detach()),
    "jvp": lambda x: mt.func.jvp(mt.sin, (x.detach(),), (x.detach(),)),
}


def broken_off(run: Callable[[], Any], at: int) -> bool:
    """Interrupt a run at a call, as a signal may: where a function begins, or one of C has ended. Tell whether it came so far.

    Not where `__exit__` begins: Python itself has no way to put back then what the block has changed.
    """
    count, before = 0, sys.getprofile()

    def watch(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        if event in ("call", "c_return") and not (event == "call" and frame.f_code.co_name == "__exit__"):
            count += 1
            if count == at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a generator that is thrown away
@pytest.mark.parametrize("name", BLOCKS)
def test_an_interrupt_leaves_the_modes_as_they_were(name: str) -> None:
    x = mt.ones(3, requires_grad=True)
    BLOCKS[name](x)  # what loads at the first call has loaded
    at = 1
    while broken_off(lambda: BLOCKS[name](x), at):
        where = f"{name}, broken off at call {at}"
        assert modes.grad and not modes.inference and modes.autocast is None and not modes.dispatch, where
        assert not stack.levels, where
        assert (x * 2).requires_grad and mt.nn.functional.relu(x).grad_fn is not None, where
        with mt.no_grad():
            assert not (x * 2).requires_grad, where
        assert not special[0], where  # and the next block has it counted again
        at += 1
    assert at > 3


@pytest.mark.parametrize("make", (mt.optim.Adam, mt.optim.NAdam, mt.optim.SGD, mt.optim.RMSprop))
def test_an_interrupted_first_step_of_an_optimiser_can_be_taken_again(make: Any) -> None:
    def first(broken: int) -> tuple[bool, Any]:
        p = mt.ones(3, requires_grad=True)
        p.grad = mt.ones(3)
        optimiser = make([p], lr=0.1)
        done = not broken_off(optimiser.step, broken)
        optimiser.step()
        return done, optimiser.state[p]

    first(10**9)
    at, done = 1, False
    while not done:
        done, state = first(at)
        assert done or state.keys() == first(10**9)[1].keys(), at
        at += 1
    assert at > 3
