"""LSTM and GRU layers on the emulator, against the core's default bodies."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest
from checks import DTYPES, agree, draw
from kernels_on_numpy import backends

K, LAW = backends()
SIZES = [(3, 3, 2, 1), (1,), (9, 6, 6, 2), (5, 5, 5), (2,) * 6]  # steps of one size go in one launch


def weights(dtype: Any, gates: int, features: int, hidden: int) -> list[Any]:
    """Return the weights of the input and of the state, and a bias for each."""
    shapes = [(gates * hidden, features), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,)]
    return [draw(shape, dtype, seed=20 + i, scale=0.5) for i, shape in enumerate(shapes)]


@pytest.fixture(params=["whole steps", "no room for all at once", "steps between products"])
def route(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one of the ways, whatever the size."""
    if request.param == "whole steps":  # whose blocks wait for each other
        monkeypatch.setenv("MORTICE_EMULATED_ORDER", "7")
    if request.param == "steps between products":
        monkeypatch.setattr("mortice_cuda_cupy.kernels.rnn._SMALL", 0)

    def refused(*given: Any) -> None:
        raise RuntimeError("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: too many blocks in cooperative launch")

    if request.param == "no room for all at once":
        monkeypatch.setattr("mortice_cuda_cupy.kernels.rnn._all_steps", defaultdict(lambda: lambda *same: refused))


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("dtype", DTYPES)
def test_lstm(dtype: Any) -> None:
    for i, (sizes, reverse, with_bias) in enumerate(product(SIZES, (False, True), (False, True))):
        units = 37 if i == 9 else 5  # more than a warp's lanes
        case: dict[str, Any] = {"batch_sizes": sizes, "reverse": reverse}
        x, h0, c0 = (draw(s, dtype, seed=j) for j, s in enumerate([(sum(sizes), 4), (sizes[0], units), (sizes[0], units)]))
        kept = [h0.copy(), c0.copy()]
        w_ih, w_hh, bias, _ = weights(dtype, 4, 4, units)
        bias = bias if with_bias else None
        made = K.lstm_layer(x, h0, c0, w_ih, w_hh, bias, **case)
        # A gate's number may be what 41 terms leave that cancel: its error is that of the largest, and BLAS's order decides it.
        agree(made, LAW.lstm_layer(x, h0, c0, w_ih, w_hh, bias, **case), dtype, 4, floor=0.05)
        g, g_h, g_c = (
            draw(s, dtype, seed=5 + j) for j, s in enumerate([(sum(sizes), units), (sizes[0], units), (sizes[0], units)])
        )
        kept += [g_h.copy(), g_c.copy()]
        given = (g, g_h, g_c, x, h0, c0, w_ih, w_hh, bias, None, made[0], made[3], made[4])
        agree(K.lstm_layer_grad(*given, **case), LAW.lstm_layer_grad(*given, **case), dtype, 4)
        assert all(np.array_equal(a, b) for a, b in zip((h0, c0, g_h, g_c), kept)), "inputs stay as they are"


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("dtype", DTYPES)
def test_gru(dtype: Any) -> None:
    for i, (sizes, reverse, with_bias) in enumerate(product(SIZES, (False, True), (False, True))):
        units = 37 if i == 9 else 5  # more than a warp's lanes
        case: dict[str, Any] = {"batch_sizes": sizes, "reverse": reverse}
        x, h0 = draw((sum(sizes), 4), dtype, seed=1), draw((sizes[0], units), dtype, seed=2)
        w_ih, w_hh, *biases = weights(dtype, 3, 4, units)
        b_ih, b_hh = biases if with_bias else (None, None)
        made = K.gru_layer(x, h0, w_ih, w_hh, b_ih, b_hh, **case)
        agree(made, LAW.gru_layer(x, h0, w_ih, w_hh, b_ih, b_hh, **case), dtype, 4)
        g, g_h = draw((sum(sizes), units), dtype, seed=3), draw((sizes[0], units), dtype, seed=4)
        kept = [h0.copy(), g_h.copy()]
        given = (g, g_h, x, h0, w_ih, w_hh, b_ih, b_hh, made[0], made[2])
        agree(K.gru_layer_grad(*given, **case), LAW.gru_layer_grad(*given, **case), dtype, 4)
        assert all(np.array_equal(a, b) for a, b in zip((h0, g_h), kept)), "inputs stay as they are"
