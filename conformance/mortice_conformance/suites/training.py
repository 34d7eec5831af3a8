"""L5: small models train to a known loss curve, step by step the same on every backend.

The perceptron's curve is computed beside it in NumPy float64, by hand-written gradients; the curves of the other models
are stored in training.json, made in float64 and compared with PyTorch by the kit's own tests.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any

import numpy as np

import mortice as mt
import mortice.nn
import mortice.optim
from mortice_conformance.checks.behaviour import on_subject
from mortice_conformance.subject import Failure, Skip, Subject
from mortice_conformance.suites import suite

STEPS = 30
# How far a loss may be from the curve, relative to it: rounding grows along the way.
BOUND = {"float64": 1e-9, "float32": 2e-4}


def fixed(*shape: int, seed: float = 1.0, scale: float = 1.0) -> Any:
    """Return numbers without pattern from a formula alone, in [-scale, scale]."""
    n = int(np.prod(shape))
    return (scale * np.sin(np.arange(1, n + 1) * 12.9898 * seed + seed) * np.cos(np.arange(1, n + 1) * 0.7853)).reshape(
        shape
    )


def spirals(n: int = 48) -> tuple[Any, Any]:
    """Return points of three spiral arms, and the arm of each."""
    at = np.arange(n)
    label, radius = at % 3, (at // 3 + 1) / (n / 3)
    angle = 4 * radius + label * 2 * np.pi / 3
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), label


# ---- the models: each returns (parameters by name, function that gives the loss, optimizer) ----


def load(module: Any, dtype: Any, device: Any) -> None:
    """Give a module's parameters values that do not depend on random numbers."""
    for number, p in enumerate(module.parameters()):
        shape = tuple(p.shape)
        width = int(np.prod(shape[1:])) if len(shape) > 1 else 4
        values = fixed(*shape, seed=number + 1.0, scale=width**-0.5) + (
            1.0 if len(shape) == 1 and number % 4 == 2 else 0.0
        )
        with mt.no_grad():
            p.copy_(mt.tensor(values.tolist(), dtype=dtype, device=device))


def perceptron(dtype: Any, device: Any) -> tuple[Any, Any]:
    """Return a classifier with one hidden layer, and its loss."""
    points, labels = spirals()
    model = mt.nn.Sequential(mt.nn.Linear(2, 16), mt.nn.Tanh(), mt.nn.Linear(16, 3)).to(device=device, dtype=dtype)
    x, y = mt.tensor(points.tolist(), dtype=dtype, device=device), mt.tensor(labels.tolist(), device=device)
    return model, lambda: mt.nn.functional.cross_entropy(model(x), y)


def convolutional(dtype: Any, device: Any) -> tuple[Any, Any]:
    """Return a small network of convolutions, normalisation and pooling on 8 images, and its loss."""
    nn = mt.nn
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.GELU(),
        nn.Flatten(), nn.Linear(24, 5),
    ).to(device=device, dtype=dtype)  # fmt: skip
    x = mt.tensor(fixed(8, 1, 8, 8, seed=0.37).tolist(), dtype=dtype, device=device)
    y = mt.tensor([0, 1, 2, 3, 4, 0, 1, 2], device=device)
    return model, lambda: nn.functional.cross_entropy(model(x), y)


class _Reader(mt.nn.Module):  # type: ignore[misc]
    """Embedding, attention, layer norm and a residual: the parts of a transformer block."""

    def __init__(self) -> None:
        super().__init__()
        self.table = mt.nn.Embedding(7, 8)
        self.qkv = mt.nn.Linear(8, 24)
        self.norm = mt.nn.LayerNorm(8)
        self.head = mt.nn.Linear(8, 7)

    def forward(self, tokens: Any) -> Any:
        x = self.table(tokens)
        q, k, v = self.qkv(x).split(8, dim=-1)
        x = self.norm(x + mt.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.head(x)


def reader(dtype: Any, device: Any) -> tuple[Any, Any]:
    """Return a one-block language model on a fixed sequence, and its loss."""
    model = _Reader().to(device=device, dtype=dtype)
    tokens = mt.tensor([[0, 1, 2, 3, 4, 5], [3, 1, 4, 1, 5, 6]], device=device)
    following = mt.tensor([[1, 2, 3, 4, 5, 6], [1, 4, 1, 5, 6, 0]], device=device)
    return model, lambda: mt.nn.functional.cross_entropy(model(tokens).reshape(-1, 7), following.reshape(-1))


MODELS = {"perceptron": perceptron, "convolutional": convolutional, "reader": reader}
OPTIMIZERS = {
    "sgd": lambda p: mt.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: mt.optim.Adam(p, lr=0.02),
    "adamw": lambda p: mt.optim.AdamW(p, lr=0.02, weight_decay=0.1),
}
RUNS = [
    ("perceptron", "sgd"),
    ("perceptron", "adam"),
    ("convolutional", "adam"),
    ("convolutional", "sgd"),
    ("reader", "adamw"),
]


def curve(model_name: str, optimizer_name: str, dtype: Any, device: Any) -> list[float]:
    """Train and return the loss before each step."""
    model, loss_of = MODELS[model_name](dtype, device)
    load(model, dtype, device)
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---- the same perceptron in NumPy ----


def perceptron_curve(optimizer_name: str) -> list[float]:
    """Return the perceptron's losses by hand-written gradients in float64."""
    points, labels = spirals()
    n = len(labels)
    shapes = [(16, 2), (16,), (3, 16), (3,)]
    p = [fixed(*s, seed=i + 1.0, scale=(s[1] if len(s) > 1 else 4) ** -0.5) + (1.0 if len(s) == 1 and i % 4 == 2 else 0.0)
         for i, s in enumerate(shapes)]  # fmt: skip
    first, second = [np.zeros_like(a) for a in p], [np.zeros_like(a) for a in p]
    losses = []
    for step in range(1, STEPS + 1):
        hidden = np.tanh(points @ p[0].T + p[1])
        scores = hidden @ p[2].T + p[3]
        scores -= scores.max(1, keepdims=True)
        chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        losses.append(float(-np.log(chances[np.arange(n), labels]).mean()))
        d = (chances - np.eye(3)[labels]) / n
        back = (d @ p[2]) * (1 - hidden**2)
        for i, g in enumerate([back.T @ points, back.sum(0), d.T @ hidden, d.sum(0)]):
            if optimizer_name == "sgd":
                g = g + 1e-3 * p[i]
                first[i] = g if step == 1 else 0.9 * first[i] + g
                p[i] = p[i] - 0.1 * first[i]
            else:
                first[i] = 0.9 * first[i] + 0.1 * g
                second[i] = 0.999 * second[i] + 0.001 * g * g
                size = np.sqrt(second[i]) / np.sqrt(1 - 0.999**step) + 1e-8
                p[i] = p[i] - 0.02 / (1 - 0.9**step) * first[i] / size
    return losses


@functools.cache
def stored() -> dict[str, list[float]]:
    """Read the stored curves."""
    file = importlib.resources.files("mortice_conformance") / "training.json"
    return json.loads(file.read_text(encoding="utf-8"))["curves"]  # type: ignore[no-any-return]


def _label(run: tuple[str, str]) -> str:
    return "-".join(run)


@suite("training", 5, each=[(*r, d) for r in RUNS for d in ("float32", "float64")], to=_label)
def check_curve(subject: Subject, run: tuple[str, str, str]) -> None:
    """Follow the known loss curve from the first step to the last, and learn."""
    model_name, optimizer_name, name = run
    dtype = next((d for d in subject.available if d.name == name), None)
    if dtype is None:
        raise Skip(f"{subject.device} has no {name}")
    want = (
        perceptron_curve(optimizer_name) if model_name == "perceptron" else stored()[f"{model_name}-{optimizer_name}"]
    )
    with on_subject(subject):
        got = curve(model_name, optimizer_name, dtype, subject.device)
    for step, (g, w) in enumerate(zip(got, want)):
        if not abs(g - w) <= BOUND[name] * max(1.0, abs(w)):
            raise Failure(
                f"{model_name} with {optimizer_name} in {name}: at step {step} expected a loss of {w:.8g}; got {g:.8g}."
            )
    if not got[-1] < 0.8 * got[0]:
        raise Failure(f"{model_name} with {optimizer_name} in {name}: it did not learn: {got[0]:.4g} to {got[-1]:.4g}.")


@suite("training", 5)
def check_same_twice(subject: Subject) -> None:
    """Train twice to the same bits."""
    dtype = next(d for d in subject.available if d.name == "float32")
    with on_subject(subject):
        runs = [curve("perceptron", "adam", dtype, subject.device) for _ in range(2)]
    if runs[0] != runs[1]:
        raise Failure("training: the same training gave other losses the second time.")


@suite("training", 5)
def check_stays_on_the_device(subject: Subject) -> None:
    """Take a step of training without bringing anything to the host."""
    dtype = next(d for d in subject.available if d.name == "float32")
    with on_subject(subject):
        points, _ = spirals()
        model = mt.nn.Sequential(mt.nn.Linear(2, 8), mt.nn.ReLU(), mt.nn.LayerNorm(8), mt.nn.Linear(8, 2)).to(dtype)
        optimizer = mt.optim.Adam(model.parameters(), lr=0.01)
        x = mt.tensor(points.tolist(), dtype=dtype)
        for step in range(2):
            with subject.counting() as seen:
                optimizer.zero_grad()
                mt.nn.functional.mse_loss(model(x), x).backward()
                optimizer.step()
            if seen:
                raise Failure(f"training: step {step} reads {len(seen)} times on the host: {', '.join(seen)}.")
