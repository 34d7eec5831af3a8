"""Recurrent layers, cells, packed sequences and ctc_loss: known values, identities and gradients, and beside PyTorch."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import warnings

import numpy as np
import pytest

import mortice as mt
from mortice import nn
from mortice.autograd import gradcheck, gradgradcheck
from mortice.nn import functional as F
from mortice.nn.utils import rnn as packing

KINDS = ["RNN", "LSTM", "GRU"]
SETTINGS = [
    {},
    {"bias": False, "batch_first": True},
    {"num_layers": 2, "bidirectional": True},
    {"num_layers": 3, "batch_first": True},
]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="comparing with PyTorch needs torch")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def draw(rng, *shape, grad=True):
    return mt.tensor(rng.normal(size=shape), requires_grad=grad)


def layer(kind, *args, **settings):
    return getattr(nn, kind)(*args, **settings).double()


def states(hx):
    return list(hx) if isinstance(hx, tuple) else [hx]


def close(ours, theirs, tolerance=1e-10):
    theirs = theirs if isinstance(theirs, np.ndarray) else theirs.detach().cpu().numpy()
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs, rtol=tolerance, atol=tolerance)


# ---- known values ----


def test_an_rnn_with_zero_weights_says_its_bias():
    m = layer("RNN", 2, 1)
    with mt.no_grad():
        for p, value in zip(m.parameters(), (0, 0, 0.3, 0.2)):
            p.fill_(value)
    out, h = m(mt.ones(3, 1, 2, dtype=mt.float64))
    close(out, np.full((3, 1, 1), math.tanh(0.5)))
    close(h, np.full((1, 1, 1), math.tanh(0.5)))


def test_an_lstm_with_open_forget_gate_keeps_its_cell():
    m = layer("LSTM", 2, 1)
    with mt.no_grad():
        for p in m.parameters():
            p.zero_()
        m.bias_ih_l0.copy_(mt.tensor([-50.0, 50.0, 1.0, 50.0]))
    c0 = mt.full((1, 1, 1), 0.7, dtype=mt.float64)
    out, (h, c) = m(mt.ones(4, 1, 2, dtype=mt.float64), (mt.zeros_like(c0), c0))
    close(c, np.full((1, 1, 1), 0.7))
    close(out, np.full((4, 1, 1), math.tanh(0.7)))
    close(h, out[-1:])


def test_a_gru_with_closed_update_gate_keeps_its_state():
    m = layer("GRU", 2, 1)
    with mt.no_grad():
        m.bias_hh_l0.copy_(mt.tensor([0.0, 60.0, 0.0]))
    h0 = mt.full((1, 2, 1), -0.4, dtype=mt.float64)
    out, h = m(mt.ones(3, 2, 2, dtype=mt.float64), h0)
    close(out, np.full((3, 2, 1), -0.4))
    close(h, h0)


def test_gates_are_read_in_their_order(rng):
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    x, h, c = (rng.normal(size=(2, 3)) for _ in range(3))
    tensors = [mt.tensor(a) for a in (x, h, c)]
    cell = nn.LSTMCell(3, 3).double()
    w_ih, w_hh, b_ih, b_hh = (p.detach().cpu().numpy() for p in cell.parameters())
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, 1)
    wanted = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    new_h, new_c = cell(tensors[0], tuple(tensors[1:]))
    close(new_c, wanted)
    close(new_h, sigmoid(o) * np.tanh(wanted))
    cell = nn.GRUCell(3, 3).double()
    w_ih, w_hh, b_ih, b_hh = (p.detach().cpu().numpy() for p in cell.parameters())
    (r, z, n), (hr, hz, hn) = np.split(x @ w_ih.T + b_ih, 3, 1), np.split(h @ w_hh.T + b_hh, 3, 1)
    z = sigmoid(z + hz)
    close(cell(*tensors[:2]), (1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h)


# ---- identities ----


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_step_by_step(kind, rng):
    m, x = layer(kind, 4, 3), draw(rng, 5, 2, 4)
    cell = getattr(nn, f"{kind}Cell")(4, 3).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in m.state_dict().items()})
    out, last = m(x)
    hx = None
    for t in range(5):
        hx = cell(x[t], hx)
        close(states(hx)[0], out[t])
    for s, end in zip(states(hx), states(last)):
        close(s, end[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_may_be_run_in_two_halves(kind, rng):
    m, x = layer(kind, 4, 3, num_layers=2), draw(rng, 6, 2, 4)
    whole, end = m(x)
    first, hx = m(x[:2])
    second, hx = m(x[2:], hx)
    close(mt.cat([first, second]), whole)
    for a, b in zip(states(hx), states(end)):
        close(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.seed("RN01")
def test_the_reverse_direction_runs_from_the_end(kind, rng):
    both, x = layer(kind, 4, 3, bidirectional=True), draw(rng, 5, 2, 4)
    one = layer(kind, 4, 3)
    one.load_state_dict({n.removesuffix("_reverse"): v for n, v in both.state_dict().items() if n.endswith("_reverse")})
    out, last = both(x)
    wanted, end = one(x.flip(0))
    close(out[:, :, 3:], wanted.flip(0))
    for a, b in zip(states(last), states(end)):
        close(a[1:], b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("enforce_sorted", [True, False])
@pytest.mark.seed("RN03")
def test_packed_sequences_run_as_each_alone(kind, enforce_sorted, rng):
    m = layer(kind, 4, 3, num_layers=2, bidirectional=True)
    lengths = [5, 3, 3, 1] if enforce_sorted else [3, 5, 1, 3]
    x, hx = draw(rng, 5, 4, 4), [draw(rng, 4, 4, 3), draw(rng, 4, 4, 3)]
    given = lambda b: tuple(s[:, b : b + 1] for s in hx) if kind == "LSTM" else hx[0][:, b : b + 1]
    packed = packing.pack_padded_sequence(x, lengths, enforce_sorted=enforce_sorted)
    out, last = m(packed, tuple(hx) if kind == "LSTM" else hx[0])
    assert isinstance(out, packing.PackedSequence)
    padded, sizes = packing.pad_packed_sequence(out)
    assert sizes.tolist() == lengths
    total = padded.sum() + sum((s * s).sum() for s in states(last))
    leaves = [x, *hx[: 1 + (kind == "LSTM")], *m.parameters()]
    together = mt.autograd.grad(total, leaves)
    total = 0
    for b, n in enumerate(lengths):
        alone, end = m(x[:n, b : b + 1], given(b))
        close(padded[:n, b : b + 1], alone)
        assert not padded[n:, b].any()
        for s, e in zip(states(last), states(end)):
            close(s[:, b : b + 1], e)
        total = total + alone.sum() + sum((s * s).sum() for s in states(end))
    for a, b in zip(together, mt.autograd.grad(total, leaves)):
        close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_unbatched_and_batch_first_are_the_same_numbers(kind, rng):
    m, x = layer(kind, 4, 3, num_layers=2), draw(rng, 5, 2, 4)
    out, last = m(x)
    alone, end = m(x[:, 1])
    assert alone.shape == (5, 3)
    close(alone, out[:, 1])
    for a, b in zip(states(last), states(end)):
        close(a[:, 1], b)
    close(m(x[:, 1], tuple(states(end)) if kind == "LSTM" else end)[0], m(x[:, 1:], last_of(end))[0][:, 0])
    m.batch_first = True
    turned, end = m(x.transpose(0, 1))
    close(turned.transpose(0, 1), out)
    for a, b in zip(states(last), states(end)):
        close(a, b)


def last_of(hx):
    found = tuple(s.unsqueeze(1) for s in states(hx))
    return found if isinstance(hx, tuple) else found[0]


def test_dropout_lies_between_layers_in_training_only(rng):
    m, x = layer("GRU", 4, 3, num_layers=2, dropout=1.0), draw(rng, 5, 2, 4)
    second = layer("GRU", 3, 3)
    second.load_state_dict({n.replace("l1", "l0"): v for n, v in m.state_dict().items() if n[-1] == "1"})
    close(m(x)[0], second(mt.zeros(5, 2, 3, dtype=mt.float64))[0])
    m.eval()
    close(m(x)[0], second(m_first(m, x))[0])


def m_first(m, x):
    first = layer("GRU", 4, 3)
    first.load_state_dict({n: v for n, v in m.state_dict().items() if n[-1] == "0"})
    return first(x)[0]


# ---- gradients ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"bidirectional": True, "bias": False}], ids=str)
def test_gradients_agree_with_finite_differences_twice(kind, settings, rng):
    m, n = layer(kind, 2, 2, **settings), 2 if settings else 1
    hx = [draw(rng, n, 3, 2) for _ in range(1 + (kind == "LSTM"))]

    def run(data, *rest):
        x = packing.PackedSequence(data, mt.tensor([3, 2, 1]))
        given = dict(zip((name for name, _ in m.named_parameters()), rest[len(hx) :]))
        out, last = mt.func.functional_call(m, given, (x, rest[: len(hx)] if kind == "LSTM" else rest[0]))
        return (out.data, *states(last))

    operands = (draw(rng, 6, 2), *hx, *m.parameters())
    assert gradcheck(run, operands)
    assert gradgradcheck(run, operands)


def test_projections_have_gradients_of_both_orders(rng):
    m = layer("LSTM", 2, 3, proj_size=2)
    leaves = (draw(rng, 3, 2, 2), *m.parameters())
    run = lambda x, *ps: mt.func.functional_call(m, dict(zip(m._flat_weights_names, ps)), (x,))[0]
    assert gradcheck(run, leaves)
    assert gradgradcheck(run, leaves)


def test_final_states_and_cells_may_be_written_in_place(rng):
    for kind in KINDS:
        m, cell = layer(kind, 4, 3), getattr(nn, f"{kind}Cell")(4, 3).double()
        out, last = m(draw(rng, 5, 2, 4))
        kept = out.detach().clone()
        states(last)[0].mul_(2)
        close(out, kept)
        new = cell(draw(rng, 2, 4))
        states(new)[0].mul_(2)
        (out.sum() + states(last)[0].sum() + states(new)[0].sum()).backward()


def test_half_precision_is_near_single(rng):
    for kind in KINDS:
        m, x = getattr(nn, kind)(4, 3), mt.tensor(rng.normal(size=(5, 2, 4)), dtype=mt.float32)
        wanted = m(x)[0]
        for dtype, tolerance in ((mt.float16, 5e-3), (mt.bfloat16, 5e-2)):
            low = copy.deepcopy(m).to(dtype)
            out = low(x.to(dtype))[0]
            assert out.dtype is dtype
            close(out.float(), wanted, tolerance)
            out.sum().backward()
            assert low.weight_hh_l0.grad.dtype is dtype


# ---- modules ----


def test_the_flat_list_of_weights_may_be_assigned(rng):
    m, x = layer("GRU", 4, 3), draw(rng, 5, 2, 4)
    names, before = list(m.state_dict()), m(x)[0]
    m._flat_weights = [getattr(m, name) for name in m._flat_weights_names]
    close(m(x)[0], before)
    m._flat_weights = [w * 0 for w in m._flat_weights]
    assert m(x)[0].abs().max().item() == 0 and list(m.state_dict()) == names
    m.weight_ih_l0 = nn.Parameter(m._parameters["weight_ih_l0"] + 1)
    assert m._flat_weights[0] is m.weight_ih_l0 and m(x)[0].abs().max().item() > 0


def test_names_follow_torch_and_draws_follow_the_names():
    mt.manual_seed(3)
    m = nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2)
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    names = [f"{k}_l{n}{way}" for n in (0, 1) for way in ("", "_reverse") for k in kinds]
    assert list(m.state_dict()) == names == m._flat_weights_names
    assert [len(ws) for ws in m.all_weights] == [5] * 4
    assert tuple(m.weight_ih_l1.shape) == (12, 4) and tuple(m.weight_hr_l0.shape) == (2, 3)
    mt.manual_seed(3)
    for p in m.parameters():
        close(mt.empty(p.shape).uniform_(-(3**-0.5), 3**-0.5), p.detach())


def test_repr_tells_what_is_not_usual():
    m = nn.LSTM(4, 3, 2, proj_size=2, bias=False, bidirectional=True, dropout=0.5, batch_first=True)
    assert repr(m) == (
        "LSTM(4, 3, proj_size=2, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)"
    )
    assert repr(nn.RNNCell(3, 4, bias=False, nonlinearity="relu")) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"


def test_copies_and_replaced_weights_are_what_runs(rng):
    m, x = layer("GRU", 4, 3), draw(rng, 5, 2, 4)
    m.flatten_parameters()
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        close(twin(x)[0], m(x)[0])
    # What weight dropping and weight norm do: a plain tensor in the place of the parameter.
    raw = m.weight_hh_l0
    del m._parameters["weight_hh_l0"]
    m.weight_hh_l0 = raw * 0
    close(m(x)[0][0], m(x[:1])[0][0])
    m(x)[0].sum().backward()
    assert m.weight_ih_l0.grad is not None


def test_a_layer_trains():
    mt.manual_seed(0)
    net, head = nn.LSTM(1, 8), nn.Linear(8, 1)
    bits = mt.tensor(np.random.default_rng(0).integers(0, 2, (6, 64, 1)), dtype=mt.float32)
    parity = bits.cumsum(0) % 2
    optimizer = mt.optim.Adam([*net.parameters(), *head.parameters()], lr=0.05)
    losses = []
    for _ in range(150):
        loss = F.binary_cross_entropy_with_logits(head(net(bits)[0]), parity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 < 0.6 < losses[0]


WRONG = [
    (lambda: nn.LSTM(4, 3)(mt.zeros(5, 2, 5)), RuntimeError, "must be equal to input_size. Expected 4, got 5"),
    (lambda: nn.LSTM(4, 3)(mt.zeros(5, 2, 4, 1)), ValueError, "LSTM: Expected input to be 2D or 3D, got 4D"),
    (lambda: nn.GRU(4, 3)(mt.zeros(5, 2, 4), mt.zeros(1, 3, 3)), RuntimeError, "Expected hidden size (1, 2, 3), got [1, 3, 3]"),
    (lambda: nn.LSTM(4, 3)(mt.zeros(5, 2, 4), (mt.zeros(1, 2, 3), mt.zeros(1, 2, 4))), RuntimeError, "Expected hidden[1] size"),
    (lambda: nn.GRU(4, 3)(mt.zeros(5, 2, 4), mt.zeros(2, 3)), RuntimeError, "For batched 3-D input, hx should be 3-D but got 2-D"),
    (lambda: nn.LSTM(4, 3)(mt.zeros(5, 4), (mt.zeros(1, 2, 3),) * 2), RuntimeError, "For unbatched 2-D input"),
    (lambda: nn.LSTM(4, 3)(mt.zeros(5, 2, 4), mt.zeros(1, 2, 3)), RuntimeError, "two states"),
    (lambda: nn.RNN(4, 3)(mt.zeros(5, 2, 4).double()), ValueError, "does not match weight dtype"),
    (lambda: nn.RNN(4, 3)(mt.zeros(0, 2, 4)), RuntimeError, "Expected sequence length to be larger than 0"),
    (lambda: nn.LSTMCell(4, 3)(mt.zeros(2, 4), (mt.zeros(3, 3), mt.zeros(2, 3))), RuntimeError, "Input batch size 2 doesn't match"),
    (lambda: nn.GRUCell(4, 3)(mt.zeros(2, 4), mt.zeros(2, 4)), RuntimeError, "hidden0 has inconsistent hidden_size: got 4"),
    (lambda: nn.GRUCell(4, 3)(mt.zeros(2, 2, 4)), ValueError, "GRUCell: Expected input to be 1D or 2D, got 3D"),
    (lambda: nn.RNNCell(4, 3, nonlinearity="sin")(mt.zeros(2, 4)), RuntimeError, "Unknown nonlinearity: sin"),
    (lambda: nn.RNN(4, 3, nonlinearity="sin"), ValueError, "Unknown nonlinearity 'sin'"),
    (lambda: nn.GRU(4, 3, proj_size=2), ValueError, "only supported for LSTM"),
    (lambda: nn.GRU(4, 3, projection=2), TypeError, "unexpected keyword argument 'projection'"),
    (lambda: nn.LSTM(4, 3, proj_size=3), ValueError, "proj_size has to be smaller than hidden_size"),
    (lambda: nn.LSTM(4, 0), ValueError, "hidden_size must be greater than zero"),
    (lambda: nn.LSTM(4.0, 3), TypeError, "input_size should be of type int"),
    (lambda: nn.LSTM(4, 3, dropout=2), ValueError, "dropout should be a number in range [0, 1]"),
    (lambda: nn.RNNBase("QRNN", 4, 3), ValueError, "Unrecognized RNN mode: QRNN"),
    (lambda: packing.pack_padded_sequence(mt.zeros(5, 2), [3, 5]), RuntimeError, "sorted in decreasing order"),
    (lambda: packing.pack_padded_sequence(mt.zeros(5, 2), [3, 0]), RuntimeError, "has to be greater than 0"),
    (lambda: packing.pack_padded_sequence(mt.zeros(5, 2), [6, 1]), RuntimeError, "at most the padded length 5"),
    (lambda: packing.pack_padded_sequence(mt.zeros(5, 2), [3]), RuntimeError, "equal to batch_size, but got 1 (batch_size=2)"),
    (lambda: packing.pack_padded_sequence(mt.zeros(0, 0), []), RuntimeError, "Cannot pack empty tensors"),
    (lambda: packing.pack_padded_sequence(mt.zeros(3, 1, 0), [3]), RuntimeError, "Cannot pack empty tensors"),
    (lambda: packing.pack_padded_sequence(mt.zeros(0, 1), mt.zeros(1, 1)), RuntimeError, "Cannot pack empty tensors"),
    (lambda: packing.pack_sequence([]), RuntimeError, "empty list of sequences"),
    (lambda: packing.pad_sequence(3), RuntimeError, "Expected iterable"),
    (lambda: packing.pad_sequence([mt.zeros(2, 3), mt.zeros(2, 4)]), RuntimeError, "differ in their first dim only"),
    (lambda: packing.pad_sequence([mt.zeros(2)], padding_side="top"), RuntimeError, "one of left or right"),
    (lambda: packing.unpad_sequence(mt.zeros(3, 2), mt.tensor([1])), ValueError, "expected 2 lengths"),
    (lambda: F.ctc_loss(mt.zeros(4, 2, 3), mt.ones(2, 2, dtype=mt.int64), (4, 5), (2, 2)), RuntimeError, "at most 4"),
    (lambda: F.ctc_loss(mt.zeros(4, 2, 3), mt.ones(2, 2, dtype=mt.int64), (4,), (2, 2)), RuntimeError, "of size batch_size"),
    (lambda: F.ctc_loss(mt.zeros(4, 2, 3), mt.ones(2, 2, dtype=mt.int64), (4, 4), (3, 2)), RuntimeError, "at least 3 at dimension 1"),
    (lambda: F.ctc_loss(mt.zeros(4, 2, 3), mt.ones(3, dtype=mt.int64), (4, 4), (2, 2)), RuntimeError, "size 4 at dimension 0"),
    (lambda: F.ctc_loss(mt.zeros(4, 2, 3), mt.ones(2, 2, dtype=mt.int64), (4, 4), (2, 2), 3), RuntimeError, "blank must be in label"),
    (lambda: F.ctc_loss(mt.zeros(4, 2, 3), mt.full((2, 2), 7), (4, 4), (2, 2)), IndexError, "Target 7 is out of bounds"),
    (lambda: nn.CTCLoss(reduction="all"), ValueError, "all is not a valid value for reduction"),
]  # fmt: skip


@pytest.mark.parametrize("wrong, kind, text", WRONG, ids=[text[:40] for _, _, text in WRONG])
def test_misuse_is_told(wrong, kind, text):
    with pytest.raises(kind) as error:
        wrong()
    assert text in str(error.value)


def test_dropout_of_one_layer_warns():
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(2, 2, dropout=0.5)


# ---- packed and padded ----


def test_packing_lays_rows_step_by_step():
    x = mt.arange(6).reshape(3, 2)
    packed = packing.pack_padded_sequence(x, [3, 1])
    assert packed.data.tolist() == [0, 1, 2, 4] and packed.batch_sizes.tolist() == [2, 1, 1]
    assert packed.sorted_indices is None and packed.unsorted_indices is None
    turned = packing.pack_padded_sequence(x.transpose(0, 1), mt.tensor([1, 3]), batch_first=True, enforce_sorted=False)
    assert turned.data.tolist() == [1, 0, 3, 5]
    assert turned.sorted_indices.tolist() == [1, 0] == turned.unsorted_indices.tolist()
    for first in (False, True):  # lengths of the first sequences alone
        some = packing.pack_padded_sequence(mt.arange(12).reshape(3, 4).t() if first else mt.arange(12).reshape(3, 4), [2, 3], first, False)
        assert some.data.tolist() == [1, 0, 5, 4, 9] and some.batch_sizes.tolist() == [2, 2, 1]
    with pytest.raises(RuntimeError, match="got 3 \\(batch_size=2\\)"):
        packing.pack_padded_sequence(x, [1, 1, 1], enforce_sorted=False)
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        packing.pack_padded_sequence(x, [], enforce_sorted=False)
    assert packed._fields == ("data", "batch_sizes", "sorted_indices", "unsorted_indices")


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_padding_are_inverses(batch_first, rng):
    parts = [draw(rng, n, 2) for n in (2, 5, 3, 5)]
    packed = packing.pack_sequence(parts, enforce_sorted=False)
    padded, lengths = packing.pad_packed_sequence(packed, batch_first, padding_value=9, total_length=7)
    assert lengths.tolist() == [2, 5, 3, 5]
    by_sequence = padded if batch_first else padded.transpose(0, 1)
    for row, part in zip(by_sequence, parts):
        close(row[: len(part)], part)
        assert (row[len(part) :] == 9).all() and len(row) == 7
    (packed.data * packed.data).sum().backward()
    for part, back in zip(parts, packing.unpack_sequence(packed)):
        close(part.grad, 2 * part.detach())
        close(back, part)
    again = packing.unpad_sequence(padded, lengths, batch_first)
    assert [len(s) for s in again] == [2, 5, 3, 5]


def test_padding_goes_to_either_side():
    parts = [mt.tensor([1, 2]), mt.tensor([3])]
    assert packing.pad_sequence(parts).tolist() == [[1, 3], [2, 0]]
    assert packing.pad_sequence(parts, True, 7).tolist() == [[1, 2], [3, 7]]
    assert packing.pad_sequence(parts, True, padding_side="left").tolist() == [[1, 2], [0, 3]]
    assert packing.pad_sequence(iter(parts), padding_side="left").tolist() == [[1, 0], [2, 3]]


def test_a_packed_sequence_converts_its_data_alone():
    packed = packing.pack_sequence([mt.ones(3), mt.ones(2)])
    assert packed.to(mt.float32) is packed and not packed.is_cuda
    for name, dtype in (("double", mt.float64), ("half", mt.float16), ("long", mt.int64), ("byte", mt.uint8)):
        moved = getattr(packed, name)()
        assert moved.data.dtype is dtype and moved.batch_sizes is packed.batch_sizes
    twin = pickle.loads(pickle.dumps(packed))
    assert isinstance(twin, packing.PackedSequence) and twin.data.tolist() == packed.data.tolist()
    assert packing.PackedSequence((packed.data, packed.batch_sizes)).batch_sizes is packed.batch_sizes


# ---- ctc ----


def paths_loss(logp, labels, blank):
    """Add the probabilities of all paths that collapse to the labels."""
    total = 0.0
    for path in itertools.product(range(logp.shape[1]), repeat=len(logp)):
        if [c for c, _ in itertools.groupby(path) if c != blank] == list(labels):
            total += math.exp(sum(row[c] for row, c in zip(logp, path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("labels, blank", [((1, 2), 0), ((1, 1), 0), ((0,), 2), ((), 1), ((1, 2, 1), 0)])
def test_ctc_is_the_sum_over_all_paths(labels, blank, rng):
    logp = mt.log_softmax(draw(rng, 4, 3), 1)
    target = mt.tensor(list(labels), dtype=mt.int64)
    loss = F.ctc_loss(logp, target, mt.tensor(4), mt.tensor(len(labels)), blank, "none")
    assert loss.shape == () and loss.item() == pytest.approx(paths_loss(logp.detach().cpu().numpy(), labels, blank))


def test_ctc_of_one_step_is_that_label(rng):
    logp = mt.log_softmax(draw(rng, 1, 2, 4), 2)
    loss = F.ctc_loss(logp, mt.tensor([[2], [3]]), (1, 1), (1, 1), reduction="none")
    close(loss, -mt.stack([logp[0, 0, 2], logp[0, 1, 3]]))


def test_ctc_that_cannot_be_is_infinite_or_zero(rng):
    x = draw(rng, 3, 2, 4)
    logp, target = mt.log_softmax(x, 2), mt.tensor([[1, 1], [1, 2]])
    # 1 1 needs a blank between, so three steps.
    losses = F.ctc_loss(logp, target, (2, 3), (2, 2), reduction="none")
    assert losses[0].item() == math.inf and math.isfinite(losses[1].item())
    loss = nn.CTCLoss(zero_infinity=True)(logp, target, (2, 3), (2, 2))
    assert loss.item() == pytest.approx(losses[1].item() / 4)
    loss.backward()
    assert not x.grad[:, 0].any() and x.grad[:, 1].any()
    x.grad = None
    F.ctc_loss(mt.log_softmax(x, 2), target, (2, 3), (2, 2), reduction="sum").backward()
    assert x.grad[:2, 0].isnan().all() and not x.grad[:, 1].isnan().any()


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_of_nan_is_nan_and_so_is_every_gradient_of_that_sample(zero_infinity, rng):
    logp = mt.tensor(rng.standard_normal((5, 2, 4))).log_softmax(2)
    clean = F.ctc_loss(logp, mt.tensor([[1, 2], [3, 1]]), (5, 4), (2, 1), reduction="none")
    logp[2, 1, 0] = math.nan
    logp.requires_grad_()
    losses = F.ctc_loss(logp, mt.tensor([[1, 2], [3, 1]]), (5, 4), (2, 1), reduction="none", zero_infinity=zero_infinity)
    close(losses[0], clean[0])
    losses.sum().backward()
    assert losses[1].isnan() and not logp.grad[:, 0].isnan().any() and logp.grad[:4, 1].isnan().all()
    assert (logp.grad[4, 1] == 0).all()  # after its end


def test_ctc_takes_labels_one_after_the_other_and_lengths_of_any_kind(rng):
    logp = mt.log_softmax(draw(rng, 6, 3, 5), 2)
    padded, flat = mt.tensor([[1, 2, 3], [4, 0, 0], [2, 2, 0]]), mt.tensor([1, 2, 3, 4, 2, 2], dtype=mt.int32)
    lengths = ((6, 4, 5), (3, 1, 2))
    wanted = F.ctc_loss(logp, padded, *lengths)
    for targets in (padded, flat):
        for kind in (list, mt.tensor, lambda n: mt.tensor(n, dtype=mt.int32)):
            close(F.ctc_loss(logp, targets, *[kind(n) for n in lengths]), wanted)
    alone = [F.ctc_loss(logp[:n, i], padded[i, :s], (n,), (s,)) for i, (n, s) in enumerate(zip(*lengths))]
    close(sum(alone) / 3, wanted)


def test_ctc_gradients_agree_with_finite_differences_twice(rng):
    run = lambda x: F.ctc_loss(mt.log_softmax(x, 2), mt.tensor([[1, 1], [3, 2]]), (5, 4), (2, 1), reduction="none")
    assert gradcheck(run, (draw(rng, 5, 2, 4),))
    assert gradgradcheck(run, (draw(rng, 5, 2, 4),))


def test_ctc_of_long_certain_sequences_stays_finite():
    x = mt.full((400, 1, 6), -200.0)
    with mt.no_grad():
        x[:, 0, 0] = 0
        x[200, 0, 3] = 300
    x.requires_grad_()
    loss = F.ctc_loss(mt.log_softmax(x, 2), mt.tensor([[3]]), (400,), (1,))
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-4) and not x.grad.isnan().any()


# ---- beside PyTorch ----


def pair(torch, array, grad=True):
    theirs, ours = torch.from_numpy(np.array(array)), mt.tensor(np.array(array))
    return ours.requires_grad_(grad), theirs.requires_grad_(grad)


def twins(torch, kind, *args, **settings):
    ours, theirs = (getattr(lib, kind)(*args, **settings).double() for lib in (nn, torch.nn))
    assert repr(ours) == repr(theirs)
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({name: mt.tensor(value.numpy()) for name, value in state.items()})
    return ours, theirs


def same(torch, rng, ours, theirs, leaves):
    """Hold outputs and all gradients together."""
    total_ours, total_theirs = 0, 0
    for a, b in zip(ours, theirs):
        close(a, b)
        g = rng.normal(size=tuple(b.shape))
        total_ours, total_theirs = total_ours + (a * mt.tensor(g)).sum(), total_theirs + (b * torch.from_numpy(g)).sum()
    total_ours.backward()
    total_theirs.backward()
    for a, b in leaves:
        close(a.grad, b.grad, 1e-9)


CONFIGURATIONS = [
    *[(kind, settings) for kind in KINDS for settings in SETTINGS],
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}),
    ("LSTM", {"proj_size": 2}),
    ("LSTM", {"proj_size": 1, "num_layers": 2, "bidirectional": True, "bias": False, "batch_first": True}),
]


@pytest.mark.oracle
@pytest.mark.parametrize("given", [False, True], ids=["zeros", "hx"])
@pytest.mark.parametrize("form", ["batched", "unbatched", "sorted", "unsorted"])
@pytest.mark.parametrize("kind, settings", CONFIGURATIONS, ids=str)
def test_layer_gives_what_torch_gives(torch, rng, kind, settings, form, given):
    ours, theirs = twins(torch, kind, 4, 3, **settings)
    batch_first = settings.get("batch_first", False)
    cells = settings.get("num_layers", 1) * (2 if settings.get("bidirectional") else 1)
    shape = (6, 4) if form == "unbatched" else (3, 6, 4) if batch_first else (6, 3, 4)
    batch = () if form == "unbatched" else (3,)
    x, y = pair(torch, rng.normal(size=shape))
    sizes = [settings.get("proj_size", 3)] + ([3] if kind == "LSTM" else [])
    hs = [pair(torch, rng.normal(size=(cells, *batch, n))) for n in sizes]
    hx = [tuple(h[i] for h in hs) if kind == "LSTM" else hs[0][i] for i in (0, 1)] if given else [None, None]
    a, b = x, y
    if form in ("sorted", "unsorted"):
        lengths = [6, 4, 4] if form == "sorted" else [2, 6, 5]
        a = packing.pack_padded_sequence(x, lengths, batch_first, form == "sorted")
        b = torch.nn.utils.rnn.pack_padded_sequence(y, lengths, batch_first, form == "sorted")
    (a, last), (b, end) = ours(a, hx[0]), theirs(b, hx[1])
    if form in ("sorted", "unsorted"):
        close(a.data, b.data)
        assert a.batch_sizes.tolist() == b.batch_sizes.tolist()
        (a, n), (b, m) = packing.pad_packed_sequence(a, batch_first), torch.nn.utils.rnn.pad_packed_sequence(b, batch_first)
        assert n.tolist() == m.tolist()
    assert isinstance(last, tuple) == isinstance(end, tuple)
    leaves = [(x, y), *(hs if given else ()), *zip(ours.parameters(), theirs.parameters())]
    same(torch, rng, [a, *states(last)], [b, *states(end)], leaves)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(), (5,), (0,)], ids=str)
def test_cell_gives_what_torch_gives(torch, rng, kind, bias, batch):
    ours, theirs = twins(torch, f"{kind}Cell", 4, 3, bias=bias)
    x, y = pair(torch, rng.normal(size=(*batch, 4)))
    hs = [pair(torch, rng.normal(size=(*batch, 3))) for _ in range(1 + (kind == "LSTM"))]
    hx = [tuple(h[i] for h in hs) if kind == "LSTM" else hs[0][i] for i in (0, 1)]
    for s, t in ((None, None), hx):
        a, b = ours(x, s), theirs(y, t)
        assert isinstance(a, tuple) == isinstance(b, tuple)
    same(torch, rng, states(a), states(b), [(x, y), *hs, *zip(ours.parameters(), theirs.parameters())])


@pytest.mark.oracle
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_loss_gives_what_torch_gives(torch, rng, reduction, zero_infinity):
    for classes, blank, inputs, lengths in (
        (5, 0, (8, 8, 6), (3, 2, 3)), (4, 2, (8, 3, 1), (4, 3, 0)), (3, 1, (8, 5, 0), (0, 1, 1)),
    ):  # fmt: skip
        labels = rng.integers(0, classes - 1, size=(3, 4))
        labels = np.where(labels >= blank, labels + 1, labels)
        x, y = pair(torch, rng.normal(size=(8, 3, classes)))
        a = nn.CTCLoss(blank, reduction, zero_infinity)(mt.log_softmax(x, 2), mt.tensor(labels), inputs, lengths)
        want = torch.nn.CTCLoss(blank, reduction, zero_infinity)
        b = want(torch.log_softmax(y, 2), torch.from_numpy(labels), inputs, lengths)
        close(a, b)
        a.sum().backward()
        b.sum().backward()
        close(x.grad, y.grad, 1e-9)
        # The gradient of the log-probabilities themselves is PyTorch's too.
        x, y = pair(torch, rng.normal(size=(8, 3, classes)))
        F.ctc_loss(x, mt.tensor(labels), inputs, lengths, blank, reduction, zero_infinity).sum().backward()
        torch.nn.functional.ctc_loss(y, torch.from_numpy(labels), inputs, lengths, blank, reduction, zero_infinity).sum().backward()
        close(x.grad, y.grad, 1e-9)


@pytest.mark.oracle
def test_padding_gives_what_torch_gives(torch, rng):
    theirs = torch.nn.utils.rnn
    parts = [rng.normal(size=(n, 2)) for n in (3, 1, 4)]
    ours_in, theirs_in = [mt.tensor(p) for p in parts], [torch.from_numpy(p) for p in parts]
    for batch_first, side in itertools.product((False, True), ("left", "right")):
        close(packing.pad_sequence(ours_in, batch_first, 2.5, side), theirs.pad_sequence(theirs_in, batch_first, 2.5, side))
    a, b = packing.pack_sequence(ours_in, False), theirs.pack_sequence(theirs_in, False)
    for mine, want in zip(a, b):
        assert mine.tolist() == want.tolist()


@pytest.mark.oracle
def test_functions_take_torch_calls_in_both_forms(torch, rng):
    for kind, name in (("LSTM", "lstm"), ("GRU", "gru"), ("RNN", "rnn_tanh")):
        ours, theirs = twins(torch, kind, 4, 3, num_layers=2)
        hs = [pair(torch, rng.normal(size=(2, 3, 3))) for _ in range(1 + (kind == "LSTM"))]
        hx = [tuple(h[i] for h in hs) if kind == "LSTM" else hs[0][i] for i in (0, 1)]
        settings = (True, 2, 0.0, False, False)
        for shape, sizes in (((5, 3, 4), None), ((6, 4), [3, 2, 1])):
            x, y = pair(torch, rng.normal(size=shape))
            results = []
            for lib, data, state, m in ((mt, x, hx[0], ours), (torch, y, hx[1], theirs)):
                weights = list(m.parameters())
                call = getattr(lib, name)
                if sizes is None:
                    results.append(call(data, state, weights, *settings, False))
                else:
                    results.append(call(data, lib.tensor(sizes), state, weights, *settings))
            for a, b in zip(*results):
                close(a, b)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [*KINDS, "RNNCell", "LSTMCell", "GRUCell"])
def test_misuse_raises_what_torch_raises(torch, kind):
    wrong = [(2, 5), (5, 2, 5), (5, 2, 2, 4), (0, 2, 4)]
    for shape in wrong:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                getattr(torch.nn, kind)(4, 3)(torch.zeros(shape))
            except Exception as error:
                kind_of_error = type(error)
            else:
                continue
        with pytest.raises(kind_of_error):
            getattr(nn, kind)(4, 3)(mt.zeros(shape))
