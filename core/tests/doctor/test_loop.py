"""Fine points of the rules about the training loop: what they cost, and what they must not mistake for a mistake."""

import gc
import weakref

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.nn import functional as F


def watched(run, **options):
    with doctor.watch(strict=True, quiet=True, **options) as session:
        run()
    return session


def found(run, **options):
    return [f.rule for f in watched(run, **options).findings]


def net():
    mt.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))


def fit(model, optimizer, steps=4):
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(mt.randn(16, 4)), mt.randint(0, 2, (16,))).backward()
        optimizer.step()


@pytest.mark.parametrize("set_to_none", [True, False])
def test_cleared_gradients_are_told_by_identity_and_version_without_reading_a_value(set_to_none, monkeypatch):
    reads = []
    monkeypatch.setattr(mt.Tensor, "any", lambda *a, **k: reads.append(a))
    monkeypatch.setattr(mt.Tensor, "__bool__", lambda self: bool(reads.append(self)))
    model = nn.Linear(4, 2)
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)

    def run():
        for _ in range(8):
            optimizer.zero_grad(set_to_none)
            model(mt.randn(16, 4)).sum().backward()
            optimizer.step()

    assert found(run, only=["D03"]) == [] and not reads


def test_gradients_cleared_only_now_and_then_are_no_forgotten_zero_grad_until_three_in_a_row():
    def run(every):
        model = nn.Linear(4, 2)
        optimizer = mt.optim.SGD(model.parameters(), lr=1e-3)
        for i in range(20):
            if i % every == 0:
                optimizer.zero_grad()
            model(mt.randn(16, 4)).sum().backward()
            optimizer.step()

    assert found(lambda: run(3), only=["D03"]) == [] and found(lambda: run(8), only=["D03"]) == ["D03"]


def test_the_watch_keeps_no_gradient_alive():
    with doctor.watch(strict=True, quiet=True):
        model = net()
        optimizer = mt.optim.Adam(model.parameters())
        fit(model, optimizer, 6)
        grads = [weakref.ref(p.grad) for p in model.parameters()]
        optimizer.zero_grad()
        gc.collect()
        assert not any(ref() is not None for ref in grads)


def test_an_evaluation_in_training_mode_says_how_many_layers_are_active():
    def run():
        model = net()
        fit(model, mt.optim.SGD(model.parameters(), lr=0.1))
        with mt.no_grad():
            for _ in range(5):
                model(mt.randn(16, 4))

    (finding,) = watched(run, only=["D02"]).findings
    assert finding.values["active"] == 2 and finding.count == 2 and "BatchNorm1d/Dropout" in finding.message


def test_evaluation_before_anything_was_learned_or_after_train_was_called_is_not_reported():
    def run():
        model = net()
        with mt.no_grad():
            for _ in range(5):
                model(mt.randn(16, 4))
        fit(model, mt.optim.SGD(model.parameters(), lr=0.1))
        model.train()
        with mt.no_grad():
            for _ in range(5):
                model(mt.randn(16, 4))

    assert found(run, only=["D02"]) == []


def test_outputs_kept_for_one_backward_are_no_evaluation():
    def run():
        model = net()
        optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            total = sum(F.cross_entropy(model(mt.randn(16, 4)), mt.randint(0, 2, (16,))) for _ in range(6))
            optimizer.zero_grad()
            total.backward()
            optimizer.step()

    assert found(run, only=["D02"]) == []


@pytest.mark.parametrize("pretrained, level", [(False, ["warning"]), (True, ["info"])])
def test_training_batchnorm_in_eval_mode_is_graver_where_its_statistics_are_of_no_data(pretrained, level):
    def run():
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        if pretrained:
            model[1].num_batches_tracked.fill_(100)
        model.eval()
        fit(model, mt.optim.SGD(model.parameters(), lr=0.1), 6)

    assert [f.level for f in watched(run, only=["D02"]).findings] == level


def test_adversarial_examples_made_in_eval_mode_are_quiet():
    def run():
        model = net()
        optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            x, y = mt.randn(16, 4).requires_grad_(), mt.randint(0, 2, (16,))
            model.eval()
            F.cross_entropy(model(x), y).backward()
            attacked = (x + 0.1 * x.grad.sign()).detach()
            model.train()
            optimizer.zero_grad()
            F.cross_entropy(model(attacked), y).backward()
            optimizer.step()

    assert found(run, only=["D02"]) == []


def test_rows_that_were_kept_by_zero_gradients_are_counted():
    def run():
        table = nn.Embedding(6, 3)
        optimizer = mt.optim.SGD(table.parameters(), lr=0.1, momentum=0.9)
        for step in range(12):
            optimizer.zero_grad()
            table(mt.arange(6)).square().sum().backward()
            if step > 0:
                table.weight.grad[:2] = 0
            optimizer.step()

    (finding,) = watched(run, only=["D40"]).findings
    assert "2 of 6 rows" in finding.message and "SGD keeps momentum" in finding.message


def test_zero_grad_between_backward_and_step_is_named_as_that():
    def run(set_to_none):
        model = nn.Linear(4, 2)
        optimizer = mt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(12):
            F.cross_entropy(model(mt.randn(16, 4)), mt.randint(0, 2, (16,))).backward()
            optimizer.zero_grad(set_to_none)
            optimizer.step()

    assert found(lambda: run(True)) == ["D36"] and found(lambda: run(False), only=["D40"]) == []


def test_what_data_parallel_was_asked_for_is_kept():
    assert nn.DataParallel(nn.Linear(2, 2), device_ids=None).requested_ids == []
