"""Recurrent layers step by step where the steps' rows lie: what is small stays in cache, what is big is made once."""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice.backends.nn_rnn import layer_steps
from mortice_cpu_numpy.nn_tools import FULL, silent


class RecurrentOverrides:
    """rnn_layer, lstm_layer, gru_layer and their gradients; half precision and empty batches go the default way."""

    @silent
    def rnn_layer(
        self, x: Any, h0: Any, w_ih: Any, w_hh: Any, bias: Any = None, *, batch_sizes: Any, reverse: bool = False,
        activation: str = "tanh",
    ) -> Any:  # fmt: skip
        if not _plain(x):
            attrs = {"batch_sizes": batch_sizes, "reverse": reverse, "activation": activation}
            return super().rnn_layer(x, h0, w_ih, w_hh, bias, **attrs)
        out, h, w = np.matmul(x, w_ih.T), np.array(h0), np.ascontiguousarray(w_hh.T)
        work = np.empty_like(h)
        for rows, n in layer_steps(batch_sizes, reverse):
            new = out[rows]
            np.add(new, _projected(h[:n], w, bias, work[:n]), out=new)
            if activation == "tanh":
                np.tanh(new, out=new)
            else:
                np.maximum(new, 0, out=new)
            h[:n] = new
        return out, h

    @silent
    def rnn_layer_grad(
        self, g: Any, g_h: Any, w_hh: Any, out: Any, *, batch_sizes: Any, reverse: bool = False, activation: str = "tanh"
    ) -> Any:
        if not _plain(out):
            attrs = {"batch_sizes": batch_sizes, "reverse": reverse, "activation": activation}
            return super().rnn_layer_grad(g, g_h, w_hh, out, **attrs)
        pulled, d_h = np.empty_like(out), np.array(g_h)
        for rows, n in reversed(layer_steps(batch_sizes, reverse)):
            d, now, new = pulled[rows], out[rows], d_h[:n]
            np.add(new, g[rows], out=new)
            if activation == "tanh":
                np.multiply(now, now, out=d)
                np.subtract(1, d, out=d)
                np.multiply(d, new, out=d)
            else:
                np.multiply(new, np.greater(now, 0), out=d)
            np.matmul(d, w_hh, out=new)
        return pulled, d_h

    @silent
    def lstm_layer(
        self, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any = None, w_hr: Any = None, *, batch_sizes: Any,
        reverse: bool = False,
    ) -> Any:  # fmt: skip
        if not _plain(x):
            return super().lstm_layer(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes=batch_sizes, reverse=reverse)
        size, w = c0.shape[1], np.ascontiguousarray(w_hh.T)
        h, c, gates = np.array(h0), np.array(c0), np.matmul(x, w_ih.T)
        out, cells = np.empty((x.shape[0], h0.shape[1]), x.dtype), np.empty((x.shape[0], size), x.dtype)
        work, inner = np.empty((h.shape[0], 4 * size), x.dtype), np.empty_like(c)
        for rows, n in layer_steps(batch_sizes, reverse):
            new, cell, t, pre, opened = h[:n], c[:n], inner[:n], work[:n], gates[rows]
            np.add(_projected(new, w, bias, pre), opened, out=pre)
            # The candidate is written over: one pass over all four is shorter than two beside it.
            _sigmoid(pre, opened)
            i, f, candidate, o = _parts(opened, 4)
            np.tanh(pre[:, 2 * size : 3 * size], out=candidate)
            np.multiply(cell, f, out=cell)
            np.multiply(i, candidate, out=t)
            np.add(cell, t, out=cell)
            cells[rows] = cell
            np.tanh(cell, out=t)
            if w_hr is None:
                np.multiply(t, o, out=new)
            else:
                np.matmul(np.multiply(t, o, out=t), w_hr.T, out=new)
            out[rows] = new
        return out, h, c, cells, gates

    @silent
    def lstm_layer_grad(
        self, g: Any, g_h: Any, g_c: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any, w_hr: Any, out: Any,
        cells: Any = None, gates: Any = None, *, batch_sizes: Any, reverse: bool = False,
    ) -> Any:  # fmt: skip
        if cells is None or gates is None or not _plain(gates):
            attrs = {"batch_sizes": batch_sizes, "reverse": reverse}
            return super().lstm_layer_grad(g, g_h, g_c, x, h0, c0, w_ih, w_hh, bias, w_hr, out, cells, gates, **attrs)
        size, steps = c0.shape[1], layer_steps(batch_sizes, reverse)
        pulled, d_h, d_c = np.empty_like(gates), np.array(g_h), np.array(g_c)
        tanhs, inner, factors = np.empty_like(d_c), np.empty_like(d_c), np.empty((len(d_c), 4 * size), d_c.dtype)
        if w_hr is not None:
            before_w, shown, unfolded = np.empty_like(out), np.empty_like(cells), np.empty_like(d_c)
        for j in range(len(steps) - 1, -1, -1):
            rows, n = steps[j]
            d, new, d_cell, t, part, opened = pulled[rows], d_h[:n], d_c[:n], tanhs[:n], inner[:n], gates[rows]
            i, f, candidate, o = _parts(opened, 4)
            np.add(new, g[rows], out=new)
            np.tanh(cells[rows], out=t)
            if w_hr is not None:
                before_w[rows] = new
                np.multiply(o, t, out=shown[rows])
                new = np.matmul(new, w_hr, out=unfolded[:n])
            # The hidden state's share of the cell: new * o * (1 - t * t).
            np.multiply(t, t, out=part)
            np.subtract(1, part, out=part)
            np.multiply(part, o, out=part)
            np.multiply(part, new, out=part)
            np.add(d_cell, part, out=d_cell)
            # Slopes: (1 - gate) * gate, and for the candidate 1 - c * c, which is (1 - c) * c + (1 - c).
            np.subtract(1, opened, out=d)
            np.subtract(1, candidate, out=part)
            np.multiply(d, opened, out=d)
            d_candidate = d[:, 2 * size : 3 * size]
            np.add(d_candidate, part, out=d_candidate)
            for_i, for_f, for_candidate, for_o = _parts(factors[:n], 4)
            np.multiply(candidate, d_cell, out=for_i)
            np.multiply(_before(c0, cells, steps, j), d_cell, out=for_f)
            np.multiply(i, d_cell, out=for_candidate)
            np.multiply(t, new, out=for_o)
            np.multiply(d, factors[:n], out=d)
            np.multiply(d_cell, f, out=d_cell)
            np.matmul(d, w_hh, out=d_h[:n])
        return pulled, d_h, d_c, None if w_hr is None else before_w.T @ shown

    @silent
    def gru_layer(
        self, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, batch_sizes: Any,
        reverse: bool = False,
    ) -> Any:  # fmt: skip
        if not _plain(x):
            return super().gru_layer(x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes=batch_sizes, reverse=reverse)
        size, w = h0.shape[1], np.ascontiguousarray(w_hh.T)
        x, h = np.matmul(x, w_ih.T), np.array(h0)
        out, gates = np.empty((len(x), size), x.dtype), np.empty((len(x), 4 * size), x.dtype)
        hidden, given = np.empty((2, len(h), 3 * size), x.dtype)
        both, inner = np.empty((len(h), 2 * size), x.dtype), np.empty_like(h)
        for rows, n in layer_steps(batch_sizes, reverse):
            last, t, r_z, moved, own = h[:n], inner[:n], both[:n], _projected(h[:n], w, b_hh, hidden[:n]), x[rows]
            if b_ih is not None:
                own = np.add(own, b_ih, out=given[:n])
            _sigmoid(np.add(moved[:, : 2 * size], own[:, : 2 * size], out=r_z), r_z)
            _, _, q, candidate = _parts(gates[rows], 4)
            gates[rows, : 2 * size] = r_z
            q[...] = moved[:, 2 * size :]
            np.multiply(r_z[:, :size], q, out=t)
            np.add(t, own[:, 2 * size :], out=t)
            np.tanh(t, out=t)
            candidate[...] = t
            np.subtract(last, t, out=last)
            np.multiply(last, r_z[:, size:], out=last)
            np.add(last, t, out=last)
            out[rows] = last
        return out, h, gates

    @silent
    def gru_layer_grad(
        self, g: Any, g_h: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, out: Any, gates: Any = None,
        *, batch_sizes: Any, reverse: bool = False,
    ) -> Any:  # fmt: skip
        if gates is None or not _plain(gates):
            attrs = {"batch_sizes": batch_sizes, "reverse": reverse}
            return super().gru_layer_grad(g, g_h, x, h0, w_ih, w_hh, b_ih, b_hh, out, gates, **attrs)
        size, steps = h0.shape[1], layer_steps(batch_sizes, reverse)
        d_h, (d_input, d_hidden) = np.array(g_h), np.empty((2, len(gates), 3 * size), gates.dtype)
        inner, through = np.empty_like(d_h), np.empty_like(d_h)
        for j in range(len(steps) - 1, -1, -1):
            rows, n = steps[j]
            d, new, t = d_hidden[rows], d_h[:n], inner[:n]
            r, z, q, candidate = _parts(gates[rows], 4)
            d_r, d_z, d_q = _parts(d, 3)
            np.add(new, g[rows], out=new)
            np.subtract(1, gates[rows, : 2 * size], out=d[:, : 2 * size])
            # Of the candidate: new * (1 - z) * (1 - n * n).
            np.multiply(candidate, candidate, out=t)
            np.subtract(1, t, out=t)
            np.multiply(t, d_z, out=t)
            np.multiply(t, new, out=t)
            d_input[rows, 2 * size :] = t
            np.multiply(t, r, out=d_q)
            np.multiply(d_r, d_q, out=d_r)
            np.multiply(d_r, q, out=d_r)
            # Of z: new * (h - n) * (1 - z) * z.
            np.multiply(new, z, out=new)
            np.subtract(_before(h0, out, steps, j), candidate, out=t)
            np.multiply(t, new, out=t)
            np.multiply(d_z, t, out=d_z)
            np.add(new, np.matmul(d, w_hh, out=through[:n]), out=new)
        d_input[:, : 2 * size] = d_hidden[:, : 2 * size]
        return d_input, d_hidden, d_h


def _plain(x: Any) -> bool:
    return x.dtype in FULL and x.size > 0


def _parts(x: Any, count: int) -> list[Any]:
    size = x.shape[1] // count
    return [x[:, i * size : (i + 1) * size] for i in range(count)]


def _projected(h: Any, w: Any, bias: Any, out: Any) -> Any:
    np.matmul(h, w, out=out)
    return out if bias is None else np.add(out, bias, out=out)


def _sigmoid(x: Any, out: Any) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.divide(1, out, out=out)


def _before(first: Any, states: Any, steps: Any, j: int) -> Any:
    """Return what the states of step j were before it."""
    n = steps[j][1]
    if j == 0:
        return first[:n]
    rows, known = steps[j - 1]
    return states[rows][:n] if n <= known else np.concatenate([states[rows], first[known:n]])
