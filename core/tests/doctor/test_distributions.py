"""D18: what it samples and when, what it says of values that are not finite, and that it looks without touching."""

import json
import math

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.doctor import samples
from mortice.doctor.samples import Samples
from mortice.nn import functional as F


def watched(**options):
    return doctor.watch(strict=True, quiet=True, only=["D18"], **options)


def train(model, steps, lr=0.01, loss=None):
    optimizer = mt.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        y = model(mt.randn(32, 6))
        (y.square().mean() if loss is None else loss(y)).backward()
        optimizer.step()


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))


def test_it_samples_the_first_steps_and_then_each_50th():
    with watched() as session:
        train(network(), 420)
    steps = {tuple(s["step"] for s in t.samples) for t in session.samples}
    assert steps == {(1, 5, 20, 50, 100, 150, 200, 250, 300, 400)}
    assert [t.name for t in session.samples.activations.values()] == [f"Sequential.{i}" for i in (0, 1, 2, 3, 5)]
    assert [t.name for t in session.samples.layers.values()] == [f"Sequential.{i}" for i in (0, 2, 5)]
    assert not session.findings


def test_of_several_optimisers_each_is_sampled():
    one, other = nn.Linear(6, 2), nn.Linear(6, 2)
    a, b = mt.optim.SGD(one.parameters(), lr=0.01), mt.optim.SGD(other.parameters(), lr=0.01)
    with watched() as session:
        for i in range(120):
            for model, optimizer in ((one, a), (other, b)):
                if model is one or i % 3 == 2:  # the second one steps more rarely, as a generator does
                    optimizer.zero_grad()
                    model(mt.randn(8, 6)).square().mean().backward()
                    optimizer.step()
    first, second = session.samples.layers.values()
    assert (first.name, second.name) == ("Linear", "Linear #2") and len(first.samples) >= len(second.samples) > 4


def test_the_figures_are_right():
    model = nn.Linear(6, 1, bias=False)
    before = model.weight.detach().clone()
    with watched() as session:
        train(model, 1, lr=0.5)
    (layer,) = session.samples.layers.values()
    (sample,) = layer.samples
    assert sample["gradient"] == pytest.approx(model.weight.grad.norm().item())
    assert sample["update"] == pytest.approx(((model.weight - before).norm() / before.norm()).item(), rel=1e-4)
    assert sample["weight"] == pytest.approx(before.norm().item()) and sum(sample["magnitudes"]) == 6
    (given,) = session.samples.activations.values()
    assert sum(given.samples[0]["counts"]) == 32


def test_a_histogram_counts_every_finite_value():
    made = samples.histogram([0.0, 1.0, 1.0, math.nan, 2.0, math.inf])
    assert (made["low"], made["high"], sum(made["counts"]), made["mean"]) == (0.0, 2.0, 4, 1.0)
    assert samples.histogram([3.0] * 5)["counts"][0] == 5 and samples.histogram([math.nan])["counts"] == []
    counts, zero = samples.magnitudes([0.0, 1e-30, 1.5, 1e30])
    assert (counts[0], counts[24], counts[-1], zero) == (1, 1, 1, 0.25)


def test_values_are_picked_from_all_channels():
    t = mt.arange(64.0).repeat(64, 1)
    assert len(set(samples.values_of(t))) == 64 and len(samples.values_of(t)) <= samples.VALUES
    assert samples.values_of(mt.arange(3)) == samples.values_of(mt.zeros(0)) == []


def test_samples_are_thinned_when_there_are_too_many():
    kept = Samples()
    track = kept.track(kept.layers, 1, "a", "")
    step = 1
    while step < 20_000:
        track.samples.append({"step": step})
        kept.thin()
        step = kept.after(step)
    steps = [s["step"] for s in track.samples]
    assert (
        len(steps) <= samples.MOST + 1
        and steps[:3] == [1, 5, 20]
        and steps[-1] > 19_000
        and steps == sorted(set(steps))
    )


def test_what_is_kept_is_plain_and_small():
    with watched() as session:
        train(network(), 60)
    told = session.report("json")
    assert json.loads(told)["samples"]["layers"][0]["samples"][0]["step"] == 1
    assert json.loads(told)["curve"][0][0] == 0 and len(told) < 30_000


def test_watching_changes_nothing():
    def run():
        mt.manual_seed(0)
        model = network()
        train(model, 25)
        return [p.tolist() for p in model.parameters()]

    alone = run()
    with watched():
        assert run() == alone


def test_a_tanh_that_makes_the_output_may_be_saturated():
    class Net(nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.a, self.b, self.hidden = nn.Linear(6, 16), nn.Linear(16, 4), hidden

        def forward(self, x):
            h = self.a(100 * x)
            return self.b(h.tanh()) if self.hidden else {"action": [self.b(h).mul(50).tanh().view(-1, 2, 2)]}

    with watched() as session:
        train(Net(True), 60, lr=1e-4)
    (found,) = session.findings
    assert found.message.startswith("tanh in Net: ") and "saturated, for 3 checks in a row" in found.message
    with watched() as session:
        train(Net(False), 60, lr=1e-4, loss=lambda y: y["action"][0].square().mean())
    assert not session.findings


def test_channels_of_images_are_those_of_the_second_dim():
    model = nn.Sequential(nn.Conv2d(1, 10, 3), nn.ReLU(), nn.Flatten(), nn.Linear(360, 2))
    nn.init.constant_(model[0].bias.detach()[:8], -50.0)
    optimizer = mt.optim.SGD(model.parameters(), lr=1e-3)
    with watched() as session:
        for _ in range(21):
            optimizer.zero_grad()
            model(mt.randn(8, 1, 8, 8)).square().mean().backward()
            optimizer.step()
    (found,) = session.findings
    assert "8 of 10 channels gave 0" in found.message and found.message.startswith("Sequential.1 (ReLU): ")


@pytest.mark.parametrize(
    ("op", "make", "remedy"),
    [
        ("Log", lambda y: (y - y).log().mean(), "clamp"),
        ("Exp", lambda y: (y * 1e6).square().exp().mean(), "logsumexp"),
        ("Div", lambda y: (y / (y - y)).mean(), "divisor"),
        ("Sqrt", lambda y: (-(y.square()) - 1).sqrt().mean(), "Keep its operand above 0"),
    ],
)
def test_the_op_of_the_first_value_that_is_not_finite_is_named(op, make, remedy):
    with watched() as session:
        train(nn.Sequential(nn.Linear(6, 2)), 1, loss=make)
    (found,) = session.findings
    assert found.level == "error" and f"came from {op}" in found.message and remedy in found.remedy
    assert "Sequential.0.weight" in found.message


def test_a_gradient_that_is_not_finite_is_seen_in_the_parameters_of_the_next_step():
    with watched() as session:
        train(nn.Linear(6, 2), 3, loss=lambda y: (y - y.detach()).square().sum().sqrt() + 1.0)
    (found,) = session.findings
    assert "Linear.weight is not finite itself; at step 1 the loss was 1 still" in found.message and found.step == 1


def test_a_mask_of_minus_infinity_is_not_blamed():
    mask = mt.zeros(32, 2)
    mask[:, 1] = -math.inf
    mask[3, 0] = -math.inf
    with watched() as session:
        train(nn.Linear(6, 2), 1, loss=lambda y: (F.softmax(y + mask, dim=1) * 2).square().mean())
    (found,) = session.findings
    assert "came from Softmax" in found.message and "mask" in found.remedy


def test_what_follows_from_another_mistake_is_information():
    model = nn.Linear(6, 1)
    optimizer = mt.optim.SGD(model.parameters(), lr=0.2)
    with doctor.watch(strict=True, quiet=True, only=["D03", "D18"]) as session:
        for _ in range(400):
            (model(mt.ones(4, 6) * 20) ** 4).mean().backward()
            optimizer.step()
    levels = {f.rule: f.level for f in session.findings}
    assert levels in ({"D03": "warning", "D18": "info"}, {"D18": "error"})


def test_functional_transforms_are_no_trouble():
    model = nn.Linear(6, 3)
    optimizer = mt.optim.SGD(model.parameters(), lr=0.01)
    with watched() as session:
        for _ in range(3):
            optimizer.zero_grad()
            out = mt.func.vmap(lambda row: F.relu(model(row)))(mt.randn(5, 6))
            out.sum().backward()
            optimizer.step()
    assert not session.findings
