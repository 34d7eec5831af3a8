"""What the tests of the examples share: two small models, trained on a backend and on cpu_numpy."""

import math

import pytest

import mortice as mt


def perceptron():
    """Return a classifier with one hidden layer, points of three spiral arms, and their arms."""
    turns = [(0.25 + i / 48 * 3 + (i % 3) * 2 * math.pi / 3, (i + 8) / 56, i % 3) for i in range(48)]
    x = mt.tensor([[r * math.cos(a), r * math.sin(a)] for a, r, _ in turns])
    model = mt.nn.Sequential(mt.nn.Linear(2, 16), mt.nn.Tanh(), mt.nn.Linear(16, 3))
    return model, x, mt.tensor([arm for _, _, arm in turns])


def convolutional():
    """Return a convolutional network with normalisation, pooling and dropout, images with a bar, and where the bar is."""
    places = [i % 3 for i in range(12)]
    rows = [[[[1.0 if c // 3 == p else 0.1 * ((r * 9 + c + i) % 5) for c in range(9)] for r in range(8)]]
            for i, p in enumerate(places)]  # fmt: skip
    model = mt.nn.Sequential(
        mt.nn.Conv2d(1, 4, 3, padding=1), mt.nn.BatchNorm2d(4), mt.nn.ReLU(), mt.nn.MaxPool2d(2), mt.nn.Conv2d(4, 6, 3),
        mt.nn.GELU(), mt.nn.Flatten(), mt.nn.Dropout(0.1), mt.nn.Linear(24, 3),
    )  # fmt: skip
    return model, mt.tensor(rows), mt.tensor(places)


def losses(backend, make, steps=12):
    """Train and return the loss before each step."""
    with mt.use_backend(backend):
        mt.manual_seed(0)
        model, x, y = make()
        optimizer = mt.optim.Adam(model.parameters(), lr=0.02)
        found = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = mt.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        assert loss.device.backend.name == backend
        return found


@pytest.fixture
def trains_alike():
    """Return a check that a model's losses are cpu_numpy's but for rounding, and fall."""

    def check(backend, model):
        make = {"perceptron": perceptron, "convolutional": convolutional}[model]
        here, there = losses(backend, make), losses("cpu_numpy", make)
        assert here == pytest.approx(there, rel=2e-4)
        assert here[-1] < 0.9 * here[0]

    return check
