"""LSTM and GRU layers.

All steps are one launch where the device runs as many warps at a time as a step needs, and sequences have one length. A step is one launch
where states are small, else one product and one launch for what lies between two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, widen
from mortice.backends.nn_rnn import layer_steps, states_before
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    MAX_BLOCKS,
    Plans,
    Program,
    empty,
    float32,
    float64,
    launcher,
    over_elements,
    together_at_most,
)

RNN = Program(
    "rnn.cu",
    *[f"{layer}_{steps}{grad}<{{T}}>" for layer in ("lstm", "gru") for steps in ("step", "whole_step", "all_steps")
      for grad in ("", "_grad")],
    types=(float32, float64),
)  # fmt: skip
UINT32 = np.dtype(np.uint32)
_SMALL = 1 << 22  # rows times units squared, up to which a step without cuBLAS takes no longer than one with it
Sizes = Sequence[int]


class RecurrentKernels(KernelMixin):
    """Half precision is computed in float32 throughout, as the core's bodies do."""

    def lstm_layer(
        self, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any = None, w_hr: Any = None, *, batch_sizes: Sizes,
        reverse: bool = False,
    ) -> tuple[Any, Any, Any, Any, Any]:  # fmt: skip
        dtype = self.dtype_of(x)
        if w_hr is not None or dtype not in FLOATS:
            numbers: dict[str, Any] = {"batch_sizes": batch_sizes, "reverse": reverse}
            return NamespaceBackend.lstm_layer(self, x, h0, c0, w_ih, w_hh, bias, w_hr, **numbers)  # type: ignore[no-any-return]
        of_x, c, steps = _projected(self, x, w_ih, bias), _state(self, c0), layer_steps(batch_sizes, reverse)
        rows, hidden = x.shape[0], h0.shape[1]
        out, cells, gates = (empty((rows, n * hidden), c.dtype) for n in (1, 1, 4))
        if _small(h0):
            h = _whole_steps(self, "lstm", steps, h0, w_hh, of_x, c, out, cells, gates)
        else:
            h, w, of_h = _state(self, h0), self.matrix_transpose(widen(self, w_hh)), empty((h0.shape[0], 4 * hidden), c.dtype)
            for at, n in steps:
                self.product_into(_first(of_h, n), _first(h, n), w)
                _step(self, "lstm_step<{T}>", at, n, hidden, of_x, of_h, h, c, out, cells, gates)
        return tuple([narrow(self, a, dtype) for a in (out, h, c, cells, gates)])  # type: ignore[return-value]

    def lstm_layer_grad(
        self, g: Any, g_h: Any, g_c: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any, w_hr: Any, out: Any,
        cells: Any = None, gates: Any = None, *, batch_sizes: Sizes, reverse: bool = False,
    ) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        dtype = self.dtype_of(g)
        if w_hr is not None or cells is None or gates is None or dtype not in FLOATS:
            numbers: dict[str, Any] = {"batch_sizes": batch_sizes, "reverse": reverse}
            return NamespaceBackend.lstm_layer_grad(  # type: ignore[no-any-return]
                self, g, g_h, g_c, x, h0, c0, w_ih, w_hh, bias, w_hr, out, cells, gates, **numbers
            )
        d_h, d_c, w = _state(self, g_h), _state(self, g_c), widen(self, w_hh)
        g, gates, cells, c0 = (contiguous(widen(self, a)) for a in (g, gates, cells, c0))
        before, hidden = contiguous(states_before(self, c0, cells, batch_sizes, reverse)), d_h.shape[1]
        d_gates, steps = empty(gates.shape, gates.dtype), layer_steps(batch_sizes, reverse)[::-1]
        if small := _small(d_h):
            _whole_steps_grad(self, "lstm", steps, w, g, d_h, d_c, gates, cells, before, d_gates)
        for at, n in steps[-1:] if small else steps:
            if not small:
                _step(self, "lstm_step_grad<{T}>", at, n, hidden, g, d_h, d_c, gates, cells, before, d_gates)
            self.product_into(_first(d_h, n), d_gates[at], w)
        d_gates, d_h, d_c = (narrow(self, a, dtype) for a in (d_gates, d_h, d_c))
        return d_gates, d_h, d_c, None

    def gru_layer(
        self, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, batch_sizes: Sizes,
        reverse: bool = False,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        dtype = self.dtype_of(x)
        if dtype not in FLOATS:
            numbers: dict[str, Any] = {"batch_sizes": batch_sizes, "reverse": reverse}
            return NamespaceBackend.gru_layer(self, x, h0, w_ih, w_hh, b_ih, b_hh, **numbers)  # type: ignore[no-any-return]
        of_x, bias = _projected(self, x, w_ih, b_ih), None if b_hh is None else contiguous(widen(self, b_hh))
        rows, hidden, steps = x.shape[0], h0.shape[1], layer_steps(batch_sizes, reverse)
        out, gates = empty((rows, hidden), of_x.dtype), empty((rows, 4 * hidden), of_x.dtype)
        if _small(h0):
            h = _whole_steps(self, "gru", steps, h0, w_hh, of_x, bias, out, gates)
        else:
            h, w, of_h = _state(self, h0), self.matrix_transpose(widen(self, w_hh)), empty((h0.shape[0], 3 * hidden), of_x.dtype)
            for at, n in steps:
                self.product_into(_first(of_h, n), _first(h, n), w)
                _step(self, "gru_step<{T}>", at, n, hidden, of_x, of_h, bias, h, out, gates)
        return tuple([narrow(self, a, dtype) for a in (out, h, gates)])  # type: ignore[return-value]

    def gru_layer_grad(
        self, g: Any, g_h: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, out: Any, gates: Any = None,
        *, batch_sizes: Sizes, reverse: bool = False,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        dtype = self.dtype_of(g)
        if gates is None or dtype not in FLOATS:
            numbers: dict[str, Any] = {"batch_sizes": batch_sizes, "reverse": reverse}
            return NamespaceBackend.gru_layer_grad(  # type: ignore[no-any-return]
                self, g, g_h, x, h0, w_ih, w_hh, b_ih, b_hh, out, gates, **numbers
            )
        before = contiguous(widen(self, states_before(self, h0, out, batch_sizes, reverse)))
        d_h, w = _state(self, g_h), widen(self, w_hh)
        g, gates = contiguous(widen(self, g)), contiguous(widen(self, gates))
        rows, hidden = g.shape
        d_input, d_hidden = (empty((rows, 3 * hidden), g.dtype) for _ in range(2))
        steps = layer_steps(batch_sizes, reverse)[::-1]
        if small := _small(d_h):
            _whole_steps_grad(self, "gru", steps, w, g, d_h, gates, before, d_input, d_hidden)
        for at, n in steps[-1:] if small else steps:
            if not small:
                _step(self, "gru_step_grad<{T}>", at, n, hidden, g, d_h, gates, before, d_input, d_hidden)
            self.product_into(_first(d_h, n), d_hidden[at], w, add=True)
        return tuple([narrow(self, a, dtype) for a in (d_input, d_hidden, d_h)])  # type: ignore[return-value]


def _projected(k: Any, x: Any, w: Any, bias: Any) -> Any:
    return contiguous(k.linear(widen(k, x), widen(k, w), None if bias is None else widen(k, bias)))


def _state(k: Any, x: Any) -> Any:
    """Return a state that may be written in place."""
    wide = widen(k, x)
    return contiguous(k.copy(x) if wide is x else wide)


def _first(x: Any, n: int) -> Any:
    return x if x.shape[0] == n else x[:n]


def _step(k: Any, kernel: str, at: slice, n: int, hidden: int, *arrays: Any) -> None:
    """Launch a step for the rows `at` of what lies in order of time."""
    if n * hidden:
        RNN.get(k.dtype_of(arrays[0]), kernel)(*over_elements(n * hidden), (*arrays, int(at.start), int(n), int(hidden)))


def _small(h: Any) -> bool:
    return 0 < h.size * h.shape[1] <= _SMALL  # type: ignore[no-any-return]


def _whole_steps(k: Any, layer: str, steps: Any, h0: Any, w_hh: Any, *arrays: Any) -> Any:
    """Launch each step with its product; return the last state. Two take turns: all of one is read for each unit of the other."""
    h, w = contiguous(widen(k, h0)), contiguous(widen(k, w_hh))
    states, dtype = [empty(h.shape, h.dtype) for _ in range(2)], k.dtype_of(h)
    takes = f"{'s' * (len(arrays) + 1)}xx"
    if _at_once(steps, h.shape):
        launch = _all_steps[dtype, f"{layer}_all_steps<{{T}}>", f"{takes}xx", h.shape](w, *arrays)
        if _launched(launch, h, *states, *_course(steps)):
            return states[1 - len(steps) % 2]
    launch = _series[dtype, f"{layer}_whole_step<{{T}}>", f"{takes}ii==", h.shape](w, *arrays)
    for at, n in steps:
        launch(h, states[0], at.start, n)
        h, states = states[0], [states[1], states[0]]
    return h if steps else k.copy(h)


def _whole_steps_grad(k: Any, layer: str, steps: Any, w_hh: Any, g: Any, d_h: Any, *arrays: Any) -> None:
    """Launch each step behind the product of the one before; that of the last is left."""
    w, hidden, last, late = contiguous(k.matrix_transpose(w_hh)), d_h.shape[1], 0, 0
    dtype, takes = k.dtype_of(d_h), "s" * (len(arrays) + 3)
    if _at_once(steps, d_h.shape):
        launch = _all_steps[dtype, f"{layer}_all_steps_grad<{{T}}>", f"{takes}x", d_h.shape](w, g, d_h, *arrays)
        if _launched(launch, *_course(steps)):
            return
    launches: dict[int, Any] = {}  # by rows
    for at, n in steps:
        rows = max(n, late)
        if rows not in launches:
            launches[rows] = _series[dtype, f"{layer}_whole_step_grad<{{T}}>", f"{takes}iiii=", (rows, hidden)](w, g, d_h, *arrays)
        launches[rows](at.start, n, last, late)
        last, late = at.start, n


_UNITS = 8  # units of four rows that a block has: a warp each


def _units(shape: tuple[int, int]) -> int:
    rows, hidden = shape
    return -(-rows // 4) * hidden


def _whole(dtype: Any, kernel: str, takes: str, shape: tuple[int, int]) -> Any:
    """Return launches of whole steps."""
    grid = (min(-(-_units(shape) // _UNITS), MAX_BLOCKS),)
    return launcher(RNN.get(dtype, kernel), grid, (32, _UNITS), takes, *shape[-takes.count("=") :])


def _all(dtype: Any, kernel: str, takes: str, shape: tuple[int, int]) -> Any:
    """Return launches of all steps, whose blocks wait for each other."""
    return launcher(RNN.get(dtype, kernel), (-(-_units(shape) // _UNITS),), (32, _UNITS), f"{takes}iii==", *shape, together=True)


def _at_once(steps: Any, shape: tuple[int, int]) -> bool:
    """Tell whether all blocks of a step have room on the device at a time, and all steps the same rows."""
    return len(steps) > 1 and steps[0][1] == steps[-1][1] and _units(shape) <= _UNITS * together_at_most()


def _launched(launch: Any, *given: Any) -> bool:
    """Launch blocks that wait for each other; return whether there was room for them, as where others share the device there may not be."""
    try:
        launch(*given)
    except RuntimeError as error:
        if "COOPERATIVE_LAUNCH" not in str(error):
            raise
        return False
    return True


def _course(steps: Any) -> tuple[Any, int, int, int]:
    """Return a count of blocks that have arrived, of none; how many steps there are; where the first begins, and the next one after it."""
    arrived = empty((1,), UINT32)
    arrived.fill(0)
    return arrived, len(steps), steps[0][0].start, steps[1][0].start - steps[0][0].start


_series, _all_steps = Plans(_whole), Plans(_all)
