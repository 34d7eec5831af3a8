"""Graphs are freed by reference counting, long chains neither overflow nor leak, threads do not disturb each other."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mortice as mt
from mortice import autograd
from mortice.autograd import Function


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(*values: float) -> mt.Tensor:
    return mt.tensor(values, dtype=mt.float64, requires_grad=True)


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        y = x * 2
        ctx.save_for_backward(x, y)
        return y, y + 1

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor, h: mt.Tensor) -> mt.Tensor:
        x, y = ctx.saved_tensors
        return (g + h) * y / x


def plain(x: mt.Tensor) -> mt.Tensor:
    return (x * x).exp() / (x + 1).sigmoid()


def views(x: mt.Tensor) -> mt.Tensor:
    y = x * 1
    first, rest = y[:1], y.view(-1, 1)
    first.mul_(2)
    rest[1:].exp_()
    return y * first


def written(x: mt.Tensor) -> mt.Tensor:
    y, w = x * 1, x.sin()
    y.mul_(w)
    y += w
    y.tanh_()
    return y


def several(x: mt.Tensor) -> mt.Tensor:
    a, b = x.unbind(0)
    return mt.stack([a * b, a / b]).sum(0)


def custom(x: mt.Tensor) -> mt.Tensor:
    a, b = Twice.apply(x)
    return a * b


def hooked(x: mt.Tensor) -> mt.Tensor:
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    return y * y


def packed(x: mt.Tensor) -> mt.Tensor:
    with autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return custom(x.exp()) * x


def second(x: mt.Tensor) -> mt.Tensor:
    y = plain(x)
    return autograd.grad(y.sum(), x, create_graph=True)[0]


def checkpointed(x: mt.Tensor) -> mt.Tensor:
    from mortice.utils.checkpoint import checkpoint

    return checkpoint(plain, x, use_reentrant=False)


PROGRAMS = (plain, views, written, several, custom, hooked, packed, second, checkpointed)


@pytest.mark.parametrize("run", [True, False], ids=["after backward", "dropped"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_dropped_graph_is_freed_at_once(program: Callable[[mt.Tensor], mt.Tensor], run: bool) -> None:
    x = leaf(0.5, 0.25)
    out = program(x)
    node, tensor = weakref.ref(out._node), weakref.ref(out)
    if run:
        out.sum().backward()
    del out
    assert tensor() is None and node() is None
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found = [g for g in gc.garbage if isinstance(g, (mt.Tensor, autograd.graph.Node))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert not found


def test_a_graph_kept_for_a_second_backward_is_freed_with_its_root() -> None:
    x = leaf(1.0)
    y = plain(x)
    node = weakref.ref(y.grad_fn)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert node() is not None
    del y
    assert node() is None


def test_backward_lets_go_of_saved_values_before_the_graph_is_dropped() -> None:
    x = leaf(1.0)
    h = x.exp()
    kept = weakref.ref(h)
    y = (h * h).sum()
    del h
    assert kept() is not None
    y.backward()
    assert kept() is None


@pytest.mark.parametrize("kind", ["saved", "unsaved", "views", "written"])
def test_a_chain_of_100000_operations_neither_overflows_nor_leaks(kind: str) -> None:
    x = leaf(1.0)
    one = mt.ones(1, dtype=mt.float64)
    h = x * one
    step: dict[str, Callable[[mt.Tensor], Any]] = {
        "saved": lambda h: h * one,
        "unsaved": lambda h: h + one,
        "views": lambda h: h.view(1),
        "written": lambda h: h.add_(one),
    }
    for _ in range(100_000):
        h = step[kind](h)
    node = weakref.ref(h.grad_fn)
    if kind != "unsaved":
        h.backward(one)
        assert x.grad.tolist() == [1.0]
    del h
    assert node() is None


def test_a_chain_whose_values_are_saved_is_freed_without_backward() -> None:
    x = leaf(1.0)
    h = x * 1
    for _ in range(100_000):
        h = h * x
    node = weakref.ref(h.grad_fn)
    del h
    assert node() is None


def test_second_derivative_of_a_long_chain() -> None:
    x = leaf(1.0)
    h = x * 1
    for _ in range(3_000):
        h = h * x
    (g,) = autograd.grad(h.sum(), x, create_graph=True)
    (gg,) = autograd.grad(g.sum(), x)
    assert gg.item() == 3001 * 3000


def test_eight_threads_train_side_by_side() -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            w = leaf(float(seed), 1.0)
            for i in range(200):
                if i % 3 == 0:
                    with mt.no_grad():
                        assert not (w * 2).requires_grad
                loss = (w * w * float(seed)).sum()
                w.grad = None
                loss.backward()
                expected = [2.0 * seed * v for v in w.tolist()]
                assert w.grad.tolist() == expected, (w.grad.tolist(), expected)
                with mt.no_grad():
                    w.sub_(w.grad * 0.001)
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_threads_that_share_a_leaf_lose_no_gradient() -> None:
    w = mt.zeros(2_000, dtype=mt.float64, requires_grad=True)

    def work() -> None:
        for _ in range(100):
            (w * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert w.grad.min().item() == w.grad.max().item() == 800.0
