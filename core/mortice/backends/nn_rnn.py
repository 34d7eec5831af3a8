"""Recurrent layers, one direction of one layer at a time, with their gradients.

Rows lie step after step as in a packed sequence: `batch_sizes` has how many sequences each step has, never more than
the step before. A sequence that has ended (or, backwards, has not begun) keeps its state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, widen

Sizes = Sequence[int]


def layer_steps(batch_sizes: Sizes, reverse: bool) -> list[tuple[slice, int]]:
    """Return the rows of each step and how many they are, in the order in which the layer takes them."""
    steps = [(slice(end - n, end), n) for end, n in zip(accumulate(batch_sizes), batch_sizes)]
    return steps[::-1] if reverse else steps


class RecurrentKernels(KernelMixin):
    """FREE: x is (rows, features), states (batch_sizes[0], hidden), `w_ih` (gates * hidden, features), `w_hh`
    (gates * hidden, size of the output); biases (gates * hidden,) may be None.

    Gradient kernels take the gradients of the outputs and of the last states, and return those of the gates before
    their activations: what the weights and x get are products with these. What they may read of the forward's work comes
    last, and is computed again where it is None.
    """

    # ---- rnn: h = activation(W_ih x + W_hh h + b) ----

    def rnn_layer(
        self, x: Any, h0: Any, w_ih: Any, w_hh: Any, bias: Any = None, *, batch_sizes: Sizes, reverse: bool = False,
        activation: str = "tanh",
    ) -> tuple[Any, Any]:  # fmt: skip
        """Return (out, h_n); the activation is "tanh" or "relu"."""
        dtype = self.dtype_of(x)
        x, h, w_hh = _projected(self, x, w_ih, bias), widen(self, h0), widen(self, w_hh)
        act, w = (self.tanh if activation == "tanh" else self.relu), self.matrix_transpose(w_hh)
        outs = []
        for rows, n in layer_steps(batch_sizes, reverse):
            new = act(self.add(_rows(self, x, rows), self.matmul(_running(self, h, n), w)))
            outs.append(new)
            h = _with_running(self, h, new, n)
        return narrow(self, _in_time(self, outs, reverse), dtype), narrow(self, h, dtype)

    def rnn_layer_grad(
        self, g: Any, g_h: Any, w_hh: Any, out: Any, *, batch_sizes: Sizes, reverse: bool = False,
        activation: str = "tanh",
    ) -> tuple[Any, Any]:  # fmt: skip
        """Return the gradients of the sums before the activation, and of h0."""
        dtype = self.dtype_of(g)
        g, d_h, w_hh, out = _wide(self, g, g_h, w_hh, out)
        if activation == "tanh":
            slope = self.subtract(1, self.multiply(out, out))
        else:
            slope = self.astype(self.greater(out, 0), self.dtype_of(out))
        pulled = []
        for rows, n in reversed(layer_steps(batch_sizes, reverse)):
            d = self.multiply(self.add(_running(self, d_h, n), _rows(self, g, rows)), _rows(self, slope, rows))
            pulled.append(d)
            d_h = _with_running(self, d_h, self.matmul(d, w_hh), n)
        return narrow(self, _in_time(self, pulled, not reverse), dtype), narrow(self, d_h, dtype)

    # ---- lstm: gates i, f, g, o; c = f * c + i * g; h = o * tanh(c), projected by w_hr where there is one ----

    def lstm_layer(
        self, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any = None, w_hr: Any = None, *, batch_sizes: Sizes,
        reverse: bool = False,
    ) -> tuple[Any, Any, Any, Any, Any]:  # fmt: skip
        """Return (out, h_n, c_n, cells, gates): the last two are each row's c, and its four gates side by side."""
        dtype = self.dtype_of(x)
        x = _projected(self, x, w_ih, bias)
        h, c, w_hh, w_hr = _wide(self, h0, c0, w_hh, w_hr)
        w = self.matrix_transpose(w_hh)
        outs, cells, gates = [], [], []
        for rows, n in layer_steps(batch_sizes, reverse):
            i, f, g, o = _lstm_gates(self, self.add(_rows(self, x, rows), self.matmul(_running(self, h, n), w)))
            cell = self.add(self.multiply(f, _running(self, c, n)), self.multiply(i, g))
            new = self.multiply(o, self.tanh(cell))
            if w_hr is not None:
                new = self.matmul(new, self.matrix_transpose(w_hr))
            outs.append(new)
            cells.append(cell)
            gates.append(self.concat([i, f, g, o], axis=1))
            h, c = _with_running(self, h, new, n), _with_running(self, c, cell, n)
        made = (_in_time(self, outs, reverse), h, c, _in_time(self, cells, reverse), _in_time(self, gates, reverse))
        out, h, c, found, opened = (narrow(self, a, dtype) for a in made)
        return out, h, c, found, opened

    def lstm_layer_grad(
        self, g: Any, g_h: Any, g_c: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any, w_hr: Any, out: Any,
        cells: Any = None, gates: Any = None, *, batch_sizes: Sizes, reverse: bool = False,
    ) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        """Return the gradients of the gates before their activations, and of (h0, c0, w_hr)."""
        dtype = self.dtype_of(g)
        if gates is None:
            pre = _projected(self, x, w_ih, bias)
            before, w = _wide(self, states_before(self, h0, out, batch_sizes, reverse), w_hh)
            i, f, a, o = _lstm_gates(self, self.add(pre, self.matmul(before, self.matrix_transpose(w))))
        else:
            i, f, a, o = _split(self, widen(self, gates), 4)
        g, d_h, d_c, c0, w_hh, w_hr, cells = _wide(self, g, g_h, g_c, c0, w_hh, w_hr, cells)
        if cells is None:
            cells = _lstm_cells(self, c0, f, self.multiply(i, a), batch_sizes, reverse)
        t = self.tanh(cells)
        # What a gate (before its activation) gets for each unit of its cell's gradient, and of its hidden state's.
        of_i, of_f = _slope(self, i, a), _slope(self, f, states_before(self, c0, cells, batch_sizes, reverse))
        of_cell = (of_i, of_f, self.multiply(i, self.subtract(1, self.multiply(a, a))))
        of_hidden = _slope(self, o, t)
        into_cell = self.multiply(o, self.subtract(1, self.multiply(t, t)))
        pulled, projected = [], []
        for rows, n in reversed(layer_steps(batch_sizes, reverse)):
            new = self.add(_running(self, d_h, n), _rows(self, g, rows))
            if w_hr is not None:
                projected.append(new)
                new = self.matmul(new, w_hr)
            cell = self.add(_running(self, d_c, n), self.multiply(new, _rows(self, into_cell, rows)))
            d = [self.multiply(cell, _rows(self, part, rows)) for part in of_cell]
            pulled.append(self.concat([*d, self.multiply(new, _rows(self, of_hidden, rows))], axis=1))
            d_h = _with_running(self, d_h, self.matmul(pulled[-1], w_hh), n)
            d_c = _with_running(self, d_c, self.multiply(cell, _rows(self, f, rows)), n)
        d_hr = None
        if w_hr is not None:
            through = self.matrix_transpose(_in_time(self, projected, not reverse))
            d_hr = narrow(self, self.matmul(through, self.multiply(o, t)), dtype)
        made = (_in_time(self, pulled, not reverse), d_h, d_c)
        d_gates, d_h, d_c = (narrow(self, part, dtype) for part in made)
        return d_gates, d_h, d_c, d_hr

    # ---- gru: r, z = sigmoid(W_ih x + W_hh h); n = tanh(W_ih x + r * q) with q = W_hh h; h = (1 - z) * n + z * h ----

    def gru_layer(
        self, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, batch_sizes: Sizes,
        reverse: bool = False,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """Return (out, h_n, gates); the last are r, z, q and n of each row side by side."""
        dtype = self.dtype_of(x)
        x = _projected(self, x, w_ih, b_ih)
        h, w_hh, b_hh = _wide(self, h0, w_hh, b_hh)
        outs, gates = [], []
        for rows, n in layer_steps(batch_sizes, reverse):
            last = _running(self, h, n)
            gates.append(_gru_gates(self, _rows(self, x, rows), _projected(self, last, w_hh, b_hh)))
            _, z, _, candidate = _split(self, gates[-1], 4)
            outs.append(self.add(candidate, self.multiply(z, self.subtract(last, candidate))))
            h = _with_running(self, h, outs[-1], n)
        made = (_in_time(self, outs, reverse), h, _in_time(self, gates, reverse))
        out, h, opened = (narrow(self, a, dtype) for a in made)
        return out, h, opened

    def gru_layer_grad(
        self, g: Any, g_h: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, out: Any, gates: Any = None,
        *, batch_sizes: Sizes, reverse: bool = False,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """Return the gradients of W_ih x + b_ih, of W_hh h + b_hh, and of h0."""
        dtype = self.dtype_of(g)
        before = widen(self, states_before(self, h0, out, batch_sizes, reverse))
        if gates is None:
            gates = _gru_gates(self, _projected(self, x, w_ih, b_ih), _projected(self, before, w_hh, b_hh))
        g, d_h, w_hh, gates = _wide(self, g, g_h, w_hh, gates)
        r, z, q, n = _split(self, gates, 4)
        # What both sums get for each unit of the hidden state's gradient.
        of_n = self.multiply(self.subtract(1, z), self.subtract(1, self.multiply(n, n)))
        of_r, of_z = self.multiply(of_n, _slope(self, r, q)), _slope(self, z, self.subtract(before, n))
        parts = (of_r, of_z, self.multiply(of_n, r), of_n)
        pulled = []
        for rows, count in reversed(layer_steps(batch_sizes, reverse)):
            new = self.add(_running(self, d_h, count), _rows(self, g, rows))
            pulled.append([self.multiply(new, _rows(self, part, rows)) for part in parts])
            through = self.matmul(self.concat(pulled[-1][:3], axis=1), w_hh)
            d_h = _with_running(self, d_h, self.add(self.multiply(new, _rows(self, z, rows)), through), count)
        d_r, d_z, d_q, d_n = (_in_time(self, part, not reverse) for part in zip(*pulled))
        made = (self.concat([d_r, d_z, d_n], axis=1), self.concat([d_r, d_z, d_q], axis=1), d_h)
        d_input, d_hidden, d_h = (narrow(self, part, dtype) for part in made)
        return d_input, d_hidden, d_h


# ---- rows and states ----


def _rows(k: Any, x: Any, rows: slice) -> Any:
    return k.getitem(x, (rows,))


def _running(k: Any, state: Any, n: int) -> Any:
    """Return the states of the sequences that take part in a step: the first n."""
    return state if k.shape_of(state)[0] == n else k.getitem(state, (slice(0, n),))


def _with_running(k: Any, state: Any, new: Any, n: int) -> Any:
    """Return all states, those of the first n sequences anew."""
    return new if k.shape_of(state)[0] == n else k.concat([new, k.getitem(state, (slice(n, None),))], axis=0)


def _in_time(k: Any, pieces: Sequence[Any], backwards: bool) -> Any:
    """Join the steps' rows, given in the order that they were computed in."""
    return k.concat(list(pieces)[::-1] if backwards else list(pieces), axis=0)


def states_before(k: Any, first: Any, states: Any, batch_sizes: Sizes, reverse: bool) -> Any:
    """Return for each row the state that its sequence had before: the row a step earlier, or the first state."""
    pieces = _pieces(tuple(batch_sizes), reverse)
    return k.concat([_rows(k, states if known else first, slice(low, high)) for known, low, high in pieces], axis=0)


@lru_cache(256)  # lengths recur
def _pieces(batch_sizes: Sizes, reverse: bool) -> list[list[Any]]:
    steps: list[list[tuple[bool, int, int]]] = []
    start = last = 0
    for rows, n in layer_steps(batch_sizes, reverse):
        known = min(n, last)
        steps.append([(True, start, start + known), (False, known, n)])
        start, last = rows.start, n
    pieces: list[list[Any]] = []
    for step in steps[::-1] if reverse else steps:
        for source, low, high in step:
            if pieces and pieces[-1][0] is source and pieces[-1][2] == low:
                pieces[-1][2] = high
            elif high > low:
                pieces.append([source, low, high])
    return pieces or [[False, 0, 0]]  # a batch of nothing


# ---- gates ----


def _wide(k: Any, *arrays: Any) -> tuple[Any, ...]:
    return tuple([a if a is None else widen(k, a) for a in arrays])


def _projected(k: Any, x: Any, w: Any, bias: Any) -> Any:
    x, w, bias = _wide(k, x, w, bias)
    found = k.matmul(x, k.matrix_transpose(w))
    return found if bias is None else k.add(found, bias)


def _split(k: Any, x: Any, parts: int) -> list[Any]:
    size = k.shape_of(x)[1] // parts
    return [k.getitem(x, (slice(None), slice(i * size, (i + 1) * size))) for i in range(parts)]


def _slope(k: Any, gate: Any, factor: Any) -> Any:
    """Return factor times the slope of the sigmoid that gave the gate."""
    return k.multiply(factor, k.multiply(gate, k.subtract(1, gate)))


def _lstm_gates(k: Any, pre: Any) -> list[Any]:
    acts: list[Callable[[Any], Any]] = [k.sigmoid, k.sigmoid, k.tanh, k.sigmoid]
    return [act(part) for act, part in zip(acts, _split(k, pre, 4))]


def _lstm_cells(k: Any, c0: Any, f: Any, added: Any, batch_sizes: Sizes, reverse: bool) -> Any:
    cells, c = [], c0
    for rows, n in layer_steps(batch_sizes, reverse):
        cells.append(k.add(k.multiply(_rows(k, f, rows), _running(k, c, n)), _rows(k, added, rows)))
        c = _with_running(k, c, cells[-1], n)
    return _in_time(k, cells, reverse)


def _gru_gates(k: Any, of_x: Any, of_h: Any) -> Any:
    (x_r, x_z, x_n), (h_r, h_z, q) = _split(k, of_x, 3), _split(k, of_h, 3)
    r, z = k.sigmoid(k.add(x_r, h_r)), k.sigmoid(k.add(x_z, h_z))
    return k.concat([r, z, q, k.tanh(k.add(x_n, k.multiply(r, q)))], axis=1)
