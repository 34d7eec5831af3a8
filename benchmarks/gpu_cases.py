"""What is compared with PyTorch CUDA: for each group its cases, those of the other benchmarks where they have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.bars import layer, of, over, with_backward
from benchmarks.harness import Timed, positive, wave
from benchmarks.models import dcgan, gpt, lstm, mlp, resnet20

Setup = Callable[[Any], Timed]

# Bytes that an operation must move for each element of a float32 operand: what it reads once and writes once.
TRAFFIC = {
    "x + y": 12, "x * y": 12, "x * 2": 8, "x + row": 8, "x > y": 9, "exp": 8, "log": 8, "tanh": 8, "sigmoid": 8, "gelu": 8,
    "relu": 8, "sqrt": 8, "sin": 8, "x ** 1.5": 8, "clamp": 8, "to float64": 12, "contiguous of the transpose": 8, "sum": 4,
    "sum, dim 0": 4, "sum, dim 1": 4, "mean, dim 1": 4, "max": 4, "amax, dim 1": 4, "argmax, dim 1": 4, "var": 4,
    "var, dim 1": 4, "norm": 4,
}  # fmt: skip
# Of these other things than the bytes decide.
UNBOUND = ("where", "chain of ten", "cumsum, dim 1", "cat")


@dataclass(frozen=True)
class GpuCase:
    """One thing to compare; `traffic` is the bytes that it moves, where these decide."""

    name: str
    setup: Setup
    traffic: int = 0


def elementwise(tiny: bool) -> Iterator[GpuCase]:
    """Yield operations and reductions over 1e8 elements."""
    shape = (64, 50) if tiny else (10_000, 10_000)
    there = over(*shape)
    for name in (*TRAFFIC, *UNBOUND):
        yield GpuCase(name, there[name], TRAFFIC.get(name, 0) * math.prod(shape))


def copies(tiny: bool) -> GpuCase:
    """Return the copy of 1e8 elements, to which the others are compared."""
    shape = (64, 50) if tiny else (10_000, 10_000)

    def setup(t: Any) -> Timed:
        x, y = positive(t, *shape), positive(t, *shape)
        return lambda: y.copy_(x)

    return GpuCase("copy", setup, 8 * math.prod(shape))


def matmul(tiny: bool) -> Iterator[GpuCase]:
    """Yield square products in float32, with TF32 inside, and in both 16-bit dtypes."""

    def setup(n: int, dtype: str, precision: str) -> Setup:
        def run(t: Any) -> Timed:
            t.set_float32_matmul_precision(precision)
            x, y = (make(t, n, n).to(getattr(t, dtype)) for make in (wave, positive))
            return lambda: x @ y

        return run

    for n in (16, 24) if tiny else (512, 1024, 2048, 4096, 8192):
        for name, dtype, precision in (
            ("float32", "float32", "highest"), ("TF32", "float32", "high"),
            ("float16", "float16", "highest"), ("bfloat16", "bfloat16", "highest"),
        ):  # fmt: skip
            yield GpuCase(f"{n}, {name}", setup(n, dtype, precision))


def convolution(tiny: bool) -> Iterator[GpuCase]:
    """Yield the layers of a ResNet-50 at batch 32, a depthwise and a transposed one."""
    layers: list[tuple[str, Callable[[Any], Any], tuple[int, ...]]] = [
        ("3x3, 64-64, 56x56", lambda nn: nn.Conv2d(64, 64, 3, padding=1, bias=False), (32, 64, 56, 56)),
        ("3x3, 128-128, 28x28", lambda nn: nn.Conv2d(128, 128, 3, padding=1, bias=False), (32, 128, 28, 28)),
        ("3x3, 256-256, 14x14", lambda nn: nn.Conv2d(256, 256, 3, padding=1, bias=False), (32, 256, 14, 14)),
        ("3x3, 512-512, 7x7", lambda nn: nn.Conv2d(512, 512, 3, padding=1, bias=False), (32, 512, 7, 7)),
        ("1x1, 64-256, 56x56", lambda nn: nn.Conv2d(64, 256, 1, bias=False), (32, 64, 56, 56)),
        ("7x7/2, 3-64, 224x224", lambda nn: nn.Conv2d(3, 64, 7, 2, 3, bias=False), (32, 3, 224, 224)),
        ("depthwise 3x3, 128, 56x56", lambda nn: nn.Conv2d(128, 128, 3, padding=1, groups=128), (32, 128, 56, 56)),
        ("transposed 4x4/2, 128-64, 16x16", lambda nn: nn.ConvTranspose2d(128, 64, 4, 2, 1), (64, 128, 16, 16)),
    ]  # fmt: skip
    if tiny:
        layers = [("3x3, 2-3, 6x6", lambda nn: nn.Conv2d(2, 3, 3, padding=1), (2, 2, 6, 6))]
    for name, make, shape in layers:
        for dtype in ("float32", "bfloat16"):
            for way, setup in layer(make, *shape, dtype=dtype).items():
                yield GpuCase(f"{name}, {dtype}, {way}", setup)


def attention(tiny: bool) -> Iterator[GpuCase]:
    """Yield scaled dot products of (batch, heads, length, width)."""
    shapes = [(1, 2, 8, 4)] if tiny else [(32, 12, 256, 64), (16, 12, 512, 64), (8, 16, 1024, 64), (4, 16, 2048, 128)]
    for shape in shapes:
        for dtype, causal in (("bfloat16", True), ("bfloat16", False), ("float16", True), ("float32", True)):
            three = lambda t, shape=shape, dtype=dtype: tuple(
                (wave(t, *shape) * scale).to(getattr(t, dtype)) for scale in (1.0, 0.5, 2.0)
            )
            attend = lambda t, q, k, v, causal=causal: t.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal
            )
            name = f"{'x'.join(map(str, shape))}, {dtype}{', causal' * causal}"
            yield GpuCase(f"{name}, forward", of(three, attend))
            yield GpuCase(f"{name}, forward and backward", with_backward(three, attend, leaves=3))


def functions(tiny: bool) -> Iterator[GpuCase]:
    """Yield softmax, layer_norm, cross_entropy and embedding with their backward."""
    rows, columns, classes, words = (6, 10, 12, 20) if tiny else (16_384, 1024, 32_000, 50_000)
    for dtype in ("float32", "bfloat16"):
        one = lambda t, dtype=dtype: (wave(t, rows, columns).to(getattr(t, dtype)),)
        scored = lambda t, dtype=dtype: (
            wave(t, rows // 4, classes).to(getattr(t, dtype)), t.arange(rows // 4) * 7919 % classes)  # fmt: skip
        table = lambda t, dtype=dtype: (wave(t, words, columns).to(getattr(t, dtype)), t.arange(rows) * 7919 % words)
        normed = lambda t, dtype=dtype: (
            *(wave(t, *s).to(getattr(t, dtype)) for s in ((rows, columns), (columns,), (columns,))),
        )
        softmax = lambda t, x: t.softmax(x, 1)
        norm = lambda t, x, w, b: t.nn.functional.layer_norm(x, (columns,), w, b)
        yield GpuCase(f"softmax {rows}x{columns}, {dtype}, forward", of(one, softmax))
        yield GpuCase(f"softmax {rows}x{columns}, {dtype}, forward and backward", with_backward(one, softmax))
        yield GpuCase(f"layer_norm {rows}x{columns}, {dtype}, forward", of(normed, norm))
        yield GpuCase(
            f"layer_norm {rows}x{columns}, {dtype}, forward and backward", with_backward(normed, norm, leaves=3)
        )
        yield GpuCase(
            f"cross_entropy {rows // 4}x{classes}, {dtype}, forward and backward",
            with_backward(scored, lambda t, x, y: t.nn.functional.cross_entropy(x, y)),
        )
        yield GpuCase(
            f"embedding {rows} of {words}x{columns}, {dtype}, forward and backward",
            with_backward(table, lambda t, w, i: t.nn.functional.embedding(i, w)),
        )


def steps(tiny: bool, **capturable: bool) -> Iterator[GpuCase]:
    """Yield training steps; `capturable=True` is for optimisers that can be captured only when told so."""
    if tiny:
        yield GpuCase("MLP, SGD", mlp("SGD", batch=2, lr=1e-3))
        yield GpuCase("LSTM", lambda t: lstm(t, steps=3, batch=2, width=4, words=12))
        yield GpuCase("GPT", lambda t: gpt(t, layers=1, batch=1, length=8, width=8, **capturable))
        return
    yield GpuCase("MLP, batch 64, SGD", mlp("SGD", lr=1e-3))
    yield GpuCase("MLP, batch 64, Adam", mlp("Adam", lr=1e-4, **capturable))
    yield GpuCase("ResNet-20, 32x32, batch 128, SGD", resnet20)
    yield GpuCase("DCGAN, 64x64, batch 32, Adam", lambda t: dcgan(t, **capturable))
    yield GpuCase("GPT, 4 layers, 8x256, AdamW", lambda t: gpt(t, **capturable))
    # Last: blocks of its launches wait for each other, and one that waits for good takes the stage's time.
    yield GpuCase("LSTM language model, 35x20, SGD", lstm)
