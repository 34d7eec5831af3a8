"""Fine points of the rules about how a network is put together and begins."""

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.nn import functional as F


def findings(model, steps=6, style=False, only=None):
    mt.manual_seed(0)
    optimizer = mt.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    with doctor.watch(strict=True, quiet=True, style=style, only=only) as session:
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(mt.randn(16, 4)), mt.randint(0, 3, (16,))).backward()
            optimizer.step()
    return session.findings


def constant(model, value=0.1):
    for p in model.parameters():
        nn.init.constant_(p, value if p.ndim > 1 else 0.0)
    return model


def test_all_layers_that_begin_constant_are_one_finding():
    model = constant(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)))
    (found,) = findings(model)
    assert found.rule == "D12" and found.values["layers"] == 2 and "Sequential.0" in found.message


@pytest.mark.parametrize("layer", [nn.Linear(4, 8), nn.RNNCell(4, 8)])
def test_constant_weights_before_random_ones_break_their_own_symmetry(layer):
    assert findings(nn.Sequential(constant(layer), nn.Tanh(), nn.Linear(8, 3))) == []


@pytest.mark.parametrize(("apart", "told"), [(1e-7, 1), (1e-2, 0)])
def test_rows_that_a_product_rounds_apart_are_still_equal(apart, told):
    weight = mt.full((8, 4), 0.1, requires_grad=True)
    weight.register_hook(lambda g: mt.full((8, 4), 0.5) + apart * mt.arange(8.0)[:, None])
    optimizer = mt.optim.SGD([weight], lr=0.01)
    with doctor.watch(optimizer) as session:
        for _ in range(3):
            optimizer.zero_grad()
            (mt.ones(16, 4) @ weight.t()).sum().backward()
            optimizer.step()
    assert [found.rule for found in session.findings].count("D12") == told


def test_useless_biases_of_a_model_are_one_finding_that_counts_them():
    model = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)
    )
    (found,) = findings(model)
    assert (found.rule, found.level, found.values["parameters"], found.values["layers"]) == ("D05", "info", 14, 2)


def test_a_second_model_is_looked_at_however_late_it_comes():
    mt.manual_seed(0)
    with doctor.watch(strict=True, quiet=True, only=["D05"]) as session:
        for norm in (nn.Identity(), nn.BatchNorm1d(8)):
            model = nn.Sequential(nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, 3))
            optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(48):
                optimizer.zero_grad()
                F.cross_entropy(model(mt.randn(16, 4)), mt.randint(0, 3, (16,))).backward()
                optimizer.step()
    assert [f.rule for f in session.findings] == ["D05"]


def test_matters_of_taste_are_quiet_unless_asked_for():
    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Linear(8, 3))
    assert findings(model) == []
    assert [f.rule for f in findings(model, style=True)] == ["D13"]
