"""The random stream on the emulator: the bits of the core's default bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels_on_numpy import backends

from mortice.dtype import bfloat16, float16, float32, float64

K, LAW = backends()
DEVICE = LAW.device("cpu")
STREAMS = [(0, 0, (0,)), (1, 0, ()), (7, 3, (1,)), (2**64 - 1, 5, (17,)), (42, 2**40 + 2, (3, 341)), (9, 1, (1024,))]


def same(name: str, *args: Any, **attributes: Any) -> None:
    """Check that a draw gives the same bits."""
    found = getattr(K, name)(*args, device=DEVICE, **attributes)
    wanted = getattr(LAW, name)(*args, device=DEVICE, **attributes)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("seed", "offset", "shape"), STREAMS)
def test_draws_are_those_of_the_stream(seed: int, offset: int, shape: Any) -> None:
    same("random_bits", seed, offset, int(np.prod(shape)))
    for dtype in (float16, bfloat16, float32, float64):
        for name in ("random_uniform", "random_normal", "random_exponential"):
            same(name, seed, offset, shape, dtype=dtype)
    for low, high in ((0, 1), (-3, 10), (0, 2**32), (-(2**40), 2**52 + 1), (-(2**63), 2**63 - 1), (-(2**63), 2**63)):
        same("random_integers", seed, offset, low, high, shape)
    for p in (0.3, 0, 1, True, -0.5, 1.5, float("nan"), 1e-300, 1 - 2.0**-53):
        same("random_bernoulli", seed, offset, p, shape)


def test_a_probability_for_each_element() -> None:
    p = np.array([[0.0, 0.25, 1.0, -1.0], [2.0, np.nan, 1e-7, 0.9999]])
    for dtype in (float16, bfloat16, float32, float64):
        same("random_bernoulli", 3, 5, p.astype(LAW.native(dtype)), (2, 4))
        same("random_bernoulli", 3, 5, p[:1].astype(LAW.native(dtype)), (200, 4))
        same("random_bernoulli", 3, 5, np.array(0.4, LAW.native(dtype)), (3, 3))


def test_the_known_answer_of_the_generator() -> None:
    for seed in (0, 1, 2**63 + 5):
        np.testing.assert_array_equal(
            K.random_bits(seed, 0, 100, device=DEVICE), np.random.Philox(key=seed).random_raw(100)
        )
