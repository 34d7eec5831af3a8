"""Recurrent layers (RNN, LSTM, GRU) over padded, unbatched or packed sequences, and their cells."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import mortice
from mortice.nn import init
from mortice.nn.module import Module
from mortice.nn.parameter import Parameter
from mortice.nn.utils.rnn import PackedSequence
from mortice.notice import warn

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

# PyTorch's second list of the parameters, which is in its files.
_FLAT = ("_flat_weights", "_flat_weights_names")
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _draw(module: Module, hidden_size: int) -> None:
    """Draw all parameters, in their order, from uniform(-1/sqrt(hidden), 1/sqrt(hidden))."""
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for p in module.parameters():
        init.uniform_(p, -bound, bound)


class RNNBase(Module):
    """What the recurrent layers share: parameters, checks and the way in and out of the kernels."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed; "
                f"got {dropout!r}."
            )
        if dropout > 0 and num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}"
            )
        for name, value, kind in (
            ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
            ("hidden_size", hidden_size, int),
        ):  # fmt: skip
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero; got {size}.")
        if proj_size < 0:
            raise ValueError(f"proj_size should be a positive integer or zero to disable projections; got {proj_size}.")
        if proj_size >= hidden_size:
            raise ValueError(f"proj_size has to be smaller than hidden_size; got {proj_size} and {hidden_size}.")
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        gates, out = _GATES[mode] * hidden_size, proj_size or hidden_size
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 1 + bool(bidirectional)]:
                width = input_size if layer == 0 else out * (2 if bidirectional else 1)
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, width), "weight_hh": (gates, out)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])
                for name, shape in zip(self._all_weights[-1], shapes.values()):
                    setattr(self, name, Parameter(mortice.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **{name: getattr(self, name) for name in _FLAT}}

    def _complete(self) -> None:
        super()._complete()
        for name in _FLAT:
            self.__dict__.pop(name, None)
        self.__dict__.setdefault("proj_size", 0)  # from before there was one

    def reset_parameters(self) -> None:
        """Draw all parameters, in their order, from uniform(-1/sqrt(hidden), 1/sqrt(hidden))."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need not lie side by side here."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        for name, weight in zip(self._flat_weights_names, weights):
            if weight is not getattr(self, name):
                self.__dict__[name] = weight  # stands before the parameter, until one is set under that name

    # ---- checks ----

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Refuse an input of the wrong dtype, number of dims or features."""
        own = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != own:
            raise ValueError(
                f"{type(self).__name__}: RNN input dtype ({input.dtype}) does not match weight dtype ({own}). Convert "
                f"input: input.to({own}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.ndim != dims:
            raise RuntimeError(f"{type(self).__name__}: input must have {dims} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{type(self).__name__}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape of the hidden state for a batched input."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.shape[0 if self.batch_first else 1]
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(f"{type(self).__name__}: " + msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse an input or a state that does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Reorder the batch of a state."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---- running ----

    def _states(self, hx: Any) -> tuple[Any, ...]:
        """Return the states that `hx` consists of."""
        return (hx,)

    def _hx(self, states: Sequence[Any]) -> Any:
        """Return the states as users hold them."""
        return states[0]

    def _expected(self, input: Any, batch_sizes: Any) -> tuple[tuple[int, int, int], ...]:
        """Return the shape of each state."""
        return (self.get_expected_hidden_size(input, batch_sizes),)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the last layer's outputs at every step, and the last state of every layer and direction."""
        name, packed = type(self).__name__, isinstance(input, PackedSequence)
        data, batch_sizes, order, back = input if packed else (input, None, None, None)
        if not packed and data.ndim not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {data.ndim}D instead")
        single = data.ndim == 2 and not packed
        batch_dim = 0 if self.batch_first else 1
        if hx is not None:
            kind, dims = ("unbatched", 2) if single else ("batched", 3)
            if any(s.ndim != dims for s in self._states(hx)):
                raise RuntimeError(
                    f"{name}: For {kind} {'packed' if packed else f'{dims}-D'} input, hx should be {dims}-D but got "
                    f"{' and '.join(f'{s.ndim}-D' for s in self._states(hx))}"
                )
        if single:
            data = data.unsqueeze(batch_dim)
            hx = None if hx is None else self._hx([s.unsqueeze(1) for s in self._states(hx)])
        if hx is None:
            shapes = self._expected(data, batch_sizes)
            hx = self._hx([mortice.zeros(shape, dtype=data.dtype, device=data.device) for shape in shapes])
            self.check_forward_args(data, hx, batch_sizes)
        else:
            self.check_forward_args(data, hx, batch_sizes)
            hx = self.permute_hidden(hx, order)
        run = getattr(mortice, self.mode.lower())
        settings = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if packed:
            output, *states = run(data, batch_sizes, hx, *settings)
            return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(self._hx(states), back)
        output, *states = run(data, hx, *settings, self.batch_first)
        if single:
            output, states = output.squeeze(batch_dim), [s.squeeze(1) for s in states]
        return output, self._hx(states)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
            ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                shown += f", {name}={getattr(self, name)}"
        return shown


class RNN(RNNBase):
    """Elman layers: h = activation(W_ih x + b_ih + W_hh h + b_hh), with tanh or relu."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
        dtype: Any = None, **other: Any,
    ) -> None:  # fmt: skip
        _refuse(type(self), other)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, device=device, dtype=dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units: h = (1 - z) * n + z * h, with the gates r, z and the candidate n."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, **other: Any,
    ) -> None:  # fmt: skip
        _refuse(type(self), other)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device,
            dtype=dtype,
        )  # fmt: skip


def _refuse(kind: type, other: dict[str, Any]) -> None:
    """Refuse unknown settings, and with PyTorch's error the one that only an LSTM has."""
    if "proj_size" in other:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if other:
        raise TypeError(f"{kind.__name__}.__init__() got an unexpected keyword argument {next(iter(other))!r}")


class LSTM(RNNBase):
    """Long short-term memory: c = f * c + i * g, h = o * tanh(c), projected to `proj_size` where that is given."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape of the cell state for a batched input."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse an input or states that do not fit."""
        self.check_input(input, batch_sizes)
        for i, shape in enumerate(self._expected(input, batch_sizes)):
            self.check_hidden_size(hidden[i], shape, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Reorder the batch of both states."""
        return tuple([super(LSTM, self).permute_hidden(s, permutation) for s in hx])

    def _states(self, hx: Any) -> tuple[Any, ...]:
        if len(hx) != 2:
            raise RuntimeError(f"LSTM: expected hx to be two states (h_0, c_0); got {len(hx)}.")
        return hx[0], hx[1]

    def _hx(self, states: Sequence[Any]) -> Any:
        return tuple(states)

    def _expected(self, input: Any, batch_sizes: Any) -> tuple[tuple[int, int, int], ...]:
        return self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)


# ---- cells ----


class RNNCellBase(Module):
    """What the cells share: parameters, their initialisation, and the way from one vector to a batch of one."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(mortice.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(mortice.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            p = Parameter(mortice.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, p)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters, in their order, from uniform(-1/sqrt(hidden), 1/sqrt(hidden))."""
        _draw(self, self.hidden_size)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _first_state(self, input: Any) -> Any:
        shape = (*input.shape[:-1], self.hidden_size)
        return mortice.zeros(shape, dtype=input.dtype, device=input.device)

    def _check(self, input: Any, *states: tuple[str, Any]) -> None:
        for what, x in (("input", input), *states):
            if x is not None and x.ndim not in (1, 2):
                raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {x.ndim}D instead")

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        return shown if self.bias is True else f"{shown}, bias={self.bias}"


class RNNCell(RNNCellBase):
    """One step of an RNN: activation(W_ih x + b_ih + W_hh h + b_hh)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the next hidden state."""
        self._check(input, ("hidden", hx))
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        run = mortice.rnn_tanh_cell if self.nonlinearity == "tanh" else mortice.rnn_relu_cell
        return run(input, self._first_state(input) if hx is None else hx, *self._weights())

    def extra_repr(self) -> str:
        shown = super().extra_repr()
        return shown if self.nonlinearity == "tanh" else f"{shown}, nonlinearity={self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the next hidden and cell states."""
        self._check(input, *[(f"hx[{i}]", s) for i, s in enumerate(() if hx is None else hx)])
        if hx is None:
            zeros = self._first_state(input)
            hx = (zeros, zeros)
        return mortice.lstm_cell(input, hx, *self._weights())


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the next hidden state."""
        self._check(input, ("hidden", hx))
        return mortice.gru_cell(input, self._first_state(input) if hx is None else hx, *self._weights())
