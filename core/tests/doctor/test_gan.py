"""Fine points of the rules about training that starves."""

import mortice as mt
from mortice import doctor, nn
from mortice.nn import functional as F


def test_networks_of_one_class_are_told_apart_by_who_reads_whom():
    mt.manual_seed(0)
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    a, b = mt.optim.SGD(first.parameters(), lr=0.1), mt.optim.SGD(second.parameters(), lr=0.1)

    def run(detach):
        with doctor.watch(strict=True, quiet=True, only=["D30"]) as session:
            for _ in range(12):
                b.zero_grad()
                h = first(mt.randn(8, 3))
                second(h.detach() if detach else h).square().mean().backward()
                b.step()
                a.zero_grad()
                second(first(mt.randn(8, 3))).mean().backward()
                a.step()
        return [f.rule for f in session.findings]

    assert run(detach=False) == ["D30"] and run(detach=True) == []


def test_parts_of_one_model_with_optimizers_that_take_turns_are_quiet():
    mt.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    turns = [mt.optim.SGD(model[i].parameters(), lr=0.1) for i in (0, 2)]
    with doctor.watch(strict=True, quiet=True) as session:
        for step in range(24):
            model.zero_grad()
            F.cross_entropy(model(mt.randn(8, 3)), mt.randint(0, 2, (8,))).backward()
            turns[step % 2].step()
    assert session.findings == []


def losses(values, watch_only=("D36",), gradient=0.0):
    w = mt.zeros(3, requires_grad=True)
    optimizer = mt.optim.SGD([w], lr=0.0 if gradient else 0.1)
    with doctor.watch(strict=True, quiet=True, only=watch_only) as session:
        for value in values:
            optimizer.zero_grad()
            ((gradient * w).sum() + value).backward()
            optimizer.step()
    return [f.rule for f in session.findings]


def test_a_loss_that_stands_without_a_gradient_is_stuck_and_one_that_has_fallen_has_converged():
    assert losses([2.5] * 80) == ["D36"]
    assert losses([2.5] * 5 + [0.0] * 80) == []
    assert losses([2.5] * 40) == []
    assert losses([2.5 - 0.001 * i for i in range(80)]) == []


def test_a_learning_rate_of_zero_is_no_stuck_loss():
    assert losses([2.5] * 80, gradient=1e-12) == []
    assert losses([-1.0] * 80) == ["D36"]
