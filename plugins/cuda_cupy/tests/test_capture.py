"""Captured work: whole training steps whose replays are what the same steps would be without, to the bit."""

from __future__ import annotations

import copy
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

import mortice as mt
from mortice import cuda, nn

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no GPU here; test_emulated runs these on the stand-in")
cross_entropy = nn.functional.cross_entropy
STEPS, WARM = 20, 2


def replayed_and_eager(
    model: Any, optimiser: Callable[[Any], Any], batches: list[Any], loss_of: Callable[..., Any], *, between: Any = None
) -> tuple[list[float], list[float], Any, Any]:
    """Train two copies on the device, one by replays after two warm steps; return losses and copies."""
    eager, captured = copy.deepcopy(model).cuda(), copy.deepcopy(model).cuda()
    mine, other = optimiser(eager), optimiser(captured)

    def step(m: Any, o: Any, batch: Any) -> Any:
        o.zero_grad()
        loss = loss_of(m, *batch)
        loss.backward()
        o.step()
        return loss

    def changed(o: Any, i: int) -> None:
        if between is not None:
            between(o, i)

    mt.manual_seed(7)
    expected = []
    for i, batch in enumerate(batches):
        changed(mine, i)
        expected.append(step(eager, mine, [t.cuda() for t in batch]).item())
    mt.manual_seed(7)
    static, found = [t.cuda().clone() for t in batches[0]], []
    with cuda.stream(cuda.Stream()):
        for i, batch in enumerate(batches[:WARM]):
            changed(other, i)
            for place, t in zip(static, batch):
                place.copy_(t)
            found.append(step(captured, other, static).item())
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    before = mt.get_rng_state().tolist()
    with cuda.graph(graph):
        assert cuda.is_current_stream_capturing()
        loss = step(captured, other, static)
    assert not cuda.is_current_stream_capturing() and mt.get_rng_state().tolist() == before
    for i, batch in enumerate(batches[WARM:], WARM):
        changed(other, i)
        for place, t in zip(static, batch):
            place.copy_(t)
        graph.replay()
        found.append(loss.item())
        junk = mt.full((64, 64), float("nan"), device="cuda")  # what others do with memory that was free
        del junk
    return found, expected, captured, eager


def check(*case: Any, **options: Any) -> None:
    """Check that losses and parameters of replays are those of eager steps, bit for bit."""
    found, expected, captured, eager = replayed_and_eager(*case, **options)
    assert found == expected and len(set(found)) == len(found)
    for (name, p), q in zip(captured.state_dict().items(), eager.state_dict().values()):
        assert p.tolist() == q.tolist(), name


def labelled(*shape: int, classes: int = 4) -> list[Any]:
    """Return batches with labels."""
    mt.manual_seed(1)
    return [(mt.randn(*shape), mt.randint(0, classes, (shape[0],))) for _ in range(WARM + STEPS)]


def mlp() -> Any:
    """Return a small network with dropout."""
    mt.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 4), nn.Dropout(0.5))


OPTIMISERS: dict[str, Callable[[Any], Any]] = {
    "Adam": lambda m: mt.optim.Adam(m.parameters(), lr=0.01, capturable=True),
    "AdamW amsgrad": lambda m: mt.optim.AdamW(m.parameters(), lr=0.01, amsgrad=True, capturable=True),
    "Adamax": lambda m: mt.optim.Adamax(m.parameters(), lr=0.01, weight_decay=0.1, capturable=True),
    "RMSprop": lambda m: mt.optim.RMSprop(m.parameters(), lr=0.01, momentum=0.5, capturable=True),
    "SGD": lambda m: mt.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
    "plain SGD": lambda m: mt.optim.SGD(m.parameters(), lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_network_with_dropout(name: str) -> None:
    check(mlp(), OPTIMISERS[name], labelled(6, 5), lambda m, x, y: cross_entropy(m(x), y))


def test_a_recurrent_network() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.lstm = nn.Embedding(11, 6), nn.LSTM(6, 8, num_layers=2, dropout=0.4, batch_first=True)
            self.head = nn.Linear(8, 11)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embed(x))[0])

    mt.manual_seed(2)
    batches = [(mt.randint(0, 11, (3, 5)), mt.randint(0, 11, (3, 5))) for _ in range(WARM + STEPS)]
    check(Model(), OPTIMISERS["Adam"], batches, lambda m, x, y: cross_entropy(m(x).flatten(0, 1), y.flatten()))


def test_a_convolutional_network() -> None:
    mt.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.25),
        nn.Conv2d(4, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(16, 4),
    )  # fmt: skip
    check(model, OPTIMISERS["Adam"], labelled(4, 2, 8, 8), lambda m, x, y: cross_entropy(m(x), y))


def test_a_learning_rate_on_the_device_changes_between_replays() -> None:
    def rate(o: Any, i: int) -> None:
        o.param_groups[0]["lr"].fill_(0.01 / (i + 1))

    check(
        mlp(), lambda m: mt.optim.AdamW(m.parameters(), lr=mt.tensor(0.01, device="cuda"), capturable=True),
        labelled(6, 5), lambda m, x, y: cross_entropy(m(x), y), between=rate,
    )  # fmt: skip


def test_captured_adam_is_adam() -> None:
    found, _, _, _ = replayed_and_eager(
        mlp().eval(), OPTIMISERS["Adam"], labelled(6, 5), lambda m, x, y: cross_entropy(m(x), y)
    )
    _, plain, _, _ = replayed_and_eager(
        mlp().eval(), OPTIMISERS["SGD"], labelled(6, 5), lambda m, x, y: cross_entropy(m(x), y)
    )
    model = mlp().eval()
    adam = mt.optim.Adam(model.parameters(), lr=0.01)
    expected = []
    for x, y in labelled(6, 5):
        adam.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        adam.step()
        expected.append(loss.item())
    assert found == pytest.approx(expected, rel=1e-5) and found != pytest.approx(plain, rel=1e-3)


# ---- random numbers ----


def draws(generator: Any = None) -> list[Any]:
    """Draw in every way, with places in the stream that are no multiples of a block."""
    where: dict[str, Any] = {"device": "cuda", "generator": generator}
    p = mt.full((3,), 0.4, device="cuda")
    return [
        mt.rand(3, **where), mt.randn(7, **where), mt.rand(2, dtype=mt.float64, **where), mt.randn(5, dtype=mt.bfloat16, **where),
        mt.randint(0, 1000, (3,), **where), mt.randperm(6, **where), mt.bernoulli(p, generator=generator),
        mt.empty(3, device="cuda").exponential_(generator=generator), nn.functional.dropout(mt.ones(9, device="cuda"), 0.5),
        mt.randn(2, dtype=mt.complex64, **where), mt.empty(3, device="cuda").normal_(generator=generator),
    ]  # fmt: skip


@pytest.mark.parametrize("own", [False, True])
def test_replays_draw_what_eager_calls_would(own: bool) -> None:
    generator = mt.Generator("cuda").manual_seed(5) if own else None
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        tensors = draws(generator)
    mt.manual_seed(3)
    found = []
    for _ in range(3):
        graph.replay()
        found.append([t.tolist() for t in tensors])
        mt.rand(1, device="cuda")  # others draw between replays
    state = mt.get_rng_state().tolist()
    mt.manual_seed(3)
    if own:
        generator = generator.manual_seed(5)
    for i in range(3):
        assert [t.tolist() for t in draws(generator)] == found[i]
        mt.rand(1, device="cuda")
    assert mt.get_rng_state().tolist() == state
    assert found[0] != found[1]


def test_a_checkpointed_part_draws_the_same_again() -> None:
    from mortice.utils.checkpoint import checkpoint

    x = mt.ones(50, device="cuda", requires_grad=True)

    def part(v: Any) -> Any:
        return nn.functional.dropout(v * 2, 0.5) * 3

    for reentrant in (False, True):
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            x.grad = None
            out = checkpoint(part, x, use_reentrant=reentrant)
            out.sum().backward()
        before = mt.default_generator.offset
        seen = set()
        for _ in range(3):
            graph.replay()
            assert x.grad.tolist() == out.tolist()
            seen.add(tuple(out.tolist()))
        assert len(seen) == 3 and mt.default_generator.offset == before + 3 * 50


def test_seeds_and_states_of_other_captures_are_refused() -> None:
    graph, states = cuda.CUDAGraph(), []
    with cuda.graph(graph):
        states.append(mt.get_rng_state())
        mt.rand(2, device="cuda")
        mt.set_rng_state(states[0])
        for refused in (lambda: mt.manual_seed(1), lambda: mt.seed()):
            with pytest.raises(RuntimeError, match="not permitted while work is captured"):
                refused()
    with pytest.raises(RuntimeError, match="holds only while that is captured"):
        mt.set_rng_state(states[0])
    with cuda.graph(cuda.CUDAGraph()), pytest.raises(RuntimeError, match="got another one's"):
        mt.set_rng_state(states[0])


def test_draws_of_the_host_are_drawn_at_once() -> None:
    mt.manual_seed(4)
    expected = mt.rand(3).tolist()
    mt.manual_seed(4)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = mt.ones(2, device="cuda") * 2
        assert mt.rand(3).tolist() == expected
    graph.replay()
    assert y.tolist() == [2, 2]


# ---- what is not permitted ----

REFUSED: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "nonzero": lambda x: x.nonzero(),
    "tensor": lambda x: mt.tensor([1.0, 2.0], device="cuda"),
    "copy_": lambda x: x.copy_(mt.ones(3)),
    "synchronize": lambda x: cuda.synchronize(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_host_is_refused_by_name(name: str) -> None:
    x, graph = mt.ones(3, device="cuda"), cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=f"^{name}: operation not permitted when stream is capturing: it "):
        with cuda.graph(graph):
            x.mul_(2)
            REFUSED[name](x)
    assert not cuda.is_current_stream_capturing() and x.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="no work was captured"):
        graph.replay()
    with cuda.graph(graph):  # and nothing is left behind that would be in the way
        x.mul_(2)
    graph.replay()
    assert x.tolist() == [2, 2, 2]


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_draws_anew_in_each_replay(replacement: bool) -> None:
    weights, graph = mt.tensor([1.0, 0.0] * 50, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(graph):
        drawn = weights.multinomial(40, replacement)
    found = []
    for _ in range(3):
        graph.replay()
        found.append(drawn.tolist())
    assert found[0] != found[1] != found[2] and all(i % 2 == 0 for row in found for i in row)
    assert replacement or all(len(set(row)) == 40 for row in found)


def test_after_a_refusal_the_capture_goes_on() -> None:
    x, graph = mt.ones(3, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(graph):
        y = x + 1
        with pytest.raises(RuntimeError, match="^item: operation not permitted"):
            y[0].item()
        y = y * 2
    x.fill_(4)
    graph.replay()
    assert y.tolist() == [10, 10, 10]


def test_a_product_is_captured_in_a_thread_that_has_made_none() -> None:
    x, found = mt.arange(6.0, device="cuda").reshape(2, 3), []

    def work() -> None:
        graph = cuda.CUDAGraph()
        with cuda.stream(cuda.Stream()), cuda.graph(graph):
            y = x @ x.t()
        graph.replay()
        found.append(y.tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[[5.0, 14.0], [14.0, 50.0]]]


def test_memory_in_use_on_a_stream_that_captures_goes_back_after_that() -> None:
    cuda.empty_cache()
    before, side, graph = cuda.memory_allocated(), cuda.Stream(), cuda.CUDAGraph()
    x, y = mt.ones(1 << 16, device="cuda"), mt.ones(3, device="cuda")
    x.record_stream(side)
    with cuda.graph(graph, stream=side):
        y += 1
        del x
        gc.collect()
    assert cuda.memory_allocated() >= before + (1 << 18)
    graph.replay()
    assert y.tolist() == [2, 2, 2]
    for _ in range(2):  # after the capture the stream is asked, and then it has answered
        cuda.synchronize()
        cuda.empty_cache()
    assert cuda.memory_allocated() < before + (1 << 18)


def test_optimisers_that_would_repeat_a_number_are_refused() -> None:
    def prepared(make: Callable[[Any], Any], steps: int = 1) -> Any:
        p = mt.ones(3, device="cuda", requires_grad=True)
        optimiser = make([p])
        p.grad = mt.ones(3, device="cuda")
        for _ in range(steps):
            optimiser.step()
        return optimiser

    cases = [
        (prepared(lambda p: mt.optim.Adam(p)), "instance of Adam but param_groups' capturable is False"),
        (prepared(lambda p: mt.optim.RMSprop(p)), "instance of RMSprop but param_groups' capturable is False"),
        (prepared(lambda p: mt.optim.Adagrad(p)), "Adagrad.step: it computes with 'step' in Python"),
        (prepared(lambda p: mt.optim.NAdam(p, capturable=True)), "NAdam.step: it computes with 'step' in Python"),
        (prepared(lambda p: mt.optim.Adam(p, capturable=True), 0), "the first step makes the optimiser's state"),
        (prepared(lambda p: mt.optim.SGD(p, momentum=0.5), 0), "the first step makes the optimiser's state"),
    ]
    for optimiser, text in cases:
        with pytest.raises(RuntimeError, match=text), cuda.graph(cuda.CUDAGraph()):
            optimiser.step()


def test_step_counts_are_where_a_checkpoint_finds_them() -> None:
    p = mt.ones(3, device="cuda", requires_grad=True)
    adam, graph = mt.optim.Adam([p], capturable=True), cuda.CUDAGraph()
    p.grad = mt.ones(3, device="cuda")
    adam.step()
    with cuda.graph(graph):
        adam.step()
    for _ in range(4):
        graph.replay()
    state = adam.state_dict()
    assert state["state"][0]["step"].is_cuda and state["state"][0]["step"].item() == 5
    adam.param_groups[0]["capturable"] = False
    adam.step()  # reads the count anew
    assert adam.state[p]["step"].item() == 6
    other = mt.optim.Adam([mt.ones(3, device="cuda", requires_grad=True)], capturable=True)
    state["state"][0]["step"] = state["state"][0]["step"].cpu()
    other.load_state_dict(state)
    other.param_groups[0]["capturable"] = True
    q = other.param_groups[0]["params"][0]
    q.grad = mt.ones(3, device="cuda")
    other.step()
    assert other.state[q]["step"].is_cuda and other.state[q]["step"].item() == 7


# ---- memory ----


def test_captures_share_a_pool_and_give_it_back() -> None:
    cuda.empty_cache()
    before = cuda.memory_reserved()
    pool = cuda.MemPool()
    graphs = [cuda.CUDAGraph(), cuda.CUDAGraph()]
    x = mt.ones(1 << 18, device="cuda")
    for graph in graphs:
        with cuda.graph(graph, pool=pool.id):
            y = x * 2 + 1
            del y
    one = cuda.memory_reserved()
    assert graphs[0].pool() is pool.id and one >= before + (1 << 20)
    with cuda.use_mem_pool(pool):
        z = mt.zeros(1 << 18, device="cuda")
    assert cuda.memory_reserved() == one  # of what the captures have freed
    del graphs, graph, z, pool, x
    gc.collect()
    cuda.empty_cache()
    assert cuda.memory_reserved() == before


# ---- graphs and callables ----


def test_a_captured_training_step_gives_the_losses_of_the_cpu() -> None:
    mt.manual_seed(0)
    here = mt.nn.Sequential(mt.nn.Linear(3, 8), mt.nn.ReLU(), mt.nn.Linear(8, 1))

    there = copy.deepcopy(here).cuda()
    one, other = (mt.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (here, there))
    batches = [mt.randn(4, 3) for _ in range(6)]
    static = mt.zeros(4, 3, device="cuda")

    def step(model: Any, optimizer: Any, x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    expected = [step(here, one, x).item() for x in batches]
    with cuda.stream(cuda.Stream()):
        for x in batches[:2]:
            static.copy_(x)
            step(there, other, static)
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        assert cuda.is_current_stream_capturing()
        loss = step(there, other, static)
    assert not cuda.is_current_stream_capturing()
    found = []
    for x in batches[2:]:
        static.copy_(x)
        graph.replay()
        found.append(loss.item())
    assert found == pytest.approx(expected[2:], rel=1e-4)
    for p, q in zip(here.parameters(), there.parameters()):
        assert q.cpu().flatten().tolist() == pytest.approx(p.flatten().tolist(), rel=1e-4, abs=1e-6)
    with pytest.raises(RuntimeError, match="holds captured work already"):
        graph.capture_begin()
    graph.reset()
    with pytest.raises(RuntimeError, match="no work was captured"):
        graph.replay()


def test_captured_modules_and_functions_have_gradients() -> None:

    mt.manual_seed(1)
    here = mt.nn.Sequential(mt.nn.Linear(3, 4), mt.nn.Tanh())
    head = mt.nn.Linear(4, 1)
    there, tip = copy.deepcopy(here).cuda(), copy.deepcopy(head).cuda()
    mt.cuda.make_graphed_callables(
        (there, tip), ((mt.randn(5, 3, device="cuda"),), (mt.randn(5, 4, device="cuda", requires_grad=True),))
    )
    for _ in range(3):
        x = mt.randn(5, 3)
        for model, last, batch in ((here, head, x), (there, tip, x.cuda())):
            (last(model(batch)) ** 2).sum().backward()
    for p, q in zip([*here.parameters(), *head.parameters()], [*there.parameters(), *tip.parameters()]):
        assert q.grad.cpu().flatten().tolist() == pytest.approx(p.grad.flatten().tolist(), rel=1e-4, abs=1e-6)
    there.eval()
    assert there(mt.zeros(2, 3, device="cuda")).shape == (2, 4)  # another mode runs as ever, with any shape
    there.train()
    with pytest.raises(RuntimeError, match="as in sample_args"):
        there(mt.zeros(2, 3, device="cuda"))
    double = mt.cuda.make_graphed_callables(lambda a: {"twice": a * 2, "parts": (a + 1,)}, (mt.ones(2, device="cuda"),))
    out = double(mt.full((2,), 3.0, device="cuda"))
    assert out["twice"].tolist() == [6, 6] and out["parts"][0].tolist() == [4, 4]


def test_a_captured_module_drops_out_anew_at_each_call() -> None:
    mt.manual_seed(6)
    eager = nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.5)).cuda()
    captured = cuda.make_graphed_callables(copy.deepcopy(eager), (mt.randn(3, 4, device="cuda"),))
    x = mt.randn(3, 4, device="cuda")
    for model in (eager, captured):
        mt.manual_seed(8)
        model.outputs = []
        for _ in range(3):
            out = model(x)
            out.sum().backward()
            model.outputs.append(out.tolist())
    assert captured.outputs == eager.outputs and captured.outputs[0] != captured.outputs[1]
    for p, q in zip(captured.parameters(), eager.parameters()):
        assert p.grad.tolist() == q.grad.tolist()


# ---- GradScaler ----


@pytest.mark.parametrize("apart", [False, True], ids=["at once", "unscaled, clipped, then stepped"])
@pytest.mark.parametrize("name", [*OPTIMISERS])
def test_a_scaler_skips_and_adapts_on_the_device(name: str, apart: bool) -> None:
    def run(captured: bool) -> tuple[Any, Any, list[Any]]:
        mt.manual_seed(0)
        model = nn.Linear(3, 2).cuda()
        optimiser = OPTIMISERS[name](model)
        scaler = mt.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=3)
        x, factor = mt.ones(4, 3, device="cuda"), mt.ones((), device="cuda")

        def step() -> Any:
            optimiser.zero_grad()
            with mt.autocast("cuda", mt.float16):
                loss = (model(x) * factor).float().square().mean()
            scaler.scale(loss).backward()
            if apart:
                scaler.unscale_(optimiser)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimiser)
            scaler.update()
            return loss

        with cuda.stream(cuda.Stream()):
            for _ in range(WARM):
                loss = step()
        cuda.synchronize()
        graph, found = cuda.CUDAGraph(), []
        if captured:
            with cuda.graph(graph):
                loss = step()
        for i in range(14):
            x.fill_(float(i + 1) / 8)
            factor.fill_(float("inf") if i in (4, 5, 9) else 1.0)
            if captured:
                graph.replay()
            else:
                loss = step()
            found.append((loss.item(), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
        return model, optimiser, found

    (model, optimiser, found), (other, law, wanted) = run(True), run(False)
    assert str(found) == str(wanted) and len({scale for _, scale, _ in found}) > 2
    for p, q in zip(model.parameters(), other.parameters()):
        assert p.tolist() == q.tolist()
        mine, theirs = optimiser.state[p], law.state[q]
        assert {n: v.tolist() for n, v in mine.items() if v is not None} == {
            n: v.tolist() for n, v in theirs.items() if v is not None
        }
    assert optimiser.found_inf is None


def test_a_scaler_that_was_captured_goes_on_outside_and_is_saved() -> None:
    model = nn.Linear(3, 1).cuda()
    optimiser = mt.optim.SGD(model.parameters(), lr=0.1)
    scaler, x = mt.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2), mt.ones(2, 3, device="cuda")

    def step() -> None:
        optimiser.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimiser)
        scaler.update()

    step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        step()
    graph.replay()  # the second update
    assert scaler.get_scale() == 16.0
    x.fill_(float("nan"))
    before = model.weight.tolist()
    step()
    assert scaler.get_scale() == 8.0 and model.weight.tolist() == before
    x.fill_(1.0)
    graph.replay()
    assert scaler.state_dict()["_growth_tracker"] == 1 and model.weight.tolist() != before
    kept = copy.deepcopy(scaler)
    assert kept.state_dict() == scaler.state_dict()
    scaler.load_state_dict({**scaler.state_dict(), "scale": 2.0, "_growth_tracker": 0})
    graph.replay(), graph.replay()
    assert scaler.get_scale() == 4.0
    scaler.scale(x.sum())
    scaler.update(64.0)
    graph.replay()
    assert scaler.get_scale() == 64.0 and kept.get_scale() == 8.0


def test_a_scaler_refuses_optimisers_that_decide_on_the_host() -> None:
    model = nn.Linear(2, 1).cuda()
    optimiser, scaler = mt.optim.LBFGS(model.parameters()), mt.amp.GradScaler("cuda")
    with pytest.raises(RuntimeError, match="GradScaler.step: expected an optimiser"), cuda.graph(cuda.CUDAGraph()):
        scaler.scale(model(mt.ones(1, 2, device="cuda")).sum()).backward()
        scaler.step(optimiser)
