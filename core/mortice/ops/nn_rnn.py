"""Recurrent layers and cells: rnn, lstm and gru over padded or packed sequences (torch's `torch._VF`).

One op is one direction of one layer over the whole sequence; layers, directions, dropout and cells are made of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends.nn_rnn import RecurrentKernels, states_before
from mortice.call import no_tensor
from mortice.dtype import DType
from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.node import TENSOR_KERNELS, named
from mortice.op import Op, op
from mortice.ops.joining import cat, stack
from mortice.ops.movement import reshape, unsqueeze
from mortice.ops.nn_activation import dropout
from mortice.ops.views import select, transpose
from mortice.shape import Size
from mortice.tensor import TensorBase

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

# ---- the ops: the rows of x are steps of `batch_sizes` sequences each, one after the other ----


def _all_same(op: Op, d: DType) -> tuple[DType, Any]:
    return d, (d,) * len(op.outputs)


def _product(k: Any, d: Any, x: Any, needed: bool) -> Any:
    """Return the gradient of W in x W^T, where it is asked for."""
    return k.matmul(k.matrix_transpose(d), x) if needed else None


def _total(k: Any, d: Any, needed: bool) -> Any:
    """Return the gradient of a bias, where it is asked for."""
    return k.sum(d, axis=0) if needed else None


def _rnn_shapes(name: str, x: Size, h0: Size, *rest: Any, **attrs: Any) -> Any:
    return Size((x[0], h0[1])), h0


@op(result=_all_same, shape=_rnn_shapes, kernel="rnn_layer", name="rnn_layer", dtypes="f", outputs=("out", "h_n"))
def _rnn_layer(
    k: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, bias: Any = None, /, *, batch_sizes: Sequence[int], reverse: bool,
    activation: str,
) -> Any:  # fmt: skip
    """Run h = activation(W_ih x + W_hh h + b) through sequences; return every h and the last ones."""


def _rnn_back(
    k: Any, g: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, out: Any, batch_sizes: Any, reverse: bool, activation: str,
    needs: Any,
) -> Any:  # fmt: skip
    d, d_h = k.rnn_layer_grad(*g, w_hh, out, batch_sizes=batch_sizes, reverse=reverse, activation=activation)
    before = states_before(k, h0, out, batch_sizes, reverse) if needs[3] else None
    d_x = k.matmul(d, w_ih) if needs[0] else None
    return d_x, d_h, _product(k, d, x, needs[2]), _product(k, d, before, needs[3]), _total(k, d, needs[4])


_rnn_layer.vjp(_rnn_back)


def _lstm_shapes(name: str, x: Size, h0: Size, c0: Size, *rest: Any, **attrs: Any) -> Any:
    return Size((x[0], h0[1])), h0, c0, Size((x[0], c0[1])), Size((x[0], 4 * c0[1]))


@op(
    result=_all_same, shape=_lstm_shapes, kernel="lstm_layer", name="lstm_layer", dtypes="f",
    outputs=("out", "h_n", "c_n", "cells", "gates"), differentiable=3,
)  # fmt: skip
def _lstm_layer(
    k: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any = None, w_hr: Any = None, /, *,
    batch_sizes: Sequence[int], reverse: bool,
) -> Any:  # fmt: skip
    """Run an LSTM through sequences; return every h, the last h and c, and what backward reads."""


def _lstm_back(
    k: Any, g: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, bias: Any, w_hr: Any, out: Any, cells: Any,
    gates: Any, batch_sizes: Any, reverse: bool, needs: Any,
) -> Any:  # fmt: skip
    d, d_h, d_c, d_hr = k.lstm_layer_grad(
        *g, x, h0, c0, w_ih, w_hh, bias, w_hr, out, cells, gates, batch_sizes=batch_sizes, reverse=reverse
    )
    before = states_before(k, h0, out, batch_sizes, reverse) if needs[4] else None
    d_w, d_hh = _product(k, d, x, needs[3]), _product(k, d, before, needs[4])
    return k.matmul(d, w_ih) if needs[0] else None, d_h, d_c, d_w, d_hh, _total(k, d, needs[5]), d_hr


_lstm_layer.vjp(_lstm_back)


def _gru_shapes(name: str, x: Size, h0: Size, *rest: Any, **attrs: Any) -> Any:
    return Size((x[0], h0[1])), h0, Size((x[0], 4 * h0[1]))


@op(
    result=_all_same, shape=_gru_shapes, kernel="gru_layer", name="gru_layer", dtypes="f",
    outputs=("out", "h_n", "gates"), differentiable=2,
)  # fmt: skip
def _gru_layer(
    k: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, /, *, batch_sizes: Sequence[int],
    reverse: bool,
) -> Any:  # fmt: skip
    """Run a GRU through sequences; return every h, the last ones, and what backward reads."""


def _gru_back(
    k: Any, g: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, out: Any, gates: Any, batch_sizes: Any,
    reverse: bool, needs: Any,
) -> Any:  # fmt: skip
    d, d_hidden, d_h = k.gru_layer_grad(
        *g, x, h0, w_ih, w_hh, b_ih, b_hh, out, gates, batch_sizes=batch_sizes, reverse=reverse
    )
    before = states_before(k, h0, out, batch_sizes, reverse) if needs[3] else None
    d_w, d_hh = _product(k, d, x, needs[2]), _product(k, d_hidden, before, needs[3])
    return k.matmul(d, w_ih) if needs[0] else None, d_h, d_w, d_hh, _total(k, d, needs[4]), _total(k, d_hidden, needs[5])


_gru_layer.vjp(_gru_back)


# On Tensors the gates and cells are computed again from x and `out`, which is in the graph: theirs have no gradient.
def _lstm_layer_grad(*operands: Any, **attrs: Any) -> Any:
    return RecurrentKernels.lstm_layer_grad(TENSOR_KERNELS, *operands[:11], **attrs)


def _gru_layer_grad(*operands: Any, **attrs: Any) -> Any:
    return RecurrentKernels.gru_layer_grad(TENSOR_KERNELS, *operands[:9], **attrs)


TENSOR_KERNELS.replace("lstm_layer_grad", _lstm_layer_grad)
TENSOR_KERNELS.replace("gru_layer_grad", _gru_layer_grad)


# ---- a layer, and a stack of them ----


def _layer(name: str, x: Any, state: Sequence[Any], params: Sequence[Any], sizes: Any, reverse: bool) -> Sequence[Any]:
    """Run one direction of a layer; return (out, h_n) or (out, h_n, c_n). Params: w_ih, w_hh, b_ih, b_hh, w_hr."""
    w_ih, w_hh, b_ih, b_hh, w_hr = params
    hidden, size, gates = w_hh.shape[0] // _GATES[name], w_hh.shape[1], tuple(w_hh.shape)[:1]
    _expect(name, "weight_ih", w_ih, (*gates, x.shape[1]))
    for what, bias in (("bias_ih", b_ih), ("bias_hh", b_hh)):
        _expect(name, what, bias, gates)
    _expect(name, "weight_hr", w_hr, (size, hidden))
    _expect(name, "weight_hh", w_hh, (_GATES[name] * hidden, hidden if w_hr is None else size))
    for what, s, width in zip(("hidden state", "cell state"), state, (size, hidden)):
        _expect(name, what, s, (sizes[0], width))
    for what, t in (("weights", w_hh), ("hidden state", state[0]), ("cell state", state[-1])):
        if t.dtype is not x.dtype:
            raise DTypeError(f"{name}: expected {what} of the input's dtype {x.dtype}; got {t.dtype}. Use .to({x.dtype}).")
    attrs = {"batch_sizes": sizes, "reverse": reverse}
    if name == "gru":
        return _gru_layer(x, *state, w_ih, w_hh, b_ih, b_hh, **attrs)
    bias = b_ih if b_hh is None else b_ih + b_hh
    if name == "lstm":
        return _lstm_layer(x, *state, w_ih, w_hh, bias, w_hr, **attrs)
    return _rnn_layer(x, *state, w_ih, w_hh, bias, activation=name.removeprefix("rnn_"), **attrs)


_GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


def _expect(name: str, what: str, t: Any, shape: tuple[int, ...]) -> None:
    if t is not None and tuple(t.shape) != shape:
        raise ShapeError(f"{name}: expected {what} of shape {list(shape)}; got {list(t.shape)}.")


def _run(name: str, *args: Any) -> Any:
    """Run a stack of layers, on padded arguments or on packed ones: those have the parameters one place later."""
    packed = isinstance(args[3], (list, tuple))
    if packed:
        x, batch_sizes, hx, params, has_biases, num_layers, p, train, bidirectional = args
        sizes = tuple(batch_sizes.tolist())
    else:
        x, hx, params, has_biases, num_layers, p, train, bidirectional, batch_first = args
        if len(x.shape) != 3:
            raise ShapeError(f"{name}: expected input with 3 dims (steps, batch, features); got {list(x.shape)}.")
        if batch_first:
            x = transpose(x, 0, 1)
        steps, batch, width = x.shape
        sizes = (batch,) * steps
        x = reshape(x, (steps * batch, width))
    if not sizes:
        raise RuntimeError(f"{name}: Expected sequence length to be larger than 0 in RNN")
    states = list(hx) if name == "lstm" else [hx]
    if name == "lstm" and len(states) != 2:
        raise RuntimeError(f"lstm expects two hidden states; got {len(states)}.")
    cells = num_layers * (2 if bidirectional else 1)
    each = _parameters(name, params, has_biases, cells, name == "lstm" and states[0].shape[-1] != states[1].shape[-1])
    for s in states:
        if len(s.shape) != 3 or s.shape[0] != cells:
            raise ShapeError(f"{name}: expected states of shape ({cells}, batch, hidden); got {list(s.shape)}.")
    last: list[Sequence[Any]] = []
    for layer in range(num_layers):
        outs = []
        for reverse in (False, True)[: 1 + bool(bidirectional)]:
            at = len(last)
            out, *ends = _layer(name, x, [select(s, 0, at) for s in states], each[at], sizes, reverse)[: 1 + len(states)]
            outs.append(out)
            last.append(ends)
        x = outs[0] if len(outs) == 1 else cat(outs, 1)
        if layer + 1 < num_layers:
            x = dropout(x, p, train)
    if not packed:
        made = "CatBackward0" if bidirectional else "MkldnnRnnLayerBackward0" if name == "lstm" else "StackBackward0"
        x = named(reshape(x, (steps, batch, x.shape[1])), made)
        if batch_first:
            x = named(transpose(x, 0, 1), f"TransposeBackward{int(name != 'lstm')}")
    return (x, *[stack(ends) for ends in zip(*last)])


def _parameters(name: str, params: Sequence[Any], has_biases: bool, cells: int, projected: bool) -> list[Sequence[Any]]:
    """Split the flat list into (w_ih, w_hh, b_ih, b_hh, w_hr) for each direction of each layer."""
    count = 2 + 2 * bool(has_biases) + projected
    if len(params) != cells * count:
        raise RuntimeError(
            f"{name}: got an incorrect number of RNN parameters: expected {count} for each of {cells} layers and "
            f"directions; got {len(params)}."
        )
    found = []
    for i in range(0, len(params), count):
        w_ih, w_hh, *rest = params[i : i + count]
        w_hr = rest.pop() if projected else None
        found.append((w_ih, w_hh, *(rest or (None, None)), w_hr))
    return found


# ---- what users call; a packed call has the form (data, batch_sizes, hx, params, has_biases, ..., bidirectional) ----


@autocasting
def rnn_tanh(
    input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any,
    batch_first: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Run Elman layers with tanh; return the last layer's outputs and every layer's last state."""
    return _run("rnn_tanh", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@autocasting
def rnn_relu(
    input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any,
    batch_first: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Run Elman layers with relu; return the last layer's outputs and every layer's last state."""
    return _run("rnn_relu", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@autocasting
def gru(
    input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any,
    batch_first: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Run GRU layers; return the last layer's outputs and every layer's last state."""
    return _run("gru", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@autocasting
def lstm(
    input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any,
    batch_first: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Run LSTM layers; return the last layer's outputs and every layer's last hidden and cell states."""
    return _run("lstm", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


# ---- cells: a layer of one step ----


def _cell(name: str, input: Any, states: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Sequence[Any]:
    """Return the next states."""
    for value, what in ((input, "input"), *[(s, f"hidden{i}") for i, s in enumerate(states)]):
        if not isinstance(value, TensorBase):
            raise no_tensor(f"{name}_cell", what, value)
    single = len(input.shape) == 1
    if single:
        input, states = unsqueeze(input, 0), [unsqueeze(s, 0) for s in states]
    if len(input.shape) != 2 or input.shape[1] != w_ih.shape[1]:
        raise ShapeError(
            f"{name}_cell: input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[1]}; the "
            f"input has shape {list(input.shape)}."
        )
    for i, s in enumerate(states):
        if len(s.shape) != 2 or s.shape[0] != input.shape[0]:
            raise ShapeError(
                f"{name}_cell: Input batch size {input.shape[0]} doesn't match hidden{i} batch size {s.shape[0]}; it "
                f"has shape {list(s.shape)}."
            )
        if s.shape[1] != w_hh.shape[1]:
            raise ShapeError(
                f"{name}_cell: hidden{i} has inconsistent hidden_size: got {s.shape[1]}, expected {w_hh.shape[1]}."
            )
    new = _layer(name, input, states, (w_ih, w_hh, b_ih, b_hh, None), (input.shape[0],), False)[1 : 1 + len(states)]
    named(new[0], {"gru": "Add", "lstm": "Mul", "rnn_tanh": "Tanh", "rnn_relu": "Relu"}[name] + "Backward0")
    return [select(s, 0, 0) for s in new] if single else new


@autocasting
def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Return tanh(W_ih x + b_ih + W_hh h + b_hh)."""
    return _cell("rnn_tanh", input, [hx], w_ih, w_hh, b_ih, b_hh)[0]


@autocasting
def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Return relu(W_ih x + b_ih + W_hh h + b_hh)."""
    return _cell("rnn_relu", input, [hx], w_ih, w_hh, b_ih, b_hh)[0]


@autocasting
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Return the next hidden state of a GRU."""
    return _cell("gru", input, [hx], w_ih, w_hh, b_ih, b_hh)[0]


@autocasting
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, Any]:
    """Return the next hidden and cell states of an LSTM."""
    if not isinstance(hx, (tuple, list)):
        raise TypeError(f"lstm_cell: argument 'hx' must be tuple of Tensors, not {type(hx).__name__}.")
    if len(hx) != 2:
        raise RuntimeError(f"lstm_cell expects two hidden states; got {len(hx)}.")
    return tuple(_cell("lstm", input, list(hx), w_ih, w_hh, b_ih, b_hh))
