"""Activations and dropout on the emulator, against the core's default bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import DTYPES, agree, draw
from kernels_on_numpy import backends

K, LAW = backends()
ELU = {"alpha": 1.5, "scale": 1.25, "input_scale": 0.75}
SOFTPLUS = {"beta": 1.5, "threshold": 3.0}
OF_X: dict[str, list[dict[str, Any]]] = {
    "leaky_relu": [{"slope": 0.01}], "hardsigmoid": [{}], "hardswish": [{}], "elu": [ELU], "sigmoid": [{}],
    "logsigmoid": [{}], "softplus": [SOFTPLUS], "mish": [{}], "silu": [{}],
    "gelu": [{}, {"approximate": "tanh"}],
}  # fmt: skip
OF_G: dict[str, list[dict[str, Any]]] = {
    "relu_grad": [{}], "hardtanh_grad": [{"low": -0.5, "high": 1.0}], "sigmoid_grad": [{}], "tanh_grad": [{}],
    **{f"{name}_grad": cases for name, cases in OF_X.items() if name != "sigmoid"},
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 20.0, -20.0, 200.0, -200.0, np.inf, -np.inf, np.nan]


def inputs(dtype: Any) -> list[Any]:
    """Return empty, single, vectors' worth and odd sizes, a strided view, a view off the 16-byte grid, and edge cases."""
    x = draw((1031,), dtype, seed=4, scale=3)
    shapes = [x[:0], x[:1], x[:64], x, x[1:], x[::-2], x[:1030].reshape(103, 10).T, np.array(x[0])]
    return [*shapes, np.array(SPECIAL, dtype)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_agree(dtype: Any) -> None:
    for name, cases in OF_X.items():
        for attributes in cases:
            for x in inputs(dtype):
                with np.errstate(all="ignore"):
                    wanted = getattr(LAW, name)(x, **attributes)
                agree(getattr(K, name)(x, **attributes), wanted, dtype, 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_agree(dtype: Any) -> None:
    for name, cases in OF_G.items():
        for attributes in cases:
            for x in inputs(dtype):
                if name in ("sigmoid_grad", "tanh_grad"):
                    x = np.array(np.clip(x, 0, 1))
                g = draw(x.shape, dtype, seed=5)
                with np.errstate(all="ignore"):
                    wanted = getattr(LAW, name)(g, x, **attributes)
                agree(getattr(K, name)(g, x, **attributes), wanted, dtype, 20)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_agrees(dtype: Any) -> None:
    for x in inputs(dtype)[:-1]:
        keep = np.random.default_rng(6).random(x.shape) < 0.7
        for p in (0.3, 0.0, 1.0):
            np.testing.assert_array_equal(K.dropout(x, np.asarray(keep), p=p), LAW.dropout(x, keep, p=p))


def test_other_operands_go_to_the_default_body() -> None:
    g, x = draw((4, 3), np.float32, seed=7), draw((3,), np.float32, seed=8)
    agree(K.tanh_grad(g, x), LAW.tanh_grad(g, x), np.float32)
    whole = np.arange(-3, 4)
    np.testing.assert_array_equal(K.leaky_relu(whole, slope=2), LAW.leaky_relu(whole, slope=2))
