"""Whole training steps, as a user writes them: zero_grad, forward, loss, backward, step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Case, Timed, fill, wave


def _mlp(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def _cnn(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


def _normalised(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Linear(64, 128),
        nn.BatchNorm1d(128),
        nn.GELU(),
        nn.Linear(128, 128),
        nn.LayerNorm(128),
        nn.Linear(128, 10),
    )


def _step(
    build: Callable[[Any], Any], shape: tuple[int, ...], optimizer: str, **options: Any
) -> Callable[[Any], Timed]:
    def setup(t: Any) -> Timed:
        model, x, y = fill(t, build(t)), wave(t, *shape), t.arange(shape[0]) % 10
        loss_of = t.nn.CrossEntropyLoss()
        optim = getattr(t.optim, optimizer)(model.parameters(), **options)

        def step() -> Any:
            optim.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optim.step()
            return loss

        return step

    return setup


def _inference(build: Callable[[Any], Any], shape: tuple[int, ...]) -> Callable[[Any], Timed]:
    def setup(t: Any) -> Timed:
        model, x = fill(t, build(t)).eval(), wave(t, *shape)

        def step() -> Any:
            with t.no_grad():
                return model(x)

        return step

    return setup


def _lstm(t: Any) -> Timed:
    model, x = fill(t, t.nn.LSTM(16, 32, batch_first=True)), wave(t, 8, 20, 16)
    optim = t.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> Any:
        optim.zero_grad()
        loss = model(x)[0].square().mean()
        loss.backward()
        optim.step()
        return loss

    return step


def _attention(t: Any) -> Timed:
    layer = t.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    model, x = fill(t, layer), wave(t, 8, 20, 32)
    optim = t.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> Any:
        optim.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optim.step()
        return loss

    return step


_IMAGES = (32, 1, 28, 28)

CASES = [
    Case(
        "training", "MLP 784-256-128-10 batch 64, SGD", _step(_mlp, (64, 784), "SGD", lr=1e-3, momentum=0.9)
    ),
    Case("training", "MLP 784-256-128-10 batch 64, Adam", _step(_mlp, (64, 784), "Adam", lr=1e-4)),
    Case(
        "training", "MLP 64-128-128-10 with norms, batch 32", _step(_normalised, (32, 64), "AdamW", lr=1e-4)
    ),
    Case("training", "CNN 28x28 batch 32, SGD", _step(_cnn, _IMAGES, "SGD", lr=1e-3)),
    Case("training", "CNN 28x28 batch 32, Adam", _step(_cnn, _IMAGES, "Adam", lr=1e-4)),
    Case("training", "LSTM 16-32, 20 steps, batch 8", _lstm),
    Case("training", "transformer layer 32, 20 tokens, batch 8", _attention),
    Case("training", "MLP 784-256-128-10 batch 1, inference", _inference(_mlp, (1, 784))),
    Case("training", "CNN 28x28 batch 32, inference", _inference(_cnn, _IMAGES)),
]
