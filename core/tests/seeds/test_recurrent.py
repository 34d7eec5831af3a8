"""The founding notes on recurrent networks: two directions, padded batches, masks, state across batches."""

from __future__ import annotations

import pytest

import mortice as mt
from mortice import nn
from mortice.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

HIDDEN = 3


def both_ways(**settings):
    mt.manual_seed(0)
    return nn.LSTM(2, HIDDEN, bidirectional=True, **settings)


def test_RN01_output_has_a_half_for_each_direction_and_hn_their_ends():
    net, x = both_ways(), mt.randn(5, 1, 2)
    output, (hn, _) = net(x)
    assert output.shape == (5, 1, 2 * HIDDEN) and hn.shape == (2, 1, HIDDEN)
    for t in range(5):
        seen, _ = net(x[: t + 1])  # the forward half knows w1..wt
        assert mt.allclose(output[t, :, :HIDDEN], seen[-1, :, :HIDDEN], atol=1e-6)
        seen, _ = net(x[t:])  # the backward half knows wN..wt
        assert mt.allclose(output[t, :, HIDDEN:], seen[0, :, HIDDEN:], atol=1e-6)
    assert mt.allclose(hn[0], output[-1, :, :HIDDEN]) and mt.allclose(hn[1], output[0, :, HIDDEN:])


def test_RN02_the_way_back_is_lost_in_the_last_output():
    net, x = both_ways(), mt.randn(5, 1, 2)
    output, (hn, _) = net(x)
    other = x.clone()
    other[:4] = mt.randn(4, 1, 2)
    changed, (ends, _) = net(other)
    assert mt.equal(output[-1, :, HIDDEN:], changed[-1, :, HIDDEN:])  # it has seen the last word alone
    assert not mt.allclose(output[-1, :, :HIDDEN], changed[-1, :, :HIDDEN])
    assert not mt.allclose(hn[1], ends[1])


@pytest.mark.seed("TR26")
def test_RN03_the_last_step_of_each_sequence():
    net, lengths = both_ways(batch_first=True), mt.tensor([4, 2, 3])
    x = mt.randn(3, 4, 2)
    for row, n in enumerate(lengths.tolist()):
        x[row, n:] = 0
    one_way = nn.LSTM(2, HIDDEN, batch_first=True)
    output, (hn, _) = one_way(x)
    picked = output[mt.arange(3), lengths - 1]
    alone = [one_way(x[row : row + 1, :n])[1][0][0, 0] for row, n in enumerate(lengths.tolist())]
    assert mt.allclose(picked, mt.stack(alone), atol=1e-6)
    assert not mt.allclose(output[:, -1], picked)  # the mistake: padding was read too
    assert not mt.allclose(hn[0], picked)

    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    output, (hn, _) = net(packed)
    padded, sizes = pad_packed_sequence(output, batch_first=True)
    assert sizes.tolist() == lengths.tolist()
    for row, n in enumerate(lengths.tolist()):
        assert padded[row, n:].abs().sum().item() == 0
        _, (ends, _) = net(x[row : row + 1, :n])
        assert mt.allclose(hn[:, row], ends[:, 0], atol=1e-6)


@pytest.mark.seed("TR17")
def test_RN04_padding_is_masked_out_of_means_and_losses():
    x = mt.tensor([[1.0, 3.0, 0.0, 0.0], [2.0, 4.0, 6.0, 8.0]])
    mask = mt.arange(4) < mt.tensor([[2], [4]])
    assert ((x * mask).sum(1) / mask.sum(1)).tolist() == [2, 5]
    assert x.mean(1).tolist() == [1, 5]  # the mistake
    logits, target = mt.randn(2, 4, 5), mt.tensor([[1, 2, -1, -1], [0, 3, 4, 1]])
    loss = nn.CrossEntropyLoss(ignore_index=-1)(logits.transpose(1, 2), target)
    assert mt.allclose(loss, nn.functional.cross_entropy(logits[mask], target[mask]))


@pytest.mark.seed("TR25")
def test_RN05_the_state_goes_on_and_is_detached():
    mt.manual_seed(0)
    net, x = nn.LSTM(2, HIDDEN), mt.randn(6, 1, 2)
    whole, _ = net(x)
    first, state = net(x[:3])
    second, _ = net(x[3:], state)
    assert mt.allclose(mt.cat([first, second]), whole, atol=1e-6)
    afresh, _ = net(x[3:])
    assert not mt.allclose(afresh, second)

    first.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        second.sum().backward()
    h, c = (s.detach() for s in state)
    net(x[3:], (h, c))[0].sum().backward()


@pytest.mark.seed("RN06", "TR21")
def test_RN06_the_gradient_of_a_long_sequence_is_clipped():
    mt.manual_seed(0)
    net = nn.LSTM(2, HIDDEN)
    (net(mt.randn(40, 1, 2) * 10)[0].sum() * 1e4).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.25)
    assert norm.item() > 100
    assert mt.cat([p.grad.flatten() for p in net.parameters()]).norm().item() == pytest.approx(0.25, rel=1e-3)


@pytest.mark.seed("TR22")
def test_RN07_unshuffled_batches_are_the_pieces_in_their_order():
    pieces = mt.arange(12).view(6, 2)
    loader = mt.utils.data.DataLoader(mt.utils.data.TensorDataset(pieces), batch_size=1, shuffle=False)
    for _ in range(2):
        assert mt.cat([x.flatten() for (x,) in loader]).tolist() == list(range(12))
    mt.manual_seed(0)
    shuffled = mt.utils.data.DataLoader(mt.utils.data.TensorDataset(pieces), batch_size=1, shuffle=True)
    assert mt.cat([x.flatten() for (x,) in shuffled]).tolist() != list(range(12))
