"""Transforms made of other transforms, in order or at random."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.vision.transforms._draws import by_python, chance


def _listed(owner: Any, transforms: Any, *first: str) -> str:
    return "\n".join([f"{type(owner).__name__}(", *[f"    {t}" for t in (*first, *transforms)], ")"])


class Compose:
    """Apply transforms one after the other."""

    def __init__(self, transforms: Sequence[Any]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _listed(self, self.transforms)


class Lambda:
    """Apply a function of one's own."""

    def __init__(self, lambd: Any) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomTransforms:
    """The base of what chooses among transforms."""

    def __init__(self, transforms: Sequence[Any]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return _listed(self, self.transforms)


class RandomApply(nn.Module):
    """Apply all of the transforms with probability `p`, or none."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        """Transform an image, perhaps."""
        if self.p < chance():
            return img
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _listed(self, self.transforms, f"p={self.p}")


class RandomOrder(RandomTransforms):
    """Apply all transforms in a random order.

    Differs from torch: the order comes from mortice's generator, and from Python's `random` under the engine mt19937 alone.
    """

    def __call__(self, img: Any) -> Any:
        order = list(self.transforms)
        if by_python():
            random.shuffle(order)
        else:
            order = [order[i] for i in mortice.randperm(len(order)).tolist()]
        for t in order:
            img = t(img)
        return img


class RandomChoice(RandomTransforms):
    """Apply one of the transforms, chosen with the weights `p` or evenly.

    Differs from torch: the choice comes from mortice's generator, and from Python's `random` under the engine mt19937 alone.
    """

    def __init__(self, transforms: Sequence[Any], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        weights = [1.0] * len(self.transforms) if self.p is None else self.p
        if len(weights) != len(self.transforms):
            raise ValueError(
                f"RandomChoice: expected a weight for each of {len(self.transforms)} transforms; got {len(weights)}."
            )
        ends = list(itertools.accumulate(weights))
        if ends[-1] <= 0.0:
            raise ValueError("RandomChoice: the weights must have a sum greater than zero.")
        drawn = random.random() if by_python() else chance()
        return self.transforms[bisect.bisect(ends, drawn * ends[-1], 0, len(ends) - 1)](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"
