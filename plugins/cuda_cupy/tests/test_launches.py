"""What a training step asks of the device: how many launches and products, and that nothing waits for it.

Counted on the stand-in; not run on a GPU. A number that rises is a kernel more in each step of every program.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import mortice as mt
from mortice import cuda

if not cuda.is_available():
    pytest.skip("no GPU here; test_emulated runs these on the stand-in", allow_module_level=True)
fake_cupy = pytest.importorskip("fake_cupy", reason="launches are counted on the stand-in")


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count launches by kernel, products, waits, and copies to the host or from it."""
    import fake_array
    import fake_runtime

    from mortice_cuda_cupy.kernels.launch import Program

    found: Counter[str] = Counter()
    get = Program.get.__wrapped__

    def counting(what: str, function: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            found[what] += 1
            return function(*args, **options)

        return run

    for cls, name in (
        (fake_runtime._BaseStream, "synchronize"), (fake_runtime.Device, "synchronize"), (fake_runtime.Event, "synchronize"),
        (fake_array.ndarray, "get"), (fake_runtime.MemoryPointer, "copy_from_host_async"),
    ):  # fmt: skip
        monkeypatch.setattr(cls, name, counting("waits and copies", getattr(cls, name)))
    monkeypatch.setattr(Program, "get", lambda self, d, kernel: counting(kernel.partition("<")[0], get(self, d, kernel)))
    monkeypatch.setattr(fake_cupy.Cublas, "_many", counting("products", fake_cupy.Cublas._many))
    return found


def _step(model: Any, loss_of: Any, optimizer: Any, norm: float | None = None) -> Any:
    def step() -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        if norm is not None:
            mt.nn.utils.clip_grad_norm_(model.parameters(), norm)
        optimizer.step()

    return step


def _counted(step: Any, done: Counter[str]) -> Counter[str]:
    step()
    done.clear()
    step()
    return done


def test_a_step_of_a_classifier(done: Counter[str]) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))
        x, y = mt.ones(8, 6), mt.arange(8) % 4
    loss = lambda m: nn.functional.cross_entropy(m(x), y)
    found = _counted(_step(model, loss, mt.optim.Adam(model.parameters()), norm=1.0), done)
    assert found["waits and copies"] == 0
    assert (found["products"], found["binary"]) == (5, 3)  # the norm's: a layer's bias is added by its product
    assert found["optimiser_step"] == 2  # the gradients' scale, and the step
    assert found["two"] == 1  # tanh's gradient
    assert [found[name] for name in ("look", "cross_entropy", "sum_losses", "sum_weights", "cross_entropy_grad")] == [1, 1, 1, 0, 1]


@pytest.mark.parametrize("clipped", [False, True])
def test_a_step_with_a_scaled_loss(done: Counter[str], clipped: bool) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model = nn.Sequential(*[nn.Linear(6, 6) for _ in range(9)])
        x = mt.ones(8, 6)
    optimizer, scaler = mt.optim.Adam(model.parameters()), mt.amp.GradScaler("cuda", init_scale=4.0)

    def step() -> None:
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        if clipped:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    found = _counted(step, done)
    # One launch looks at all gradients and scales them; one number is read.
    assert (found["unscale"], found["waits and copies"], found["optimiser_step"]) == (1, 1, 1 + clipped)
    assert (found["unary"], found["chunk_squares"], found["chunk_roots"]) == (0, clipped, clipped)


def test_parameters_that_lie_in_another_order_share_the_launch(done: Counter[str]) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)).to(memory_format=mt.channels_last)
        x = mt.ones(2, 3, 9, 9).to(memory_format=mt.channels_last)
    found = _counted(_step(model, lambda m: m(x).sum(), mt.optim.Adam(model.parameters())), done)
    assert found["optimiser_step"] == 1 and found["blended"] == 0


def test_a_step_with_batch_norm(done: Counter[str]) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model, x = nn.BatchNorm2d(3), mt.rand(4, 3, 8, 8)
    found = _counted(_step(model, lambda m: m(x).sum(), mt.optim.SGD(model.parameters(), lr=0.1)), done)
    assert found["waits and copies"] == 0
    assert [found[n] for n in ("channel_moments", "joined_apply", "blend", "merge_moments", "channel_apply")] == [1, 1, 1, 0, 0]
    assert found["channel_sums"] + found["fold_parts"] <= 2


def test_a_step_of_a_language_model(done: Counter[str]) -> None:
    nn = mt.nn

    class Model(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.table, self.norm, self.out = nn.Embedding(9, 8), nn.LayerNorm(8), nn.Linear(8, 9)

        def forward(self, x: Any) -> Any:
            return self.out(nn.functional.dropout(self.norm(self.table(x)), 0.1))

    with mt.device("cuda"):
        model, x = Model(), mt.arange(12).reshape(3, 4) % 9
    loss = lambda m: nn.functional.cross_entropy(m(x).reshape(-1, 9), x.reshape(-1))
    found = _counted(_step(model, loss, mt.optim.AdamW(model.parameters())), done)
    assert found["waits and copies"] == 0
    assert (found["look"], found["optimiser_step"]) == (2, 1)


def test_a_step_of_a_recurrent_layer(done: Counter[str]) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model, x = nn.LSTM(3, 4), mt.rand(6, 2, 3)
    found = _counted(_step(model, lambda m: m(x)[0].sum(), mt.optim.SGD(model.parameters(), lr=0.1)), done)
    assert found["waits and copies"] == 0
    assert (found["lstm_whole_step"], found["lstm_whole_step_grad"]) == (6, 6)  # one a step, with its product
    assert (found["products"], found["lstm_step"]) == (4, 0)


def test_attention_of_heads_that_lie_inside_positions(done: Counter[str]) -> None:
    nn, F = mt.nn, mt.nn.functional

    class Model(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(8, 24)

        def forward(self, x: Any) -> Any:
            q, k, v = (p.view(2, 5, 2, 4).transpose(1, 2) for p in self.qkv(x).split(8, dim=2))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 5, 8)

    with mt.device("cuda"):
        model, x = Model(), mt.rand(2, 5, 8)
    found = _counted(_step(model, lambda m: m(x).square().sum(), mt.optim.SGD(model.parameters(), lr=0.1)), done)
    # Of query, key and value forward and backward, and of their gradients; of the result, its gradient, and the loss's.
    assert (found["strided_alike"], found["strided"], found["transpose"], found["join"]) == (3, 3, 0, 1)
