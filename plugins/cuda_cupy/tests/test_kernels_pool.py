"""Pooling on the emulator, against the core's default bodies."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from checks import DTYPES, agree, draw
from kernels_on_numpy import backends

K, LAW = backends()
# shape, kernel, stride, padding, dilation
WINDOWS: list[tuple[Any, ...]] = [
    ((2, 3, 9), (3,), (2,), (1,), (1,)),
    ((2, 2, 7, 8), (2, 3), (2, 2), (1, 0), (1, 2)),
    ((3, 6, 6), (6, 6), (1, 1), (0, 0), (1, 1)),
    ((1, 2, 4, 5, 6), (2, 2, 3), (1, 2, 3), (0, 1, 1), (2, 1, 1)),
    ((2, 1, 1), (1,), (1,), (0,), (1,)),
    ((0, 2, 4), (2,), (2,), (0,), (1,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation"), WINDOWS)
def test_maxima_and_their_places(dtype: Any, shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> None:
    x = draw(shape, dtype, seed=1).round()  # with equal elements
    for ceil_mode, special in product((False, True), (None, np.nan, -np.inf)):
        if special is not None:
            x.reshape(-1)[:: 2 if special != special else 1] = special
        case: dict[str, Any] = {
            "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil_mode,
        }  # fmt: skip
        for found, wanted in zip(K.max_pool(x, **case), LAW.max_pool(x, **case)):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))
        agree(K.max_pool_values(x, **case), LAW.max_pool_values(x, **case), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "dilation"), [*WINDOWS, ((2, 9, 11), (3, 4), (1, 2), (1, 2), (3, 2))]
)
def test_gradients_of_maxima(dtype: Any, shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> None:
    case: dict[str, Any] = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    for ceil_mode, special in product((False, True), (None, -np.inf, np.nan)):
        x = draw(shape, dtype, seed=5).round()
        if special is not None:
            x.reshape(-1)[:: 1 if special < 0 else 3] = special
        _, at = LAW.max_pool(x, **case, ceil_mode=ceil_mode)
        g = draw(at.shape, dtype, seed=6)
        found = K.max_pool_window_grad(g, at, x_shape=shape, **case)
        agree(found, LAW.max_pool_window_grad(g, at, x_shape=shape, **case), dtype, 4)
        assert found.tobytes() == K.max_pool_window_grad(g, at, x_shape=shape, **case).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation"), WINDOWS)
def test_averages_and_their_gradient(
    dtype: Any, shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> None:
    x = draw(shape, dtype, seed=2)
    for ceil_mode, with_padding, divisor in product((False, True), (False, True), (None, 5)):
        case: dict[str, Any] = {
            "kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode,
            "count_include_pad": with_padding, "divisor_override": divisor,
        }  # fmt: skip
        out = K.avg_pool(x, **case)
        agree(out, LAW.avg_pool(x, **case), dtype, 4)
        g = draw(out.shape, dtype, seed=3)
        agree(K.avg_pool_grad(g, x_shape=shape, **case), LAW.avg_pool_grad(g, x_shape=shape, **case), dtype, 4)


def test_strided_input() -> None:
    x = draw((4, 5, 2, 3), np.float32, seed=4).transpose(3, 2, 0, 1)
    case: dict[str, Any] = {"kernel": (2, 2), "stride": (1, 1), "padding": (0, 0)}
    agree(K.avg_pool(x, **case), LAW.avg_pool(x, **case), np.float32)
    agree(K.max_pool(x, dilation=(1, 1), **case)[0], LAW.max_pool(x, dilation=(1, 1), **case)[0], np.float32)


def test_planes_that_are_too_large_for_int_go_to_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    from mortice_cuda_cupy.kernels import pool

    monkeypatch.setattr(pool, "_LARGE", 40)
    monkeypatch.setattr(pool, "_launch", lambda *args: pytest.fail("a kernel counts in int"))
    case: dict[str, Any] = {"kernel": (4,), "stride": (4,), "padding": (0,)}
    for x_shape in ((2, 40), (2, 41)):
        g = draw((2, 10), np.float32, seed=5)  # of few elements, as that of fewer windows than elements
        agree(K.avg_pool_grad(g, x_shape=x_shape, **case), LAW.avg_pool_grad(g, x_shape=x_shape, **case), np.float32)
        agree(K.avg_pool(draw(x_shape, np.float32, seed=6), **case), LAW.avg_pool(draw(x_shape, np.float32, seed=6), **case), np.float32)
