"""Optimiser steps whose numbers lie in memory, one for each parameter: the core's default bodies, on any backend."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt
from mortice.backends import Backend
from mortice.backends.optim import OptimKernels

ADAM: dict[str, Any] = {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-6, "weight_decay": 0.1, "maximize": False}
RULES: dict[str, tuple[int, dict[str, Any]]] = {
    "adam_step": (3, {**ADAM, "decoupled_weight_decay": True}),
    "adamax_step": (2, ADAM),
    "adagrad_step": (1, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": False}),
}


def lists(kinds: int, dtype: Any) -> list[list[Any]]:
    """Return buffers of two parameters, their gradients and state."""
    mt.manual_seed(0)
    return [[(mt.rand(3, 2) + 0.1).to(dtype), (mt.rand(4) + 0.1).to(dtype)] for _ in range(2 + kinds)]


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.bfloat16])
@pytest.mark.parametrize("name", RULES)
def test_a_number_in_memory_counts_as_the_number(name: str, dtype: Any) -> None:
    kinds, numbers = RULES[name]
    k: Backend = mt.ones(1).device.backend
    rule = getattr(OptimKernels, name).__wrapped__

    def taken(steps: list[Any], rate: Any) -> list[list[float]]:
        given = [[k.copy(t._buffer) for t in tensors] for tensors in lists(kinds, dtype)]
        made: list[list[float]] = []
        for i, step in enumerate(steps):
            one = [[buffers[i]] for buffers in given]
            wanted = {**numbers, "step": step, "lr": rate}
            for results in OptimKernels.run_step(k, rule, one, wanted, True):
                made += [k.to_host(x).tolist() for x in results]
        return made

    held = [[mt.tensor(n, dtype=mt.float32)._buffer] for n in (3.0, 7.0)]
    found = taken(held, [mt.tensor([0.05], dtype=mt.float64)._buffer])
    for f, w in zip(found, taken([3.0, 7.0], 0.05)):
        assert mt.tensor(f).flatten().tolist() == pytest.approx(
            mt.tensor(w).flatten().tolist(), rel=2e-2 if dtype is mt.bfloat16 else 1e-4
        )


def test_where_nothing_is_captured_capturable_changes_nothing() -> None:
    results = []
    for capturable in (False, True):
        mt.manual_seed(1)
        p = mt.rand(5).requires_grad_()
        adam = mt.optim.Adam([p], lr=0.1, capturable=capturable)
        for _ in range(4):
            adam.zero_grad()
            (p * p).sum().backward()
            adam.step()
        assert adam.state[p]["step"].item() == 4
        results.append(p.tolist())
    assert results[0] == results[1]
