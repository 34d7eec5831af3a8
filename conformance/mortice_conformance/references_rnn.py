"""References of the recurrent layers, one sequence after another, and of ctc_loss, by listing every alignment."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from mortice_conformance.references import log_softmax


def _sequences(batch_sizes: tuple[int, ...], reverse: bool) -> Iterator[tuple[int, list[int]]]:
    """Give each sequence's number and its rows in the order in which the layer takes them."""
    starts = np.cumsum((0, *batch_sizes[:-1]))
    for number in range(batch_sizes[0]):
        rows = [int(start) + number for start, n in zip(starts, batch_sizes) if n > number]
        yield number, rows[::-1] if reverse else rows


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def rnn_layer(
    x: Any, h0: Any, w_ih: Any, w_hh: Any, bias: Any = None, *, batch_sizes: Any, reverse: bool, activation: str
) -> Any:
    """Return (out, h_n)."""
    x = x @ w_ih.T
    act = np.tanh if activation == "tanh" else lambda a: np.maximum(a, 0)
    out, last = np.zeros((len(x), h0.shape[1]), x.dtype), np.array(h0)
    for number, rows in _sequences(batch_sizes, reverse):
        for row in rows:
            last[number] = out[row] = act(x[row] + w_hh @ last[number] + (0 if bias is None else bias))
    return out, last


def lstm_layer(
    x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any = None, w_hr: Any = None, *, batch_sizes: Any, reverse: bool
) -> Any:
    """Return (out, h_n, c_n, cells, gates)."""
    x = x @ w_ih.T
    out, cells = np.zeros((len(x), h0.shape[1]), x.dtype), np.zeros((len(x), c0.shape[1]), x.dtype)
    gates, h, c = np.zeros_like(x), np.array(h0), np.array(c0)
    for number, rows in _sequences(batch_sizes, reverse):
        for row in rows:
            i, f, g, o = np.split(x[row] + w_hh @ h[number] + (0 if bias is None else bias), 4)
            i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
            gates[row] = np.concatenate([i, f, g, o])
            c[number] = cells[row] = f * c[number] + i * g
            shown = o * np.tanh(c[number])
            h[number] = out[row] = shown if w_hr is None else w_hr @ shown
    return out, h, c, cells, gates


def gru_layer(
    x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, batch_sizes: Any, reverse: bool
) -> Any:
    """Return (out, h_n, gates)."""
    x = x @ w_ih.T
    size = h0.shape[1]
    out, gates, last = np.zeros((len(x), size), x.dtype), np.zeros((len(x), 4 * size), x.dtype), np.array(h0)
    for number, rows in _sequences(batch_sizes, reverse):
        for row in rows:
            own = x[row] + (0 if b_ih is None else b_ih)
            hidden = w_hh @ last[number] + (0 if b_hh is None else b_hh)
            r, z = np.split(_sigmoid(own[: 2 * size] + hidden[: 2 * size]), 2)
            q = hidden[2 * size :]
            n = np.tanh(own[2 * size :] + r * q)
            gates[row] = np.concatenate([r, z, q, n])
            last[number] = out[row] = (1 - z) * n + z * last[number]
    return out, last, gates


def ctc_loss(
    x: Any, labels: Any, input_lengths: Any, target_lengths: Any, *, blank: int, zero_infinity: bool
) -> Any:
    """Return the losses of logits: -log of the sum of the probabilities of all paths that collapse to the labels."""
    logp = log_softmax(x, 2)
    out = np.zeros(x.shape[1], x.dtype)
    for n in range(x.shape[1]):
        wanted = [int(c) for c in labels[n, : int(target_lengths[n])]]
        total = 0.0
        for path in itertools.product(range(x.shape[2]), repeat=int(input_lengths[n])):
            if [c for c, _ in itertools.groupby(path) if c != blank] == wanted:
                total += np.exp(sum(logp[t, n, c] for t, c in enumerate(path)))
        out[n] = -np.log(total) if total else 0 if zero_infinity else np.inf
    return out
