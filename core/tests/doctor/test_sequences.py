"""Rules of sequences: what counts as padding, which state is whose, and that nothing is kept."""

import gc

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.doctor.mistakes import sequences
from mortice.nn import functional as F
from mortice.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from mortice.utils.data import DataLoader, TensorDataset


@pytest.fixture(autouse=True)
def seed():
    mt.manual_seed(0)


def watch(*ids):
    return doctor.watch(strict=True, quiet=True, only=ids)


def ids(session):
    return [f.rule for f in session.findings]


def padded(lengths, steps=8, width=2, value=0.0):
    x = mt.randn(len(lengths), steps, width)
    for row, n in zip(x, lengths):
        row[n:] = value
    return x


LENGTHS = [8, 5, 3, 7, 2, 8]


@pytest.mark.parametrize(
    ("tokens", "padding_idx", "lengths"),
    [
        ([[4, 5, 6, 7], [4, 5, 0, 0], [6, 0, 0, 0]], -1, [4, 2, 1]),
        ([[4, 5, 6, 7], [4, 5, 6, 0], [6, 4, 5, 6]], 0, [4, 3, 4]),
        ([[4, 5, 6, 7], [4, 5, 6, 0], [6, 4, 5, 6]], -1, None),  # one word, at the end of one sentence
        ([[4, 0, 6, 7], [4, 5, 0, 0], [6, 0, 0, 0]], -1, None),  # 0 is a word, too
        ([[4, 5, 0, 0], [4, 6, 0, 0], [6, 5, 0, 0]], -1, None),  # windows of one size
        ([[0, 0, 0, 0], [4, 5, 0, 0], [6, 0, 0, 0]], 0, None),  # an empty sentence
    ],
)
def test_the_lengths_of_tokens(tokens, padding_idx, lengths):
    for at in (mt.tensor(tokens), mt.tensor(tokens).t()):
        found = [p.lengths for p in sequences.of_tokens(at, padding_idx) if p.steps == 4]
        assert found == ([] if lengths is None else [lengths])


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_the_lengths_of_values(value):
    assert sequences.of_values(padded(LENGTHS, value=value)) == LENGTHS
    assert sequences.of_values(padded([5] * 6, value=value)) is None
    assert sequences.of_values(padded(LENGTHS, value=value).flip(1)) is None
    assert sequences.of_values(mt.randn(6, 8, 2)) is None
    pulses = (mt.arange(8) < mt.tensor(LENGTHS)[:, None]).float().unsqueeze(2)
    assert sequences.of_values(pulses) is None


@pytest.mark.parametrize("batch_first", [True, False])
def test_padding_is_followed_through_layers(batch_first):
    """A second layer's input is padded where the first one's was, though no step of it is constant."""
    project, first, second = nn.Linear(2, 4), nn.GRU(4, 5, batch_first=batch_first), None
    second = nn.GRU(5, 3, batch_first=batch_first, bidirectional=True)
    table = nn.Embedding(9, 2, padding_idx=0)
    tokens = mt.randint(1, 9, (6, 8)) * (mt.arange(8) < mt.tensor(LENGTHS)[:, None])
    tokens = tokens if batch_first else tokens.t()
    with watch("D15") as session:
        middle, _ = first(F.dropout(project(table(tokens)), 0.1))
        second(middle)
    (found,) = session.findings
    assert found.values["padded"] == 4 and "reverse direction" in found.message and "GRU" in found.message


def test_padding_is_no_matter_without_gradients_or_with_packing():
    rnn = nn.GRU(2, 4, batch_first=True, bidirectional=True)
    x = padded(LENGTHS)
    with watch("D15", "D22") as session:
        with mt.no_grad():
            out, _ = rnn(x)
            out[:, -1]
        out, h = rnn(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False))
        h[-1].sum().backward()
    assert not session.findings


@pytest.mark.parametrize("used", [True, False])
def test_the_last_state_matters_where_the_loss_uses_it(used):
    """As that of an encoder, which the decoder begins with."""
    encoder, decoder = nn.LSTM(2, 4, batch_first=True), nn.LSTM(3, 4, batch_first=True)
    with watch("D15") as session:
        out, state = encoder(padded(LENGTHS))
        answer, _ = decoder(mt.randn(6, 5, 3), state if used else None)
        (answer.sum() + out[:, 0].sum()).backward()
    assert ids(session) == ["D15"] * used


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, True),
        ({"ignore_index": 0}, False),
        ({"weight": mt.tensor([0.0, 1, 1, 1, 1, 1, 1, 1, 1])}, False),
        ({"weight": mt.tensor([0.1, 1, 1, 1, 1, 1, 1, 1, 1])}, True),
        ({"reduction": "none"}, False),
    ],
)
@pytest.mark.parametrize("flat", [True, False])
def test_a_loss_over_padding(options, said, flat):
    """The model reads all tokens; its last answer is dropped, since the targets are one step later."""
    table, head = nn.Embedding(9, 6, padding_idx=0), nn.Linear(6, 9)
    tokens = mt.randint(1, 9, (6, 8)) * (mt.arange(8) < mt.tensor(LENGTHS)[:, None])
    with watch("D15") as session:
        logits, targets = head(table(tokens))[:, :-1], tokens[:, 1:]
        if flat:
            loss = F.cross_entropy(logits.reshape(-1, 9), targets.reshape(-1), **options)
        else:
            loss = F.cross_entropy(logits.transpose(1, 2), targets, **options)
    assert ids(session) == ["D15"] * said
    if options.get("reduction"):
        with watch("D15") as session:
            logits = head(table(tokens))
            F.cross_entropy(logits.transpose(1, 2), tokens, **options).mean()
        assert ids(session) == ["D15"]
    elif said:
        (found,) = session.findings
        assert found.values["value"] == 0 and "ignore_index=0" in found.remedy and loss.ndim == 0


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("steps", [8, 6])  # 6: as many steps as sequences
def test_the_last_step_of_what_was_packed(batch_first, steps):
    rnn = nn.GRU(2, 4, batch_first=batch_first)
    lengths = [min(n, steps) for n in LENGTHS]
    x = padded(lengths, steps)
    with watch("D22") as session:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(rnn(packed)[0], batch_first=batch_first)
        (out[:, -1] if batch_first else out[-1]).sum().backward()
    assert ids(session) == ["D22"]
    with watch("D22") as session:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(rnn(packed)[0], batch_first=batch_first)
        (out[:, 0] if batch_first else out[0]).sum().backward()
    assert not session.findings


def test_a_last_state_is_no_output():
    """Even where there are as many layers as steps."""
    rnn = nn.GRU(4, 4, num_layers=8)
    with watch("D22", "D15") as session:
        _, h = rnn(padded(LENGTHS, width=4).transpose(0, 1).contiguous())
        h.mean()
        h[-1]
    assert h.shape == (8, 6, 4) and not session.findings


def carry(how, shuffle, drop_last=True):
    data = TensorDataset(mt.randn(70, 5, 3), mt.randn(70, 5, 4))
    lstm, state = nn.LSTM(3, 4, batch_first=True), None
    optimizer = mt.optim.SGD(lstm.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=8, shuffle=shuffle, drop_last=drop_last):
        out, state = lstm(x, state)
        state = how(state)
        optimizer.zero_grad()
        F.mse_loss(out, y).backward()
        optimizer.step()


@pytest.mark.parametrize(
    "how",
    [
        lambda s: tuple(t.detach() for t in s),
        lambda s: tuple(t.data.clone() for t in s),
        lambda s: tuple(mt.tensor(t.tolist()) for t in s),
    ],
)
def test_a_state_is_known_again_however_it_was_cut_off(how):
    with watch("D16") as session:
        carry(how, shuffle=True)
    assert ids(session) == ["D16"]
    with watch("D16") as session:
        carry(how, shuffle=False)
        carry(lambda s: None, shuffle=True)
    assert not session.findings


def said(caught):
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_hints_are_given_where_they_apply():
    with watch("D16"):
        with pytest.raises(RuntimeError, match="second time") as caught:
            carry(lambda s: s, shuffle=False)
        assert "state.detach()" in said(caught)
        with pytest.raises(RuntimeError, match=r"Expected hidden\[0\] size") as caught:
            carry(lambda s: tuple(t.detach() for t in s), shuffle=False, drop_last=False)
        assert "the last batch has 6 samples instead of 8" in said(caught)
        out, _ = nn.LSTM(3, 4)(mt.randn(5, 2, 3))
        out.sum().backward()
        with pytest.raises(RuntimeError, match="second time") as caught:
            out.sum().backward()
        assert "state.detach()" not in said(caught)
        with pytest.raises(RuntimeError, match="Expected hidden size") as caught:
            nn.GRU(3, 4)(mt.randn(5, 2, 3), mt.zeros(1, 3, 4))
        assert "drop_last" not in said(caught)


def spike(touch=lambda p: None, steps=40, length=12):
    rnn = nn.RNN(1, 4, num_layers=2, batch_first=True)
    optimizer = mt.optim.SGD(rnn.parameters(), lr=1e-4)
    for step in range(steps):
        out, _ = rnn(mt.ones(2, length, 1))
        loss = out.sum() * (1000.0 if step == 30 else 1.0)
        optimizer.zero_grad()
        loss.backward()
        touch(rnn.parameters())
        optimizer.step()


def test_a_jump_of_the_gradient_is_told_unless_somebody_looks_after_it():
    with watch("D20") as session:
        spike()
    (found,) = session.findings
    assert "at step 31" in found.message and found.site.function == "spike" and "clip_grad_norm_" in found.remedy

    def replace(parameters):
        for p in parameters:
            p.grad = p.grad * 1.0

    for touch in (
        lambda ps: nn.utils.clip_grad_norm_(ps, 1e6),
        lambda ps: nn.utils.clip_grad_value_(list(ps), 1e6),
        lambda ps: [p.grad.mul_(1.0) for p in ps],
        replace,
    ):
        with watch("D20") as session:
            spike(touch)
        assert not session.findings
    with watch("D20") as session:
        spike(length=9)
        spike(steps=30)
    assert not session.findings


def test_nothing_is_kept_alive():
    with watch("D15", "D16", "D20", "D22") as session:
        carry(lambda s: tuple(t.detach() for t in s), shuffle=False)
        table, rnn = nn.Embedding(9, 4, padding_idx=0), nn.GRU(4, 4, batch_first=True)
        tokens = mt.randint(1, 9, (6, 8)) * (mt.arange(8) < mt.tensor(LENGTHS)[:, None])
        out, _ = rnn(table(tokens))
        out[:, -1].sum().backward()
        known = sequences.sequences(session)
        assert len(known.layers) and len(known.tables)
        del out, _
        gc.collect()
        assert not len(known.layers) and not len(known.states) and not len(known.tables)
