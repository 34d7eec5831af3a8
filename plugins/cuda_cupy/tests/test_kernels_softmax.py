"""softmax and log_softmax on the emulator, against the core's default bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import DTYPES, agree, draw
from kernels_on_numpy import backends

K, LAW = backends()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 5), 1), ((1,), 0), ((2, 1025), -1), ((9, 64), 1), ((3, 7, 5), 1), ((40, 33), 0), ((4, 0), 1)],
)
def test_values_and_gradients_agree(dtype: Any, shape: Any, axis: int) -> None:
    x, g = draw(shape, dtype, seed=1, scale=4), draw(shape, dtype, seed=2)
    for name in ("softmax", "log_softmax"):
        out = getattr(K, name)(x, axis=axis)
        agree(out, getattr(LAW, name)(x, axis=axis), dtype)
        agree(getattr(K, name + "_grad")(g, out, axis=axis), getattr(LAW, name + "_grad")(g, out, axis=axis), dtype, 4)


def test_a_strided_input_is_read_in_its_order() -> None:
    x = draw((6, 10, 4), np.float32, seed=3)
    for view in (x.transpose(2, 0, 1), x[::2, ::-1], x[:, 1:]):
        agree(K.softmax(view, axis=1), LAW.softmax(view, axis=1), np.float32)


def test_infinities_and_nan_are_those_of_the_definition() -> None:
    rows = np.array([[0, -np.inf, 1], [np.inf, 0, 0], [-np.inf] * 3, [np.nan, 0, 1], [1e30, -1e30, 0]], np.float32)
    for axis, x in ((1, rows), (0, np.ascontiguousarray(rows.T))):
        for name in ("softmax", "log_softmax"):
            agree(getattr(K, name)(x, axis=axis), getattr(LAW, name)(x, axis=axis), np.float32)
