"""The founding notes' list of mistakes in training, where a test elsewhere does not show the mistake itself."""

from __future__ import annotations

import math

import pytest

import mortice as mt
from mortice import nn

F = nn.functional


def test_TR02_predictions_in_training_mode_are_not_the_models():
    mt.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)), mt.randn(6, 8)
    with mt.no_grad():
        first, second = net(x), net(x)
        assert not mt.equal(first, second) and net[1].num_batches_tracked.item() == 2
        net.eval()
        assert mt.equal(net(x), net(x)) and net[1].num_batches_tracked.item() == 2
        assert mt.allclose(net(x)[:1], net(x[:1]), atol=1e-6)  # one at a time, which BatchNorm refuses in training


def test_TR03_without_zero_grad_a_step_takes_the_gradients_of_all_before():
    moved = {}
    for clear in (True, False):
        w = nn.Parameter(mt.zeros(1))
        step = mt.optim.SGD([w], lr=1.0)
        for _ in range(3):
            if clear:
                step.zero_grad()
            w.sum().backward()
            step.step()
        moved[clear] = w.item()
    assert moved == {True: -3, False: -6}


def test_TR05_without_a_bias_at_the_output_a_mean_cannot_be_fitted():
    mt.manual_seed(0)
    x = mt.randn(64, 2)
    y = mt.full((64, 1), 5.0)
    losses = []
    for bias in (True, False):
        net = nn.Linear(2, 1, bias=bias)
        step = mt.optim.SGD(net.parameters(), lr=0.2)
        for _ in range(60):
            step.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            step.step()
        losses.append(loss.item())
    assert losses[0] < 1e-3 and losses[1] > 15


@pytest.mark.seed("TR13", "TR24")
def test_TR08_batches_of_sorted_data_have_one_class_each():
    labels = mt.arange(40) // 10
    data = mt.utils.data.TensorDataset(labels)
    classes = [len(y.unique()) for (y,) in mt.utils.data.DataLoader(data, batch_size=10)]
    mt.manual_seed(0)
    shuffled = [len(y.unique()) for (y,) in mt.utils.data.DataLoader(data, batch_size=10, shuffle=True)]
    assert classes == [1, 1, 1, 1] and min(shuffled) > 1


def test_TR10_softmax_over_the_batch_is_silent():
    logits = mt.tensor([[5.0, 0.0], [5.0, 0.0]])
    assert mt.allclose(F.softmax(logits, dim=0), mt.full((2, 2), 0.5))  # sure, and yet it says nothing
    assert F.softmax(logits, dim=1)[:, 0].min().item() > 0.99


def test_TR11_a_relu_before_softmax_has_an_upper_bound():
    with_relu = F.softmax(F.relu(mt.tensor([[2.0, -50.0, -50.0]])), dim=1)
    assert with_relu[0, 0].item() == pytest.approx(math.exp(2) / (math.exp(2) + 2))


@pytest.mark.seed("LO05")
def test_TR12_softmax_cannot_say_yes_twice():
    logits = mt.tensor([[8.0, 8.0, -8.0]])
    target = mt.tensor([[1.0, 1.0, 0.0]])
    assert (logits.softmax(1) > 0.5).sum().item() == 0
    assert (logits.sigmoid() > 0.5).tolist() == [[True, True, False]]
    assert F.binary_cross_entropy_with_logits(logits, target).item() < 1e-3
    assert F.binary_cross_entropy(logits.softmax(1), target).item() > 0.4


@pytest.mark.parametrize("order", ["norm first", "activation first"])
def test_TR15_batch_norm_may_stand_on_either_side_of_an_activation(order):
    mt.manual_seed(0)
    middle = [nn.BatchNorm1d(8), nn.ReLU()]
    net = nn.Sequential(nn.Linear(2, 8), *(middle if order == "norm first" else middle[::-1]), nn.Linear(8, 1))
    x = mt.randn(32, 2)
    y = x[:, :1] * 2 - 1
    step = mt.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        step.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.seed("OP10")
def test_TR20_a_best_rate_at_the_edge_asks_for_a_wider_search():
    def last_loss(lr):
        w = nn.Parameter(mt.tensor([4.0]))
        step = mt.optim.SGD([w], lr=lr)
        for _ in range(10):
            step.zero_grad()
            w.square().sum().backward()
            step.step()
        return w.square().item()

    tried, wider = [1e-3, 3e-3, 1e-2], [1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.5, 1.1]
    assert min(tried, key=last_loss) == tried[-1]
    assert min(wider, key=last_loss) == 0.5 and last_loss(1.1) > 16


def test_TR23_dropout_at_the_output_puts_a_floor_under_the_loss():
    mt.manual_seed(0)
    y = mt.full((500, 1), 2.0)
    layer = nn.Dropout(0.5)
    assert F.mse_loss(layer(y), y).item() == pytest.approx(4, abs=0.2)  # right everywhere, and 0 or 4 comes out
    assert F.mse_loss(layer.eval()(y), y).item() == 0
