"""LSTM and GRU layers: a step is one product and one launch for all that lies between two products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends import NamespaceBackend
from mortice.backends.kernels import KernelMixin
from mortice.backends.nn_common import narrow, widen
from mortice.backends.nn_rnn import layer_steps, states_before
from mortice_cuda_cupy.kernels.launch import FLOATS, Program, contiguous, empty, float32, float64, over_elements

RNN = Program(
    "rnn.cu", "lstm_step<{T}>", "lstm_step_grad<{T}>", "gru_step<{T}>", "gru_step_grad<{T}>", types=(float32, float64)
)
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
        of_x, w = _projected(self, x, w_ih, bias), self.matrix_transpose(widen(self, w_hh))
        h, c = _state(self, h0), _state(self, c0)
        rows, hidden = x.shape[0], h.shape[1]
        out, cells, gates = (empty((rows, n * hidden), h.dtype) for n in (1, 1, 4))
        of_h = empty((h.shape[0], 4 * hidden), h.dtype)
        for at, n in layer_steps(batch_sizes, reverse):
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
        d_gates = empty(gates.shape, gates.dtype)
        for at, n in reversed(layer_steps(batch_sizes, reverse)):
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
        of_x, w = _projected(self, x, w_ih, b_ih), self.matrix_transpose(widen(self, w_hh))
        h, bias = _state(self, h0), None if b_hh is None else contiguous(widen(self, b_hh))
        rows, hidden = x.shape[0], h.shape[1]
        out, gates = empty((rows, hidden), h.dtype), empty((rows, 4 * hidden), h.dtype)
        of_h = empty((h.shape[0], 3 * hidden), h.dtype)
        for at, n in layer_steps(batch_sizes, reverse):
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
        for at, n in reversed(layer_steps(batch_sizes, reverse)):
            _step(self, "gru_step_grad<{T}>", at, n, hidden, g, d_h, gates, before, d_input, d_hidden)
            self.product_into(_first(d_h, n), d_hidden[at], w, add=True)
        return tuple([narrow(self, a, dtype) for a in (d_input, d_hidden, d_h)])  # type: ignore[return-value]


def _projected(k: Any, x: Any, w: Any, bias: Any) -> Any:
    found = k.matmul(widen(k, x), k.matrix_transpose(widen(k, w)))
    return contiguous(found if bias is None else k.add(found, widen(k, bias)))


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
