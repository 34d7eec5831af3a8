"""Models of common practice for whole training steps; each function takes the library and returns one step to time."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.harness import Timed, fill, wave


def stepper(t: Any, model: Any, inputs: tuple[Any, ...], loss_of: Any, optimizer: str, **options: Any) -> Timed:
    """Return a training step: gradients cleared, forward, loss, backward, optimiser."""
    optim = getattr(t.optim, optimizer)(model.parameters(), **options)

    def step() -> Any:
        optim.zero_grad()
        loss = loss_of(model(*inputs))
        loss.backward()
        optim.step()
        return loss

    return step


def classified(t: Any, model: Any, x: Any, classes: int, optimizer: str, **options: Any) -> Timed:
    """Return a step of classifying x."""
    y, criterion = t.arange(x.shape[0]) % classes, t.nn.CrossEntropyLoss()
    return stepper(t, fill(t, model), (x,), lambda out: criterion(out, y), optimizer, **options)


def mlp(optimizer: str, batch: int = 64, **options: Any) -> Any:
    """An MLP on MNIST shapes."""

    def setup(t: Any) -> Timed:
        nn = t.nn
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
        return classified(t, model, wave(t, batch, 784), 10, optimizer, **options)

    return setup


def tiny_mlp(t: Any) -> Timed:
    """An MLP 4-64-2 at batch 1, Adam."""
    nn = t.nn
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    return classified(t, model, wave(t, 1, 4), 2, "Adam", lr=1e-4)


def lenet(t: Any) -> Timed:
    """LeNet-5 on MNIST shapes, batch 64."""
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return classified(t, model, wave(t, 64, 1, 28, 28), 10, "SGD", lr=1e-3, momentum=0.9)


def _residual(t: Any) -> Any:
    nn = t.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        """Two 3x3 convolutions beside a shortcut."""

        def __init__(self, into: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.short = nn.Sequential()
            if stride != 1 or into != out:
                self.short = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            y = t.relu(self.bn1(self.conv1(x)))
            return t.relu(self.bn2(self.conv2(y)) + self.short(x))

    return Block


def resnet20(t: Any, batch: int = 128, size: int = 32) -> Timed:
    """ResNet-20 on CIFAR shapes."""
    nn, block = t.nn, _residual(t)
    layers: list[Any] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    into = 16
    for out, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range(3):
            layers.append(block(into, out, stride if i == 0 else 1))
            into = out
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return classified(t, model, wave(t, batch, 3, size, size), 10, "SGD", lr=1e-3, momentum=0.9, weight_decay=1e-4)


def dcgan(t: Any, batch: int = 32, width: int = 32, **options: Any) -> Timed:
    """A step of the discriminator and one of the generator of a DCGAN for 64x64 pictures."""
    nn = t.nn
    generator, discriminator = [], []
    into = 100
    for i, out in enumerate((8 * width, 4 * width, 2 * width, width, 3)):
        generator.append(nn.ConvTranspose2d(into, out, 4, 1 if i == 0 else 2, 0 if i == 0 else 1, bias=False))
        generator += [nn.BatchNorm2d(out), nn.ReLU()] if out != 3 else [nn.Tanh()]
        into = out
    for i, out in enumerate((width, 2 * width, 4 * width, 8 * width, 1)):
        discriminator.append(nn.Conv2d(into, out, 4, 1 if out == 1 else 2, 0 if out == 1 else 1, bias=False))
        if 0 < i < 4:
            discriminator.append(nn.BatchNorm2d(out))
        discriminator.append(nn.LeakyReLU(0.2) if out != 1 else nn.Flatten())
        into = out
    g, d = fill(t, nn.Sequential(*generator)), fill(t, nn.Sequential(*discriminator))
    of_g, of_d = (t.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999), **options) for m in (g, d))
    criterion, real, noise = nn.BCEWithLogitsLoss(), wave(t, batch, 3, 64, 64), wave(t, batch, 100, 1, 1)
    ones, zeros = t.ones(batch, 1), t.zeros(batch, 1)

    def step() -> Any:
        of_d.zero_grad()
        fake = g(noise)
        loss = criterion(d(real), ones) + criterion(d(fake.detach()), zeros)
        loss.backward()
        of_d.step()
        of_g.zero_grad()
        criterion(d(fake), ones).backward()
        of_g.step()
        return loss

    return step


def lstm(t: Any, steps: int = 35, batch: int = 20, width: int = 200, words: int = 10_000) -> Timed:
    """A language model: embedding, two layers of LSTM, a vocabulary; gradients clipped."""
    nn = t.nn

    class Model(nn.Module):  # type: ignore[name-defined, misc]
        """Predicts the next word."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, width)
            self.rnn = nn.LSTM(width, width, 2)
            self.out = nn.Linear(width, words)

        def forward(self, x: Any) -> Any:
            return self.out(self.rnn(self.embedding(x))[0])

    model = fill(t, Model())
    x = (t.arange(steps * batch) * 7919 % words).reshape(steps, batch)
    y, criterion = (x.reshape(-1) * 31 + 7) % words, nn.CrossEntropyLoss()
    optim = t.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Any:
        optim.zero_grad()
        loss = criterion(model(x).reshape(-1, words), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optim.step()
        return loss

    return step


def gpt(t: Any, layers: int = 4, batch: int = 8, length: int = 256, width: int = 128, **options: Any) -> Timed:
    """A GPT of 4 heads on sequences of characters; AdamW."""
    nn, F, characters = t.nn, t.nn.functional, 65

    class Layer(nn.Module):  # type: ignore[name-defined, misc]
        """Causal attention and an MLP, each after a layer norm."""

        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, n, c = x.shape
            q, k, v = (p.view(b, n, 4, c // 4).transpose(1, 2) for p in self.qkv(self.ln1(x)).split(c, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, n, c))
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    class GPT(nn.Module):  # type: ignore[name-defined, misc]
        """Token and position embeddings, layers, a head."""

        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(characters, width), nn.Embedding(length, width)
            self.layers = nn.Sequential(*[Layer() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

        def forward(self, x: Any) -> Any:
            h = self.token(x) + self.position(t.arange(x.shape[1], device=x.device))
            return self.head(self.norm(self.layers(h)))

    x = (t.arange(batch * length) * 31 % characters).reshape(batch, length)
    y = (x * 7 + 3) % characters
    loss = lambda out: F.cross_entropy(out.reshape(-1, characters), y.reshape(-1))
    return stepper(t, fill(t, GPT()), (x,), loss, "AdamW", lr=math.ldexp(1, -12), **options)


STEPS: dict[str, Any] = {
    "MLP 784-256-128-10, batch 64, SGD": mlp("SGD", lr=1e-3),
    "MLP 784-256-128-10, batch 64, Adam": mlp("Adam", lr=1e-4),
    "LeNet, batch 64, SGD": lenet,
    "ResNet-20, 32x32, batch 128, SGD": resnet20,
    "DCGAN, 64x64, batch 32, Adam": dcgan,
    "LSTM language model, 35x20": lstm,
    "GPT, 4 layers, 8x256": gpt,
}
