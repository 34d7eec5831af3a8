"""Running sums, products and extremes in all their ways; the CPU gives the law."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import mortice as mt
from mortice import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no GPU here; test_emulated runs these on the stand-in")
FLOATS = [mt.float16, mt.bfloat16, mt.float32, mt.float64]
# Short rows (a warp each), rows in several steps, a long one in parts, columns, columns in parts; aligned and not.
SHAPES = [
    ((7,), 0), ((3, 5, 130), 2), ((9, 64), 1), ((2, 3001), 1), ((2, 2048), 1), ((40_003,), 0), ((3, 16_400), 1), ((5, 6), 0),
    ((2, 9, 7), 1), ((2, 700, 3), 1), ((700, 40), 0), ((1, 1), 0), ((1, 4, 1), 1),
]  # fmt: skip


def whole(shape: Any, dtype: Any, reach: int, seed: int = 0) -> Any:
    """Return whole numbers: sums of them are exact in every order."""
    mt.manual_seed(seed)
    return mt.randint(-reach, reach + 1, shape).to(dtype)


def same(found: Any, wanted: Any) -> None:
    """Check shape, dtype and values, to the bit but for which nan."""
    assert found.is_cuda and found.dtype is wanted.dtype and found.shape == wanted.shape
    found = found.cpu()
    different = (found != wanted) & ~((found != found) & (wanted != wanted))
    assert not bool(different.any()), (found[different][:5], wanted[different][:5])


@pytest.mark.parametrize("dtype", [*FLOATS, mt.int32, mt.int64], ids=str)
def test_sums(dtype: Any) -> None:
    for shape, axis in SHAPES:
        x = whole(shape, dtype, 1 if dtype.itemsize == 2 else 100)
        same(x.cuda().cumsum(axis, dtype=dtype), x.cumsum(axis, dtype=dtype))
    y = whole((66, 50), dtype, 1)
    same(y.cuda().T.cumsum(0, dtype=dtype), y.T.cumsum(0, dtype=dtype))
    same(y.cuda()[:, 1:].cumsum(1, dtype=dtype), y[:, 1:].cumsum(1, dtype=dtype))
    assert y[:0].cuda().cumsum(1).shape == (0, 50)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_with_zeros_and_what_is_not_finite(dtype: Any) -> None:
    for shape, axis in SHAPES:
        x = whole(shape, dtype, 3).sign()
        x = mt.where(x == 0, 2.0 if x.numel() < 10 else 1.0, x)
        found, wanted = x.cuda().cumprod(axis), x.cumprod(axis)
        same(found, wanted)
        for n, special in itertools.product(
            (0, 3, x.shape[axis] // 2, x.shape[axis] - 1), (0.0, float("inf"), float("nan"))
        ):
            if n < x.shape[axis]:
                y = x.clone()
                y.select(axis, n).fill_(special)
                y.select(axis, x.shape[axis] * 2 // 3).fill_(float("-inf"))
                same(y.cuda().cumprod(axis), y.cumprod(axis))
    big = mt.full((300,), 1e4 if dtype is mt.float16 else 1e30, dtype=dtype)
    big[5] = 0
    found = big.cuda().cumprod(0).cpu()
    assert found[:2].isfinite().any() and (found[5:].isnan().all() or bool((found[5:] == 0).all()))
    tame = mt.full((2000,), 2.0, dtype=dtype)
    tame[0] = 0
    assert not tame.cuda().cumprod(0).cpu().any()


@pytest.mark.parametrize("dtype", [mt.int32, mt.int64], ids=str)
def test_products_of_integers(dtype: Any) -> None:
    for shape, axis in SHAPES:
        x = whole(shape, dtype, 3)
        same(x.cuda().cumprod(axis, dtype=dtype), x.cumprod(axis, dtype=dtype))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [*FLOATS, mt.int32, mt.int64], ids=str)
def test_extremes_and_the_last_places_of_equal_ones(dtype: Any, largest: bool) -> None:
    run = mt.cummax if largest else mt.cummin
    for shape, axis in SHAPES:
        x = whole(shape, dtype, 40)
        cases = [x]
        if dtype.is_floating_point:
            cases += [mt.where(x == 7, float("nan"), x), mt.where(x > 0, float("inf"), float("-inf")).to(dtype)]
        for case in cases:
            for found, wanted in zip(run(case.cuda(), axis), run(case, axis)):
                same(found, wanted)


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
def test_logarithms_of_sums(dtype: Any) -> None:
    for shape, axis in SHAPES:
        x = whole(shape, dtype, 9) / 4
        found, wanted = x.cuda().logcumsumexp(axis).cpu(), x.logcumsumexp(axis)
        assert bool(((found - wanted).abs() <= 1e-5 * (1 + wanted.abs())).all())
    inf, nan = float("inf"), float("nan")
    for row in (
        [-inf, -inf, 0.0, 1.0, -inf],
        [0.0, inf, 1.0, -inf],
        [1.0, nan, 2.0],
        [inf, inf, -inf],
        [-inf, inf, nan, 0.0],
    ):
        x = mt.tensor(row, dtype=dtype)
        same(x.cuda().logcumsumexp(0).isfinite(), x.logcumsumexp(0).isfinite())
        found, wanted = x.cuda().logcumsumexp(0).cpu(), x.logcumsumexp(0)
        assert [str(v) for v in found[~wanted.isfinite()].tolist()] == [
            str(v) for v in wanted[~wanted.isfinite()].tolist()
        ]


def test_gradients_go_through() -> None:
    for run in (
        lambda t: t.cumsum(1),
        lambda t: t.cumprod(1),
        lambda t: t.cummax(1).values,
        lambda t: t.logcumsumexp(1),
    ):
        x = (whole((3, 40), mt.float64, 9) / 8).requires_grad_()
        y = x.detach().cuda().requires_grad_()
        run(x).square().sum().backward()
        run(y).square().sum().backward()
        assert bool(((y.grad.cpu() - x.grad).abs() <= 1e-9 * (1 + x.grad.abs())).all())
