"""ModuleTracker and FlopCounterMode beside PyTorch's: which modules run, forward and backward, and what each costs."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("torch")
from both_libraries import check  # noqa: E402 (it needs torch)

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("graph", [False, True])
def test_modules_are_tracked_as_torch_tracks_them(graph):
    def run(lib):
        tracker, log = importlib.import_module(f"{lib.__name__}.utils.module_tracker").ModuleTracker(), []

        def look():
            log.append([sorted(tracker.parents), tracker.is_bw])

        class Look(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                look()
                return x * 2

            @staticmethod
            def backward(ctx, g):
                look()
                return g * 2

        class Inner(lib.nn.Linear):
            def forward(self, x):
                return Look.apply(super().forward(Look.apply(x)))

        class Outer(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.rest = lib.nn.Linear(3, 3), lib.nn.ModuleList([Inner(3, 3)])

            def forward(self, x, also):
                return {"y": Look.apply(self.rest[0](self.first(x) + also[0]))}

        with tracker:
            outer, x = Outer(), lib.ones(2, 3, requires_grad=graph)
            for _ in range(2):
                made = outer(x, [x])["y"]
                look()
                made.sum().backward()
                look()
            outer.rest[0](x)
        outer(x, [x])
        return log

    check(run, may_raise=False)


@pytest.mark.parametrize("graph", [False, True])
def test_flops_of_a_backward_are_those_of_its_modules(graph):
    def run(lib):
        nn = lib.nn
        model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 5), nn.ReLU()), nn.Linear(5, 2))
        counter = importlib.import_module(f"{lib.__name__}.utils.flop_counter").FlopCounterMode(display=False)
        with counter:
            model(lib.ones(6, 3, requires_grad=graph)).sum().backward()
        return [sorted((name, sum(row.values())) for name, row in counter.get_flop_counts().items()), counter.get_total_flops()]

    check(run, may_raise=False)


def test_a_callback_is_called_at_the_end_of_the_backward():
    def run(lib):
        queue, log, x = lib.autograd.Variable._execution_engine.queue_callback, [], lib.ones(2, requires_grad=True)
        x.register_hook(lambda g: queue(lambda: log.append("end")))
        y = x * 2
        y.register_hook(lambda g: queue(lambda: log.append(x.grad.tolist())))
        for _ in range(2):
            y.sum().backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
            queue(print)
        return log

    check(run, may_raise=False)
