"""Sorted rows and the best of them, short and long, with equal elements and nan; the CPU gives the law."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt
from mortice import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no GPU here; test_emulated runs these on the stand-in")
FLOATS = [mt.float16, mt.bfloat16, mt.float32, mt.float64]
DTYPES = [*FLOATS, mt.int32, mt.int64, mt.uint8]
# Rows that share a block, that fill one, of the larger size, and some that are merged; other axes.
SHAPES = [((1,), 0), ((5, 1), 1), ((300, 7), 1), ((3, 4, 64), 2), ((2, 1000), 1), ((2, 1025), 1), ((4096,), 0), ((5000,), 0), ((70, 9), 0),
          ((3, 50, 4), 1), ((2, 8193), 1)]  # fmt: skip
VALUES = [0.0, -0.0, 1.0, -1.0, 2.5, float("inf"), float("-inf"), float("nan"), 1e-7, -3.0, 65504.0]


def drawn(shape: Any, dtype: Any, seed: int = 0) -> Any:
    """Return few different values, many times each; floats with what is special."""
    mt.manual_seed(seed)
    at = mt.randint(0, len(VALUES), shape)
    if dtype.is_floating_point:
        return mt.tensor(VALUES, dtype=dtype)[at]
    ends = [0, 1, 255] if dtype is mt.uint8 else [-5, 0, 1, 2**31 - 1, -(2**31)]
    return mt.tensor(ends, dtype=dtype)[at % len(ends)]


def same(found: Any, wanted: Any) -> None:
    """Check shape, dtype and values, and the sign of zeros."""
    assert found.is_cuda and found.dtype is wanted.dtype and found.shape == wanted.shape
    assert str(found.tolist()) == str(wanted.tolist())


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, mt.bool], ids=str)
def test_sorting_is_stable_and_nan_is_largest(dtype: Any, descending: bool) -> None:
    for shape, axis in SHAPES:
        x = drawn(shape, mt.uint8).to(mt.bool) if dtype is mt.bool else drawn(shape, dtype)
        for found, wanted in zip(mt.sort(x.cuda(), axis, descending), mt.sort(x, axis, descending)):
            same(found, wanted)
        same(mt.argsort(x.cuda(), axis, descending), mt.argsort(x, axis, descending))
    x = drawn((40, 33), mt.float32)
    same(mt.argsort(x.cuda().T[3:], 1), mt.argsort(x.T[3:], 1))
    assert mt.sort(x.cuda()[:0], 1).values.shape == (0, 33)


def test_long_rows_are_sorted_without_waiting() -> None:
    x, side = drawn((9001,), mt.float32).cuda(), cuda.Stream()
    with cuda.stream(side):
        x.sort()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        found = x.sort()
    x.copy_(drawn((9001,), mt.float32, seed=1))
    graph.replay()
    for a, b in zip(found, drawn((9001,), mt.float32, seed=1).sort()):
        same(a, b)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_best_of_rows(dtype: Any, largest: bool) -> None:
    for shape, axis, counts in (
        ((300, 8), 1, (1, 2, 8)), ((2, 1500), 1, (1, 40, 1500)), ((70, 3), 0, (5,)), ((2, 9001), 1, (1, 50, 700)),
        ((50_000,), 0, (3, 1024)), ((5000, 2), 0, (7,)),
    ):  # fmt: skip
        x = drawn(shape, dtype)
        for count in counts:
            for found, wanted in zip(mt.topk(x.cuda(), count, axis, largest), mt.topk(x, count, axis, largest)):
                same(found, wanted)


def test_medians_ranks_and_gradients() -> None:
    x = drawn((6, 35), mt.float64, seed=1)
    for run in (
        lambda t: t.median(1),
        lambda t: t.nanmedian(1),
        lambda t: t.kthvalue(4, 1),
        lambda t: t.unique(),
        lambda t: t.topk(0),
    ):
        a, b = run(x.cuda()), run(x)
        for found, wanted in zip(*[[r] if isinstance(r, mt.Tensor) else list(r) for r in (a, b)]):
            same(found, wanted)
    y = mt.randn(4, 90, dtype=mt.float64)
    for run in (lambda t: t.sort(1, descending=True).values, lambda t: t.topk(9, 1).values, lambda t: t.sort(0).values):
        u, v = y.clone().requires_grad_(), y.cuda().requires_grad_()
        (run(u) * mt.arange(run(u).shape[1])).sum().backward()
        (run(v) * mt.arange(run(v).shape[1], device="cuda")).sum().backward()
        same(v.grad, u.grad)
