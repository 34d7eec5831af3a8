"""The bars of the C extension beside PyTorch eager: `python -m benchmarks.bars` prints each case, its bar and whether it holds.

Ratios are PyTorch's time over mortice's: over 1, mortice is faster. Both run in one process, in interleaved rounds, with the
same number of threads. Peak memory of a training step is that of a process of its own, less what importing takes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.harness import Case, Library, Timed, duration, fill, measure, positive, wave
from benchmarks.models import STEPS, tiny_mlp

Bars = tuple[float, float | None]  # of each case, of the geometric mean


def of(
    make: Callable[[Any], tuple[Any, ...]], function: Callable[..., Any], grad: bool = False
) -> Callable[[Any], Timed]:
    """Return a function of operands that are made once."""

    def setup(t: Any) -> Timed:
        operands = make(t)
        if grad:
            operands[0].requires_grad_()
        return lambda: function(t, *operands)

    return setup


def with_backward(
    make: Callable[[Any], tuple[Any, ...]], function: Callable[..., Any], leaves: int = 1
) -> Callable[[Any], Timed]:
    """Return a forward and a backward from a gradient that does not cancel, as ones would in a softmax."""

    def setup(t: Any) -> Timed:
        operands = make(t)
        for x in operands[:leaves]:
            x.requires_grad_()
        example = function(t, *operands)
        gradient = (wave if example.shape else positive)(t, *example.shape).to(example.dtype)

        def step() -> Any:
            for x in operands[:leaves]:
                x.grad = None
            function(t, *operands).backward(gradient)
            return operands[0].grad

        return step

    return setup


def _small() -> dict[str, Any]:
    pair = lambda t: (wave(t, 4, 4), positive(t, 4, 4))

    def chain(t: Any) -> Timed:
        scale, shift = positive(t, 4, 4) * 0.1 + 0.9, positive(t, 4, 4) * 0.01
        x = positive(t, 4, 4).requires_grad_()

        def step() -> Any:
            x.grad = None
            y = x
            for _ in range(500):
                y = y * scale + shift
            y.sum().backward()
            return x.grad

        return step

    return {
        "add 4x4": of(pair, lambda t, x, y: t.add(x, y)),
        "mul 4x4": of(pair, lambda t, x, y: t.mul(x, y)),
        "add 4x4, recorded": of(pair, lambda t, x, y: t.add(x, y), grad=True),
        "mul 4x4, recorded": of(pair, lambda t, x, y: t.mul(x, y), grad=True),
        "x[1:3]": of(pair, lambda t, x, y: x[1:3]),
        "x.sum()": of(pair, lambda t, x, y: x.sum()),
        "chain of 1,000 ops, forward and backward": chain,
        "MLP 4-64-2, batch 1, Adam step": tiny_mlp,
    }


def over(*shape: int) -> dict[str, Callable[[Any], Timed]]:
    """Return elementwise operations, reductions and movements over a matrix of that shape."""
    one = lambda t: (positive(t, *shape),)
    two = lambda t: (positive(t, *shape), wave(t, *shape))
    row = lambda t: (positive(t, *shape), wave(t, shape[1]))
    indexed = lambda t: (wave(t, *shape), (t.arange(math.prod(shape)) * 7919 % shape[0]).reshape(shape))
    return {
        "x + y": of(two, lambda t, x, y: x + y),
        "x * y": of(two, lambda t, x, y: x * y),
        "x * 2": of(one, lambda t, x: x * 2.0),
        "x + row": of(row, lambda t, x, y: x + y),
        "x + column": of(two, lambda t, x, y: x + y[:, :1]),
        "x > y": of(two, lambda t, x, y: x > y),
        "where": of(two, lambda t, x, y: t.where(x > y, x, y)),
        "exp": of(one, lambda t, x: x.exp()),
        "log": of(one, lambda t, x: x.log()),
        "tanh": of(one, lambda t, x: x.tanh()),
        "sigmoid": of(one, lambda t, x: x.sigmoid()),
        "gelu": of(one, lambda t, x: t.nn.functional.gelu(x)),
        "relu": of(one, lambda t, x: x.relu()),
        "sqrt": of(one, lambda t, x: x.sqrt()),
        "sin": of(one, lambda t, x: x.sin()),
        "x ** 1.5": of(one, lambda t, x: x**1.5),
        "clamp": of(one, lambda t, x: x.clamp(0.2, 0.8)),
        "chain of ten": of(two, lambda t, x, y: (((((x + y) * x - y).tanh() + 1) * x).exp() * y - x).abs().sqrt()),
        "to float64": of(one, lambda t, x: x.to(t.float64)),
        "contiguous of the transpose": of(one, lambda t, x: x.t().contiguous()),
        "sum": of(one, lambda t, x: x.sum()),
        "sum, dim 0": of(one, lambda t, x: x.sum(0)),
        "sum, dim 1": of(one, lambda t, x: x.sum(1)),
        "mean, dim 1": of(one, lambda t, x: x.mean(1)),
        "max": of(one, lambda t, x: x.max()),
        "amax, dim 1": of(one, lambda t, x: x.amax(1)),
        "argmax, dim 1": of(one, lambda t, x: x.argmax(1)),
        "var": of(one, lambda t, x: x.var()),
        "var, dim 1": of(one, lambda t, x: x.var(1)),
        "norm": of(one, lambda t, x: t.linalg.vector_norm(x)),
        "cumsum, dim 1": of(one, lambda t, x: x.cumsum(1)),
        "softmax": of(one, lambda t, x: x.softmax(1)),
        "softmax and backward": with_backward(one, lambda t, x: x.softmax(1)),
        "log_softmax and backward": with_backward(one, lambda t, x: x.log_softmax(1)),
        "layer_norm": of(one, lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:])),
        "layer_norm and backward": with_backward(one, lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:])),
        "gather, dim 0": of(indexed, lambda t, x, i: x.gather(0, i)),
        "index_select": of(indexed, lambda t, x, i: x.index_select(0, i[0])),
        "x[x > 0]": of(indexed, lambda t, x, i: x[x > 0]),
        "cat": of(two, lambda t, x, y: t.cat([x, y])),
        "cat, dim 1": of(two, lambda t, x, y: t.cat([x, y], 1)),
        "sort, dim 1": of(two, lambda t, x, y: y.sort(1)[0]),
        "sort, flat": of(two, lambda t, x, y: y.flatten().sort()[0]),
        "topk 10, dim 1": of(two, lambda t, x, y: y.topk(10, 1)[0]),
    }


def _large() -> dict[str, Any]:
    shapes = {"1e6": (1000, 1000), "1e7": (4000, 2500)}
    return {f"{case}, {name}": setup for name, shape in shapes.items() for case, setup in over(*shape).items()}


def _matmul() -> dict[str, Any]:
    return {
        f"matmul {n}": of(lambda t, n=n: (wave(t, n, n), positive(t, n, n)), lambda t, x, y: x @ y)
        for n in (64, 128, 256, 512, 1024, 2048)
    }


def layer(make: Callable[[Any], Any], *shape: int, dtype: str = "float32") -> dict[str, Callable[[Any], Timed]]:
    """Return the forward, and the forward and backward, of a layer of `nn` on an input of that shape."""

    def built(t: Any) -> tuple[Any, Any]:
        kind = getattr(t, dtype)
        return fill(t, make(t.nn)).to(kind), wave(t, *shape).to(kind)

    def forward(t: Any) -> Timed:
        model, x = built(t)

        def step() -> Any:
            with t.no_grad():
                return model(x)

        return step

    def both(t: Any) -> Timed:
        model, x = built(t)
        x.requires_grad_()
        gradient = wave(t, *model(x).shape).to(x.dtype)

        def step() -> Any:
            x.grad = None
            for p in model.parameters():
                p.grad = None
            model(x).backward(gradient)
            return x.grad

        return step

    return {"forward": forward, "forward and backward": both}


def _convolution() -> dict[str, Any]:
    layers = {
        "conv 3x3, 64-64, 56x56": layer(lambda nn: nn.Conv2d(64, 64, 3, padding=1), 8, 64, 56, 56),
        "conv 3x3, 256-256, 14x14": layer(lambda nn: nn.Conv2d(256, 256, 3, padding=1), 8, 256, 14, 14),
        "conv 3x3, 16-16, 32x32": layer(lambda nn: nn.Conv2d(16, 16, 3, padding=1), 64, 16, 32, 32),
        "conv 1x1, 64-256, 56x56": layer(lambda nn: nn.Conv2d(64, 256, 1), 8, 64, 56, 56),
        "conv 1x1, 256-64, 14x14": layer(lambda nn: nn.Conv2d(256, 64, 1), 8, 256, 14, 14),
        "conv 7x7/2, 3-64, 224x224": layer(lambda nn: nn.Conv2d(3, 64, 7, 2, 3), 4, 3, 224, 224),
        "depthwise 3x3, 128, 56x56": layer(lambda nn: nn.Conv2d(128, 128, 3, padding=1, groups=128), 8, 128, 56, 56),
        "transposed 4x4/2, 128-64, 16x16": layer(lambda nn: nn.ConvTranspose2d(128, 64, 4, 2, 1), 16, 128, 16, 16),
        "max_pool 2x2, 64, 56x56": layer(lambda nn: nn.MaxPool2d(2), 16, 64, 56, 56),
        "max_pool 3x3/2, 64, 112x112": layer(lambda nn: nn.MaxPool2d(3, 2, 1), 4, 64, 112, 112),
        "avg_pool 2x2, 64, 56x56": layer(lambda nn: nn.AvgPool2d(2), 16, 64, 56, 56),
        "batch_norm, 64, 56x56": layer(lambda nn: nn.BatchNorm2d(64), 16, 64, 56, 56),
        "batch_norm, 16, 32x32": layer(lambda nn: nn.BatchNorm2d(16), 128, 16, 32, 32),
    }
    return {f"{name}, {way}": setup for name, ways in layers.items() for way, setup in ways.items()}


GROUPS: dict[str, tuple[Callable[[], dict[str, Any]], Bars]] = {
    "small": (_small, (1.5, None)),
    "large": (_large, (1.0, 1.3)),
    "matmul": (_matmul, (0.95, None)),
    "convolution": (_convolution, (0.75, 1.3)),
    "steps": (lambda: STEPS, (0.9, 1.3)),
}

_PEAK = """
from benchmarks.models import STEPS
def highest():  # of this program alone: getrusage starts with what the parent had
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
import {library} as t
t.set_num_threads({threads})
t.ones(8, 8).mm(t.ones(8, 8))
before = highest()
step = STEPS[{name!r}](t)
for _ in range(3):
    step()
print(highest() - before)
"""


def peak(library: str, name: str, threads: int) -> int:
    """Return by how many KiB three steps raise the peak memory of a fresh process."""
    program = _PEAK.format(library=library, threads=threads, name=name)
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return int(run.stdout)


def main(arguments: list[str]) -> int:
    """Run the groups asked for; the exit status tells whether every bar holds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of: {' '.join(GROUPS)} (default all)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both (default 2)")
    parser.add_argument("--backend", default="cpu_cext")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default 9)")
    parser.add_argument("--no-memory", action="store_true", help="leave out the peak memory of the steps")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    options = parser.parse_args(arguments)
    if unknown := set(options.groups) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}; there are: {' '.join(GROUPS)}")
    os.environ["MORTICE_BACKEND"] = options.backend
    try:
        import torch
    except ImportError as error:
        parser.exit(1, f"bars: these are ratios to PyTorch, which is not here ({error}). Install the build to measure against.\n")
    import mortice

    mortice.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    libraries = [Library("mortice", mortice), Library("torch", torch)]
    report: dict[str, Any] = {}
    held = True
    for group in options.groups or GROUPS:
        make, (least, mean) = GROUPS[group]
        print(
            f"\n{group}: torch / mortice, {options.threads} threads; each at least {least}"
            + (f", mean {mean}" if mean else "")
        )
        ratios = []
        for name, setup in make().items():
            if options.only not in name:
                continue
            row = measure(Case(group, name, setup), libraries, rounds=options.rounds, min_time=0.02)
            for problem in row.problems:
                print(f"  ! {problem}")
            if "torch" not in row.ratios:
                held = False
                continue
            ratio = 1 / row.ratios["torch"].median
            ratios.append(ratio)
            line = f"  {name:44}{duration(row.seconds['mortice']):>10}{duration(row.seconds['torch']):>10}{ratio:8.2f}"
            if group == "steps" and not options.no_memory:
                ours, theirs = (peak(library, name, options.threads) for library in ("mortice", "torch"))
                line += f"   peak {ours // 1024} MiB, torch {theirs // 1024} MiB"
                held = held and ours <= theirs
                row.seconds |= {"mortice peak KiB": ours, "torch peak KiB": theirs}
            print(line + ("" if ratio >= least else "   BELOW"), flush=True)
            held = held and ratio >= least
            report[f"{group}: {name}"] = {"ratio": ratio, **row.seconds}
        if ratios:
            found = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"  geometric mean {found:.2f}" + (f", the bar is {mean}" if mean else ""))
            held = held and (mean is None or found >= mean or bool(options.only))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    print("\nevery bar holds" if held else "\nnot every bar holds")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
