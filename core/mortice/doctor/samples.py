"""What a session remembers of distributions: for each layer a few figures a sample, in plain lists, so that pages can draw them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from mortice import no_grad

# So many values of a tensor are read; enough for the shape of a distribution and for shares to within a few per cent.
VALUES, BINS = 256, 24
# Gradients are counted by their order of magnitude: half a decade for each bin, from 1e-12 to 1e4.
DECADES, PER_DECADE = (-12, 4), 2
EDGES = [10 ** (DECADES[0] + i / PER_DECADE) for i in range(1, (DECADES[1] - DECADES[0]) * PER_DECADE)]
# So many samples and layers are kept. When there are more samples, each second one goes and sampling becomes as rare.
MOST, LAYERS = 64, 96
FIRST = (1, 5, 20)
# Then each 50th step, and from the 300th on each 200th: by then less changes, and a sample costs as much as many small steps.
REGULARLY, LATE, RARER = 50, 300, 200


def values_of(t: Any, most: int = VALUES) -> list[float]:
    """Return values of a tensor, evenly picked over all of its dims; none of one that has no values to read."""
    if not t.is_floating_point() or not t.numel():
        return []
    stride, n, last = max(1, -(-t.numel() // most)), t.numel(), t.shape[-1] if t.ndim else 1
    while stride > 1 and math.gcd(stride, last) > 1 and stride < n:  # otherwise some channels would never be read
        stride += 1
    try:
        with no_grad():
            return t.detach().reshape(-1)[::stride].tolist()  # type: ignore[no-any-return]
    except RuntimeError:  # inside vmap, or without storage
        return []


def histogram(values: list[float]) -> dict[str, Any]:
    """Count sorted values in equal bins between the least and the greatest; what is not finite is left out."""
    total = sum(values)
    if not math.isfinite(total):
        values = sorted(v for v in values if math.isfinite(v))
        total = sum(values)
    if not values:
        return {"low": 0.0, "high": 0.0, "counts": [], "mean": 0.0, "std": 0.0}
    low, high, count = values[0], values[-1], len(values)
    width, mean = (high - low) / BINS, total / count
    edges = [bisect_left(values, low + width * i) for i in range(1, BINS)] if width > 0 else [count] * (BINS - 1)
    counts = [b - a for a, b in zip([0, *edges], [*edges, count])]
    std = math.dist(values, [mean] * count) / math.sqrt(count)
    return {"low": low, "high": high, "counts": counts, "mean": mean, "std": std}


def magnitudes(sizes: list[float]) -> tuple[list[int], float]:
    """Count sorted absolute values by the order of magnitude; return the counts and the share of zeros."""
    zero = bisect_right(sizes, 0.0)
    edges = [bisect_left(sizes, edge, zero) for edge in EDGES]
    return [b - a for a, b in zip([zero, *edges], [*edges, len(sizes)])], zero / len(sizes) if sizes else 0.0


class Track:
    """A layer's samples: a dict of figures for each, with the step of it.

    Attributes:
        name: "Net.fc1", or of a function "relu in Net".
        kind: the module's class, or the function.
        samples: oldest first.
    """

    __slots__ = ("name", "kind", "samples")

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.samples: list[dict[str, Any]] = []

    def series(self, key: str) -> list[tuple[int, float]]:
        """Return (step, figure) where it is known and finite."""
        found = ((s["step"], s.get(key)) for s in self.samples)
        return [(step, v) for step, v in found if v is not None and math.isfinite(v)]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {"name": self.name, "kind": self.kind, "samples": [_plain(s) for s in self.samples]}


class Samples:
    """All layers' samples.

    Attributes:
        activations: of what layers give: histogram ("low", "high", "counts"), "mean", "std", and where they have a meaning
            the shares "saturated" and "dead".
        layers: of weights: "gradient" (its norm), "magnitudes" and "zero" (its values by order of magnitude, and the share
            of zeros), "weight" (its norm) and "update" (the step's norm over the weight's).
        models, optimizers: the classes of those that were seen, in a dict for the order.
    """

    def __init__(self) -> None:
        self.activations: dict[Any, Track] = {}
        self.layers: dict[Any, Track] = {}
        self.every = RARER
        self.models: dict[str, None] = {}
        self.optimizers: dict[str, None] = {}

    def after(self, step: int) -> int:
        """Return the next step to be sampled."""
        every = REGULARLY if step + REGULARLY <= LATE else self.every
        return next((s for s in FIRST if s > step), (step // every + 1) * every)

    def track(self, among: dict[Any, Track], key: Any, name: str, kind: str) -> Track | None:
        """Return a layer's track, made when it is first met; None when there are too many."""
        found = among.get(key)
        if found is None and len(among) < LAYERS:
            taken = {t.name for t in among.values()}
            again = (f"{name} #{i}" for i in range(2, LAYERS + 2))
            found = among[key] = Track(name if name not in taken else next(n for n in again if n not in taken), kind)
        return found

    def thin(self) -> None:
        """Leave out each second sample once there are too many, and sample more rarely from then on."""
        if all(len(t.samples) <= MOST for t in self):
            return
        for t in self:
            t.samples[:] = [s for s in t.samples if s["step"] // self.every % 2 == 0]
        self.every *= 2

    def __iter__(self) -> Iterator[Track]:
        yield from self.activations.values()
        yield from self.layers.values()

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        return {
            "activations": [t.as_dict() for t in self.activations.values()],
            "layers": [t.as_dict() for t in self.layers.values()],
        }


def _plain(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a sample without what JSON has no word for, with figures of four digits."""
    return {
        k: (float(f"{v:.4g}") if math.isfinite(v) else None) if isinstance(v, float) else v for k, v in sample.items()
    }
