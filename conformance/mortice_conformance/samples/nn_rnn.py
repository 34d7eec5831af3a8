"""Samples of the recurrent layers and of ctc_loss."""

from __future__ import annotations

import importlib.util

import mortice as mt
from mortice.op import OPS
from mortice_conformance import references_rnn as reference
from mortice_conformance.domain import Domain, real, small
from mortice_conformance.record import misuse, sample

# The ops register when their module is first used.
if importlib.util.find_spec("mortice.nn") is not None:
    importlib.import_module("mortice.nn.functional")

# Steps of equal width, of sequences that end one after the other, and of one sequence.
_FULL, _RAGGED, _ONE = (2, 2, 2), (3, 2, 2, 1), (1, 1)
_WAYS = [(_FULL, False), (_RAGGED, False), (_RAGGED, True), (_ONE, True)]


def _cases(gates: int, states: int, tails: list[object], **attrs: object) -> list[object]:
    found = []
    for (sizes, reverse), tail in zip(_WAYS, tails):
        shapes = [(sum(sizes), 2), *[(sizes[0], 3)] * states, (gates * 3, 2), (gates * 3, 3), *tail]  # type: ignore[misc]
        found.append((tuple(shapes), {"batch_sizes": sizes, "reverse": reverse, **attrs}))
    return found


_RNN = _cases(1, 1, [[(3,)], [None], [(3,)], [None]], activation="tanh")
sample("rnn_layer", reference.rnn_layer, small, kind="nn", cases=_RNN)
_RELU = _cases(1, 1, [[(3,)], [None], [(3,)], [None]], activation="relu")
sample("rnn_layer", reference.rnn_layer, small, kind="nn", variant="relu", cases=_RELU)
_GRU = _cases(3, 1, [[(9,), (9,)], [None, None], [None, (9,)], [(9,), None]])
sample("gru_layer", reference.gru_layer, small, kind="nn", cases=_GRU)
_LSTM = _cases(4, 2, [[(12,), None], [None, None], [(12,), None], [None, None]])
_PROJECTED = [
    (((8, 2), (3, 2), (3, 3), (12, 2), (12, 2), (12,), (2, 3)), {"batch_sizes": _RAGGED, "reverse": reverse})
    for reverse in (False, True)
]
sample("lstm_layer", reference.lstm_layer, small, kind="nn", cases=_LSTM)
sample("lstm_layer", reference.lstm_layer, small, kind="nn", variant="projected", cases=_PROJECTED)


def _ctc(x: object, labels: object, input_lengths: object, target_lengths: object, **attrs: object) -> object:
    return OPS["ctc_loss"].fn(mt.log_softmax(x, 2), labels, input_lengths, target_lengths, **attrs)[0]


# Two labels of classes 1 and 2, sometimes the same one twice; samples of 4, 3, ... steps and 2, 1, 0 labels.
_labels = Domain("labels", dtype="int64", draw=lambda rng, shape, dtype, case: rng.integers(1, 3, shape))
_inputs = Domain("input lengths", dtype="int64", draw=lambda rng, shape, dtype, case: 4 - rng.permutation(shape[0]) % 2)
_targets = Domain("target lengths", dtype="int64", draw=lambda rng, shape, dtype, case: 2 - rng.permutation(shape[0]))
sample("ctc_loss", reference.ctc_loss, real, _labels, _inputs, _targets, call=_ctc, kind="nn", result="promote",
       cases=[(((4, 3, 4), (3, 2), (3,), (3,)), {"blank": 0, "zero_infinity": False}),
              (((4, 2, 4), (2, 2), (2,), (2,)), {"blank": 3, "zero_infinity": True})])  # fmt: skip

misuse("lstm_layer", lambda: mt.lstm_cell(mt.ones(2, 4), (mt.ones(3, 3), mt.ones(2, 3)), mt.ones(12, 4), mt.ones(12, 3)),
       "lstm_cell: Input batch size 2 doesn't match hidden0 batch size 3; it has shape [3, 3].")  # fmt: skip
misuse("gru_layer", lambda: mt.gru_cell(mt.ones(2, 5), mt.ones(2, 3), mt.ones(9, 4), mt.ones(9, 3)),
       "gru_cell: input has inconsistent input_size: got 5 expected 4; the input has shape [2, 5].")  # fmt: skip
misuse("rnn_layer", lambda: mt.rnn_tanh(mt.ones(0, 2, 4), mt.ones(1, 2, 3), [mt.ones(3, 4), mt.ones(3, 3)], False, 1, 0.0, False, False, False),  # noqa: E501
       "rnn_tanh: Expected sequence length to be larger than 0 in RNN")  # fmt: skip
misuse("ctc_loss", lambda: mt.ctc_loss(mt.ones(4, 1, 3), mt.tensor([[1, 5]]), (4,), (2,)),
       "ctc_loss: Target 5 is out of bounds for 3 classes.")  # fmt: skip
