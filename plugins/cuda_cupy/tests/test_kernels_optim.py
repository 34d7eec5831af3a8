"""Optimiser steps on the emulator, against the core's rules run one parameter after another."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from checks import DTYPES, agree, draw
from kernels_on_numpy import backends
from steps import STEPS

K, LAW = backends()
SHAPES = [(5,), (), (0, 3), (40, 1030), (7, 11)]


def buffers(dtype: Any, kinds: str, seed: int) -> list[list[Any]]:
    """Return parameters, gradients and each kind of state: '+' is of positive numbers, '-' is absent."""
    lists = []
    for n, kind in enumerate("~~" + kinds):
        drawn = [
            draw(shape, dtype, seed=seed + 10 * n + i, scale=0.1 if kind == "0" else 1)
            for i, shape in enumerate(SHAPES)
        ]
        lists.append([] if kind == "-" else [np.abs(x) + x.dtype.type(0.1) if kind == "+" else x for x in drawn])
    return [[np.array(x) for x in row] for row in lists]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_elementwise_rule(dtype: Any) -> None:
    # Each rule is a program to compile: other dtypes than single precision take the first and amsgrad.
    for name, kinds, numbers in STEPS if dtype == np.float32 else (STEPS[0], STEPS[8]):
        lists = buffers(dtype, kinds, seed=1)
        single = dtype if dtype.itemsize > 2 else np.dtype(np.float32)
        wanted = getattr(LAW, name)(*[[x.astype(single) for x in row] for row in lists], **numbers)
        given = copy.copy(lists[0])
        found = getattr(K, name)(*lists, **numbers)
        assert all(a is b for a, b in zip(found[0], given)), "parameters are written in place"
        for made, law in zip(found, wanted):
            for f, w in zip(made, law):
                agree(f, w.astype(dtype), dtype, 4, floor=0.1)


def test_other_parameters_take_the_core_s_way() -> None:
    name, kinds, numbers = STEPS[0]
    for change in (lambda x: x.astype(np.complex64) * (1 + 2j), lambda x: np.asfortranarray(x)):
        lists = [[np.asarray(change(x)) for x in row] for row in buffers(np.dtype(np.float32), kinds, seed=2)]
        wanted = getattr(LAW, name)(*copy.deepcopy(lists), **numbers)
        for made, law in zip(getattr(K, name)(*lists, **numbers), wanted):
            for f, w in zip(made, law):
                np.testing.assert_allclose(f, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("held", [False, True])
def test_gradients_are_scaled_and_looked_at_in_one_launch(dtype: Any, held: bool) -> None:
    factor = np.array(0.125, np.float32) if held else 0.125
    for bad in (None, float("inf"), float("-inf"), float("nan")):
        xs = buffers(dtype, "", seed=4)[0]
        xs += [np.asfortranarray(draw((5, 6), dtype, seed=5)), draw((300,), np.float32, seed=6).reshape(10, 30)[:, 3:]]
        xs[1 if len(xs) % 2 else 3].reshape(-1)[-1:] = 1.0 if bad is None else bad
        wanted, lost = LAW.unscale_step(copy.deepcopy(xs), factor=factor)
        for chosen in (xs[:-1], xs):  # the last has gaps: all go the core's way
            made, found = K.unscale_step(copy.deepcopy(chosen), factor=factor)
            assert found.dtype == np.float32 and found.shape == () and float(found) == float(lost) == (bad is not None)
            for f, w in zip(made, wanted):
                np.testing.assert_array_equal(f.astype(np.float64), w.astype(np.float64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_many_arrays(dtype: Any) -> None:
    xs = [*buffers(dtype, "", seed=7)[0], np.asfortranarray(draw((90, 60), dtype, seed=8))]
    xs += [draw((3,), dtype, seed=i) for i in range(200)]
    for p in (2.0, 1.0):
        found, wanted = K.vector_norms(xs, p=p), LAW.vector_norms(xs, p=p)
        assert found.shape == (len(xs),) and found.dtype == dtype
        agree(found, wanted, dtype, 8)


def test_counts_go_up_and_numbers_are_held() -> None:
    counts = [np.array(float(i), np.float32) for i in range(70)]
    K.count_step(counts)
    assert [float(c) for c in counts] == [i + 1.0 for i in range(70)]
    K.hold_step(counts, value=0.25)
    assert {float(c) for c in counts} == {0.25}


def test_more_parameters_than_one_table_has_room_for() -> None:
    name, kinds, numbers = STEPS[0]
    lists = [[draw((3 + i % 5,), np.float32, seed=40 * n + i) for i in range(200)] for n in range(2 + len(kinds))]
    wanted = getattr(LAW, name)(*copy.deepcopy(lists), **numbers)
    for made, law in zip(getattr(K, name)(*lists, **numbers), wanted):
        for f, w in zip(made, law):
            agree(f, w, np.float32, 4, floor=0.1)


def test_new_numbers_make_no_new_kernel() -> None:
    from mortice_cuda_cupy.kernels.launch import PROGRAMS

    name, kinds, numbers = STEPS[0]
    lists = buffers(np.dtype(np.float32), kinds, seed=3)
    getattr(K, name)(*lists, **numbers)
    before = len(PROGRAMS)
    getattr(K, name)(*lists, **{**numbers, "lr": 0.5})
    assert len(PROGRAMS) == before


def test_a_rule_is_traced_once_while_its_questions_have_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from mortice.backends import NamespaceBackend
    from mortice_cuda_cupy.kernels import optim

    traced, law = [], optim.trace
    monkeypatch.setattr(optim, "trace", lambda *args: traced.append(1) or law(*args))
    monkeypatch.setattr(optim, "_known", {})
    for name, kinds, numbers in STEPS:
        rule, present = getattr(NamespaceBackend, name).__wrapped__, tuple([kind != "-" for kind in "pg" + kinds])
        more = [{**numbers, **{n: numbers[n] * by for n in ("step", "lr", "mu_product") if n in numbers}} for by in (1.0, 1.5, 0.9)]
        for given in more:
            program, values = optim._step(rule, present, given)
            text, wanted = law(rule, present, given)
            assert values == [float(x) for x in wanted] and program is optim.program(text)
    assert len(traced) == len(STEPS)  # RAdam's of 3 and of 50 steps are two kernels
    program, _ = optim._step(rule, present, {**numbers, "etas": (0.25, 1.2)})
    assert len(traced) == len(STEPS) + 1 and program is optim.program(text)


def test_a_rule_that_asks_for_its_step_may_leave_the_answer_to_the_device() -> None:
    _, kinds, numbers = next(step for step in STEPS if step[0] == "radam_step")
    lists, counts = buffers(np.dtype(np.float32), kinds, seed=9), [3.0, 50.0, 4.0, 7.0, 200.0]
    wanted = [LAW.radam_step(*[[copy.deepcopy(row[i])] for row in lists], **{**numbers, "step": n})[0][0] for i, n in enumerate(counts)]
    found = K.radam_step(*lists, **{**numbers, "step": [np.array(n, np.float32) for n in counts]})[0]
    for f, w in zip(found, wanted):
        agree(f, w, np.dtype(np.float32), 4, floor=0.1)
